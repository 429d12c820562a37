"""The workbook of the ranks of a run: a sheet per table, beside three of them the sheet that Ascend's tools write."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from tracker.reports.rows import rows_of
from tracker.reports.view import choose_tables
from tracker.reports.workbook import Book, Field, FieldsOf
from tracker.reports.workbooks.tables import write_summary
from tracker.results.cluster import GroupRow, RankLinkRow, RankRow

if TYPE_CHECKING:
    from tracker.reports.document import Look
    from tracker.reports.view import View
    from tracker.results import Cluster


def _megabytes(size: float | None) -> float | None:
    return None if size is None else size / 1e6


def _wait_ratio(row: GroupRow) -> float | None:
    return row.wait_ns / row.elapse_ns if row.wait_ns is not None and row.elapse_ns else None


_rank, _group, _link = FieldsOf(RankRow), FieldsOf(GroupRow), FieldsOf(RankLinkRow)


class _Beside(Struct, frozen=True):
    """A sheet beside a table, with the columns of Ascend's cluster analysis. `kind`: of the rows of the table."""

    title: str
    kind: type[Struct]
    fields: Sequence[Field]


_BESIDE: Final = {
    "ranks": _Beside("StepTraceTime", RankRow, (
        _rank.field("Type", lambda row: "rank", 8), _rank.field("Index", lambda row: row.rank, 8, "count"),
        _rank.field("Stage", lambda row: row.stage, 8, "count"),
        _rank.field("Step Time(us)", lambda row: row.step_ns, kind="us"),
        _rank.field("Computing(us)", lambda row: row.compute_ns, kind="us"),
        _rank.field("Communication(Not Overlapped)(us)", lambda row: row.exposed_communication_ns, kind="us"),
        _rank.field("Overlapped(us)", lambda row: row.overlap_ns, kind="us"),
        _rank.field("Communication(us)", lambda row: row.communication_ns, kind="us"),
        _rank.field("Free(us)", lambda row: row.idle_ns, kind="us"),
        _rank.field("Bubble(us)", lambda row: row.bubble_ns, kind="us"),
        _rank.field("Preparing(us)", lambda row: row.preparing_ns, kind="us"),
    )),
    "groups": _Beside("CommunicationTime", GroupRow, (
        _group.field("Communication Group", lambda row: row.ranks, 24),
        _group.field("Group Role", lambda row: row.role, 12),
        _group.field("Communication OP Name", lambda row: row.kind, 24),
        _group.field("Calls", lambda row: row.calls, kind="count"),
        _group.field("Elapse Time(ms)", lambda row: row.elapse_ns, kind="ms"),
        _group.field("Transit Time(ms)", lambda row: row.transit_ns, kind="ms"),
        _group.field("Wait Time(ms)", lambda row: row.wait_ns, kind="ms"),
        _group.field("Wait Time Ratio", _wait_ratio, kind="percent"),
        _group.field("Transit Size(MB)", lambda row: _megabytes(row.bytes), kind="mean"),
        _group.field("Bus Bandwidth(GB/s)", lambda row: row.bus_gb_per_s, kind="mean"),
    )),
    "links": _Beside("CommunicationMatrix", RankLinkRow, (
        _link.field("Src Rank Id", lambda row: row.source_rank, 12, "count"),
        _link.field("Dst Rank Id", lambda row: row.target_rank, 12, "count"),
        _link.field("Transport Type", lambda row: row.transport, 16),
        _link.field("Transit Size(MB)", lambda row: _megabytes(row.bytes), kind="mean"),
        _link.field("Transit Time(ms)", lambda row: row.transit_ns, kind="ms"),
        _link.field("Bandwidth(GB/s)", lambda row: row.bandwidth_gb_per_s, kind="mean"),
        _link.field("Verdict", lambda row: row.verdict, 12),
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
            beside = _BESIDE[name]
            listed = rows_of(beside.kind, rows)
            if beside.kind is RankRow:
                listed.sort(key=attrgetter("rank"))
            book.sheet(beside.title, beside.fields, listed)
        book.table(name.capitalize(), rows)
