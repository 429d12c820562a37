"""One place for the drift of column names: what a column means -> how versions of the profiler have spelled it.

Titles are compared without case, blanks and unit, so that `Step ID`, `Step Id` and `Start Time(us)`, `Start Time` are
one spelling each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_UNIT: Final = re.compile(r"\([^()]*\)\s*$")
_UNIT_WORD: Final = re.compile(r"\(([^()]*)\)\s*$")

SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    # kernel_details.csv; op_summary of CANN says Op Name, OP Type, Task ...; its task_time says kernel_name, task_time
    "step": ("Step Id", "Step"),
    "device": ("Device_id", "Device Id"),
    "model": ("Model ID", "Model Id"),
    "model_name": ("Model Name",),
    "task": ("Task ID",),
    "stream": ("Stream ID",),
    "batch": ("Batch ID",),
    "inference": ("Infer ID",),
    "context": ("Context ID",),
    "name": ("Name", "Op Name", "kernel_name"),
    "type": ("Type", "OP Type"),
    "state": ("OP State",),
    "core_type": ("Accelerator Core", "Task Type", "Core Type", "kernel_type"),
    "start": ("Start Time(us)", "Task Start Time(us)", "task_start(us)"),
    "duration": ("Duration(us)", "Task Duration(us)", "task_time(us)"),
    "stop": ("task_stop(us)",),
    "wait": ("Wait Time(us)", "Task Wait Time(us)"),
    "block_num": ("Block Dim", "Block Num"),
    "mix_block_num": ("Mix Block Dim", "Mix Block Num"),
    "hf32": ("HF32 Eligible",),
    "input_shapes": ("Input Shapes",),
    "input_types": ("Input Data Types",),
    "input_formats": ("Input Formats",),
    "output_shapes": ("Output Shapes",),
    "output_types": ("Output Data Types",),
    "output_formats": ("Output Formats",),
    # operator_memory.csv, memory_record.csv, npu_module_mem.csv
    "size": ("Size(KB)",),
    "allocated_at": ("Allocation Time(us)",),
    "released_at": ("Release Time(us)",),
    "allocation_allocated": ("Allocation Total Allocated(MB)",),
    "allocation_reserved": ("Allocation Total Reserved(MB)",),
    "release_allocated": ("Release Total Allocated(MB)",),
    "release_reserved": ("Release Total Reserved(MB)",),
    "stream_of_memory": ("Stream Ptr",),
    "device_type": ("Device Type", "Device"),
    "component": ("Component",),
    "time": ("Timestamp(us)",),
    "allocated": ("Total Allocated(MB)",),
    "reserved": ("Total Reserved(MB)",),
    # step_trace.csv of CANN
    "iteration": ("Iteration ID",),
    "iteration_end": ("Iteration End(us)",),
    "iteration_time": ("Iteration Time(us)",),
    # api_statistic.csv
    "level": ("Level",),
    "api": ("API Name",),
    "api_time": ("Time(us)",),
    "count": ("Count",),
    "shortest": ("Min(us)",),
    "longest": ("Max(us)",),
    # step_trace_time.csv
    "computing": ("Computing",),
    "communication": ("Communication",),
    "overlapped": ("Overlapped",),
    "not_overlapped": ("Communication(Not Overlapped)",),
    "free": ("Free",),
    "bubble": ("Bubble",),
    "preparing": ("Preparing",),
}
"""Our word -> the spellings; the first is the current one, named in errors."""

TIMES: Final = (
    "start", "duration", "wait", "allocated_at", "released_at", "time", "bubble", "preparing", "computing",
    "communication", "overlapped", "not_overlapped", "free", "api_time", "shortest", "longest",
)  # fmt: skip
WHOLE_NUMBERS: Final = ("step", "task", "stream", "block_num", "count")
SIZES: Final = (
    "size", "allocated", "reserved", "allocation_allocated", "allocation_reserved", "release_allocated",
    "release_reserved",
)  # fmt: skip
"""Columns that hold nothing but times in us, whole numbers, sizes; or nothing at all."""

KERNEL_COLUMNS: Final = (
    "step", "device", "model", "model_name", "task", "stream", "batch", "inference", "context", "name", "type", "state",
    "core_type", "start", "duration", "stop", "wait", "block_num", "mix_block_num", "hf32", "input_shapes",
    "input_types", "input_formats", "output_shapes", "output_types", "output_formats",
)  # fmt: skip
"""What a kernel's row says beside its measurements; every other column of the table is one."""


def plain(title: str) -> str:
    """A title without case, blanks, underscores and unit: what is compared.

    >>> plain("Start Time(us)"), plain("Step ID"), plain("Device_id"), plain("Communication(Not Overlapped)")
    ('starttime', 'stepid', 'deviceid', 'communication(notoverlapped)')
    """
    text = title.strip()
    unit = unit_of(text)
    return re.sub(r"[\s_]", "", (_UNIT.sub("", text) if unit else text).lower())


def unit_of(title: str) -> str:
    """The unit at the end of a title, '' without one.

    >>> unit_of("Size(KB)"), unit_of("Ratio(%)"), unit_of("Communication(Not Overlapped)"), unit_of("Block Dim")
    ('KB', '%', '', '')
    """
    match = _UNIT_WORD.search(title.strip())
    return match.group(1) if match and " " not in match.group(1) else ""


_PLAIN: Final = {word: tuple(plain(title) for title in titles) for word, titles in SPELLINGS.items()}


def column_of(header: tuple[str, ...], word: str) -> int | None:
    """Position of the column that means `word`, None where the table has none."""
    titles = [plain(title) for title in header]
    return next((titles.index(spelling) for spelling in _PLAIN[word] if spelling in titles), None)
