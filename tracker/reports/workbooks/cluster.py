"""The workbook of the ranks of a run: a sheet per table, beside three of them the sheet that Ascend's tools write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracker.reports.rows import Row, records
from tracker.reports.view import choose_tables
from tracker.reports.workbook import Book, field
from tracker.reports.workbooks.tables import write_summary

if TYPE_CHECKING:
    from tracker.reports.document import Look
    from tracker.reports.view import View
    from tracker.results import Cluster


def _megabytes(row: Row) -> float | None:
    return None if row["bytes"] is None else row["bytes"] / 1e6


_BESIDE: Final = {
    "ranks": ("StepTraceTime", (
        field("Type", lambda row: "rank", 8), field("Index", "rank", 8), field("Stage", "stage", 8, "count"),
        field("Step Time(us)", "step_ns", kind="us"), field("Computing(us)", "compute_ns", kind="us"),
        field("Communication(Not Overlapped)(us)", "exposed_communication_ns", kind="us"),
        field("Overlapped(us)", "overlap_ns", kind="us"), field("Communication(us)", "communication_ns", kind="us"),
        field("Free(us)", "idle_ns", kind="us"), field("Bubble(us)", "bubble_ns", kind="us"),
        field("Preparing(us)", "preparing_ns", kind="us"),
    )),
    "groups": ("CommunicationTime", (
        field("Communication Group", "ranks", 24, "text"), field("Group Role", "role", 12),
        field("Communication OP Name", "kind", 24), field("Calls", "calls"),
        field("Elapse Time(ms)", "elapse_ns", kind="ms"), field("Transit Time(ms)", "transit_ns", kind="ms"),
        field("Wait Time(ms)", "wait_ns", kind="ms"),
        field("Wait Time Ratio", lambda row: row["wait_ns"] / row["elapse_ns"]
              if row["wait_ns"] is not None and row["elapse_ns"] else None, kind="percent"),
        field("Transit Size(MB)", _megabytes, kind="mean"), field("Bus Bandwidth(GB/s)", "bus_gb_per_s", kind="mean"),
    )),
    "links": ("CommunicationMatrix", (
        field("Src Rank Id", "source_rank", 12), field("Dst Rank Id", "target_rank", 12),
        field("Transport Type", "transport", 16), field("Transit Size(MB)", _megabytes, kind="mean"),
        field("Transit Time(ms)", "transit_ns", kind="ms"), field("Bandwidth(GB/s)", "bandwidth_gb_per_s", kind="mean"),
        field("Verdict", "verdict", 12),
    )),
}  # fmt: skip
"""Section -> a sheet beside it, with the columns of Ascend's cluster analysis: MB and GB are 1e6 and 1e9 bytes."""


def write(book: Book, found: Cluster, view: View, look: Look) -> None:
    """Write the summary, then each table that has rows."""
    write_summary(book, found, view)
    tables: dict[str, Any] = choose_tables(found, look)
    for name, rows in tables.items():
        if not len(rows):
            continue
        if name in _BESIDE:
            title, fields = _BESIDE[name]
            listed = records(rows)
            if name == "ranks":
                listed.sort(key=lambda row: row["rank"])
            book.sheet(title, fields, listed)
        book.table(name.capitalize(), rows)
