"""One key over versions: what is named, what is shown, what is said of what is missing."""

from __future__ import annotations

import pandas as pd
import pytest

import tracker
from tests.factories import same_table, save
from tests.judgement.test_update import judge
from tests.regressions.made import runs
from tracker.errors import UsageError
from tracker.results import HISTORY_COLUMNS
from tracker.store import runs as edits


@pytest.fixture
def followed(store):
    """op07 is 20 % slower from v3 on."""
    for number in range(1, 5):
        runs(store, f"v{number}", {"op07": 1.2 if number > 2 else 1.0}, start=3 * number)
    judge(store)
    return store


def test_a_line_has_a_row_per_version_with_values_verdicts_and_lasting_changes(followed):
    found = tracker.history("op07", store=followed)
    assert {name: tuple(getattr(found, name).columns) for name in HISTORY_COLUMNS} == HISTORY_COLUMNS
    same_table(found.series, "kind metric unit name versions runs\n op_name device_self_ns ns op07 4 12")
    same_table(found.points, "version runs change_point\n v1 3 False\n v2 3 False\n v3 3 True\n v4 3 False")
    assert found.points["baseline_verdict"][[2, 3]].tolist() == ["REGRESSED"] * 2, "v4 is as slow as v3"
    assert not found.points["baseline_verdict"][[0, 1]].isin(["REGRESSED", "IMPROVED", "SUSPECT"]).any()
    assert [round(value / 1e6, 1) for value in found.points["value"]] == [1.0, 1.0, 1.2, 1.2]
    assert len(found.runs) == 12


def test_a_version_without_the_op_is_a_gap_not_zero(store):
    runs(store, "v1")
    runs(store, "v2", start=3, without=("op07",))
    judge(store)
    same_table(tracker.history("op07", store=store).points[["version", "runs"]], "version runs\n v1 3\n v2 0")
    point = tracker.history("op07", store=store).points.iloc[1]
    assert (pd.isna(point["value"]), point["baseline_verdict"]) == (True, "REMOVED")


def names(store, key=None, **options):
    return sorted(tracker.history(key, store=store, **options).series["name"])


def test_a_series_is_named_by_name_pattern_or_number(followed):
    assert names(followed, "op0?") == [f"op0{at}" for at in range(10)]
    number = int(tracker.history("op07", store=followed).series["series_id"][0])
    assert names(followed, str(number)) == ["op07"]


def test_the_kinds_of_a_name_are_told_apart(store):
    named = {"module": "Net_0/Linear_0"}
    for number, version in enumerate(("v1", "v2")):
        ops = [("mm", 10, {"input_shapes": "[[2, 3]]", **named}), ("mm", 20, {"input_shapes": "[[4, 3]]"})]
        save(store, version, ops=ops, memory=[("mm", 64)], started_at_ns=10**18 + number * 10**12)
    whole = tracker.history("mm", store=store)
    assert (whole.series["kind"].tolist(), whole.points["value"].tolist()) == (["op_name"], [30, 30])
    assert tracker.history("mm", store=store, shape="*2, 3*").points["value"].tolist() == [10, 10]
    assert tracker.history("mm", store=store, kind="memory").series["unit"].tolist() == ["bytes"]
    assert tracker.history(module="*/Linear_0", store=store).points["value"].tolist() == [10, 10]
    assert tracker.history("step", store=store).series["kind"].tolist() == ["run"]
    with pytest.raises(UsageError, match="not followed module by module"):
        tracker.history("mm", module="*", store=store)


def test_what_else_changed_is_marked(store):
    for number, (version, driver) in enumerate((("v1", "535"), ("v2", "535"), ("v3", "550"))):
        save(store, version, of_run={"facts": {"driver": driver}}, started_at_ns=10**18 + number * 10**12)
    found = tracker.history("aten::mm", store=store)
    assert found.points["environment"].tolist() == ["", "", "driver 535 -> 550"]
    same_table(found.environment, "version key before after\n v3 driver 535 550")


def test_what_is_out_of_date_is_left_out_and_said(followed):
    edits.exclude_all(followed, [1], "noisy")
    found = tracker.history("op07", store=followed)
    assert found.points["baseline_verdict"].isna().tolist() == [True] * 4
    assert found.points["runs"].tolist() == [2, 3, 3, 3]
    assert "tracker versions judge" in found.notes[0]


def test_top_lists_what_drifted_most_from_the_pinned_version(followed):
    with pytest.raises(UsageError, match="no version is pinned"):
        tracker.history(top=3, store=followed)
    edits.pin(followed, "v1")
    judge(followed)
    found = tracker.history(top=3, store=followed)
    assert found.series["name"].tolist()[0] == "op07"
    assert len(found.series) == 3
    assert found.pinned == "v1"


@pytest.mark.parametrize(
    ("key", "problem"),
    [("op7", "no series is called 'op7'; did you mean op[0-3]7 or"), ("99999999", "no series is called")],
)
def test_what_is_not_there_is_said_with_what_is(followed, key, problem):
    with pytest.raises(UsageError, match=problem):
        tracker.history(key, store=followed)


def test_several_workloads_must_be_told_apart(followed):
    save(followed, "v1", "bert")
    with pytest.raises(UsageError, match="bert, gpt; choose one with --workload"):
        tracker.history("step", store=followed)
    assert names(followed, "step", workload="bert") == ["step"]


def test_an_empty_database_says_so(store):
    with pytest.raises(UsageError, match="no active runs"):
        tracker.history("step", store=store)
