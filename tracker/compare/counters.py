"""What profilers count in tables of their own, on two sides."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.columns import Columns
from tracker.compare import match
from tracker.profile import INPUT_OPERATIONS, INPUT_QUEUES, MODULE_CALLS, OP_FLOPS, OPERATOR_ARGUMENTS
from tracker.results import BOTH, COUNTER_KEY, REPEATED_COUNTERS
from tracker.schema.column_names import BASELINE_MEAN, CANDIDATE_MEAN, SOURCE, STATUS
from tracker.store import queries
from tracker.table import Numbered, is_among, number_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.columns import F64
    from tracker.compare.side import LoadedSide

_KEY: Final = list(COUNTER_KEY)
_ELSEWHERE: Final = (MODULE_CALLS, OP_FLOPS, INPUT_OPERATIONS, INPUT_QUEUES, OPERATOR_ARGUMENTS)


def compare(baseline: LoadedSide, candidate: LoadedSide) -> Columns:
    """Return the `counters` of a Diff: what both sides counted, the largest |diff| first, without REPEATED_COUNTERS."""
    sides = (baseline, candidate)
    asked = [of_side(side, ("run",)) for side in sides if side.may_have_rows(queries.counters)]
    if len(asked) < len(sides) or not all(map(len, asked)):
        return match.empty_table("counters")
    counted = [table.taken(~is_among(table[SOURCE], REPEATED_COUNTERS)) for table in asked]
    rows, keys = number_tables(counted, _KEY)
    joined = match.match_rows(keys, rows, list(map(_medians, rows)))
    joined = joined.taken(joined[STATUS] == BOTH)
    mean0, mean1 = joined[BASELINE_MEAN], joined[CANDIDATE_MEAN]
    joined = joined.having(delta=mean1 - mean0, diff=match.relative_change(mean0, mean1))
    return match.finish_table("counters", match.sort_by_size(joined, "diff"))


def of_side(side: LoadedSide, by: Sequence[str]) -> Columns:
    """Return the counters of a side at the grain `by`; those of no step too, unless some of several steps were chosen.

    Without the calls of modules, which the tree of modules shows, the FLOPs of operators, which advice reads, and what
    has tables of its own: the data pipeline and the arguments of operators.
    """
    steps = side.asked_steps if side.is_part else None
    table = side.query_with(queries.counters, by=tuple(by), ranks=side.ranks, steps=steps)
    return table.taken(~is_among(table[SOURCE], _ELSEWHERE))


def _medians(rows: Numbered) -> dict[str, F64]:
    """Of each key means over all values of a run, the median over the runs; and the extremes."""
    found = {name: _median(rows, name) for name in ("calls", "mean")}
    return found | match.find_extremes(rows, "min", "max")


def _median(rows: Numbered, name: str) -> F64:
    values: dict[int, list[float]] = {}
    for key, value in zip(rows.number.tolist(), rows.rows.listed(name), strict=True):
        if value is not None:
            values.setdefault(key, []).append(value)
    return np.array([median(values[key]) if key in values else np.nan for key in range(rows.count)], dtype=np.float64)
