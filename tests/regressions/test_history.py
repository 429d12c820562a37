"""The history of series: what is named, what is shown, what is said of what is missing."""

from __future__ import annotations

import pandas as pd
import pytest

import tracker
from tests.factories import same_table, save
from tests.regressions.made import runs
from tracker.errors import UsageError
from tracker.regressions.judgement import tracks_of, update
from tracker.results import HISTORY_COLUMNS
from tracker.results.thresholds import Threshold
from tracker.store import runs as edits
from tracker.store import tracks as stored_tracks
from tracker.store.versions import pin_version

STACK = {"settings": {"with_stack": "on"}}


def judge(store):
    return update(store, tracks_of(store))


def line(store, key, **options):
    return tracker.history(key, store=store, **options).points.set_index("version")


def known(column):
    return [None if pd.isna(value) else value for value in column]


@pytest.fixture
def followed(store):
    """op07 is 20 % slower from v3 on."""
    for number in range(1, 5):
        runs(store, f"v{number}", {"op07": 1.2 if number > 2 else 1.0}, start=3 * number)
    judge(store)
    return store


def test_a_track_has_a_row_per_version_with_value_verdict_and_change(followed):
    found = tracker.history("op07", store=followed)
    assert {name: tuple(getattr(found, name).columns) for name in HISTORY_COLUMNS} == HISTORY_COLUMNS
    same_table(found.series, "kind metric unit name versions runs\n op_name device_self_ns ns op07 4 12")
    same_table(found.points, "version runs change_point\n v1 3 False\n v2 3 False\n v3 3 True\n v4 3 False")
    points = found.points.set_index("version")
    assert points["verdict"]["v3"] == "REGRESSED"
    assert points["change"]["v3"] == pytest.approx(0.2, abs=0.02)
    assert points["change"]["v4"] == pytest.approx(0.0, abs=0.02), "against v3, where its level began"
    assert points["level_version"][["v2", "v3", "v4"]].tolist() == ["", "", "v3"]
    assert not points["verdict"][["v1", "v2", "v4"]].isin(["REGRESSED", "IMPROVED", "SUSPECT"]).any()
    assert [round(value / 1e6, 1) for value in points["value"]] == [1.0, 1.0, 1.2, 1.2]
    assert len(found.runs) == 12


def test_value_of_a_version_is_the_geometric_mean_of_its_runs(store):
    for number, step in enumerate((1000, 1000, 8000)):
        save(store, "v1", step_ns=step, started_at_ns=10**18 + number * 10**12)
    point = tracker.history("step", store=store).points.iloc[0]
    assert point["value"] == pytest.approx(2000.0)
    assert (point["minimum"], point["maximum"], point["runs"]) == (1000.0, 8000.0, 3)


def test_step_is_shown_where_nothing_is_named(followed):
    assert tracker.history(store=followed).series["name"].tolist() == ["step"]


def test_a_version_without_the_op_is_a_gap_not_zero(store):
    runs(store, "v1")
    runs(store, "v2", start=3, without=("op07",))
    judge(store)
    same_table(tracker.history("op07", store=store).points[["version", "runs"]], "version runs\n v1 3\n v2 0")
    point = tracker.history("op07", store=store).points.iloc[1]
    assert (pd.isna(point["value"]), point["verdict"], point["change_point"]) == (True, "REMOVED", True)
    assert tracker.history("op07", kind="op", store=store).points["facts"].tolist() == ["", "gone"]


def test_recovered_series_is_back_to_the_level_of_before(store):
    for number, factor in enumerate((1.0, 1.0, 1.3, 1.3, 1.0), 1):
        runs(store, f"v{number}", {"op07": factor}, start=3 * number)
    judge(store)
    points = line(store, "op07")
    assert known(points["verdict"])[2:] == ["REGRESSED", "UNCHANGED", "IMPROVED"]
    assert points.index[points["change_point"]].tolist() == ["v3"]
    assert known(points["back_to"]) == [None, None, None, None, "v1"]


def test_single_runs_decided_together_are_one_change(store):
    """op07 is 50 % slower since v06, which v08 decides; v09 is unchanged against that level."""
    for at in range(1, 10):
        runs(store, f"v{at:02}", {"op07": 1.5} if at > 5 else None, start=at, count=1)
        judge(store)
    points = line(store, "op07", kind="op")
    assert known(points["verdict"])[5:] == ["REGRESSED", "REGRESSED", "REGRESSED", "UNCHANGED"]
    assert known(points["since"])[5:] == [None, "v06", "v06", None]
    assert known(points["decided_by"])[5:] == ["v08", "v08", None, None]
    assert points["change"][["v06", "v07", "v08"]].tolist() == pytest.approx([0.5] * 3, abs=0.03)
    assert abs(points["change"]["v09"]) < 0.03
    assert points["level_version"][["v06", "v07", "v08", "v09"]].tolist() == ["", "", "", "v06"]
    assert points.index[points["change_point"]].tolist() == ["v06"]


def test_single_run_that_later_runs_do_not_confirm_is_no_change(store):
    """op07 is 50 % slower in v06 alone: v07 says so, and no word calls +50 % unchanged."""
    for at in range(1, 9):
        runs(store, f"v{at}", {"op07": 1.5} if at == 6 else None, start=at, count=1)
        judge(store)
    points = line(store, "op07", kind="op")
    assert known(points["verdict"])[5:] == ["NOT_CONFIRMED", "UNCHANGED", "UNCHANGED"]
    assert (points["decided_by"]["v6"], points["change"]["v6"]) == ("v7", pytest.approx(0.5, abs=0.03))


def test_suspect_of_the_newest_run_is_no_lasting_change(store):
    for at in range(1, 7):
        runs(store, f"v{at}", {"op07": 1.5} if at > 5 else None, start=at, count=1)
    judge(store)
    points = line(store, "op07", kind="op")
    assert points["verdict"]["v6"] == "SUSPECT"
    assert not points["change_point"].any()


def test_changed_call_count_is_a_fact_of_its_version(store):
    for number, calls in enumerate((2, 2, 3)):
        save(store, f"v{number + 1}", ops=[("mm", 300, {"calls": calls})], started_at_ns=10**18 + number * 10**12)
    judge(store)
    assert line(store, "mm", kind="op")["facts"].tolist() == ["", "", "calls 2 -> 3"]


def test_thresholds_of_a_track_are_in_its_notes(followed):
    with followed.begin() as connection:
        stored_tracks.write_limits(
            connection, 1, [Threshold("min_ratio", 0.5, "op_name", "op07", who="ann", reason="noisy")]
        )
    judge(followed)
    found = tracker.history("op07", store=followed)
    assert found.notes == ("Judged by thresholds of your own: min_ratio 50 % of op_name op07.",)
    assert not found.points["verdict"].isin(["REGRESSED"]).any()


def test_settings_that_forbid_a_comparison_are_in_the_notes(store):
    runs(store, "v1", count=4)
    runs(store, "v2", count=3, start=4, **STACK)
    judge(store)
    found = tracker.history("step", store=store)
    assert found.notes == (
        "v2 is compared with no run before it where the settings matter: with_stack off -> on (recording Python "
        "stacks makes host times longer). Record both with the same with_stack to compare them.",
    )
    assert not found.points["change_point"].any()
    assert known(found.points["verdict"]) == ["TOO_FEW_RUNS", "TOO_FEW_RUNS"]


def test_rows_show_a_setting_that_no_profiler_states(store):
    """v2 has allocations."""
    runs(store, "v1", count=4)
    runs(store, "v2", count=3, start=4, memory=[("op00", 512)])
    judge(store)
    (note,) = tracker.history("step", store=store).notes
    assert note.startswith("v2 is compared with no run before it where the settings matter: profile_memory off -> on")


def names(store, key=None, **options):
    return sorted(tracker.history(key, store=store, **options).series["name"])


def test_a_series_is_named_by_name_pattern_or_number(followed):
    assert names(followed, "op0?") == [f"op0{at}" for at in range(10)]
    number = int(tracker.history("op07", store=followed).series["series_id"][0])
    assert names(followed, str(number)) == ["op07"]


def test_the_kinds_of_a_name_differ_in_kinds(store):
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


def test_notes_of_runs_are_those_of_their_version(store):
    """Two runs of v2 with one note, a third one with another; an excluded run says nothing."""
    save(store, "v1")
    numbers = [*save(store, "v2", of_run={"note": "GELU"}), *save(store, "v2", of_run={"note": "GELU"})]
    numbers += [*save(store, "v2", of_run={"note": "again"}), *save(store, "v2", of_run={"note": "wrong node"})]
    edits.exclude_all(store, numbers[-1:], "another node")
    assert known(line(store, "step")["note"]) == [None, "GELU; again"]


def test_out_of_date_versions_have_no_verdict_and_a_note(followed):
    third = tracker.history("op07", store=followed).runs["run_id"].iloc[6]
    edits.exclude_all(followed, [int(third)], "noisy")
    found = tracker.history("op07", store=followed)
    assert found.points["runs"].tolist() == [3, 3, 2, 3]
    assert found.notes == (
        "The judgement of v3, v4 is out of date and left out; tracker versions judge brings it up to date.",
    )
    assert found.points["verdict"].isna().tolist()[2:] == [True, True]
    assert not found.points["change_point"].any()
    judge(followed)
    assert tracker.history("op07", store=followed).notes == ()


def test_top_lists_what_changed_most_since_the_pinned_version(followed):
    """op07 takes 20 % more of the 1 ms that it takes of 40 ms; with its kind, no other kind is listed."""
    with pytest.raises(UsageError, match="no version is pinned"):
        tracker.history(top=3, store=followed)
    pin_version(followed, "v1")
    found = tracker.history(top=3, kind="op_name", store=followed)
    assert found.series["name"].tolist()[0] == "op07"
    assert (len(found.series), found.pinned, {*found.series["kind"]}) == (3, "v1", {"op_name"})
    changed = found.points[found.points["series_id"] == found.series["series_id"][0]]["pinned_change"]
    assert known(changed)[0] is None
    assert changed.iloc[3] == pytest.approx(0.2, abs=0.02)


def measured(store, version, *, idle_ms, peak_mib, start):
    """A run of 10 ms of aten::mm, during which the device works, and of idle time."""
    ms = 1_000_000
    step_ns = (10 + idle_ms) * ms
    save(
        store, version, ops=[("aten::mm", 10 * ms)], kernels=[("gemm", 10 * ms)], steps=3, step_ns=step_ns,
        e2e_ns=step_ns, peak_allocated_bytes=peak_mib * 2**20, started_at_ns=10**18 + start * 10**12,
    )  # fmt: skip


def test_top_has_step_parts_and_memory_beside_operators(store):
    """The step goes from 12 to 15 ms, all of it idle time; the peak from 100 to 160 MiB; aten::mm stays as it was.

    Memory moved by 60 of 160, the step and the idle time by 3 of 15. E2E and the mean step say what the step says.
    """
    measured(store, "v1", idle_ms=2, peak_mib=100, start=0)
    measured(store, "v2", idle_ms=5, peak_mib=160, start=1)
    pin_version(store, "v1")
    top = tracker.history(top=3, store=store).series["name"].tolist()
    assert (top[0], {*top[1:]}) == ("peak memory", {"step", "idle time"})
    everything = tracker.history(top=99, store=store).series
    assert {*everything["name"]} >= {"aten::mm", "compute", "step"}
    assert not {*everything["name"]} & {"e2e", "mean step"}
    assert {*everything["kind"]} == {"run", "op_name"}


def test_a_pattern_has_step_parts_and_memory_above_operators(store):
    """'*' has all names of whole runs first; a pattern that fits none of them has operators alone."""
    measured(store, "v1", idle_ms=2, peak_mib=100, start=0)
    found = tracker.history("*", store=store).series
    assert found["name"].tolist()[-1] == "aten::mm"
    assert {*found["name"]} >= {"step", "compute", "idle time", "peak memory"}
    assert tracker.history("aten::*", store=store).series["kind"].tolist() == ["op_name"]
    assert tracker.history("*", kind="op_name", store=store).series["name"].tolist() == ["aten::mm"]
    assert tracker.history("peak*", store=store).series["name"].tolist() == ["peak memory"]


@pytest.mark.parametrize(
    ("chosen", "versions"),
    [
        ({"last": 2}, ["v3", "v4"]),
        ({"from_version": "v2", "to_version": "v3"}, ["v2", "v3"]),
        ({"to_version": "v3", "last": 1}, ["v3"]),
        ({"last": 9}, ["v1", "v2", "v3", "v4"]),
    ],
)
def test_a_range_of_versions_has_their_points_and_runs(followed, chosen, versions):
    found = tracker.history("op07", store=followed, **chosen)
    assert found.points["version"].tolist() == versions
    assert found.runs["version"].tolist() == [version for version in versions for _ in range(3)]
    # the track is judged as a whole all the same
    if "v3" in versions:
        assert found.points.set_index("version")["verdict"]["v3"] == "REGRESSED"


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        ({"from_version": "v33"}, "there is no version 'v33'; did you mean v3?"),
        ({"from_version": "v3", "to_version": "v2"}, "no version is left; choose a longer range"),
    ],
)
def test_a_range_without_versions_is_an_error(followed, chosen, problem):
    with pytest.raises(UsageError, match=problem):
        tracker.history("op07", store=followed, **chosen)


def test_top_needs_a_version_after_the_pinned_one(followed):
    pin_version(followed, "v4")
    with pytest.raises(UsageError, match="it is the newest one"):
        tracker.history(top=3, store=followed)


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


def test_small_steps_add_up_against_the_pinned_version(store):
    """op07 takes 2.5 % more with each version: no version changed by the 3 % that count, v5 is 10 % above v1."""
    for number in range(1, 6):
        runs(store, f"v{number}", {"op07": 1 + 0.025 * (number - 1)}, start=3 * number)
    with pytest.raises(UsageError, match="no version is pinned; pin one: tracker versions pin LABEL"):
        tracker.history("op07", store=store, against="pinned")
    pin_version(store, "v1")
    points = line(store, "op07", against="pinned")
    assert points["pinned_verdict"].isna().tolist() == [True, False, False, False, False]
    assert points["pinned_verdict"].tolist()[1:] == ["BELOW_LIMIT", "REGRESSED", "REGRESSED", "REGRESSED"]
    assert not points["verdict"].isin(["REGRESSED"]).any()
    assert points["pinned_change"]["v5"] == pytest.approx(0.1, abs=0.01)
    assert line(store, "op08", against="pinned")["pinned_verdict"].tolist()[2:] == ["UNCHANGED"] * 3
    assert line(store, "op07")["pinned_verdict"].isna().all()


def test_a_pinned_version_of_few_runs_judges_nothing(store):
    runs(store, "v1", count=2)
    runs(store, "v2", start=3)
    pin_version(store, "v1")
    found = tracker.history("op07", store=store, against="pinned")
    assert "Not judged against the pinned version: v1 has 2 of 3 runs on NVIDIA H100." in found.notes
    assert found.points["pinned_verdict"].isna().all()


def test_two_versions_together_are_judged_against_the_pinned_one(store):
    """v2 and v3 have one run each, which decides nothing; v4 has 2: with that of v3 and v2 there are 4, 10 % slower."""
    runs(store, "v1")
    for number, count in ((2, 1), (3, 1), (4, 2)):
        runs(store, f"v{number}", {"op07": 1.1}, count=count, start=10 * number)
    pin_version(store, "v1")
    words = line(store, "op07", against="pinned")["pinned_verdict"].tolist()[1:]
    assert words[0] in ("SUSPECT", "TOO_FEW_RUNS") and words[-1] == "REGRESSED"
