"""The document of findings: an inbox, one table per incident, the worst first, then suspects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from tracker.reports.cells import form, readable, replaced_name, share, signed
from tracker.reports.commands import command
from tracker.reports.document import NAME, SENTENCE, Column, Document, Table, table
from tracker.reports.look import Look
from tracker.reports.rows import Row, records
from tracker.results import OPEN_STATES, REPLACED_BY, STATES, Findings
from tracker.units import MISSING_TEXT, counted, format_diff, format_moment, format_ns, time_unit

KINDS: Final = {
    "run": "whole run", "op_name": "op, all shapes", "op": "op", "kernel": "kernel", "communication": "collective",
    "module": "module", "phase": "phase", "api": "host API", "memory": "memory of an op",
}  # fmt: skip
"""Kinds of series, in words."""
CHANGES: Final = {("regression", "presence"): "ADDED", ("improvement", "presence"): "REMOVED"}
VERDICTS: Final = {"regression": "REGRESSED", "improvement": "IMPROVED"}
_PARTS: Final = {
    "operators_ns": "operators found", "new_ns": "new operators or shapes", "gone_ns": "gone operators or shapes",
    "machine_ns": "machine-wide drift", "other_operators_ns": "other operators",
    "beside_ns": "idle and communication",
}  # fmt: skip
"""Parts of the change of a step; `other_operators_ns`: too little for a finding, or too noisy; `beside_ns`:
communication, copies and idle time.
"""
_SCREEN_ROWS: Final = 24
_SCREEN_INCIDENTS: Final = 6
"""Findings and incidents of a first screen."""


def document(found: Findings, look: Look) -> Document:
    """A table per incident with what adds up to its change of the step, then the suspects."""
    incidents, rows = records(found.tables["incidents"]), records(found.tables["findings"])
    suspects = [row for row in rows if row["incident_id"] is None]
    new = [row for row in incidents if row["is_new"] and row["direction"] == "regression"]
    verdict = VERDICTS["regression"] if new and not _narrowed(found) else ""
    return Document(
        title=_title(found, incidents, rows, suspects),
        headline=_headline(found, incidents, rows, suspects),
        verdict=verdict,
        tone="worse" if verdict else "",
        blocks=tuple(_blocks(found, look, incidents, rows, suspects)),
        notes=tuple(f"Note: {note}" for note in found.notes),
        next_commands=tuple(_next(found, incidents, rows)),
    )


def _title(found: Findings, incidents: Sequence[Row], rows: Sequence[Row], suspects: Sequence[Row]) -> str:
    """The track, if all are of one, and how many there are."""
    where = _tracks(found)
    confirmed = len(rows) - len(suspects)
    new = sum(bool(row["is_new"]) for row in rows if row["incident_id"] is not None)
    counts = [counted(len(incidents), "incident"), f"{counted(confirmed, 'finding')} ({new:,} new)"]
    counts += [f"{counted(len(suspects), 'suspect')}, decided by the next runs"] if suspects else []
    hidden = f"; {found.hidden:,} more below these: --all" if found.hidden else ""
    return f"{f'{where[0]}: ' if len(where) == 1 else ''}{', '.join(counts)}{hidden}"


def _where(row: Mapping[str, Any]) -> str:
    return ", ".join(filter(None, (row["workload"], row["device"], row["configuration"])))


def _tracks(found: Findings) -> list[str]:
    rows = [row for name in ("lines", "incidents", "findings") for row in records(found.tables[name])]
    return list(dict.fromkeys(map(_where, rows)))


def _narrowed(found: Findings) -> bool:
    return found.options.states is not None or found.options.kind is not None


def _headline(found: Findings, incidents: Sequence[Row], rows: Sequence[Row], suspects: Sequence[Row]) -> str:
    """What matters most."""
    new = [row for row in incidents if row["is_new"] and row["direction"] == "regression"]
    if new:
        own = [row for row in rows if row["incident_id"] == new[0]["incident_id"]]
        others = f", and {counted(len(new) - 1, 'more new incident')}" if len(new) > 1 else ""
        return f"New in {new[0]['version']}: {headline(new[0], own, whole=not _narrowed(found))}{others}"
    if suspects:
        what = "Nothing new is confirmed" if found.options.only_new else "No new confirmed regression"
        return f"{what}; {counted(len(suspects), 'suspect')}, decided by the next runs"
    if found.options.only_new:
        return "No new regression; tracker findings lists what is open"
    if any(row["direction"] == "regression" for row in incidents):
        return "No new regression; what is listed began earlier"
    if incidents:
        return "No regression is listed"
    chosen = found.options
    named = (("--version", chosen.version), ("--kind", chosen.kind), ("--direction", chosen.direction))
    filters = command(*(part for name, value in named if value for part in (name, value)))
    states = ("open",) if chosen.states in (None, OPEN_STATES) and chosen.version is None else chosen.states or STATES
    kind = f" {' or '.join(states)}" if states != STATES else ""
    return f"No{kind} finding{f' with {filters}' if filters else ''}"


def headline(incident: Row, own: Sequence[Row], *, whole: bool = True) -> str:
    """What an incident is, in a line. `own`: its findings, all that are not under others or, unless `whole`, some.

    The step goes first only where it is a finding itself: a change of it that is not told from the machine's is none.
    """
    before, after, delta = (incident[f"{name}_ns"] for name in ("baseline_step", "candidate_step", "step_delta"))
    named = [row for row in own if row["kind"] != "run" and row["under"] is None]
    first = ""
    if named:
        text = form(named[0]["unit"], [named[0]["delta"]])
        change = f" {signed(text(named[0]['delta']), named[0]['delta'])}" if named[0]["delta"] is not None else ""
        more = f" and {counted(len(named) - 1, 'more finding')}" if len(named) > 1 else ""
        first = f"{name_of(named[0])}{change} ({diff_text(named[0])}){more}"
    if delta is None or not before:
        return first or counted(incident["findings"], "finding")
    unit = time_unit(before, after)
    step = f"{format_ns(before, unit).split(' ')[0]} -> {format_ns(after, unit)} per step"
    percent = format_diff(delta / before)
    if any(row["kind"] == "run" and row["name"] in ("step", "e2e") for row in own) or not first:
        return f"the step is {percent.lstrip('+-')} {'slower' if delta > 0 else 'faster'}, {step}"
    return f"{first}; the step itself is no finding ({percent})" if whole else first


def name_of(row: Mapping[str, Any]) -> str:
    """The name of a finding; what replaced what, in short."""
    return replaced_name(row["name"]) if REPLACED_BY in str(row["name"]) else readable(row["name"])


def diff_text(row: Mapping[str, Any]) -> str:
    """The change of a finding, or that it came or went."""
    return CHANGES.get((row["direction"], row["change"])) or format_diff(row["ratio"])


def state_text(row: Mapping[str, Any]) -> str:
    """The state of a finding: until when it is muted, or since when it is over."""
    if row["state"] == "muted":
        end = row["until_version"] or (format_moment(row["until_ns"])[:10] if row["until_ns"] else "")
        return f"muted until {end}" if end else "muted"
    return f"{row['state']} in {row['ended_version']}" if row["ended_version"] else str(row["state"])


def explanation(incident: Row) -> str:
    """How the change of the step adds up, in a sentence; parts that are nothing, or not known, are left out."""
    before, after, delta = (incident[f"{name}_ns"] for name in ("baseline_step", "candidate_step", "step_delta"))
    if delta is None:
        return ""
    unit = time_unit(before, after, delta)
    parts = [
        f"{words} {signed(format_ns(incident[column], unit), incident[column])}"
        for column, words in _PARTS.items()
        if incident[column]
    ]
    sizes = f"{format_ns(before, unit).split(' ')[0]} -> {format_ns(after, unit)}"
    change = f"{signed(format_ns(delta, unit), delta)}, {format_diff(delta / before)}"
    return f"Step {sizes} ({change}) = {', '.join(parts)}."


def _blocks(
    found: Findings, look: Look, incidents: Sequence[Row], rows: Sequence[Row], suspects: Sequence[Row]
) -> Iterator[Table]:
    environment = records(found.tables["environment"])
    several = len(_tracks(found)) > 1
    each = max(3, _SCREEN_ROWS // max(1, len(incidents) + bool(suspects)) - 4)
    limit = look.rows(10 if look.details else min(10, each))
    for place, incident in enumerate(incidents):
        own = [row for row in rows if row["incident_id"] == incident["incident_id"]]
        good = incident["good_version"]
        since = f" (good until {good})" if good and good != incident["version"] else ""
        new = "NEW, " if incident["is_new"] else ""
        where = f", {_where(incident)}" if several else ""
        word = VERDICTS[incident["direction"]]
        made = _rows(own, look, limit)
        changed = [
            f"{row['key']} {row['before'] or MISSING_TEXT} -> {row['after'] or MISSING_TEXT}"
            for row in environment
            if row["incident_id"] == incident["incident_id"]
        ]
        lead = [explanation(incident), f"Changed with it: {'; '.join(changed)}." if changed else ""]
        title = f"I-{incident['incident_id']}: {new}{word} in {incident['version']}{since}, {incident['severity']}"
        is_first = place < _SCREEN_INCIDENTS or look.limit == 0
        yield replace(made, title=title + where, lead=" ".join(filter(None, lead)), is_first=is_first)
    if len(incidents) > _SCREEN_INCIDENTS and not look.details and look.limit != 0:
        left = len(incidents) - _SCREEN_INCIDENTS
        yield Table(f"{counted(left, 'more incident')}: --details", (), (), (), note="older ones", is_first=True)
    tracks: dict[str, list[Row]] = {}
    for row in suspects:
        tracks.setdefault(_where(row), []).append(row)
    for where, own in tracks.items():
        of = f" of {where}" if len(tracks) > 1 else ""
        made = _rows(own, look, limit, suspects=True)
        yield replace(made, title=f"Suspects{of}: in one run so far", is_first=True)


def _rows(rows: Sequence[Row], look: Look, limit: int | None, *, suspects: bool = False) -> Table:
    ranked = sorted(rows, key=lambda row: (row["kind"] != "run", -abs(row["share_of_change"] or 0.0)))
    shown = ranked if limit is None else ranked[:limit]
    states = [row["version"] if suspects else state_text(row) for row in shown]
    has_states = suspects or any(state != "new" for state in states)
    columns = [Column("id"), Column("finding", **NAME)]
    columns += [Column("before", drop=2), Column("after", drop=2)] if look.details else []
    columns += [Column("change"), Column("change %"), Column("of step", drop=1)]
    columns += [Column("since" if suspects else "state", left=True)] if has_states else []
    columns += [Column("cause", **SENTENCE)]
    lines = []
    for row, state in zip(shown, states, strict=True):
        ends = [row["baseline_value"], row["candidate_value"]]
        text = form(row["unit"], [*ends, row["delta"]])
        detail = ", ".join(filter(None, (row["input_shapes"], row["part"])))
        of = detail or (f"({KINDS[row['kind']]})" if row["kind"] not in ("run", "op_name") else "")
        line = ["" if row["finding_id"] is None else str(row["finding_id"]), f"{name_of(row)} {of}".strip()]
        line += [text(end) for end in ends] if look.details else []
        line += [signed(text(row["delta"]), row["delta"]), diff_text(row)]
        line.append("" if row["share_of_change"] is None else share(row["share_of_change"]))
        line += [state] if has_states else []
        lines.append(("worse" if row["direction"] == "regression" else "better", [*line, row["cause"] or ""]))
    return table("", columns, lines, more=len(rows) - len(shown))


def _next(found: Findings, incidents: Sequence[Row], rows: Sequence[Row]) -> Iterator[str]:
    chosen = found.options
    named = (("--workload", chosen.workload), ("--device", chosen.device))
    where = [part for name, value in named if value for part in (name, value)]
    if not rows:
        over = chosen.states == STATES
        yield command("tracker", *(["history", *where] if over else ["findings", *where, "--state", "all"]))
        return
    if not incidents:
        yield command("tracker", "history", str(rows[0]["series_id"]))
        return
    first = next((row["finding_id"] for row in rows if row["finding_id"] is not None), None)
    yield command("tracker", "explain", str(first))
    if any(row["state"] in ("new", "persisting") for row in rows):
        yield f'tracker ack I-{incidents[0]["incident_id"]} --reason "..."'
        yield f'tracker expect I-{incidents[0]["incident_id"]} --reason "..."'
