"""From what each rank says to one number per run and series, whatever the order in which the ranks came."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import known_medians
from tracker.store.samples.families import BALANCE, PEAK, RUN, SeriesKey
from tracker.store.samples.measured import MAX, MEAN, MIN, STATISTICS, VALUE, Measured
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
    balance = _balance(keys, table[:, :, VALUE], stages)
    if balance:
        more = np.full((len(balance), len(STATISTICS)), np.nan)
        more[:, VALUE] = more[:, MEAN] = [*balance.values()]
        order = sorted(range(len(keys) + len(balance)), key=[*keys, *balance].__getitem__)
        keys = [[*keys, *balance][place] for place in order]
        numbers = np.concatenate([numbers, more])[order]
        spread = np.concatenate([spread, np.full(len(balance), np.nan)])[order]
        intermittent = np.concatenate([intermittent, np.zeros(len(balance), dtype=bool)])[order]
    return Samples(keys, numbers, _shares(keys, numbers[:, VALUE]), spread, steps, intermittent)


def _balance(keys: Sequence[SeriesKey], values: F64, stages: NDArray[np.int64]) -> dict[SeriesKey, float]:
    """How uneven the own times of the ranks are, a step without exposed communication: the largest by the median and by
    the smallest, in the stage where that is most; nothing of one rank, or where no communication is known.
    """
    place = {(key.name, key.part): at for at, key in enumerate(keys) if key.kind == RUN}
    found: dict[SeriesKey, float] = {}
    for part in sorted({part for _, part in place}):
        step, exposed = (place.get((name, part)) for name in ("step", "exposed communication"))
        step = place.get(("e2e", part)) if step is None else step
        if step is None or exposed is None:
            continue
        own = values[step] - np.nan_to_num(values[exposed])
        for stage in sorted(set(stages.tolist())):
            known = own[(stages == stage) & ~np.isnan(own)]
            if len(known) > 1 and known.min() > 0:
                ends = float(known.max() / np.median(known)), float(known.max() / known.min())
                for (metric, name), ratio in zip(BALANCE.items(), ends, strict=True):
                    key = SeriesKey(RUN, metric, name, part=part)
                    found[key] = max(found.get(key, 0.0), ratio)
    return found


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
