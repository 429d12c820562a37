"""The table of gates: what its lines say, what it returns, and that the gates on labelled versions can fail."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tests.real import gates
from tests.real.gates import Confirmed

SCRIPT = Path(__file__).parents[2] / "scripts" / "score_detectors.py"


@pytest.fixture(scope="module")
def script():
    specification = spec_from_file_location("score_detectors", SCRIPT)
    module = module_from_spec(specification)
    sys.modules["score_detectors"] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    yield module
    del sys.modules["score_detectors"]


def table(script, monkeypatch, capsys, *found):
    """What the script prints and returns with these gates alone."""
    monkeypatch.setattr(script, "change_points", lambda: iter(found))
    for section in ("told_of_made_lines", "made_runs", "speed"):
        monkeypatch.setattr(script, section, lambda *_: iter(()))
    monkeypatch.setattr(sys, "argv", ["score_detectors.py"])
    code = script.main()
    return code, [line.split() for line in capsys.readouterr().out.splitlines()]


def test_each_gate_is_a_line_with_figure_limit_and_whether_it_holds(script, monkeypatch, capsys):
    gate = script.Gate
    code, lines = table(script, monkeypatch, capsys, gate("false", 0.5, 1), gate("recall", 0.6, 0.6, at_least=True))
    assert lines[0][::2] == ["python", "numpy", "pandas"]
    assert lines[2:] == [["false", "0.500", "<=", "1", "ok"], ["recall", "0.600", ">=", "0.6", "ok"]]
    assert code == 0


def test_one_gate_that_fails_is_exit_code_1_and_a_figure_without_limit_is_no_gate(script, monkeypatch, capsys):
    gate = script.Gate
    code, lines = table(script, monkeypatch, capsys, gate("time", 9.0), gate("false", 1.5, 1), gate("none", 0.0, 0))
    assert [line[-1] for line in lines[2:]] == ["9.000", "FAILS", "ok"]
    assert code == 1


def test_a_figure_that_could_not_be_measured_does_not_hold(script):
    assert not script.Gate("recall", float("nan"), 0.6, at_least=True).holds
    assert not script.Gate("false", float("nan"), 1).holds


def step_at(version, how="confirmed", sign=1):
    return Confirmed(version, "run", "step", sign, "level", how)


def test_a_label_is_missed_where_it_is_dated_to_another_version_or_the_wrong_way():
    assert gates.missed([step_at("v11")], "v11") == []
    for wrong in (step_at("v10"), step_at("v11", sign=-1)):
        assert gates.missed([wrong], "v11") == [("run", 1, "step")]


def test_regressions_are_what_is_confirmed_or_reopened_and_worse():
    found = [step_at("v03"), step_at("v04", "reopened"), step_at("v06", "relapsed"), step_at("v07", sign=-1)]
    assert [one.version for one in gates.regressions(found, *gates.QUIET)] == ["v03", "v04"]
    assert gates.ops_blamed([step_at("v11"), Confirmed("v11", "op", "aten::mm", 1, "level", "confirmed")], "v11")
    assert not gates.ops_blamed([step_at("v11")], "v11")
