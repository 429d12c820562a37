"""Memory the slow and obvious way: every block followed from event to event."""

from __future__ import annotations

from collections import defaultdict

from tracker.profile import MISSING

HELPERS = {"aten::empty", "aten::empty_like", "aten::empty_strided", "empty_tensor"}


def chain(events, thread, time):
    """The names of the ops around a moment, outermost first, in files whose ops nest."""
    ops = events.ops
    rows = [
        row
        for row in range(len(ops))
        if ops.thread[row] == thread and ops.start_ns[row] <= time < ops.end_ns[row] and not ops.is_annotation[row]
    ]
    rows.sort(key=lambda row: (ops.start_ns[row], -ops.end_ns[row], row))
    return [events.strings[ops.name[row]] for row in rows]


def owner(names, flat=False):
    """Who owns what is allocated under these ops: the rule of `timeline.owners`, name by name. `flat`: no op of the
    capture has a namespace.
    """
    if flat:
        return names[0] if names else "(no op)"
    below = names
    for place, name in enumerate(names):
        if name.startswith("autograd::") or ("Backward" in name.rpartition("::")[2] and "::" not in name):
            below = names[place + 1 :]
    ops = [name for name in below if "::" in name]
    if ops and ops[0] not in HELPERS:
        return ops[0]
    named = [name for name in names if name not in HELPERS and (name.isidentifier() or "::" in name)]
    named = [name for name in named if not name.startswith("autograd::engine::")]
    return named[-1] if named else ops[0] if ops else names[-1] if names else "(no op)"


def held_at_peak(events):
    """component -> (bytes held, by owner; what the source says of the peak), at the first event with most."""
    allocations = events.allocations
    flat = not any("::" in events.strings[code] for code in events.ops.name.tolist())
    found = {}
    order = sorted(range(len(allocations)), key=lambda row: int(allocations.time_ns[row]))
    for code in sorted(set(allocations.component.tolist())):
        held, best = {}, (-1, {})
        for row in order:
            if allocations.component[row] != code:
                continue
            address = int(allocations.address[row])
            if allocations.bytes[row] > 0:
                names = chain(events, allocations.thread[row], allocations.time_ns[row])
                held[address] = (int(allocations.bytes[row]), owner(names, flat))
            else:
                held.pop(address, None)
            total = int(allocations.total_allocated_bytes[row])
            if total > best[0]:
                best = (total, dict(held))
        sums = defaultdict(int)
        for size, name in best[1].values():
            sums[name] += size
        found[events.strings[code]] = (dict(sums), best[0])
    return found


def peak_of(rows):
    """The same from the rows: component -> (bytes by owner, their sum with what was allocated before)."""
    table, names = rows.tables["memory_peak"], rows.tables["op_key"]["name"]
    found = {}
    for component, key, size in zip(table["component"], table["op_key"].tolist(), table["bytes"].tolist(), strict=True):
        sums, whole = found.setdefault(component, ({}, 0))
        if not names[key].startswith("(before"):
            sums[names[key]] = sums.get(names[key], 0) + size
        found[component] = (sums, whole + (0 if size == MISSING else size))
    return found
