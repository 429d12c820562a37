"""What was found, for the reader: findings under their incident, rolled up, with an explanation that adds up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from tracker.errors import FIRST_INGEST, UsageError
from tracker.judgement import incidents
from tracker.judgement.causes import cause_of, mark_new_shapes, mark_renamed, split_of
from tracker.judgement.families import RUN, unit_of
from tracker.judgement.netting import as_one, mark_replaced, put_under_heads
from tracker.judgement.standing import Lines, recording_notes, standing
from tracker.judgement.thresholds import Thresholds
from tracker.lazy import pd
from tracker.results import CONFIRMED_STATES, FINDINGS_COLUMNS, OPEN_STATES, Findings, FindingsOptions
from tracker.store import Store, queries, thresholds
from tracker.store.chosen import Known
from tracker.store.judged import Line, LineRun
from tracker.units import device_part

Row = dict[str, Any]


def findings(store: Store, *, options: FindingsOptions | None = None) -> Findings:
    """The findings that `options` leave, under their incidents. Reads only.

    UsageError where a workload, a device or a version is named that has no runs.
    """
    options, lines = options or FindingsOptions(), Lines(store)
    rows = found_rows(store, options, lines=lines)
    chosen = [row for row in rows if _wanted(row, options)]
    wanted = {row["incident_id"] for row in chosen if row["incident_id"] is not None}
    known = Known()
    teller = incidents.Teller(store, rows, known)
    told = [teller.told([row for row in rows if row["incident_id"] == number]) for number in sorted(wanted)]
    newest_first = sorted(told, key=lambda one: (-one.ordinal, one.row["incident_id"]))
    order = {one.number: place for place, one in enumerate(newest_first)}
    shares = {one.number: one for one in told}
    _roll_up(chosen)  # under what is shown, not under what the options leave out
    put_under_heads(chosen)
    _count_covered(chosen)
    shown = chosen if options.every else [as_one(row) for row in chosen if row["under"] is None]
    for row in shown:
        incident = shares.get(row["incident_id"])
        row["share_of_change"] = None if incident is None else incident.share_of(row)
    shown.sort(key=lambda row: (order.get(row["incident_id"], len(order)), *rank_of(row)))
    environment = [row for one in newest_first for row in one.environment]
    return Findings(
        _frame([one.row for one in newest_first], "incidents"),
        _frame(shown, "findings"),
        _frame(environment, "environment"),
        _frame(_replacements(shown), "replacements"),
        standing(store, options, lines),
        hidden=len(chosen) - len(shown),
        options=options,
        notes=tuple(recording_notes(store, options, lines, known)),
    )


def found_rows(
    store: Store, options: FindingsOptions, *, finding_ids: Sequence[int] | None = None, lines: Lines | None = None
) -> list[Row]:
    """All findings of the lines that `options` name, with everything but their part of an incident's change.

    `finding_ids`: only these; to come out the same, whole versions of a line. What was replaced is told of incidents of
    which `options` leave any finding.
    """
    queries.check_filters(store, workload=options.workload, device=options.device, version=options.version)
    lines = lines or Lines(store)
    if lines.all.empty:
        raise UsageError("there are no runs yet", remedy=FIRST_INGEST)
    rows = [_clean(row) for row in queries.findings(store, finding_ids, workload=options.workload).to_dict("records")]
    for row in rows:
        row["device"] = f"{row['vendor']} {row['device']}".strip()
    if options.device is not None:
        rows = [row for row in rows if device_part(options.device) in device_part(row["device"])]
    newest, confirm = _of_lines(store, rows, lines)
    for row in rows:
        runs = newest[line_of(row)]
        row["is_newest"] = row["version_id"] in {run.version_id for run in runs}
        row["is_new"] = row["state"] in _NEW and _last_run(row) in {run.run_id for run in runs}
        row["unit"], row["confirm"] = unit_of(row["metric"]), confirm[line_of(row)]
        before, after = row["baseline_value"], row["candidate_value"]
        row["delta"] = _delta(row, before, after)
        row["by_calls"], row["by_time_per_call"] = split_of(row)
        row["cause"] = cause_of(row)
    _mark_reopened(rows)
    mark_renamed(rows)
    _roll_up(rows)
    mark_new_shapes(rows)
    mark_replaced(store, rows, partial(_wanted, options=options))
    put_under_heads(rows)
    _count_covered(rows)
    return rows


def _mark_reopened(rows: Sequence[Row]) -> None:
    """Which version brought back what had recovered: another finding of the same number, that many times reopened."""
    again = {_life(row, row["reopened"]): row["version"] for row in rows if row["reopened"]}
    for row in rows:
        row["reopened_in"] = again.get(_life(row, row["reopened"] + 1)) if row["state"] == "recovered" else None


def _life(row: Row, reopened: int) -> tuple[Any, ...]:
    return row["series_id"], row["direction"], row["change"], row["number"], reopened


def line_of(row: Row) -> Line:
    """The line that a finding belongs to."""
    return Line(row["workload_id"], row["configuration_id"], row["device_id"])


def _delta(row: Row, before: float | None, after: float | None) -> float | None:
    """Candidate - baseline; what came or went was or is nothing."""
    if row["change"] == "presence":
        before, after = before or 0.0, after or 0.0
    return None if before is None or after is None else after - before


def _wanted(row: Row, options: FindingsOptions) -> bool:
    states = options.states or _default_states(options)
    return (
        row["state"] in states
        and (not options.only_new or row["is_new"] or (row["state"] == "suspect" and row["is_newest"]))
        and options.version in (None, row["version"])
        and options.kind in (None, row["kind"])
        and options.direction in (None, row["direction"])
    )


def _default_states(options: FindingsOptions) -> tuple[str, ...]:
    """What is open; with `only_new` without what is open for long, of one version also what is over."""
    if options.only_new:
        return (*CONFIRMED_STATES, "suspect")
    return (*OPEN_STATES, *_OVER) if options.version is not None else OPEN_STATES


def _last_run(row: Row) -> int | None:
    """The last of the runs that decided."""
    runs = str(row["candidate_runs"]).split()
    return int(runs[-1]) if runs else None


def _of_lines(store: Store, rows: Sequence[Row], lines: Lines) -> tuple[dict[Line, list[LineRun]], dict[Line, int]]:
    """The runs of the newest version of every line that has findings, and how many decide on a suspicion there."""
    newest, confirm = {}, {}
    for line in {line_of(row) for row in rows}:
        runs = lines.runs_of(line)
        newest[line] = [run for run in runs if run.version_id == runs[-1].version_id]
        with store.connect() as connection:
            confirm[line] = Thresholds(thresholds.of_line(connection, line)).confirm
    return newest, confirm


_OVER: Final = ("recovered", "expected", "vanished")
_NEW: Final = frozenset({"new", "reopened"})
"""States of what may be news: it is where a run of the newest version is among those that confirmed it. The version
that a finding began with may be an older one: where a version has one run, later ones confirm.
"""

_SAME: Final = {"e2e": "step"}
"""Run-level series -> the one that says the same of markers."""


_ABOVE: Final = {"op": ("op_name",), "memory": ("op_name", "op"), "run": ("run",)}
"""Kind -> kinds that say the same one level up."""


def _together(row: Row) -> tuple[Any, ...]:
    """What findings share that are one change: incident and direction, or of suspicions the run that raised them."""
    if row["incident_id"] is not None:
        return row["incident_id"], row["direction"]
    return ("", row["first_run_id"], row["direction"], row["workload_id"], row["configuration_id"], row["device_id"])


def _way(row: Row) -> str:
    """What a run-level series was measured with: what a log says is not part of what a profile says."""
    return str(row["part"]) if row["kind"] == RUN else ""


def _roll_up(rows: Sequence[Row]) -> None:
    """Which finding says the same one level up: shapes under their op name, the whole capture under the step."""
    above: dict[tuple[Any, ...], int] = {}
    for row in rows:
        above.setdefault((*_together(row), row["kind"], row["name"], _way(row)), row["finding_id"])
    for row in rows:
        name = _SAME.get(row["name"]) if row["kind"] == RUN else row["name"]
        places = [(*_together(row), kind, name, _way(row)) for kind in _ABOVE.get(row["kind"], ())]
        row["under"] = next((above[place] for place in places if place in above), None)


def _count_covered(rows: Sequence[Row]) -> None:
    """How many findings are under each."""
    covers = Counter(row["under"] for row in rows)
    for row in rows:
        row["covers"] = covers[row["finding_id"]]
        row["replacement"] = None if row["replaced"] is None else row["replaced"].head


def _replacements(shown: Sequence[Row]) -> list[Row]:
    """The replacements of findings, in the order of these."""
    return list({row["replaced"].head: row["replaced"].row for row in shown if row["replaced"] is not None}.values())


_ORDER: Final = ("run", "op_name", "op", "kernel", "communication", "memory", "module", "phase", "api")


def rank_of(row: Row) -> tuple[Any, ...]:
    """Whole runs first, then what is in them, the largest part of the step first."""
    return _ORDER.index(row["kind"]), -abs(row["contribution"] or 0.0), -abs(row["delta"] or 0.0), row["finding_id"]


def _clean(row: dict[Any, Any]) -> Row:
    return {str(name): None if pd.isna(value) else value for name, value in row.items()}


def _frame(rows: Sequence[Row], name: str) -> pd.DataFrame:
    columns = list(FINDINGS_COLUMNS[name])
    frame = pd.DataFrame([[row.get(column) for column in columns] for row in rows], columns=columns, dtype=object)
    return frame.where(frame.notna(), pd.NA)
