"""What each series of a line is judged against, run by run, and what becomes of that when a finding is settled."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracker.detectors.life import OPEN, State
from tracker.judgement.families import is_tagged
from tracker.judgement.follow.tracked import Tracked
from tracker.judgement.follow.tracks import Change
from tracker.judgement.follow.watched import Watched
from tracker.judgement.follow.windows import Windows

I64 = NDArray[np.int64]
BOOL = NDArray[np.bool_]

_BLOCKING: Final = OPEN | {"vanished"}
"""States in which the runs of a series are no baseline for it."""

_LEVELS: Final = 3
"""Levels of before that a change is compared with."""


class Baselines:
    """`windows`: per series the runs that it is judged against; `normal` (series, runs): which were as they should be.
    `creeps_from`, `comes_from`: per series the first run that slow creep, and whether it is there at all, counts from.
    Those two are places in the line, not columns. `levels`: by series the runs of levels that held before the one that
    holds, the newest last.
    """

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.windows = Windows(len(watched.names))
        self.normal: BOOL = np.zeros(watched.raw.shape, dtype=bool)
        self.creeps_from: I64 = np.zeros(len(watched.names), dtype=np.int64)
        self.comes_from: I64 = np.zeros(len(watched.names), dtype=np.int64)
        self.levels: dict[int, list[tuple[int, ...]]] = {}

    def of(self, windows: I64, row: int, change: Change, run: int) -> tuple[int, ...]:
        """The runs that the change of a series with `run` is measured against; `windows`: as they were then."""
        window = windows[row]
        if change == "presence":
            told: Sequence[int] = range(max(0, run - len(window)), run)
            if is_tagged(self.watched.families[row]):
                said = self.watched.said[self.watched.families[row]][:run]
                told = np.flatnonzero(said)[-len(window) :].tolist()
            return tuple(told)
        return tuple(window[window >= 0].tolist())

    def of_step(self, windows: I64, run: int) -> tuple[int, ...]:
        """The runs that the step is judged against with the run `run`; none where that does not say."""
        row = self.watched.step_row(run)
        return () if row is None else self.of(windows, row, "level", run)

    def level_of_before(self, tracked: Tracked, columns: Sequence[int]) -> str:
        """The newest version whose level, of those that held before, these runs of a change are back at; "": none."""
        values = self.watched.centred[tracked.row]
        now = values[list(columns)]
        if tracked.change != "level" or np.isnan(now).all():
            return ""
        for level in reversed(self.levels.get(tracked.row, [])):
            before = np.log(values[list(level)])
            away = np.log(now[~np.isnan(now)]).mean() - before[~np.isnan(before)].mean()
            if abs(away) < tracked.life.effect:
                return self.watched.runs[max(level)].label
        return ""

    def accept(self, run: int, findings: Iterable[Tracked]) -> None:
        """The run joins the windows of all series that are as they should be, `findings` being those that live."""
        free = ~np.isnan(self.watched.raw[:, run])
        for tracked in findings:
            if tracked.change in {"level", "calls"} and _blocks(tracked):
                free[tracked.row] = False
        self.windows.accept(np.flatnonzero(free), run)
        self.normal[free, run] = True

    def join(self, tracked: Tracked, columns: Iterable[int]) -> None:
        """These runs turned out to be as they should be."""
        if tracked.change in {"level", "calls"}:
            known = [column for column in columns if not math.isnan(self.watched.raw[tracked.row, column])]
            self.windows.join(tracked.row, known)
            self.normal[tracked.row, known] = True

    def restart(self, tracked: Tracked, run: int) -> None:
        """The change is the new level, from its first run to the one before `run`."""
        if tracked.change in {"level", "calls"} or (tracked.change == "presence" and tracked.sign > 0):
            window = self.windows.columns[tracked.row]
            if tracked.change == "level" and (window >= 0).any():
                older = [*self.levels.get(tracked.row, []), tuple(window[window >= 0].tolist())]
                self.levels[tracked.row] = older[-_LEVELS:]
            known = ~np.isnan(self.watched.raw[tracked.row, tracked.first : run])
            columns = (tracked.first + np.flatnonzero(known)).tolist()
            self.windows.restart(tracked.row, columns[-self.windows.columns.shape[1] :], self.watched.centred)
            self.normal[tracked.row, columns] = True

    def take_back(self, tracked: Tracked, source: State, run: int) -> None:
        """The change was none. Where it is the baseline already, half of that is from before now: no level is news."""
        before, since = tracked.baseline, list(range(tracked.first, run))
        if source == "expected":
            half = self.windows.columns.shape[1] // 2
            before, since = before[-half:], [at for at in since if self.normal[tracked.row, at]][-half:]
            self.windows.columns[tracked.row] = -1
        self.join(tracked, [*before, *since])

    def forget_creep(self, tracked: Tracked, run: int) -> None:
        """What a user settled of a slow creep is no level to creep away from any more."""
        if tracked.change == "creep":
            self.creeps_from[tracked.row] = self.watched.place(run)


def _blocks(tracked: Tracked) -> bool:
    """Whether the runs of a series are no baseline for it while this finding lives."""
    return tracked.finding.state in _BLOCKING or tracked.suspected is not None
