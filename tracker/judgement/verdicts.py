"""Exactly these runs against exactly those: the verdicts of a diff."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracker.detectors.centre import Centre
from tracker.judgement.judging import Values, compare
from tracker.judgement.thresholds import Thresholds
from tracker.store import Store, judged, thresholds
from tracker.store.chosen import ChosenRuns, values_of_runs

SERIES_KEY: Final = ("kind", "metric", "name", "input_shapes", "part")


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """`table`: a row per series of either side, with the index SERIES_KEY and the columns of `judging.Compared`.

    `centre`: what all operators share, which is taken out of the times. `thresholds`: the limits that it was judged by.
    """

    table: pd.DataFrame
    centre: Centre
    thresholds: Thresholds


def verdicts_of(
    store: Store,
    baseline_run_ids: Sequence[int],
    candidate_run_ids: Sequence[int],
    *,
    candidate_store: Store | None = None,
    older: Sequence[Sequence[int]] = (),
) -> Verdicts:
    """The judgement of candidate runs against baseline runs, at least one each, all of one line.

    `candidate_store`: where the candidate runs are, if in another database. `older`: runs of older versions, in
    `store`, whose noise is the yardstick of one run against one (see `older_runs`). Reads only. Whether the runs may be
    judged at all (the same workload, configuration and device) is for the caller to know. The thresholds are those of
    the line of the baseline runs, or where there are none, of the candidate runs.
    """
    sides, limits = [], []
    for side, run_ids in ((store, baseline_run_ids), (candidate_store or store, candidate_run_ids)):
        with side.connect() as connection:
            sides.append(values_of_runs(connection, run_ids))
            limits += [thresholds.of_line(connection, line) for line in judged.lines(connection, run_ids)]
    with store.connect() as connection:
        past = values_of_runs(connection, list(chain.from_iterable(older)))
    before, after = sides
    own = Thresholds(next(filter(None, limits), ()))
    keys = sorted({*before.keys, *after.keys})
    values, calls = (
        np.hstack([_rows(side, numbers, keys) for side, numbers in pairs])
        for pairs in (
            ((before, before.values), (after, after.values), (past, past.values)),
            ((before, before.calls), (after, after.calls), (past, past.calls)),
        )
    )
    count = len(baseline_run_ids)
    ends = list(accumulate(map(len, older), initial=count + len(candidate_run_ids)))
    groups = [range(*bounds) for bounds in pairwise(ends)]
    line = Values.of_keys(keys, values, calls, groups)
    compared = compare(
        line,
        range(count),
        range(count, count + len(candidate_run_ids)),
        device_timed=[timeline == "device" for timeline in after.timelines],
        thresholds=own,
    )
    index = pd.MultiIndex.from_tuples(keys, names=SERIES_KEY)
    return Verdicts(compared.table.set_index(index), compared.centre, own)


def _rows(side: ChosenRuns, numbers: NDArray[np.float64], keys: Sequence[object]) -> NDArray[np.float64]:
    """`numbers` of a side in the rows of `keys`, nan for series that it does not have."""
    place = {key: at for at, key in enumerate(keys)}
    found = np.full((len(keys), numbers.shape[1]), np.nan)
    there = [at for at, key in enumerate(side.keys) if key in place]
    found[[place[side.keys[at]] for at in there]] = numbers[there]
    return found
