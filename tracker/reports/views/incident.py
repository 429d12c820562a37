"""The document of an incident: a line per finding with the tests that decided, all of each as details."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import geometric_mean
from typing import Any, Final

from msgspec.structs import replace

from tracker.reports import cells
from tracker.reports.commands import command
from tracker.reports.document import Block, Courses, Document, Lines, Look, few
from tracker.reports.json import SCHEMA
from tracker.reports.text import shorten
from tracker.reports.view import View, list_fields_and_tables
from tracker.reports.views import explained as view_of_finding
from tracker.reports.views import findings
from tracker.reports.views.explained import describe_event, what_to_do
from tracker.reports.views.finding_tests import sentence_of_test
from tracker.results import NOBODY, REPLACED_BY, ExplainedFinding, ExplainedIncident
from tracker.results.findings import FindingTest, ListedFinding
from tracker.schema.series import STEP_SERIES
from tracker.units import counted, format_diff, format_numbers, step_word

_FINDINGS: Final = 8
_SAYS_MOST: Final = ("change", "contribution")
"""Tests of which the first one stands below its finding."""
_COURSES: Final = 6
"""Series of an incident on one chart: that of its headline and five others."""
_LEGEND: Final = 48
"""Characters of the name of a series below a chart."""


def document(incident: ExplainedIncident, look: Look) -> Document:
    """Return a line per finding that no other one covers, the step first, then the tests and runs of each."""
    explained = incident.explained
    rows = [found.finding for found in explained]
    below: dict[int | None, str] = {}
    if not look.has_drawings:
        # a browser has the tests of each finding folded below
        below = {found.finding.finding_id: _list_tests(found.rows.tests) for found in explained}
    first, number = rows[0], incident.incident_id
    whole = view_of_finding.document(explained[0], look)
    following = [command("tracker", "explain", str(first.finding_id))]
    following += [] if look.details else [command("tracker", "explain", f"I-{number}", "--details")]
    following += findings.to_settle(f"I-{number}", rows)
    most = None if look.details else look.rows(_FINDINGS)
    made = findings.rows_of(rows, replace(look, details=True), most, below=below)
    chart = _courses(explained)
    lead = _lead_of_chart(chart, first) if chart is not None and look.has_drawings else ""
    blocks: list[Block] = [replace(made, is_first=True, chart=chart, lead=lead)]
    advice = [item for found in explained for item in found.advice]
    blocks += [what_to_do(advice, first)] if advice else []
    marks = _marks(explained)
    blocks += [marks] if marks.lines else []
    shared: list[Block] = []
    for found in explained:
        own = view_of_finding.document(found, look)
        blocks.append(Lines(own.title, (own.headline, *own.remarks), is_first=False, is_wrapped=True))
        for block in own.blocks:
            if block.title in ("Tests", "Runs", "Events"):
                blocks.append(replace(block, is_first=False))
            elif block.title != "What to do" and block not in shared:
                shared.append(block)
    return Document(
        title=f"I-{number}: {findings.where_of(first)}; {counted(len(rows), 'finding')} in {first.version}",
        headline=_what_happened(explained[0]) or whole.headline,
        verdict=whole.verdict,
        tone=whole.tone,
        blocks=(*blocks, *(replace(block, is_first=False) for block in shared)),
        notes=few([note for found in explained for note in found.notes], look),
        next_commands=tuple(following),
    )


def _what_happened(explained: ExplainedFinding) -> str:
    """Return what an incident did to the step and why, in a sentence; "" where the step is not among its findings."""
    first = explained.finding
    if first.kind != "run" or first.name not in STEP_SERIES or not first.ratio:
        return ""
    word = "slower" if first.ratio > 0 else "faster"
    size = format_diff(abs(first.ratio)).lstrip("+")
    times = cells.times(first.baseline_value, first.candidate_value)
    why = f"; {explained.leading_cause}" if explained.leading_cause else ""
    return f"{first.version}: the {step_word(first.step_kind)} is {size} {word}, {times} per step{why}"


def _courses(explained: Sequence[ExplainedFinding]) -> Courses | None:
    """Return how the series of the headline, and those of its unit that changed most, went over the versions, each
    against its baseline; those of times where the headline is of a series that is new.
    """
    known = [found for found in explained if found.finding.baseline_value is not None]
    first = explained[0]
    unit = first.finding.unit if first in known else "ns"
    chosen = [found for found in known if found.finding.unit == unit]

    def order(found: ExplainedFinding) -> tuple[bool, bool, float]:
        row = found.finding
        return found is not first, row.name not in STEP_SERIES, -abs(row.delta)

    chosen.sort(key=order)
    if not chosen:
        return None
    versions = list(dict.fromkeys(run.version for run in chosen[0].rows.runs))
    series = [_course(found, versions) for found in chosen[:_COURSES]]
    return Courses(tuple(versions), tuple(series), first.finding.version, unit)


def _lead_of_chart(chart: Courses, first: ListedFinding) -> str:
    """Return what a chart of an incident shows; `first`: the finding of the headline."""
    if first.kind == "run" and first.name in STEP_SERIES:
        return "Change of the step, and of what changed it most, against their baselines"
    if first.baseline_value is None:
        return "Change of what changed the step most, against their baselines"
    words = findings.series_of(first)
    if len(chart.series) == 1:
        return f"Change of {words} against its baseline"
    return f"Change of {words}, and of what changed with it, against their baselines"


def _course(found: ExplainedFinding, versions: Sequence[str]) -> tuple[str, tuple[float | None, ...]]:
    """Return the words of a finding, and the change of its series per version against the runs of its baseline."""
    runs = [run for run in found.rows.runs if not math.isnan(run.value)]
    values: dict[str, list[float]] = {}
    for run in runs:
        values.setdefault(run.version, []).append(run.value)
    baseline = _mean_of_runs([run.value for run in runs if run.side == "baseline"])
    means = {version: _mean_of_runs(of_version) for version, of_version in values.items()}
    changes = tuple(means[version] - baseline if version in means else None for version in versions)
    name = shorten(findings.series_of(found.finding), _LEGEND)
    if REPLACED_BY in found.finding.name:
        # its runs are those of one operator, and its change is that of all
        name = f"largest operator of {name}"
    # its change stands in the table, and beside the name at the version that a reader points at
    return name, changes


def _mean_of_runs(values: Sequence[float]) -> float:
    """Return the value of a version or baseline as the verdicts have it: the geometric mean of its runs above 0."""
    above = [value for value in values if value > 0]
    return geometric_mean(above) if above else 0.0


def _list_tests(tests: Sequence[FindingTest]) -> str:
    """Return the test that says most, in one line: the first that fails, else that of the change, or of its part of the
    step.
    """
    for test in tests:
        if test.passes is False:
            return f"FAILS  {sentence_of_test(test)}"
    by_name = {test.test: test for test in tests}
    found = next((by_name[name] for name in _SAYS_MOST if name in by_name), None)
    return "" if found is None else sentence_of_test(found)


def _marks(explained: Sequence[ExplainedFinding]) -> Lines:
    """Return what users said of the findings of an incident, each act once, in the order of time."""
    acts: dict[tuple[int, str], set[int]] = {}
    for found in explained:
        for event in found.rows.events:
            if event.who != NOBODY and event.when_ns is not None and found.finding.finding_id is not None:
                numbers = acts.setdefault((event.when_ns, describe_event(event)), set())
                numbers.add(found.finding.finding_id)
    lines = []
    for (_, words), numbers in sorted(acts.items()):
        of = "all findings" if len(numbers) == len(explained) else f"of {format_numbers(sorted(numbers))}"
        lines.append(f"{words} ({of})")
    return Lines("Marks and notes", tuple(lines), is_wrapped=True)


def list_json(incident: ExplainedIncident, look: Look) -> dict[str, Any]:
    """Return the number of the incident, and the document of each of its findings."""
    explained = [{"schema": SCHEMA, **list_fields_and_tables(one, look)} for one in incident.explained]
    return {"incident_id": incident.incident_id, "explained": explained}


VIEW = View(document, json=list_json)
