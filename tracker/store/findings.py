"""Findings, their events and incidents in the database: what a line has, what users did, and writing it whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Connection, bindparam, text

from tracker.store import bulk
from tracker.store.judged import Line
from tracker.store.sql import statement

KEY: Final = ("series_id", "direction", "change", "first_run_id")
"""What makes a finding the same one when it is made again."""

EVENT_COLUMNS: Final = ("source", "target", "kind", "who", "when_ns", "run_id", "rule_version", "reason", "notifies")
_LINE: Final = ("workload_id", "configuration_id", "device_id")
_MADE_FROM: Final = ("fingerprint", "checkpoint_runs", "checkpoint_key", "checkpoint")
_OF_LINE: Final = " AND ".join(f"{name} = :{name}" for name in _LINE)
_IDS: Final = text(f"SELECT id, rule_version, {', '.join(KEY)} FROM finding WHERE {_OF_LINE}")  # noqa: S608 names of above
_INCIDENTS: Final = text(f"SELECT id, version_id FROM incident WHERE {_OF_LINE}")  # noqa: S608 the same
_FORGET_EVENTS: Final = text("DELETE FROM finding_event WHERE finding_id IN :ids").bindparams(
    bindparam("ids", expanding=True)
)
_CLOSE: Final = text("UPDATE finding SET state = 'normal', until_ns = NULL, until_version = NULL WHERE id = :id")
_OPEN_BY_OLD_RULES: Final = text(
    "SELECT f.id, f.state, f.number, MAX(e.position) AS position FROM finding AS f "
    "LEFT JOIN finding_event AS e ON e.finding_id = f.id "
    "WHERE f.id IN :ids AND f.state NOT IN ('normal', 'expected', 'invalid', 'recovered') "
    "GROUP BY f.id, f.state, f.number ORDER BY f.id"
).bindparams(bindparam("ids", expanding=True))
_FORGET: Final = text("DELETE FROM finding WHERE id IN :ids").bindparams(bindparam("ids", expanding=True))
_NUMBERS: Final = text(
    f"SELECT id, version_id, {', '.join(KEY)} FROM finding_number WHERE {_OF_LINE} ORDER BY id"  # noqa: S608 the same
)
_FREE_NUMBERS: Final = text(
    f"SELECT n.id, n.version_id, n.{', n.'.join(KEY)} FROM finding_number AS n "  # noqa: S608 the same
    f"WHERE {' AND '.join(f'n.{name} = :{name}' for name in _LINE)} "
    "AND NOT EXISTS (SELECT 1 FROM finding AS f WHERE f.id = n.id) ORDER BY n.id"
)
_CHECKPOINT: Final = text(
    f"SELECT checkpoint_runs, checkpoint_key, checkpoint FROM followed "  # noqa: S608 the same
    f"WHERE {_OF_LINE} AND checkpoint IS NOT NULL"
)
_FOLLOWED: Final = text(f"SELECT fingerprint FROM followed WHERE {_OF_LINE}")  # noqa: S608 the same
_EXPIRED: Final = text(
    f"SELECT COUNT(*) FROM finding WHERE {_OF_LINE} AND state = 'muted' AND until_ns <= :now_ns"  # noqa: S608 the same
)
_MUTED: Final = text("SELECT COUNT(*) FROM finding WHERE state = 'muted'")
_ADD_FOLLOWED: Final = text(
    f"INSERT INTO followed ({', '.join(_LINE)}, {', '.join(_MADE_FROM)}) "  # noqa: S608 the same
    f"VALUES (:{', :'.join(_LINE)}, :{', :'.join(_MADE_FROM)}) "
    f"ON CONFLICT ({', '.join(_LINE)}) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _MADE_FROM)}"
)
_ACTION: Final = (*KEY, "after_run_id", "action", "who", "reason", "when_ns", "until_ns", "until_version")


class Action(Struct, frozen=True):
    """What a user did to the finding of a key (KEY), after the newest run of its line then."""

    key: tuple[int, str, str, int]
    after_run_id: int | None
    action: str
    who: str
    reason: str
    when_ns: int
    until_ns: int | None = None
    until_version: str | None = None


class MadeFinding(Struct, frozen=True):
    """A finding to write. `columns`: those of the table `finding` but id and incident; `events`: EVENT_COLUMNS each.

    `version_id`: of the incident that it belongs to; None: it is not confirmed. `raised_in`: the version of its first
    run.
    """

    columns: Mapping[str, Any]
    events: Sequence[Sequence[Any]]
    version_id: int | None
    raised_in: int

    @property
    def key(self) -> tuple[Any, ...]:
        """See KEY."""
        return tuple(self.columns[name] for name in KEY)


def fingerprint_of(connection: Connection, line: Line) -> bytes | None:
    """What the findings of a line were made from; None: never made."""
    found = connection.execute(_FOLLOWED, line.parameters).scalar()
    return None if found is None else bytes(found)


def checkpoint_of(connection: Connection, line: Line) -> tuple[int, bytes, bytes] | None:
    """How far a line was followed: after how many runs, for what it holds, and the state then; None: not known."""
    found = connection.execute(_CHECKPOINT, line.parameters).one_or_none()
    return None if found is None else (found.checkpoint_runs, bytes(found.checkpoint_key), bytes(found.checkpoint))


def expired(connection: Connection, line: Line, now_ns: int) -> bool:
    """Whether a mute of this line is over."""
    return bool(connection.execute(_EXPIRED, {**line.parameters, "now_ns": now_ns}).scalar_one())


def lines_to_settle(connection: Connection, now_ns: int) -> list[Line]:
    """The lines in which a mute is over."""
    return [Line(*row) for row in connection.execute(statement("ended_mutes"), {"now_ns": now_ns})]


def muted(connection: Connection) -> int:
    """How many findings are muted."""
    return int(connection.execute(_MUTED).scalar_one())


def actions_of(connection: Connection, line: Line) -> list[Action]:
    """What users did to the findings of a line, in order."""
    rows = connection.execute(statement("finding_actions"), line.parameters).all()
    return [
        Action(
            (row.series_id, row.direction, row.change, row.first_run_id), row.after_run_id, row.action, row.who,
            row.reason, row.when_ns, row.until_ns, row.until_version,
        )
        for row in rows
    ]  # fmt: skip


class IncidentEvent(Struct, frozen=True):
    """A transition that somebody may want to hear of. `run_id`, `version`: of the run that made it, if one did."""

    kind: str
    run_id: int | None
    version: str | None


class Named(Struct, frozen=True):
    """What names a finding, also when it is made again."""

    series_id: int
    direction: str
    change: str
    first_run_id: int


class Standing(Struct, frozen=True):
    """Where a finding of an incident stands. `version_id`: that began it. `ended_by`, `ended_run_id`: kind and run of
    its last end; None: it never ended, or no run ended it.
    """

    finding_id: int
    version_id: int
    named: Named
    state: str
    ended_by: str | None
    ended_run_id: int | None


def standings(connection: Connection) -> list[Standing]:
    """Where the findings of incidents stand, in their order."""
    return [
        Standing(
            row.finding_id, row.version_id, Named(row.series_id, row.direction, row.change, row.first_run_id),
            row.state, row.ended_by, row.ended_run_id,
        )
        for row in connection.execute(statement("standings"))
    ]  # fmt: skip


def incident_events(connection: Connection, finding_ids: Sequence[int] | None = None) -> dict[int, list[IncidentEvent]]:
    """Finding of an incident, of these or all -> what happened to it that somebody may want to hear of, in order."""
    found: dict[int, list[IncidentEvent]] = {}
    for ids in bulk.portions(finding_ids or ()):
        wanted = {"all_findings": int(finding_ids is None), "finding_ids": ids}
        for row in connection.execute(statement("incident_events"), wanted):
            found.setdefault(row.finding_id, []).append(IncidentEvent(row.kind, row.run_id, row.version))
    return found


def add_action(connection: Connection, line: Line, action: Action) -> None:
    """Keep what a user did."""
    values = (
        *action.key, action.after_run_id, action.action, action.who, action.reason, action.when_ns, action.until_ns,
        action.until_version,
    )  # fmt: skip
    own = tuple(line.parameters.values())
    bulk.insert(connection, "finding_action", (*line.parameters, *_ACTION), [(*own, *values)])


def write(
    connection: Connection,
    line: Line,
    findings: Sequence[MadeFinding],
    fingerprint: bytes,
    checkpoint: tuple[int, bytes, bytes] | None,
    rule_version: int,
    before: Collection[int] = (),
) -> None:
    """Replace the findings of a line, but for those that began with one of the runs `before` and are not given; those
    that are the same ones (KEY) keep their numbers, and so do incidents. One that is back, or that another run of its
    version raises now, has the number that it had. What an older rule found, and this one does not, stays with all that
    was said of it, and is closed.

    `checkpoint`: as in `checkpoint_of`, for the next time.
    """
    incidents = _write_incidents(connection, line, findings)
    kept = {finding.key for finding in findings}
    rows = [
        row
        for row in connection.execute(_IDS, line.parameters)
        if tuple(row[2:]) in kept or row.first_run_id not in before
    ]
    known = {tuple(row[2:]): int(row[0]) for row in rows}
    again = {(finding.raised_in, *finding.key[:3]) for finding in findings if finding.key not in known}
    old = any(row[1] < rule_version for row in rows)
    numbered = connection.execute(_NUMBERS, line.parameters) if old else ()
    raised_in = {int(row.id): row.version_id for row in numbered}
    of_old_rules = [
        int(row[0])
        for row in rows
        if row[1] < rule_version
        and tuple(row[2:]) not in kept
        and (raised_in.get(int(row[0])), *row[2:5]) not in again  # the same change, raised by another run
    ]
    _close(connection, of_old_rules, rule_version)
    made = sorted(set(known.values()) - set(of_old_rules))
    for ids in bulk.portions(made) if made else ():
        connection.execute(_FORGET_EVENTS, {"ids": ids})
    gone = [number for key, number in known.items() if key not in kept and number in set(made)]
    for ids in bulk.portions(gone) if gone else ():
        connection.execute(_FORGET, {"ids": ids})
    known = {key: number for key, number in known.items() if key in kept}
    numbers = known | _numbers(connection, line, [one for one in findings if one.key not in known])
    _write_findings(connection, line, findings, known, numbers, incidents)
    events = [
        (numbers[finding.key], position, *event)
        for finding in findings
        for position, event in enumerate(finding.events)
    ]
    bulk.insert(connection, "finding_event", ("finding_id", "position", *EVENT_COLUMNS), sorted(events))
    made_from = (fingerprint, *(checkpoint or (None, None, None)))
    connection.execute(_ADD_FOLLOWED, {**line.parameters, **dict(zip(_MADE_FROM, made_from, strict=True))})


def _close(connection: Connection, ids: Sequence[int], rule_version: int) -> None:
    """Ends what an older rule found and this one does not, with the reason; what had ended stays as it was."""
    columns = ("finding_id", "position", *EVENT_COLUMNS)
    for some in bulk.portions(sorted(ids)) if ids else ():
        for row in connection.execute(_OPEN_BY_OLD_RULES, {"ids": some}).all():
            reason = f"the rule, version {rule_version}, does not find it: a version is judged by all its runs together"
            event = (row.state, "normal", "closed", "rule", None, None, rule_version, reason, False)
            bulk.insert(connection, "finding_event", columns, [(row.id, (row.position or 0) + 1, *event)])
            connection.execute(_CLOSE, {"id": row.id})


def _numbers(connection: Connection, line: Line, findings: Sequence[MadeFinding]) -> dict[tuple[Any, ...], int]:
    """The number of each of these findings, which are not there yet: the one that it had, or that of one of its kind,
    series and version that is gone; else a new one.
    """
    if not findings:
        return {}
    free = connection.execute(_FREE_NUMBERS, line.parameters).all()
    own = {tuple(row[2:]): int(row.id) for row in free}
    found = {one.key: own[one.key] for one in findings if one.key in own}
    left: dict[tuple[Any, ...], list[int]] = {}
    for row in free:
        if row.id not in found.values():
            left.setdefault((row.version_id, *row[2:5]), []).append(int(row.id))
    new = []
    for one in findings:
        if one.key not in found:
            same = left.get((one.raised_in, *one.key[:3]))
            if same:
                found[one.key] = same.pop(0)
            else:
                new.append(one)
    columns = (*line.parameters, "version_id", *KEY)
    bulk.insert(
        connection, "finding_number", columns, [(*line.parameters.values(), one.raised_in, *one.key) for one in new]
    )
    if new:
        added = {tuple(row[2:]): int(row.id) for row in connection.execute(_NUMBERS, line.parameters)}
        found |= {one.key: added[one.key] for one in new}
    return found


def _write_incidents(connection: Connection, line: Line, findings: Sequence[MadeFinding]) -> dict[int | None, int]:
    """Version -> number of its incident, the missing ones added."""
    wanted = sorted({one.version_id for one in findings if one.version_id is not None})
    unique = (*line.parameters, "version_id")
    own = tuple(line.parameters.values())
    bulk.insert(connection, "incident", unique, [(*own, version) for version in wanted], or_keep=", ".join(unique))
    return {row[1]: int(row[0]) for row in connection.execute(_INCIDENTS, line.parameters)}


def _write_findings(
    connection: Connection,
    line: Line,
    findings: Sequence[MadeFinding],
    known: Mapping[tuple[Any, ...], int],
    numbers: Mapping[tuple[Any, ...], int],
    incidents: Mapping[int | None, int],
) -> None:
    if not findings:
        return
    names = [*findings[0].columns, "incident_id"]
    rows = [(finding, [*finding.columns.values(), incidents.get(finding.version_id)]) for finding in findings]
    own = tuple(line.parameters.values())
    new = [(numbers[finding.key], *own, *values) for finding, values in rows if finding.key not in known]
    bulk.insert(connection, "finding", ("id", *line.parameters, *names), new)
    old = [dict(zip(names, values, strict=True), id=known[each.key]) for each, values in rows if each.key in known]
    if old:
        sets = ", ".join(f"{name} = :{name}" for name in names if name not in KEY)
        connection.execute(text(f"UPDATE finding SET {sets} WHERE id = :id"), old)  # noqa: S608 columns of the table
