"""What one rank says of each of its series: the sum of every step, and over the steps one number and its spread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import MISSING, StepRow
from tracker.store.samples.families import RUN, RUN_LEVEL, WHOLE_CAPTURE, Family, RankRows, SeriesKey, families

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

STATISTICS: Final = ("value", "mean", "sd", "min", "p10", "p90", "max", "calls")
"""The columns of `Measured.numbers`."""

VALUE, MEAN, SD, MIN, P10, P90, MAX, CALLS = range(len(STATISTICS))
_CELLS: Final = 4_000_000
"""Series x steps that are held at once."""


class Measured(Struct, frozen=True):
    """One row per series that the rank has. `numbers`: columns as in STATISTICS, per step, nan where unknown.

    `intermittent`: the median over the steps is 0, so that `value` is the mean. `steps`: how many they rest on.
    """

    keys: Sequence[SeriesKey]
    numbers: F64
    intermittent: NDArray[np.bool_]
    steps: int


def measure(rows: RankRows) -> Measured:
    """All series of a rank that are above 0 in any step; what lies outside all markers is left out."""
    parts = [_run_level(rows)]
    if rows.steps:
        for family in families(rows):
            parts += _summed(family, rows.steps)
    keys = [key for part in parts for key in part.keys]
    numbers = np.concatenate([part.numbers for part in parts])
    intermittent = np.concatenate([part.intermittent for part in parts])
    return Measured(keys, numbers, intermittent, sum(row.steps for row in rows.steps))


def _run_level(rows: RankRows) -> Measured:
    """The series of the rank as a whole: step time, what it consists of, memory, throughput."""
    found: list[tuple[SeriesKey, list[float]]] = []
    for name, field in RUN_LEVEL.items():
        values = [getattr(row.breakdown, field) for row in rows.steps]
        if field in WHOLE_CAPTURE and all(value is None for value in values):
            values = [getattr(rows.overall, field)]
        key = SeriesKey(RUN, field, name, part=rows.way)
        found.append((key, [np.nan if value is None else float(value) for value in values]))
    width = max(len(values) for _, values in found)
    table = np.array([values + [np.nan] * (width - len(values)) for _, values in found]).reshape(len(found), width)
    return _kept([key for key, _ in found], table, None, 0)


def _summed(family: Family, steps: Sequence[StepRow]) -> Iterator[Measured]:
    """A family, its series in blocks that fit into memory."""
    ordered = sorted(steps, key=lambda row: row.step)
    numbers = np.array([row.step for row in ordered], dtype=np.int64)
    weights = np.array([row.steps for row in ordered], dtype=np.float64)
    place = np.minimum(np.searchsorted(numbers, family.step), len(numbers) - 1)
    inside = (numbers[place] == family.step) & (family.series >= 0)
    series, place, values = family.series[inside], place[inside], family.values[inside]
    calls = None if family.calls is None else family.calls[inside]
    size = max(1, _CELLS // len(numbers))
    for start in range(0, len(family.keys), size):
        keys = family.keys[start : start + size]
        block = (series >= start) & (series < start + size)
        cell = (series[block] - start) * len(numbers) + place[block]
        shape = (len(keys), len(numbers))
        sums = _per_step(cell, values[block], shape) / weights
        counts = None if calls is None else _per_step(cell, calls[block], shape) / weights
        yield _kept(keys, sums, counts, 0)


def _per_step(cell: I64, values: I64, shape: tuple[int, int]) -> F64:
    """The sums per (series, step). A step without a row is a true 0; one whose rows do not say is nan."""
    known = values != MISSING
    size = shape[0] * shape[1]
    # of no rows at all, bincount makes whole numbers
    sums = np.bincount(cell[known], weights=values[known].astype(np.float64), minlength=size).astype(np.float64)
    if not known.all():
        said = np.bincount(cell[known], minlength=size) > 0
        sums[np.bincount(cell[~known], minlength=size).astype(bool) & ~said] = np.nan
    return sums.reshape(shape)


def _kept(keys: Sequence[SeriesKey], sums: F64, counts: F64 | None, steps: int) -> Measured:
    """The statistics over the steps of the series that are above 0 in any."""
    numbers = np.full((len(keys), len(STATISTICS)), np.nan)
    numbers[:, MEAN] = _mean(sums)
    above = np.nan_to_num(numbers[:, MEAN]) > 0
    keys = [key for key, kept in zip(keys, above.tolist(), strict=True) if kept]
    numbers, sums = numbers[above], sums[above]
    ordered = np.sort(sums, axis=1)  # nan comes last
    known = (~np.isnan(sums)).sum(axis=1)
    for column, fraction in ((VALUE, 0.5), (MIN, 0.0), (P10, 0.1), (P90, 0.9), (MAX, 1.0)):
        numbers[:, column] = quantile(ordered, known, fraction)
    intermittent = numbers[:, VALUE] == 0
    numbers[:, VALUE] = np.where(intermittent, numbers[:, MEAN], numbers[:, VALUE])
    away = np.nan_to_num(sums - numbers[:, MEAN, None])
    spare = np.where(known > 1, known - 1, np.nan)
    numbers[:, SD] = np.sqrt((away * away).sum(axis=1) / spare)
    if counts is not None:
        counts = counts[above]
        middle = quantile(np.sort(counts, axis=1), (~np.isnan(counts)).sum(axis=1), 0.5)
        numbers[:, CALLS] = np.where(middle == 0, _mean(counts), middle)
    return Measured(keys, numbers, intermittent, steps)


def _mean(table: F64) -> F64:
    """The mean of the known values of each row, nan where none is."""
    known = ~np.isnan(table)
    number = known.sum(axis=1)
    total = np.where(known, table, 0.0).sum(axis=1)
    return np.asarray(np.divide(total, number, out=np.full(len(table), np.nan), where=number > 0))


def quantile(ordered: F64, known: I64, fraction: float) -> F64:
    """The quantile of the first `known` values of each row of `ordered`, linear between neighbours; nan without any.

    >>> quantile(np.array([[1.0, 2.0, 4.0], [5.0, 7.0, np.nan]]), np.array([3, 2]), 0.5).tolist()
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
