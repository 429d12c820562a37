"""Kernels, copies and memsets summed per step, kernel and launching op, with the category of their work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracker.profile import I64, DeviceKind, Table
from tracker.timeline.aggregate import group_by, rank_of_texts, texts_of
from tracker.timeline.categories import CATEGORIES, category_of_kernel, category_of_op
from tracker.timeline.joined import Joined, Work
from tracker.timeline.keys import PHASES
from tracker.timeline.names import canonical_name

_KEY_TEXTS = ("name", "type", "core_type", "input_shapes", "input_types", "input_formats")
_UNDECIDED, _OWN_WORK = -2, -1


@dataclass(frozen=True, slots=True)
class KernelTables:
    """Tables `kernel_key` and `kernel`."""

    keys: Table
    rows: Table


def kernel_tables(joined: Joined) -> KernelTables:
    """The distinct kernels, and their sums per step, launching op and category; copies and memsets are among them."""
    device, texts = joined.events.device, joined.events.strings.texts
    place = rank_of_texts(texts)
    keys = group_by(*(place[getattr(device, column)] for column in _KEY_TEXTS))
    category = categories_of(joined)
    groups = group_by(joined.step, keys.group, joined.op_key, category)
    duration = device.end_ns - device.start_ns
    columns = {column: texts_of(getattr(device, column)[keys.first], texts) for column in _KEY_TEXTS}
    rows: Table = {
        "step": joined.step[groups.first],
        "kernel_key": keys.group[groups.first],
        "op_key": joined.op_key[groups.first],
        "category": texts_of(category[groups.first], CATEGORIES),
        "calls": groups.counts,
        "total_ns": groups.sums(duration),
        "min_ns": groups.smallest(duration),
        "max_ns": groups.largest(duration),
        "sum_squares_ns2": groups.sums_of_squares(duration),
        "wait_ns": groups.known_sums(device.wait_ns),
        "bytes": groups.known_sums(device.bytes),
    }
    names = columns["name"]
    return KernelTables({"name": names, "canonical_name": [canonical_name(name) for name in names], **columns}, rows)


def categories_of(joined: Joined) -> I64:
    """For each device event the index into CATEGORIES of its kind of work.

    Copies and memsets are what they are, communication is decided by `Joined.work`. Compute goes by the launching op,
    from the innermost outwards until one decides or has work of its own; then by the kernel's name.
    """
    device, texts = joined.events.device, joined.events.strings.texts
    by_op = _by_op(joined)
    launched = joined.op >= 0
    from_op = np.full(len(device), _UNDECIDED, dtype=np.int64)
    from_op[launched] = by_op[joined.op[launched]]
    phase = np.zeros(len(device), dtype=np.int64)
    phase[launched] = joined.phase[joined.op[launched]]
    operator = (from_op == _OWN_WORK).astype(np.int64)
    groups = group_by(device.name, phase, operator)
    named = [
        CATEGORIES.index(category_of_kernel(texts[name], PHASES[code], launched_by_operator=bool(own)))
        for name, code, own in zip(
            device.name[groups.first].tolist(),
            phase[groups.first].tolist(),
            operator[groups.first].tolist(),
            strict=True,
        )
    ]
    from_name = np.array(named, dtype=np.int64)[groups.group]
    category = np.where(from_op >= 0, from_op, from_name)
    category[joined.work == Work.COMMUNICATION] = CATEGORIES.index("communication")
    category[device.kind == DeviceKind.COPY] = CATEGORIES.index("copy")
    category[device.kind == DeviceKind.MEMSET] = CATEGORIES.index("memset")
    return category


def _by_op(joined: Joined) -> I64:
    """Per op the category that it or the nearest telling op around it gives to its kernels, or a marker."""
    ops, texts = joined.events.ops, joined.events.strings.texts
    groups = group_by(ops.name, joined.phase)
    said: list[int] = []
    for row in groups.first.tolist():
        category = category_of_op(texts[int(ops.name[row])], PHASES[int(joined.phase[row])])
        said.append(_UNDECIDED if category is None else CATEGORIES.index(category) if category else _OWN_WORK)
    own = np.array(said, dtype=np.int64)[groups.group]
    return joined.tree.passed_down(own, unset=_UNDECIDED)
