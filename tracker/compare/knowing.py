"""Which runs and ranks of a side know what is asked, and how many steps they stand for: the denominators of all means.

What is read of a rank may be a part: its collectives alone, its steps without its memory. What it lacks is not 0 but
unknown, so a mean leaves the rank out, above and below the line.
"""

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
EXPOSED: Final = "exposed_communication_ns"
_LEAST_TOLD: Final = "compute_total_ns"
"""What a profiler's own sums leave out: a rank of which only these are known adds up with none of kernels and ops."""
COLLECTIVES: Final = "communication_total_ns"
OPS: Final = "has_ops"
KERNELS: Final = "has_kernels"
MEMORY: Final = "has_memory"
API: Final = "has_api"
_TABLES: Final = (OPS, KERNELS, MEMORY, API)
_RANK: Final = ("run_id", "rank")
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
        told = side.steps.known(what)
        least = told & side.steps.known(_LEAST_TOLD)
        if what in (TIMES, EXPOSED) and least.any():
            told = least
        without_steps = set(compress(captures, side.captures.known(what))) - set(steps)
        having = set(compress(steps, told)) | without_steps
    known = _among(captures, having)
    told = told & _among(steps, having)
    if not known.any() or (known.all() and told.all()):
        return side
    return _part(side, known, told)


def _part(side: Loaded, known: Flags, told: Flags) -> Loaded:
    """These captures and these steps of `side`."""
    steps = side.steps.taken(told)
    captures = with_step_counts(side.captures.taken(known), steps)
    left = set(captures.listed("run_id"))
    run_ids = tuple(run_id for run_id in side.run_ids if run_id in left)
    return replace(
        side,
        side=replace(side.side, run_ids=run_ids, runs=len(run_ids)),
        runs=side.runs.taken(np.isin(side.runs.integers("run_id"), run_ids)),
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
    return bool(side.captures.known(table).any())


def _with_table(side: Loaded, table: str) -> set[Rank]:
    """The ranks of `side` that have `table`."""

    def having() -> set[Rank]:
        told = side.told()
        return set(compress(_ranks(told), told.integers(table) == 1)) & set(_ranks(side.captures))

    return side.once(table, having)


def _emptied(side: Loaded) -> Loaded:
    """`side` as if nothing had been asked of any of its ranks."""
    return replace(side, captures=side.captures.head(0), is_selection=True, answers={}, parts={})


def with_step_counts(captures: Columns, steps: Columns) -> Columns:
    """`captures` with the number of steps that the rows of `steps` stand for."""
    counted: dict[Rank, int] = {}
    for run_id, rank, number in steps.rows(*_RANK, "steps"):
        counted[run_id, rank] = counted.get((run_id, rank), 0) + number
    return captures.having(steps=Column.of([counted.get(rank, 0) for rank in _ranks(captures)], np.int64))


def weights(captures: Columns) -> dict[int, float]:
    """run_id -> how many steps of ranks; a capture that holds no step counts as one."""
    found: dict[int, float] = {}
    for run_id, steps in captures.rows("run_id", "steps"):
        found[run_id] = found.get(run_id, 0.0) + max(steps, 1)
    return found


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
