"""Two sides side by side: one row per key on either side, ADDED and REMOVED told apart, DIFF in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tracker.columns import Column, Columns, objects
from tracker.compare import reduction
from tracker.results import ADDED, BOTH, DIFF_COLUMNS, REMOVED, VERDICT_COLUMNS
from tracker.table import number_distinct_rows, number_tables, rank_values

if TYPE_CHECKING:
    from tracker.columns import F64
    from tracker.compare.sides import Loaded
    from tracker.table import Numbered

_JUDGED_TEXTS = ("verdict", "reason")
_TEXTS = frozenset(
    {
        "allocator", "attribute", "baseline_call_stack", "baseline_name", "call_stack", "candidate_call_stack",
        "cause",
        "category", "component", "core_type", "data_type", "group_role", "input_shapes",
        "input_types", "kernel", "kind", "level", "metric", "module", "name", "op", "phase", "plane", "source",
        "status", "transport", "type", "why",
        *_JUDGED_TEXTS,
    }
)  # fmt: skip
_NUMBER_KEYS = frozenset({"group_size", "size_class_bytes", "source_rank", "target_rank"})


def nothing(table: str) -> Columns:
    """The rows `table` of a Diff where neither side has any: to join nothing with nothing takes as long as rows."""
    kinds = {"text": objects([]), "whole": Column.of([], np.int64), "real": np.zeros(0)}
    return Columns({name: kinds[_kind(name)] for name in DIFF_COLUMNS[table]})


def _kind(name: str) -> str:
    return "text" if name in _TEXTS else "whole" if name in _NUMBER_KEYS else "real"


def finished(table: str, rows: Columns) -> Columns:
    """The rows `table` of a Diff; in their VERDICT_COLUMNS nothing stands yet: `verdicts` fills them."""
    return unjudged(rows).only(DIFF_COLUMNS[table])


def unjudged(rows: Columns) -> Columns:
    """`rows` with VERDICT_COLUMNS in which nothing stands yet."""
    texts, numbers = objects([None] * len(rows)), np.full(len(rows), np.nan)
    return rows.having(**{name: texts if name in _JUDGED_TEXTS else numbers for name in VERDICT_COLUMNS})


def summed(sides: Sequence[Loaded], parts: Sequence[Columns], key: Sequence[str], sums: Sequence[str]) -> Columns:
    """The rows of both sides `matched` by `key`, with their `sums`; see `reduction.of_side`."""
    rows, keys = number_tables(parts, key)
    return matched(keys, rows, [reduction.of_side(*own, sums) for own in zip(sides, rows, strict=True)])


def matched(keys: Columns, rows: Sequence[Numbered], tables: Sequence[Mapping[str, F64]]) -> Columns:
    """Two sides side by side: the keys, `status`, then `baseline_x`, `candidate_x` for each x of their `tables`, which
    have a row per key. `rows`: those of either side, by which it has a key or not.

    A key on one side only is ADDED or REMOVED, and its numbers on the other side are nan.
    """
    there = np.zeros((2, len(keys)), dtype=bool)
    for has, own in zip(there, rows, strict=True):
        has[own.number] = True
    status = objects([REMOVED, ADDED, BOTH])[np.maximum(there[0] + 2 * there[1] - 1, 0)]
    sides = zip(("baseline", "candidate"), tables, strict=True)
    return keys.having(status=status, **{f"{side}_{name}": own for side, table in sides for name, own in table.items()})


def with_difference(rows: Columns, value: str, *, unit: str = "ns") -> Columns:
    """`rows` with `delta_<unit>` (candidate - baseline, one-sided rows count the other side as 0) and `diff`,
    largest change first.

    `diff` = candidate / baseline - 1; nan where the baseline is missing or 0 and where the candidate is missing.
    """
    baseline, candidate = rows[f"baseline_{value}"], rows[f"candidate_{value}"]
    delta = np.nan_to_num(candidate) - np.nan_to_num(baseline)
    delta[np.isnan(baseline) & np.isnan(candidate)] = np.nan
    result = rows.having(**{f"delta_{unit}": delta, "diff": ratio(baseline, candidate)})
    return by_size(result, f"delta_{unit}", np.fmax(baseline, candidate))


def ratio(baseline: F64, candidate: F64) -> F64:
    """candidate / baseline - 1, nan where it says nothing (no baseline or one below 0, or nothing on a side).

    >>> ratio(np.array([2.0, 0.0, -5.0, 5.0]), np.array([3.0, 1.0, 1.0, np.nan])).tolist()
    [0.5, nan, nan, nan]
    """
    return candidate / np.where(baseline > 0, baseline, np.nan) - 1


def by_size(rows: Columns, delta: str, larger: F64 | None = None) -> Columns:
    """Rows by |`delta`| descending, missing last; ties by the `larger` number of a row, then by the texts and the
    numbers of the key, so that the order is total.
    """
    change: F64 = rows[delta]
    size = np.round(np.abs(change), 6)
    second = size if larger is None else larger
    order = np.lexsort([-second, -size])
    place, _ = number_distinct_rows([size[order], second[order]])
    tied = np.flatnonzero(np.bincount(place)[place] > 1) if len(place) else place
    if len(tied):
        own = order[tied]
        telling = [rank_values(column[own]) for column in _telling(rows)]
        order[tied] = own[np.lexsort([*reversed(telling), place[tied]])]
    return rows.taken(order)


def _telling(rows: Columns) -> list[Any]:
    """The columns that tell rows from each other: the texts, then the numbers of the key."""
    texts = [column for column in rows.arrays.values() if not isinstance(column, Column) and column.dtype == object]
    return [*texts, *(column for name, column in rows.arrays.items() if name in _NUMBER_KEYS)]


def large(rows: Columns, value: str, minimum_ns: int | None) -> Columns:
    """The rows in which `value` of one side is at least `minimum_ns`; all rows for None."""
    if minimum_ns is None:
        return rows
    largest = np.fmax(rows[f"baseline_{value}"], rows[f"candidate_{value}"])
    return rows.taken(np.nan_to_num(largest) >= minimum_ns)


def average(rows: Columns, total: str, calls: str, into: str) -> Columns:
    """`rows` with `<side>_<into>` = `<side>_<total>` / `<side>_<calls>` for both sides, nan without calls."""
    added = {}
    for side in ("baseline", "candidate"):
        count = rows[f"{side}_{calls}"]
        added[f"{side}_{into}"] = rows[f"{side}_{total}"] / np.where(count > 0, count, np.nan)
    return rows.having(**added)


def split_calls(rows: Columns) -> Columns:
    """The change of each row that is on both sides, split exactly: more calls at the old price, then the new price
    for the new calls.

    delta = (n1 - n0) * t0 + n1 * (t1 - t0), with n calls and t = ns / n of a side (docs/compare.md, "Two versions").
    nan where a side has no calls.
    """
    calls0, calls1 = rows["baseline_calls"], rows["candidate_calls"]
    price0 = rows["baseline_ns"] / np.where(calls0 > 0, calls0, np.nan)
    by_calls = np.where(calls1 > 0, (calls1 - calls0) * price0, np.nan)
    delta = rows["candidate_ns"] - rows["baseline_ns"]
    return rows.having(calls_delta_ns=by_calls, per_call_delta_ns=delta - by_calls)
