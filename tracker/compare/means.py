"""From sums per run to the numbers of a side: the mean per step and rank, the median over the runs.

Every rank of the part of a side that knows a table counts in it, also where a row never occurs (it spends 0 there, as
under pipeline parallelism): so rows add up to the numbers of the breakdown, and changes of rows to that of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from tracker.columns import Columns, objects
from tracker.compare.keys import places, ranks
from tracker.profile import known_medians, median

if TYPE_CHECKING:
    from tracker.columns import F64, I64, Texts
    from tracker.compare.keys import Numbered
    from tracker.compare.sides import Loaded


def per_step(side: Loaded, rows: Numbered, sums: Sequence[str], whole: Sequence[str] = ()) -> dict[str, F64]:
    """`sums` of `rows` per key, each the mean per step and rank, the median over the runs of `side`.

    `side`: the part that knows these sums (`Loaded.that_knows`), whose `rows` these are. Several rows of one key add
    up, as far as they are known: the sum is nan where none is; those in `whole` where any row of the key has NA in any
    run. A run without the key counts as 0; a key without any row has nan.
    """
    count, runs = rows.count, len(side.run_ids)
    run = _places_of_runs(side, rows.rows)
    weights = [side.weights[run_id] for run_id in side.run_ids]
    there = np.bincount(rows.number, minlength=count) > 0
    found = {}
    for name, totals in _totals(rows.rows, rows.number * runs + run, count * runs, sums, whole).items():
        found[name] = np.full(count, np.nan)
        of_runs = totals.reshape(count, runs)[there] / weights
        found[name][there] = median(of_runs, axis=1) if name in whole else known_medians(of_runs)
    return found


def _places_of_runs(side: Loaded, rows: Columns) -> I64:
    """Of each row the place of its run among those of `side`."""
    place = {run_id: at for at, run_id in enumerate(side.run_ids)}
    numbers, which = np.unique(rows.integers("run_id"), return_inverse=True)
    return np.array([place[run_id] for run_id in numbers.tolist()], dtype=np.int64)[which]


def per_run(side: Loaded, rows: Columns, key: Sequence[str], sums: Sequence[str]) -> Columns:
    """The same before the median: the mean per step and rank of each run. Columns: run_id, `key`, `sums`."""
    place, first = places([rows[name] for name in ("run_id", *key)])
    own = rows.only(["run_id", *key]).taken(first)
    weights = [side.weights[run_id] for run_id in own.listed("run_id")]
    return own.having(**{name: totals / weights for name, totals in _totals(rows, place, len(first), sums).items()})


def _totals(table: Columns, place: I64, count: int, sums: Sequence[str], whole: Sequence[str] = ()) -> dict[str, F64]:
    """The `sums` of the rows of each of `count` places: 0 without rows, nan where none is known, or not all of those
    in `whole`.
    """
    rows, found = np.bincount(place, minlength=count), {}
    for column in sums:
        numbers = table.reals(column)
        known = ~np.isnan(numbers)
        least = rows if column in whole else np.minimum(rows, 1)
        told = np.bincount(place, known, count) >= least
        found[column] = np.where(told, np.bincount(place, np.where(known, numbers, 0.0), count), np.nan)
    return found


def exact_sums(numbers: F64, place: I64, count: int) -> F64:
    """The sum at each place of what is known there, nan where nothing is; rounded once, so that it does not depend on
    the order and what cancels leaves 0.
    """
    told = ~np.isnan(numbers)
    numbers, place = numbers[told], place[told]
    rows, found = np.bincount(place, minlength=count), np.full(count, np.nan)
    alone = rows[place] == 1
    found[place[alone]] = numbers[alone]
    several: dict[int, list[float]] = {}
    for at, number in zip(place[~alone].tolist(), numbers[~alone].tolist(), strict=True):
        several.setdefault(at, []).append(number)
    for at, own in several.items():
        found[at] = fsum(own)
    return found


def median_over_runs(side: Loaded, means: Columns, key: Sequence[str]) -> Columns:
    """The median over the runs of `side` of what `per_run` gives, a row per `key`; a run without a key counts as 0
    there.
    """
    names = [name for name in means.arrays if name not in ("run_id", *key)]
    if len(side.run_ids) == 1:
        return means.only([*key, *names])
    place, first = places([means[name] for name in key])
    table = np.zeros((len(first), len(side.run_ids), len(names)))
    # absent is a true 0; what is missing in a row that is there stays missing
    table[place, _places_of_runs(side, means)] = np.column_stack([means.reals(name) for name in names])
    medians = {name: known_medians(table[:, :, at]) for at, name in enumerate(names)}
    return means.only(key).taken(first).having(**medians)


def extremes(rows: Numbered, low: str, high: str) -> dict[str, F64]:
    """The smallest `low` and the largest `high` of each key over all runs, ranks and steps; nan without rows."""
    found = {}
    for column, extreme in ((low, np.fmin), (high, np.fmax)):
        found[column] = np.full(rows.count, np.nan)
        extreme.at(found[column], rows.number, rows.rows.reals(column))
    return found


def dominant(rows: Numbered, text: str, weight: str) -> Texts:
    """For each key the non-empty `text` that carries most `weight`; ties go to the first in the alphabet; "" where
    there is none.
    """
    texts = rows.rows.texts(text)
    found, told = objects([""] * rows.count), np.flatnonzero(texts != "")
    if len(told):
        place, first = places([rows.number[told], texts[told]])
        carried = np.bincount(place, np.nan_to_num(rows.rows.reals(weight))[told], len(first))
        own, names = rows.number[told][first], texts[told][first]
        order = np.lexsort([ranks(names), -carried, own])[::-1]
        found[own[order]] = names[order]  # the last one stays
    return found


def distinct_texts(rows: Numbered, text: str) -> Texts:
    """For each key its distinct `text` values in order, joined by ` | `; "" where there is none."""
    texts = rows.rows.texts(text)
    first = places([rows.number, texts])[1]
    own, names = rows.number[first], texts[first]
    found = objects([""] * rows.count)
    found[own] = names
    for key in np.flatnonzero(np.bincount(own, minlength=rows.count) > 1):
        found[key] = " | ".join(sorted({*names[own == key]} - {""}))
    return found


def rate(steps: Columns, key: Sequence[str]) -> dict[tuple[int, ...], float]:
    """Samples per second of step rows per `key`: their samples by their time, as the step time is their time by number.

    3 s of 10 samples/s and 1 s of 50 samples/s are 80 samples in 4 s: 20 samples/s. Steps without a rate count in
    neither; where a step with one has no time, the steps count alike. `steps`: samples_per_second, duration_ns, steps
    (how many a row is the mean of) and `key`. Without a key where no step has a rate.
    """
    own = steps.taken(steps.known("samples_per_second"))
    numbers = own.reals("steps")
    times = own.reals("duration_ns") * numbers
    place, first = places([own[name] for name in key])
    untimed = np.bincount(place, ~(times > 0), len(first)) > 0
    weights = np.where(untimed[place], numbers, times)
    samples = exact_sums(own.reals("samples_per_second") * weights, place, len(first))
    found = samples / exact_sums(weights, place, len(first))
    return dict(zip(own.taken(first).rows(*key), found.tolist(), strict=True))
