"""Judges the versions of a branch, each as if it came next in the main line, behind the version that its code left it
at.

Nothing of a branch enters the main line: neither its runs, nor a level, nor a finding. The pushes of a branch do not
stand in for each other either: the second one that is slow is as slow as the first. A finding is open from the first
version of the branch that has it until one that does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from tracker.columns import I64
from tracker.detect.track import Track
from tracker.regressions.judgement import (
    TrackReader,
    facts_of,
    finding_row,
    incidents_of,
    judged_row,
    stated,
    stored_levels,
    verdict_columns,
)
from tracker.regressions.lifecycle import TrackState, VersionResult, judge_next
from tracker.regressions.track import TrackRuns, join_main, unjudged_track
from tracker.store import Store, judged, regressions, samples
from tracker.store.judged import Line
from tracker.store.regressions import FindingRow, IncidentRow


def update_branch(store: Store, line: Line) -> int:
    """Judge what is out of date of a branch, of which the main line is up to date; return how many versions were."""

    def write(connection: Connection) -> int:
        regressions.lock(connection, line)
        return _judge(connection, line)

    with store.connect() as connection:
        known = regressions.rests_on(connection, line)
        is_late = unjudged_track(connection, line).first_difference(known) is not None
    if not is_late:
        return 0
    with store.turn("judges"):
        return store.transact(write)


def _judge(connection: Connection, line: Line) -> int:
    """Judge a branch from its first version on that rests on something else than is there now."""
    known = regressions.rests_on(connection, line)
    track = unjudged_track(connection, line)
    first = track.first_difference(known)
    if first is None:
        return 0
    late = track.order[first - 1 :]
    gone = [version for version in known if version not in track.place]
    regressions.forget(connection, line, [*(version for version in late if version in known), *gone])
    findings = _undo(regressions.findings_of(connection, line), track, first)
    incidents: list[IncidentRow] = []
    for version in late:
        made = _judge_version(connection, track, version)
        findings, incident = _carry_on(findings, made, version)
        incidents += incident
        regressions.write_version(
            connection, line, row=made.row, levels=made.levels, verdicts=made.verdicts, facts=made.facts
        )
    regressions.put_incidents(connection, line, incidents)
    regressions.put_findings(connection, line, findings)
    return len(late)


class _Made(Struct, frozen=True):
    """What judging a version of a branch gives: rows of the tables, by the series of the branch."""

    row: regressions.JudgedRow
    levels: regressions.Levels
    verdicts: Sequence[Any]
    facts: Sequence[tuple[int, str, float, float]]
    findings: Sequence[FindingRow]
    incident: IncidentRow | None


def _judge_version(connection: Connection, track: TrackRuns, version: int) -> _Made:
    """Judge one version of a branch as the next one of its main line."""
    joined, known = join_main(connection, track, version)
    order, at = joined.order, len(joined.order)
    reader = TrackReader(joined.line, before=known)
    state = reader.load(connection, joined, at).before(at)
    data = reader.track(connection, joined, state, at)
    result = judge_next(data, state, at, joined.thresholds)
    # a suspect of the main line that these runs confirm began there, and is none of the branch's
    found = [one for one in result.found if one.first_version == at]
    _number_series(connection, track.line, data, result, [one.series for one in found])
    incident = next((row for row in incidents_of(data, state, result, order) if row.first_version_id == version), None)
    return _Made(
        judged_row(data, state, result, version, track.rests_on[version]),
        _levels(state, data, at, order),
        verdict_columns(data, state, result, order),
        facts_of(data, result),
        [finding_row(replace(one, stored=None), data.ids, order, data, at) for one in found],
        incident,
    )


def _number_series(
    connection: Connection, line: Line, data: Track, result: VersionResult, found: Sequence[int]
) -> None:
    """Give the series of which something is said the numbers that they have in the branch; others get none, -1.

    What is gone in a branch has no samples there, and is numbered when it is missed.
    """
    own = judged.series_of(connection, line)
    number_of: dict[tuple[str, ...], int] = dict(zip(own.keys, own.ids.tolist(), strict=True))
    said, _ = stated(data, result.judged)
    said[list(found)] = True
    said[[int(np.flatnonzero(data.ids == fact[0])[0]) for fact in facts_of(data, result)]] = True
    missing = [data.keys[row] for row in np.flatnonzero(said).tolist() if data.keys[row] not in number_of]
    number_of.update(samples.number_series(connection, tuple(line.parameters.values()), missing))
    data.ids = np.array([number_of.get(key, -1) for key in data.keys], dtype=np.int64)


def _levels(state: TrackState, data: Track, at: int, order: Sequence[int]) -> regressions.Levels:
    """The levels of a version of a branch, of the series that the branch has."""
    levels = stored_levels(state, at, data.there, data.ids, order)
    own: I64 = np.flatnonzero(levels.series_ids >= 0)
    return regressions.Levels(levels.series_ids[own], levels.levels[own], levels.settled[own], levels.waits[own])


def _undo(rows: Sequence[FindingRow], track: TrackRuns, first: int) -> list[FindingRow]:
    """Return the findings as they were before the version at `first`: what began later is withdrawn, what ended later
    is open again.
    """
    found = []
    for row in rows:
        began, ended = track.place.get(row.first_version_id, first), track.place.get(row.ended_version_id or 0)
        if began >= first:
            found.append(replace(row, state="withdrawn", ended_version_id=None, ended_by_version_id=None))
        elif row.state == "open" or ended is None or ended >= first:
            decided = min(track.place.get(row.decided_version_id, first), first - 1)
            found.append(replace(
                row, state="open", decided_version_id=track.order[decided - 1], ended_version_id=None,
                ended_by_version_id=None,
            ))  # fmt: skip
        else:
            found.append(row)
    return found


def _carry_on(rows: Sequence[FindingRow], made: _Made, version: int) -> tuple[list[FindingRow], list[IncidentRow]]:
    """Return the findings of a branch after a version, and the incidents that it has.

    What was open and is found again stays the finding of the version that it began with, with the numbers of now; what
    is not found again is over.
    """
    new = {_what(row): row for row in made.findings}
    found = []
    for row in rows:
        again = new.pop(_what(row), None) if row.state == "open" else None
        if again is not None:
            found.append(replace(again, first_version_id=row.first_version_id))
        elif row.state == "open":
            found.append(replace(row, state="recovered", ended_version_id=version, ended_by_version_id=version))
        else:
            found.append(row)
    # one that was withdrawn keeps its number, and with it what users said of it
    withdrawn = {row.key: at for at, row in enumerate(found) if row.state == "withdrawn"}
    for row in new.values():
        if row.key in withdrawn:
            found[withdrawn[row.key]] = row
        else:
            found.append(row)
    began = sorted({row.first_version_id for row in found if row.state == "open"})
    return found, [replace(made.incident, first_version_id=one) for one in began] if made.incident else []


def _what(row: FindingRow) -> tuple[int, str, str]:
    return row.series_id, row.direction, row.how
