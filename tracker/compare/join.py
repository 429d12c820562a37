"""Two sides side by side: one row per key on either side, ADDED and REMOVED told apart, DIFF in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tracker.compare import means
from tracker.compare.keys import Numbered, length, numbered, places, ranks, reals, taken
from tracker.lazy import pd
from tracker.results import ADDED, BOTH, DIFF_COLUMNS, REMOVED, VERDICT_COLUMNS

if TYPE_CHECKING:
    from tracker.compare.keys import F64, Columns
    from tracker.compare.sides import Loaded

_JUDGED_TEXTS = ("verdict", "calls_verdict", "reason")
_UNJUDGED: Mapping[str, Any] = {name: None if name in _JUDGED_TEXTS else np.nan for name in VERDICT_COLUMNS}
_TEXT_KEYS = frozenset(
    {
        "attribute", "component", "core_type", "data_type", "group_role", "input_shapes", "input_types", "kind",
        "level", "module", "name", "phase", "plane", "source", "status", "transport", "type",
    }
)  # fmt: skip
_NUMBER_KEYS = frozenset({"group_size", "size_class_bytes", "source_rank", "target_rank"})


def nothing(table: str) -> pd.DataFrame:
    """The frame `table` of a Diff where neither side has a row: to join nothing with nothing takes as long as rows."""
    empty = {kind: pd.array([], dtype=kind) for kind in ("string", "Int64")}
    empty |= {kind: np.zeros(0, dtype=kind) for kind in ("float64", "object")}
    return pd.DataFrame({name: empty[_dtype(name)] for name in DIFF_COLUMNS[table]})


def _dtype(name: str) -> str:
    if name in _TEXT_KEYS:
        return "string"
    return "Int64" if name in _NUMBER_KEYS else "object" if name in _JUDGED_TEXTS else "float64"


def frame(table: str, columns: Columns) -> pd.DataFrame:
    """The frame `table` of a Diff; in its VERDICT_COLUMNS nothing stands yet: `verdicts` fills them."""
    return pd.DataFrame({name: columns[name] if name in columns else _UNJUDGED[name] for name in DIFF_COLUMNS[table]})


def unjudged(frame: pd.DataFrame) -> pd.DataFrame:
    """`frame` with VERDICT_COLUMNS in which nothing stands yet."""
    return frame.assign(**_UNJUDGED)


def outer(baseline: pd.DataFrame, candidate: pd.DataFrame) -> Columns:
    """Both frames (same index names, same columns) joined on their index, as `matched` does it."""
    index = baseline.index.union(candidate.index, sort=True)
    rows = [Numbered(side, index.get_indexer(side.index), len(index)) for side in (baseline, candidate)]
    aligned = [side.reindex(index) for side in (baseline, candidate)]
    tables = [{str(name): reals(side[name]) for name in side} for side in aligned]
    return matched({str(name): index.get_level_values(name).array for name in index.names}, rows, tables)


def summed(sides: Sequence[Loaded], frames: Sequence[pd.DataFrame], key: Sequence[str], sums: Sequence[str]) -> Columns:
    """The rows of both sides `matched` by `key`, with their `sums`; see `means.per_step`."""
    rows, keys = numbered(frames, key)
    return matched(keys, rows, [means.per_step(*own, sums) for own in zip(sides, rows, strict=True)])


def matched(keys: Columns, rows: Sequence[Numbered], tables: Sequence[Mapping[str, F64]]) -> Columns:
    """Two sides side by side: the keys, `status`, then `baseline_x`, `candidate_x` for each x of their `tables`, which
    have a row per key. `rows`: those of either side, by which it has a key or not.

    A key on one side only is ADDED or REMOVED, and its numbers on the other side are nan.
    """
    there = np.zeros((2, length(keys)), dtype=bool)
    for has, own in zip(there, rows, strict=True):
        has[own.number] = True
    status = np.where(there.all(axis=0), BOTH, np.where(there[1], ADDED, REMOVED))
    sides = zip(("baseline", "candidate"), tables, strict=True)
    return {**keys, "status": status, **{f"{side}_{name}": own for side, table in sides for name, own in table.items()}}


def with_difference(columns: Columns, value: str, *, unit: str = "ns") -> Columns:
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
    """candidate / baseline - 1, nan where it says nothing (no baseline, or nothing on either side).

    >>> ratio(np.array([2.0, 0.0, 5.0]), np.array([3.0, 1.0, np.nan])).tolist()
    [0.5, nan, nan]
    """
    return candidate / np.where(baseline != 0, baseline, np.nan) - 1


def by_size(columns: Columns, delta: str, larger: F64 | None = None) -> Columns:
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
        telling = [ranks(column.take(rows)) for column in _telling(columns)]
        order[tied] = rows[np.lexsort([*reversed(telling), place[tied]])]
    return taken(columns, order)


def _telling(columns: Columns) -> list[Any]:
    """The columns that tell rows from each other: the texts, then the numbers of the key."""
    texts = [column for column in columns.values() if column.dtype.kind in "OU"]
    return [*texts, *(column for name, column in columns.items() if name in _NUMBER_KEYS)]


def large(columns: Columns, value: str, minimum_ns: int | None) -> Columns:
    """The rows in which `value` of one side is at least `minimum_ns`; all rows for None."""
    if minimum_ns is None:
        return columns
    largest = np.fmax(columns[f"baseline_{value}"], columns[f"candidate_{value}"])
    return taken(columns, np.flatnonzero(np.nan_to_num(largest) >= minimum_ns))


def average(columns: Columns, total: str, calls: str, into: str) -> Columns:
    """`columns` with `<side>_<into>` = `<side>_<total>` / `<side>_<calls>` for both sides, nan without calls."""
    added = {}
    for side in ("baseline", "candidate"):
        count = columns[f"{side}_{calls}"]
        added[f"{side}_{into}"] = columns[f"{side}_{total}"] / np.where(count > 0, count, np.nan)
    return {**columns, **added}


def split_calls(columns: Columns) -> Columns:
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
