"""From sums per run to the numbers of a side: the mean per step and rank of a stage, the median over the runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded


def per_step(side: Loaded, frame: pd.DataFrame, key: Sequence[str], sums: Sequence[str]) -> pd.DataFrame:
    """`sums` of `frame` per `key`, each the mean per step and rank, the median over the runs of `side` (float64).

    `frame`: rows at the grain run_id, stage, and more; several rows of one key add up. Ranks of stages in which a key
    never occurs do not count in its mean. A run without the key counts as 0; NA in a row stays missing, never 0.
    Index: `key`.
    """
    return median_over_runs(side, per_run(side, frame, key, sums), key)


def per_run(side: Loaded, frame: pd.DataFrame, key: Sequence[str], sums: Sequence[str]) -> pd.DataFrame:
    """The same before the median: the mean per step and rank of each run. Index: run_id, `key`."""
    grain = ["run_id", "stage", *key]
    numbers = frame[[*grain, *sums]].copy()
    numbers["stage"] = numbers["stage"].fillna(-1)
    for column in sums:
        numbers[column] = numbers[column].astype("Float64").astype("float64")
    staged = numbers.groupby(grain, sort=False, dropna=False)[list(sums)].sum(min_count=1)
    weights = side.weights.reindex(
        pd.MultiIndex.from_arrays([staged.index.get_level_values(0), staged.index.get_level_values(1)])
    )
    staged["weight"] = weights.to_numpy()
    by_run = staged.groupby(level=["run_id", *key], sort=False).sum(min_count=1)
    return by_run[list(sums)].div(by_run["weight"], axis=0)


def median_over_runs(side: Loaded, means: pd.DataFrame, key: Sequence[str]) -> pd.DataFrame:
    """The median over the runs of `side` of frames indexed by run_id and `key`; a run without a key counts as 0
    there.
    """
    if len(side.run_ids) == 1:
        return means.droplevel("run_id")
    keys = means.index.droplevel("run_id").unique()
    tables = []
    for run_id in side.run_ids:
        of_run = means[means.index.get_level_values("run_id") == run_id].droplevel("run_id")
        table = of_run.reindex(keys)
        table[~keys.isin(of_run.index)] = 0.0  # absent is a true 0; NA of a row that is there stays NA
        tables.append(table)
    return pd.DataFrame(
        {
            column: pd.concat([table[column].rename(run) for run, table in enumerate(tables)], axis=1).median(axis=1)
            for column in means.columns
        },
        index=keys,
    )


def extremes(frame: pd.DataFrame, key: Sequence[str], low: str, high: str) -> pd.DataFrame:
    """The smallest `low` and the largest `high` of each `key` over all runs, ranks and steps, as float64; index:
    `key`.
    """
    numbers = frame[list(key)].copy()
    numbers[low] = frame[low].astype("Float64").astype("float64")
    numbers[high] = frame[high].astype("Float64").astype("float64")
    return numbers.groupby(list(key), sort=False, dropna=False).agg({low: "min", high: "max"})


def dominant(frame: pd.DataFrame, key: Sequence[str], text: str, weight: str) -> pd.Series:
    """For each `key` the non-empty `text` that carries most `weight`; ties go to the first in the alphabet. Index:
    `key`.
    """
    known = frame[frame[text].fillna("") != ""]
    total = known.assign(_weight=known[weight].astype("Float64").fillna(0).astype("float64"))
    total = total.groupby([*key, text], dropna=False)["_weight"].sum().reset_index()
    total = total.sort_values(["_weight", text], ascending=[False, True], kind="stable")
    return total.drop_duplicates(list(key)).set_index(list(key))[text]


def distinct_texts(frame: pd.DataFrame, key: Sequence[str], text: str) -> pd.Series:
    """For each `key` its distinct `text` values in order, joined by ` | `. Index: `key`."""

    def join(values: pd.Series) -> str:
        return " | ".join(sorted(set(values) - {""}))

    pairs = frame[[*key, text]].drop_duplicates()
    single = pairs.groupby(list(key), sort=False, dropna=False)[text]
    counts = single.transform("size")
    first = pairs[counts == 1].set_index(list(key))[text]
    several = pairs[counts > 1]
    if several.empty:
        return first
    return pd.concat([first, several.groupby(list(key), sort=False, dropna=False)[text].agg(join)])
