"""Kernels, copies and memsets summed per step, kernel and launching op, with category and measurements."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I64, MISSING, PHASES, DeviceKind, Table
from tracker.schema.column_names import NAME, TYPE
from tracker.table import Groups, group_rows, list_codes, look_up_texts, rank_codes
from tracker.timeline.categories import (
    CATEGORIES,
    category_of_kernel,
    category_of_op,
    category_of_type,
    type_of_name,
)
from tracker.timeline.joined import Joined, Work
from tracker.timeline.names import canonical_name, is_npu_name
from tracker.timeline.overlap import measure_beside
from tracker.timeline.sequences import Sequences, find_sequences

_KEY_TEXTS = ("name", "type", "core_type", "input_shapes", "input_types", "input_formats")
_UNDECIDED, _OWN_WORK = -2, -1


class KernelTables(Struct, frozen=True):
    """Tables `kernel_key`, `kernel` and `kernel_metric`."""

    keys: Table
    rows: Table
    metrics: Table


def kernel_tables(joined: Joined) -> KernelTables:
    """The distinct kernels, and their sums per step, launching op and category; copies and memsets are among them."""
    device, texts = joined.events.device, joined.events.strings.texts
    keys = group_rows(*(rank_codes(getattr(device, column), texts) for column in _KEY_TEXTS))
    category = categories_of(joined)
    groups = group_rows(joined.step, keys.number, joined.op_key, category)
    duration = device.end_ns - device.start_ns
    columns = {column: look_up_texts(getattr(device, column)[keys.first], texts) for column in _KEY_TEXTS}
    npu = _is_npu(joined)
    canonical = [
        canonical_name(name, _said(kernel_type), npu=npu)
        for name, kernel_type in zip(columns[NAME], columns[TYPE], strict=True)
    ]
    table = {"name": columns[NAME], "canonical_name": canonical, **columns}
    sequences = find_sequences(joined, keys.number, table)
    rows: Table = {
        "step": joined.step[groups.first],
        "kernel_key": keys.number[groups.first],
        "op_key": joined.op_key[groups.first],
        "category": look_up_texts(category[groups.first], CATEGORIES),
        "calls": groups.counts,
        "total_ns": groups.sums(duration),
        "min_ns": groups.smallest(duration),
        "max_ns": groups.largest(duration),
        "sum_squares_ns2": groups.sums_of_squares(duration),
        "wait_ns": groups.add_up_marked(device.wait_ns, MISSING, "known"),
        "bytes": groups.add_up_marked(device.bytes, MISSING, "known"),
        "block_num": _largest_block_num(joined, groups),
        "beside_ns": groups.add_up_marked(measure_beside(joined), MISSING, "sum"),
        "sequence_saved_ns": groups.add_up_marked(sequences.saved_ns, MISSING, "sum"),
        "sequence": _sequences_of_rows(sequences, groups, group_rows(keys.number, joined.op_key, category)),
    }
    return KernelTables(table, rows, _metric_table(joined, keys))


def _sequences_of_rows(sequences: Sequences, groups: Groups, work: Groups) -> list[str]:
    """Return the sequence in which the kernel of each row most often stands in any step, "" for none: the row of a
    kernel has the same one in each step.

    `groups`: the device events of each row; `work`: those of each row over all steps.
    """
    rows = np.flatnonzero(sequences.number >= 0)
    counts = group_rows(work.number[rows], sequences.number[rows]) if len(rows) else None
    names = [""] * len(work)
    if counts is not None:
        first = rows[counts.first]
        for at in np.lexsort((-sequences.number[first], counts.counts)).tolist():
            # the most frequent one comes last, of equal ones the first
            names[int(work.number[first[at]])] = sequences.names[int(sequences.number[first[at]])]
    return [names[number] for number in work.number[groups.first].tolist()]


def name_canonically(joined: Joined) -> dict[tuple[int, int], str]:
    """Return the canonical name of each kernel, by the codes of its name and its type."""
    device, texts = joined.events.device, joined.events.strings.texts
    npu = _is_npu(joined)
    first = group_rows(device.name, device.type).first
    found: dict[tuple[int, int], str] = {}
    for name, kernel_type in zip(device.name[first].tolist(), device.type[first].tolist(), strict=True):
        found[name, kernel_type] = canonical_name(texts[name], _said(texts[kernel_type]), npu=npu)
    return found


def _largest_block_num(joined: Joined, groups: Groups) -> I64:
    """The most blocks that a call of the row ran on, MISSING where the source does not say."""
    blocks = joined.events.extras.block_num
    return groups.largest(blocks) if len(blocks) else np.full(len(groups), MISSING, dtype=np.int64)


def _metric_table(joined: Joined, keys: Groups) -> Table:
    """Per kernel and metric: of how many calls the value is known, and mean, smallest and largest of the values."""
    metrics, texts = joined.events.extras.kernel_metrics, joined.events.strings.texts
    rows = np.flatnonzero(np.isfinite(metrics.value))
    kernel = keys.number[metrics.event[rows]]
    groups = group_rows(kernel, rank_codes(metrics.metric[rows], texts))
    return {
        "kernel_key": kernel[groups.first],
        "metric": look_up_texts(metrics.metric[rows[groups.first]], texts),
        **groups.spread(metrics.value[rows]),
    }


def _is_npu(joined: Joined) -> bool:
    """Whether an NPU's profiler wrote the capture: it names types of kernels or cores, or has names like no other."""
    device, texts = joined.events.device, joined.events.strings.texts
    named = {code for column in (device.type, device.core_type) for code in list_codes(column)}
    if any(_said(texts[code]) for code in named):
        return True
    return any(is_npu_name(texts[code]) for code in list_codes(device.name))


def _said(text: str) -> str:
    """The text, or none where the profiler wrote that it does not know."""
    return "" if text == "N/A" else text


def categories_of(joined: Joined) -> I64:
    """For each device event the index into CATEGORIES of its kind of work.

    Copies and memsets are what they are, communication is decided by `Joined.work`. Compute goes by the launching op,
    from the innermost outwards until one decides or has work of its own; then by the kernel's type where there are
    types; then by its name.
    """
    device = joined.events.device
    by_op = _by_op(joined)
    launched = joined.op >= 0
    from_op = np.full(len(device), _UNDECIDED, dtype=np.int64)
    from_op[launched] = by_op[joined.op[launched]]
    category = np.where(from_op >= 0, from_op, _by_kernel(joined, from_op == _OWN_WORK))
    category[joined.work == Work.COMMUNICATION] = CATEGORIES.index("communication")
    category[device.kind == DeviceKind.COPY] = CATEGORIES.index("copy")
    category[device.kind == DeviceKind.MEMSET] = CATEGORIES.index("memset")
    return category


def _by_kernel(joined: Joined, by_operator: NDArray[np.bool_]) -> I64:
    """Per device event the category that type and name of the kernel give it.

    `by_operator`: launched by an operator with work of its own.
    """
    device, texts = joined.events.device, joined.events.strings.texts
    npu = _is_npu(joined)
    phase = np.zeros(len(device), dtype=np.int64)
    phase[joined.op >= 0] = joined.phase[joined.op[joined.op >= 0]]
    groups = group_rows(device.name, device.type, device.core_type, phase, by_operator.astype(np.int64))
    said: list[int] = []
    for row in groups.first.tolist():
        name, kernel_type = texts[int(device.name[row])], _said(texts[int(device.type[row])])
        of_phase, found = PHASES[int(phase[row])], None
        if npu:
            name = kernel_type = kernel_type or type_of_name(canonical_name(name, npu=True))
            found = category_of_type(kernel_type, texts[int(device.core_type[row])], of_phase)
        found = found or category_of_kernel(name, of_phase, launched_by_operator=bool(by_operator[row]))
        said.append(CATEGORIES.index(found))
    return np.array(said, dtype=np.int64)[groups.number]


def _by_op(joined: Joined) -> I64:
    """Per op the category that it or the nearest telling op around it gives to its kernels, or a marker."""
    ops, texts = joined.events.ops, joined.events.strings.texts
    groups = group_rows(ops.name, joined.phase)
    said: list[int] = []
    for row in groups.first.tolist():
        category = category_of_op(texts[int(ops.name[row])], PHASES[int(joined.phase[row])])
        said.append(_UNDECIDED if category is None else CATEGORIES.index(category) if category else _OWN_WORK)
    own = np.array(said, dtype=np.int64)[groups.number]
    return joined.tree.passed_down(own, unset=_UNDECIDED)
