"""Findings for people: one table per incident with what explains it, one finding with its gates, its runs, its life."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from tracker.reports._human import (
    NAME,
    UNDER,
    WORDS,
    Column,
    Row,
    Table,
    calls_cell,
    make,
    number,
    series_name,
    share,
    signed,
)
from tracker.reports.cells import form, sparkline
from tracker.reports.shared import command, records
from tracker.results import ExplainedFinding, Findings
from tracker.units import MISSING_TEXT, counted, format_diff, format_moment, format_ns, time_unit

KINDS: Final = {
    "run": "whole run", "op_name": "op, all shapes", "op": "op", "kernel": "kernel", "communication": "collective",
    "module": "module", "phase": "phase", "api": "host API", "memory": "memory of an op",
}  # fmt: skip
"""Kinds of series, in words."""

_VERDICTS: Final = {("regression", "presence"): "ADDED", ("improvement", "presence"): "REMOVED"}
_CHANGED: Final = {"regression": "REGRESSED", "improvement": "IMPROVED"}
_PARTS: Final = {
    "operators_ns": "operators found", "new_ns": "new operators or shapes", "gone_ns": "gone operators or shapes",
    "machine_ns": "machine-wide drift", "other_operators_ns": "other operators", "beside_ns": "beside operators",
}  # fmt: skip
"""Parts of the change of a step; `other_operators_ns`: too little for a finding, or too noisy; `beside_ns`:
communication, copies and idle time.
"""

_RUNS_SHOWN: Final = 30


def summary(findings: Findings) -> str:
    """How much there is."""
    rows = records(findings.tables["findings"])
    suspects = sum(row["state"] == "suspect" for row in rows)
    new = sum(bool(row["is_new"]) for row in rows)
    parts = [
        counted(len(findings.tables["incidents"]), "incident"),
        f"{counted(len(rows) - suspects, 'finding')} ({number(new)} new)",
        f"{counted(suspects, 'suspect')} that the next runs decide" if suspects else "",
    ]
    hidden = f"; {number(findings.hidden)} more that these cover: --all" if findings.hidden else ""
    return ", ".join(filter(None, parts)) + hidden


def tables(findings: Findings, limit: int | None) -> list[Table]:
    """A table per incident, then the suspicions."""
    rows = records(findings.tables["findings"])
    environment = records(findings.tables["environment"])
    found = []
    for incident in records(findings.tables["incidents"]):
        own = [row for row in rows if row["incident_id"] == incident["incident_id"]]
        changed = [row for row in environment if row["incident_id"] == incident["incident_id"]]
        found.append(_incident(incident, own, changed, limit))
    suspects: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row["incident_id"] is None:
            suspects.setdefault(tuple(row[name] for name in ("workload", "device", "configuration")), []).append(row)
    for where, own in suspects.items():
        of = f"{', '.join(filter(None, where))}: " if len(suspects) > 1 else ""
        found.append(_rows(f"Suspects: {of}seen in one run, the next runs decide", own, limit, suspicion=True))
    return found


def answer(findings: Findings) -> str:
    """What matters, in a sentence."""
    incidents = records(findings.tables["incidents"])
    new = [row for row in incidents if row["is_new"] and row["direction"] == "regression"]
    if new:
        worst = new[0]
        own = [row for row in records(findings.tables["findings"]) if row["incident_id"] == worst["incident_id"]]
        whole = findings.options.states is None and findings.options.kind is None
        return f"New: since {worst['version']}, {headline(worst, own, whole=whole)}."
    waiting = sum(row["state"] == "suspect" for row in records(findings.tables["findings"]))
    if waiting:
        decided = "Nothing new is confirmed" if findings.options.only_new else "Nothing new got worse for sure"
        return f"{decided}; {counted(waiting, 'suspect')} that the next runs decide."
    if findings.options.only_new:
        return "Nothing new got worse; tracker findings lists what is open."
    if any(row["direction"] == "regression" for row in incidents):
        return "Nothing new got worse; what is listed began earlier."
    if incidents:
        return "No regression is listed."
    chosen = _filters(findings)
    return f"Nothing that {chosen} lets through is open." if chosen else "Nothing was found."


def _filters(findings: Findings) -> str:
    """The filters that leave findings out, as on the command line; empty without any."""
    chosen = findings.options
    named = (("--version", chosen.version), ("--kind", chosen.kind), ("--direction", chosen.direction))
    return command(*(part for name, value in named if value for part in (name, value)))


def _where(findings: Findings) -> list[str]:
    """The workload and device that were chosen, as on the command line."""
    named = (("--workload", findings.options.workload), ("--device", findings.options.device))
    return [part for name, value in named if value for part in (name, value)]


def hint(findings: Findings) -> str:
    """The command for more."""
    rows = records(findings.tables["findings"])
    if not rows:
        return "Everything that ever was: " + command("tracker", "findings", *_where(findings), "--state", "all")
    first = next((row["finding_id"] for row in rows if row["finding_id"] is not None), None)
    if first is None:
        return "How it goes on: " + command("tracker", "history", str(rows[0]["series_id"]))
    return "Why, test by test: " + command("tracker", "explain", str(first))


def headline(incident: Row, own: Sequence[Row], *, whole: bool = True) -> str:
    """What an incident is, in a line. `own`: its findings, all that are not under others or, unless `whole`, some.

    The step goes first only where it is a finding itself: a change of it that is not told from the machine's is none.
    """
    before, after, delta = (incident[f"{name}_ns"] for name in ("baseline_step", "candidate_step", "step_delta"))
    named = [row for row in own if row["kind"] != "run" and row["under"] is None]
    more = counted(len(named) - 1, "more finding") if len(named) > 1 else ""
    first = f"{_largest(named[0])}{f' and {more}' if more else ''}" if named else ""
    if delta is None or not before:
        return first or counted(incident["findings"], "finding")
    unit = time_unit(before, after)
    step = f"step {format_ns(before, unit)} -> {format_ns(after, unit)} ({format_diff(delta / before)})"
    if any(row["kind"] == "run" and row["name"] in ("step", "e2e") for row in own) or not first:
        return step
    return f"{first}; the step itself is no finding ({format_diff(delta / before)})" if whole else first


def _largest(row: Row) -> str:
    shown = form(row["unit"], [row["delta"]] if row["delta"] is not None else [])
    change = f" {signed(shown(row['delta']), row['delta'])}" if row["delta"] is not None else ""
    return f"{series_name(row)}{change} ({diff_cell(row)})"


def _incident(incident: Row, rows: Sequence[Row], environment: Sequence[Row], limit: int | None) -> Table:
    where = ", ".join(filter(None, (incident["workload"], incident["device"], incident["configuration"])))
    new = "new, " if incident["is_new"] else ""
    good = incident["good_version"]
    since = f" (good until {good})" if good and good != incident["version"] else ""
    title = (
        f"I-{incident['incident_id']}: {_CHANGED[incident['direction']]} in {incident['version']}{since}, "
        f"{new}{incident['severity']}: {where}"
    )
    lines = [explanation(incident)]
    if incident["causes"]:
        lines.append(f"Causes: {incident['causes']}.")
    if environment:
        changes = (
            f"{row['key']} {row['before'] or MISSING_TEXT} -> {row['after'] or MISSING_TEXT}" for row in environment
        )
        lines.append(f"Changed with it: {'; '.join(changes)}.")
    return replace(_rows(title, rows, limit), lead=" ".join(filter(None, lines)))


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
    text = (
        f"Step {format_ns(before, unit)} -> {format_ns(after, unit)} "
        f"({signed(format_ns(delta, unit), delta)}, {format_diff(delta / before)}) = {', '.join(parts)}."
    )
    shared = incident["shared_factor"]
    if shared is not None and abs(shared) >= 0.005:
        text += f" All operators together {format_diff(shared)}: the machine, left out of the verdicts."
    return text


def _rows(title: str, rows: Sequence[Row], limit: int | None, *, suspicion: bool = False) -> Table:
    columns = [
        Column("id"), Column("finding", **NAME), Column("of", **UNDER),
        Column("since" if suspicion else "state", left=True), Column("calls", drop=3),
        Column("before", drop=2), Column("after", drop=2), Column("change"), Column("change %"),
        Column("of the change", drop=1), Column("cause", **WORDS, fold=True),
    ]  # fmt: skip
    shown = rows if limit is None else rows[:limit]
    cells = [(_tone(row), _cells(row, suspicion=suspicion)) for row in shown]
    return make(title, columns, cells, more=len(rows) - len(shown))


def _cells(row: Row, *, suspicion: bool) -> list[str]:
    before, after = row["baseline_value"], row["candidate_value"]
    shown = form(row["unit"], [value for value in (before, after, row["delta"]) if value is not None])
    covers = f"covers {number(row['covers'])}" if row["covers"] else ""
    of = ", ".join(filter(None, (KINDS[row["kind"]], row["input_shapes"], row["part"], covers)))
    return [
        "" if row["finding_id"] is None else str(row["finding_id"]), series_name(row), of,
        row["version"] if suspicion else standing(row),
        calls_cell(row["baseline_calls"], row["candidate_calls"]), shown(before), shown(after),
        signed(shown(row["delta"]), row["delta"]), diff_cell(row), share(row["share_of_change"]), row["cause"] or "",
    ]  # fmt: skip


def standing(row: Mapping[str, Any]) -> str:
    """Where a finding stands: until when it is muted, or since when it is over."""
    if row["state"] == "muted":
        end = row["until_version"] or (_when(row["until_ns"])[:10] if row["until_ns"] else "")
        return f"muted until {end}" if end else "muted"
    if row["ended_version"]:
        return f"{row['state']} in {row['ended_version']}"
    return str(row["state"])


def diff_cell(row: Mapping[str, Any]) -> str:
    """The change of a finding, or that it came or went."""
    return _VERDICTS.get((row["direction"], row["change"])) or format_diff(row["ratio"])


def _tone(row: Mapping[str, Any]) -> str:
    return "worse" if row["direction"] == "regression" else "better"


def explained_header(found: ExplainedFinding) -> list[str]:
    """What the finding is, where it stands, and its numbers."""
    row: Mapping[str, Any] = found.finding
    name = " ".join(filter(None, (series_name(row), row["input_shapes"], row["part"])))
    where = ", ".join(filter(None, (row["workload"], row["device"], row["configuration"])))
    shown = form(row["unit"], [row["baseline_value"], row["candidate_value"]])
    word = _VERDICTS.get((row["direction"], row["change"])) or _CHANGED[row["direction"]]
    good = row["good_version"]
    since = f", good until {good}" if good and good != row["version"] else ""
    incident = f", I-{row['incident_id']}" if row["incident_id"] is not None else ""
    before, after = shown(row["baseline_value"]), shown(row["candidate_value"])
    lines = [
        f"Finding {row['finding_id']}: {name} ({KINDS[row['kind']]}) {word} in {row['version']}{since}{incident}",
        f"{where}; {standing(row)}; {before} -> {after} per step ({diff_cell(row)})"
        + (f"; cause: {row['cause']}" if row["cause"] else ""),
    ]
    calls, each = row["by_calls"], row["by_time_per_call"]
    if calls is not None and each is not None:
        split = form("ns", [calls, each])
        lines.append(
            f"calls {calls_cell(row['baseline_calls'], row['candidate_calls'])}: "
            f"{signed(split(calls), calls)} by their number, {signed(split(each), each)} by the time of each"
        )
    return lines


def explained_tables(found: ExplainedFinding) -> list[Table]:
    """The tests, the runs, the life, what is certain, and what else changed."""
    tables = [_tests(records(found.tests)), _runs(found), _events(records(found.events))]
    facts = records(found.facts)
    if facts:
        columns = [Column("what", **NAME), Column("of", **UNDER), Column("before"), Column("after")]
        shown = {"calls": number, "bytes": form("bytes", [row["after"] for row in facts if row["what"] == "bytes"])}
        cells = [
            (
                "",
                [
                    f"{row['what']} of {series_name(row)}", row["input_shapes"], shown[row["what"]](row["before"]),
                    shown[row["what"]](row["after"]),
                ],
            )
            for row in facts
        ]  # fmt: skip
        tables.append(make(f"Certain in {found.finding['version']}, without a test", columns, cells))
    changes = records(found.environment)
    if changes:
        columns = [Column("what", **NAME), Column("before", left=True), Column("after", left=True)]
        rows = [("", [row["key"], row["before"] or MISSING_TEXT, row["after"] or MISSING_TEXT]) for row in changes]
        tables.append(make("Changed with it", columns, rows))
    return tables


def _tests(rows: Sequence[Row]) -> Table:
    columns = [
        Column("test", left=True), Column("value"), Column("limit"), Column("passes", left=True),
        Column("meaning", left=True, elastic=True),
    ]  # fmt: skip
    cells = []
    for row in rows:
        passes = {None: "", True: "yes", False: "no"}[row["passes"]]
        shown = partial(_number, row["test"])
        tone = "worse" if row["passes"] is False else ""
        set_by = f"; {row['limit_from']}" if row["limit_from"] not in (None, "default") else ""
        meaning = f"{row['meaning']}{set_by}"
        cells.append((tone, [row["test"], shown(row["value"]), shown(row["limit"]), passes, meaning]))
    return make("Tests", columns, cells)


def _number(test: str, value: float | None) -> str:
    if value is None:
        return ""
    if test.startswith("runs"):
        return number(value)
    return f"{value:.3g}" if test == "q" else f"{value * 100:.2f} %"


def _runs(found: ExplainedFinding) -> Table:
    rows = records(found.runs)
    shown = form(str(found.finding["unit"]), [row["value"] for row in rows if row["value"] is not None])
    first = next((at for at, row in enumerate(rows) if row["side"]), 0)
    start = max(0, min(first - 2, len(rows) - _RUNS_SHOWN))
    part = rows[start : start + _RUNS_SHOWN]
    columns = [
        Column("run"), Column("version", left=True), Column("part", left=True), Column("value"),
        Column("calls", drop=2), Column("all operators", drop=1), Column("change %"),
    ]  # fmt: skip
    cells = [
        (
            "strong" if row["side"] == "candidate" else "",
            [
                str(row["run_id"]), row["version"], row["side"] or MISSING_TEXT, shown(row["value"]),
                number(row["calls"]), format_diff(row["shared_factor"]), format_diff(row["change"]),
            ],
        )
        for row in part
    ]  # fmt: skip
    # the runs go from old to new: what is left out stands at its own end
    earlier = f"; {counted(start, 'earlier run')} left out" if start else ""
    lead = f"{sparkline([row['value'] for row in rows])}{earlier}"
    return replace(make("Runs", columns, cells, more=len(rows) - start - len(part)), lead=lead)


def _events(rows: Sequence[Row]) -> Table:
    columns = [
        Column("version", left=True), Column("state", left=True), Column("by", left=True), Column("when", left=True),
    ]  # fmt: skip
    cells = [("", [row["version"] or "", row["state"], row["who"], _when(row["when_ns"])]) for row in rows]
    return replace(make("Life", columns, cells), below=tuple(row["reason"] or "" for row in rows))


def _when(when_ns: int | None) -> str:
    return format_moment(when_ns) if when_ns else MISSING_TEXT


def explained_hint(found: ExplainedFinding) -> str:
    """What one can do about it."""
    finding = found.finding
    line = command("tracker", "history", str(finding["series_id"]))
    if finding["state"] not in {"new", "persisting"}:
        return f"Its line over the versions: {line}"
    act = command("tracker", "ack", str(finding["finding_id"]), "--reason", "...")
    return f"Its line over the versions: {line}  Seen: {act}"
