"""Blocks of operator_memory.csv -> allocations on the threads of the ops that made them."""

from __future__ import annotations

import numpy as np

from tracker.profile import I32, Allocations, Strings
from tracker.readers._ascend.memory import GRAPH_ENGINE, Blocks
from tracker.readers._ascend.trace.host import Host, enqueues_at, running_at


def allocations_of(blocks: Blocks, host: Host, strings: Strings) -> Allocations:
    """The allocations, each on the thread on which the op that its row names is running; else that of most ops.

    What CANN allocates (`cann::...`) while the queue of kernels is worked off belongs to the op that put the kernel
    there: it is placed at the start of the Enqueue of that Dequeue.
    """
    time, thread = blocks.time_ns.copy(), _threads(blocks, host, strings)
    is_graph = blocks.component == strings.code(GRAPH_ENGINE)
    rows = np.flatnonzero(is_graph & (blocks.bytes > 0))
    place = enqueues_at(host, time[rows])
    rows, place = rows[place >= 0], place[place >= 0]
    time[rows], thread[rows] = host.queue["start_ns"][place], host.queue["thread"][place]
    return Allocations(
        time_ns=time,
        thread=thread,
        bytes=blocks.bytes,
        address=blocks.block,
        on_device=blocks.on_device,
        component=blocks.component,
        total_allocated_bytes=blocks.total_allocated_bytes,
        total_reserved_bytes=blocks.total_reserved_bytes,
    )


def _threads(blocks: Blocks, host: Host, strings: Strings) -> I32:
    ops = host.ops
    main = int(np.bincount(ops.thread).argmax()) if len(ops) else 0
    thread = np.full(len(blocks), main, dtype=np.int32)
    by_name: dict[str, list[int]] = {}
    for row, name in enumerate(blocks.op):
        by_name.setdefault(name, []).append(row)
    order = np.argsort(ops.start_ns, kind="stable")
    for name, rows in by_name.items():
        mine = order[ops.name[order] == strings.code(name)]
        if len(mine):
            place = running_at(ops.start_ns[mine], ops.end_ns[mine], blocks.time_ns[rows])
            known = place >= 0
            thread[np.array(rows)[known]] = ops.thread[mine[place[known]]]
    return thread


def allocation_ops_of(blocks: Blocks, strings: Strings) -> I32:
    """The op that the row of each allocation names."""
    return np.array(strings.codes(blocks.op), dtype=np.int32)
