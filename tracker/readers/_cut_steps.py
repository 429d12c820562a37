"""Steps of a trace that ends in the middle of its events, and that are therefore none."""

from __future__ import annotations

from collections.abc import Iterable

from tracker.units import ranges


def left_out(steps: Iterable[int]) -> str:
    """What stands of them behind the reason for which a capture is partial; empty for none.

    >>> left_out([3, 1, 2])
    '; left out, as not wholly in the file: steps 1-3'
    """
    numbers = sorted(set(steps))
    return f"; left out, as not wholly in the file: step{'s' * (len(numbers) > 1)} {ranges(numbers)}" if numbers else ""
