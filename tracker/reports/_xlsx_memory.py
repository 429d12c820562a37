"""The sheets of a diff about memory: MemoryCompare, as the comparison tool of Ascend has it, and MemoryPeak."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracker.reports._workbook import SIDES, Book, Field, Row, both, field
from tracker.reports.shared import records
from tracker.results import OP_KEY, Diff


def nested(diff: Diff, as_detail: Callable[[Row], Row], limit: int | None) -> list[tuple[str, Row]]:
    """Every op as a summary, below it what it consists of: sums per component and allocator, then single blocks."""
    below: dict[tuple[Any, ...], list[Row]] = {}
    for name, level in (("memory_details", "component"), ("memory_blocks", "allocation")):
        for row in records(diff.tables[name]):
            key = tuple(row[column] for column in OP_KEY)
            below.setdefault(key, []).append({**as_detail(row), "level": level})
    rows: list[tuple[str, Row]] = []
    for row in records(diff.tables["memory"].head(limit)):
        rows.append(("summary", {**row, "level": "op"}))
        rows += [("", detail) for detail in below.get(tuple(row[column] for column in OP_KEY), ())]
    return rows


def compare(
    book: Book, diff: Diff, rows: list[tuple[str, Row]], differences: Sequence[Field], verdicts: Sequence[Field]
) -> None:
    """The sheet MemoryCompare."""
    fields = [
        field("Row", "text", "level", 11),
        field("Operator Name", "text", "name", 40),
        field("Input Shape", "text", "input_shapes", 36),
        field("Input Type", "text", "input_types"),
        field("Component", "text", "component", 16),
        field("Allocator", "text", "allocator", 28),
        *(
            field(f"{side} {header}", kind, f"{prefix}_{name}")
            for side, prefix in SIDES
            for header, kind, name in (("Allocations", "count", "calls"), ("Size (KiB)", "kb", "bytes"))
        ),
        *differences,
        *both("Duration Held (us)", "us", "held_ns"),
        *both("Unreleased (KiB)", "kb", "unreleased_bytes"),
        *both("Allocated At (us)", "us", "time_ns"),
        *both("Step", "count", "step"),
        *both("Released", "text", lambda row, side: _released(row.get(f"{side}_is_released"))),
        *both("Code", "text", "code_line"),
        *verdicts,
    ]
    book.sheet("MemoryCompare", fields, rows, len(rows))


def peak(book: Book, diff: Diff, limit: int | None, differences: Sequence[Field]) -> None:
    """The sheet MemoryPeak: who held the memory when it was most; none where a side does not know."""
    table = diff.tables["memory_peak"]
    if not len(table):
        return
    fields = [
        field("Component", "text", "component", 16),
        field("Operator Name", "text", "name", 40),
        field("Input Shape", "text", "input_shapes", 36),
        field("Module", "text", "module", 48),
        field("Allocator", "text", "allocator", 28),
        *both("Blocks", "count", "calls"),
        *both("Size (KiB)", "kb", "bytes"),
        *differences,
        *both("Largest Block (KiB)", "kb", "largest_bytes"),
        *both("Held Since (us)", "us", "first_ns"),
        *both("Held Since Step", "count", "first_step"),
        field("Code", "text", "code_line", 48),
        field("Call Stack", "text", "call_stack", 60),
    ]
    rows = records(table.head(limit))
    book.sheet("MemoryPeak", fields, (("", row) for row in rows), len(rows))


def _released(value: float | None) -> str | None:
    return None if value is None else "yes" if value else "no"
