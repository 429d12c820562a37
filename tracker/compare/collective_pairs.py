"""Which collectives of two sides are the same, by the most specific key that both know.

The full key is kind, group role, group size, data type and size class. Where one side does not know a part, or no row
of the other side has the same, rows are summed up to a coarser key on both sides: a collective that both sides have is
neither ADDED nor REMOVED because a profiler does not say its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isclose
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from tracker.columns import Columns, objects
from tracker.results import COMMUNICATION_KEY

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded

Key = tuple[str, str, int, str, int]
"""The columns COMMUNICATION_KEY of one collective; "" and -1 for what is not known."""

Calls = Mapping[Key, float]
"""The collectives of a side, with the calls per step and rank."""

_ROLE, _GROUP_SIZE, _TYPE, _SIZE = range(1, 5)
_UNKNOWN: Final = ("", "", -1, "", -1)
_GROUP, _PAYLOAD = (_ROLE, _GROUP_SIZE), (_TYPE, _SIZE)


class Pairing(Struct, frozen=True):
    """Of each side the keys that are summed up to coarser ones.

    `dropped`: the kinds of which size or type were left out, and those of which the group was.
    """

    names: tuple[Mapping[Key, Key], Mapping[Key, Key]]
    dropped: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


def pair(baseline: Calls, candidate: Calls, *, by_name: bool = False, other_vendor: bool = False) -> Pairing:
    """How the collectives of two sides are paired.

    Rows without a partner lose first their group, then data type and size class:

    - the group (role, size) where one side does not know it, or `other_vendor`;
    - type and size each where one side does not know it;
    - both where the rows that are left are equally many calls on both sides: the n-th is the n-th (a changed payload);
    - both for all rows of a kind and group `by_name`, or where another vendor's profiler wrote the other side.
    """
    sides = (_Side.of(baseline), _Side.of(candidate))
    without_group = _coarsened(
        sides, lambda key: (key[0],), lambda before, after: _groups_to_drop(before, after, other_vendor)
    )
    whole = by_name or other_vendor
    without_payload = _coarsened(
        sides, lambda key: key[:3], lambda before, after: _payload_to_drop(before, after, whole), whole=whole
    )
    return Pairing((sides[0].names, sides[1].names), (_kinds(without_payload), _kinds(without_group)))


def paired(table: Columns, names: Mapping[Key, Key]) -> Columns:
    """`table` with the keys that a `Pairing` gives its rows."""
    if not names or not len(table):
        return table
    keys = [names.get(key, key) for key in table.rows(*COMMUNICATION_KEY)]
    columns: dict[str, Any] = {}
    for name, unknown, values in zip(COMMUNICATION_KEY, _UNKNOWN, zip(*keys, strict=True), strict=True):
        columns[name] = objects(values) if unknown == "" else np.array(values, dtype=np.int64)
    return table.having(**columns)


def calls_of(side: Loaded, table: Columns) -> Calls:
    """The collectives of a side (sizes -1 where unknown), with the calls per step and rank over all of its runs."""
    steps = sum(max(steps, 1) for steps in side.captures.listed("steps"))
    found: dict[Key, float] = {}
    for calls, *key in table.rows("calls", *COMMUNICATION_KEY):
        name: Key = (key[0], key[1], key[2], key[3], key[4])
        found[name] = found.get(name, 0.0) + (calls or 0) / steps
    return found


class _Side(Struct):
    """The rows of a side under their present keys; `names`: original key -> present key, where they differ."""

    rows: dict[Key, list[Key]]
    calls: Calls
    names: dict[Key, Key]

    @classmethod
    def of(cls, calls: Calls) -> _Side:
        return cls({key: [key] for key in calls}, calls, {})

    def coarsen(self, keys: Iterable[Key], dropped: Sequence[int]) -> None:
        """Drops columns of these keys, and sums up what is then equal."""
        for key in keys:
            cells: list[Any] = list(key)
            for column in dropped:
                cells[column] = _UNKNOWN[column]
            coarse: Key = (cells[0], cells[1], cells[2], cells[3], cells[4])
            if coarse == key:
                continue
            originals = self.rows.pop(key)
            self.rows.setdefault(coarse, []).extend(originals)
            self.names.update(dict.fromkeys(originals, coarse))

    def total(self, keys: Iterable[Key]) -> float:
        return sum(self.calls[original] for key in keys for original in self.rows[key])


_Rest = tuple[_Side, Sequence[Key]]
"""A side, and those of its keys in a bucket that the other side does not have."""


def _coarsened(
    sides: tuple[_Side, _Side],
    bucket: Callable[[Key], tuple[Any, ...]],
    dropped_of: Callable[[_Rest, _Rest], tuple[int, ...]],
    *,
    whole: bool = False,
) -> list[str]:
    """Drops in each bucket the columns that `dropped_of` says for the keys without a partner; the kinds in which any
    were. `whole`: of all keys in the bucket.
    """
    before, after = (_by(side.rows, bucket) for side in sides)
    kinds = []
    for name in before.keys() & after.keys():
        own = before[name], after[name]
        shared = set(own[0]) & set(own[1])
        rest = [[key for key in keys if key not in shared] for keys in own]
        if not any(rest) or not (all(rest) or whole):
            continue
        dropped = dropped_of((sides[0], rest[0]), (sides[1], rest[1]))
        if not dropped:
            continue
        kinds.append(str(name[0]))
        for side, keys, left in zip(sides, own, rest, strict=True):
            side.coarsen(keys if whole else left, dropped)
    return kinds


def _by(keys: Iterable[Key], bucket: Callable[[Key], tuple[Any, ...]]) -> dict[tuple[Any, ...], list[Key]]:
    found: dict[tuple[Any, ...], list[Key]] = {}
    for key in keys:
        found.setdefault(bucket(key), []).append(key)
    return found


def _groups_to_drop(before: _Rest, after: _Rest, other_vendor: bool) -> tuple[int, ...]:
    """Both columns of the group, where the groups without a partner cannot be told apart on one side."""
    groups = [{key[1:3] for key in keys} for _, keys in (before, after)]
    if not (groups[0] - groups[1] and groups[1] - groups[0]):
        return ()
    lacking = _lacks(before, after, _ROLE) or _lacks(before, after, _GROUP_SIZE)
    return _GROUP if other_vendor or lacking else ()


def _payload_to_drop(before: _Rest, after: _Rest, whole: bool) -> tuple[int, ...]:
    if whole:
        return _PAYLOAD
    unknown = tuple(column for column in _PAYLOAD if _lacks(before, after, column))
    if unknown and _agree(before, after, unknown):
        return unknown
    equal = isclose(before[0].total(before[1]), after[0].total(after[1]), rel_tol=1e-9)
    return _PAYLOAD if unknown or equal else ()


def _agree(before: _Rest, after: _Rest, dropped: Sequence[int]) -> bool:
    """Whether without these columns each key has a partner."""
    kept = [column for column in range(len(_UNKNOWN)) if column not in dropped]
    first, second = ({tuple(key[column] for column in kept) for key in keys} for _, keys in (before, after))
    return first == second


def _lacks(before: _Rest, after: _Rest, column: int) -> bool:
    """Whether one side does not know a column of some row that the other side knows of one."""
    first, second = ([key[column] == _UNKNOWN[column] for key in keys] for _, keys in (before, after))
    return (any(first) and not all(second)) or (any(second) and not all(first))


def _kinds(kinds: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(kinds)))
