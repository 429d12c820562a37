"""Thresholds: which limit holds for a series, that all verdicts follow them, and what others would change."""

from __future__ import annotations

import numpy as np
import pytest

from tests.regressions.made import runs
from tests.regressions.test_judgement import changes, everything, story
from tracker.detect import traits_of
from tracker.detect.thresholds import limit_of, track_limits
from tracker.errors import UsageError
from tracker.profile import Device
from tracker.regressions.judgement import tracks_of, update
from tracker.regressions.thresholds import Where, check, set_thresholds, try_thresholds, unset_thresholds
from tracker.results.thresholds import Threshold
from tracker.store import queries
from tracker.store.tracks import limits_of_track

WHY = {"who": "ann", "when_ns": 1, "reason": "noisy"}
STEP, COPY, ADD, ALL_REDUCE = (
    ("run", "duration_ns", "step", "", "", ""),
    ("op", "device_self_ns", "aten::copy_", "[2]", "", ""),
    ("op", "device_self_ns", "aten::add", "[2]", "", ""),
    ("communication", "total_ns", "all_reduce", "", "", ""),
)


def limit(name, value, kind="", pattern="", **where):
    return Threshold(name, value, kind, pattern, **where, **WHY)


def ratios(*rows, device_timed=True):
    found = traits_of([STEP, COPY, ADD, ALL_REDUCE], rows, device_timed=device_timed)
    return np.expm1(found.ratio).round(3).tolist()


def test_without_thresholds_the_defaults_hold():
    assert ratios() == [0.02, 0.03, 0.03, 0.1]
    assert ratios(device_timed=False) == [0.05, 0.03, 0.03, 0.1]


def test_pattern_goes_before_kind_and_kind_before_all():
    own = (limit("min_ratio", 0.2), limit("min_ratio", 0.3, "op"), limit("min_ratio", 0.4, "", "aten::copy*"))
    assert ratios(*own) == [0.2, 0.4, 0.3, 0.2]
    assert limit_of("min_ratio", COPY, own) is own[2]
    assert limit_of("min_contribution", COPY, own) is None


def test_longer_pattern_goes_before_a_shorter_one():
    own = (limit("min_ratio", 0.2, "", "aten::copy_"), limit("min_ratio", 0.1, "", "aten::*"))
    assert ratios(*own) == [0.02, 0.2, 0.1, 0.1]


def test_limit_of_a_device_goes_before_that_of_all():
    assert track_limits((limit("confirm", 4, device_id=7), limit("confirm", 3))).confirm == 4


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (limit("min_ration", 0.1), "there is no threshold 'min_ration'; choose from min_ratio, "),
        (limit("min_ratio", 0.0), "min_ratio cannot be 0; give a fraction .0.03, or 3%. between 0.001 and 1"),
        (limit("min_ratio", 10.0), "min_ratio cannot be 10; give a fraction .0.03, or 3%."),  # 10 % were meant
        (limit("min_ratio", float("nan")), "min_ratio cannot be nan"),
        (limit("confirm", 11), "confirm cannot be 11; give a whole number between 1 and 10"),
        (limit("window", 8.5), "window cannot be 8.5; give a whole number"),
        (limit("confirm", 3, "op"), "confirm is a limit of a whole track"),
        (limit("alpha", 0.01, "", "gemm"), "alpha is a limit of a whole track"),
        (limit("min_ratio", 0.1, "", "x" * 401), "the pattern has 401 characters"),
    ],
)
def test_limit_that_cannot_be_is_refused(bad, message):
    with pytest.raises(UsageError, match=message):
        check(bad)


@pytest.fixture
def changed(store):
    """op07 is 6 % slower in v2."""
    runs(store, "v1", count=8)
    runs(store, "v2", {"op07": 1.06}, count=3, start=8)
    update(store, tracks_of(store))
    return store


def test_larger_threshold_takes_a_finding_back_until_it_is_unset(changed):
    before = everything(changed)
    assert changes(changed) == [("v2", "op07", "REGRESSED")]
    assert set_thresholds(changed, [limit("min_ratio", 0.10, "op", "op0*")], Where()) == 2
    assert changes(changed) == []
    assert unset_thresholds(changed, [Threshold("min_ratio", 0.0, "op", "op0*")], Where()) == 2
    assert everything(changed) == before


def test_setting_the_same_again_judges_nothing(changed):
    assert set_thresholds(changed, [limit("alpha", 0.01)], Where()) == 2
    assert set_thresholds(changed, [limit("alpha", 0.01)], Where()) == 0
    assert len(queries.thresholds(changed).frame) == 1


def test_threshold_of_another_device_changes_nothing_here(changed):
    runs(changed, "v1", count=1, start=20, device=Device("NVIDIA", "A100"))
    update(changed, tracks_of(changed))
    set_thresholds(changed, [limit("min_ratio", 0.10)], Where(device="A100"))
    assert changes(changed) == [("v2", "op07", "REGRESSED")]
    with pytest.raises(UsageError, match=r"several devices match: NVIDIA A100; .*; name one of them with --device"):
        set_thresholds(changed, [limit("min_ratio", 0.10)], Where(device="n"))


def test_three_runs_decide_where_confirm_is_three(store):
    runs(store, "v1", count=8)
    update(store, tracks_of(store))
    set_thresholds(store, [limit("confirm", 3)], Where())
    words = []
    for number in range(8, 11):
        runs(store, "v2", {"op07": 1.2}, count=1, start=number)
        update(store, tracks_of(store))
        words.append([word for _, name, word in changes(store) if name == "op07"])
    assert words == [["SUSPECT"], ["SUSPECT"], ["REGRESSED"]]


def test_trying_the_limits_that_hold_changes_nothing(store):
    story(store)
    update(store, tracks_of(store))
    set_thresholds(store, [limit("min_ratio", 0.04, "op")], Where())
    before = everything(store)
    found = try_thresholds(store, [limit("min_ratio", 0.04, "op")], Where())
    assert (len(found.moved), found.versions) == (0, 4)
    assert found.stay == len(before[1]) > 0
    assert everything(store) == before


def test_trying_a_limit_gives_what_setting_it_gives(store):
    story(store)
    update(store, tracks_of(store))
    stored = {row[:5] for row in everything(store)[1]}
    wanted = [limit("min_ratio", 0.6, "op", "op07"), limit("confirm", 4)]
    tried = try_thresholds(store, wanted, Where())
    moved = list(tried.moved.rows("movement", "kind", "name", "direction", "how", "version"))
    set_thresholds(store, wanted, Where())
    now = {row[:5] for row in everything(store)[1]}
    assert {row[1:] for row in moved if row[0] == "comes"} == now - stored
    assert {row[1:] for row in moved if row[0] == "goes"} == stored - now
    assert tried.stay == len(now & stored)
    assert ("op", "op07", "regression", "level", "v2") in stored - now


def test_window_below_the_least_runs_is_refused(changed):
    with pytest.raises(UsageError, match="least_base 3, window 2, look_back 32: no run would be tested"):
        try_thresholds(changed, [limit("window", 2)], Where())
    assert try_thresholds(changed, [limit("window", 2), limit("least_base", 2)], Where()).versions == 2


def test_configuration_is_named_by_just_its_values(store):
    """Of `a=1`, `a=1 b=2` and `c=3 d=4` the first is meant by a=1, the second by b=2; of the third a part is enough."""
    for start, values in enumerate(({"a": "1"}, {"a": "1", "b": "2"}, {"c": "3", "d": "4"})):
        runs(store, "v1", start=3 * start, of_run={"configuration": values})
    number = {row["configuration"]: row["configuration_id"] for row in queries.tracks(store).frame.to_dict("records")}

    def holds():
        with store.connect() as connection:
            return {line.configuration_id for line in tracks_of(store) if limits_of_track(connection, line)}

    for config, expected in (({"a": "1"}, "a=1"), ({"a": "1", "b": "2"}, "a=1 b=2"), ({"d": "4"}, "c=3 d=4")):
        set_thresholds(store, [limit("min_ratio", 0.2)], Where(config=config))
        assert queries.thresholds(store, None).frame["configuration"].tolist() == [expected]
        assert holds() == {number[expected]}
        unset_thresholds(store, [limit("min_ratio", 0.0)], Where(config=config))
        assert holds() == set()
    with pytest.raises(UsageError, match="no threshold min_ratio is set"):
        unset_thresholds(store, [limit("min_ratio", 0.0)], Where(config={"b": "2"}))
