"""Laws that hold for every capture."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from tests.timeline.made_events import Made, records
from tracker.profile import MISSING, NO_STEP, ROW_COLUMNS, Breakdown, CollectiveTasks, DeviceEvents, Markers, Rows
from tracker.table import group_rows
from tracker.timeline import canonical_name
from tracker.timeline.intervals import Spans, clip, intersect, join, subtract, union
from tracker.timeline.joined import join as join_events
from tracker.timeline.nesting import nested
from tracker.timeline.tree import grow

SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda s: (s[0], s[0] + s[1])), max_size=8)
OP_NAMES = ("aten::mm", "aten::add", "nccl:all_reduce", "autograd::engine::evaluate_function: MmBackward0")
REALS = st.sampled_from((0.1, 0.2, 0.3, 1e16, 1.0))
KERNELS = ("sgemm", "relu", "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "Memset (Device)")


def arrays(spans: list[tuple[int, int]]) -> tuple[Any, Any]:
    return np.array([s for s, _ in spans], dtype=np.int64), np.array([e for _, e in spans], dtype=np.int64)


def moments(spans: list[tuple[int, int]]) -> set[int]:
    return {moment for start, end in spans for moment in range(start, end)}


def moments_of(spans: Spans) -> set[int]:
    return moments(list(zip(spans.start_ns.tolist(), spans.end_ns.tolist(), strict=True)))


@given(SPANS, SPANS, st.integers(0, 40), st.integers(0, 40))
def test_intervals_are_sets_of_moments(a, b, low, high):
    left, right = union(*arrays(a)), union(*arrays(b))
    assert moments_of(left) == moments(a)
    assert left.total_ns == len(moments(a))
    assert moments_of(intersect(left, right)) == moments(a) & moments(b)
    assert moments_of(subtract(left, right)) == moments(a) - moments(b)
    assert moments_of(join(left, right)) == moments(a) | moments(b)
    assert moments_of(clip(left, low, high)) == {m for m in moments(a) if low <= m < high}


def parents_by_definition(threads: list[int], spans: list[tuple[int, int]]) -> list[int]:
    """The stack rule, told without a stack: the latest of the earlier spans that is still open and was not outlived."""
    order = sorted(range(len(spans)), key=lambda i: (threads[i], spans[i][0], -spans[i][1], i))
    parents = [-1] * len(spans)
    for place, row in enumerate(order):
        start, end = spans[row]
        for before in range(place - 1, -1, -1):
            above = order[before]
            if threads[above] != threads[row]:
                break
            later = order[before + 1 : place]
            outlived = any(spans[above][1] <= spans[i][0] or spans[above][1] < spans[i][1] for i in later)
            if not outlived and spans[above][1] > start and spans[above][1] >= end:
                parents[row] = above
                break
    return parents


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 12), st.integers(0, 8)), max_size=24).map(sorted),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_twigs_set_aside_and_put_back_change_no_parent(rows, few, rounds):
    threads = [thread for thread, _, _ in rows]
    spans = [(start, start + length) for _, start, length in rows]
    order = sorted(range(len(rows)), key=lambda i: (threads[i], spans[i][0], -spans[i][1], i))
    threads, spans = [threads[i] for i in order], [spans[i] for i in order]
    parent, depth = nested(np.array(threads, dtype=np.int32), *arrays(spans), few=few, rounds=rounds)
    assert parent.tolist() == parents_by_definition(threads, spans)
    for row, above in enumerate(parent.tolist()):
        assert depth[row] == (0 if above < 0 else depth[above] + 1)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 12), st.integers(0, 8)), max_size=9),
    st.data(),
    st.integers(1, 4),
)
def test_the_tree_is_that_of_the_definition(rows, data, block_rows):
    threads = [thread for thread, _, _ in rows]
    spans = [(start, start + length) for _, start, length in rows]
    tree = grow(np.array(threads, dtype=np.int32), *arrays(spans), block_rows=block_rows)
    assert tree.parent.tolist() == parents_by_definition(threads, spans)
    thread, time = data.draw(st.integers(0, 2)), data.draw(st.integers(-1, 22))
    inside = [i for i in range(len(rows)) if threads[i] == thread and spans[i][0] <= time < spans[i][1]]
    latest = max(inside, key=lambda i: (spans[i][0], -spans[i][1], i), default=-1)
    found = tree.innermost(np.array([thread], dtype=np.int32), np.array([time], dtype=np.int64))
    assert found.tolist() == [latest]
    own = tree.self_ns()
    for row in range(len(rows)):
        children = [spans[i] for i in range(len(rows)) if tree.parent[i] == row]
        assert own[row] == len(moments([spans[row]]) - moments(children))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-5, 2**62)), max_size=12))
def test_group_sums_are_exact(rows):
    first, second = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(2))
    values = np.array([row[2] % 1000 for row in rows], dtype=np.int64)
    groups = group_rows(first, second)
    expected: dict[tuple[int, int], list[int]] = {}
    for row, value in zip(rows, values.tolist(), strict=True):
        expected.setdefault(row[:2], []).append(value)
    keys = list(zip(first[groups.first].tolist(), second[groups.first].tolist(), strict=True))
    assert keys == sorted(expected)
    assert groups.counts.tolist() == [len(expected[key]) for key in keys]
    assert groups.sums(values).tolist() == [sum(expected[key]) for key in keys]
    assert groups.smallest(values).tolist() == [min(expected[key]) for key in keys]
    assert groups.largest(values).tolist() == [max(expected[key]) for key in keys]


@st.composite
def captures(draw, with_device: bool | None = None) -> Made:
    """A capture with crossing ops on two threads, launches, linked and unlinked device events, markers or none.

    One without a device has no launches: launches without device events are steps whose records were lost.
    """
    made = Made()
    reduce = made.collective("all_reduce", bytes=100)
    distinct: set[tuple[int, int, int]] = set()
    for index in range(draw(st.integers(0, 8))):
        name = draw(st.sampled_from(OP_NAMES))
        thread, start, length = draw(st.integers(0, 1)), draw(st.integers(0, 60)), draw(st.integers(1, 30))
        if (thread, start, length) in distinct:
            continue
        distinct.add((thread, start, length))
        is_nccl = name.startswith("nccl")
        made.op(name, start, start + length, thread, is_annotation=int(is_nccl), collective=reduce if is_nccl else -1)
        if with_device is not False:
            made.launch(draw(st.integers(0, 90)), index % 4, thread=draw(st.integers(0, 1)))
    if draw(st.booleans()) if with_device is None else with_device:
        for _ in range(draw(st.integers(1, 8))):
            start = draw(st.integers(0, 120))
            name, end = draw(st.sampled_from(KERNELS)), start + draw(st.integers(0, 20))
            kind = 3 if name.startswith("Memset") else 0
            stream = draw(st.integers(0, 2))
            made.kernel(name, start, end, draw(st.integers(-1, 6)), stream=stream, kind=kind)
    for number in range(draw(st.integers(0, 3))):
        made.step(number + 5, 10 + number * 30, 38 + number * 30)
    add_extras(made, draw, reduce)
    for address in range(draw(st.integers(0, 4))):
        size = draw(st.sampled_from((-8, 8, 16)))
        made.allocation(draw(st.integers(0, 90)), size, address % 2, total_allocated_bytes=abs(size))
    return made


def add_extras(made: Made, draw: Any, collective: int) -> None:
    """What only some profilers say; values whose sum depends on their order among them."""
    for event in range(len(made.rows[DeviceEvents])):
        made.blocks.append(draw(st.sampled_from((MISSING, 4, 8))))
        for metric in draw(st.lists(st.sampled_from(("aiv_vec_ratio", "cycles")), max_size=2)):
            made.measure(event, metric, draw(REALS))
    for _ in range(draw(st.integers(0, 3))):
        made.times(collective, wait_ns=draw(st.integers(0, 9)))
        made.task(collective, draw(st.sampled_from(("Notify_Wait", "Memcpy"))), 0, draw(st.integers(0, 9)))
        made.link(collective, "SDMA", draw(st.integers(0, 9)), large_packet_ratio=draw(REALS))
        made.memory_point(draw(st.integers(0, 90)), draw(st.sampled_from(("PTA", "APP"))), draw(st.integers(0, 9)))
        made.counter("l2_cache", "k", "Hit Rate", draw(REALS), draw(st.integers(4, 6)))


def breakdowns(rows: Rows) -> list[Breakdown]:
    return [rows.overall, *(step.breakdown for step in rows.steps)]


@given(captures())
def test_the_parts_of_the_breakdown_add_up_to_the_ns(made):
    rows = made.built()
    for part in breakdowns(rows):
        is_window = bool(made.rows[Markers]) and part is not rows.overall
        whole_ns = part.duration_ns if is_window else part.e2e_ns
        if whole_ns is None:  # a step of which nothing ran in a time of its own
            assert part.compute_ns is part.idle_ns is None
            continue
        assert part.compute_ns + part.exposed_communication_ns + part.exposed_copy_ns + part.idle_ns == whole_ns
        assert part.exposed_communication_ns + part.overlap_ns == part.communication_ns
        assert min(value for value in asdict(part).values() if isinstance(value, int)) >= 0


@given(captures(with_device=True))
def test_device_time_is_conserved(made):
    events = made.events()
    every = int((events.device.end_ns - events.device.start_ns).sum())
    rows = made.built()
    ops, kernels, tree = rows.tables["op"], rows.tables["kernel"], rows.tables["op_tree"]
    assert sum(kernels["total_ns"]) == sum(ops["device_self_ns"]) == sum(tree["device_self_ns"]) == every
    assert sum(kernels["calls"]) == sum(ops["kernel_count"]) == len(events.device)
    assert sum(tree["device_total_ns"][tree["parent"] == -1]) == every
    overall = rows.overall
    assert overall.compute_total_ns + overall.communication_total_ns + overall.copy_total_ns == every
    assert sum(rows.tables["communication"]["total_ns"]) == overall.communication_total_ns
    if not made.rows[CollectiveTasks]:
        assert sum(rows.tables["communication_task"]["total_ns"]) == overall.communication_total_ns
    for key, step, self_ns in records(ops, "op_key", "step", "device_self_ns"):
        same = (kernels["op_key"] == key) & (kernels["step"] == step)
        assert kernels["total_ns"][same].sum() == self_ns
    assert (ops["device_total_ns"] >= ops["device_self_ns"]).all()


@given(captures())
def test_steps_and_what_lies_outside_of_them_make_up_the_capture(made):
    rows = made.built()
    kernels = rows.tables["kernel"]
    per_step = {step.step: step.breakdown.kernel_total_ns for step in rows.steps}
    is_kernel = np.array([category not in ("copy", "memset") for category in kernels["category"]], dtype=bool)
    for step, total in per_step.items():
        assert kernels["total_ns"][(kernels["step"] == step) & is_kernel].sum() == total
    outside = kernels["total_ns"][(kernels["step"] == NO_STEP) & is_kernel].sum()
    assert sum(per_step.values()) + outside == rows.overall.kernel_total_ns


@given(captures())
def test_host_time_is_conserved(made):
    ops = made.events().ops
    table = made.built().tables["op"]
    known = table["host_self_ns"] != MISSING
    assert sum(table["calls"]) == len(ops)
    covered = 0
    for thread in (0, 1):
        own = ops.thread == thread
        covered += union(ops.start_ns[own], ops.end_ns[own]).total_ns
    assert sum(table["host_self_ns"][known]) >= covered
    assert (table["host_self_ns"][known] >= 0).all()


@given(captures(with_device=False))
def test_usual_times_are_those_of_the_calls_one_by_one(made):
    joined = join_events(made.events())
    calls: dict[tuple[int, int], list[int]] = defaultdict(list)
    for step, key, own in zip(
        joined.op_step.tolist(), joined.keys.of_op.tolist(), joined.tree.self_ns().tolist(), strict=True
    ):
        calls[step, key].append(own)
    rows = records(made.built().tables["op"], "step", "op_key", "self_by_quartile_ns", "self_by_median_ns")
    assert {row[:2] for row in rows} == set(calls)
    for step, key, *found in rows:
        own = np.array(calls[step, key])
        assert found == [round(len(own) * np.quantile(own, fraction)) for fraction in (0.25, 0.5)]


def plain(rows: Rows) -> Any:
    """Rows as plain values that compare; nan equals nan."""
    tables = {
        name: [tuple(repr(value) for value in row) for row in records(rows.tables[name], *columns)]
        for name, columns in ROW_COLUMNS.items()
    }
    return rows.overall, rows.steps, tables, {k: list(map(int, v)) for k, v in rows.collective_calls.items()}


@given(captures(), st.integers(0, 10**6))
def test_the_order_of_the_input_never_matters(made, seed):
    assert plain(made.built()) == plain(made.shuffled(random.Random(seed)).built())


@given(captures())
def test_every_table_has_the_columns_of_the_contract_in_equal_length(made):
    rows = made.built()
    assert list(rows.tables) == list(ROW_COLUMNS)
    for name, columns in ROW_COLUMNS.items():
        table = rows.tables[name]
        assert list(table) == list(columns)
        assert len({len(column) for column in table.values()}) == 1
        for column, kind in columns.items():
            dtype = {"text": None, "float": np.dtype(np.float64)}.get(kind, np.dtype(np.int64))
            found = table[column].dtype if isinstance(table[column], np.ndarray) else None
            assert (name, column, found) == (name, column, dtype)
    keys = len(rows.tables["op_key"]["name"])
    assert all((rows.tables[name]["op_key"] < keys).all() for name in ("op", "op_tree", "kernel", "memory"))
    assert (rows.tables["kernel_metric"]["kernel_key"] < len(rows.tables["kernel_key"]["name"])).all()
    calls = len(rows.tables["communication"]["calls"])
    for name in ("communication_task", "communication_link"):
        assert (rows.tables[name]["communication"] < calls).all()
    nodes = records(rows.tables["op_tree"], "step", "node")
    for step, node, parent in records(rows.tables["op_tree"], "step", "node", "parent"):
        assert parent < node
        assert parent == -1 or (step, parent) in nodes


@given(st.text(alphabet="abcdefgktrion_0123456789<>(){}[]:,# *", max_size=60))
def test_a_canonical_name_is_its_own_canonical_name(name):
    assert canonical_name(canonical_name(name)) == canonical_name(name)
    once = canonical_name(name, npu=True)
    assert canonical_name(once, npu=True) == once


@given(st.from_regex(r"(?:(?:[A-Z][a-z]{1,3}|2[dD]|V[1-9]|D)[0-9]{0,2}){1,4}(?:_MemSet)?", fullmatch=True))
def test_the_canonical_name_of_a_graph_op_is_its_own(name):
    once = canonical_name(name, npu=True)
    assert canonical_name(once, npu=True) == once
