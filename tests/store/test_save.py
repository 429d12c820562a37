"""Saving: idempotent, whole or not at all, and ranks find their run."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from tests.conftest import count_rows
from tests.factories import EPOCH_NS, H100, capture, record, save, table
from tracker.errors import UsageError
from tracker.profile import CPU, RANK_BY_ORDER, RANK_SETTING, Breakdown, Device, Source
from tracker.store import SavedRun, captures, queries, save_run, save_runs
from tracker.store import runs as edits

FORMATS = ["torch_profiler"]
CREATED, JOINED, ALREADY = (True, False, False), (False, True, False), (False, False, True)


def how(saved: SavedRun) -> tuple[bool, bool, bool]:
    return saved.created, saved.joined, saved.already


def test_the_same_file_again_changes_nothing_and_names_the_run(store):
    first = save_run(store, record(), [capture(digest=b"a" * 16)], formats=FORMATS)
    before = count_rows(store)
    again = save_run(store, record(note="other"), [capture(digest=b"a" * 16, path="/copy")], formats=FORMATS)
    assert (how(first), how(again)) == (CREATED, ALREADY)
    assert again.run_id == first.run_id
    assert count_rows(store) == before


def test_the_same_file_under_another_label_prints_the_command_to_relabel(store):
    save_run(store, record("v1"), [capture(digest=b"a" * 16)], formats=FORMATS)
    before = count_rows(store)
    with pytest.raises(UsageError) as error:
        save_run(store, record("v 2", "bert"), [capture(digest=b"a" * 16, path="/b.json")], formats=FORMATS)
    assert str(error.value) == (
        "/b.json is already in as run 1, version 'v1' of workload 'gpt'; "
        "to relabel it: tracker runs edit 1 --version 'v 2' --workload bert"
    )
    assert count_rows(store) == before


def test_a_file_of_an_excluded_run_is_in_already(store):
    save_run(store, record(), [capture(digest=b"a" * 16)], formats=FORMATS)
    edits.exclude_all(store, [1], "noisy")
    assert save_run(store, record(), [capture(digest=b"a" * 16)], formats=FORMATS).already


def test_a_file_of_a_deleted_run_prints_the_command_to_restore(store):
    save_run(store, record(), [capture(digest=b"a" * 16)], formats=FORMATS)
    edits.delete_all(store, [1], "wrong machine")
    with pytest.raises(UsageError) as error:
        save_run(store, record(), [capture(digest=b"a" * 16, path="/b.json")], formats=FORMATS)
    assert str(error.value) == (
        "/b.json is in as run 1, which was deleted (wrong machine); to take it back: tracker runs restore 1"
    )


def test_a_late_rank_joins_its_run(store):
    first = save_run(store, record(), [capture(0, world_size=2, steps=2)], formats=FORMATS)
    late = capture(1, world_size=2, started_at_ns=EPOCH_NS + 500, ended_at_ns=EPOCH_NS + 9000)
    joined = save_run(store, record(tags={"image": "a"}), [late], formats=FORMATS)
    assert (joined.run_id, how(joined)) == (first.run_id, JOINED)
    frame = queries.runs(store).frame
    assert frame[["ranks", "ranks_expected", "tags"]].values.tolist() == [[2, 2, "image=a"]]
    third = capture(2, world_size=2, started_at_ns=EPOCH_NS + 8000)
    assert save_run(store, record(), [third], formats=FORMATS).run_id == first.run_id, "the window has grown"


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_what_ranks_say_of_the_environment_is_the_same_in_whatever_order_they_come(store, order):
    said = {0: {"groups": "dp 4", "host_os": "a"}, 1: {"groups": "dp 2"}, 2: {"groups": "dp 4", "cann": "8.3"}}
    for rank in order:
        (known,) = {save_run(store, record(facts=said[rank]), [capture(rank, world_size=3)], formats=FORMATS).run_id}
    frame = queries.facts(store, [known]).frame
    assert dict(zip(frame["key"], frame["value"], strict=True)) == {
        "cann": "8.3", "groups": "dp 2 | dp 4", "host_os": "a"
    }  # fmt: skip


LATE = {"started_at_ns": EPOCH_NS + 10**9}


@pytest.mark.parametrize(
    ("of_record", "of_capture"),
    [
        ({"version": "v2"}, {}),
        ({"workload": "bert"}, {}),
        ({"configuration": {"batch": "1"}}, {}),
        ({"device": CPU}, {"device": CPU}),
        ({}, {"world_size": 4}),
        ({}, {"world_size": None}),
        ({}, {"rank": 0}),
        ({}, LATE),
        ({}, {"started_at_ns": None}),
    ],
    ids=["version", "workload", "configuration", "device", "world", "no world", "same rank", "window", "no window"],
)
def test_a_capture_that_differs_is_a_run_of_its_own(store, of_record, of_capture):
    save_run(store, record(), [capture(0, world_size=2)], formats=FORMATS)
    made = capture(**{"rank": 1, "world_size": 2, **of_capture})
    assert how(save_run(store, record(**of_record), [made], formats=FORMATS)) == CREATED


def test_a_late_rank_joins_the_run_that_it_overlaps_most(store):
    for start in (0, 1000):
        window = {"started_at_ns": EPOCH_NS + start, "ended_at_ns": EPOCH_NS + start + 1000}
        save_run(store, record(), [capture(0, world_size=2, **window)], formats=FORMATS)
    late = capture(1, world_size=2, started_at_ns=EPOCH_NS + 900, ended_at_ns=EPOCH_NS + 1900)
    assert save_run(store, record(), [late], formats=FORMATS).run_id == 2


def test_a_deleted_run_takes_no_late_rank(store):
    save_run(store, record(), [capture(0, world_size=2)], formats=FORMATS)
    edits.delete_all(store, [1], "wrong")
    assert save_run(store, record(), [capture(1, world_size=2)], formats=FORMATS).created


def test_known_and_new_ranks_in_one_call_become_one_run(store):
    old, new = capture(0, digest=b"a" * 16, started_at_ns=None), capture(1, started_at_ns=None)
    save_run(store, record(), [old], formats=FORMATS)
    assert save_run(store, record(), [old, new], formats=FORMATS) == SavedRun(1, False, True, False, H100, (0, 1))
    assert queries.captures(store, [1]).frame["rank"].tolist() == [0, 1]


def test_two_devices_of_one_file_are_two_ranks_of_one_source(store):
    both = [capture(rank, digest=b"a" * 16, path="both.json") for rank in (1, 0)]
    save_run(store, record(), both, formats=FORMATS)
    assert queries.sources(store, [1]).frame[["rank", "path"]].values.tolist() == [[0, "both.json"]]
    assert save_run(store, record(), both, formats=FORMATS).already


def test_a_capture_of_which_one_file_changed_is_refused(store):
    old = capture(digest=b"a" * 16, path="kernels.csv")
    save_run(store, record(), [old], formats=FORMATS)
    changed = replace(old, sources=(*old.sources, Source("ops.csv", 1, b"b" * 16)))
    with pytest.raises(
        UsageError, match=r"ops.csv is new, but kernels.csv of the same capture is in as run 1; to replace"
    ):
        save_run(store, record(), [changed], formats=FORMATS)


def test_ranks_on_different_devices_are_no_run(store):
    with pytest.raises(UsageError, match="different devices: NVIDIA H100, cpu"):
        save_run(store, record(), [capture(0), capture(1, device=CPU)], formats=FORMATS)
    assert count_rows(store) == {}


def test_several_runs_are_saved_in_one_transaction_or_none(store):
    good = (record(), [capture()], FORMATS)
    bad = (record("v2"), [capture(0), capture(1, device=CPU)], FORMATS)
    with pytest.raises(UsageError):
        save_runs(store, [good, bad])
    assert count_rows(store) == {}
    assert [saved.run_id for saved in save_runs(store, [good, (record("v2"), [capture()], FORMATS)])][1:] != [1]


def test_the_same_file_twice_in_one_call_is_one_run(store):
    twin = [(record(), [capture(digest=b"a" * 16)], FORMATS) for _ in range(2)]
    assert [how(saved) for saved in save_runs(store, twin)] == [CREATED, ALREADY]


def test_two_jobs_of_one_call_that_overlap_are_two_runs(store):
    jobs = [(record(), [capture(rank, world_size=2) for rank in (0, 1)], FORMATS) for _ in range(2)]
    saved = save_runs(store, jobs)
    assert [how(one) for one in saved] == [CREATED, CREATED]
    assert queries.runs(store).frame["ranks"].tolist() == [2, 2]
    late = [(record(), [capture(rank, world_size=3)], FORMATS) for rank in (0, 1, 1)]
    assert [how(one) for one in save_runs(store, late)] == [CREATED, JOINED, CREATED], "as in three calls"


def test_a_save_tells_what_the_run_holds_now(store):
    files = [capture(rank, world_size=2, digest=bytes([rank]) * 16) for rank in (0, 1)]
    first = save_run(store, record(), files[:1], formats=FORMATS)
    assert (first.device, first.ranks) == (H100, (0,))
    assert save_run(store, record(), files[1:], formats=FORMATS).ranks == (0, 1)
    edits.edit_all(store, [1], device=Device("AMD", "MI300X"))
    again = save_run(store, record(), files[:1], formats=FORMATS)
    assert (how(again), again.device, again.ranks) == (ALREADY, Device("AMD", "MI300X"), (0, 1))


def test_an_exception_halfway_leaves_nothing(store, monkeypatch):
    real = captures.bulk.load

    def fail_at_the_end(connection, table, columns):
        real(connection, table, columns)
        if table == "api":
            raise KeyboardInterrupt

    monkeypatch.setattr(captures.bulk, "load", fail_at_the_end)
    with pytest.raises(KeyboardInterrupt):
        save(store, api=[("cudaLaunchKernel", 1)])
    assert count_rows(store) == {}
    monkeypatch.undo()
    save(store, api=[("cudaLaunchKernel", 1)])
    assert count_rows(store)["api"] == 1


def test_all_fields_of_a_breakdown_and_a_capture_come_back(store):
    numbers = {name: at for at, name in enumerate(Breakdown.__struct_fields__)}
    whole = Breakdown(**{**numbers, "timeline": "host", "samples_per_second": 2.5})
    made = capture(3, started_at_ns=5, ended_at_ns=9)
    made = replace(made, rows=replace(made.rows, overall=whole), quality="partial", quality_reason="cut")
    made = replace(made, parallel={"stage": 1, "dp": 2, "tp": 3, "pp": 4, "ep": 5, "cp": 6}, device_ordinal=7)
    save_run(store, record(), [made], formats=FORMATS)
    row = queries.captures(store, [1]).frame.iloc[0].to_dict()
    assert {name: row[name] for name in numbers} == {**numbers, "timeline": "host", "samples_per_second": 2.5}
    assert [row[name] for name in ("rank", "stage", "device_ordinal", "quality", "quality_reason")] == [
        3,
        1,
        7,
        "partial",
        "cut",
    ]


def test_dimensions_are_stored_once(store):
    save(store, runs=3, steps=2, ops=[("aten::mm", 1, {"call_stack": "a.py(1)"})])
    found = count_rows(store)
    assert [found[name] for name in ("op_key", "kernel_key", "call_stack", "device", "configuration", "version")] == [
        1
    ] * 6


def test_texts_that_no_database_can_hold_are_written_out(store):
    odd = "a\0b\ud800ü"
    save(store, ops=[(odd, 1, {"call_stack": odd})], kernels=[(odd, 1)], api=[(odd, 1)], host=odd, path=odd)
    assert queries.ops(store, [1]).frame["name"].tolist() == ["a\\x00b\\ud800ü"]
    assert queries.sources(store, [1]).frame["path"].tolist() == ["a\\x00b\\ud800ü"]


def test_very_long_names_are_kept_whole(store):
    long = "k" * 100_000
    save(
        store, ops=[(long, 1)], kernels=[(long, 2)], api=[(long, 3)], communication=[(long, 4, {"tasks": [(long, 5)]})]
    )
    for question in ("ops", "kernels", "api", "communication_tasks"):
        assert queries.__dict__[question](store, [1])["name"].tolist() == [long]
    assert queries.communication(store, [1]).frame["kind"].tolist() == [long]


@pytest.mark.slow
def test_many_rows_go_in_whole(store):
    count = 12_345
    made = capture(ops=[("aten::mm", 1)])
    tables = dict(made.rows.tables)
    tables["op_key"] = table("op_key", [{"name": f"op{number}"} for number in range(count)])
    tables["op"] = table("op", [{"op_key": at, "calls": at} for at in reversed(range(count))])
    save_run(store, record(), [replace(made, rows=replace(made.rows, tables=tables))], formats=FORMATS)
    frame = queries.ops(store, [1]).frame
    assert len(frame) == count
    assert dict(zip(frame["name"], frame["calls"], strict=True)) == {f"op{number}": number for number in range(count)}


def test_a_capture_without_a_rank_is_rank_0(store):
    save_run(store, record(), [capture(None)], formats=FORMATS)
    assert queries.captures(store, [1]).frame["rank"].tolist() == [0]


def test_two_captures_of_one_rank_are_a_mistake_of_the_caller(store):
    with pytest.raises(ValueError, match="distinct ranks"):
        save_run(store, record(), [capture(1), capture(1)], formats=FORMATS)


def test_arrays_of_32_bits_are_stored_as_well(store):
    made = capture(ops=[("aten::mm", 7)])
    op = {name: np.asarray(v, np.int32) if name == "op_key" else v for name, v in made.rows.tables["op"].items()}
    made = replace(made, rows=replace(made.rows, tables={**made.rows.tables, "op": op}))
    save_run(store, record(device=H100), [made], formats=FORMATS)
    assert queries.ops(store, [1]).frame["device_self_ns"].tolist() == [7]


def test_ranks_of_a_job_of_unknown_size_join_where_both_are_expected_to_be_as_many(store):
    expected = record(ranks_expected=2)
    first = save_run(store, expected, [capture(0)], formats=FORMATS)
    again = save_run(store, expected, [capture(0)], formats=FORMATS)
    assert (how(again), again.run_id) == (CREATED, 2), "one rank twice is two runs"
    joined = save_run(store, expected, [capture(1)], formats=FORMATS)
    assert (how(joined), joined.run_id, joined.ranks) == (JOINED, first.run_id, (0, 1))
    assert how(save_run(store, expected, [capture(2)], formats=FORMATS)) == JOINED, "run 2 still lacks one"
    assert how(save_run(store, expected, [capture(3)], formats=FORMATS)) == CREATED, "both have all of their ranks"


@pytest.mark.parametrize(("of_record", "of_capture"), [({"ranks_expected": 3}, {}), ({"ranks_expected": 2}, LATE)])
def test_ranks_of_a_job_of_unknown_size_are_runs_of_their_own_otherwise(store, of_record, of_capture):
    save_run(store, record(ranks_expected=2), [capture(0)], formats=FORMATS)
    made = capture(**{"rank": 1, "path": "other.pt.trace.json", **of_capture})
    saved = save_run(store, record(**of_record), [made], formats=FORMATS)
    assert (how(saved), saved.beside) == (CREATED, None if of_capture else 1)


@pytest.mark.parametrize("other", ["job/TP-1.json", "elsewhere/TP-1.json", "job/b1.json"])
def test_ranks_that_their_sources_state_join(store, other):
    first = save_run(store, record(), [capture(0, path="job/TP-0.json")], formats=FORMATS)
    joined = save_run(store, record(), [capture(1, path=other)], formats=FORMATS)
    assert (how(joined), joined.run_id, joined.ranks) == (JOINED, first.run_id, (0, 1))


NUMBERED = {RANK_SETTING: RANK_BY_ORDER}


@pytest.mark.parametrize("name", ["trace_1.json", "trace_0.json"])
def test_files_that_name_no_rank_and_ran_at_once_are_refused(store, name):
    save_run(store, record(), [capture(0, path="job/trace_3.json", settings=NUMBERED)], formats=FORMATS)
    with pytest.raises(UsageError, match=r"names no rank, and differs from it in numbers .* one call, with --as-run"):
        save_run(store, record(), [capture(0, path=f"job/{name}", settings=NUMBERED)], formats=FORMATS)


def test_file_of_another_folder_at_the_same_time_is_beside(store):
    save_run(store, record(), [capture(0, path="a/trace.json", settings=NUMBERED)], formats=FORMATS)
    other = save_run(store, record(), [capture(0, path="b/trace.json", settings=NUMBERED)], formats=FORMATS)
    assert (how(other), other.beside) == (CREATED, 1)


def test_repeats_by_name_are_runs_of_their_own(store):
    save_run(store, record(), [capture(0, path="job/run0.json", settings=NUMBERED)], formats=FORMATS)
    other = save_run(store, record(), [capture(0, path="job/run1.json", settings=NUMBERED)], formats=FORMATS)
    assert (how(other), other.beside) == (CREATED, None)


def test_capture_in_another_file_is_already_in(store):
    same = {"identity": b"x" * 32}
    first = save_run(store, record(), [replace(capture(0), **same)], formats=FORMATS)
    again = save_run(store, record(), [replace(capture(0, path="again.json"), **same)], formats=FORMATS)
    assert (how(again), again.run_id) == (ALREADY, first.run_id)
    with pytest.raises(UsageError, match=r"already in as run 1, version 'v1'"):
        save_run(store, record("v2"), [replace(capture(0), **same)], formats=FORMATS)


def test_a_run_of_a_job_of_known_size_is_beside_none(store):
    save_run(store, record(), [capture(0, world_size=4)], formats=FORMATS)
    assert save_run(store, record(), [capture(1, world_size=8)], formats=FORMATS).beside is None
