"""One side alone: which runs of its line it is compared with."""

from __future__ import annotations

import pytest

from tests.regressions.made import runs
from tracker.compare import baseline_of
from tracker.compare.baselines import window
from tracker.errors import EXIT_COULD_NOT_RUN, EXIT_TOO_LITTLE_DATA, UsageError
from tracker.judgement import Acceptance, lines_of, update
from tracker.judgement.accepted import Span
from tracker.profile import Device
from tracker.store import runs as edits
from tracker.store.judged import LineRun
from tracker.store.runs import pin


@pytest.fixture
def line(store):
    """v1: runs 1 to 4, v2: 5 to 7, v3: 8 to 10, v4: 11; run 12 of v3 is of another device."""
    for number, (version, count) in enumerate((("v1", 4), ("v2", 3), ("v3", 3), ("v4", 1))):
        runs(store, version, count=count, start=10 * number)
    runs(store, "v3", count=1, start=50, device=Device("Ascend", "910B"))
    return store


def test_the_window_is_the_last_8_accepted_runs_of_earlier_versions(line):
    edits.exclude_all(line, [6], "noisy")
    side, note = baseline_of(line, "v4")
    assert side == "run:2,run:3,run:4,run:5,run:7,run:8,run:9,run:10"
    assert note == (
        "The baseline is the last 8 accepted runs of earlier versions: v1 (run 2-4), v2 (run 5,7), v3 (run 8-10)."
    )


def test_a_version_in_the_middle_is_compared_with_what_came_before_it(line):
    assert baseline_of(line, "v2")[0] == "run:1,run:2,run:3,run:4"
    assert baseline_of(line, "run:9")[0].split(",")[-1] == "run:7"


def test_the_version_before_and_the_pinned_one(line):
    pin(line, "v1")
    assert baseline_of(line, "v4", "previous")[0] == "v3@NVIDIA H100"
    side, note = baseline_of(line, "v4", "pinned")
    assert side == "v1"
    assert note == "The baseline is the pinned version: v1 (run 1-4)."


def test_without_runs_before_it_the_baseline_must_be_named(line):
    with pytest.raises(UsageError, match="v1 has no earlier runs on its device and configuration") as raised:
        baseline_of(line, "v1")
    assert raised.value.exit_code == EXIT_TOO_LITTLE_DATA
    with pytest.raises(UsageError, match="run:12 has no earlier runs"):
        baseline_of(line, "run:12")
    with pytest.raises(UsageError, match="v4 has no pinned runs") as raised:
        baseline_of(line, "v4", "pinned")
    assert raised.value.exit_code == EXIT_COULD_NOT_RUN
    with pytest.raises(UsageError, match="v3 has runs of several"):
        baseline_of(line, "v3")
    with pytest.raises(UsageError, match="has no earlier versions"):
        baseline_of(None, "./trace.json")


SLOW = {f"op{at:02}": 2.0 for at in range(4)}  # 4 of 40 ops twice as slow: the step takes 10 % longer


def followed(store, *versions):
    """Versions v1, v2, ... of three runs each, with what is changed in them, and their findings."""
    for number, changed in enumerate(versions):
        runs(store, f"v{number + 1}", changed, start=3 * number)
    update(store, lines_of(store))


def test_runs_with_an_open_regression_are_left_out_and_the_note_says_so(store):
    followed(store, None, None, SLOW, None)
    side, note = baseline_of(store, "v4")
    assert side == "run:1,run:2,run:3,run:4,run:5,run:6"
    assert " Left out: run 7-9 (open: finding " in note and "(step +10." in note
    (beyond,) = {baseline_of(store, "run:12")[0]}
    assert beyond == side


def test_a_window_has_three_runs_where_there_are_three(store):
    followed(store, None, SLOW, SLOW)
    side, note = baseline_of(store, "v3")
    assert side == "run:1,run:2,run:3"
    edits.exclude_all(store, [1, 2], "noisy")  # and nothing is followed again
    side, note = baseline_of(store, "v3")
    assert side == "run:3,run:5,run:6"
    assert "Fewer than 3 are accepted, so that others stand in: run 5,6 (open: finding " in note


def test_small_regressions_in_the_window_are_told(store):
    followed(store, None, {"op07": 1.2}, {"op07": 1.2}, None)
    side, note = baseline_of(store, "v3")
    assert side == "run:1,run:2,run:3,run:4,run:5,run:6"
    assert "Open in these runs already, and too small to leave them out: finding " in note
    assert "(op07 +19." in note and "Left out" not in note


def test_many_reasons_are_told_in_short(store):
    line = tuple(LineRun(number, 1, "v1", False, False, 1, "device", 0) for number in range(1, 10))

    def span(place):
        row = {"finding_id": place, "name": "step", "change": "level", "direction": "regression", "ratio": 0.1}
        return Span({**row, "kind": "run", "contribution": None}, place, place + 1, True)

    bad = tuple((span(place),) if place < 6 else () for place in range(9))
    places, note = window(Acceptance(line, 0, (), bad, ((),) * 9))
    assert places == [6, 7, 8]
    assert note.startswith(" Left out: 2 more reasons before; run 3 (open: finding 2 (step +10.0 %)); run 4 (")
