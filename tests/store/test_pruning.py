"""Old runs lose their details; what the judgement rests on stays, and the same profile brings the details back."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.conftest import count_rows
from tests.factories import EPOCH_NS, capture, record, save
from tests.regressions import made
from tracker.compare import diff, show
from tracker.errors import UsageError
from tracker.profile import Device
from tracker.regressions import judgement
from tracker.store import pruning, queries, save_run
from tracker.store import runs as edits
from tracker.store.pruning import Policy
from tracker.store.versions import pin_version

DAY_NS = 86_400 * 10**9
NOW_NS = EPOCH_NS + 100 * DAY_NS
OPS = [("aten::mm", 900), ("aten::add", 100)]
FORMATS = ["torch_profiler"]


def aged(store, version, days, **more):
    """A run of `version` that started so many days before NOW_NS."""
    start = NOW_NS - days * DAY_NS
    return save(store, version, started_at_ns=start, of_run={"started_at_ns": start}, ops=OPS, **more)[0]


def taken(store, *, older_than=30, keep_versions=0, **more):
    policy = Policy(NOW_NS - older_than * DAY_NS, keep_versions, **more)
    return [run.run_id for run in pruning.prunable(store, policy)]


def test_old_runs_go_but_for_the_newest_versions_and_the_pinned_one(store):
    old, older, newest = aged(store, "v1", 60), aged(store, "v2", 90), aged(store, "v3", 40)
    young = aged(store, "v3", 10)
    assert taken(store) == [older, old, newest], "the oldest first"
    assert taken(store, keep_versions=1) == [older, old]
    assert taken(store, keep_versions=2) == [old]
    assert taken(store, older_than=95) == []
    assert taken(store, workload="another") == []
    pin_version(store, "v2")
    assert taken(store) == [old, newest]
    assert young not in taken(store)


def test_a_run_without_a_clock_stays(store):
    save(store, started_at_ns=None, of_run={"started_at_ns": None}, ops=OPS)
    assert taken(store) == []


def test_samples_steps_and_totals_stay_details_go(store):
    run_id = aged(store, "v1", 60)
    kept = aged(store, "v2", 1)
    before, samples = count_rows(store), queries.samples(store, [run_id]).frame
    overall = queries.captures(store, [run_id]).frame
    gone = pruning.prune(store, run_id, now_ns=NOW_NS)
    after = count_rows(store)
    lost = {name: before[name] - after.get(name, 0) for name in before if before[name] != after.get(name, 0)}
    assert set(lost) <= set(pruning.DETAIL_TABLES) - {"step"}
    assert lost["op"] == 2
    assert sum(lost.values()) == gone
    pd.testing.assert_frame_equal(queries.samples(store, [run_id]).frame, samples)
    pd.testing.assert_frame_equal(queries.captures(store, [run_id]).frame, overall)
    assert queries.pruned(store, [run_id, kept]) == {run_id: NOW_NS}
    assert pruning.prune(store, run_id, now_ns=NOW_NS + 1) == 0
    assert queries.pruned(store, [run_id]) == {run_id: NOW_NS}, "it was dropped then"
    assert taken(store) == []


def test_the_same_profile_brings_the_details_back(store):
    own = capture(digest=b"a" * 16, ops=OPS, started_at_ns=NOW_NS - 60 * DAY_NS)
    run_id = save_run(store, record(), [own], formats=FORMATS).run_id
    before, ops = count_rows(store), queries.ops(store, [run_id]).frame
    pruning.prune(store, run_id, now_ns=NOW_NS)
    saved = save_run(store, record(), [own], formats=FORMATS)
    assert (saved.run_id, saved.restored, saved.created, saved.already) == (run_id, True, False, False)
    assert count_rows(store) == before
    pd.testing.assert_frame_equal(queries.ops(store, [run_id]).frame, ops)
    assert save_run(store, record(), [own], formats=FORMATS).already, "and the third time changes nothing"


def test_of_two_ranks_one_comes_back_and_then_the_other(store):
    two = [capture(rank, world_size=2, digest=bytes([rank]) * 16, ops=OPS) for rank in (0, 1)]
    run_id = save_run(store, record(), two, formats=FORMATS).run_id
    samples = queries.samples(store, [run_id]).frame
    pruning.prune(store, run_id, now_ns=NOW_NS)
    assert save_run(store, record(), two[:1], formats=FORMATS).restored
    pd.testing.assert_frame_equal(queries.samples(store, [run_id]).frame, samples)
    assert queries.pruned(store, [run_id]) == {run_id: NOW_NS}, "rank 1 is still bare"
    assert save_run(store, record(), two[1:], formats=FORMATS).restored
    assert queries.pruned(store, [run_id]) == {}
    pd.testing.assert_frame_equal(queries.samples(store, [run_id]).frame, samples)


def test_a_late_rank_does_not_speak_for_those_without_details(store):
    first, late = (capture(rank, world_size=2, digest=bytes([rank]) * 16, ops=OPS) for rank in (0, 1))
    run_id = save_run(store, record(), [first], formats=FORMATS).run_id
    pruning.prune(store, run_id, now_ns=NOW_NS)
    with pytest.raises(
        UsageError, match=r"is a rank of run 1, whose details were dropped .* ingest the profiles of its"
    ):
        save_run(store, record(), [late], formats=FORMATS)
    saved = save_run(store, record(), [first, late], formats=FORMATS)
    assert (saved.run_id, saved.ranks) == (run_id, (0, 1))
    assert queries.pruned(store, [run_id]) == {}


def test_a_relabelled_run_takes_its_samples_along(store):
    run_id = aged(store, "v1", 60)
    values = queries.samples(store, [run_id]).frame["per_step"].tolist()
    pruning.prune(store, run_id, now_ns=NOW_NS)
    edits.edit_all(store, [run_id], device=Device("AMD", "MI300X"), workload="bert")
    (line,) = queries.tracks(store).frame.to_dict("records")
    assert line["workload"] == "bert"
    assert queries.samples(store, [run_id]).frame["per_step"].tolist() == values
    with store.connect() as connection:
        lines = {tuple(row) for row in connection.exec_driver_sql(
            "SELECT w.name, d.model FROM sample m JOIN series s ON m.series_id = s.id JOIN workload w "
            "ON s.workload_id = w.id JOIN device d ON s.device_id = d.id"
        )}  # fmt: skip
    assert lines == {("bert", "MI300X")}


def test_a_run_that_came_into_use_since_it_was_chosen_keeps_its_details(store):
    """Between the choice and its turn somebody pinned the version of one, and the rest of a list is pruned."""
    first, second = aged(store, "v1", 60), aged(store, "v2", 50)
    policy = Policy(NOW_NS - 30 * DAY_NS, 0)
    chosen = [run.run_id for run in pruning.prunable(store, policy)]
    assert chosen == [first, second]
    pin_version(store, "v2")
    assert [pruning.prune(store, run_id, policy, now_ns=NOW_NS) is None for run_id in chosen] == [False, True]
    assert queries.pruned(store, chosen) == {first: NOW_NS}
    assert pruning.prune(store, first, policy, now_ns=NOW_NS) is None, "another one was faster"


def test_a_run_that_a_finding_rests_on_since_it_was_chosen_keeps_its_details(store, monkeypatch):
    run_id = aged(store, "v1", 60)
    policy = Policy(NOW_NS - 30 * DAY_NS, 0)
    monkeypatch.setattr(pruning, "_used", lambda connection: {run_id})
    assert pruning.prune(store, run_id, policy, now_ns=NOW_NS) is None
    assert queries.pruned(store, [run_id]) == {}


def test_a_diff_leaves_runs_without_details_out_and_says_so(store):
    bare, whole = aged(store, "v1", 60), aged(store, "v1", 50)
    aged(store, "v2", 1)
    pruning.prune(store, bare, now_ns=NOW_NS)
    found = diff(store, "v1", "v2")
    assert found.baseline.run_ids == (whole,)
    assert any(f"only totals are left of run:{bare} (tracker prune)" in note for note in found.notes)
    pruning.prune(store, whole, now_ns=NOW_NS)
    with pytest.raises(UsageError, match=rf"only totals are left of run:{bare}, run:{whole}"):
        diff(store, "v1", "v2")


def test_show_says_what_is_left(store):
    run_id = aged(store, "v1", 60)
    pruning.prune(store, run_id, now_ns=NOW_NS)
    shown = show(store, f"run:{run_id}")
    assert len(shown.overall) == 1
    assert shown.ops.empty
    assert any("only totals are left" in note for note in shown.notes)


def test_room_is_given_back_when_asked(tmp_path):
    from tracker.store import open_store

    path = tmp_path / "t.db"
    with open_store(str(path)) as store:
        many = [(f"op{number}", 1000 + number) for number in range(3000)]
        run_id = save(store, ops=many)[0]
        pruning.prune(store, run_id, now_ns=NOW_NS)
        pruning.compact(store)
        assert len(queries.samples(store, [run_id]).frame) > 3000
        with store.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA freelist_count").scalar_one() == 0


@pytest.mark.postgres
def test_the_runs_that_an_open_finding_rests_on_stay_until_it_recovers(store):
    before = made.runs(store, "v1", workload="made")
    after = made.runs(store, "v2", {"op07": 1.5}, start=3, workload="made")
    lines = judgement.tracks_of(store)
    assert judgement.update(store, lines) == 2
    assert taken(store, workload="made") == []
    made.runs(store, "v3", start=6, workload="made")
    judgement.update(store, lines)
    assert set(taken(store, workload="made")) >= {*before, *after}, "op07 is back"
