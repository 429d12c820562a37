"""What `explain` says of one finding beside its tests."""

from __future__ import annotations

from tests.regressions.made import runs
from tests.regressions.test_judgement import judge
from tracker.regressions.explain import explain
from tracker.regressions.inbox import findings


def number_of(store, name):
    rows = findings(store).tables["findings"].records()
    return next(row["finding_id"] for row in rows if row["name"] == name)


def test_run_that_was_left_out_is_named(store):
    for number in range(3):
        runs(store, f"v{number + 1}", count=2, start=2 * number)
    runs(store, "v4", {"op07": 3.0}, count=1, start=6)
    runs(store, "v4", count=1, start=7)
    runs(store, "v5", {"op07": 1.3}, count=2, start=8)
    judge(store)
    found = explain(store, number_of(store, "op07"))
    assert found.finding["version"] == "v5"
    runs_before = {row["run_id"] for row in found.tables["runs"].records() if row["side"] == "baseline"}
    assert runs_before == {1, 2, 3, 4, 5, 6, 8}
    (note,) = (note for note in found.notes if "left out" in note)
    assert note.startswith("Run 7 of v4 is left out of the baseline: +")
    assert "tracker runs exclude 7" in note


def test_nothing_is_left_out_of_a_quiet_level(store):
    for number in range(4):
        runs(store, f"v{number + 1}", {"op07": 1.3} if number == 3 else None, count=2, start=2 * number)
    judge(store)
    assert not any("left out" in note for note in explain(store, number_of(store, "op07")).notes)
