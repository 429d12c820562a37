"""Which changes between two sides are none: older runs jump between two levels, and the newer side is on one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tracker.detectors.within import MODES_OF, Modes, is_between, jumps_between
from tracker.judgement.accepted import bad_runs
from tracker.judgement.families import family_of, more_is_better, unit_of
from tracker.judgement.follow import Watched, WatchedRun, is_centred, normal_runs, watched_of
from tracker.judgement.judging import Values
from tracker.judgement.thresholds import Thresholds
from tracker.results.verdicts import JUMPS
from tracker.store import Store
from tracker.store.chosen import ChosenRuns, Key, Known, all_keys, values_of_runs
from tracker.store.judged import Line, LineRun
from tracker.units import format_bytes, format_ns, size_unit, time_unit

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ChosenSide:
    """Runs in a database, and what they say. `known`: what was read of it before."""

    store: Store
    run_ids: Sequence[int]
    found: ChosenRuns
    known: Known = field(default_factory=Known)


@dataclass(frozen=True, slots=True)
class _Older:
    """The last runs of a line before the newer of two sides, oldest first. `runs`: all of the line."""

    store: Store
    known: Known
    line: Line
    runs: Sequence[LineRun]
    last: Sequence[LineRun]


def jumping(baseline: ChosenSide, candidate: ChosenSide, keys: Iterable[Key], thresholds: Thresholds) -> dict[Key, str]:
    """Those of the series `keys` whose change is one of the jumps that older runs show, and the reason in words.

    Both sides lie on the levels or between them. Older are the last 20 runs of the line before the newer side,
    whichever that is, so that swapped sides say the same; of them those that are accepted, series by series: a run in
    which it had an open regression is not. As findings are confirmed, see `follow`.
    """
    older, newer = _older(baseline, candidate)
    other = candidate if newer is baseline else baseline
    if older is None or not older.last:
        return {}
    with older.store.connect() as connection:
        past = values_of_runs(connection, [run.run_id for run in older.last], older.known)
    asked = sorted(keys)
    rows: Sequence[Key] = asked
    if any(is_centred(family_of(kind, metric, part)) for kind, metric, _, _, part in asked):
        rows = all_keys([past.keys, baseline.found.keys, candidate.found.keys])  # they say what all of them share
    watched = _watched(rows, (past, newer.found, other.found), thresholds)
    bad = bad_runs(older.store, older.line, older.runs)
    count, end = len(older.last), len(older.last) + len(newer.run_ids)
    places = {key: row for row, key in enumerate(rows)}
    newer_runs, other_runs = range(count, end), range(end, watched.raw.shape[1])
    device_timed = all(timeline == "device" for timeline in newer.found.timelines)
    reasons = {}
    for key in asked:
        accepted = [at for at, run in enumerate(older.last) if run.run_id not in bad.get(key, frozenset())]
        reason = _reason(watched, places[key], accepted, newer_runs, other_runs, device_timed=device_timed)
        if reason:
            reasons[key] = reason
    return reasons


def jumping_rows(
    line: Values,
    rows: Iterable[int],
    past: Sequence[WatchedRun],
    newer: Sequence[int],
    other: Sequence[int],
    *,
    device_timed: bool,
    thresholds: Thresholds,
) -> dict[int, str]:
    """The same for `rows` of a line whose runs are at hand, by those runs alone: nothing that users did counts.

    `past`: what the first columns of `line` are, the runs before the columns `newer`; of the last 20 of them those
    count in which the series was as it should be. `other`: the columns that `newer` is compared with.
    """
    first = max(0, len(past) - MODES_OF)
    columns = [*range(first, len(past)), *newer, *other]
    watched = _in_order(line, columns, thresholds)
    ends = len(past) - first, len(past) - first + len(newer)
    sides = range(*ends), range(ends[1], len(columns))
    suspects = [row for row in rows if _reason(watched, row, range(ends[0]), *sides, device_timed=device_timed)]
    if not suspects:
        return {}  # to follow the runs takes its time, and few series jump
    normal = normal_runs(watched_of(_columns(line, range(len(past))), past, thresholds), suspects)
    accepted = [np.flatnonzero(own).tolist() for own in normal[:, first:]]
    reasons = {
        row: _reason(watched, row, own, *sides, device_timed=device_timed)
        for row, own in zip(suspects, accepted, strict=True)
    }
    return {row: reason for row, reason in reasons.items() if reason}


def _reason(
    watched: Watched,
    row: int,
    accepted: Sequence[int],
    newer: Sequence[int],
    other: Sequence[int],
    *,
    device_timed: bool,
) -> str:
    """Why the change of a series between the columns `newer` and `other` is none; "" where it may be one."""
    family = watched.families[row]
    limits = watched.thresholds.limits(family, [watched.names[row]], device_timed=device_timed)
    own, slack = watched.centred[row], float(np.max(limits.effect))
    modes = jumps_between(own[list(accepted)], own[list(newer)], slack)
    if modes is None or not is_between(modes, own[list(other)], slack):
        return ""
    return f"{JUMPS}, {_levels(family[1], modes, bool(more_is_better([family])[0]))}"


def _older(baseline: ChosenSide, candidate: ChosenSide) -> tuple[_Older | None, ChosenSide]:
    """What is known of the time before the newer side, and that side."""
    if baseline.store is not candidate.store:
        # runs of two databases have no common order; the longer history is the one that tells something
        found = [(_all_of(side, side.run_ids), other) for side, other in ((baseline, candidate), (candidate, baseline))]
        return max(found, key=lambda pair: 0 if pair[0] is None else len(pair[0].last))
    known = _all_of(baseline, [*baseline.run_ids, *candidate.run_ids])
    if known is None:
        return None, candidate
    place = {run.run_id: at for at, run in enumerate(known.runs)}
    spans = [[place[number] for number in side.run_ids if number in place] for side in (baseline, candidate)]
    newer = baseline if max(spans[0], default=-1) > max(spans[1], default=-1) else candidate
    first = min(spans[0] if newer is baseline else spans[1], default=len(known.runs))
    return _Older(known.store, known.known, known.line, known.runs, known.runs[max(0, first - MODES_OF) : first]), newer


def _all_of(side: ChosenSide, run_ids: Sequence[int]) -> _Older | None:
    """The line of runs in the database of a side, with its last runs up to the newest of them; None where they are of
    several lines.
    """
    with side.store.connect() as connection:
        line, runs = side.known.line_of_runs(connection, run_ids)
    end = max((at + 1 for at, run in enumerate(runs) if run.run_id in set(run_ids)), default=0)
    last = runs[max(0, end - MODES_OF) : end]
    return None if line is None else _Older(side.store, side.known, line, runs, last)


def _watched(keys: Sequence[Key], sides: Sequence[ChosenRuns], thresholds: Thresholds) -> Watched:
    """The runs of all `sides`, behind each other, without what all operators of each share."""
    values, calls = beside(sides, keys)
    return _in_order(Values.of_keys(keys, values, calls), range(values.shape[1]), thresholds)


def _in_order(line: Values, columns: Sequence[int], thresholds: Thresholds) -> Watched:
    """These runs of `line`, in this order."""
    # centring knows the order of the runs alone, neither their versions nor when they ran
    runs = [WatchedRun(at, 0, 0, device_timed=False) for at in range(len(columns))]
    return watched_of(_columns(line, columns), runs, thresholds)


def _columns(line: Values, columns: Sequence[int]) -> Values:
    return replace(line, values=line.values[:, list(columns)], calls=line.calls[:, list(columns)])


def beside(sides: Sequence[ChosenRuns], keys: Sequence[Key]) -> tuple[F64, F64]:
    """Values and calls of the runs of all `sides`, a row per key, nan for series that a side does not have."""
    if all(tuple(side.keys) == tuple(keys) for side in sides):
        return np.hstack([side.values for side in sides]), np.hstack([side.calls for side in sides])
    place = {key: at for at, key in enumerate(keys)}
    found = [_in_rows(side, place) for side in sides]
    return np.hstack([values for values, _ in found]), np.hstack([calls for _, calls in found])


def _in_rows(side: ChosenRuns, place: Mapping[Key, int]) -> tuple[F64, F64]:
    there = [at for at, key in enumerate(side.keys) if key in place]
    rows = [place[side.keys[at]] for at in there]
    values, calls = np.full((2, len(place), side.values.shape[1]), np.nan)
    values[rows], calls[rows] = side.values[there], side.calls[there]
    return values, calls


def _levels(metric: str, modes: Modes, inverse: bool) -> str:
    """Both levels in words, in one unit."""
    low, high = (1.0 / modes.high, 1.0 / modes.low) if inverse else (modes.low, modes.high)
    unit = unit_of(metric)
    if unit == "ns":
        texts = [format_ns(level, time_unit(low, high)) for level in (low, high)]
    elif unit == "bytes":
        texts = [format_bytes(level, size_unit(low, high)) for level in (low, high)]
    else:
        texts = [f"{level:.4g}" for level in (low, high)]
    return " and ".join(texts)
