"""Budgets as a team writes them: in the settings, on the screens, and in a pipeline."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

SETTINGS = """
[[budgets]]
series = "mfu"
at_least = "45 %"
[[budgets]]
workload = "nano*"
series = "step"
at_most = "110 ms"
"""


@pytest.fixture
def team(tracker, tmp_path, monkeypatch):
    """Logs of a training: v1 takes 120 ms a step at an MFU of 41 %, v2 100 ms at 50 %, but for one run each."""
    settings = tmp_path / "tracker.toml"
    settings.write_text(SETTINGS)
    monkeypatch.setenv("TRACKER_CONFIG", str(settings))
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "own.db"))
    versions = {"v1": [(120, 41), (121, 41), (60, 82)], "v2": [(100, 50), (101, 50), (240, 20)]}
    for version, runs in versions.items():
        for number, (ms, mfu) in enumerate(runs):
            lines = [f"iter {at}: loss 3.2, time {ms}.00ms, mfu {mfu}.00%\n" for at in range(0, 110, 10)]
            log = tmp_path / f"{version}_{number}.log"
            log.write_text("".join(lines))
            assert tracker("ingest", log, "--version", version, "--workload", "nano").code == 0
    return tracker


def test_one_odd_run_breaks_and_keeps_no_budget(team):
    done = team("diff", "v2", "v1", "--fail-on", "budget")
    assert done.code == 1
    assert "Budget not met: nano, unknown: mfu of v1 is 41 % (median of 3 runs), at least 45 % is wanted." in done.out
    assert "Budget not met: nano, unknown: step of v1 is 120 ms (median of 3 runs), at most 110 ms is want" in done.out
    done = team("diff", "v1", "v2", "--fail-on", "budget")
    assert (done.code, done.err.splitlines()[-1]) == (0, "--fail-on budget: exit 0, 2 of 2 budgets met")
    assert team("findings", "--fail-on", "budget").code == 0
    assert team("diff", "v1", "run:6", "--fail-on", "budget").code == 4


def test_board_and_history_say_what_is_met(team):
    assert "Budgets: 2 met." in team("board").out
    history = team("history", "step").out
    assert "Budget met: nano, unknown: step of v2 is 101 ms (median of 3 runs), at most 110 ms is wanted." in history
    assert "mfu of v2 is 50 %" in history


def test_pipeline_reads_a_check_per_budget(team):
    suites = ElementTree.fromstring(team("diff", "v2", "v1", "--fail-on", "budget", "--format", "junit").out)
    failed = [case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None]
    assert failed == ["nano unknown: mfu at least 45 %", "nano unknown: step at most 110 ms"]
    (line,) = team("findings", "--fail-on", "budget", "--format", "github").out.splitlines()
    assert line.startswith("::notice ")


def test_coverage_is_one_check_of_a_pipeline(team, tmp_path):
    (tmp_path / "tracker.toml").write_text("[coverage]\nleast = 0.9\n")
    for words in (["findings"], ["diff", "v1", "v2"]):
        done = team(*words, "--fail-on", "coverage", "--format", "junit")
        (case,) = ElementTree.fromstring(done.out).iter("testcase")
        assert (done.code, case.get("classname"), len(case)) == (0, "tracker.coverage", 0)


def test_gate_without_budgets_says_what_to_write(team, tmp_path):
    (tmp_path / "tracker.toml").write_text("")
    done = team("findings", "--fail-on", "budget")
    assert (done.code, done.err.startswith("tracker: --fail-on budget needs a budget; write [[budgets]]")) == (2, True)
