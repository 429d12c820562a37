"""Which runs and ranks of a side know what is asked, and how many steps they stand for: the denominators of all means.

What is read of a rank may be a part: its collectives alone, its steps without its memory. What it lacks is not 0 but
unknown, so a mean leaves the rank out, above and below the line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from tracker.lazy import pd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tracker.compare.sides import Loaded

TIMES: Final = "compute_ns"
"""Known where the timeline of a rank is: its kernels and ops, and all parts of its steps."""
EXPOSED: Final = "exposed_communication_ns"
_LEAST_TOLD: Final = "exposed_copy_ns"
"""What a profiler's own sums leave out: a rank of which only these are known adds up with none of kernels and ops."""
COLLECTIVES: Final = "communication_total_ns"
OPS: Final = "has_ops"
KERNELS: Final = "has_kernels"
MEMORY: Final = "has_memory"
API: Final = "has_api"
_TABLES: Final = (OPS, KERNELS, MEMORY, API)
_RANK: Final = ["run_id", "rank"]


def part_that_knows(side: Loaded, what: str) -> Loaded:
    """`side` with only the runs, ranks and steps that know `what`: a number of the breakdown, or a
    table: OPS, KERNELS, MEMORY or API.

    All of `side` where nothing of it does: what none knows tells none apart.
    """
    told = np.ones(len(side.steps), dtype=bool)
    if what in _TABLES:
        known = _are_of(side.captures, _with_table(side, what))
    else:
        told = side.steps[what].notna().to_numpy()
        least = told & side.steps[_LEAST_TOLD].notna().to_numpy()
        if what in (TIMES, EXPOSED) and least.any():
            told = least
        without_steps = ~_are_of(side.captures, side.steps) & side.captures[what].notna().to_numpy()
        known = _are_of(side.captures, side.steps[told]) | without_steps
    told = told & _are_of(side.steps, side.captures[known])
    if not known.any() or (known.all() and told.all()):
        return side
    steps = side.steps[told]
    captures = with_step_counts(side.captures[known].reset_index(drop=True), steps)
    run_ids = tuple(run_id for run_id in side.run_ids if (captures["run_id"] == run_id).any())
    return replace(
        side,
        side=replace(side.side, run_ids=run_ids, runs=len(run_ids)),
        runs=side.runs[side.runs["run_id"].isin(run_ids)].reset_index(drop=True),
        captures=captures,
        steps=steps,
        weights=weights(captures),
        is_selection=True,
        answers={},
        parts={},
    )


def both(baseline: Loaded, candidate: Loaded, table: str, *, part: str | None = None) -> tuple[Loaded, Loaded]:
    """The parts of the two sides that know `part` (default: `table`); of these nothing where only one side has `table`
    at all: what one source says and the other does not was neither added nor removed.
    """
    first, second = (side.that_knows(part or table) for side in (baseline, candidate))
    if has(first, table) == has(second, table):
        return first, second
    return _emptied(first), _emptied(second)


def has(side: Loaded, table: str) -> bool:
    """Whether any rank of `side` knows its `table`: OPS, KERNELS, MEMORY, API, or COLLECTIVES."""
    if table in _TABLES:
        return not _with_table(side, table).empty
    return bool(side.captures[table].notna().any())


def _with_table(side: Loaded, table: str) -> pd.DataFrame:
    """The captures that have `table`."""

    def having() -> pd.DataFrame:
        told = side.told()
        return _only(side.captures, told[told[table] == 1])

    return side.once(table, having)


def _emptied(side: Loaded) -> Loaded:
    """`side` as if nothing had been asked of any of its ranks."""
    return replace(side, captures=side.captures.iloc[:0], is_selection=True, answers={}, parts={})


def with_step_counts(captures: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """`captures` with the number of steps that the rows of `steps` stand for."""
    counted = steps.groupby(_RANK)["steps"].sum().reindex(pd.MultiIndex.from_frame(captures[_RANK]))
    return captures.assign(steps=counted.fillna(0).astype("Int64").to_numpy())


def weights(captures: pd.DataFrame) -> pd.Series:
    """run_id -> how many steps of ranks; a capture that holds no step counts as one. float64."""
    return captures["steps"].clip(lower=1).groupby(captures["run_id"]).sum().astype("float64")


def of_captures(frame: pd.DataFrame, captures: pd.DataFrame) -> pd.DataFrame:
    """The rows of `frame` (columns run_id, rank) that are of one of `captures`."""
    return _only(frame, captures).reset_index(drop=True)


def without(captures: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Those of `captures` that are not among the `others`."""
    return captures[~_are_of(captures, others)]


def _only(frame: pd.DataFrame, ranks: pd.DataFrame) -> pd.DataFrame:
    return frame[_are_of(frame, ranks)]


def _are_of(frame: pd.DataFrame, ranks: pd.DataFrame) -> NDArray[np.bool_]:
    """Which rows of `frame` are of one of `ranks`."""
    known = set(_pairs(ranks))
    return np.fromiter((pair in known for pair in _pairs(frame)), dtype=bool, count=len(frame))


def _pairs(frame: pd.DataFrame) -> Iterator[tuple[int, int]]:
    run_ids, ranks = (frame[name].to_numpy(dtype="int64").tolist() for name in _RANK)
    return zip(run_ids, ranks, strict=True)
