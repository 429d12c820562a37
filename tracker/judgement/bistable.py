"""Which changes between two sides are none: older runs jump between two levels, and the newer side is on one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from tracker.detectors.within import MODES_OF
from tracker.judgement.accepted import bad_runs
from tracker.judgement.families import family_of
from tracker.judgement.follow.jumps import in_order, reason_of_jump
from tracker.judgement.follow.watched import is_centred
from tracker.judgement.judging import Values
from tracker.judgement.recorded import one_per_key, recordings_of, split
from tracker.judgement.thresholds import Thresholds
from tracker.store import Store
from tracker.store.chosen import ChosenRuns, Key, Known, all_keys, values_of_runs
from tracker.store.judged import Line, LineRun

F64 = NDArray[np.float64]


class ChosenSide(Struct, frozen=True, eq=False):
    """Runs in a database, and what they say. `known`: what was read of it before."""

    store: Store
    run_ids: Sequence[int]
    found: ChosenRuns
    known: Known = field(default_factory=Known)


class _Older(Struct, frozen=True):
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
        recordings = older.known.recorded(connection, [run.run_id for run in older.last])
    for side in (newer, other):
        with side.store.connect() as connection:
            recordings += side.known.recorded(connection, side.run_ids)
    asked = sorted(keys)
    rows: Sequence[Key] = asked
    if any(is_centred(family_of(kind, metric, part)) for kind, metric, _, _, part in asked):
        rows = all_keys([past.keys, baseline.found.keys, candidate.found.keys])  # they say what all of them share
    values, calls = beside((past, newer.found, other.found), rows)
    made = split(rows, values, calls, recordings_of(rows, values, recordings))
    watched = in_order(Values.of_split(made), range(values.shape[1]), thresholds)
    bad = bad_runs(older.store, older.line, older.runs)
    count, end = len(older.last), len(older.last) + len(newer.run_ids)
    newer_runs, other_runs = range(count, end), range(end, watched.raw.shape[1])
    # a level of runs that were recorded differently is none of the series
    chosen = one_per_key(made, newer_runs, [None] * len(made.keys)).tolist()
    places = dict(zip(rows, chosen, strict=True))
    device_timed = all(timeline == "device" for timeline in newer.found.timelines)
    reasons = {}
    for key in asked:
        accepted = [at for at, run in enumerate(older.last) if run.run_id not in bad.get(key, frozenset())]
        reason = reason_of_jump(watched, places[key], accepted, newer_runs, other_runs, device_timed=device_timed)
        if reason:
            reasons[key] = reason
    return reasons


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


def beside(sides: Sequence[ChosenRuns], keys: Sequence[Key]) -> tuple[F64, F64]:
    """Values and calls of the runs of all `sides`, a row per key, nan for series that a side does not have."""
    found = []
    for own, same in groupby(sides, key=lambda side: side.keys):  # sides of one line mostly have the same series
        values, calls = map(np.hstack, zip(*((side.values, side.calls) for side in same), strict=True))
        found.append((values, calls) if own == tuple(keys) else _in_rows(keys, own, values, calls))
    return np.hstack([values for values, _ in found]), np.hstack([calls for _, calls in found])


def _in_rows(keys: Sequence[Key], own: Sequence[Key], values: F64, calls: F64) -> tuple[F64, F64]:
    """`values` and `calls` of series `own`, a row for each of `keys`."""
    place = {key: at for at, key in enumerate(keys)}
    there = [at for at, key in enumerate(own) if key in place]
    rows = [place[own[at]] for at in there]
    found = np.full((2, values.shape[1], len(keys)), np.nan)
    found[0][:, rows], found[1][:, rows] = values.T[:, there], calls.T[:, there]
    return found[0].T, found[1].T
