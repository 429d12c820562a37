"""One side alone: which runs of its line it is compared with."""

from __future__ import annotations

import pytest

from tests.regressions.made import runs
from tracker.compare import diffs
from tracker.errors import EXIT_COULD_NOT_RUN, EXIT_TOO_LITTLE_DATA, UsageError
from tracker.profile import Device
from tracker.regressions import track
from tracker.regressions.judgement import tracks_of, update
from tracker.store import runs as edits
from tracker.store.versions import pin_version


@pytest.fixture
def line(store):
    """v1: runs 1 to 4, v2: 5 to 7, v3: 8 to 10, v4: 11; run 12 of v3 is of another device."""
    for number, (version, count) in enumerate((("v1", 4), ("v2", 3), ("v3", 3), ("v4", 1))):
        runs(store, version, count=count, start=10 * number)
    runs(store, "v3", count=1, start=50, device=Device("Huawei", "Ascend910B"))
    return store


def baseline_of(store, side, against="window"):
    """What one side alone is compared with, and the sentence on it."""
    (found,) = diffs(store, [side], against=against)
    return found.baseline.label, found.notes[0]


def judge(store):
    update(store, tracks_of(store))


def test_a_version_is_compared_with_the_level_that_it_was_judged_against(line):
    edits.exclude_all(line, [6], "noisy")
    judge(line)
    side, note = baseline_of(line, "v4")
    assert side == "run:2,run:3,run:4,run:5,run:7,run:8,run:9,run:10"
    assert note == ("The baseline is the level that v4 was judged against: v1 (run 2-4), v2 (run 5,7), v3 (run 8-10).")
    assert baseline_of(line, "v2")[0] == "run:1,run:2,run:3,run:4"


def test_what_was_not_judged_is_compared_with_the_version_before(line):
    assert baseline_of(line, "v4") == ("v3@NVIDIA H100", "The baseline is the version before: v3 (run 8-10).")
    judge(line)
    runs(line, "v4", count=1, start=40)
    assert baseline_of(line, "v4")[0] == "v3@NVIDIA H100", "v4 was judged without its newest run"
    assert baseline_of(line, "run:9")[0] == "v2", "a run of a version is no version"


def test_the_version_before_and_the_pinned_one(line):
    pin_version(line, "v1")
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
    with pytest.raises(UsageError, match="has no earlier versions"):
        baseline_of(None, __file__)


SLOW = {f"op{at:02}": 2.0 for at in range(4)}  # 4 of 40 ops twice as slow: the step takes 10 % longer


def test_after_a_slower_version_the_level_is_its_own(store):
    """v3 is slower and v4 as slow: v4 is judged against the runs of v3, and v5 is back at the level of v1 and v2."""
    for number, changed in enumerate([None, None, SLOW, SLOW, None]):
        runs(store, f"v{number + 1}", changed, start=3 * number)
    judge(store)
    assert baseline_of(store, "v3")[0] == "run:1,run:2,run:3,run:4,run:5,run:6"
    assert baseline_of(store, "v4")[0] == "run:7,run:8,run:9"
    assert baseline_of(store, "v5")[0] == "run:7,run:8,run:9,run:10,run:11,run:12"
    runs(store, "v6", start=15)
    judge(store)
    assert baseline_of(store, "v6")[0] == "run:2,run:3,run:4,run:5,run:6,run:13,run:14,run:15"


def test_a_version_that_other_rules_judged_says_so(store, monkeypatch):
    """tracker was upgraded, and nothing came since: findings still has what the earlier rules found."""
    for number in range(2):
        runs(store, f"v{number + 1}", start=3 * number)
    update(store, tracks_of(store))
    monkeypatch.setattr(track, "RULE_VERSION", track.RULE_VERSION + 1)
    (found,) = diffs(store, ["v2"])
    assert "The judgement of v2 is out of date; tracker versions judge brings it up to date." in found.notes[0]
    update(store, tracks_of(store))
    (found,) = diffs(store, ["v2"])
    assert "out of date" not in " ".join(found.notes)
