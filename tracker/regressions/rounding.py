"""How far the numbers of runs may be from what their sources printed: a log prints few digits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tracker.columns import F64
from tracker.profile import ROUNDING_SETTING
from tracker.schema.series import RUN, SeriesKey
from tracker.store.recordings import Recorded

_ROUNDED_AS: Final = {"mean_step_ns": "duration_ns"}
"""Metric of a series -> the number of a step that it is made of, where that is called otherwise."""


def tabulate_roundings(keys: Sequence[SeriesKey], runs: Sequence[Recorded]) -> F64 | None:
    """Return how far the number of each series (series, runs) may be from what was printed, as a part of it; None where
    nothing was rounded.

    >>> log = Recorded(settings=({"rounding": '{"duration_ns": 0.05}'},))
    >>> tabulate_roundings([SeriesKey("run", "duration_ns", "step")], [log, Recorded()]).tolist()
    [[0.05, 0.0]]
    """
    stated = [_roundings_in(run.settings) for run in runs]
    if not any(stated):
        return None
    table = np.zeros((len(keys), len(runs)))
    for row, key in enumerate(keys):
        if key.kind == RUN:
            name = _ROUNDED_AS.get(key.metric, key.metric)
            table[row] = [of_run.get(name, 0.0) for of_run in stated]
    return table


def find_rounding(key: SeriesKey, *sides: Sequence[Recorded]) -> float:
    """Return how far the number of a series may be from what was printed, as a part of it: the usual rounding of the
    runs of a side, as it is judged (`detect.rounding`), of the side that rounds most; 0 for nothing.
    """
    largest = 0.0
    for runs in sides:
        table = tabulate_roundings([key], runs)
        if table is not None:
            largest = max(largest, float(np.median(table)))
    return largest


def _roundings_in(settings: Sequence[Mapping[str, str]]) -> dict[str, float]:
    """Return number of a step -> its rounding, by the settings of the captures of a run: the largest of its ranks."""
    largest: dict[str, float] = {}
    for of_capture in settings:
        for name, rounding in json.loads(of_capture.get(ROUNDING_SETTING, "{}")).items():
            largest[name] = max(rounding, largest.get(name, 0.0))
    return largest
