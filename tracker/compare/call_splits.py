"""Where the wait and transit of collectives come from: all ranks of a group, or the profiler of each rank.

The two measure different things: a profiler sees in which task a rank stood still, the ranks together show how long
each of them waited for the last one. Numbers of one kind are not compared with numbers of the other.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.columns import objects
from tracker.store import queries
from tracker.table import number_distinct_rows
from tracker.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracker.columns import Columns
    from tracker.compare.sides import Loaded

BY_RANKS: Final = "ranks"
PARTS: Final = ("wait_ns", "transit_ns", "synchronization_ns", "idle_ns", "exposed_wait_ns")
_NO_GROUP: Final = -1
_WORDS: Final = {BY_RANKS: "all ranks", "profiler": "the profiler"}


def one_split(table: Columns, key: Sequence[str]) -> Columns:
    """Collectives without the parts of those whose rows with one `key` (of several runs) were split in two ways."""
    split = table.texts("split_by")
    words = objects([word or "" for word in split])
    place, first = number_distinct_rows([table[name] for name in key])
    ways = sum((np.bincount(place, words == word, len(first)) > 0).astype(np.int64) for word in _WORDS)
    mixed = np.asarray(ways > 1)[place]
    if not mixed.any():
        return table.having(split_by=words)
    parts = {name: np.where(mixed, np.nan, table.reals(name)) for name in PARTS}
    return table.having(**parts, split_by=objects(np.where(mixed, "", words).tolist()))


def split_of_groups(table: Columns) -> dict[str, str]:
    """Where wait and transit of each `group` of a side come from; "" where they are unknown, or come from both."""
    found: dict[str, set[str]] = {}
    for group, word in table.rows("group", "split_by"):
        found.setdefault(group, set()).add(word or "")
    return {group: words.pop() if len(words) == 1 else "" for group, words in found.items()}


def split_otherwise(baseline: Mapping[str, str], candidate: Mapping[str, str]) -> list[str]:
    """The groups whose wait one side has from the ranks and the other from the profiler, in order."""
    return sorted(
        group
        for group in baseline.keys() & candidate.keys()
        if baseline[group] and candidate[group] and baseline[group] != candidate[group]
    )


def notes_of_difference(baseline: Mapping[str, str], candidate: Mapping[str, str]) -> Iterator[str]:
    """That wait and transit of the two sides come from different places."""
    for word in (BY_RANKS, "profiler"):
        groups = [group for group in split_otherwise(baseline, candidate) if baseline[group] == word]
        if groups:
            other = next(own for own in _WORDS if own != word)
            yield (
                f"Wait and transit of {', '.join(groups)} come from {_WORDS[word]} in the baseline and from "
                f"{_WORDS[other]} in the candidate: they are not compared."
            )


def notes_of_groups(sides: Sequence[Loaded]) -> Iterator[str]:
    """Why wait and transit of a side are not computed across ranks, and where clocks were corrected for it."""
    for side in {side.side.label: side for side in sides}.values():
        often = Counter(side.captures.listed("run_id"))
        several = {run_id for run_id, count in often.items() if count > 1}
        if several and not side.lacks(queries.communication):
            yield from dict.fromkeys(_notes_of_rows(side.side.label, side.about(queries.run_groups), several))


def _notes_of_rows(label: str, groups: Columns, several: set[int]) -> Iterator[str]:
    columns = ("run_id", "number", "group_role", "members", "captured", "clock_offset_ns")
    for run_id, number, role, members, captured, offset_ns in groups.rows(*columns):
        if run_id not in several:
            continue
        if offset_ns is not None:
            offset = format_ns(abs(offset_ns))
            yield f"{label}: the clocks of its hosts differ by up to {offset}; corrected to match calls across ranks."
        if captured is not None and 1 < captured < members:
            name = f"group {role} of" if role else "group of"
            yield f"{label}: {name} {members}, {captured} captured: wait and transit are not computed across ranks."
        if number == _NO_GROUP and captured is None:
            yield (
                f"{label}: collectives name no process group and the run may have several: wait and transit are not "
                "computed across ranks."
            )
