"""The runs and series of one track as arrays, and those that a version is judged with."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import F64, I64, Flags
from tracker.detect.judge import judge_version
from tracker.detect.known_hosts import Hosts
from tracker.detect.series import KindCode, SeriesTraits
from tracker.detect.sides import LEAST_EXACT, Window, newest, shared_factor
from tracker.detect.thresholds import Thresholds
from tracker.detect.verdicts import JudgedSeries
from tracker.schema.series import SeriesKey
from tracker.table import sort_distinct

LEAST_BESIDE = 2
"""Runs of a level from which it is judged, with the noise of the level before it."""


class Track:
    """Runs and series of one workload, configuration and device.

    `values`, `calls` (series, runs): the numbers of the runs that are printed, and their calls; `by_calls` (2, series,
    runs): the numbers of `Statistic.CALL_QUARTILE` and `CALL_MEDIAN`; nan where a run lacks them. `versions` (runs,):
    the place of each run's version in the order of versions, from 1, ascending. `run_ids`: their ids. `alike` (series,
    runs): whether a run was recorded so that its number can be compared; what was not counts as not recorded, and so
    does what is `incomplete` (series, runs), since it rests on records that were lost, and what is of `other_work`
    (series, runs), since the inputs had another size. `ids`, `keys`: of the series, where they are of a database.
    `hosts`: of the runs, None: not known. `roundings`: as of a `Window`.
    """

    def __init__(  # noqa: PLR0913 -- numbers of the runs, and what is known of each
        self, values: F64, versions: Sequence[int] | I64, series: SeriesTraits, *, calls: F64 | None = None,
        run_ids: Sequence[int] | I64 | None = None, alike: Flags | None = None, incomplete: Flags | None = None,
        ids: I64 | None = None, keys: Sequence[SeriesKey] = (), by_calls: F64 | None = None,
        other_work: Flags | None = None, hosts: Hosts | None = None, roundings: F64 | None = None,
    ) -> None:  # fmt: skip
        self.versions = np.asarray(versions, dtype=np.int64)
        if (np.diff(self.versions) < 0).any():
            raise ValueError("the runs of a track must be in the order of versions")
        self.series = series
        self.ids, self.keys = (np.arange(len(values)) if ids is None else ids), keys
        self.there = np.asarray(~np.isnan(values).all(axis=1))
        self.alike = np.ones(values.shape, dtype=bool) if alike is None else alike
        self.incomplete = np.zeros(values.shape, dtype=bool) if incomplete is None else incomplete
        self.other_work = np.zeros(values.shape, dtype=bool) if other_work is None else other_work
        self.alike = self.alike & ~self.incomplete & ~self.other_work
        self.roundings = roundings
        self.values = np.where(self.alike, values, np.nan)
        self.calls = np.full(values.shape, np.nan) if calls is None else np.where(self.alike, calls, np.nan)
        self.run_ids = np.arange(values.shape[1]) if run_ids is None else np.asarray(run_ids, dtype=np.int64)
        self.hosts = hosts
        self.logs = self._logs(self.values)
        # None spares captures of devices, which have no such times, the choice between statistics
        self.by_calls: F64 | None = None
        if by_calls is not None and not np.isnan(by_calls).all():
            self.by_calls = self._logs(np.where(self.alike, by_calls, np.nan))

    def _logs(self, numbers: F64) -> F64:
        """Return the natural logs, negated where more is better; nan for what is not above 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.where(numbers > 0, numbers, np.nan))
        return np.where(self.series.more_is_better[:, None], -logs, logs)

    def take(self, rows: I64, counting: Flags | None = None) -> Track:
        """Return these series of the track alone. `counting` (runs,): the runs whose numbers count, None: all."""
        is_out = np.zeros(len(self.versions), dtype=bool) if counting is None else ~counting
        part = copy(self)
        # what was made of all series is made anew
        for name in ("recorded", "measured_step", "step"):
            part.__dict__.pop(name, None)
        part.series = self.series.take(rows)
        part.ids, part.there = self.ids[rows], self.there[rows]
        part.keys = [self.keys[row] for row in rows.tolist()] if self.keys else ()
        part.incomplete, part.other_work = self.incomplete[rows], self.other_work[rows]
        part.alike = self.alike[rows] & ~is_out
        part.values = np.where(is_out, np.nan, self.values[rows])
        part.calls = np.where(is_out, np.nan, self.calls[rows])
        part.logs = np.where(is_out, np.nan, self.logs[rows])
        if self.roundings is not None:
            part.roundings = self.roundings[rows]
        if self.by_calls is not None:
            part.by_calls = np.where(is_out, np.nan, self.by_calls[:, rows])
        return part

    @cached_property
    def recorded(self) -> Flags:
        """(series, runs): whether a run has any series of the same family: what was not recorded is not gone."""
        there = ~np.isnan(self.logs)
        found = np.zeros_like(there)
        for code in sort_distinct(self.series.family):
            rows = self.series.family == code
            found[rows] = there[rows].any(axis=0)
        return found & self.alike

    @cached_property
    def measured_step(self) -> F64:
        """Duration of the step of each run (ns): its own, else end to end; nan where neither is known or judged."""
        step = np.full(len(self.versions), np.nan)
        for row in self.series.steps_of_operators:
            step = np.where(np.isnan(step), self.values[row], step)
        return step

    @cached_property
    def step(self) -> F64:
        """What shares of the step of each run are shares of (ns): its measured step, else the sum of its operators."""
        step = self.measured_step
        total = np.nansum(self.values[self.series.leaf], axis=0)
        return np.where(np.isnan(step) & (total > 0), total, step)

    def window(self, version: int, before: I64, new: I64, limits: Thresholds) -> tuple[Window, I64]:
        """Return what a version is judged with, the columns `before` and `new` as a window, and those columns.

        The common-mode shift rests on the newest 8 of the runs before the version and on its own.
        """
        columns = np.concatenate([before, new])
        older = np.sort(before[self.versions[before] < version])
        newest, looked_back = older[-limits.window :], older[-limits.look_back :]
        window = self.part(columns, np.isin(columns, newest), np.isin(columns, new), limits)
        past = np.where(np.isin(columns, looked_back), self.versions[columns], 0)
        return replace(window, past=past), columns

    def part(self, columns: I64, before: Flags, new: Flags, limits: Thresholds) -> Window:
        """Return these runs as a window. `before`, `new` (columns,): on which of them the common-mode shift rests."""
        leaf = self.series.leaf

        def shift_of(logs: F64) -> F64:
            return shared_factor(logs[leaf], before, new, limits.least_leaves)

        logs = self.logs[:, columns]
        window = Window(
            logs, self.recorded[:, columns], shift_of(logs), self.step[columns], versions=self.versions[columns],
            roundings=None if self.roundings is None else self.roundings[:, columns],
        )  # fmt: skip
        if self.by_calls is None:
            return window
        by_calls = self.by_calls[:, :, columns]
        shifts = np.array([shift_of(logs) for logs in by_calls])
        return replace(window, by_calls=by_calls, by_calls_shift=shifts)


class VersionRuns(Struct, frozen=True):
    """The runs that a version is judged with.

    `window`: their numbers, before and new; `run_ids`, `versions` (runs,): of its columns; `new`, `looked_back`
    (runs,): the runs of the version, and the newest 32 before it; `levels` (series, runs): the level of each run;
    `current` (series,): the current level; `divided` (series, runs): runs on the other side of a change that was found
    late in the middle of their level, which count in it no more.
    """

    version: int
    window: Window
    series: SeriesTraits
    run_ids: I64
    versions: I64
    new: Flags
    looked_back: Flags
    levels: I64
    current: I64
    divided: Flags
    limits: Thresholds

    @property
    def is_single(self) -> bool:
        """Whether the version has one run."""
        return int(self.new.sum()) == 1

    @property
    def centred(self) -> F64:
        """The numbers without the common-mode shift, where it is taken out."""
        return self.window.centred(self.series.shares_shift)

    @property
    def compares(self) -> Flags:
        """(series, runs): which numbers can be compared with the new ones, as far as the hosts of the runs go."""
        hosts = self.window.hosts
        return np.ones(self.window.logs.shape, dtype=bool) if hosts is None else hosts.compares

    def level(self, of: I64) -> Flags:
        """Return (series, runs): the runs in the look-back that belong to a level of each series.

        The peak of memory is the same to the byte from run to run. Where it was another one for a while, only the runs
        belong to its level that have what the newest one has: between the two lies no peak that a run ever had.
        """
        found = self.looked_back & (self.levels == of[:, None]) & ~self.divided
        for row in np.flatnonzero((self.series.kind == KindCode.PEAK) & found.any(axis=1)).tolist():
            logs = self.window.logs[row]
            is_newest_peak = logs == logs[np.flatnonzero(found[row])[-1]]
            if (found[row] & is_newest_peak).sum() >= LEAST_EXACT:
                found[row] &= is_newest_peak
        return np.asarray(found)

    def judge(self, of: I64, new: Flags, opened: Flags | None = None, alpha: float | None = None) -> JudgedSeries:
        """Judge the runs `new` (runs,) against the newest 8 runs of a level of each series."""
        level = self.level(of) & ~new
        base = newest(level & self.window.recorded, self.limits.window)
        return judge_version(
            self.window, self.series, base, new, level=level, beside=self.beside(of, base), opened=opened, alpha=alpha,
            limits=self.limits,
        )  # fmt: skip

    def beside(self, of: I64, base: Flags) -> Flags:
        """Return (series, runs): of series whose level has two `base` runs, the newest 8 runs of the level before it.

        Two runs alone say too little of their noise.
        """
        count = (base & ~np.isnan(self.window.logs)).sum(axis=1)
        found = np.zeros(base.shape, dtype=bool)
        rows = np.flatnonzero((count >= LEAST_BESIDE) & (count < self.limits.least_base))
        # UNDECIDED is below 0
        others = self.looked_back & self.window.recorded[rows] & (self.levels[rows] >= 0)
        others &= self.levels[rows] != of[rows, None]
        last = others.shape[1] - 1 - np.argmax(others[:, ::-1], axis=1)
        before = self.levels[rows, last]
        found[rows] = newest(others & (self.levels[rows] == before[:, None]), self.limits.window)
        return found

    def since(self, version: int) -> Flags:
        """Return (runs,): the runs of this version and of those before it from `version` on."""
        return np.asarray(self.new | (self.looked_back & (self.versions >= version)))

    def reference(self, row: int, judged: JudgedSeries) -> tuple[int, ...]:
        """Return the ids of the runs that a series was judged against."""
        return tuple(self.run_ids[judged.base[row]].tolist())
