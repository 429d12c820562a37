"""Keeps the findings of a line true: follows its runs again when they, the rule or what users did has changed."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import astuple
from numpy.typing import NDArray
from sqlalchemy import Connection

from tracker.detectors import rule
from tracker.detectors.arrays import Columns
from tracker.detectors.life import NOTIFIED
from tracker.judgement.apart import are_there, write_apart
from tracker.judgement.basis import Basis, basis_of, words_of
from tracker.judgement.families import more_is_better
from tracker.judgement.follow import Checkpoint, Tracked, VersionVerdicts, Watched, dated_of, resume
from tracker.judgement.reading import DIRECTIONS, Read, StoredLine, StoredRuns
from tracker.judgement.recorded import one_per_key, recorded_runs, series_id
from tracker.judgement.thresholds import Thresholds
from tracker.store import Store, findings, judgements, thresholds
from tracker.store.findings import MadeFinding
from tracker.store.judged import Line, LineRun

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
    at, by number. `before`: the runs that a checkpoint stands for; of the findings that began with those, the ones that
    are not among `findings` are as they were. `read`: what was read of the line.
    """

    findings: Sequence[MadeFinding]
    checkpoint: Checkpoint | None
    verdicts: Mapping[int, SeriesVerdicts]
    before: frozenset[int] = frozenset()
    read: Read = field(default_factory=Read)


class Followed(Struct, frozen=True):
    """Verdicts of versions, by number, and the fingerprint of what they were made from; see `fingerprint_of`. `read`:
    what was read of the line for it.
    """

    verdicts: Mapping[int, SeriesVerdicts]
    fingerprint: bytes
    read: Read = field(default_factory=Read)


class Before(Struct, frozen=True):
    """What the findings of a line rest on, and what those rested on that were `stored` before that was read: who writes
    others meanwhile knows more. `fingerprint`: what stands for `basis`.
    """

    stored: bytes | None
    basis: Basis
    fingerprint: bytes


class _Kept(Struct, frozen=True):
    """What following a line gave, with all that it was made from."""

    before: Before
    made: Made


def keep(
    store: Store,
    line: Line,
    *,
    now_ns: int,
    wanted: Collection[int] = (),
    before: Before | None = None,
) -> Followed:
    """Make the findings of a line again if what they rest on has changed, or a mute is over; the verdicts of the
    `wanted` versions at least, of those that are there. `before`: see there, read just now.
    """
    made: list[_Kept] = []
    with store.connect() as connection:
        at_hand = [before_of(connection, line) if before is None else before]
        fresh = _is_fresh(connection, line, at_hand[0], now_ns)

    def make(connection: Connection, line: Line) -> _Kept | None:
        kept = _make(connection, line, now_ns, at_hand.pop() if at_hand else before_of(connection, line))
        made[:] = [kept] if kept is not None else []
        return kept

    if not fresh:
        write_apart(store, line, make, _holds, _write)
    if made and made[0].made.verdicts.keys() >= set(wanted):
        return Followed(made[0].made.verdicts, made[0].before.fingerprint, made[0].made.read)
    if not wanted:
        return Followed({}, b"")
    with store.connect() as connection:
        own = basis_of(connection, line)
        known = findings.checkpoint_of(connection, line)
        again = made_findings(connection, line, own, now_ns, None if known is None else Checkpoint(*known))
        if set(wanted) - again.verdicts.keys():
            again = made_findings(connection, line, own, now_ns)
        return Followed(again.verdicts, fingerprint_of(own), again.read)


def _make(connection: Connection, line: Line, now_ns: int, before: Before) -> _Kept | None:
    """None where they are as they should be."""
    if _is_fresh(connection, line, before, now_ns):
        return None
    known = findings.checkpoint_of(connection, line)
    made = made_findings(connection, line, before.basis, now_ns, None if known is None else Checkpoint(*known))
    return _Kept(before, made)


def _holds(connection: Connection, line: Line, kept: _Kept) -> bool:
    before = kept.before
    return (
        findings.fingerprint_of(connection, line) == before.stored
        and are_there(connection, line, before.basis.runs)
        and findings.actions_of(connection, line) == before.basis.actions
    )


def _write(connection: Connection, line: Line, kept: _Kept) -> None:
    made = kept.made
    checkpoint = None if made.checkpoint is None else astuple(made.checkpoint)
    fingerprint = kept.before.fingerprint
    findings.write(connection, line, made.findings, fingerprint, checkpoint, rule.RULE_VERSION, made.before)


def _is_fresh(connection: Connection, line: Line, before: Before, now_ns: int) -> bool:
    known = findings.fingerprint_of(connection, line)
    return known == before.fingerprint and not findings.expired(connection, line, now_ns)


def before_of(connection: Connection, line: Line) -> Before:
    """What the findings of a line rest on now."""
    # in this order: whoever writes while it is read is seen in one or the other
    stored, basis = findings.fingerprint_of(connection, line), basis_of(connection, line)
    return Before(stored, basis, fingerprint_of(basis))


def fingerprint_of(basis: Basis) -> bytes:
    """What stands for all that the findings of a line rest on."""
    return judgements.fingerprint(
        rule.RULE_VERSION,
        basis.limits.key,
        *map(words_of, basis.runs),
        *((action.key, action.action, action.when_ns) for action in basis.actions),
    )


def watched_line(
    connection: Connection, line: Line, runs: Sequence[LineRun], *, recordings: bool = True
) -> tuple[Watched, list[int]]:
    """The runs of a line, ready to be followed, and the number of each of its rows (see `recorded.series_id`).

    `recordings`: runs that were recorded differently have rows of their own; else a row is a series.
    """
    said = recorded_runs(connection, runs) if recordings else {}
    basis = Basis(runs, Thresholds(thresholds.of_line(connection, line)), said, ())
    stored = StoredLine(connection, line, basis).whole(recordings=recordings)
    return stored.watched, stored.numbers.tolist()


def made_findings(
    connection: Connection, line: Line, basis: Basis, now_ns: int | None = None, known: Checkpoint | None = None
) -> Made:
    """The findings of a line, as its runs and the actions of users make them: all of them; from the checkpoint `known`
    on, where that holds, those that a run since then could change.
    """
    runs = basis.runs
    if not runs:
        return Made([], None, {})
    stored = StoredLine(connection, line, basis)

    def fingerprint(count: int, parts: tuple[Any, ...]) -> bytes:
        return judgements.fingerprint(rule.RULE_VERSION, basis.limits.key, *map(words_of, runs[:count]), parts)

    followed = resume(stored, fingerprint, known=known, now_ns=now_ns)
    read = stored.stored
    if read is None:
        raise AssertionError("what was followed was read")
    until = {action.key: action.until_version for action in basis.actions if action.action == "mute"}
    ids = series_id(read.numbers).tolist()
    rows = [_made(tracked, read.watched, ids[tracked.row], read.runs, until) for tracked in followed.found]
    verdicts = {read.runs[own.runs[0]].version_id: _by_series(own, read) for own in followed.verdicts}
    before = frozenset(run.run_id for run in runs[: followed.since])
    return Made(rows, followed.checkpoint, verdicts, before, stored.at_hand)


def _by_series(verdicts: VersionVerdicts, read: StoredRuns) -> SeriesVerdicts:
    """The verdicts of rows as those of series, of which some have a row for each way to record them."""
    columns, made = verdicts.columns, read.made
    if made.is_split:
        candidate = [at - read.watched.first_read for at in verdicts.runs]
        chosen = one_per_key(made, candidate, columns["verdict"].tolist())
        columns = {name: column[chosen] for name, column in columns.items()}
    numbers = " ".join(str(read.runs[place].run_id) for place in verdicts.window)
    return SeriesVerdicts(read.ids, columns, numbers, verdicts.centre)


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
