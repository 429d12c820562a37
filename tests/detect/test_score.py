"""The script that says how often the judge is wrong runs on made runs: its own data is not in the repository."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def score():
    sys.path.insert(0, str(ROOT / "scripts"))
    yield import_module("score_detectors")
    sys.path.remove(str(ROOT / "scripts"))


@pytest.fixture
def quiet_runs(score):
    """Twelve runs of 30 operators that vary by 0.1 %, and their step."""
    draw = np.random.default_rng(1)
    values = 100 * np.exp(draw.normal(0, 0.001, (30, 12)))
    values = np.vstack([values, values.sum(axis=0)])
    keys = [("op_name", "host_self_ns", f"op{number:02}", "", "", "") for number in range(30)]
    keys.append(("run", "duration_ns", "step", "", "", ""))
    return score.make_runs(keys, values)


def test_nothing_is_false_where_nothing_changed(score, quiet_runs, capsys):
    score.false_alarms(quiet_runs, [(4, 3)], [None])
    assert "0 false ops, 0 parts, 0 steps, 0 gates" in capsys.readouterr().out


def test_operator_of_three_times_its_time_is_told_and_fails_the_gate(score, quiet_runs, capsys):
    # one of 30 operators takes two thirtieths of the step more in the last of four versions
    slower = score.slowed(quiet_runs, {"op07": np.where(np.arange(12) < 9, 1.0, 3.0)})
    score.false_alarms(slower, [(4, 3)], [None])
    assert "1 false ops, 1 parts, 1 steps, 1 gates" in capsys.readouterr().out
