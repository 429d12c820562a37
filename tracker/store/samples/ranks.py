"""From what each rank says to one number per run and series, whatever the order in which the ranks came."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import known_medians
from tracker.store.samples.families import PEAK, RUN, SeriesKey
from tracker.store.samples.measured import MAX, MIN, STATISTICS, VALUE, Measured
from tracker.store.samples.statistic import over_ranks

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

    Each number as `statistic.over_ranks` says; minimum, maximum and a peak are those of all ranks.
    """
    places = {key: place for place, key in enumerate(sorted({key for _, rank in ranks for key in rank.keys}))}
    table = np.full((len(places), len(ranks), len(STATISTICS)), np.nan)
    intermittent = np.zeros(len(places), dtype=bool)
    for number, (_, rank) in enumerate(ranks):
        at = np.array([places[key] for key in rank.keys], dtype=np.int64)
        table[at, number] = rank.numbers
        intermittent[at] |= rank.intermittent
    stages = np.array([stage for stage, _ in ranks], dtype=np.int64)
    keys = list(places)
    numbers = np.full((len(places), len(STATISTICS)), np.nan)
    for column in range(len(STATISTICS)):
        numbers[:, column] = over_ranks(table[:, :, column], stages, table[:, :, VALUE])
    numbers[:, MIN], numbers[:, MAX] = np.fmin.reduce(table[:, :, MIN], 1), np.fmax.reduce(table[:, :, MAX], 1)
    peaks = np.array([key.metric == PEAK for key in keys], dtype=bool)
    numbers[peaks, VALUE] = numbers[peaks, MAX]
    spread = np.full(len(places), np.nan)
    for stage in sorted(set(stages.tolist())):
        spread = np.fmax(spread, _spread(table[:, stages == stage, VALUE]))
    steps = max((rank.steps for _, rank in ranks), default=0)
    return Samples(keys, numbers, _shares(keys, numbers[:, VALUE]), spread, steps, intermittent)


def _spread(values: F64) -> F64:
    known = ~np.isnan(values)
    low = np.where(known, values, np.inf).min(axis=1)
    high = np.where(known, values, -np.inf).max(axis=1)
    several = known.sum(axis=1) > 1
    return np.asarray(np.divide(high - low, known_medians(values), out=np.full(len(values), np.nan), where=several))


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
