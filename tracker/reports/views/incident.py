"""The document of an incident: a line per finding with the tests that decided, all of each as details."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import geometric_mean
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.reports import cells
from tracker.reports.commands import command
from tracker.reports.document import WORDS, Block, Column, Courses, Document, Lines, Look, Table, few
from tracker.reports.json import SCHEMA
from tracker.reports.rows import table_of
from tracker.reports.text import shorten
from tracker.reports.view import View, list_fields_and_tables
from tracker.reports.views import explained as view_of_finding
from tracker.reports.views import findings
from tracker.reports.views.explained import describe_event, what_to_do
from tracker.reports.views.finding_tests import sentence_of_test
from tracker.results import NOBODY, REPLACED_BY, ExplainedFinding, ExplainedIncident
from tracker.results.findings import FindingTest, ListedFinding
from tracker.schema.series import STEP_SERIES
from tracker.units import counted, format_diff, format_ns, format_numbers, step_word, time_unit

_FINDINGS: Final = 8
_SAYS_MOST: Final = ("change", "contribution")
"""Tests of which the first one stands below its finding."""
_COURSES: Final = 6
"""Series of an incident on one chart: that of its headline and five others."""
_OF_ONE_FINDING: Final = ("Tests", "Runs", "Events")
"""Titles of the blocks of a finding that are about nothing else."""
_LEGEND: Final = 48
"""Characters of the name of a series below a chart."""


class _Part(Struct, frozen=True):
    """A line of the sum of a step; None for where it begins."""

    words: str
    change_ns: float | None


def document(incident: ExplainedIncident, look: Look) -> Document:
    """Return a line per finding that no other one covers, the step first, then the tests and runs of each."""
    explained = incident.explained
    rows = [found.finding for found in explained]
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
    blocks += [*_waterfall(explained)] if look.has_drawings else []
    advice = [item for found in explained for item in found.advice]
    blocks += [what_to_do(advice, first)] if advice else []
    marks = _marks(explained)
    blocks += [marks] if marks.lines else []
    # the page of a finding has its tests, runs and events; a file has no other page
    blocks += [] if look.has_links else _list_details(explained, look)
    blocks += _list_shared(explained, look)
    remarks: tuple[str, ...] = ()
    notes = dict.fromkeys(note for found in explained for note in found.notes)
    if look.has_links:
        # what changed with it stands below the headline
        remarks = (*findings.changed_with(explained[0].rows.environment), *incident.commits)
        notes = dict.fromkeys(note for note in notes if note not in incident.commits)
    return Document(
        title=f"I-{number}: {findings.where_of(first)}; {counted(len(rows), 'finding')} in {first.version}",
        headline=_what_happened(explained[0]) or whole.headline,
        verdict=whole.verdict,
        tone=whole.tone,
        remarks=remarks,
        blocks=tuple(blocks),
        notes=few([*notes], look),
        next_commands=tuple(following),
    )


def _list_details(explained: Sequence[ExplainedFinding], look: Look) -> list[Block]:
    """Return what decided each finding: its tests, its runs, its events."""
    blocks: list[Block] = []
    for found in explained:
        own = view_of_finding.document(found, look)
        title, of_finding = own.title, ""
        if look.has_drawings:
            # folded boxes are told from each other by the names of what they are about
            of_finding = f" of {shorten(findings.series_of(found.finding), _LEGEND)}"
            title = f"Finding {found.finding.finding_id}{of_finding}"
        blocks.append(Lines(title, (own.headline, *own.remarks), is_first=False, is_wrapped=True))
        for block in own.blocks:
            if block.title in _OF_ONE_FINDING:
                blocks.append(replace(block, title=f"{block.title}{of_finding}", is_first=False))
    return blocks


def _list_shared(explained: Sequence[ExplainedFinding], look: Look) -> list[Block]:
    """Return what is known of the version of an incident, whatever the finding, each once."""
    shared: list[Block] = []
    for found in explained:
        for block in view_of_finding.document(found, look).blocks:
            is_shared = block.title not in (*_OF_ONE_FINDING, "What to do")
            # that stands below the headline
            is_shown = look.has_links and not block.title
            if is_shared and not is_shown and block not in shared:
                shared.append(block)
    return [replace(block, is_first=False) for block in shared]


def _waterfall(explained: Sequence[ExplainedFinding]) -> Iterator[Table]:
    """Yield how the change of the step adds up, a line per part: the numbers of the sentence of the list of findings;
    nothing where the step, or its parts, are not known.
    """
    incident = explained[0].incident
    if incident is None:
        return
    before, after, delta = incident.baseline_step_ns, incident.candidate_step_ns, incident.step_delta_ns
    parts = findings.parts_of_step(incident, [found.finding for found in explained])
    if before is None or after is None or not delta or not parts:
        return
    unit = time_unit(before, after, delta)
    level = f"level before {incident.version}: {format_ns(before, unit)} per step"
    whole = f"= {incident.version}: {format_ns(after, unit)} per step"
    rows = [_Part(level, None), *(_Part(words, change) for words, change in parts), _Part(whole, delta)]

    def change(row: _Part) -> str:
        return "" if row.change_ns is None else cells.signed(format_ns(row.change_ns, unit), row.change_ns)

    def of_change(row: _Part) -> str:
        return "" if row.change_ns is None else cells.share_of_change(row.change_ns / delta)

    columns = [Column("part of the step", lambda row: row.words, **WORDS), Column("change", change)]
    columns.append(Column("of change", of_change))
    ends = (rows[0], rows[-1])
    yield table_of(
        "How the step adds up", columns, rows, is_first=True, note=findings.remark_on_alike(incident),
        tone=lambda row: "strong" if row in ends else "",
        adds=(0.0, *(change for _, change in parts), None),
    )  # fmt: skip


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
    known = [found for found in explained if found.finding.baseline_value is not None and _has_course(found)]
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


def _has_course(found: ExplainedFinding) -> bool:
    """Return whether the runs of a finding are those of its change: of a replacement they are those of one operator."""
    return REPLACED_BY not in found.finding.name or bool(found.replacement_values)


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
    runs = [*found.rows.runs]
    if found.replacement_values:
        runs = [replace(run, value=value) for run, value in zip(runs, found.replacement_values, strict=True)]
    runs = [run for run in runs if not math.isnan(run.value)]
    values: dict[str, list[float]] = {}
    for run in runs:
        values.setdefault(run.version, []).append(run.value)
    baseline = _mean_of_runs([run.value for run in runs if run.side == "baseline"])
    means = {version: _mean_of_runs(of_version) for version, of_version in values.items()}
    changes = tuple(means[version] - baseline if version in means else None for version in versions)
    name = shorten(findings.series_of(found.finding), _LEGEND)
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
