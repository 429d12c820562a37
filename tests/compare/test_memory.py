"""Memory of two sides: owners with their helpers, by helper against old runs, the peak and single blocks."""

from __future__ import annotations

import math

from sqlalchemy import text

from tests.factories import EPOCH_NS, save
from tracker.compare import diff, show
from tracker.profile import BEFORE_CAPTURE, MAX_BLOCKS
from tracker.store import Store, queries
from tracker.store.samples import refresh

SHAPES = "[[2,3]]"
KEY = {"input_shapes": SHAPES}


def rows(frame, *columns):
    """The rows as tuples, None for missing."""
    values = frame[list(columns)].astype(object).where(frame[list(columns)].notna(), None)
    return list(values.itertuples(index=False, name=None))


def old(store: Store, version: str, **of_rows) -> list[int]:
    """A run as an older tracker stored it: memory by the helper, without owners."""
    (run_id,) = run_ids = save(store, version, **of_rows)
    with store.begin() as connection:
        connection.execute(text("UPDATE capture SET settings = '{}' WHERE run_id = :id"), {"id": run_id})
        connection.execute(text("DELETE FROM memory_allocator WHERE run_id = :id"), {"id": run_id})
    return run_ids


def test_an_op_has_its_allocators_beside_it(store):
    save(
        store,
        "v1",
        memory=[("aten::mm", 300, KEY), ("aten::mm", 100, {**KEY, "component": "cpu", "allocator": "aten::mm"})],
    )
    save(store, "v2", memory=[("aten::mm", 500, KEY)])
    found = diff(store, "v1", "v2")
    assert rows(found.memory, "name", "baseline_bytes", "candidate_bytes", "allocator", "more_allocators") == [
        ("aten::mm", 400, 500, "aten::empty", 1)
    ]
    assert rows(found.memory_details, "component", "allocator", "baseline_bytes", "candidate_bytes") == [
        ("device", "aten::empty", 300, 500), ("cpu", "aten::mm", 100, None)
    ]  # fmt: skip
    shown = show(store, "v1").memory
    assert sorted(rows(shown, "component", "allocator", "more_allocators")) == [
        ("cpu", "aten::mm", 0), ("device", "aten::empty", 0)
    ]  # fmt: skip


def test_a_capture_with_more_allocations_than_are_kept_says_so(store):
    """250 allocations of mm, of which the 200 largest stand by themselves; v2 made 200, and lists all."""
    for version, calls in (("v1", MAX_BLOCKS + 50), ("v2", MAX_BLOCKS)):
        blocks = [("aten::mm", 100, {"time_ns": 5})] * MAX_BLOCKS
        save(
            store, version, memory=[("aten::mm", 100 * calls, {"calls": calls})], peak=[("aten::mm", 1)], blocks=blocks
        )
    note = (
        "v1: 200 of 250 allocations are listed one by one: the largest, at most 200 of a rank in each kind of memory."
    )
    assert show(store, "v1").notes == (note,)
    assert show(store, "v2").notes == ()
    assert [text for text in diff(store, "v1", "v2").notes if "one by one" in text] == [note]


def test_an_old_run_is_compared_by_allocator(store):
    old(store, "v1", memory=[("aten::empty", 1000, KEY)])
    save(store, "v2", memory=[("aten::mm", 700, KEY), ("aten::add", 400)])
    found = diff(store, "v1", "v2")
    assert rows(found.memory, "name", "status", "baseline_bytes", "candidate_bytes") == [
        ("aten::empty", "both", 1000, 1100)
    ]
    assert any(note.startswith("Memory is compared by allocator") for note in found.notes)
    again = diff(store, "v2", "v2")
    assert again.memory["name"].tolist() == ["aten::mm", "aten::add"]
    assert not any("by allocator" in note for note in again.notes)


def test_series_of_old_runs_are_of_another_metric(store):
    save(store, "v2", memory=[("aten::mm", 700)])
    (run_id,) = old(store, "v1", memory=[("aten::empty", 700)])
    with store.begin() as connection:
        refresh(connection, [run_id], [])
    series = queries.samples(store, [1, run_id]).frame
    assert sorted(rows(series[series["kind"] == "memory"], "run_id", "metric", "name")) == [
        (1, "bytes", "aten::mm"), (run_id, "allocator_bytes", "aten::empty")
    ]  # fmt: skip


def peak(size, before, **more):
    held = {
        **KEY,
        "module": "GPT_0",
        "calls": 2,
        "largest_bytes": size // 2,
        "first_ns": 5,
        "first_step": 0,
        "peak_ns": 9,
    }
    return {"memory": [("aten::mm", size)], "peak": [("aten::mm", size, held | more), (BEFORE_CAPTURE, before)]}


def test_who_owns_the_peak_is_compared_and_adds_up(store):
    save(store, "v1", **peak(400, 1000, call_stack="torch/nn/linear.py(7): forward;train.py(42): forward"))
    save(store, "v2", **peak(900, 1000))
    found = diff(store, "v1", "v2").memory_peak
    columns = ("name", "module", "baseline_bytes", "candidate_bytes", "delta_bytes", "candidate_first_ns", "code_line")
    assert rows(found, *columns) == [
        ("aten::mm", "GPT_0", 400, 900, 500, 5, ""), (BEFORE_CAPTURE, "", 1000, 1000, 0, None, "")
    ]  # fmt: skip
    assert [found[f"{side}_bytes"].sum() for side in ("baseline", "candidate")] == [1400, 1900]
    shown = show(store, "v1").memory_peak
    assert rows(shown, "op", "bytes", "first_step", "peak_ns", "code_line")[0] == (
        "aten::mm", 400, 0, 9, "train.py(42): forward"
    )  # fmt: skip


def test_a_peak_is_of_the_run_in_the_middle_and_its_fullest_rank(store):
    for at, size in enumerate((100, 500, 300)):
        save(store, "v1", peak_allocated_bytes=size, started_at_ns=EPOCH_NS + at * 10**12, **peak(size, 0))
    save(store, "v2", **peak(300, 0))
    assert diff(store, "v1", "v2").memory_peak["baseline_bytes"].max() == 300


def test_what_only_one_side_knows_of_the_peak_is_no_change(store):
    save(store, "v1", memory=[("aten::mm", 5)])
    save(store, "v2", **peak(300, 0))
    assert len(diff(store, "v1", "v2").memory_peak) == 0


def test_blocks_stand_beside_blocks_of_their_place(store):
    block = {**KEY, "time_ns": 3}
    save(store, "v1", memory=[("aten::mm", 9, KEY)], blocks=[("aten::mm", 6, block), ("aten::mm", 3, block)])
    save(
        store, "v2", memory=[("aten::mm", 9, KEY)], blocks=[("aten::mm", 9, {**block, "held_ns": 4, "is_released": 1})]
    )
    found = diff(store, "v1", "v2").memory_blocks
    assert rows(found, "place", "baseline_bytes", "candidate_bytes", "status", "candidate_held_ns") == [
        (1, 6, 9, "both", 4), (2, 3, None, "REMOVED", None)
    ]  # fmt: skip


def test_a_block_that_the_other_side_may_have_cut_is_no_news(store):
    kept = [("aten::mm", 100 + place, {**KEY, "time_ns": place}) for place in range(MAX_BLOCKS)]
    few = [("aten::add", 50, {"time_ns": 1}), ("aten::mul", 9000, {"time_ns": 1})]
    save(store, "v1", memory=[("aten::mm", 9, KEY)], blocks=kept)
    save(store, "v2", memory=[("aten::mm", 9, KEY)], blocks=few)
    found = diff(store, "v1", "v2").memory_blocks.set_index("name")
    assert found.loc["aten::mul", "status"] == "ADDED"
    assert found.loc["aten::add", "status"] == "" and math.isnan(found.loc["aten::add", "delta_bytes"])
