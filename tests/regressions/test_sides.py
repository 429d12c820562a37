"""Candidate runs against baseline runs: stored verdicts of neighbours, the same judge for all other sides."""

from __future__ import annotations

import re

import numpy as np
import pytest
from msgspec.structs import astuple

from tests.factories import EPOCH_NS, save
from tests.regressions.made import OPS, runs
from tests.regressions.test_judgement import judge, rows
from tracker.compare import diff, gate_of_diff, show
from tracker.regressions.actions import Word, act
from tracker.regressions.inbox import findings, found_rows
from tracker.regressions.sides import judge_sides, verdicts_of_sides
from tracker.reports import render
from tracker.results.verdicts import EXCUSED
from tracker.schema.series import SeriesKey
from tracker.store import open_store
from tracker.store import runs as edits
from tracker.store.versions import order_versions

SLOW = {"op07": 1.5}
OF_OP = ("op", "device_self_ns", "op07", "", "", "")


def three(store):
    """op07 is slow in v2 and v3; v4 has it as v1."""
    for number, changed in enumerate((None, SLOW, SLOW, None)):
        runs(store, f"v{number + 1}", changed, start=3 * number)
    judge(store)


def verdict(found, key=OF_OP):
    return found.by_series[key].verdict


@pytest.mark.postgres
def test_a_version_and_its_level_have_the_stored_verdicts(store):
    three(store)
    words = []
    for version, own, base in (("v2", (4, 5, 6), range(1, 4)), ("v3", (7, 8, 9), range(1, 7)),
                               ("v4", (10, 11, 12), range(2, 10))):  # fmt: skip
        found = verdicts_of_sides(store, [*base], own)
        assert found.base_runs == tuple(base)
        stored = rows(
            store,
            "SELECT s.kind, s.metric, s.name, s.input_shapes, s.part, s.step_kind, COALESCE(d.decided, "
            "d.verdict), d.change "
            "FROM verdict AS d INNER JOIN series AS s ON d.series_id = s.id INNER JOIN version AS v "
            f"ON d.version_id = v.id WHERE v.label = '{version}'",
        )
        assert {(*key, verdict(found, key), found.by_series[key].change) for key in found.by_series} == {*stored}
        words.append(verdict(found))
    assert words == ["REGRESSED", "UNCHANGED", "IMPROVED"]


def test_neighbours_that_are_no_level_answer_for_themselves(store):
    """The step of v3 is judged against v1 and v2; against v2 alone it is another comparison, with v3's history."""
    three(store)
    found = verdicts_of_sides(store, [4, 5, 6], [7, 8, 9])
    assert (found.base_runs, verdict(found)) == (None, "UNCHANGED")
    assert (found.history.version, found.history.verdict, found.history.base_runs) == (
        "v3",
        "UNCHANGED",
        tuple(range(1, 7)),
    )
    assert verdicts_of_sides(store, [4, 5, 6], [7, 8]).history is None, "no version"


def test_the_level_of_the_step_is_a_baseline_with_stored_verdicts_too(store):
    three(store)
    level = verdicts_of_sides(store, [1, 2, 3, 4, 5, 6], [7, 8, 9])
    assert level.base_runs == (1, 2, 3, 4, 5, 6), "one op of 40 leaves the step as it was"
    assert verdict(level) == "UNCHANGED"


def test_sides_that_are_no_neighbours_are_judged_by_themselves(store):
    three(store)
    for base, new, word in (
        ((1, 2, 3), (7, 8, 9), "REGRESSED"),
        ((7, 8, 9), (1, 2, 3), "IMPROVED"),
        ((1, 2, 3), (10, 11, 12), "UNCHANGED"),
        ((4, 5), (7, 8, 9), "TOO_FEW_RUNS"),
        ((4, 5, 6), (7,), "UNCHANGED"),
        ((1, 2, 3), (7,), "SUSPECT"),
    ):
        found = verdicts_of_sides(store, base, new)
        assert (found.base_runs, verdict(found)) == (None, word)


def test_a_version_is_judged_by_itself_until_its_newest_run_is_judged(store):
    three(store)
    level = range(2, 10)
    runs(store, "v4", count=1, start=20)
    assert verdicts_of_sides(store, level, [10, 11, 12, 13]).base_runs is None
    judge(store)
    assert verdicts_of_sides(store, level, [10, 11, 12, 13]).base_runs is not None
    edits.exclude_all(store, [9], "noisy")
    assert verdicts_of_sides(store, level, [10, 11, 12, 13]).base_runs is None, "the version before is another"


def test_the_order_of_versions_says_what_a_level_is(store):
    three(store)
    workload = rows(store, "SELECT name FROM workload")[0][0]
    order_versions(store, ["v1", "v3", "v2", "v4"], workload=workload)
    judge(store)
    assert verdicts_of_sides(store, [1, 2, 3], [7, 8, 9]).base_runs is not None
    assert verdicts_of_sides(store, [1, 2, 3], [4, 5, 6]).base_runs is None


def test_what_users_accepted_after_the_baseline_fails_no_gate(store):
    """op07 takes five times as long since v2, as intended: v3 against v1 passes, and the row says why."""
    for number, changed in enumerate((None, {"op07": 5.0}, {"op07": 5.0})):
        runs(store, f"v{number + 1}", changed, start=3 * number)
    judge(store)
    assert gate_of_diff(diff(store, "v1", "v3")).code == 1
    ids = [row.finding_id for row in found_rows(store)]
    act(store, Word("expect", "ann", 2 * 10**18, "float64"), finding_ids=ids)
    found = diff(store, "v1", "v3")
    assert gate_of_diff(found).code == 0
    assert found.ops.set_index("name").loc["op07", "reason"] == EXCUSED
    assert gate_of_diff(diff(store, "v2", "v3")).code == 0


def test_what_users_said_follows_a_version_to_its_new_label(store):
    """All runs of v2 become v2b: the regression is one of v2b, and is accepted still."""
    runs(store, "v1")
    moved = runs(store, "v2", {"op07": 5.0}, start=3)
    judge(store)
    ids = [row.finding_id for row in found_rows(store)]
    act(store, Word("expect", "ann", 2 * 10**18, "float64"), finding_ids=ids)
    edits.edit_all(store, moved[:1], version="v2b")
    edits.edit_all(store, moved[1:], version="v2b")
    judge(store)
    open_rows = [row for row in found_rows(store) if row.base_state == "open"]
    assert {(row.version, row.state) for row in open_rows} == {("v2b", "expected")}
    found = diff(store, "v1", "v2b")
    assert gate_of_diff(found).code == 0
    assert "ann accepted I-" in " ".join(found.explanation.remarks)


def test_the_order_in_which_series_came_does_not_matter(tmp_path):
    """In the second database the ops of v2 come first, so that their series have other numbers."""
    found = []
    for name, order in (("one", ("v1", "v2")), ("other", ("v2", "v1"))):
        store = open_store(str(tmp_path / f"{name}.db"))
        ids = {}
        for version in order:
            is_new = version == "v2"
            ids[version] = runs(store, version, {**SLOW, "gelu": 2_000_000} if is_new else None, start=3 * is_new)
        result = judge_sides(store, ids["v1"], ids["v2"], store)
        found.append(dict(result.by_series))
    one, other = found
    assert one.keys() == other.keys()
    for key, row in one.items():
        assert row.verdict == other[key].verdict
        _, _, *numbers = astuple(row)
        _, _, *numbers_of_other = astuple(other[key])
        np.testing.assert_allclose(numbers, numbers_of_other)


def test_runs_recorded_with_other_settings_have_no_verdict_of_the_step(store):
    """With stacks the host is slower: the step has no verdict, times on the device have one."""
    runs(store, "v1")
    runs(store, "v2", SLOW, start=3, settings={"with_stack": "on"})
    found = verdicts_of_sides(store, [1, 2, 3], [4, 5, 6])
    step = next(key for key in found.by_series if key[2] == "step")
    assert (found.by_series[step].verdict, found.by_series[step].reason) == (None, "SETTINGS")
    assert verdict(found) == "REGRESSED"
    assert found.gates["new"].cause == "net of the operators", "not the step"


def test_findings_without_a_step_before_have_no_sum(memory_store):
    """No older run is recorded like v2: its step has nothing to change from, op07 on the device has."""
    runs(memory_store, "v1")
    runs(memory_store, "v2", SLOW, start=3, settings={"with_stack": "on"})
    judge(memory_store)
    found = findings(memory_store)
    (one,) = found.tables["incidents"].records()
    assert [one[name] for name in ("baseline_step_ns", "step_delta_ns", "machine_ns")] == [None] * 3
    assert "REGRESSED in v2" in str(render(found))


def test_two_databases_are_judged_as_one(tmp_path):
    stores = [open_store(str(tmp_path / f"{name}.db")) for name in ("one", "other")]
    runs(stores[0], "v1")
    runs(stores[1], "v1", SLOW, start=3)
    found = verdicts_of_sides(stores[0], [1, 2, 3], [1, 2, 3], candidate_store=stores[1])
    assert (found.base_runs, verdict(found)) == (None, "REGRESSED")
    unchanged = [key for key in found.by_series if key[0] == "op" and found.by_series[key].verdict == "UNCHANGED"]
    assert len(unchanged) == OPS - 1


def test_rows_say_what_an_older_finding_left(store):
    """v3 is as v2: op07 is as before, and half again above v1."""
    three(store)
    found = diff(store, "v2", "v3")
    (row,) = found.ops[found.ops["name"] == "op07"].to_dict("records")
    assert row["verdict"] == "UNCHANGED"
    assert row["reason"].startswith("still 49.") or row["reason"].startswith("still 50.")
    assert row["reason"].endswith(" % above v1 (I-1, open since v2)")
    assert "still" not in str(diff(store, "v3", "v4").ops["reason"].tolist()), "v4 has recovered"


def test_a_run_says_what_is_still_slower_than_before_an_older_finding(store):
    for number, changed in enumerate((None, SLOW, SLOW)):
        runs(store, f"v{number + 1}", changed, start=3 * number)
    judge(store)
    first, third = (show(store, f"run:{run}").notes for run in (1, 7))
    assert third[0].startswith("op07 still "), "names of operators keep their letters"
    assert third[0].endswith("above v1 (I-1, open since v2); tracker findings has all that is open.")
    runs(store, "v4", start=9)
    judge(store)
    assert not any("I-1" in note for note in (*first, *show(store, "run:7").notes)), "v4 has recovered"


def test_a_step_that_a_faster_machine_hid_says_so(store):
    """40 ops of 1 ms take 0.87, and conv of 5.8 ms is new: 40 -> 40.6 ms."""
    runs(store, "v1")
    runs(store, "v2", {"conv": 5_800_000}, start=3, shared=0.87)
    judge(store)
    found = diff(store, "v1", "v2")
    assert found.explanation.verdict == "REGRESSED"
    words = " ".join(found.explanation.remarks)
    assert re.search(r"16\.\d % slower on an equally fast machine \(measured \+1\.\d %, the machine was 1[23]", words)
    assert "2 % slower than v1" not in found.explanation.headline
    assert "an equally fast machine" in found.overall.set_index("metric").loc["step_ns", "reason"]


def test_named_sides_know_what_their_track_knows(store):
    """One run of v1 has op07 at 1.5 ms, and so have all of v4: against v3 it is no regression, but a jump."""
    runs(store, "v1", SLOW, count=1)
    runs(store, "v1", start=1, count=2)
    for number, changed in ((2, None), (3, None), (4, SLOW)):
        runs(store, f"v{number}", changed, start=3 * number)
    judge(store)
    found = verdicts_of_sides(store, [7, 8, 9], [10, 11, 12])
    assert (found.base_runs, verdict(found), found.by_series[OF_OP].reason) == (None, "INCONCLUSIVE", "OVERLAP")
    reverse = verdicts_of_sides(store, [10, 11, 12], [7, 8, 9])
    assert verdict(reverse) == "INCONCLUSIVE"
    assert found.by_series.keys() == reverse.by_series.keys(), "of series of both sides alone"


def test_printed_drift_is_that_between_the_sides(store):
    """The machine is 10 % slower in v2 and v3: of v3 against v2 nothing is drift, and of v2 all of it."""
    for number, shared in enumerate((1.0, 1.1, 1.1)):
        runs(store, f"v{number + 1}", start=3 * number, shared=shared)
    judge(store)
    for base, new, shift in (((1, 2, 3), (4, 5, 6), 0.10), ((4, 5, 6), (7, 8, 9), 0.0), ((7, 8, 9), (1, 2, 3), -0.09)):
        assert verdicts_of_sides(store, base, new).shift == pytest.approx(shift, abs=0.006)
    [level] = rows(store, "SELECT j.base_runs FROM judged_version AS j JOIN version AS v ON v.id = j.version_id "
                          "WHERE v.label = 'v2'")  # fmt: skip
    assert verdicts_of_sides(store, [*map(int, level[0].split())], [4, 5, 6]).base_runs is not None


@pytest.mark.parametrize(("minutes", "host"), [(5, "node1"), (5, ""), (60, "node1")])
def test_sides_of_one_session_have_no_night_between_them(store, minutes, host):
    """Runs by turns, so many minutes apart: of one session where their host is known, and all began within an hour."""
    for number in range(6):
        version, slower = (("v1", 1.0), ("v2", 1.05))[number % 2]
        times = [("mm", int(1_000_000 * slower * (1 + 0.01 * (number // 2)))), ("add", 900_000)]
        start = EPOCH_NS + number * minutes * 60 * 10**9
        save(store, version, ops=times, steps=3, step_ns=2_000_000, host=host, started_at_ns=start)
    found = verdicts_of_sides(store, [1, 3, 5], [2, 4, 6])
    q = found.by_series[SeriesKey("op_name", "device_self_ns", "mm")].q
    is_session = minutes == 5 and host == "node1"
    # t falls by the root of (2/3 + .3) / (2/3) where a night lies between them
    assert (q < 0.005) == is_session
