"""One run against one: how much runs of the same line varied within their versions is what a change is measured by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracker.detectors import rule
from tracker.detectors.arrays import cut
from tracker.detectors.spread import Spread, pooled
from tracker.judgement.best import shared_factor
from tracker.store import Store, queries
from tracker.store.chosen import Known

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

MOST: Final = 30
"""Older runs that are asked, the newest ones: what a diff costs must not grow with the history."""


def older_runs(store: Store, run_ids: Sequence[int], known: Known | None = None) -> tuple[tuple[int, ...], ...]:
    """By version, the active runs of the line of `run_ids` whose noise is a yardstick for them: of versions before the
    newest one of `run_ids`, with two or more runs besides these; the oldest first, at most 30 in all.

    Empty where there are none, or `run_ids` are of several lines. `known`: what was read of the database before.
    """
    with store.connect() as connection:
        _, runs = (known or Known()).line_of_runs(connection, run_ids)
    if not runs:
        return ()
    place = {version: at for at, version in enumerate(dict.fromkeys(run.version for run in runs))}
    newest = max((place[run.version] for run in runs if run.run_id in run_ids), default=-1)
    if not {run.run_id for run in runs} >= set(run_ids):  # what is excluded may be of a version without active runs
        labels = queries.labels_of(store, run_ids)
        place = queries.order_of_versions(store, labels[max(labels)][0])
        newest = max(place[version] for _, version in labels.values())
    by_version: dict[int, list[int]] = {}
    for run in runs:
        if place[run.version] < newest and run.run_id not in run_ids:
            by_version.setdefault(run.version_id, []).append(run.run_id)
    groups = [tuple(group) for group in by_version.values() if len(group) > 1]
    while len(groups) > 1 and sum(map(len, groups)) > MOST:
        groups = groups[1:]
    return tuple(groups)


def factors_of(values: F64, versions: Sequence[Sequence[int]], shared: I64, step: float) -> list[F64]:
    """What all operators of the runs of each of `versions` share, as a log per run. `values`: (series, runs);
    `versions`: the columns of each.

    `shared`: the rows that say so; those of at least 0.01 % of `step` do, the larger step in the unit of the values,
    nan for unknown.
    """
    factors = []
    for version in versions:
        leaves = cut(values, shared, version)
        with np.errstate(divide="ignore", invalid="ignore"):
            factors.append(shared_factor(leaves[~(leaves.mean(axis=1) < rule.TESTED_SHARE * step)]))
    return factors


def noise_of(
    values: F64, versions: Sequence[Sequence[int]], rows: I64, factors: Sequence[F64 | float] | None = None
) -> Spread:
    """How much `rows` of `values` (series, runs) varied within `versions`, the columns of each; without `factors`, of
    `factors_of`.
    """
    sides = []
    for version, factor in zip(versions, factors or [0.0] * len(versions), strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(cut(values, rows, version)) - factor
        sides.append(np.where(np.isfinite(logs), logs, np.nan))
    return pooled(*sides)
