"""Two sides side by side: one row per key on either side, ADDED and REMOVED told apart, DIFF in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tracker.columns import Column, Columns, objects
from tracker.compare import reduction
from tracker.compare.keys import length, numbered, places, ranks, taken
from tracker.results import ADDED, BOTH, DIFF_COLUMNS, REMOVED, VERDICT_COLUMNS

if TYPE_CHECKING:
    from tracker.columns import F64
    from tracker.compare.keys import Arrays, Numbered
    from tracker.compare.sides import Loaded

_JUDGED_TEXTS = ("verdict", "reason")
_TEXTS = frozenset(
    {
        "allocator", "attribute", "baseline_call_stack", "baseline_name", "call_stack", "candidate_call_stack",
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


def finished(table: str, columns: Arrays) -> Columns:
    """The rows `table` of a Diff; in their VERDICT_COLUMNS nothing stands yet: `verdicts` fills them."""
    empty = _unjudged(length(columns))
    return Columns({name: columns[name] if name in columns else empty[name] for name in DIFF_COLUMNS[table]})


def unjudged(columns: Columns) -> Columns:
    """`columns` with VERDICT_COLUMNS in which nothing stands yet."""
    return columns.having(**_unjudged(len(columns)))


def _unjudged(count: int) -> Arrays:
    texts, numbers = objects([None] * count), np.full(count, np.nan)
    return {name: texts if name in _JUDGED_TEXTS else numbers for name in VERDICT_COLUMNS}


def summed(sides: Sequence[Loaded], parts: Sequence[Columns], key: Sequence[str], sums: Sequence[str]) -> Arrays:
    """The rows of both sides `matched` by `key`, with their `sums`; see `reduction.of_side`."""
    rows, keys = numbered(parts, key)
    return matched(keys, rows, [reduction.of_side(*own, sums) for own in zip(sides, rows, strict=True)])


def matched(keys: Arrays, rows: Sequence[Numbered], tables: Sequence[Mapping[str, F64]]) -> Arrays:
    """Two sides side by side: the keys, `status`, then `baseline_x`, `candidate_x` for each x of their `tables`, which
    have a row per key. `rows`: those of either side, by which it has a key or not.

    A key on one side only is ADDED or REMOVED, and its numbers on the other side are nan.
    """
    there = np.zeros((2, length(keys)), dtype=bool)
    for has, own in zip(there, rows, strict=True):
        has[own.number] = True
    status = objects([REMOVED, ADDED, BOTH])[np.maximum(there[0] + 2 * there[1] - 1, 0)]
    sides = zip(("baseline", "candidate"), tables, strict=True)
    return {**keys, "status": status, **{f"{side}_{name}": own for side, table in sides for name, own in table.items()}}


def with_difference(columns: Arrays, value: str, *, unit: str = "ns") -> Arrays:
    """`columns` with `delta_<unit>` (candidate - baseline, one-sided rows count the other side as 0) and `diff`,
    largest change first.

    `diff` = candidate / baseline - 1; nan where the baseline is missing or 0 and where the candidate is missing.
    """
    baseline, candidate = columns[f"baseline_{value}"], columns[f"candidate_{value}"]
    delta = np.nan_to_num(candidate) - np.nan_to_num(baseline)
    delta[np.isnan(baseline) & np.isnan(candidate)] = np.nan
    result = {**columns, f"delta_{unit}": delta, "diff": ratio(baseline, candidate)}
    return by_size(result, f"delta_{unit}", np.fmax(baseline, candidate))


def ratio(baseline: F64, candidate: F64) -> F64:
    """candidate / baseline - 1, nan where it says nothing (no baseline or one below 0, or nothing on a side).

    >>> ratio(np.array([2.0, 0.0, -5.0, 5.0]), np.array([3.0, 1.0, 1.0, np.nan])).tolist()
    [0.5, nan, nan, nan]
    """
    return candidate / np.where(baseline > 0, baseline, np.nan) - 1


def by_size(columns: Arrays, delta: str, larger: F64 | None = None) -> Arrays:
    """Rows by |`delta`| descending, missing last; ties by the `larger` number of a row, then by the texts and the
    numbers of the key, so that the order is total.
    """
    change: F64 = columns[delta]
    size = np.round(np.abs(change), 6)
    second = size if larger is None else larger
    order = np.lexsort([-second, -size])
    place, _ = places([size[order], second[order]])
    tied = np.flatnonzero(np.bincount(place)[place] > 1) if len(place) else place
    if len(tied):
        rows = order[tied]
        telling = [ranks(column[rows]) for column in _telling(columns)]
        order[tied] = rows[np.lexsort([*reversed(telling), place[tied]])]
    return taken(columns, order)


def _telling(columns: Arrays) -> list[Any]:
    """The columns that tell rows from each other: the texts, then the numbers of the key."""
    texts = [column for column in columns.values() if not isinstance(column, Column) and column.dtype == object]
    return [*texts, *(column for name, column in columns.items() if name in _NUMBER_KEYS)]


def large(columns: Arrays, value: str, minimum_ns: int | None) -> Arrays:
    """The rows in which `value` of one side is at least `minimum_ns`; all rows for None."""
    if minimum_ns is None:
        return columns
    largest = np.fmax(columns[f"baseline_{value}"], columns[f"candidate_{value}"])
    return taken(columns, np.flatnonzero(np.nan_to_num(largest) >= minimum_ns))


def average(columns: Arrays, total: str, calls: str, into: str) -> Arrays:
    """`columns` with `<side>_<into>` = `<side>_<total>` / `<side>_<calls>` for both sides, nan without calls."""
    added = {}
    for side in ("baseline", "candidate"):
        count = columns[f"{side}_{calls}"]
        added[f"{side}_{into}"] = columns[f"{side}_{total}"] / np.where(count > 0, count, np.nan)
    return {**columns, **added}


def split_calls(columns: Arrays) -> Arrays:
    """The change of each row that is on both sides, split exactly: more calls at the old price, then the new price
    for the new calls.

    delta = (n1 - n0) * t0 + n1 * (t1 - t0), with n calls and t = ns / n of a side (JUDGEMENT section 1). nan where a
    side has no calls.
    """
    calls0, calls1 = columns["baseline_calls"], columns["candidate_calls"]
    price0 = columns["baseline_ns"] / np.where(calls0 > 0, calls0, np.nan)
    by_calls = np.where(calls1 > 0, (calls1 - calls0) * price0, np.nan)
    delta = columns["candidate_ns"] - columns["baseline_ns"]
    return {**columns, "calls_delta_ns": by_calls, "per_call_delta_ns": delta - by_calls}
