"""Which calls of the ranks of one group are one call: by order, and only where all members are inside at some moment.

Order alone is wrong as soon as events are missing: what one rank lost shifts all that follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I64, MISSING, each_once, median

CLOCK_NS: Final = 1_000_000
"""Clocks of two hosts that differ by more are put right, and this is noted; the clocks of the devices of one host
differ by less.
"""


class RankCalls(Struct, frozen=True, eq=False):
    """The calls of one member of a group, in any order. `key`: equal where calls can be one call. Times on the clock of
    `host` ('': unknown, so that the clock is its own), `source_index` or MISSING.
    """

    rank: int
    host: str
    key: I64
    start_ns: I64
    end_ns: I64
    source_index: I64


class Pairs(Struct, frozen=True, eq=False):
    """`places`: per member (as given) and call of all members its place among the member's. `offset_ns`: how far the
    clock of each member was ahead of that of the lowest rank, where it was put right and by more than CLOCK_NS; else 0.
    """

    places: I64
    offset_ns: tuple[int, ...]


def pair(members: Sequence[RankCalls]) -> Pairs:
    """Return the calls in which all `members` of a group, two or more, took part; the order of the members never
    matters.

    The n-th calls of a key are one call where at some moment all members are inside it (latest start < earliest end).
    Where they are not, those that ended before the last one began are left out, and the next ones are tried. Where the
    source counts the calls itself and at least as many pass by its numbers, these count.

    The clocks of the members may differ from that of the lowest rank: by the median of how much later they leave the
    calls, for all leave together. They are put right by the calls that pass as they are, or by the n-th of each key,
    where that pairs more.
    """
    order = sorted(range(len(members)), key=lambda place: members[place].rank)
    ordered = [members[place] for place in order]
    plain = _matched(ordered, [0] * len(ordered))
    nth = [_later(ordered[0], member, _by_key([ordered[0], member])) for member in ordered[1:]]
    others = [_matched(ordered, _clocks(ordered, later)) for later in (_later_in(ordered, plain), nth)]
    chosen = max([plain, *others], key=lambda places: places.shape[1])
    clocks = _clocks(ordered, _later_in(ordered, chosen))
    back = np.argsort(order)
    offsets = [clock if abs(clock) > CLOCK_NS else 0 for clock in clocks]
    return Pairs(chosen[back], tuple(offsets[place] for place in back.tolist()))


def pair_in_order(members: Sequence[RankCalls]) -> Pairs:
    """Return the n-th sends and receives of two members with one key, as many on both sides; whether they overlap says
    nothing: a send may be over before its receive begins.
    """
    found = [np.zeros((len(members), 0), dtype=np.int64)]
    for rows in _by_key(members):
        if len({len(own) for own in rows}) == 1:
            found.append(np.stack(rows))
    return Pairs(np.concatenate(found, axis=1), (0,) * len(members))


def _later_in(ordered: Sequence[RankCalls], places: I64) -> list[I64]:
    """Return how much later than the first each of the other members left the calls at `places`."""
    return [_later(ordered[0], member, [[places[0], own]]) for member, own in zip(ordered[1:], places[1:], strict=True)]


def _later(first: RankCalls, member: RankCalls, matched: Iterable[list[I64]]) -> I64:
    """Return how much later than `first` the member left the n-th of these calls."""
    differences = [member.end_ns[theirs[: len(own)]] - first.end_ns[own[: len(theirs)]] for own, theirs in matched]
    return np.concatenate([np.zeros(0, dtype=np.int64), *differences])


def _clocks(ordered: Sequence[RankCalls], later: Sequence[I64]) -> list[int]:
    """Return how far the clock of each member is ahead of that of the first; 0 where that is not known, or cannot be:
    the devices of one host do not differ by more than CLOCK_NS.
    """
    clocks = [0]
    for member, own in zip(ordered[1:], later, strict=True):
        # the mean of two dates loses ns as a double, their distance from another one does not
        clock = int(own[0]) + round(float(median(own - own[0]))) if len(own) else 0
        is_same = bool(member.host) and member.host == ordered[0].host
        clocks.append(0 if is_same and abs(clock) > CLOCK_NS else clock)
    return clocks


def _matched(ordered: Sequence[RankCalls], clocks: Sequence[int]) -> I64:
    """Return the places of the calls that pass, with the clocks put right."""
    starts = [member.start_ns - clock for member, clock in zip(ordered, clocks, strict=True)]
    ends = [member.end_ns - clock for member, clock in zip(ordered, clocks, strict=True)]
    found = [np.zeros((len(ordered), 0), dtype=np.int64)]
    for rows in _by_key(ordered):
        by_order = _by_order(rows, starts, ends)
        by_number = _by_number(rows, ordered, starts, ends)
        found.append(by_number if by_number.shape[1] >= by_order.shape[1] else by_order)
    return np.concatenate(found, axis=1)


def _by_key(members: Sequence[RankCalls]) -> Iterator[list[I64]]:
    """Yield for each key that all members have the rows of each, in order of time."""
    common = each_once(members[0].key)
    for member in members[1:]:
        common = common[np.isin(common, member.key)]
    if not len(common):
        return
    bounds, orders = [], []
    for member in members:
        order = np.lexsort((member.end_ns, member.start_ns, member.key))
        orders.append(order)
        sides = [np.searchsorted(member.key[order], common, side=side) for side in ("left", "right")]
        bounds.append(list(zip(*(own.tolist() for own in sides), strict=True)))
    for at in range(len(common)):
        yield [order[slice(*own[at])] for order, own in zip(orders, bounds, strict=True)]


def _by_number(rows: Sequence[I64], members: Sequence[RankCalls], starts: Sequence[I64], ends: Sequence[I64]) -> I64:
    """Return the calls to which the source gives one number on all members, as far as they pass."""
    numbers = [member.source_index[own] for member, own in zip(members, rows, strict=True)]
    if any((own == MISSING).any() or len(each_once(own)) < len(own) for own in numbers):
        return np.zeros((len(rows), 0), dtype=np.int64)
    common = each_once(numbers[0])
    for own in numbers[1:]:
        common = common[np.isin(common, own)]
    places = []
    for own, mine in zip(numbers, rows, strict=True):
        order = np.argsort(own)
        places.append(mine[order[np.searchsorted(own[order], common)]])
    found = np.stack(places)
    return found[:, _passes(found, starts, ends)]


def _by_order(rows: Sequence[I64], starts: Sequence[I64], ends: Sequence[I64]) -> I64:
    if len({len(own) for own in rows}) == 1:
        whole = np.stack(rows)
        if _passes(whole, starts, ends).all():
            return whole
    begun = [column[own].tolist() for column, own in zip(starts, rows, strict=True)]
    ended = [column[own].tolist() for column, own in zip(ends, rows, strict=True)]
    picked = np.array(list(_swept(begun, ended)), dtype=np.int64).reshape(-1, len(rows))
    return np.stack([own[picked[:, place]] for place, own in enumerate(rows)])


def _passes(places: I64, starts: Sequence[I64], ends: Sequence[I64]) -> NDArray[np.bool_]:
    """Return whether there is a moment at which all members are inside the call."""
    latest = np.max([column[own] for column, own in zip(starts, places, strict=True)], axis=0)
    earliest = np.min([column[own] for column, own in zip(ends, places, strict=True)], axis=0)
    found: NDArray[np.bool_] = latest < earliest
    return found


def _swept(starts: Sequence[Sequence[int]], ends: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Yield the places of the calls that pass, from the first to the last."""
    places = [0] * len(starts)
    while all(place < len(own) for place, own in zip(places, starts, strict=True)):
        latest = max(own[place] for place, own in zip(places, starts, strict=True))
        # whoever left before the last one came was in a call that somebody has no event of
        left = [own[place] <= latest for place, own in zip(places, ends, strict=True)]
        if not any(left):
            yield tuple(places)
            left = [True] * len(left)
        places = [place + gone for place, gone in zip(places, left, strict=True)]
