"""Why: the cause of a finding, in words that follow from its numbers alone."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any, Final

Row = dict[str, Any]

_SAME_TIME: Final = 0.10
"""By how much what came may differ from what went, to be called the same work under another name."""

_ALIKE: Final = 0.6
"""How alike two names must be, 0 to 1, to be one operator renamed."""

_NEW_SHAPES: Final = 0.5
"""Part of the change of an operator that new shapes of it must make to be its cause."""

_COUNTED: Final = frozenset({"op", "op_name", "kernel", "communication", "api"})
_OF_RUN: Final = {
    "data loading": "data loading", "peak memory": "memory", "idle time": "idle time",
    "exposed communication": "communication",
}  # fmt: skip


def split_of(row: Row) -> tuple[float | None, float | None]:
    """The change of a time in two parts that add up: by more calls, by slower ones; None where nobody counts."""
    if row["kind"] not in _COUNTED or row["unit"] != "ns" or row["delta"] is None:
        return None, None
    if row["change"] == "presence":
        return row["delta"], 0.0
    before, after = row["baseline_calls"], row["candidate_calls"]
    if not before or not after:
        return None, None
    by_calls = (after - before) * row["baseline_value"] / before
    return by_calls, row["delta"] - by_calls


def cause_of(row: Row) -> str:
    """A word or two for what changed; empty where it is the step itself, which others explain."""
    if row["kind"] == "run":
        return _OF_RUN.get(row["name"], "")
    if row["kind"] == "memory":
        return "memory"
    worse = row["direction"] == "regression"
    if row["change"] == "gradual":
        return "gradual slowdown"
    if row["change"] == "presence":
        return "new operator" if worse else "operator gone"
    calls, per_call = row["by_calls"], row["by_time_per_call"]
    if calls is not None and per_call is not None and abs(calls) > abs(per_call) and calls * row["delta"] > 0:
        return "more calls" if worse else "fewer calls"
    if row["kind"] == "communication":
        return "slower communication" if worse else "faster communication"
    return "slower per call" if worse else "faster per call"


def mark_renamed(rows: Sequence[Row]) -> None:
    """Series that came with a version while others of the same time went: one work under other names.

    First one by one, alike in name; then all that is left of a kind together, where its sums agree: a fusion.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["change"] == "presence" and row["incident_id"] is not None and row["kind"] in _COUNTED:
            groups.setdefault((row["incident_id"], row["kind"]), []).append(row)
    for own in groups.values():
        added = [row for row in own if row["direction"] == "regression"]
        removed = [row for row in own if row["direction"] == "improvement"]
        for came in list(added):
            went = max(
                (row for row in removed if _same_work(came, row)), key=lambda row: _alike(came, row), default=None
            )
            if went is not None:
                came["cause"], went["cause"] = f"renamed, was {went['name']}", f"renamed, is {came['name']}"
                added.remove(came)
                removed.remove(went)
        if added and removed and _equal(sum(row["delta"] for row in added), -sum(row["delta"] for row in removed)):
            for row in (*added, *removed):
                row["cause"] = "renamed or fused"


def mark_new_shapes(rows: Sequence[Row]) -> None:
    """Operators of which most of the change is in shapes that came or went: no call of before became slower or faster
    by it. `rows`: with what each is under.
    """
    of_shapes: dict[int, float] = {}
    for row in rows:
        if row["change"] == "presence" and row["kind"] == "op" and row["under"] is not None:
            of_shapes[row["under"]] = of_shapes.get(row["under"], 0.0) + (row["delta"] or 0.0)
    for row in rows:
        part = of_shapes.get(row["finding_id"], 0.0)
        if row["change"] != "level" or not row["delta"] or part / row["delta"] < _NEW_SHAPES:
            continue
        more = (row["candidate_calls"] or 0) > (row["baseline_calls"] or 0)
        came = "more calls of new shapes" if more else "new shapes"
        row["cause"] = came if row["direction"] == "regression" else "shapes gone"


def _same_work(came: Row, went: Row) -> bool:
    short, long = sorted((came["name"], went["name"]), key=len)
    return (short in long or _alike(came, went) >= _ALIKE) and _equal(came["delta"], -went["delta"])


def _alike(one: Row, other: Row) -> float:
    return SequenceMatcher(None, one["name"], other["name"]).ratio()


def _equal(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME_TIME * max(abs(one), abs(other))
