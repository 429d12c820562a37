"""Steps of ranks that count them otherwise: which step of one rank is which of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

Numbers = dict[int, dict[int, int]]
"""Rank -> its number of a step -> the number that the other ranks give it."""


class TimedStep(Struct, frozen=True):
    """A step of a rank. start_ns, end_ns: on a clock that all ranks share; None where there is none."""

    step: int
    start_ns: int | None = None
    end_ns: int | None = None


def match_by_order(ranks: Mapping[int, Sequence[TimedStep]]) -> Numbers:
    """Return the ranks that count their steps otherwise than the lowest one, and what that one calls each step.

    They have as many steps, and the steps in their order ran at the same time rather than those of equal numbers. Where
    clocks do not say it, they do where not one number is the same. A rank that recorded other steps of the job keeps
    its numbers.
    """
    if len(ranks) < 2:
        return {}
    first = ranks[min(ranks)]
    found: Numbers = {}
    for rank, steps in sorted(ranks.items()):
        numbers, of_first = [one.step for one in steps], [one.step for one in first]
        if numbers == of_first or len(numbers) != len(of_first) or not numbers:
            continue
        by_number = {one.step: one for one in first}
        same = [(one, by_number[one.step]) for one in steps if one.step in by_number]
        in_order = list(zip(steps, first, strict=True))
        common_by_order_ns = sum(_common_ns(one, other) for one, other in in_order)
        common_by_number_ns = sum(_common_ns(one, other) for one, other in same)
        if common_by_order_ns > common_by_number_ns or (not same and common_by_order_ns == 0):
            found[rank] = dict(zip(numbers, of_first, strict=True))
    return found


def _common_ns(one: TimedStep, other: TimedStep) -> int:
    """Return how long two steps ran at the same time; 0 where a clock is missing."""
    if one.start_ns is None or one.end_ns is None or other.start_ns is None or other.end_ns is None:
        return 0
    return max(0, min(one.end_ns, other.end_ns) - max(one.start_ns, other.start_ns))
