"""The document of one finding: every test that decided, its runs, and its life."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from tracker.reports import cells
from tracker.reports.cells import form, number, readable, signed, sparkline
from tracker.reports.commands import command
from tracker.reports.document import NAME, UNDER, Column, Document, Table, Trend, table
from tracker.reports.look import Look
from tracker.reports.rows import Row, plain, records
from tracker.reports.views.findings import CHANGES, KINDS, VERDICTS, diff_text, state_text
from tracker.results import ExplainedFinding
from tracker.units import MISSING_TEXT, counted, format_diff, format_moment

_RUNS: Final = 12
_RUNS_OF_DETAILS: Final = 30
_FACTS: Final = 6


def document(found: ExplainedFinding, look: Look) -> Document:
    """The tests, the runs that they rest on, what users and versions did to it, and what else changed."""
    row: Row = plain(dict(found.finding))
    name = " ".join(filter(None, (readable(row["name"]), row["input_shapes"], row["part"])))
    where = ", ".join(filter(None, (row["workload"], row["device"], row["configuration"])))
    text = form(row["unit"], [row["baseline_value"], row["candidate_value"]])
    good = row["good_version"]
    since = f", good until {good}" if good and good != row["version"] else ""
    incident = f", I-{row['incident_id']}" if row["incident_id"] is not None else ""
    before, after = text(row["baseline_value"]), text(row["candidate_value"])
    return Document(
        title=f"Finding {row['finding_id']}: {where}; {state_text(row)}{incident}{since}",
        headline=f"{name} ({KINDS[row['kind']]}) in {row['version']}: {before} -> {after} per step ({diff_text(row)})",
        verdict=CHANGES.get((row["direction"], row["change"])) or VERDICTS[row["direction"]],
        tone="worse" if row["direction"] == "regression" else "better",
        remarks=tuple(_remarks(row)),
        blocks=tuple(one for one in _blocks(found, row, look) if one.rows or one.note),
        notes=tuple(f"Note: {note}" for note in found.notes),
        next_commands=tuple(_next(row)),
    )


def _remarks(row: Row) -> Iterator[str]:
    if row["cause"]:
        yield f"Cause: {row['cause']}."
    calls, each = row["by_calls"], row["by_time_per_call"]
    if calls is not None and each is not None:
        text = form("ns", [calls, each])
        count = cells.calls(row["baseline_calls"], row["candidate_calls"])
        by_each = signed(text(each), each)
        yield f"Calls {count}: {signed(text(calls), calls)} by their number, {by_each} by the time of each."


def _blocks(found: ExplainedFinding, row: Row, look: Look) -> Iterator[Table]:
    yield _tests(records(found.tests))
    yield _runs(found, row, _RUNS_OF_DETAILS if look.details else _RUNS)
    columns = [Column(name, left=True) for name in ("version", "state", "by", "when (UTC)")]
    events = records(found.events)
    lines = [
        ("", [one["version"] or "", one["state"], one["who"], format_moment(one["when_ns"]) if one["when_ns"] else "-"])
        for one in events
    ]
    life = replace(table("Life", columns, lines, is_first=True), below=tuple(one["reason"] or "" for one in events))
    yield life
    lines = []
    for fact in records(found.facts):
        text = form("bytes" if fact["what"] == "bytes" else "count", [fact["before"], fact["after"]])
        name = f"{fact['what']} of {readable(fact['name'])}"
        lines.append(("", [name, fact["input_shapes"], text(fact["before"]), text(fact["after"])]))
    columns = [Column("what", **NAME), Column("of", **UNDER), Column("before"), Column("after")]
    if lines:
        kept = lines if look.details else lines[:_FACTS]
        title = f"Certain in {row['version']}, without a test"
        yield table(title, columns, kept, more=len(lines) - len(kept), is_first=True)
    columns = [Column("what else changed", **NAME), Column("before", left=True), Column("after", left=True)]
    lines = [
        ("", [change["key"], change["before"] or MISSING_TEXT, change["after"] or MISSING_TEXT])
        for change in records(found.environment)
    ]
    if lines:
        yield table("", columns, lines, is_first=True)


def _tests(rows: list[Row]) -> Table:
    columns = [Column("test", left=True), Column("value"), Column("limit"), Column("passes", left=True)]
    columns.append(Column("meaning", left=True, elastic=True))
    lines = []
    for row in rows:
        set_by = f"; {row['limit_from']}" if row["limit_from"] not in (None, "default") else ""
        values = [_value(row["test"], row["value"]), _value(row["test"], row["limit"])]
        passes = {None: "", True: "yes", False: "no"}[row["passes"]]
        tone = "worse" if row["passes"] is False else ""
        lines.append((tone, [row["test"], *values, passes, f"{row['meaning']}{set_by}"]))
    return table("Tests", columns, lines, is_first=True)


def _value(test: str, value: float | None) -> str:
    if value is None:
        return ""
    if test.startswith("runs"):
        return number(value)
    return f"{value:.3g}" if test == "q" else f"{value * 100:.2f} %"


def _runs(found: ExplainedFinding, finding: Row, most: int) -> Table:
    """The runs from old to new, those that the verdict rests on; what is left out is at either end."""
    rows = records(found.runs)
    text = form(finding["unit"], [row["value"] for row in rows])
    first = next((at for at, row in enumerate(rows) if row["side"]), 0)
    start = max(0, min(first - 2, len(rows) - most))
    part = rows[start : start + most]
    columns = [Column("run"), Column("version", left=True), Column("part", left=True), Column("value")]
    columns += [Column("calls", drop=2), Column("all operators", drop=1), Column("change %")]
    lines = [
        (
            "strong" if row["side"] == "candidate" else "",
            [
                str(row["run_id"]), row["version"], row["side"] or MISSING_TEXT, text(row["value"]),
                number(row["calls"]), format_diff(row["shared_factor"]), format_diff(row["change"]),
            ],
        )
        for row in part
    ]  # fmt: skip
    earlier = f"; {counted(start, 'earlier run')} left out" if start else ""
    lead = f"{sparkline([row['value'] for row in rows])}{earlier}"
    tone = "worse" if finding.get("direction") == "regression" else "better"
    points = tuple(
        (f"run {row['run_id']}", row["value"], (), "", tone if row["side"] == "candidate" else "") for row in part
    )
    made = table("Runs", columns, lines, more=len(rows) - start - len(part), is_first=True)
    return replace(made, lead=lead, chart=Trend(finding["unit"], points) if len(points) > 1 else None)


def _next(row: Row) -> Iterator[str]:
    yield command("tracker", "history", str(row["series_id"]))
    if row["state"] in ("new", "persisting"):
        yield f'tracker ack {row["finding_id"]} --reason "..."'
        yield f'tracker expect {row["finding_id"]} --reason "..."'
