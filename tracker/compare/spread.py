"""How far the runs of a side lie apart: what a change must stand out of. No statistics, no verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tracker.columns import Columns
from tracker.compare import match
from tracker.compare.overall import run_numbers
from tracker.table import number_tables

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide


def total_range(side: LoadedSide, metric: str) -> tuple[float, float] | None:
    """Smallest and largest `metric` of the runs of `side`, None where none says it."""
    values = run_numbers(side).get(metric)
    return (min(values), max(values)) if values else None


def overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Return whether two ranges have a value in common.

    >>> overlap((1.0, 3.0), (3.0, 5.0)), overlap((1.0, 2.0), (3.0, 5.0))
    (True, False)
    """
    return one[0] <= other[1] and other[0] <= one[1]


def standing_out(
    baseline: LoadedSide, candidate: LoadedSide, rows: Sequence[Columns], key: Sequence[str]
) -> dict[tuple[str, ...], bool] | None:
    """Return for each `key` whether every run of one side took longer than every run of the other; None with one run a
    side.

    `rows`: what `operators.Operators` holds per side. A run without the key took 0.
    """
    sides = (baseline, candidate)
    if min(side.side.runs for side in sides) < 2:
        return None
    ranges = [_ranges(side, own, key) for side, own in zip(sides, rows, strict=True)]
    absent = (0.0, 0.0)
    return {
        name: not overlap(ranges[0].get(name, absent), ranges[1].get(name, absent))
        for name in ranges[0].keys() | ranges[1].keys()
    }


def _ranges(side: LoadedSide, rows: Columns, key: Sequence[str]) -> dict[tuple[str, ...], tuple[float, float]]:
    (own,), keys = number_tables([rows], key)
    values = np.nan_to_num(match.reduce_per_run(side, own, ["own_ns"])["own_ns"])
    ranges = zip(values.min(axis=1).tolist(), values.max(axis=1).tolist(), strict=True)
    return dict(zip(keys.rows(*key), ranges, strict=True))
