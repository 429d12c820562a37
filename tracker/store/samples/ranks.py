"""From what each rank says to one number per run and series, whatever the order in which the ranks came."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.store.samples.families import RUN, SeriesKey
from tracker.store.samples.measured import MAX, MIN, STATISTICS, VALUE, Measured, quantile

F64 = NDArray[np.float64]


class Samples(Struct, frozen=True):
    """One row per series of a run, in order of its keys. `numbers`: columns as in STATISTICS.

    `share`: value as a fraction of the step, nan for what is no time. `rank_spread`: (largest - smallest rank) / median
    of the ranks of a stage, in the stage where that is largest; nan for one rank. `steps`: of the rank with most.
    """

    keys: Sequence[SeriesKey]
    numbers: F64
    share: F64
    rank_spread: F64
    steps: int
    intermittent: NDArray[np.bool_]


def combine(ranks: Sequence[tuple[int, Measured]]) -> Samples:
    """The samples of a run from (pipeline stage, measured rank) pairs.

    Each number is the median over those ranks of a stage that have the series (a rank without it says nothing of how
    long it takes), the mean over the stages that do; minimum and maximum are those of all ranks.
    """
    places = {key: place for place, key in enumerate(sorted({key for _, rank in ranks for key in rank.keys}))}
    stages = sorted({stage for stage, _ in ranks})
    total, count = np.zeros((len(places), len(STATISTICS))), np.zeros((len(places), len(STATISTICS)))
    low, high = np.full(len(places), np.inf), np.full(len(places), -np.inf)
    spread = np.full(len(places), np.nan)
    intermittent = np.zeros(len(places), dtype=bool)
    for stage in stages:
        members = [rank for of, rank in ranks if of == stage]
        table = np.full((len(places), len(members), len(STATISTICS)), np.nan)
        for number, rank in enumerate(members):
            at = np.array([places[key] for key in rank.keys], dtype=np.int64)
            table[at, number] = rank.numbers
            intermittent[at] |= rank.intermittent
        middle = _over_ranks(table)
        known = ~np.isnan(middle)
        total, count = total + np.where(known, middle, 0.0), count + known
        low = np.fmin(low, np.where(np.isnan(table[:, :, MIN]), np.inf, table[:, :, MIN]).min(axis=1))
        high = np.fmax(high, np.where(np.isnan(table[:, :, MAX]), -np.inf, table[:, :, MAX]).max(axis=1))
        spread = np.fmax(spread, _spread(table[:, :, VALUE], middle[:, VALUE]))
    numbers = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    numbers[:, MIN], numbers[:, MAX] = low, high
    keys = list(places)
    steps = max((rank.steps for _, rank in ranks), default=0)
    return Samples(keys, numbers, _shares(keys, numbers[:, VALUE]), spread, steps, intermittent)


def _over_ranks(table: F64) -> F64:
    """The median over the ranks (second axis) that have a number."""
    if table.shape[1] == 1:
        return np.asarray(table[:, 0])
    columns = []
    for column in range(table.shape[2]):
        numbers = table[:, :, column]
        columns.append(quantile(np.sort(numbers, axis=1), (~np.isnan(numbers)).sum(axis=1), 0.5))
    return np.column_stack(columns)


def _spread(values: F64, middle: F64) -> F64:
    known = ~np.isnan(values)
    low = np.where(known, values, np.inf).min(axis=1)
    high = np.where(known, values, -np.inf).max(axis=1)
    several = known.sum(axis=1) > 1
    return np.asarray(np.divide(high - low, middle, out=np.full(len(values), np.nan), where=several))


def _shares(keys: Sequence[SeriesKey], values: F64) -> F64:
    """Each time as a fraction of the step, or of the span of device activity where no step is known."""
    # keys are sorted, so that what a trace says goes before what is measured in another way
    of_run: dict[str, int] = {}
    for place, key in enumerate(keys):
        if key.kind == RUN:
            of_run.setdefault(key.name, place)
    step = of_run.get("step", of_run.get("e2e"))
    if step is None:
        return np.full(len(keys), np.nan)
    is_time = np.array([key.metric.endswith("_ns") for key in keys], dtype=bool)
    return np.where(is_time, values / values[step], np.nan)
