"""The sheets of a diff's workbook for what profilers measure beside times: kernel metrics, links, counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracker.reports._workbook import Book, Field, Row, Title, both, field
from tracker.reports.shared import records
from tracker.results import Diff

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.columns import Columns

_LEVELS: Final = "Rows of each level (transport, link) state the same bytes: add up those of one level only."


def kernel_metrics(book: Book, diff: Diff, limit: int | None) -> None:
    """KernelMetricCompare: the metrics of the kernels that changed most; no sheet where none were measured."""
    fields = [
        field("Kernel", "text", "name", 48),
        field("Input Shape", "text", "input_shapes"),
        field("Core Type", "text", "core_type", 16),
        field("Metric", "text", "metric", 26),
        field("Kind", "text", "kind", 12),
        *both("Avg Duration (us)", "us", "average_ns"),
        *both("Mean", "number", "mean"),
        field("Delta", "number", "delta"),
        field("DIFF", "percent", "diff", 10),
        field("Share of the Change", "percent", "share"),
        field("Moved With the Kernel", "text", _moved, 12),
    ]
    _write(book, "KernelMetricCompare", fields, diff.tables["kernel_metrics"], limit)


def communication_links(book: Book, diff: Diff, limit: int | None) -> None:
    """CommunicationLinkCompare: all links of a transport together, and from rank to rank; no sheet without any."""
    fields = [
        field("Level", "text", "level", 11),
        field("Communication OP Name", "text", "kind", 24),
        field("Group Role", "text", "group_role", 12),
        field("Group Size", "count", "group_size", 11),
        field("Transport", "text", "transport", 11),
        field("From Rank", "count", "source_rank", 11),
        field("To Rank", "count", "target_rank", 11),
        *both("Calls", "count", "calls"),
        *both("Packets", "count", "packets"),
        *both("Size (KiB)", "kb", "bytes"),
        *both("Transit (us)", "us", "transit_ns"),
        field("Delta (us)", "us", "delta_ns"),
        field("DIFF", "percent", "diff", 10),
        field("Status", "text", lambda row: row["status"], 12),
        *both("Bandwidth (GB/s)", "number", "bandwidth_gb_per_s"),
        *both("Large Packets", "percent", "large_packet_ratio"),
    ]
    _write(book, "CommunicationLinkCompare", fields, diff.tables["communication_links"], limit, above=[Title(_LEVELS)])


def counters(book: Book, diff: Diff, limit: int | None) -> None:
    """CounterCompare: what both profilers counted in tables of their own; no sheet where they counted nothing."""
    fields = [
        field("Source", "text", "source", 20),
        field("Name", "text", "name", 40),
        field("Measurement", "text", "attribute", 24),
        *both("Values", "count", "calls"),
        *both("Mean", "number", "mean"),
        field("Delta", "number", "delta"),
        field("DIFF", "percent", "diff", 10),
        *both("Min", "number", "min"),
        *both("Max", "number", "max"),
    ]
    _write(book, "CounterCompare", fields, diff.tables["counters"], limit)


def _moved(row: Row) -> str | None:
    return None if row["moved"] is None else "yes" if row["moved"] else "no"


def _write(
    book: Book,
    title: str,
    fields: Sequence[Field],
    table: Columns,
    limit: int | None,
    above: Sequence[Title] = (),
) -> None:
    if not len(table):
        return
    rows = records(table.head(limit))
    book.sheet(title, fields, (("", row) for row in rows), len(rows), above=above)
