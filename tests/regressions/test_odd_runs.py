"""One run of a version stands alone, far from three others or more: it hides no change of these, and doubles none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.factories import EPOCH_NS, save
from tests.regressions.tracks import found_in
from tracker.compare import diff, gate_of_diff
from tracker.detect import series_of
from tracker.detect.track import Track
from tracker.regressions.explain import explain
from tracker.regressions.judgement import tracks_of, update

QUIET = [100.0, 100.3, 99.7]


def of_step(*versions):
    """Findings of a step with these runs a version, without a series beside it."""
    numbers = np.array([[run for version in versions for run in version]])
    places = np.repeat(np.arange(1, len(versions) + 1), [len(version) for version in versions])
    series = series_of([("run", "duration_ns", "step", "", "", "")], device_timed=True)
    return [one[1:] for one in found_in(Track(numbers, places, series))]


@pytest.mark.parametrize("odd", [100.0, 200.0, 40.0])
def test_odd_run_hides_no_change_of_the_others(odd):
    slow = [118.0, 118.3, 117.7, odd]
    assert of_step(QUIET, QUIET, slow, slow[:3]) == [(1, "level", 3, 3, "open", 0)]


def test_more_runs_delete_no_finding():
    slow = [118.0, 118.3, 117.7]
    for lucky in ([], [100.0], [118.1, 100.0], [118.1, 117.9, 100.0]):
        assert of_step(QUIET, QUIET, slow + lucky) == [(1, "level", 3, 3, "open", 0)]


def test_two_runs_at_the_old_level_are_no_odd_ones():
    assert of_step(QUIET, QUIET, [118.0, 118.3, 100.0, 100.2]) == []


def test_one_odd_run_is_no_change_of_its_version():
    assert of_step(QUIET, QUIET, [*QUIET, 150.0], QUIET) == []


@pytest.fixture
def doubled(store):
    """v1 takes 10 ms, v2 12 ms but for one run of 24."""
    starts = iter(range(100))
    for version, times in (("v1", (10.0, 10.02, 9.98)), ("v2", (12.0, 12.02, 11.98, 24.0))):
        for ms in times:
            ns = int(ms * 1e6)
            start = EPOCH_NS + next(starts) * 10**13
            save(store, version, ops=[("mm", ns - 10**6), ("add", 10**6)], steps=3, step_ns=ns, started_at_ns=start)
    update(store, tracks_of(store))
    return store


def test_numbers_leave_the_odd_run_out_and_name_it(doubled):
    result = diff(doubled, "v1", "v2")
    assert result.headline.startswith("v2 is 20.0 % slower than v1: 10.00 -> 12.00 ms per step (+2.00 ms); mm ")
    assert "Run 7 of v2 stands alone, 100.0 % slower than its 3 others, and is left out." in result.explanation.remarks
    assert gate_of_diff(result).code == 1


def test_explain_names_the_odd_run(doubled):
    notes = explain(doubled, 1).notes
    assert any(note.startswith("Run 7 of v2 is left out of its version: +100.0 %") for note in notes)


def test_explain_counts_the_runs_without_the_odd_one(doubled):
    tables = explain(doubled, 1).tables
    tests = {row["test"]: row["value"] for row in tables["tests"].records()}
    sides = {row["run_id"]: row["side"] for row in tables["runs"].records()}
    assert tests["runs after"] == 3
    assert [run_id for run_id, side in sides.items() if side == "candidate"] == [4, 5, 6]
    assert sides[7] == ""
