"""From sums per run to the numbers of a side: the mean per step and rank, the median over the runs.

Every rank of the part of a side that knows a table counts in it, also where a row never occurs (it spends 0 there, as
under pipeline parallelism): so rows add up to the numbers of the breakdown, and changes of rows to that of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tracker.compare.keys import places, reals, values
from tracker.lazy import pd

if TYPE_CHECKING:
    from tracker.compare.keys import F64, I64
    from tracker.compare.sides import Loaded


def per_step(
    side: Loaded, frame: pd.DataFrame, key: Sequence[str], sums: Sequence[str], whole: Sequence[str] = ()
) -> pd.DataFrame:
    """`sums` of `frame` per `key`, each the mean per step and rank, the median over the runs of `side` (float64).

    `side`: the part that knows these sums (`Loaded.that_knows`). `frame`: rows of its runs; several rows of one key add
    up, as far as they are known: the sum is NA where none is; those in `whole` where any row of the key has NA in the
    run. A run without the key counts as 0. Index: `key`.
    """
    means, first = _means(side, frame, key, sums, whole)
    if len(side.run_ids) == 1:
        return pd.DataFrame(means, index=_index(frame, key, first))
    return median_over_runs(side, pd.DataFrame(means, index=_index(frame, ["run_id", *key], first)), key)


def per_run(side: Loaded, frame: pd.DataFrame, key: Sequence[str], sums: Sequence[str]) -> pd.DataFrame:
    """The same before the median: the mean per step and rank of each run. Index: run_id, `key`."""
    means, first = _means(side, frame, key, sums)
    return pd.DataFrame(means, index=_index(frame, ["run_id", *key], first))


def _means(
    side: Loaded, frame: pd.DataFrame, key: Sequence[str], sums: Sequence[str], whole: Sequence[str] = ()
) -> tuple[dict[str, F64], I64]:
    """The columns of `per_run`, NA where `whole` wants it, and the first row of each run and key."""
    place, first = places([frame[name] for name in ("run_id", *key)])
    weights = side.weights.reindex(frame["run_id"].take(first)).to_numpy()
    found = {}
    for column in sums:
        numbers = reals(frame[column])
        known = ~np.isnan(numbers)
        totals = np.bincount(place, np.where(known, numbers, 0.0), len(first))
        least = np.bincount(place, minlength=len(first)) if column in whole else 1
        told = np.bincount(place, known, len(first)) >= least
        found[column] = np.where(told, totals, np.nan) / weights
    return found, first


def _index(frame: pd.DataFrame, key: Sequence[str], rows: I64) -> pd.Index:
    """The keys of these rows of `frame`."""
    own = frame[list(key)].take(rows)
    return pd.Index(own[key[0]]) if len(key) == 1 else pd.MultiIndex.from_frame(own)


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
    medians = np.full((len(keys), len(means.columns)), np.nan)
    known = ~np.isnan(table).all(axis=1)
    medians[known] = np.nanmedian(table.swapaxes(1, 2)[known], axis=1)
    return pd.DataFrame(medians, index=keys, columns=means.columns)


def extremes(frame: pd.DataFrame, key: Sequence[str], low: str, high: str) -> pd.DataFrame:
    """The smallest `low` and the largest `high` of each `key` over all runs, ranks and steps, as float64; index:
    `key`.
    """
    place, first = places([frame[name] for name in key])
    found = {}
    for column, extreme in ((low, np.fmin), (high, np.fmax)):
        found[column] = np.full(len(first), np.nan)
        extreme.at(found[column], place, reals(frame[column]))
    return pd.DataFrame(found, index=_index(frame, key, first))


def dominant(frame: pd.DataFrame, key: Sequence[str], text: str, weight: str) -> pd.Series:
    """For each `key` the non-empty `text` that carries most `weight`; ties go to the first in the alphabet. Index:
    `key`, in any order.
    """
    told = [isinstance(value, str) and value != "" for (value,) in values(frame, text)]
    known = frame[[*key, text, weight]].take(np.flatnonzero(told))
    place, first = places([known[name] for name in (*key, text)])
    pairs = known.take(first).assign(_weight=np.bincount(place, np.nan_to_num(reals(known[weight])), len(first)))
    if pairs.duplicated(list(key)).any():
        pairs = pairs.sort_values(["_weight", text], ascending=[False, True], kind="stable").drop_duplicates(list(key))
    return pairs.set_index(list(key))[text]


def distinct_texts(frame: pd.DataFrame, key: Sequence[str], text: str) -> pd.Series:
    """For each `key` its distinct `text` values in order, joined by ` | `. Index: `key`."""

    def join(values: pd.Series) -> str:
        return " | ".join(sorted(set(values) - {""}))

    pairs = frame[[*key, text]].take(places([frame[name] for name in (*key, text)])[1])
    repeated = pairs.duplicated(list(key), keep=False)
    single = pairs[~repeated].set_index(list(key))[text]
    if len(single) == len(pairs):
        return single
    return pd.concat([single, pairs[repeated].groupby(list(key), sort=False, dropna=False)[text].agg(join)])


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
