"""Which runs a candidate is judged against, and what the older ones still say of the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracker.detectors._arrays import F64
from tracker.detectors.spread import Spread, pooled

WINDOW: Final = 8
ENOUGH: Final = 3
"""Runs on a level from which its own spread counts; with fewer, the spread of the level before is kept."""


@dataclass(frozen=True, slots=True)
class PastRun:
    """What decides whether a run may be baseline: `accepted`: its series was normal, or its change was accepted.

    `restarts`: an accepted change (expected) begins a new level with this run.
    """

    accepted: bool
    restarts: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """Indices of past runs, oldest first: `runs` to judge against; `older`: accepted runs of the level before, whose
    spread is kept with the new centre until the level has 3 runs (empty from then on).
    """

    runs: tuple[int, ...]
    older: tuple[int, ...] = ()


def window(past: Sequence[PastRun], size: int = WINDOW) -> Window:
    """The last `size` accepted runs on the current level (JUDGEMENT 3). A regressed run never gets in by itself.

    >>> runs = [PastRun(True)] * 4 + [PastRun(False), PastRun(True, restarts=True)]
    >>> window(runs)
    Window(runs=(5,), older=(0, 1, 2, 3))
    """
    start = max((index for index, run in enumerate(past) if run.accepted and run.restarts), default=0)
    accepted = [index for index, run in enumerate(past) if run.accepted]
    current = tuple(index for index in accepted if index >= start)[-size:]
    if len(current) >= ENOUGH:
        return Window(current)
    before = [index for index in accepted if index < start]
    level = max((index for index in before if past[index].restarts), default=0)
    return Window(current, tuple(index for index in before if index >= level)[-size:])


def spread_of_levels(levels: Sequence[F64]) -> Spread:
    """The noise that older runs showed about their levels, pooled over them: the yardstick for the first new runs.

    `levels`: one (n_series, runs) array of centred logs per version or level, nan for missing; none: freedom 0.
    """
    if not levels:
        raise ValueError("no levels: give at least one (n_series, runs) array")
    return pooled(*[np.asarray(level, dtype=np.float64) for level in levels])
