"""The document of one finding: every test that decided, its runs, and its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from tracker.reports import cells
from tracker.reports.cells import KINDS, col, form, number, of, readable, signed, sparkline
from tracker.reports.commands import command
from tracker.reports.document import (
    NAME,
    SENTENCE,
    UNDER,
    Block,
    Column,
    Document,
    Lines,
    Look,
    Table,
    Target,
    Trend,
    few,
    group,
)
from tracker.reports.rows import Row, plain, records, table_of
from tracker.reports.text import shorten
from tracker.reports.view import View, choose_tables
from tracker.reports.views import findings
from tracker.results import NOBODY, REPLACED_BY, Advice, ExplainedFinding
from tracker.results.verdicts import TERMS
from tracker.units import format_moment

if TYPE_CHECKING:
    from tracker.results.screens import Rows

_RUNS: Final = 2
_SHAPES: Final = 60
_CAUSE: Final = 300
"""Characters of a headline and of a remark."""
_LINES: Final = 2
"""Events and changes of the environment on a first screen."""


def document(found: ExplainedFinding, look: Look) -> Document:
    """Return the tests, the runs that they rest on, what users and versions did to it, and what else changed."""
    row: Row = plain(dict(found.finding))
    name = " ".join(
        filter(None, (findings.name_of(row), shorten(row["input_shapes"] or "", _SHAPES), cells.part_of(row)))
    )
    kind = "" if REPLACED_BY in row["name"] else f" ({KINDS[row['kind']]})"
    text = form(row["unit"], [row["baseline_value"], row["candidate_value"]])
    good = row["good_version"]
    since = f", good until {good}" if good and good != row["version"] else ""
    incident = f", I-{row['incident_id']}" if row["incident_id"] is not None else ""
    state = f"{findings.state_text(row)}{incident}{since}; series {row['series_id']}"
    before, after = text(row["baseline_value"]), text(row["candidate_value"])
    blocks = tuple(one for one in _blocks(found, row, look) if isinstance(one, Lines) or one.rows)
    is_cut = any("--details" in str(one) or not one.is_first or getattr(one, "more", 0) for one in blocks)
    so_far = row["so_far"]
    remarks = [f"{so_far[:1].upper()}{so_far[1:]}."] if so_far else []
    remarks += [f"Cause: {shorten(row['cause'], _CAUSE)}."] if row["cause"] else []
    calls, each = row["by_calls"], row["by_time_per_call"]
    if calls is not None and each is not None:
        form_of = form("ns", [calls, each])
        by_calls, by_each = signed(form_of(calls), calls), signed(form_of(each), each)
        count = cells.calls(row["baseline_calls"], row["candidate_calls"])
        more = "fewer" if (row["candidate_calls"] or 0) < (row["baseline_calls"] or 0) else "more"
        each_word = "faster" if each < 0 else "slower"
        remarks.append(f"Calls {count}: {by_calls} from {more} calls, {by_each} from {each_word} calls.")
    following = [command("tracker", "history", str(row["series_id"]))]
    following += findings.to_settle(str(row["finding_id"]), [row])
    if is_cut and not look.details:
        following.append(command("tracker", "explain", str(row["finding_id"]), "--details"))
    # a peak is one of the whole run, a rate is of time
    per_step = " per step" if row["kind"] != "run" or row["unit"] == "ns" else ""
    return Document(
        title=f"Finding {row['finding_id']}: {findings.where_of(row)}; {state}",
        headline=f"{name}{kind} in {row['version']}: {before} -> {after}{per_step} ({findings.diff_text(row)})",
        verdict=findings.verdict_of(row),
        tone="worse" if row["direction"] == "regression" else "better",
        remarks=tuple(remarks),
        blocks=blocks,
        notes=few(found.notes, look),
        next_commands=tuple(following),
    )


def _blocks(found: ExplainedFinding, row: Row, look: Look) -> Iterator[Block]:
    passes = {True: "passes", False: "FAILS"}
    columns = [Column("", lambda test: passes.get(test["passes"], ""), left=True), Column("", _sentence, **SENTENCE)]
    tests = records(found.tables["tests"])
    so_far = row["so_far"] or ""
    said = " ".join([so_far, *(test["meaning"] for test in tests)])
    terms = cells.glosses(term for term in TERMS if f"{term}:" in said)
    yield table_of(
        "Tests", columns, tests, is_first=True, note=terms, tone=lambda test: "worse" * (test["passes"] is False)
    )
    yield _runs(found, row, look)
    events = [describe_event(one) for one in records(found.tables["events"])]
    if (left_out := 0 if look.details else len(events) - 1 - _LINES) > 0:
        events[1:-_LINES] = [f"{left_out} more: --details"]
    yield Lines("Events", tuple(events), is_wrapped=True)
    if found.advice:
        yield what_to_do(found.advice, row)

    def ends(fact: Row) -> list[str]:
        both = [fact["before"], fact["after"]]
        return [*map(form("bytes" if fact["what"] == "bytes" else "count", both), both)]

    columns = [Column("what", lambda fact: f"{fact['what']} of {readable(fact['name'])}", **NAME)]
    columns += [col("of", "input_shapes", str, **UNDER), group(map(Column, ("before", "after")), ends)]
    yield table_of(
        f"Changed for certain in {row['version']} (counts and sizes, which need no test)",
        columns,
        records(found.tables["facts"]),
    )
    changed = findings.changed_with(records(found.tables["environment"]), None if look.details else _LINES)
    yield Lines("", changed, is_wrapped=True)


def describe_event(one: Row) -> str:
    """Return an event of a finding in a line: what happened, who did it, when and why."""
    when = f" on {format_moment(one['when_ns'])} UTC" if one["when_ns"] else ""
    # what tracker judged is nobody's word
    by = f"by {one['who']}" if one["who"] != NOBODY else ""
    what = " ".join(filter(None, (one["version"], one["state"], by)))
    return ": ".join(filter(None, (f"{what}{when}", one["reason"])))


def what_to_do(advice: Iterable[Advice], finding: Row) -> Lines:
    """List what could undo the regression `finding`, each piece once."""
    sides = [("side", str(finding[name])) for name in ("good_version", "version") if finding[name]]
    link = Target("advice", (*sides, ("--workload", str(finding["workload"]))))
    return Lines("What to do", tuple(dict.fromkeys(item.sentence for item in advice)), is_wrapped=True, link=link)


def _sentence(test: Row) -> str:
    """Say what a test measured, its limit, and who set that."""
    sentence = str(test["meaning"])
    value, limit = (format_value(test["test"], test[name]) for name in ("value", "limit"))
    if value:
        sentence += f": {value}"
    if limit:
        bound = "at most" if test["test"] == "q" else "at least"
        sentence += f", {bound} {limit}"
    if test["limit_from"] not in (None, "default"):
        sentence += f" ({test['limit_from']})"
    return sentence


def format_value(test: str, value: float | None) -> str:
    """Return what a test measured, or its limit; "" for none."""
    if value is None:
        return ""
    if test.startswith("runs"):
        return number(value)
    return f"{value:.3g}" if test == "q" else f"{value * 100:.2f} %"


def _runs(found: ExplainedFinding, finding: Row, look: Look) -> Table:
    """Return the runs from old to new; on a first screen the newest of the baseline, and those that show the change."""
    rows = records(found.tables["runs"])
    text = form(finding["unit"], [row["value"] for row in rows])
    sides = [[row for row in rows if row["side"] == side] for side in ("baseline", "candidate")]
    part = rows if look.details else [*sides[0][-_RUNS:], *sides[1][:_RUNS]]
    columns = [
        Column("run", of("run_id", str)), col("version"), col("part", "side"),
        Column("value", lambda run: text(run["value"])), col("calls", drop=2),
    ]  # fmt: skip
    if finding["unit"] == "ns" and finding["kind"] != "run":
        # what all operators share is removed from the changes of operators alone
        columns.append(col("machine-wide drift", "shared_factor", drop=1))
    columns.append(col("change %", "change"))
    tone = "worse" if finding.get("direction") == "regression" else "better"
    points = tuple(
        (f"run {row['run_id']}", row["value"], (), "", tone if row["side"] == "candidate" else "") for row in part
    )
    chart = Trend(finding["unit"], points) if len(points) > 1 else None
    return table_of(
        "Runs", columns, part, more=len(rows) - len(part), is_first=True, chart=chart,
        lead=sparkline([row["value"] for row in rows]), tone=lambda run: "strong" * (run["side"] == "candidate"),
        links=lambda run: Target("run", (("RUN", str(run["run_id"])),)),
    )  # fmt: skip


def list_sheets(found: ExplainedFinding, look: Look) -> dict[str, Rows]:
    """Return the finding itself, then its tables."""
    return {"finding": [plain(dict(found.finding))], **choose_tables(found, look)}


VIEW = View(document, sheets=list_sheets)
