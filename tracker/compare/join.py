"""Two sides side by side: one row per key on either side, ADDED and REMOVED told apart, DIFF in the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracker.compare.keys import places, reals, values
from tracker.lazy import pd
from tracker.results import ADDED, BOTH, DIFF_COLUMNS, REMOVED, VERDICT_COLUMNS

_JUDGED_TEXTS = ("verdict", "calls_verdict", "reason")
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


def outer(baseline: pd.DataFrame, candidate: pd.DataFrame) -> pd.DataFrame:
    """Both frames (same index names, same columns) joined on their index; columns and order as in `matched`."""
    index = baseline.index.union(candidate.index, sort=True)
    sides = (side.set_axis(index.get_indexer(side.index)) for side in (baseline, candidate))
    return matched(index.to_frame(index=False), *sides)


def matched(keys: pd.DataFrame, baseline: pd.DataFrame, candidate: pd.DataFrame) -> pd.DataFrame:
    """Two frames with the same columns, whose index are numbers of `keys` (see `keys.numbered`), side by side: the
    keys, `status`, then `baseline_x`, `candidate_x` for each x; the index is that of `keys`.

    A key on one side only is ADDED or REMOVED, and its numbers on the other side are NA.
    """
    sides = {"baseline": baseline, "candidate": candidate}
    on_baseline, on_candidate = (np.isin(keys.index, side.index) for side in sides.values())
    status = np.where(on_baseline & on_candidate, BOTH, np.where(on_candidate, ADDED, REMOVED))
    aligned = {name: side.reindex(keys.index) for name, side in sides.items()}
    values = {f"{name}_{column}": side[column] for column in baseline.columns for name, side in aligned.items()}
    return pd.DataFrame({**keys, "status": status, **values})


def with_difference(frame: pd.DataFrame, value: str, *, unit: str = "ns") -> pd.DataFrame:
    """`frame` with `delta_<unit>` (candidate - baseline, one-sided rows count the other side as 0) and `diff`,
    largest change first.

    `diff` = candidate / baseline - 1; NA where the baseline is missing or 0 and where the candidate is missing.
    """
    baseline, candidate = frame[f"baseline_{value}"], frame[f"candidate_{value}"]
    known = baseline.notna() | candidate.notna()
    delta = (candidate.fillna(0.0) - baseline.fillna(0.0)).where(known)
    result = frame.assign(**{f"delta_{unit}": delta, "diff": ratio(baseline, candidate)})
    return by_size(result, f"delta_{unit}", [f"candidate_{value}", f"baseline_{value}"])


def ratio(baseline: pd.Series, candidate: pd.Series) -> pd.Series:
    """candidate / baseline - 1, NA where it says nothing (no baseline, or nothing on either side).

    >>> ratio(pd.Series([2.0, 0.0, 5.0]), pd.Series([3.0, 1.0, None])).tolist()
    [0.5, nan, nan]
    """
    return (candidate / baseline.where(baseline != 0) - 1).astype("float64")


def unjudged(frame: pd.DataFrame) -> pd.DataFrame:
    """`frame` with VERDICT_COLUMNS in which nothing stands yet: `verdicts` fills them."""
    return frame.assign(**{name: None if name in _JUDGED_TEXTS else np.nan for name in VERDICT_COLUMNS})


def by_size(frame: pd.DataFrame, delta: str, ties: Sequence[str] = ()) -> pd.DataFrame:
    """Rows by |`delta`| descending, NA last; ties by the larger of `ties`, then by the text columns and the numbers of
    the key, so that the order is total.
    """
    size = np.round(np.abs(reals(frame[delta])), 6)
    largest = np.fmax.reduce([reals(frame[name]) for name in ties]) if ties else size
    order = np.lexsort([-largest, -size])
    place, _ = places([size[order], largest[order]])
    tied = np.flatnonzero(np.bincount(place)[place] > 1) if len(place) else place
    if len(tied):
        rows = frame.take(order[tied])
        told = [tuple(map(_missing_last, row)) for row in values(rows, *_telling(frame))]
        order[tied] = [row[-1] for row in sorted(zip(place[tied].tolist(), told, order[tied].tolist(), strict=True))]
    return frame.take(order).reset_index(drop=True)


def _telling(frame: pd.DataFrame) -> list[str]:
    """The columns of a frame that tell its rows from each other: the texts, then the numbers of the key."""
    texts = [name for name, kind in frame.dtypes.items() if pd.api.types.is_string_dtype(kind)]
    return [*texts, *(name for name in frame.columns if name in _NUMBER_KEYS)]


def _missing_last(value: Any) -> tuple[bool, Any]:
    """A sort key."""
    return (True, "") if pd.isna(value) else (False, value)


def large(frame: pd.DataFrame, value: str, minimum_ns: int | None) -> pd.DataFrame:
    """The rows in which `value` of one side is at least `minimum_ns`; all rows for None."""
    if minimum_ns is None:
        return frame
    largest = frame[[f"baseline_{value}", f"candidate_{value}"]].max(axis=1).fillna(0.0)
    return frame[largest >= minimum_ns].reset_index(drop=True)


def average(frame: pd.DataFrame, total: str, calls: str, into: str) -> pd.DataFrame:
    """`frame` with `<side>_<into>` = `<side>_<total>` / `<side>_<calls>` for both sides, NA without calls."""
    added = {}
    for side in ("baseline", "candidate"):
        count = frame[f"{side}_{calls}"]
        added[f"{side}_{into}"] = frame[f"{side}_{total}"] / count.where(count > 0)
    return frame.assign(**added)


def split_calls(frame: pd.DataFrame) -> pd.DataFrame:
    """The change of each row that is on both sides, split exactly: more calls at the old price, then the new price
    for the new calls.

    delta = (n1 - n0) * t0 + n1 * (t1 - t0), with n calls and t = ns / n of a side (JUDGEMENT section 1). NA where a
    side has no calls.
    """
    calls0, calls1 = frame["baseline_calls"], frame["candidate_calls"]
    price0 = frame["baseline_ns"] / calls0.where(calls0 > 0)
    by_calls = ((calls1 - calls0) * price0).where((calls0 > 0) & (calls1 > 0))
    delta = frame["candidate_ns"] - frame["baseline_ns"]
    return frame.assign(calls_delta_ns=by_calls, per_call_delta_ns=delta - by_calls)
