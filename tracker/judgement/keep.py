"""Keeps the findings of a line true: follows its runs again when they, the rule or what users did has changed."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple
from numpy.typing import NDArray
from sqlalchemy import Connection

from tracker.detectors import life, rule
from tracker.detectors.arrays import Columns
from tracker.detectors.life import NOTIFIED, Acted
from tracker.judgement.apart import are_there, write_apart
from tracker.judgement.families import more_is_better
from tracker.judgement.follow import (
    Checkpoint,
    Tracked,
    UserAction,
    VersionVerdicts,
    Watched,
    WatchedRun,
    resume,
    watched_of,
)
from tracker.judgement.follow.tracked import dated_of
from tracker.judgement.follow.tracks import Change
from tracker.judgement.judging import Values
from tracker.judgement.recorded import Split, one_per_key, recordings_of_line, series_id, split, split_runs
from tracker.judgement.thresholds import Thresholds
from tracker.store import Store, findings, judged, judgements, thresholds
from tracker.store.findings import Action, MadeFinding
from tracker.store.judged import Line, LineRun
from tracker.store.queries.recordings import recorded

DIRECTIONS: Mapping[int, str] = {1: "regression", -1: "improvement"}
_SIGNS = {word: sign for sign, word in DIRECTIONS.items()}
_ACTIONS: Mapping[str, life.Action] = {word: word for word in get_args(life.Action)}
_CHANGES: Mapping[str, Change] = {word: word for word in get_args(Change)}
_CONFIRMS = frozenset({"confirmed", "reopened"})


class SeriesVerdicts(Struct, frozen=True):
    """How a version was judged against the runs before it. `ids`: of series, ascending; `columns`: of
    `VersionVerdicts`, an element for each; `baseline_runs`: numbers of runs, as text.
    """

    ids: NDArray[np.int64]
    columns: Columns
    baseline_runs: str
    centre: float | None


class Made(Struct, frozen=True):
    """What following a line gives: its findings, the next checkpoint, and the verdicts of the versions that were looked
    at, by number.
    """

    findings: Sequence[MadeFinding]
    checkpoint: Checkpoint | None
    verdicts: Mapping[int, SeriesVerdicts]


class Followed(Struct, frozen=True):
    """Verdicts of versions, by number, and the fingerprint of what they were made from; see `rests_on`."""

    verdicts: Mapping[int, SeriesVerdicts]
    fingerprint: bytes


class _Kept(Struct, frozen=True):
    """What following a line gave, with all that it was made from. `stored`: the fingerprint of what was before."""

    runs: Sequence[LineRun]
    actions: Sequence[Action]
    stored: bytes | None
    fingerprint: bytes
    made: Made


def keep(store: Store, line: Line, *, now_ns: int, wanted: Collection[int] = ()) -> Followed:
    """Make the findings of a line again if what they rest on has changed, or a mute is over; the verdicts of the
    `wanted` versions at least, of those that are there.
    """
    made: list[_Kept] = []

    def make(connection: Connection, line: Line) -> _Kept | None:
        kept = _make(connection, line, now_ns)
        made[:] = [kept] if kept is not None else []
        return kept

    with store.connect() as connection:
        fresh = _is_fresh(connection, line, rests_on(connection, line)[2], now_ns)
    if not fresh:
        write_apart(store, line, make, _holds, _write)
    if made and made[0].made.verdicts.keys() >= set(wanted):
        return Followed(made[0].made.verdicts, made[0].fingerprint)
    if not wanted:
        return Followed({}, b"")
    with store.connect() as connection:
        runs, _, fingerprint = rests_on(connection, line)
        known = findings.checkpoint_of(connection, line)
        again = made_findings(connection, line, runs, now_ns, None if known is None else Checkpoint(*known))
        if set(wanted) - again.verdicts.keys():
            again = made_findings(connection, line, runs, now_ns)
        return Followed(again.verdicts, fingerprint)


def _make(connection: Connection, line: Line, now_ns: int) -> _Kept | None:
    """None where they are as they should be."""
    # first of all: whatever comes while they are made must find that they do not rest on it
    runs, actions, fingerprint = rests_on(connection, line)
    if _is_fresh(connection, line, fingerprint, now_ns):
        return None
    stored, known = findings.fingerprint_of(connection, line), findings.checkpoint_of(connection, line)
    made = made_findings(connection, line, runs, now_ns, None if known is None else Checkpoint(*known))
    return _Kept(runs, actions, stored, fingerprint, made)


def _holds(connection: Connection, line: Line, kept: _Kept) -> bool:
    return (
        findings.fingerprint_of(connection, line) == kept.stored
        and are_there(connection, line, kept.runs)
        and findings.actions_of(connection, line) == kept.actions
    )


def _write(connection: Connection, line: Line, kept: _Kept) -> None:
    checkpoint = None if kept.made.checkpoint is None else astuple(kept.made.checkpoint)
    findings.write(connection, line, kept.made.findings, kept.fingerprint, checkpoint, rule.RULE_VERSION)


def _is_fresh(connection: Connection, line: Line, fingerprint: bytes, now_ns: int) -> bool:
    known = findings.fingerprint_of(connection, line)
    return known == fingerprint and not findings.expired(connection, line, now_ns)


def rests_on(connection: Connection, line: Line) -> tuple[list[LineRun], list[Action], bytes]:
    """The runs in their order, what users did, and what stands for both, the rule and the limits."""
    runs = judged.runs_of(connection, line)
    actions = findings.actions_of(connection, line)
    fingerprint = judgements.fingerprint(
        rule.RULE_VERSION,
        Thresholds(thresholds.of_line(connection, line)).key,
        *((run.version_id, run.run_id, run.ranks, run.timeline) for run in runs),
        *recordings_of_line(recorded(connection, [run.run_id for run in runs]), [run.run_id for run in runs]),
        *((action.key, action.action, action.when_ns) for action in actions),
    )
    return runs, actions, fingerprint


def watched_line(
    connection: Connection, line: Line, runs: Sequence[LineRun], *, recordings: bool = True
) -> tuple[Watched, list[int]]:
    """The runs of a line, ready to be followed, and the number of each of its rows (see `recorded.series_id`).

    `recordings`: runs that were recorded differently have rows of their own; else a row is a series.
    """
    watched, made, ids = _watched_line(connection, line, runs, recordings=recordings)
    return watched, made.numbers(ids).tolist()


def _watched_line(
    connection: Connection, line: Line, runs: Sequence[LineRun], *, recordings: bool
) -> tuple[Watched, Split, NDArray[np.int64]]:
    """The runs of a line, ready to be followed; which rows these are; and the series of those keys."""
    series = judged.series_of(connection, line)
    values, calls = judged.values_of(connection, [run.run_id for run in runs], series)
    there = np.asarray(~np.isnan(values).all(axis=1))
    keys = [key for key, known in zip(series.keys, there.tolist(), strict=True) if known]
    values, calls, run_ids = values[there], calls[there], [run.run_id for run in runs]
    made = split_runs(connection, keys, values, calls, run_ids) if recordings else split(keys, values, calls, ())
    known = Values.of_split(made)
    versions = list(dict.fromkeys(run.version_id for run in runs))
    watched = [
        WatchedRun(run.run_id, versions.index(run.version_id), run.started_at_ns, run.timeline == "device", run.version)
        for run in runs
    ]
    limits = Thresholds(thresholds.of_line(connection, line))
    return watched_of(known, watched, limits), made, series.ids[there]


def made_findings(
    connection: Connection,
    line: Line,
    runs: Sequence[LineRun],
    now_ns: int | None = None,
    known: Checkpoint | None = None,
) -> Made:
    """All findings of a line, as its runs and the actions of users make them, from the checkpoint `known` on where that
    holds.
    """
    if not runs:
        return Made([], None, {})
    watched, made, ids = _watched_line(connection, line, runs, recordings=True)
    series = made.numbers(ids).tolist()
    rows_of: dict[int, list[int]] = {}
    for row, number in enumerate(series):
        rows_of.setdefault(series_id(number), []).append(row)
    place = {run.run_id: at for at, run in enumerate(runs)}
    said = recorded(connection, place)
    actions = [action for action in findings.actions_of(connection, line) if action.key[0] in rows_of]

    def row_of(action: Action) -> int:
        """The row of the recording of the run with which the finding began."""
        own, first = rows_of[action.key[0]], place.get(action.key[3])
        tag = 0 if first is None else made.tag_of(made.keys[own[0]], first)
        return next((row for row in own if int(made.tags[row]) == tag), own[0])

    def fingerprint(count: int, parts: tuple[Any, ...]) -> bytes:
        own = [(run.version_id, run.run_id, run.ranks, run.timeline) for run in runs[:count]]
        recordings = recordings_of_line(said, [run.run_id for run in runs[:count]])
        return judgements.fingerprint(rule.RULE_VERSION, watched.thresholds.key, own, parts, *recordings)

    found, kept, verdicts = resume(
        watched, np.array(series, dtype=np.int64), [_user_action(action, row_of(action), runs) for action in actions],
        fingerprint, known=known, now_ns=now_ns,
    )  # fmt: skip
    until = {action.key: action.until_version for action in actions if action.action == "mute"}
    rows = [_made(tracked, watched, series_id(series[tracked.row]), runs, until) for tracked in found]
    return Made(rows, kept, {runs[own.runs[0]].version_id: _by_series(own, made, ids, runs) for own in verdicts})


def _by_series(
    verdicts: VersionVerdicts, made: Split, ids: NDArray[np.int64], runs: Sequence[LineRun]
) -> SeriesVerdicts:
    """The verdicts of rows as those of series, of which some have a row for each way to record them."""
    columns = verdicts.columns
    if made.is_split:
        chosen = one_per_key(made, verdicts.runs, columns["verdict"].tolist())
        columns = {name: column[chosen] for name, column in columns.items()}
    numbers = " ".join(str(runs[place].run_id) for place in verdicts.window)
    return SeriesVerdicts(ids, columns, numbers, verdicts.centre)


def _user_action(action: Action, row: int, runs: Sequence[LineRun]) -> UserAction:
    _, direction, change, first_run = action.key
    versions = list(dict.fromkeys(run.version for run in runs))
    until = versions.index(action.until_version) if action.until_version in versions else None
    if action.until_version is not None and until is None:
        until = len(versions)  # a version that has no run yet
    acted = Acted(_ACTIONS[action.action], action.who, action.when_ns, action.reason, action.until_ns, until)
    return UserAction((row, _SIGNS[direction], _CHANGES[change]), first_run, action.after_run_id, acted)


def _made(
    tracked: Tracked,
    watched: Watched,
    number: int,
    runs: Sequence[LineRun],
    until: Mapping[tuple[int, str, str, int], str | None],
) -> MadeFinding:
    """`number`: of its series; `until`: the versions that findings are muted until, by their key."""
    finding, gates = tracked.finding, tracked.gates
    first = dated_of(watched, tracked) if finding.state in NOTIFIED else tracked.first
    good = max(tracked.baseline, default=None)
    sides = {"baseline": list(tracked.baseline), "candidate": list(tracked.candidate)}
    columns: dict[str, Any] = {
        "series_id": number,
        "direction": DIRECTIONS[tracked.sign],
        "change": tracked.change,
        "first_run_id": runs[tracked.first].run_id,
        "first_version_id": runs[first].version_id,
        "good_version_id": None if good is None or good >= first else runs[good].version_id,
        "state": finding.state,
        "number": finding.number,
        "reopened": finding.reopened,
        "rule_version": rule.RULE_VERSION,
        "effect": math.expm1(tracked.sign * tracked.effect) if tracked.change != "presence" else None,
        "last_run_id": runs[tracked.first if tracked.last is None else tracked.last].run_id,
        **gates,
        "until_ns": finding.until_ns if finding.state == "muted" else None,
    }
    key = (number, columns["direction"], tracked.change, columns["first_run_id"])
    columns["until_version"] = until.get(key) if finding.state == "muted" else None
    if more_is_better([watched.families[tracked.row]])[0]:
        # what was judged is the inverse of what is shown
        columns |= {name: inverse_diff(columns[name]) for name in ("ratio", "effect")}
        columns |= {"low": inverse_diff(gates["high"]), "high": inverse_diff(gates["low"])}
    for side, places in sides.items():
        columns[f"{side}_value"] = _mean(_said(watched, tracked.row, places))
        columns[f"{side}_calls"] = _mean(watched.calls[tracked.row, places])
        columns[f"{side}_runs"] = " ".join(str(runs[place].run_id) for place in places)
    columns["step_runs"] = " ".join(str(runs[place].run_id) for place in tracked.step_baseline) or None
    events = [
        (one.source, one.target, one.kind, one.who, one.when_ns, one.run, one.rule_version, one.reason, one.notifies)
        for one in tracked.transitions
    ]
    confirmed = any(one.kind in _CONFIRMS for one in tracked.transitions)
    incident = runs[first].version_id if confirmed else None
    return MadeFinding(columns, events, incident, runs[tracked.first].version_id)


def inverse_diff(diff: float | None) -> float | None:
    """DIFF of a number, from DIFF of its inverse.

    >>> inverse_diff(1.0), inverse_diff(None)
    (-0.5, None)
    """
    return None if diff is None else 1.0 / (1.0 + diff) - 1.0


def _said(watched: Watched, row: int, places: Sequence[int]) -> np.ndarray[Any, Any]:
    """The values of runs as they were stored: throughput is followed as its inverse."""
    values = watched.raw[row, places]
    return 1.0 / values if more_is_better([watched.families[row]])[0] else values


def _mean(values: np.ndarray[Any, Any]) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
