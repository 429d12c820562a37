"""The statistics of each series of a rank, and one number of all ranks per run and series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import MISSING, StepRow, medians_of_groups
from tracker.schema.series import OF_WHOLE_CAPTURE, RUN, RUN_LEVEL, UNPROFILED, SeriesKey, key_of_run
from tracker.store.samples.families import Family, RankRows, make_families
from tracker.store.samples.statistics import (
    RankCells,
    SparseSteps,
    is_sparse,
    mean_over_steps,
    order_cells,
    over_rank_cells,
    over_steps,
    sparse_steps,
    sums_per_step,
    without_filling,
)

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

STATISTICS: Final = ("value", "mean", "sd", "min", "p10", "p90", "max", "calls", "by_quartile", "by_median")
"""The columns of `Measured.numbers`."""

VALUE, MEAN, SD, MIN, P10, P90, MAX, CALLS, BY_QUARTILE, BY_MEDIAN = range(len(STATISTICS))
BY_CALLS_COLUMNS: Final = (BY_QUARTILE, BY_MEDIAN)
"""The columns of the entries of `Family.by_calls`."""
_FRACTIONS: Final = ((MIN, 0.0), (P10, 0.1), (P90, 0.9), (MAX, 1.0))
_CELLS: Final = 4_000_000
"""Series x steps that are held at once."""
_PEAK: Final = key_of_run("peak memory").metric
_THROUGHPUT: Final = "throughput"


LEAST_INTERVALS: Final = 5
"""Of a training log, behind its warm-up: with fewer its mean step is no series, and so it is not judged."""
_OF_DOCUMENT: Final = ("step", "mean step", "throughput")


class Measured(Struct, frozen=True):
    """One row per series that the rank has. `numbers`: columns as in STATISTICS, per step, nan where unknown.

    `intermittent`: the median over the steps is 0, so that `value` is the mean. `steps`: how many they rest on.
    """

    keys: Sequence[SeriesKey]
    numbers: F64
    intermittent: NDArray[np.bool_]
    steps: int


def measure(rows: RankRows) -> Measured:
    """Return all series of a rank that are above 0 in any step; what lies outside all markers is left out."""
    parts = [_measure_run_level(rows)]
    if rows.steps:
        for family in make_families(rows):
            parts += _measure_family(family, rows.steps)
    keys = [key for part in parts for key in part.keys]
    numbers = np.concatenate([part.numbers for part in parts])
    intermittent = np.concatenate([part.intermittent for part in parts])
    return Measured(keys, numbers, intermittent, sum(row.steps for row in rows.steps))


def _measure_run_level(rows: RankRows) -> Measured:
    """Return the series of the rank as a whole: step time, what it consists of, memory, throughput."""
    weights = np.array([row.steps for row in rows.steps] or [1], dtype=np.float64)
    table = np.full((len(RUN_LEVEL) + 1, len(weights)), np.nan)
    for row, (name, field) in enumerate(RUN_LEVEL.items()):
        if name == "e2e" and rows.has_windows:
            # from the first to the last work that a step launched: no part of a step that is a window of the device
            continue
        values = [getattr(step.breakdown, field) for step in rows.steps]
        whole = getattr(rows.overall, field)
        if name in OF_WHOLE_CAPTURE and all(value is None for value in values):
            values = [whole]
        if field == _PEAK and whole is not None:
            # no median: the largest of the whole capture, and of all ranks
            values = [whole]
        table[row, : len(values)] = [np.nan if value is None else value for value in values]
    times = table[list(RUN_LEVEL).index("step")]
    # the last row is the mean step, one number
    table[-1, 0] = times[0]
    in_order = sorted(range(len(rows.steps)), key=lambda place: rows.steps[place].start_ns)
    # of a log that ended after a few lines one slow interval is the mean
    is_short_log = rows.way == UNPROFILED and len(in_order) < LEAST_INTERVALS
    if is_short_log:
        table[-1, 0] = np.nan
    elif in_order:
        markers = np.array([rows.steps[place].marker_ns for place in in_order], dtype=np.float64)
        filled = without_filling(times[in_order], markers)
        table[-1, 0] = mean_over_steps(filled[None, :], weights[in_order])[0]
    keys = []
    for name in (*RUN_LEVEL, "mean step"):
        unit = rows.unit if name == _THROUGHPUT else ""
        keys.append(key_of_run(name, unit=unit, way=rows.way))
    return _summarize(keys, table, {}, weights)


def measure_document(rows: RankRows) -> Measured:
    """Return what another source of a run says of its step and throughput; what is in a step its trace says."""
    found = _measure_run_level(rows)
    own = [place for place, key in enumerate(found.keys) if key.name in _OF_DOCUMENT]
    return Measured([found.keys[place] for place in own], found.numbers[own], found.intermittent[own], found.steps)


def measure_steps_of_ranks(times: F64, weights: F64, way: str) -> list[Measured]:
    """Return the step alone of each of several ranks, of (ranks, steps); one whose step is not known is left out.
    `weights`: how many steps each column is the mean of. `way`: see `way_of`.
    """
    key = key_of_run("step", way=way)
    found = _summarize([key] * len(times), times, {}, weights)
    own = [(found.numbers[[at]], found.intermittent[[at]]) for at in range(len(found.keys))]
    return [Measured([key], numbers, intermittent, int(weights.sum())) for numbers, intermittent in own]


def _measure_family(family: Family, steps: Sequence[StepRow]) -> Iterator[Measured]:
    """Yield the series of a family, in blocks that fit into memory."""
    ordered = sorted(steps, key=lambda row: row.step)
    numbers = np.array([row.step for row in ordered], dtype=np.int64)
    weights = np.array([row.steps for row in ordered], dtype=np.float64)
    place = np.minimum(np.searchsorted(numbers, family.step), len(numbers) - 1)
    inside = (numbers[place] == family.step) & (family.series >= 0)
    series, place, values = family.series[inside], place[inside], _nan_if_missing(family.values[inside])
    others: dict[int, F64] = {}
    if family.calls is not None:
        others[CALLS] = _nan_if_missing(family.calls[inside])
    # most families have no times by calls
    for column, times in zip(BY_CALLS_COLUMNS, family.by_calls, strict=False):
        # a capture of sums alone, or of an earlier program, has no number in these columns
        if (times != MISSING).any():
            others[column] = _nan_if_missing(times[inside])
    shape = (len(family.keys), len(numbers))
    if is_sparse(len(values), shape):
        cell = series * len(numbers) + place
        others_sparse = {column: sparse_steps(cell, rows, shape, weights) for column, rows in others.items()}
        yield _summarize_sparse(family.keys, sparse_steps(cell, values, shape, weights), others_sparse)
        return
    size = max(1, _CELLS // len(numbers))
    for start in range(0, len(family.keys), size):
        keys = family.keys[start : start + size]
        block = (series >= start) & (series < start + size)
        cell = (series[block] - start) * len(numbers) + place[block]
        shape = (len(keys), len(numbers))
        sums = sums_per_step(cell, values[block], shape) / weights
        others_dense = {column: sums_per_step(cell, rows[block], shape) / weights for column, rows in others.items()}
        yield _summarize(keys, sums, others_dense, weights)


def _nan_if_missing(values: I64) -> F64:
    return np.where(values == MISSING, np.nan, values)


def _summarize(keys: Sequence[SeriesKey], sums: F64, others: Mapping[int, F64], weights: F64) -> Measured:
    """Return the statistics over the steps of the series that a usual step has: whose number is above 0.

    `others`: column of STATISTICS -> other numbers per step, summarized as `value` is. `weights`: as in
    `statistics.over_steps`.
    """
    numbers = np.full((len(keys), len(STATISTICS)), np.nan)
    numbers[:, VALUE] = over_steps(sums, weights)
    numbers[:, MEAN] = mean_over_steps(sums, weights)
    above = np.nan_to_num(numbers[:, VALUE]) > 0
    keys = [key for key, kept in zip(keys, above.tolist(), strict=True) if kept]
    numbers, sums = numbers[above], sums[above]
    ordered = np.sort(sums, axis=1)  # nan comes last
    known = (~np.isnan(sums)).sum(axis=1)
    for column, fraction in _FRACTIONS:
        numbers[:, column] = _quantile(ordered, known, fraction)
    intermittent = (2 * (sums > 0) @ weights < (~np.isnan(sums)) @ weights) if sums.shape[1] else np.zeros(0, bool)
    away = np.nan_to_num(sums - numbers[:, MEAN, None])
    spare = np.where(known > 1, known - 1, np.nan)
    numbers[:, SD] = np.sqrt((away * away).sum(axis=1) / spare)
    for column, table in others.items():
        numbers[:, column] = over_steps(table[above], weights)
    return Measured(keys, numbers, intermittent, 0)


def _summarize_sparse(keys: Sequence[SeriesKey], sums: SparseSteps, others: Mapping[int, SparseSteps]) -> Measured:
    """Return what `_summarize` does, of series that have nothing in most steps."""
    value = sums.over_steps()
    above = np.nan_to_num(value) > 0
    chosen = sums.take(above)
    numbers = np.full((len(chosen), len(STATISTICS)), np.nan)
    numbers[:, MEAN] = chosen.mean()
    for column, fraction in _FRACTIONS:
        numbers[:, column] = chosen.quantile(fraction)
    numbers[:, VALUE] = value[above]
    numbers[:, SD] = chosen.deviation()
    for column, steps in others.items():
        numbers[:, column] = steps.take(above).over_steps()
    kept_keys = [key for key, is_kept in zip(keys, above.tolist(), strict=True) if is_kept]
    return Measured(kept_keys, numbers, chosen.are_intermittent(), 0)


def _quantile(ordered: F64, known: I64, fraction: float) -> F64:
    """Return the quantile of the first `known` values of each row of `ordered`, linear between neighbours; nan without
    any.

    >>> _quantile(np.array([[1.0, 2.0, 4.0], [5.0, 7.0, np.nan]]), np.array([3, 2]), 0.5).tolist()
    [2.0, 6.0]
    """
    if not ordered.shape[1]:
        return np.full(len(ordered), np.nan)
    at = fraction * np.maximum(known - 1, 0)
    low, row = np.floor(at).astype(np.int64), np.arange(len(ordered))
    high = np.minimum(low + 1, np.maximum(known - 1, 0))
    below, above = ordered[row, low], ordered[row, high]
    part = at - low
    between = below + (above - below) * part
    return np.asarray(np.where(known > 0, between, np.nan))


class Samples(Struct, frozen=True):
    """One row per series of a run, in order of its keys. `numbers`: columns as in STATISTICS.

    `share`: value as a fraction of the step, nan for what is no time. `rank_spread`: (largest - smallest rank) / median
    of the ranks of a stage, in the stage where that is largest; nan for one rank. `steps`: per series, of the rank with
    most.
    """

    keys: Sequence[SeriesKey]
    numbers: F64
    share: F64
    rank_spread: F64
    steps: I64
    intermittent: NDArray[np.bool_]


def combine(ranks: Sequence[tuple[int, Measured]]) -> Samples:
    """Return the samples of a run from (pipeline stage, measured rank) pairs.

    Each number as `statistics.over_ranks` says; minimum, maximum and a peak are those of all ranks.
    """
    keys = sorted({key for _, rank in ranks for key in rank.keys})
    places = {key: place for place, key in enumerate(keys)}
    stages = np.array([stage for stage, _ in ranks], dtype=np.int64)
    rows = np.array([places[key] for _, rank in ranks for key in rank.keys], dtype=np.int64)
    rank_of_row = np.repeat(np.arange(len(ranks)), [len(rank.keys) for _, rank in ranks])
    cells, order = order_cells(rows, rank_of_row, stages, len(keys))
    of_cells = np.concatenate([np.zeros((0, len(STATISTICS))), *(rank.numbers for _, rank in ranks)])[order]
    is_intermittent = np.concatenate([np.zeros(0, dtype=bool), *(rank.intermittent for _, rank in ranks)])[order]
    intermittent = cells.any_of_row(is_intermittent)
    values = of_cells[:, VALUE]
    numbers = np.full((len(keys), len(STATISTICS)), np.nan)
    for column in range(len(STATISTICS)):
        numbers[:, column] = over_rank_cells(cells, of_cells[:, column], values)
    for column in BY_CALLS_COLUMNS:
        # a number of some ranks says nothing of a run in which others have the series, too
        is_partial = cells.any_of_row((values > 0) & np.isnan(of_cells[:, column]))
        numbers[is_partial, column] = np.nan
    starts = cells.bounds_of_rows()[:-1]
    numbers[:, MIN] = np.fmin.reduceat(of_cells[:, MIN], starts)
    numbers[:, MAX] = np.fmax.reduceat(of_cells[:, MAX], starts)
    peaks = np.array([key.metric == _PEAK for key in keys], dtype=bool)
    numbers[peaks, VALUE] = numbers[peaks, MAX]
    spread = _spread_of_ranks(cells, values)
    steps = max((rank.steps for _, rank in ranks), default=0)
    balance = _measure_balance(keys, cells, values, stages)
    if balance:
        more = np.full((len(balance), len(STATISTICS)), np.nan)
        more[:, VALUE] = more[:, MEAN] = [*balance.values()]
        of_all = sorted(range(len(keys) + len(balance)), key=[*keys, *balance].__getitem__)
        keys = [[*keys, *balance][place] for place in of_all]
        numbers = np.concatenate([numbers, more])[of_all]
        spread = np.concatenate([spread, np.full(len(balance), np.nan)])[of_all]
        intermittent = np.concatenate([intermittent, np.zeros(len(balance), dtype=bool)])[of_all]
    of_each = np.full(len(keys), steps, dtype=np.int64)
    return Samples(keys, numbers, _shares_of_step(keys, numbers[:, VALUE]), spread, of_each, intermittent)


def _measure_balance(
    keys: Sequence[SeriesKey], cells: RankCells, values: F64, stages: NDArray[np.int64]
) -> dict[SeriesKey, float]:
    """Return how uneven the own times of the ranks are, a step without exposed communication: the largest by the median
    and by the smallest, in the stage where that is most; nothing of one rank, or where no communication is known.
    """
    row_of_run = {(key.name, key.part): row for row, key in enumerate(keys) if key.kind == RUN}
    balance: dict[SeriesKey, float] = {}
    for way in sorted({way for _, way in row_of_run}):
        step = row_of_run.get(("step", way), row_of_run.get(("e2e", way)))
        exposed = row_of_run.get(("exposed communication", way))
        if step is None or exposed is None:
            continue
        of_ranks = [np.full(len(stages), np.nan) for _ in (step, exposed)]
        for row, of_rank in zip((step, exposed), of_ranks, strict=True):
            own = slice(*np.searchsorted(cells.row, [row, row + 1]).tolist())
            of_rank[cells.rank[own]] = values[own]
        own_times = of_ranks[0] - np.nan_to_num(of_ranks[1])
        for stage in sorted(set(stages.tolist())):
            of_stage = own_times[(stages == stage) & ~np.isnan(own_times)]
            if len(of_stage) < 2 or of_stage.min() <= 0:
                continue
            slowest = of_stage.max()
            ratios = {"imbalance": slowest / np.median(of_stage), "rank spread": slowest / of_stage.min()}
            for name, ratio in ratios.items():
                key = key_of_run(name, way=way)
                balance[key] = max(balance.get(key, 0.0), float(ratio))
    return balance


def _spread_of_ranks(cells: RankCells, values: F64) -> F64:
    bounds = cells.bounds_of_stages()
    low, high = np.fmin.reduceat(values, bounds[:-1]), np.fmax.reduceat(values, bounds[:-1])
    several = np.diff(bounds) > 1
    of_stages = np.divide(
        high - low, medians_of_groups(values, bounds), out=np.full(len(several), np.nan), where=several
    )
    spread = np.full(cells.row_count, np.nan)
    np.fmax.at(spread, cells.row[bounds[:-1]], of_stages)
    return spread


def _shares_of_step(keys: Sequence[SeriesKey], values: F64) -> F64:
    """Return each time as a fraction of the step, or of the span of device activity where no step is known."""
    # keys are sorted, so that what a trace says comes before what is measured in another way
    of_run: dict[str, int] = {}
    for place, key in enumerate(keys):
        if key.kind == RUN:
            of_run.setdefault(key.name, place)
    step = of_run.get("step", of_run.get("e2e"))
    if step is None:
        return np.full(len(keys), np.nan)
    is_time = np.array([key.metric.endswith("_ns") for key in keys], dtype=bool)
    return np.where(is_time, values / values[step], np.nan)
