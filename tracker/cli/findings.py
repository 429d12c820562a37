"""`tracker findings`, `explain`, and marks on findings: `ack`, `expect`, `mute` and others, and `undo`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from msgspec.structs import replace

from tracker import api, compare, config
from tracker.api.arguments import opened
from tracker.api.edits import mute_end
from tracker.cli.clones import gate_of_lost_merge_base, is_merge_base_lost
from tracker.cli.options import By, Database, FailOn, Reason, Top
from tracker.cli.output import emit, finish, next_lines, plan
from tracker.cli.output import note as note_of_work
from tracker.cli.report_options import Page
from tracker.compare.commits import Repository
from tracker.errors import UsageError
from tracker.reports.views.findings import name_of, state_text
from tracker.results import CONFIRMED_STATES, ExplainedIncident, FindingsOptions
from tracker.results.findings import WORDS_OF_MARKS
from tracker.results.options import Option
from tracker.results.verdicts import BUDGET, COVERAGE
from tracker.schema.series import STEP_SERIES
from tracker.units import counted, format_moment, format_numbers, some_of

if TYPE_CHECKING:
    from tracker.regressions.found import FoundFinding
    from tracker.store import Store


def findings(chosen: FindingsOptions, page: Page, fail_on: FailOn = None, top: Top = None, db: Database = None) -> None:
    """List confirmed regressions and improvements by version: incidents, each with the findings that explain it.

    The runs of a version are judged together, against the newest runs of the level before it. A change in a single run
    is a suspect until further runs decide. A regression stays open until it recovers; tracker ack, expect, mute and
    invalid change whether it is shown, alerted and gated.

    \b
    Example:
      tracker findings --new
      tracker findings --workload gpt --version v8 --all
      tracker findings --state all -o findings.xlsx
      tracker findings --new --fail-on new
      tracker findings --format prometheus -o /var/lib/node_exporter/tracker.prom
    """
    from tracker.regressions.coverage import gate_of_coverage
    from tracker.regressions.gates import gate_of_findings
    from tracker.regressions.inbox import findings as findings_of
    from tracker.results.budgets import gate_of_budgets

    delivery = plan(page, f"findings_{chosen.workload or ''}".rstrip("_"), "findings")
    with opened(db, read_only=True) as store, store.reading():
        if chosen.version is not None:
            chosen = replace(chosen, version=compare.label_of(store, chosen.version, chosen.workload))
        found = findings_of(store, options=chosen)
        confirmed = [row for row in found.rows.findings if row.incident_id is not None]
        notes = compare.notes_on_commits(store, confirmed, with_missing=page.details)
        found = replace(found, notes=(*found.notes, *notes))
        newest = [line.last_run_id for line in found.rows.lines]
        is_lost = fail_on not in (None, BUDGET) and is_merge_base_lost(store, newest)
    if fail_on == COVERAGE:
        counted_series = [line.counted_series for line in found.rows.lines]
        gate = gate_of_coverage(counted_series, found.missing, config.load(db).least_coverage)
    elif fail_on == BUDGET:
        gate = gate_of_budgets(found.budgets, config.load(db).budgets)
    else:
        gate = gate_of_findings(found, fail_on or "new")
    if is_lost:
        gate = gate_of_lost_merge_base(gate)
    delivery.deliver(found, limit=top, gate=gate)
    if fail_on:
        finish(gate)


def explain(
    finding: Annotated[
        str,
        Option(
            "A finding (12) or an incident (I-3), as tracker findings lists them.",
            "ID",
            positional=True,
            offers="finding",
        ),
    ],
    page: Page,
    db: Database = None,
) -> None:
    """Explain a finding, or all findings of an incident: every test with its value and limit, its runs and events.

    \b
    Example:
      tracker explain 12
      tracker explain I-3
      tracker explain 12 --format json
    """
    from tracker.regressions.actions import numbers_of

    _, incidents = numbers_of([finding])
    delivery = plan(page, f"finding_{finding}", "explained")
    with opened(db, read_only=True) as store, store.reading():
        explained = api.explain(finding, store=store)
        found = explained if isinstance(explained, list) else [explained]
        notes = compare.notes_on_commits(store, [one.finding for one in found], with_missing=True)
        if problem := Repository(store.repository).problem:
            note_of_work(f"note: {problem}")
        found = [replace(one, notes=(*one.notes, *notes)) for one in found]
    delivery.deliver(ExplainedIncident(tuple(found), notes) if incidents else found[0])


Targets = Annotated[
    list[str],
    Option(
        "Findings (12) or incidents (I-3), as tracker findings lists them.", "ID...", positional=True, offers="finding"
    ),
]


def ack(
    targets: Targets,
    reason: Annotated[str, Option("Why; stored and shown.", "TEXT")] = "acknowledged",
    by: By = None,
    db: Database = None,
) -> None:
    """Acknowledge findings. They are still measured and shown; no reminders are sent.

    \b
    Example:
      tracker ack I-3
      tracker ack 12 13 --reason "ticket 4711"
    """
    _mark("ack", targets, db, reason=reason, by=by)


def expect(targets: Targets, reason: Reason, by: By = None, db: Database = None) -> None:
    """Accept a change as intended. It is no longer shown, alerted or gated.

    \b
    Example:
      tracker expect I-3 --reason "layer norm in float64, decided in review 88"
    """
    _mark("expect", targets, db, reason=reason, by=by)


def invalid(targets: Targets, reason: Reason, by: By = None, db: Database = None) -> None:
    """Mark findings as false positives. They are no longer shown, alerted or gated.

    \b
    Example:
      tracker invalid 14 --reason "the node was shared with a compile job"
    """
    _mark("invalid", targets, db, reason=reason, by=by)


def note(targets: Targets, reason: Annotated[str, Option("The note; stored and shown.", "TEXT")], by: By = None,
         db: Database = None) -> None:  # fmt: skip
    """Add a comment to findings. Their state stays, and no alert is sent.

    \b
    Example:
      tracker note I-3 --reason "bisected to commit 9f8e7d6"
    """
    _mark("note", targets, db, reason=reason, by=by)


def mute(
    reason: Reason,
    until: Annotated[
        str,
        Option(
            "End of the mute: a date (2026-12-31 or 2026-12-31T18:00, UTC), an age (12h, 3d, 2w), version:LABEL (its "
            "first run), or future:LABEL for a version without runs.",
            "END",
        ),
    ],
    targets: Annotated[
        list[str] | None,
        Option("Findings (12) or incidents (I-3); or use --op.", "ID...", positional=True, offers="finding"),
    ] = None,
    op: Annotated[
        str | None,
        Option("All findings of these operators, future ones included, instead of IDs; '*' for all.", "PATTERN"),
    ] = None,
    workload: Annotated[str | None, Option("With --op: only these workloads. Default: any.", "PATTERN")] = None,
    device: Annotated[str | None, Option("With --op: only these hardware models. Default: any.", "PATTERN")] = None,
    by: By = None,
    db: Database = None,
) -> None:
    """Snooze findings until a date or a version. They are still judged, shown and gated, but not alerted.

    A mute with --op has a number, silence:N, which tracker notify --list shows and tracker unmute takes. Another mute
    of the same finding replaces its end.

    \b
    Example:
      tracker mute 12 --until 2w --reason "fix is planned for the next release"
      tracker mute I-3 --until future:v2.4 --reason "fixed there"
      tracker mute --op 'aten::copy_*' --workload gpt --until 3d --reason "the copies are being rewritten"
    """
    if op is None:
        if workload is not None or device is not None:
            raise UsageError("--workload and --device need --op", remedy="add --op '*' for all operators")
        if not targets:
            raise UsageError("no finding to mute", remedy="give IDs, or --op PATTERN")
        _mark("mute", targets, db, reason=reason, by=by, until=until)
        return
    if targets:
        raise UsageError("both IDs and --op are given", remedy="choose one of them")
    with opened(db) as store:
        number = api.mute_operators(
            op, until=until, reason=reason, workload=workload or "*", device=device or "*", by=by, store=store
        )
    end = format_moment(mute_end(until, time.time_ns())[0] or 0)
    emit(f"silence:{number}: no alerts of {op} until {end} UTC.{next_lines('tracker notify --list')}")


def unmute(
    targets: Annotated[
        list[str],
        Option(
            "Findings (12), incidents (I-3), or silence:N for a mute with --op.",
            "ID...",
            positional=True,
            offers="finding",
        ),
    ],
    reason: Reason,
    by: By = None,
    db: Database = None,
) -> None:
    """End a mute early.

    \b
    Example:
      tracker unmute 12 --reason "the release is out"
      tracker unmute silence:3 --reason "the copies are rewritten"
    """
    _mark("unmute", targets, db, reason=reason, by=by)


def undo(targets: Targets, reason: Reason, by: By = None, db: Database = None) -> None:
    """Take back the last mark of a finding: ack, expect, mute, unmute or invalid. Of an incident: its newest mark.

    Possible until the next version of the track is judged. The mark stays in the events of the finding, with who took
    it back, when and why. Notes stay.

    \b
    Example:
      tracker undo 12 --reason "the wrong finding"
      tracker undo I-3 --reason "it is not intended after all"
    """
    from tracker.regressions.inbox import uncovered

    with opened(db) as store:
        done = api.edits.undone_marks(targets, reason=reason, by=by, store=store)
        rows = {row.finding_id: row for row in _marked_rows(store, [number for number, _ in done])}
    lines = []
    for action in dict.fromkeys(action for _, action in done):
        own = [rows[number] for number, taken in done if taken == action]
        named = uncovered(own)
        states = some_of(list(dict.fromkeys(state_text(row) for row in named)))
        listed = format_numbers(_numbers_of(named))
        lines.append(f"{action} of {counted(len(named), 'finding')} taken back: {listed} (now {states})")
        lines += _lines_of_covered(own, named)
    emit("\n".join(lines))


def _mark(action: str, targets: Sequence[str], db: str | None, **given: Any) -> None:
    with opened(db) as store:
        done = getattr(api, action)(targets, store=store, **given)
        rows = _marked_rows(store, done) if done else []
    silences = [target for target in targets if target.startswith("silence:")]
    lines = _done_lines(action, [row for row in rows if row.finding_id in done], rows) if done else []
    emit("\n".join([*lines, *(f"{silence} ended" for silence in silences)]))


def _marked_rows(store: Store, numbers: Sequence[int]) -> list[FoundFinding]:
    """All findings; what covers what is known in the incidents of those with these `numbers`, whatever their state."""
    from tracker.regressions.inbox import found_rows

    return found_rows(store, wanted=lambda row: row.finding_id in numbers, with_invalid=True)


def _done_lines(action: str, done: Sequence[FoundFinding], rows: Sequence[FoundFinding]) -> list[str]:
    """What was marked, what came along with it and why, and whether the step still counts. `rows`: all findings."""
    from tracker.regressions.found import as_one
    from tracker.regressions.inbox import uncovered

    named = uncovered(done)
    names = f" ({some_of([name_of(as_one(row)) for row in named])})"
    listed = format_numbers(_numbers_of(named))
    lines = [
        f"{counted(len(named), 'finding')} {WORDS_OF_MARKS[action]}: {listed}{names}",
        *_lines_of_covered(done, named),
    ]
    incidents = {row.incident_id for row in done}
    steps = [
        row for row in rows
        if row.incident_id in incidents and row.state in CONFIRMED_STATES and row.under is None
        and row.kind == "run" and row.name in STEP_SERIES
    ]  # fmt: skip
    if action in ("expect", "invalid") and steps:
        step = steps[0]
        lines.append(
            f"the step of {step.version} still counts, finding {step.finding_id}: "
            f"tracker {action} I-{step.incident_id} takes all of the incident"
        )
    return lines


def _numbers_of(rows: Sequence[FoundFinding]) -> list[int]:
    """The numbers of findings, in order."""
    return sorted(row.finding_id for row in rows if row.finding_id is not None)


def _lines_of_covered(done: Sequence[FoundFinding], named: Sequence[FoundFinding]) -> list[str]:
    """A line on the findings of `done` that the `named` ones cover, and why; none where they cover none."""
    numbers = {row.finding_id for row in named}
    below = [row for row in done if row.finding_id not in numbers]
    if not below:
        return []
    why = some_of(list(dict.fromkeys(_why_below(row) for row in below)))
    listed = format_numbers(_numbers_of(below))
    return [f"with {'it' if len(named) == 1 else 'them'} {len(below):,} more: {listed} ({why})"]


def _why_below(row: FoundFinding) -> str:
    """Why a finding takes the mark of the one that it is below."""
    if row.replaced is not None:
        return "what was replaced with it"
    return "the same time under another name" if row.kind == "run" else "its shapes"
