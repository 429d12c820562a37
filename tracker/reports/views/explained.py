"""The document of one finding: every test that decided, its runs, and its events."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tracker.reports import cells
from tracker.reports.cells import KINDS, ColumnsOf, form, number, readable, signed, sparkline
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
from tracker.reports.rows import plain, table_of
from tracker.reports.text import shorten
from tracker.reports.view import View, choose_tables
from tracker.reports.views import findings
from tracker.reports.views.finding_tests import notes_on_tests, sentence_of_test
from tracker.results import NOBODY, REPLACED_BY, Advice, ExplainedFinding
from tracker.results.findings import FindingEvent, FindingFact, FindingRun, FindingTest, ListedFinding
from tracker.results.verdicts import NIGHT_EFFECT, TERMS
from tracker.units import format_diff, format_moment

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
    row = found.finding
    name = " ".join(
        filter(
            None,
            (
                findings.name_of(row),
                shorten(row.input_shapes or "", _SHAPES),
                cells.part_of(row.kind, row.part, row.step_kind),
            ),
        )
    )
    kind = "" if REPLACED_BY in row.name else f" ({KINDS[row.kind]})"
    text = form(row.unit, [row.baseline_value, row.candidate_value])
    good = row.good_version
    since = f", good until {good}" if good and good != row.version else ""
    incident = f", I-{row.incident_id}" if row.incident_id is not None else ""
    state = f"{findings.state_text(row)}{incident}{since}; series {row.series_id}"
    before, after = text(row.baseline_value), text(row.candidate_value)
    blocks = tuple(one for one in _blocks(found, row, look) if isinstance(one, Lines) or one.rows)
    is_cut = any("--details" in str(one) or not one.is_first or getattr(one, "more", 0) for one in blocks)
    so_far = row.so_far
    remarks = [f"{words[:1].upper()}{words[1:]}." for words in (row.decided_by, so_far) if words]
    remarks += [f"Cause: {shorten(row.cause, _CAUSE)}."] if row.cause else []
    calls, each = row.by_calls, row.by_time_per_call
    if calls is not None and each is not None:
        form_of = form("ns", [calls, each])
        by_calls, by_each = signed(form_of(calls), calls), signed(form_of(each), each)
        count = cells.calls(row.baseline_calls, row.candidate_calls)
        more = "fewer" if (row.candidate_calls or 0) < (row.baseline_calls or 0) else "more"
        each_word = "faster" if each < 0 else "slower"
        remarks.append(f"Calls {count}: {by_calls} from {more} calls, {by_each} from {each_word} calls.")
    following = [command("tracker", "history", str(row.series_id))]
    following += findings.to_settle(str(row.finding_id), [row])
    following += findings.to_decide([row])
    if is_cut and not look.details:
        following.append(command("tracker", "explain", str(row.finding_id), "--details"))
    # a peak is one of the whole run, a rate is of time
    per_step = " per step" if row.kind != "run" or row.unit == "ns" else ""
    return Document(
        title=f"Finding {row.finding_id}: {findings.where_of(row)}; {state}",
        headline=f"{name}{kind} in {row.version}: {before} -> {after}{per_step} ({findings.diff_text(row)})",
        verdict=findings.verdict_of(row),
        tone="worse" if row.direction == "regression" else "better",
        remarks=tuple(remarks),
        blocks=blocks,
        notes=few(found.notes, look),
        next_commands=tuple(following),
    )


def _blocks(found: ExplainedFinding, row: ListedFinding, look: Look) -> Iterator[Block]:
    of_test, of_fact = ColumnsOf(FindingTest), ColumnsOf(FindingFact)
    columns = [of_test.text("", _passes), of_test.text("", sentence_of_test, **SENTENCE)]
    tests = found.rows.tests
    terms = {term for term in TERMS if f"{term}:" in row.so_far}
    terms |= {NIGHT_EFFECT} if any(test.test == "nights" for test in tests) else set()
    note = "; ".join(filter(None, [*notes_on_tests(tests), cells.glosses(terms)]))
    yield table_of(
        "Tests", columns, tests, is_first=True, note=note, tone=lambda test: "worse" * (test.passes is False)
    )
    yield _runs(found, row, look)
    events = [describe_event(one) for one in found.rows.events]
    if (left_out := 0 if look.details else len(events) - 1 - _LINES) > 0:
        events[1:-_LINES] = [f"{left_out} more: --details"]
    yield Lines("Events", tuple(events), is_wrapped=True)
    if found.advice:
        yield what_to_do(found.advice, row)

    def ends(fact: FindingFact) -> list[str]:
        both = [fact.before, fact.after]
        return [*map(form("bytes" if fact.what == "bytes" else "count", both), both)]

    columns = [
        of_fact.text("what", lambda fact: f"{fact.what} of {readable(fact.name)}", **NAME),
        of_fact.text("of", lambda fact: fact.input_shapes, **UNDER),
        group(map(Column, ("before", "after")), ends),
    ]
    title = f"Changed for certain in {row.version} (counts and sizes, which need no test)"
    yield table_of(title, columns, found.rows.facts)
    changed = findings.changed_with(found.rows.environment, None if look.details else _LINES)
    yield Lines("", changed, is_wrapped=True)


def _passes(test: FindingTest) -> str:
    if test.passes is None:
        return ""
    return "passes" if test.passes else "FAILS"


def describe_event(one: FindingEvent) -> str:
    """Return an event of a finding in a line: what happened, who did it, when and why."""
    when = f" on {format_moment(one.when_ns)} UTC" if one.when_ns else ""
    # what tracker judged is nobody's word
    by = f"by {one.who}" if one.who != NOBODY else ""
    what = " ".join(filter(None, (one.version, one.state, by)))
    return ": ".join(filter(None, (f"{what}{when}", one.reason)))


def what_to_do(advice: Iterable[Advice], finding: ListedFinding) -> Lines:
    """List what could undo the regression `finding`, each piece once."""
    sides = [("side", version) for version in (finding.good_version, finding.version) if version]
    link = Target("advice", (*sides, ("--workload", finding.workload)))
    return Lines("What to do", tuple(dict.fromkeys(item.sentence for item in advice)), is_wrapped=True, link=link)


def _runs(found: ExplainedFinding, finding: ListedFinding, look: Look) -> Table:
    """Return the runs from old to new; on a first screen the newest of the baseline, and those that show the change."""
    runs = [_as_known(run) for run in found.rows.runs]
    text = form(finding.unit, [run.value for run in runs])
    sides = [[run for run in runs if run.side == side] for side in ("baseline", "candidate")]
    part = runs if look.details else [*sides[0][-_RUNS:], *sides[1][:_RUNS]]
    of_run = ColumnsOf(_Run)
    columns = [
        of_run.number("run", lambda run: str(run.run_id)),
        of_run.text("version", lambda run: readable(run.version)),
        of_run.text("part", lambda run: readable(run.side)),
        of_run.number("value", lambda run: text(run.value)),
        of_run.number("calls", lambda run: number(run.calls), drop=2),
    ]
    if finding.unit == "ns" and finding.kind != "run":
        # what all operators share is removed from the changes of operators alone
        columns.append(of_run.number("machine-wide drift", lambda run: format_diff(run.shared_factor), drop=1))
    columns.append(of_run.number("change %", lambda run: format_diff(run.change)))
    tone = "worse" if finding.direction == "regression" else "better"
    points = tuple((f"run {run.run_id}", run.value, (), "", tone if run.side == "candidate" else "") for run in part)
    chart = Trend(finding.unit, points) if len(points) > 1 else None
    return table_of(
        "Runs", columns, part, more=len(runs) - len(part), is_first=True, chart=chart,
        lead=sparkline([run.value for run in runs]), tone=lambda run: "strong" * (run.side == "candidate"),
        links=lambda run: Target("run", (("RUN", str(run.run_id)),)),
    )  # fmt: skip


class _Run(Struct, frozen=True):
    """A run of a finding as a reader sees it: None for what is not a number."""

    run_id: int
    version: str
    side: str
    value: float | None
    calls: float | None
    shared_factor: float | None
    change: float | None


def _as_known(run: FindingRun) -> _Run:
    numbers = [None if math.isnan(value) else value for value in (run.value, run.calls, run.shared_factor, run.change)]
    return _Run(run.run_id, run.version, run.side, *numbers)


def list_sheets(found: ExplainedFinding, look: Look) -> dict[str, Rows]:
    """Return the finding itself, then its tables."""
    return {"finding": [plain(found.finding)], **choose_tables(found, look)}


VIEW = View(document, sheets=list_sheets)
