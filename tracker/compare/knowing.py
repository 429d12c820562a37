"""Which runs and ranks of a side report a table or a metric."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from tracker.columns import Column, Columns

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from tracker.columns import Flags
    from tracker.compare.sides import Loaded

TIMES: Final = "compute_ns"
"""Known where the timeline of a rank is: its kernels and ops, and all parts of its steps."""
COLLECTIVES: Final = "communication_total_ns"
OPS: Final = "has_ops"
KERNELS: Final = "has_kernels"
MEMORY: Final = "has_memory"
API: Final = "has_api"
_TABLES: Final = (OPS, KERNELS, MEMORY, API)
_RANK: Final = ("run_id", "rank")
Rank = tuple[int, int]
"""A run and one of its ranks."""


def ranks_that_report(side: Loaded, metric: str) -> Columns:
    """The captures of the ranks of `side` whose steps report a `metric` of the breakdown, or which have none and report
    it as a whole.
    """
    captures, steps = _ranks(side.captures), _ranks(side.steps)
    without_steps = set(compress(captures, side.captures.known(metric))) - set(steps)
    having = set(compress(steps, side.steps.known(metric))) | without_steps
    return side.captures.taken(_among(captures, having))


def both(baseline: Loaded, candidate: Loaded, table: str) -> tuple[Loaded, Loaded]:
    """The two sides, without anything where only one has `table` at all: what one source reports and the other does not
    was neither added nor removed.
    """
    if has(baseline, table) == has(candidate, table):
        return baseline, candidate
    return _emptied(baseline), _emptied(candidate)


def has(side: Loaded, table: str) -> bool:
    """Whether any rank of `side` knows its `table`: OPS, KERNELS, MEMORY, API, or COLLECTIVES."""
    if table in _TABLES:
        return bool(_with_table(side, table))
    return bool(side.captures.known(table).any())


def _with_table(side: Loaded, table: str) -> set[Rank]:
    """The ranks of `side` that have `table`."""

    def having() -> set[Rank]:
        filled = side.filled()
        return set(compress(_ranks(filled), filled.integers(table) == 1)) & set(_ranks(side.captures))

    return side.once(table, having)


def _emptied(side: Loaded) -> Loaded:
    """`side` as if nothing had been asked of any of its ranks."""
    return replace(side, captures=side.captures.head(0), is_selection=True, answers={})


def with_step_counts(captures: Columns, steps: Columns) -> Columns:
    """`captures` with the number of steps that the rows of `steps` stand for."""
    counted: dict[Rank, int] = {}
    for run_id, rank, number in steps.rows(*_RANK, "steps"):
        counted[run_id, rank] = counted.get((run_id, rank), 0) + number
    return captures.having(steps=Column.of([counted.get(rank, 0) for rank in _ranks(captures)], np.int64))


def of_captures(table: Columns, captures: Columns) -> Columns:
    """The rows of `table` (columns run_id, rank) that are of one of `captures`."""
    own = _among(_ranks(table), set(_ranks(captures)))
    return table if own.all() else table.taken(own)


def without(captures: Columns, others: Columns) -> dict[int, list[int]]:
    """run_id -> the ranks of `captures` that are not among the `others`."""
    found: dict[int, list[int]] = {}
    for run_id, rank in sorted(set(_ranks(captures)) - set(_ranks(others))):
        found.setdefault(run_id, []).append(rank)
    return found


def _among(ranks: Sequence[Rank], known: Set[Rank]) -> Flags:
    return np.array([rank in known for rank in ranks], dtype=bool)


def _ranks(table: Columns) -> list[Rank]:
    """The run and the rank of each row."""
    return list(table.rows(*_RANK))
