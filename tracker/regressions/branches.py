"""Judges the versions of a branch, each as if it came next in the main line, behind the version that its code left it
at.

Nothing of a branch enters the main line: neither its runs, nor a level, nor a finding. The pushes of a branch do not
stand in for each other either: the second one that is slow is as slow as the first. A finding is open from the first
version of the branch that has it until one that does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from tracker.columns import I64
from tracker.detect import Verdict
from tracker.detect.track import Track
from tracker.regressions.judged_rows import (
    facts_of,
    facts_of_kinds,
    finding_row,
    incidents_of_kinds,
    judged_row_of_kind,
    stated,
    stored_levels,
    time_of_kinds,
    verdict_columns_of_kinds,
)
from tracker.regressions.lifecycle import TrackState, VersionResult
from tracker.regressions.step_kinds import judge_kinds
from tracker.regressions.track import TrackRuns, join_main, unjudged_track
from tracker.regressions.track_reader import TrackReader
from tracker.store import findings as stored_findings
from tracker.store import samples
from tracker.store import tracks as stored_tracks
from tracker.store.findings import FindingRow, IncidentRow
from tracker.store.tracks import TrackKey

_LEAST_GROWTH: Final = 0.05
"""A log: what is found again and is larger by less is the same."""


def first_late(track: TrackRuns, known: Mapping[int, bytes]) -> int | None:
    """Return the place of the first version that is to be judged again, None where none is; from the first one on where
    a version is gone: findings may have begun with it.
    """
    return 1 if known.keys() - track.rests_on.keys() else track.first_difference(known)


def judge_next(connection: Connection, track_key: TrackKey) -> Literal["judged", "nothing", "main is not judged"]:
    """Judge the first version of a branch that is out of date, and say whether there was one that can be judged.

    What was judged after it is forgotten: findings are carried on from version to version.
    """
    stored_findings.lock_track(connection, track_key)
    known = stored_findings.read_rests(connection, track_key)
    track = unjudged_track(connection, track_key)
    first = first_late(track, known)
    if first is None:
        return "nothing"
    assert track.main is not None
    # what is read of the main line below must not be written again meanwhile
    stored_findings.lock_track(connection, track.main.key)
    version = track.order[first - 1] if first <= len(track.order) else None
    if version is not None and not _is_main_judged(connection, track, version):
        return "main is not judged"
    kept = set(track.order[: first - 1])
    stored_findings.forget_versions(connection, track_key, [one for one in known if one not in kept])
    findings = _undo(stored_findings.read_findings(connection, track_key), track, first)
    if version is not None:
        made = _judge_version(connection, track, version)
        findings, incidents = _carry_on(findings, made, version)
        stored_findings.write_version(
            connection,
            track_key,
            row=made.row,
            basis=track.basis[version],
            levels=made.levels,
            verdicts=made.verdicts,
            facts=made.facts,
        )
        stored_findings.write_incidents(connection, track_key, incidents)
    stored_findings.write_findings(connection, track_key, findings)
    return "nothing" if version is None else "judged"


def _is_main_judged(connection: Connection, track: TrackRuns, version: int) -> bool:
    """Return whether the main line is judged up to the version that this one is judged from, from the runs that it has
    now.
    """
    assert track.main is not None
    base = track.bases[version]
    known = stored_findings.read_rests(connection, track.main.key)
    needed = islice(track.main.rests_on.items(), base.place if base else 0)
    return all(known.get(number) == own for number, own in needed)


class _Made(Struct, frozen=True):
    """What judging a version of a branch gives: rows of the tables, by the series of the branch."""

    row: stored_findings.JudgedRow
    levels: stored_findings.Levels
    verdicts: Sequence[Any]
    facts: Sequence[tuple[int, str, float, float]]
    findings: Sequence[FindingRow]
    incident: IncidentRow | None


def _judge_version(connection: Connection, track: TrackRuns, version: int) -> _Made:
    """Judge one version of a branch as the next one of its main line."""
    joined, known = join_main(connection, track, version)
    order, at = joined.order, len(joined.order)
    reader = TrackReader(joined.key, before=known)
    state = reader.load(connection, joined, at).before(at)
    data = reader.track(connection, joined, state, at)
    judged = judge_kinds(data, state, at, joined.thresholds)
    main = judged.choose_main(time_of_kinds(connection, judged, [run.run_id for run in reader.runs]))
    found = [one for one in judged.found if one.first_version == at]
    for one in judged.kinds:
        _abstain(one.result, at)
        new = [finding.series for finding in one.result.found if finding.first_version == at]
        _number_series(connection, track.key, one.track, one.result, new)
        data.ids[one.rows] = one.track.ids
    incident = next((row for row in incidents_of_kinds(judged, main, order) if row.first_version_id == version), None)
    return _Made(
        judged_row_of_kind(judged, main, version, track.rests_on[version]),
        _levels(state, data, at, order),
        verdict_columns_of_kinds(judged, order),
        facts_of_kinds(judged),
        [finding_row(replace(one, stored=None), data.ids, order, data, at) for one in found],
        incident,
    )


def _abstain(result: VersionResult, at: int) -> None:
    """Call suspect what these runs would confirm of an older version: whether that was slow before is for further runs
    of the main line to say, and not for a branch.
    """
    rows = [one.series for one in result.found if one.first_version != at]
    result.judged.verdict[rows] = Verdict.SUSPECT


def _number_series(
    connection: Connection, track_key: TrackKey, data: Track, result: VersionResult, found: Sequence[int]
) -> None:
    """Give the series of which something is said the numbers that they have in the branch; others get none, -1.

    What is gone in a branch has no samples there, and is numbered when it is missed.
    """
    own = stored_tracks.read_series(connection, track_key)
    number_of: dict[tuple[str, ...], int] = dict(zip(own.keys, own.ids.tolist(), strict=True))
    said, _ = stated(data, result.judged)
    said[list(found)] = True
    said[[int(np.flatnonzero(data.ids == fact[0])[0]) for fact in facts_of(data, result)]] = True
    missing = [data.keys[row] for row in np.flatnonzero(said).tolist() if data.keys[row] not in number_of]
    number_of.update(samples.number_series(connection, tuple(track_key.parameters.values()), missing))
    data.ids = np.array([number_of.get(key, -1) for key in data.keys], dtype=np.int64)


def _levels(state: TrackState, data: Track, at: int, order: Sequence[int]) -> stored_findings.Levels:
    """Return the levels of a version of a branch, of the series that the branch has."""
    levels = stored_levels(state, at, data.there, data.ids, order)
    own: I64 = np.flatnonzero(levels.series_ids >= 0)
    return stored_findings.Levels(levels.series_ids[own], levels.levels[own], levels.settled[own], levels.waits[own])


def _undo(rows: Sequence[FindingRow], track: TrackRuns, first: int) -> list[FindingRow]:
    """Return the findings as they were before the version at `first`: what began later is withdrawn, what ended later
    is open again.
    """
    found = []
    for row in rows:
        began, ended = track.place.get(row.first_version_id, first), track.place.get(row.ended_version_id or 0)
        if began >= first:
            found.append(replace(row, state="withdrawn", ended_version_id=None, ended_by_version_id=None))
        elif row.state == "withdrawn" or (row.state != "open" and ended is not None and ended < first):
            found.append(row)
        else:
            decided = min(track.place.get(row.decided_version_id, first), first - 1)
            found.append(replace(
                row, state="open", decided_version_id=track.order[decided - 1], ended_version_id=None,
                ended_by_version_id=None,
            ))  # fmt: skip
    return found


def _carry_on(rows: Sequence[FindingRow], made: _Made, version: int) -> tuple[list[FindingRow], list[IncidentRow]]:
    """Return the findings of a branch after a version, and the incidents that it has.

    What was open and is found again, no larger, stays the finding of the version that it began with, with the numbers
    of now. What grew is a finding of its own beside it, of which users said nothing yet. What is not found again, or
    smaller, is over.
    """
    new = {_what(row): row for row in made.findings}
    found = []
    for row in sorted(rows, key=lambda row: -row.size):
        again = new.get(_what(row))
        if row.state != "open":
            found.append(row)
        elif again is None or again.size < row.size - _tolerance(row):
            found.append(replace(row, state="recovered", ended_version_id=version, ended_by_version_id=version))
        elif again.size <= row.size + _tolerance(row):
            found.append(replace(new.pop(_what(row)), first_version_id=row.first_version_id))
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


def _tolerance(row: FindingRow) -> float:
    """Return by how much a change may differ that is still the one that was found: a log, as its size."""
    return max(_LEAST_GROWTH, row.size / 4)


def _what(row: FindingRow) -> tuple[int, str, str]:
    return row.series_id, row.direction, row.how
