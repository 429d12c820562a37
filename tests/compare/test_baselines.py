"""One side alone: which runs of its line it is compared with."""

from __future__ import annotations

import pytest

from tests.judgement.made import runs
from tracker.compare import baseline_of
from tracker.errors import UsageError
from tracker.profile import Device
from tracker.store import runs as edits
from tracker.store.runs import pin


@pytest.fixture
def line(store):
    """v1: runs 1 to 4, v2: 5 to 7, v3: 8 to 10, v4: 11; run 12 of v3 is of another device."""
    for number, (version, count) in enumerate((("v1", 4), ("v2", 3), ("v3", 3), ("v4", 1))):
        runs(store, version, count=count, start=10 * number)
    runs(store, "v3", count=1, start=50, device=Device("Ascend", "910B"))
    return store


def test_the_window_is_the_last_8_active_runs_of_earlier_versions(line):
    edits.exclude_all(line, [6], "noisy")
    side, note = baseline_of(line, "v4")
    assert side == "run:2,run:3,run:4,run:5,run:7,run:8,run:9,run:10"
    assert note == (
        "The baseline is the last 8 active runs of earlier versions: v1 (run 2-4), v2 (run 5,7), v3 (run 8-10)."
    )


def test_a_version_in_the_middle_is_compared_with_what_came_before_it(line):
    assert baseline_of(line, "v2")[0] == "run:1,run:2,run:3,run:4"
    assert baseline_of(line, "run:9")[0].split(",")[-1] == "run:7"


def test_the_version_before_and_the_pinned_one(line):
    pin(line, "v1")
    assert baseline_of(line, "v4", "previous")[0] == "run:8,run:9,run:10"
    side, note = baseline_of(line, "v4", "pinned")
    assert side == "run:1,run:2,run:3,run:4"
    assert note == "The baseline is the pinned version: v1 (run 1-4)."


def test_without_runs_before_it_the_baseline_must_be_named(line):
    with pytest.raises(UsageError, match="v1 has no earlier runs on its device and configuration"):
        baseline_of(line, "v1")
    with pytest.raises(UsageError, match="run:12 has no earlier runs"):
        baseline_of(line, "run:12")
    with pytest.raises(UsageError, match="v4 has no pinned runs"):
        baseline_of(line, "v4", "pinned")
    with pytest.raises(UsageError, match="v3 has runs of several"):
        baseline_of(line, "v3")
    with pytest.raises(UsageError, match="has no earlier versions"):
        baseline_of(None, "./trace.json")
