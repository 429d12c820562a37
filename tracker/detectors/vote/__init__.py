"""Lasting changes of one series, by the agreement of five detectors.

A new detector is a file here, with TITLE and change_points, and a word in NAMES.

Where the numbers of the detectors come from: windows, chances and prices that neither JUDGEMENT 5 nor a paper gives
rest on scores, of made series and of the noise of that half of the real operators which tests/real/noise.py calls
"tuned on"; scripts/score_detectors.py scores the other half. Since three must agree, none decides alone: F1 was 0.92
and 0.86, and chances ten times larger or smaller, prices and windows about half or twice as large, moved it by at most
0.035.
"""

from __future__ import annotations

import math
from importlib import import_module
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from tracker.detectors import rule
from tracker.detectors.arrays import F64, I64
from tracker.detectors.vote._splitting import MIN_SEGMENT, prune
from tracker.profile import median

NAMES: Final = ("e_divisive", "kernel", "rank_window", "step_fit", "t_window")

LAST_RUNS: Final = 60
"""Runs of a line in which lasting changes are looked for (JUDGEMENT 5)."""

AGREEMENT: Final = 3
"""Detectors that must see a change (JUDGEMENT 5)."""

_NEAR: Final = 2
"""Runs by which two detectors may differ over one change; a change found so near to a label is scored as found."""

_REACH: Final = 5
"""Runs by which what they agree on may be out; half and twice as far score worse."""

_CHANCE_OF_NEWEST: Final = 1e-6
"""By the false changes of looking after every run, of which scripts/score_detectors.py bears 0.1 in 100 runs: without
it 0.07 on made and 0.21 on real noise, with it none in the same 24 series of each."""

_WHOLE: Final = 200
_PART: Final = 120
_END: Final = 20
"""How many runs are looked at together, for speed: parts of a long series are twice the 60 runs of JUDGEMENT 5, and
their ends as long as the longest window of a detector.
"""


def change_points(values: ArrayLike, *, min_ratio: float = 0.02) -> list[int]:
    """The index of the first run after each lasting change of a series, in order.

    `values`: 1-d, one positive value per run in order, any unit; nan is a missing run and belongs to no level.
    `min_ratio`: smallest change between the medians of two neighbouring levels, 0.02 = 2 %. A level lasts at least 3
    runs: a change shows when its third run is in, and outliers are none. The same values always give the same answer.
    Raises ValueError where a value is not positive or the array is not 1-d.

    >>> change_points([100, 101, 99, 100, 101, 99, 100, 120, 121, 119, 120, 121, 119, 120])
    [7]
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"values must be one number per run; their shape is {array.shape}")
    if min_ratio < 0:
        raise ValueError(f"min_ratio must not be negative; it is {min_ratio}")
    known = np.flatnonzero(~np.isnan(array))
    bad = known[~((array[known] > 0) & np.isfinite(array[known]))]
    if len(bad):
        raise ValueError(
            f"values[{bad[0]}] is {array[bad[0]]}: a value must be positive and finite, nan for a missing run"
        )
    logs = np.log(array[known])
    if len(logs) < 2 * MIN_SEGMENT:
        return []
    lasting = _lasting(logs, _agreed(logs), math.log1p(min_ratio))
    # a series is looked at after every run, and of many looks one shows a few last runs that are alike by chance
    return [int(known[place]) for place in prune(logs, lasting, 1.0, newest=_CHANCE_OF_NEWEST)]


def _agreed(logs: F64) -> list[int]:
    """What the detectors agree on. A long series is looked at part by part, since what a detector costs grows with the
    square of the length; of each part the ends are left to its neighbours.
    """
    if len(logs) <= _WHOLE:
        return agreement(votes(logs))
    agreed: list[int] = []
    for start in range(0, len(logs) - 2 * _END, _PART - 2 * _END):
        stop = min(start + _PART, len(logs))
        first = _END if start else 0
        last = len(logs) if stop == len(logs) else stop - start - _END
        agreed += [start + place for place in agreement(votes(logs[start:stop])) if first <= place < last]
    return agreed


def votes(logs: F64) -> dict[str, list[int]]:
    """What each detector finds by itself. `logs`: one finite number per run, in order."""
    return {name: import_module(f"{__name__}.{name}").change_points(logs) for name in NAMES}


def agreement(found: dict[str, list[int]]) -> list[int]:
    """The places where at least 3 detectors see a change within 2 runs of each other, each vote counted once.

    The place with most votes comes first and takes its votes away; it lies at their median.

    >>> agreement({"a": [10], "b": [11, 30], "c": [12], "d": [30], "e": []})
    [11]
    """
    ballots: I64 = np.array([place for places in found.values() for place in places], dtype=np.int64)
    voter = np.array([number for number, places in enumerate(found.values()) for _ in places], dtype=np.int64)
    agreed: list[int] = []
    while len(ballots):
        candidates = np.unique(ballots)
        support = [len(set(voter[np.abs(ballots - place) <= _NEAR].tolist())) for place in candidates.tolist()]
        scatter = [float(np.abs(ballots - place).clip(max=_NEAR + 1).sum()) for place in candidates.tolist()]
        most = min(range(len(candidates)), key=lambda number: (-support[number], scatter[number]))
        if support[most] < AGREEMENT:
            break
        near = np.abs(ballots - candidates[most]) <= _NEAR
        agreed.append(int(median(ballots[near])))
        ballots, voter = ballots[~near], voter[~near]
    return sorted(agreed)


def _lasting(logs: F64, places: list[int], effect: float) -> list[int]:
    """The places that divide levels of 3 or more runs whose medians differ by `effect`, each where they part best.

    The smallest change goes first, until all that are left pass.
    """
    places = list(places)
    while places:
        places = _placed(logs, places)
        bounds = [0, *places, len(logs)]
        level = [float(median(logs[start:stop])) for start, stop in pairwise(bounds)]
        length = np.diff(bounds)
        size = [
            abs(level[number + 1] - level[number])
            if min(length[number], length[number + 1]) >= MIN_SEGMENT and is_step(logs[start:stop], place - start)
            else 0.0
            for number, (start, place, stop) in enumerate(zip(bounds, places, bounds[2:], strict=False))
        ]
        smallest = int(np.argmin(size))
        if size[smallest] >= effect - rule.ROUNDING:
            break
        del places[smallest]
    return places


def is_step(logs: F64, place: int) -> bool:
    """Whether two levels, parted at `place`, fit the values better than a straight line does: a drift is no step.

    By the sum of absolute deviations, from the medians and from the least-squares line. On either side at least 3
    values must lie nearer to their own level: two outliers and a run of the other level are none.

    >>> is_step(np.array([1.0, 1, 1, 1, 2, 2, 2, 2]), 4), is_step(np.arange(8.0), 4)
    (True, False)
    """
    before, after = logs[:place], logs[place:]
    levels = float(median(before)), float(median(after))
    middle, upward = 0.5 * (levels[0] + levels[1]), levels[1] > levels[0]
    held = min(int(((before < middle) == upward).sum()), int(((after > middle) == upward).sum()))
    if held < MIN_SEGMENT:
        return False
    step = np.abs(before - levels[0]).sum() + np.abs(after - levels[1]).sum()
    run = np.arange(len(logs)) - 0.5 * (len(logs) - 1)
    slope = float((run * logs).sum() / (run * run).sum())
    line = np.abs(logs - logs.mean() - slope * run).sum()
    return bool(step < line)


def _placed(logs: F64, places: list[int]) -> list[int]:
    """Each place moved by up to 5 runs to where the values lie closest to the medians of the two levels."""
    bounds = [0, *places, len(logs)]
    moved = []
    for number, place in enumerate(places):
        start, stop = bounds[number], bounds[number + 2]
        before, after = median(logs[start:place]), median(logs[place:stop])
        options = range(max(start + MIN_SEGMENT, place - _REACH), min(stop - MIN_SEGMENT, place + _REACH) + 1)
        cost = {
            option: float(np.abs(logs[start:option] - before).sum() + np.abs(logs[option:stop] - after).sum())
            for option in options
        }
        moved.append(min(cost, key=lambda option: (cost[option], abs(option - place))) if cost else place)
        bounds[number + 1] = moved[-1]
    return moved
