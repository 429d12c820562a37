"""Pairs of calls once more, slow and obvious: every way of choosing one call of each member, in order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

Call = tuple[int, int]
"""Start and end."""


def most_pairs(members: Sequence[Sequence[Call]]) -> int:
    """How many calls of one key can be paired at most, each with a moment at which all are inside, in order of time."""

    @cache
    def most(*places: int) -> int:
        if any(place == len(calls) for place, calls in zip(places, members, strict=True)):
            return 0
        here = [calls[place] for place, calls in zip(places, members, strict=True)]
        best = max(most(*places[:one], places[one] + 1, *places[one + 1 :]) for one in range(len(places)))
        if is_one_call(here):
            best = max(best, 1 + most(*(place + 1 for place in places)))
        return best

    return most(*(0 for _ in members))


def is_one_call(calls: Sequence[Call]) -> bool:
    """Whether some ns lies inside all of them."""
    return bool(set.intersection(*(set(range(*call)) for call in calls)))
