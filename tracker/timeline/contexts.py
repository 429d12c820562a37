"""Calling contexts: the paths of op keys in which ops ran, summed over all steps of a capture."""

from __future__ import annotations

import numpy as np

from tracker.profile import I64, MISSING, Table
from tracker.timeline.aggregate import group_by
from tracker.timeline.joined import Joined
from tracker.timeline.ops import DeviceTime

NO_PARENT = -1


def op_tree_table(joined: Joined, instances: DeviceTime) -> Table:
    """One row per distinct path of op keys; a parent comes before its children, roots have parent -1.

    Equal paths on different threads are one context. A backward op is the root of its own thread. Device time and
    device events count all that was launched anywhere below. The pseudo-ops are roots without calls.
    """
    of_op, parent, key = _contexts(joined)
    nodes = len(parent)
    calls, host = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    total, own, count = (np.zeros(nodes, dtype=np.int64) for _ in range(3))
    np.add.at(calls, of_op, 1)
    np.add.at(host, of_op, joined.tree.end_ns - joined.tree.start_ns)
    np.add.at(total, of_op, instances.total_ns)
    np.add.at(own, of_op, instances.self_ns)
    np.add.at(count, of_op, instances.total_count)
    device = joined.events.device
    duration = device.end_ns - device.start_ns
    for pseudo in (joined.keys.no_op, joined.keys.unlinked):
        node = int(np.flatnonzero((key == pseudo) & (parent == NO_PARENT))[0])
        events = (joined.op < 0) & (joined.op_key == pseudo)
        total[node] += int(duration[events].sum())
        own[node] += int(duration[events].sum())
        count[node] += int(events.sum())
    kept = count > 0 if not joined.events.host_is_primary else (count > 0) | (calls > 0)
    number = np.cumsum(kept) - 1
    known = joined.events.host_is_primary & (calls > 0)
    return {
        "node": number[kept],
        "parent": np.where(parent >= 0, number[parent], NO_PARENT)[kept],
        "op_key": key[kept],
        "calls": calls[kept],
        "host_total_ns": np.where(known, host, MISSING)[kept],
        "device_total_ns": total[kept],
        "device_self_ns": own[kept],
        "kernel_count": count[kept],
    }


def _contexts(joined: Joined) -> tuple[I64, I64, I64]:
    """The context of each op instance; per context its parent and its op key. Roots for the pseudo-ops are always there."""
    tree, keys = joined.tree, joined.keys
    of_op = np.zeros(len(tree), dtype=np.int64)
    pseudo = np.array([keys.no_op, keys.unlinked], dtype=np.int64)
    parents: list[I64] = []
    all_keys: list[I64] = []
    known = 0
    for depth, rows in enumerate(tree.levels or (np.zeros(0, dtype=np.int64),)):
        above = of_op[tree.parent[rows]] if depth else np.full(len(rows), NO_PARENT, dtype=np.int64)
        extra = pseudo if depth == 0 else pseudo[:0]
        above = np.concatenate((above, np.full(len(extra), NO_PARENT, dtype=np.int64)))
        key = np.concatenate((keys.of_op[rows], extra))
        groups = group_by(above, key)
        of_op[rows] = known + groups.group[: len(rows)]
        parents.append(above[groups.first])
        all_keys.append(key[groups.first])
        known += len(groups)
    return of_op, np.concatenate(parents), np.concatenate(all_keys)
