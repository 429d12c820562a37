"""From sums per run to the numbers of a side: the mean per step and rank, the median over the runs.

Every rank of the part of a side that knows a table counts in it, also where a row never occurs (it spends 0 there, as
under pipeline parallelism): so rows add up to the numbers of the breakdown, and changes of rows to that of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tracker.compare.keys import places, ranks, reals
from tracker.lazy import pd

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracker.compare.keys import F64, I64, Numbered
    from tracker.compare.sides import Loaded


def per_step(side: Loaded, rows: Numbered, sums: Sequence[str], whole: Sequence[str] = ()) -> dict[str, F64]:
    """`sums` of `rows` per key, each the mean per step and rank, the median over the runs of `side`.

    `side`: the part that knows these sums (`Loaded.that_knows`), whose `rows` these are. Several rows of one key add
    up, as far as they are known: the sum is nan where none is; those in `whole` where any row of the key has NA in any
    run. A run without the key counts as 0; a key without any row has nan.
    """
    frame, count, runs = rows.frame, rows.count, len(side.run_ids)
    run = pd.Index(side.run_ids).get_indexer(frame["run_id"].to_numpy(dtype=np.int64))
    weights = [side.weights[run_id] for run_id in side.run_ids]
    there = np.bincount(rows.number, minlength=count) > 0
    found = {}
    for name, totals in _totals(frame, rows.number * runs + run, count * runs, sums, whole).items():
        found[name] = np.full(count, np.nan)
        of_runs = totals.reshape(count, runs)[there] / weights
        found[name][there] = np.median(of_runs, axis=1) if name in whole else _medians(of_runs)
    return found


def per_run(side: Loaded, frame: pd.DataFrame, key: Sequence[str], sums: Sequence[str]) -> pd.DataFrame:
    """The same before the median: the mean per step and rank of each run. Index: run_id, `key`."""
    place, first = places([frame[name] for name in ("run_id", *key)])
    own = frame[["run_id", *key]].take(first)
    weights = [side.weights[run_id] for run_id in own["run_id"]]
    means = {name: totals / weights for name, totals in _totals(frame, place, len(first), sums).items()}
    return pd.DataFrame(means, index=pd.MultiIndex.from_frame(own))


def _totals(
    frame: pd.DataFrame, place: I64, count: int, sums: Sequence[str], whole: Sequence[str] = ()
) -> dict[str, F64]:
    """The `sums` of the rows of each of `count` places: 0 without rows, nan where none is known, or not all of those
    in `whole`.
    """
    rows, found = np.bincount(place, minlength=count), {}
    for column in sums:
        numbers = reals(frame[column])
        known = ~np.isnan(numbers)
        least = rows if column in whole else np.minimum(rows, 1)
        told = np.bincount(place, known, count) >= least
        found[column] = np.where(told, np.bincount(place, np.where(known, numbers, 0.0), count), np.nan)
    return found


def _medians(numbers: F64) -> F64:
    """Of each row, leaving out nan: nan where all are."""
    if numbers.shape[1] == 1:
        return numbers[:, 0]
    found, known = np.full(len(numbers), np.nan), ~np.isnan(numbers).all(axis=1)
    found[known] = np.nanmedian(numbers[known], axis=1)
    return found


def median_over_runs(side: Loaded, means: pd.DataFrame, key: Sequence[str]) -> pd.DataFrame:
    """The median over the runs of `side` of frames indexed by run_id and `key`; a run without a key counts as 0
    there.
    """
    if len(side.run_ids) == 1:
        return means.droplevel("run_id")
    rows = means.index.droplevel("run_id")
    keys = rows.unique()
    run = pd.Index(side.run_ids).get_indexer(means.index.get_level_values("run_id"))
    own = run >= 0
    # absent is a true 0; NA of a row that is there stays NA
    table = np.zeros((len(keys), len(side.run_ids), len(means.columns)))
    table[keys.get_indexer(rows[own]), run[own]] = means.to_numpy(dtype=np.float64, na_value=np.nan)[own]
    medians = {name: _medians(table[:, :, at]) for at, name in enumerate(means.columns)}
    return pd.DataFrame(medians, index=keys, columns=means.columns)


def extremes(rows: Numbered, low: str, high: str) -> dict[str, F64]:
    """The smallest `low` and the largest `high` of each key over all runs, ranks and steps; nan without rows."""
    found = {}
    for column, extreme in ((low, np.fmin), (high, np.fmax)):
        found[column] = np.full(rows.count, np.nan)
        extreme.at(found[column], rows.number, reals(rows.frame[column]))
    return found


def dominant(rows: Numbered, text: str, weight: str) -> NDArray[np.object_]:
    """For each key the non-empty `text` that carries most `weight`; ties go to the first in the alphabet; "" where
    there is none.
    """
    texts = rows.frame[text].fillna("").to_numpy(dtype=object)
    found, told = np.full(rows.count, "", dtype=object), np.flatnonzero(texts != "")
    if len(told):
        place, first = places([rows.number[told], texts[told]])
        carried = np.bincount(place, np.nan_to_num(reals(rows.frame[weight]))[told], len(first))
        own, names = rows.number[told][first], texts[told][first]
        order = np.lexsort([ranks(names), -carried, own])[::-1]
        found[own[order]] = names[order]  # the last one stays
    return found


def distinct_texts(rows: Numbered, text: str) -> NDArray[np.object_]:
    """For each key its distinct `text` values in order, joined by ` | `; "" where there is none."""
    texts = rows.frame[text].fillna("").to_numpy(dtype=object)
    first = places([rows.number, texts])[1]
    own, names = rows.number[first], texts[first]
    found = np.full(rows.count, "", dtype=object)
    found[own] = names
    for key in np.flatnonzero(np.bincount(own, minlength=rows.count) > 1):
        found[key] = " | ".join(sorted({*names[own == key]} - {""}))
    return found


def rate(steps: pd.DataFrame, key: Sequence[str]) -> pd.Series:
    """Samples per second of step rows per `key`: their samples by their time, as the step time is their time by number.

    3 s of 10 samples/s and 1 s of 50 samples/s are 80 samples in 4 s: 20 samples/s. Steps without a rate count in
    neither; where a step with one has no time, the steps count alike. `steps`: samples_per_second, duration_ns, steps
    (how many a row is the mean of) and `key`. NA where no step has a rate. Index: `key`.
    """
    known = steps[steps["samples_per_second"].notna()]
    numbers = known["steps"].astype("float64")
    times = known["duration_ns"].astype("Float64").astype("float64") * numbers
    groups = [known[name] for name in key]
    untimed = (times.isna() | (times <= 0)).groupby(groups).transform("any")
    weights = times.mask(untimed, numbers)
    samples = (known["samples_per_second"].astype("float64") * weights).groupby(groups).sum()
    return samples / weights.groupby(groups).sum()
