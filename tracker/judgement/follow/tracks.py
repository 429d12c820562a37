"""What runs of a version, or after a suspicion, say of every series: by its level, its calls, its presence."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.detectors import rule
from tracker.detectors.arrays import Columns, cut
from tracker.detectors.baseline import ENOUGH, WINDOW
from tracker.detectors.centre import Centre
from tracker.detectors.judging import Weights, confirm, judge_series
from tracker.detectors.presence import beyond, judge_calls, judge_presence
from tracker.judgement.families import RUN, UNCOUNTED, Family, is_tagged, more_is_better, telling
from tracker.judgement.follow.watched import Watched
from tracker.judgement.follow.windows import Windows, gathered
from tracker.judgement.judging import run_totals
from tracker.store.samples import UNPROFILED

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

Change = Literal["level", "calls", "presence", "creep"]
GATES: Final = (
    "ratio", "low", "high", "p", "q", "contribution", "detectable", "effect_passes", "q_passes", "contribution_passes",
    "verdict", "reason",
)  # fmt: skip
"""What a judgement of a series leaves behind; nan and None where a way of judging does not have it."""

_CALLED: Final = (*rule.CHANGED, rule.ADDED, rule.REMOVED)
_WORDS: Final = frozenset({"verdict", "reason"})


class Said(Struct, frozen=True):
    """What runs say of all series in one way: `sign` per series (1 worse, -1 better, 0 nothing), `gates`: those of
    GATES that any series has.
    """

    sign: I64
    gates: dict[str, NDArray[Any]]

    def of(self, row: int) -> dict[str, Any]:
        """The gates of one series; None for what this way of judging does not have."""
        return {gate: _plain(self.gates[gate][row]) if gate in self.gates else None for gate in GATES}


def levels(
    watched: Watched,
    windows: Windows,
    columns: Sequence[int],
    suspects: I64 | None = None,
    families: Collection[Family] | None = None,
    *,
    whole: bool = False,
) -> Said:
    """Whether series got slower or faster in the runs `columns`, against their windows; with `suspects` (a sign per
    series), whether those are confirmed. `families`: only of these, and of what they need; None: of all. `whole`: with
    every gate of every series, changed or not.
    """
    said = nothing(len(watched.names))
    of_runs = families is None or any(family[0] == RUN for family in families)
    explained, leaves = 0.0, watched.leaves
    run = list(columns)
    if run[0] < (1 if whole else ENOUGH):
        return said  # no window can hold enough
    step = watched.larger_step(range(max(0, run[0] - WINDOW), run[0]), run)
    for family, rows in watched.kinds.items():
        if family[0] == RUN or (suspects is not None and not suspects[rows].any()):
            continue
        if families is not None and family not in families and (family not in leaves or not of_runs):
            continue
        x = gathered(watched.centred, rows, windows.columns[rows])
        y = cut(watched.centred, rows, run)
        if np.isnan(y).all():
            continue
        weights = Weights(step=step) if watched.is_time(family) and not np.isnan(step) else Weights()
        limits, older = watched.limits[family].level, windows.older(rows)
        if suspects is None:
            judged = judge_series(x, y, weights, limits=limits, center=False, older=older, called_only=not whole)
        else:
            signs = suspects[rows].astype(np.float64)
            judged = confirm(
                x, y, signs, weights, limits=limits, center=False, older=older, called_only=True
            )  # fmt: skip
        sign = _signs(judged.columns, windows.enough(rows))
        _put_called(said, rows, sign, judged.columns, asked=whole or families is not None or suspects is not None)
        if family in leaves:
            explained += float(judged.columns["contribution"][sign != 0].sum())
    for way, rows in watched.ways.items() if of_runs else ():
        # the operators were measured by other runs than those without a profiler
        named = 0.0 if np.isnan(step) or way == UNPROFILED else explained * step
        _totals(watched, windows, rows, run, named, said, suspects, whole=whole)
    return said


def _totals(
    watched: Watched,
    windows: Windows,
    rows: I64,
    run: Sequence[int],
    explained: float,
    said: Said,
    suspects: I64 | None,
    *,
    whole: bool,
) -> None:
    """Adds the run-level series `rows`, which were measured in one way, by the runs that were."""
    run = telling(watched.raw, rows, run)
    if not run:
        return
    columns = windows.columns[rows]
    shared = np.where(columns < 0, 0.0, watched.shared[np.maximum(columns, 0)])
    centre = Centre(shared, watched.shared[run], 0, float("nan"))
    families, names = [watched.families[row] for row in rows], [watched.names[row] for row in rows]
    inverse = more_is_better(families)[:, None]
    sides = (gathered(watched.raw, rows, columns), cut(watched.raw, rows, run))
    x, y = (np.where(inverse, 1.0 / side, side) for side in sides)
    device_timed = all(watched.runs[column].device_timed for column in run)
    limits = watched.thresholds.limits((RUN, ""), names, device_timed=device_timed)
    table = run_totals(families, names, x, y, centre, explained, device_timed=device_timed, limits=limits)
    sign = _signs(table, windows.enough(rows))
    if suspects is not None:
        sign = np.where(sign == suspects[rows], sign, 0)
    _put_called(said, rows, sign, table, asked=whole or suspects is not None)


def calls(
    watched: Watched, windows: Windows, columns: Sequence[int], families: Collection[Family] | None = None
) -> Said:
    """Whether series are called more or less often in the runs `columns` than in their windows. `families`: only of
    these.
    """
    said = nothing(len(watched.names))
    run = list(columns)
    step = watched.larger_step(range(max(0, run[0] - WINDOW), run[0]), run)
    if run[0] < ENOUGH or np.isnan(step):
        return said
    for family, rows in watched.kinds.items():
        if family[0] == RUN or family[0] in UNCOUNTED or not watched.is_time(family):
            continue
        if families is not None and family not in families:
            continue
        sides = [
            (gathered(values, rows, windows.columns[rows]), cut(values, rows, run))
            for values in (watched.calls, watched.centred)
        ]
        (calls0, calls1), (time0, time1) = sides
        if not (beyond(calls0, calls1) | beyond(calls1, calls0)).any():
            continue  # as nearly always
        table = judge_calls(calls0, calls1, time0, time1, step, limits=watched.limits[family].calls)
        with np.errstate(divide="ignore", invalid="ignore"):
            table["ratio"] = table["candidate_calls"] / table["baseline_calls"] - 1.0
        _put_called(said, rows, _signs(table, windows.enough(rows)), table)
    return said


def presence(
    watched: Watched, before: int, columns: Sequence[int], since: I64, families: Collection[Family] | None = None
) -> Said:
    """Whether series came or went: in none or all of the runs before the run `before`, at most 8, against `columns`.
    `since`: per series the place of the first run that counts. `families`: only of these.
    """
    said = nothing(len(watched.names))
    baseline, run = list(range(max(0, before - WINDOW), before)), list(columns)
    if len(baseline) < ENOUGH:
        return said
    step = watched.larger_step(baseline, run)
    for family, rows in watched.kinds.items():
        if families is not None and family not in families:
            continue
        baseline, run = _recorded_alike(watched, family, before, columns)
        if not baseline or not run:
            continue
        x, y = (cut(watched.raw, rows, side) for side in (baseline, run))
        early = np.searchsorted(watched.places[baseline], since[rows])
        for row in np.flatnonzero((early > 0) & (early < len(baseline))).tolist():
            x[row, : early[row]] = x[row, early[row]]  # what was before a user expected the change says nothing
        # a run that says nothing of a family has not lost its series
        x, y = x[:, ~np.isnan(x).all(axis=0)], y[:, ~np.isnan(y).all(axis=0)]
        if x.shape[1] < ENOUGH or y.shape[1] < len(run):
            continue
        if (np.isnan(x).all(axis=1) == np.isnan(y).all(axis=1)).all():
            continue  # as nearly always
        timed = family[0] == RUN or (watched.is_time(family) and not np.isnan(step))
        whole = step if timed else max(float(np.nansum(side)) / side.shape[1] for side in (x, y))
        least = rule.MIN_CONTRIBUTION if family[0] == RUN else watched.limits[family].level.min_contribution
        table = judge_presence(x, y, whole, min_contribution=least)
        sign = np.where(table["verdict"] == "", 0, np.sign(np.nan_to_num(table["contribution"])))
        called = _is_called(table) & (early <= len(baseline) - ENOUGH)
        _put_called(said, rows, np.where(called, sign, 0).astype(np.int64), table)
    return said


def _recorded_alike(
    watched: Watched, family: Family, before: int, columns: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The window of presence, and `columns`; of a family that not all recordings have, the runs that have it."""
    if not is_tagged(family):
        return list(range(max(0, before - WINDOW), before)), list(columns)
    said = watched.said[family]
    return np.flatnonzero(said[:before])[-WINDOW:].tolist(), [run for run in columns if said[run]]


def nothing(series: int) -> Said:
    """What says nothing of any series."""
    return Said(np.zeros(series, dtype=np.int64), {})


def _signs(table: Columns, enough: NDArray[np.bool_]) -> I64:
    """1 for what is worse, -1 for what is better, where a verdict says so."""
    called = _is_called(table) & enough
    ratio = np.nan_to_num(table["ratio"])
    return np.where(called, np.sign(ratio), 0).astype(np.int64)


def _is_called(table: Columns) -> NDArray[np.bool_]:
    return np.isin(table["verdict"], _CALLED)


def _put_called(said: Said, rows: I64, sign: I64, table: Columns, *, asked: bool = False) -> None:
    """`put`, where the gates are asked for of those series alone that the judgement calls worse or better; `asked`: of
    the others too.
    """
    if asked or sign.any():
        put(said, rows, sign, table)


def put(said: Said, rows: I64, sign: I64, table: Columns) -> None:
    """Adds what the judgement `table` of the series `rows` says."""
    said.sign[rows] = sign
    for gate in GATES:
        if gate in table:
            if gate not in said.gates:
                is_number = table[gate].dtype == np.float64 and gate not in _WORDS
                said.gates[gate] = np.full(len(said.sign), *((np.nan,) if is_number else (None, object)))
            said.gates[gate][rows] = table[gate]


def _plain(value: Any) -> Any:
    """A Python value; None for nan."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value
