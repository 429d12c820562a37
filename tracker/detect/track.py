"""The runs and series of one track as arrays, and the window that a version is judged with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tracker.columns import F64, I64, Flags
from tracker.detect.series import SeriesTraits
from tracker.detect.sides import Window, shared_factor
from tracker.detect.thresholds import Thresholds
from tracker.results.verdicts import Key


class Track:
    """Runs and series of one workload, configuration and device.

    `values`, `calls` (series, runs): numbers of the runs, nan where a run lacks the series. `versions` (runs,): the
    place of each run's version in the order of versions, from 1, ascending. `run_ids`: their ids. `alike` (series,
    runs): whether a run was recorded so that its number can be compared; what was not counts as not recorded. `ids`,
    `keys`: of the series, where they are of a database.
    """

    def __init__(
        self, values: F64, versions: Sequence[int] | I64, series: SeriesTraits, *, calls: F64 | None = None,
        run_ids: Sequence[int] | I64 | None = None, alike: Flags | None = None, ids: I64 | None = None,
        keys: Sequence[Key] = (),
    ) -> None:  # fmt: skip
        self.versions = np.asarray(versions, dtype=np.int64)
        if (np.diff(self.versions) < 0).any():
            raise ValueError("the runs of a track must be in the order of versions")
        self.series = series
        self.ids, self.keys = (np.arange(len(values)) if ids is None else ids), keys
        self.there = np.asarray(~np.isnan(values).all(axis=1))
        self.alike = np.ones(values.shape, dtype=bool) if alike is None else alike
        self.values = np.where(self.alike, values, np.nan)
        self.calls = np.full(values.shape, np.nan) if calls is None else np.where(self.alike, calls, np.nan)
        self.run_ids = np.arange(values.shape[1]) if run_ids is None else np.asarray(run_ids, dtype=np.int64)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.where(self.values > 0, self.values, np.nan))
        self.logs = np.where(series.more_is_better[:, None], -logs, logs)

    @cached_property
    def recorded(self) -> Flags:
        """(series, runs): whether a run has any series of the same family: what was not recorded is not gone."""
        there = ~np.isnan(self.logs)
        found = np.zeros_like(there)
        for code in np.unique(self.series.family):
            rows = self.series.family == code
            found[rows] = there[rows].any(axis=0)
        return found & self.alike

    @cached_property
    def step(self) -> F64:
        """Duration of the step of each run (ns): its own, else end to end, else the sum of its operators."""
        step = np.full(len(self.versions), np.nan)
        for row in self.series.steps:
            step = np.where(np.isnan(step), self.values[row], step)
        total = np.nansum(self.values[self.series.leaf], axis=0)
        return np.where(np.isnan(step) & (total > 0), total, step)

    def window(self, version: int, before: I64, new: I64, limits: Thresholds) -> tuple[Window, I64]:
        """What a version is judged with: the columns `before` and `new`, ascending, as a window, and those columns.

        The common-mode shift rests on the newest 8 of the runs before the version and on its own.
        """
        columns = np.concatenate([before, new])
        newest = before[self.versions[before] < version]
        newest = newest[np.argsort(newest)][-limits.window :]
        logs = self.logs[:, columns]
        shift = shared_factor(
            logs[self.series.leaf], np.isin(columns, newest), np.isin(columns, new), limits.least_leaves
        )
        return Window(logs, self.recorded[:, columns], shift, self.step[columns]), columns


def newest(chosen: Flags, count: int) -> Flags:
    """The last `count` of the chosen columns of each row.

    >>> newest(np.array([[True, False, True, True]]), 2).tolist()
    [[False, False, True, True]]
    """
    from_end = np.cumsum(chosen[:, ::-1], axis=1)[:, ::-1]
    return chosen & (from_end <= count)
