"""Which runs and ranks of a side know what is asked, and how many steps they stand for: the denominators of all means.

What is read of a rank may be a part: its collectives alone, its steps without its memory. What it lacks is not 0 but
unknown, so a mean leaves the rank out, above and below the line.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from tracker.lazy import pd

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from numpy.typing import NDArray

    from tracker.compare.sides import Loaded

TIMES: Final = "compute_ns"
"""Known where the timeline of a rank is: its kernels and ops, and all parts of its steps."""
EXPOSED: Final = "exposed_communication_ns"
_LEAST_TOLD: Final = "compute_total_ns"
"""What a profiler's own sums leave out: a rank of which only these are known adds up with none of kernels and ops."""
COLLECTIVES: Final = "communication_total_ns"
OPS: Final = "has_ops"
KERNELS: Final = "has_kernels"
MEMORY: Final = "has_memory"
API: Final = "has_api"
_TABLES: Final = (OPS, KERNELS, MEMORY, API)
_RANK: Final = ["run_id", "rank"]
Rank = tuple[int, int]
"""A run and one of its ranks."""


def part_that_knows(side: Loaded, what: str) -> Loaded:
    """`side` with only the runs, ranks and steps that know `what`: a number of the breakdown, or a
    table: OPS, KERNELS, MEMORY or API.

    All of `side` where nothing of it does: what none knows tells none apart.
    """
    captures, steps = _ranks(side.captures), _ranks(side.steps)
    told = np.ones(len(steps), dtype=bool)
    if what in _TABLES:
        having = _with_table(side, what)
    else:
        told = side.steps[what].notna().to_numpy()
        least = told & side.steps[_LEAST_TOLD].notna().to_numpy()
        if what in (TIMES, EXPOSED) and least.any():
            told = least
        without_steps = set(compress(captures, side.captures[what].notna())) - set(steps)
        having = set(compress(steps, told)) | without_steps
    known = _among(captures, having)
    told = told & _among(steps, having)
    if not known.any() or (known.all() and told.all()):
        return side
    return _part(side, known, told)


def _part(side: Loaded, known: NDArray[np.bool_], told: NDArray[np.bool_]) -> Loaded:
    """These captures and these steps of `side`."""
    steps = side.steps[told]
    captures = with_step_counts(side.captures[known].reset_index(drop=True), steps)
    left = set(captures["run_id"])
    run_ids = tuple(run_id for run_id in side.run_ids if run_id in left)
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
        return bool(_with_table(side, table))
    return bool(side.captures[table].notna().any())


def _with_table(side: Loaded, table: str) -> set[Rank]:
    """The ranks of `side` that have `table`."""

    def having() -> set[Rank]:
        told = side.told()
        return set(compress(_ranks(told), told[table] == 1)) & set(_ranks(side.captures))

    return side.once(table, having)


def _emptied(side: Loaded) -> Loaded:
    """`side` as if nothing had been asked of any of its ranks."""
    return replace(side, captures=side.captures.iloc[:0], is_selection=True, answers={}, parts={})


def with_step_counts(captures: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """`captures` with the number of steps that the rows of `steps` stand for."""
    counted = steps.groupby(_RANK)["steps"].sum().reindex(pd.MultiIndex.from_frame(captures[_RANK]))
    return captures.assign(steps=counted.fillna(0).astype("Int64").to_numpy())


def weights(captures: pd.DataFrame) -> dict[int, float]:
    """run_id -> how many steps of ranks; a capture that holds no step counts as one."""
    found: dict[int, float] = {}
    for run_id, steps in zip(captures["run_id"].tolist(), captures["steps"].tolist(), strict=True):
        found[run_id] = found.get(run_id, 0.0) + max(steps, 1)
    return found


def of_captures(frame: pd.DataFrame, captures: pd.DataFrame) -> pd.DataFrame:
    """The rows of `frame` (columns run_id, rank) that are of one of `captures`."""
    own = _among(_ranks(frame), set(_ranks(captures)))
    return frame if own.all() else frame[own].reset_index(drop=True)


def without(captures: pd.DataFrame, others: pd.DataFrame) -> dict[int, list[int]]:
    """run_id -> the ranks of `captures` that are not among the `others`."""
    found: dict[int, list[int]] = {}
    for run_id, rank in sorted(set(_ranks(captures)) - set(_ranks(others))):
        found.setdefault(run_id, []).append(rank)
    return found


def _among(ranks: Sequence[Rank], known: Set[Rank]) -> NDArray[np.bool_]:
    return np.array([rank in known for rank in ranks], dtype=bool)


def _ranks(frame: pd.DataFrame) -> list[Rank]:
    """The run and the rank of each row."""
    return list(zip(*(frame[name].tolist() for name in _RANK), strict=True))
