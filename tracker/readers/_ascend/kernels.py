"""Tables of device tasks (kernel_details.csv, op_summary of CANN) -> columns of DeviceEvents."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
from msgspec import Struct

from tracker.errors import SourceError
from tracker.profile import I8, I32, I64, MISSING, DeviceKind, KernelMetrics, Strings
from tracker.readers._ascend.csv_tables import NOTHING, SKIP_OR_EXPORT, CsvTable
from tracker.readers._ascend.mindspore import kernel_name
from tracker.readers._ascend.shapes import formats_text, shapes_text, types_text
from tracker.readers._ascend.spellings import KERNEL_COLUMNS, column_of
from tracker.readers._ascend.stacks import split_stack

COLLECTIVE_CORES: Final = frozenset(("HCCL", "COMMUNICATION"))
COLLECTIVE_CORE: Final = "HCCL"
"""The core of every collective: versions have two words for it, traces and databases none."""

COPY_NAME: Final = "MEMCPY_ASYNC"
"""The name of every copy, which has no core: chips and exports have four words for the task."""

COLLECTIVE_NAME: Final = re.compile(r"hcom_", re.IGNORECASE)


class Kernels(Struct, frozen=True):
    """Device tasks in order of their table; like DeviceEvents. `stream`: -1 where the table does not say.

    `step`, `task`, `block_num`, `wait_ns`: or MISSING.
    """

    start_ns: I64
    end_ns: I64
    stream: I64
    task: I64
    step: I64
    name: I32
    kind: I8
    type: I32
    core_type: I32
    input_shapes: I32
    input_types: I32
    input_formats: I32
    wait_ns: I64
    block_num: I64

    def __len__(self) -> int:
        return len(self.start_ns)


def kernels_of(table: CsvTable, strings: Strings) -> Kernels:
    """The device tasks of `table`; a SourceError names a required column that is missing."""
    table.need("name", "core_type", "start", "duration")
    start, duration = table.ns("start"), table.ns("duration")
    _check(table, start, duration)
    names = table.texts("name") or []
    cores = table.texts("core_type") or []
    is_collective = [
        core in COLLECTIVE_CORES or COLLECTIVE_NAME.match(name) is not None
        for core, name in zip(cores, names, strict=True)
    ]

    core_type = np.array(table.codes("core_type", strings, _said), dtype=np.int32)

    def codes(word: str, translate: Any = _said) -> I32:
        return np.array(table.codes(word, strings, translate), dtype=np.int32)

    return Kernels(
        start_ns=start,
        end_ns=start + duration,
        stream=table.ints("stream", -1),
        task=table.ints("task"),
        step=table.ints("step"),
        name=codes("name", _bare_name),
        kind=np.where(is_collective, DeviceKind.COMMUNICATION, DeviceKind.KERNEL).astype(np.int8),
        type=codes("type"),
        core_type=np.where(is_collective, np.int32(strings.code(COLLECTIVE_CORE)), core_type),
        input_shapes=codes("input_shapes", shapes_text),
        input_types=codes("input_types", types_text),
        input_formats=codes("input_formats", formats_text),
        wait_ns=table.ns("wait"),
        block_num=table.ints("block_num"),
    )


def kernel_metrics_of(table: CsvTable, strings: Strings) -> KernelMetrics:
    """Every measurement of the hardware counters that has a value; `event` is the row of the table."""
    described = {column_of(table.header, word) for word in KERNEL_COLUMNS}
    events, metrics, values = [], [], []
    for position, title in enumerate(table.header):
        if position in described:
            continue
        column = table.floats(position)
        rows = np.flatnonzero(np.isfinite(column))
        events.append(rows)
        metrics.append(np.full(len(rows), strings.code(title), dtype=np.int32))
        values.append(column[rows])
    return KernelMetrics(
        event=np.concatenate([np.zeros(0, np.int64), *events]).astype(np.int32),
        metric=np.concatenate([np.zeros(0, np.int32), *metrics]),
        value=np.concatenate([np.zeros(0), *values]),
    )


def leave_out_bad_tasks(table: CsvTable) -> None:
    """Drops the device tasks without a start or with a negative or unknown duration."""
    table.need("start", "duration")
    table.leave_out(_bad_tasks(table.ns("start"), table.ns("duration")))


def _bad_tasks(start: I64, duration: I64) -> set[int]:
    return set(np.flatnonzero((start == MISSING) | (duration < 0)).tolist())


def _check(table: CsvTable, start: I64, duration: I64) -> None:
    """A task without a start or with a negative or unknown duration is an error that names its row."""
    bad = _bad_tasks(start, duration)
    if bad:
        problem = "the device task has no start time or no duration, or a negative one"
        raise SourceError(table.path, f"row {table.numbers[min(bad)]}", problem, remedy=SKIP_OR_EXPORT)


def _bare_name(cell: str) -> str:
    """The name without the call stack and the operator that MindSpore glues to it."""
    return kernel_name(split_stack(_said(cell))[0])


def _said(cell: str) -> str:
    return "" if cell in NOTHING else cell
