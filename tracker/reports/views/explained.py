"""The document of one finding: every test that decided, its runs, and its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tracker.reports import cells
from tracker.reports.cells import form, number, readable, signed, sparkline
from tracker.reports.commands import command
from tracker.reports.document import (
    NAME,
    SENTENCE,
    UNDER,
    Block,
    Column,
    Document,
    Lines,
    Table,
    Target,
    Trend,
    few,
    table,
)
from tracker.reports.look import Look
from tracker.reports.rows import Row, plain, records
from tracker.reports.text import shorten
from tracker.reports.views.findings import (
    CHANGES,
    KINDS,
    VERDICTS,
    changed_with,
    diff_text,
    name_of,
    state_text,
    where_of,
)
from tracker.results import REPLACED_BY, Advice, ExplainedFinding
from tracker.units import MISSING_TEXT, format_diff, format_moment

_RUNS: Final = 2
_SHAPES: Final = 60
_CAUSE: Final = 300
"""Characters of a headline and of a remark."""
_LINES: Final = 2
"""Events and changes of the environment on a first screen."""


def document(found: ExplainedFinding, look: Look) -> Document:
    """The tests, the runs that they rest on, what users and versions did to it, and what else changed."""
    row: Row = plain(dict(found.finding))
    name = " ".join(filter(None, (name_of(row), shorten(row["input_shapes"] or "", _SHAPES), row["part"])))
    kind = "" if REPLACED_BY in row["name"] else f" ({KINDS[row['kind']]})"
    text = form(row["unit"], [row["baseline_value"], row["candidate_value"]])
    good = row["good_version"]
    since = f", good until {good}" if good and good != row["version"] else ""
    incident = f", I-{row['incident_id']}" if row["incident_id"] is not None else ""
    state = f"{state_text(row)}{incident}{since}; series {row['series_id']}"
    before, after = text(row["baseline_value"]), text(row["candidate_value"])
    blocks = tuple(one for one in _blocks(found, row, look) if isinstance(one, Lines) or one.rows)
    is_cut = any("--details" in str(one) or not one.is_first or getattr(one, "more", 0) for one in blocks)
    # a peak is one of the whole run, a rate is of time
    per_step = " per step" if row["kind"] != "run" or row["unit"] == "ns" else ""
    return Document(
        title=f"Finding {row['finding_id']}: {where_of(row)}; {state}",
        headline=f"{name}{kind} in {row['version']}: {before} -> {after}{per_step} ({diff_text(row)})",
        verdict=CHANGES.get((row["direction"], row["change"])) or VERDICTS[row["direction"]],
        tone="worse" if row["direction"] == "regression" else "better",
        remarks=tuple(_remarks(row)),
        blocks=blocks,
        notes=few(found.notes, look),
        next_commands=tuple(_next(row)) + ("--details",) * (is_cut and not look.details),
    )


def _remarks(row: Row) -> Iterator[str]:
    if row["cause"]:
        yield f"Cause: {shorten(row['cause'], _CAUSE)}."
    calls, each = row["by_calls"], row["by_time_per_call"]
    if calls is not None and each is not None:
        text = form("ns", [calls, each])
        count = cells.calls(row["baseline_calls"], row["candidate_calls"])
        by_each = signed(text(each), each)
        yield f"Calls {count}: {signed(text(calls), calls)} by their number, {by_each} by the time of each."


def _blocks(found: ExplainedFinding, row: Row, look: Look) -> Iterator[Block]:
    lines = []
    for test in records(found.tests):
        passes = {True: "passes", False: "FAILS"}.get(test["passes"], "")
        lines.append(("worse" if passes == "FAILS" else "", [passes, _sentence(test)]))
    yield table("Tests", [Column("", left=True), Column("", **SENTENCE)], lines, is_first=True)
    yield _runs(found, row, look)
    events = []
    for one in records(found.events):
        when = f" on {format_moment(one['when_ns'])} UTC" if one["when_ns"] else ""
        what = " ".join(filter(None, (one["version"], one["state"], "by", one["who"])))
        events.append(": ".join(filter(None, (f"{what}{when}", one["reason"]))))
    if (left_out := 0 if look.details else len(events) - 1 - _LINES) > 0:
        events[1:-_LINES] = [f"{left_out} more: --details"]
    yield Lines("Events", tuple(events), is_wrapped=True)
    if found.advice:
        yield what_to_do(found.advice, row)
    lines = []
    for fact in records(found.facts):
        text = form("bytes" if fact["what"] == "bytes" else "count", [fact["before"], fact["after"]])
        name = f"{fact['what']} of {readable(fact['name'])}"
        lines.append(("", [name, fact["input_shapes"], text(fact["before"]), text(fact["after"])]))
    columns = [Column("what", **NAME), Column("of", **UNDER), Column("before"), Column("after")]
    yield table(f"Certain in {row['version']}, without a test", columns, lines)
    changed = changed_with(records(found.environment), None if look.details else _LINES)
    yield Lines("", changed, is_wrapped=True)


def what_to_do(advice: Iterable[Advice], finding: Row) -> Lines:
    """What could undo the regression `finding`, each piece once."""
    sides = [("side", str(finding[name])) for name in ("good_version", "version") if finding[name]]
    link = Target("advice", (*sides, ("--workload", str(finding["workload"]))))
    return Lines("What to do", tuple(dict.fromkeys(item.sentence for item in advice)), is_wrapped=True, link=link)


def _sentence(test: Row) -> str:
    """What a test measured, and its limit."""
    set_by = f" ({test['limit_from']})" if test["limit_from"] not in (None, "default") else ""
    value, limit = (_value(test["test"], test[name]) for name in ("value", "limit"))
    bound = "at most" if test["test"] == "q" else "at least"
    return f"{test['meaning']}{f': {value}' if value else ''}{f', {bound} {limit}' if limit else ''}{set_by}"


def in_short(tests: Sequence[Row]) -> str:
    """The tests that have a limit, in one line."""
    found = []
    for test in tests:
        value, limit = (_value(test["test"], test[name]) for name in ("value", "limit"))
        found += [f"{test['test']} {value} ({limit}{'' if test['passes'] else ', fails'})"] if value and limit else []
    return ", ".join(found)


def _value(test: str, value: float | None) -> str:
    if value is None:
        return ""
    if test.startswith("runs"):
        return number(value)
    return f"{value:.3g}" if test == "q" else f"{value * 100:.2f} %"


def _runs(found: ExplainedFinding, finding: Row, look: Look) -> Table:
    """The runs from old to new; of a first screen the newest of the baseline, and those that showed the change."""
    rows = records(found.runs)
    text = form(finding["unit"], [row["value"] for row in rows])
    sides = [[row for row in rows if row["side"] == side] for side in ("baseline", "candidate")]
    part = rows if look.details else [*sides[0][-_RUNS:], *sides[1][:_RUNS]]
    # what all operators share is removed from the changes of operators alone
    drifts = [Column("machine-wide drift", drop=1)] if finding["unit"] == "ns" and finding["kind"] != "run" else []
    columns = [Column("run"), Column("version", left=True), Column("part", left=True), Column("value")]
    columns += [Column("calls", drop=2), *drifts, Column("change %")]
    lines = []
    for row in part:
        line = [str(row["run_id"]), row["version"], row["side"] or MISSING_TEXT, text(row["value"])]
        line += [number(row["calls"]), *[format_diff(row["shared_factor"])] * len(drifts), format_diff(row["change"])]
        lines.append(("strong" if row["side"] == "candidate" else "", line))
    tone = "worse" if finding.get("direction") == "regression" else "better"
    points = tuple(
        (f"run {row['run_id']}", row["value"], (), "", tone if row["side"] == "candidate" else "") for row in part
    )
    chart = Trend(finding["unit"], points) if len(points) > 1 else None
    more, lead = len(rows) - len(part), sparkline([row["value"] for row in rows])
    links = tuple(Target("run", (("RUN", str(row["run_id"])),)) for row in part)
    return table("Runs", columns, lines, more=more, is_first=True, lead=lead, links=links, chart=chart)


def _next(row: Row) -> Iterator[str]:
    yield command("tracker", "history", str(row["series_id"]))
    if row["state"] in ("new", "persisting"):
        yield f'tracker ack {row["finding_id"]} --reason "..."'
        yield f'tracker expect {row["finding_id"]} --reason "..."'
