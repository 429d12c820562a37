"""What of a trace is cut out: light, as every reader is found with it, and few traces are cut."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Span(Struct, frozen=True):
    """What is cut out of a trace: `start_ns` to `end_ns` on its clock (by default all), and what starts at one of
    `also_ns`, which belongs to it as well. `step`: of the markers of steps only this one's, None: all. `slack_ns`: how
    much later than it says an event may have begun.
    """

    start_ns: int = -(1 << 62)
    end_ns: int = 1 << 62
    also_ns: Sequence[int] = ()
    step: int | None = None
    slack_ns: int = 0
