"""The document of the single calls of one name in a run: how they differ, and the slowest ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from tracker.reports.cells import ColumnsOf, cell, form, number, readable, share
from tracker.reports.commands import command_of, options_of
from tracker.reports.document import CUT_CALL, NAME, UNDER, Block, Column, Document, Look, Table, Target, group
from tracker.reports.rows import plain, rows_of, table_of
from tracker.reports.text import ROWS
from tracker.reports.view import View
from tracker.results.calls import NOUNS, CallList, HistogramRow, ListedCall
from tracker.units import format_ns, format_numbers, time_unit

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.results.screens import Rows

_MOST_OF_PAGE: Final = 10_000
"""Calls that a page and a workbook have: who needs more reads CSV or JSON."""
_MEASURES: Final = {
    "duration_ns": "time", "host_total_ns": "time on the host", "device_total_ns": "time on the device",
}  # fmt: skip
_KINDS: Final = {
    "operator": "calls of an operator", "kernel": "calls of a kernel", "collective": "calls of a collective",
    "idle": "gaps of idle time",
}  # fmt: skip


def document(found: CallList, look: Look) -> Document:
    """Return the spread of the calls, their histogram and the slowest ones; of calls that cannot be listed what the
    rows of the run say.
    """
    return Document(
        title=_title(found),
        headline=found.headline,
        remarks=(f"{found.missing}.",) if found.missing else (),
        blocks=tuple(_blocks(found, look)),
        notes=found.notes,
        next_commands=tuple(_next(found, look)),
    )


def _title(found: CallList) -> str:
    run = found.run
    reference = str(run.get("reference") or f"run:{run.get('run_id')}")
    steps = f", steps {format_numbers(found.options.steps)}" if found.options.steps else ""
    return f"{reference}: {_KINDS[found.kind]}{steps}"


def _blocks(found: CallList, look: Look) -> Iterator[Block]:
    if found.spread is None:
        yield _stored(found)
        return
    yield _spread(found)
    yield _histogram(found)
    yield _calls(found, look)


def _stored(found: CallList) -> Table:
    """Return what the rows say of all calls together."""
    stored = found.stored
    text = form("ns", [stored.minimum_ns, stored.mean_ns, stored.maximum_ns])
    columns = [
        Column("calls", lambda row: number(row.calls)),
        Column("total", lambda row: format_ns(row.total_ns)),
        Column("minimum", lambda row: text(row.minimum_ns)),
        Column("mean", lambda row: text(row.mean_ns)),
        Column("maximum", lambda row: text(row.maximum_ns)),
    ]
    return table_of(f"What is stored of them, {_MEASURES[found.measure]}", columns, [stored], is_first=True)


def _spread(found: CallList) -> Table:
    """Return the quartiles of the time of a call."""
    spread = found.spread
    assert spread is not None
    times = {
        "minimum": spread.minimum_ns, "lower quartile": spread.lower_quartile_ns, "median": spread.median_ns,
        "upper quartile": spread.upper_quartile_ns, "maximum": spread.maximum_ns, "mean": spread.mean_ns,
    }  # fmt: skip
    columns = [
        Column(NOUNS[found.kind] + "s", lambda row: number(row.calls)),
        Column("total", lambda row: format_ns(row.total_ns)),
        # the longest call is often thousands of times as long as the shortest one
        group(map(Column, times), lambda row: [format_ns(ns) for ns in times.values()]),
    ]
    title = f"{_MEASURES[found.measure].capitalize()} of a {NOUNS[found.kind]}"
    return table_of(title, columns, [spread], is_first=True)


def _histogram(found: CallList) -> Table:
    """Return how many calls took how long."""
    unit = time_unit(*(row.to_ns for row in found.histogram))

    def text(ns: float) -> str:
        # rows of short calls need a smaller unit than those of long ones
        return format_ns(ns, unit if ns >= unit[0] / 100 else None) if ns else "0"

    def ends(row: HistogramRow) -> str:
        return text(row.from_ns) if row.from_ns == row.to_ns else f"{text(row.from_ns)} to {text(row.to_ns)}"

    columns = [
        Column(_MEASURES[found.measure], ends),
        Column(f"{NOUNS[found.kind]}s", lambda row: number(row.calls)),
        Column("share", lambda row: share(row.share)),
    ]
    return table_of(
        f"How long a {NOUNS[found.kind]} takes",
        columns,
        found.histogram,
        is_first=True,
        bars=lambda row: row.share,
        has_shares=True,
    )


def _calls(found: CallList, look: Look) -> Table:
    """Return the slowest calls."""
    table = found.calls_table
    limit = look.rows(ROWS)
    if look.has_drawings:
        limit = min(limit or _MOST_OF_PAGE, _MOST_OF_PAGE)
    rows = rows_of(ListedCall, table.head(limit))
    has_many_ranks = len(set(table.listed("rank"))) > 1
    longest = form("ns", [_measured_ns(found, row) for row in rows[:1]])
    moment = form("ns", [row.start_ns for row in rows])
    names = {row.name for row in rows}
    columns = [
        _call.number(NOUNS[found.kind], lambda row: longest(_measured_ns(found, row))),
        *_times_beside(found, rows),
        _call.number("start", lambda row: moment(row.start_ns)),
        *_optional(table, "end_ns", _call.number("end", lambda row: moment(row.end_ns), drop=2)),
        *([_call.number("rank", lambda row: number(row.rank))] if has_many_ranks else []),
        _call.number("step", lambda row: "outside" if row.step is None else str(row.step)),
        *_optional(table, "stream", _call.number("stream", lambda row: _plain(row.stream))),
        *_optional(table, "task_id", _call.number("task id", lambda row: _plain(row.task_id))),
        *_optional(table, "correlation", _call.number("correlation", lambda row: _plain(row.correlation), drop=4)),
        *_optional(table, "thread", _call.text("thread", lambda row: row.thread or "", drop=3)),
        *_optional(table, "cause", _call.text("cause", lambda row: row.cause or "")),
        *_optional(table, "op", _call.text("launched by", lambda row: readable(row.op), **NAME)),
        *_optional(table, "group_role", _call.text("group", lambda row: row.group_role or "")),
        *_optional(table, "peer", _call.number("peer", lambda row: _plain(row.peer), drop=1)),
        *_optional(table, "bytes", _call.number("bytes", lambda row: cell(row.bytes, "bytes"), drop=1)),
        *([_call.text("name", lambda row: readable(row.name), **NAME)] if len(names) > 1 else []),
        *_optional(table, "input_shapes", _call.text("input shapes", lambda row: row.input_shapes or "", **UNDER)),
    ]  # fmt: skip
    return table_of(
        f"{NOUNS[found.kind].capitalize()}s, the longest first", columns, rows, more=len(table) - len(rows),
        is_first=True, links=lambda row: _link(found, row), main=0,
    )  # fmt: skip


_call: Final = ColumnsOf(ListedCall)


def _measured_ns(found: CallList, row: ListedCall) -> int | None:
    """Return the time by which the calls are ordered."""
    time_ns: int | None = getattr(row, found.measure)
    return time_ns


def _times_beside(found: CallList, rows: Sequence[ListedCall]) -> Iterator[Column]:
    """Yield the other times of an operator."""
    if found.kind != "operator":
        return
    if any(row.duration_ns for row in rows) and found.measure != "host_total_ns":
        yield _call.number("on the host", lambda row: format_ns(row.duration_ns), drop=1)
    if any(row.host_self_ns for row in rows):
        yield _call.number("host self", lambda row: format_ns(row.host_self_ns), drop=1)
    if any(row.device_self_ns for row in rows):
        yield _call.number("device self", lambda row: format_ns(row.device_self_ns), drop=1)


def _optional(table: Columns, name: str, column: Column) -> list[Column]:
    """Return the column of what some calls state under `name`, none where no call does."""
    return [column] if table.has(name) else []


def _plain(value: int | None) -> str:
    """Return a number that names something, without separators."""
    return "" if value is None else str(value)


def _link(found: CallList, row: ListedCall) -> Target | None:
    """Return the step of a call, cut out of the trace of its rank, with what to select in it."""
    run_id = found.run.get("run_id")
    if run_id is None or row.step is None or row.rank not in found.traced_ranks:
        return None
    if row.trace_ns is None or row.end_ns is None:
        return None
    return Target(
        CUT_CALL,
        (
            ("RUN", str(run_id)), ("--step", str(row.step)), ("--rank", str(row.rank)),
            ("ts", str(row.trace_ns)), ("dur", str(max(row.end_ns - row.start_ns, 0))),
        ),
    )  # fmt: skip


def _next(found: CallList, look: Look) -> Iterator[str]:
    reference = str(found.run.get("reference"))
    chosen = found.options
    words = options_of(
        chosen, ("--calls", chosen.calls), ("--calls-of", chosen.calls_of), ("--shapes", chosen.shapes),
        ("--step", format_numbers(chosen.steps)), ("--step-kind", chosen.step_kind),
    )  # fmt: skip
    if found.spread is not None and not look.details and len(found.calls_table) > ROWS:
        yield command_of(("tracker", "show"), [reference], [*words, "--details"])
    slowest = next((row for row in rows_of(ListedCall, found.calls_table.head(1)) if _link(found, row)), None)
    run_id = found.run.get("run_id")
    if slowest is not None and run_id is not None:
        options = ["--step", str(slowest.step), "--rank", str(slowest.rank), "-o", "step.json.gz"]
        yield command_of(("tracker", "cut"), [f"run:{run_id}"], options)


def list_json(found: CallList, look: Look) -> dict[str, Any]:
    """Return what the list says of its calls, then the calls, the longest first, and the histogram."""
    document = {name: plain(getattr(found, name)) for name in found.json_fields}
    # the rows of a long list are written one after the other
    document["calls"] = found.calls_table.head(look.rows(None))
    document["histogram"] = plain(found.histogram)
    return document


def list_sheets(found: CallList, look: Look) -> dict[str, Rows]:
    """Return the longest calls and the histogram: a workbook of all of a long list would take half a minute."""
    limit = min(look.rows(None) or _MOST_OF_PAGE, _MOST_OF_PAGE)
    if look.rows(None) is None and len(found.calls_table) > limit:
        every = len(found.calls_table)
        look.tell(f"the workbook has the longest {limit:,} of {every:,} {NOUNS[found.kind]}s; CSV and JSON have all")
    return found.chosen_tables(limit=limit)


VIEW = View(document, json=list_json, sheets=list_sheets)
