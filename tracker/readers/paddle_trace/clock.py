"""When things happened, as exactly as a Paddle trace says it.

Each event says its time three times, and none is enough (paddle/fluid/platform/profiler, `nsToUsFloat`): `ts` is whole
us; `start_time` and `end_time` have decimals, but are single-precision floats, off by 4 ns after 0.1 s and by 0.3 us
after 5 s; `dur` is such a float as well, of the small duration itself, and so exact to the ns up to 16 ms. So starts
come from `start_time`, kept inside the us of `ts`, and ends from start + `dur`. What rounding then moves across the
border of its neighbour is put back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.profile import I64, MISSING
from tracker.readers._growing import Array
from tracker.units import NS_PER_US

_EXACT_NS: Final = 1 << 24
"""Below this every whole ns has a single-precision float of its own."""

_NEVER: Final = 1 << 62


class _Open(Struct):
    """A span of the walk that is not over: what the trace said of its end, its end, and where its next child starts."""

    told_end: int
    end_ns: int
    floor: int


def base_of(events: Mapping[str, Array]) -> int:
    """The time at which `start_time` is 0, in ns; 0 where no event says when it starts.

    `ts` is cut to whole us, so every event proves that the base is at least ts - start_time; the largest wins. Only
    starts that a float holds exactly count, where there are any.
    """
    told = events["told_start_ns"]
    known = told != MISSING
    if not known.any():
        return 0
    exact = known & (told < _EXACT_NS)
    chosen = exact if exact.any() else known
    return int((events["ts_ns"][chosen] - told[chosen]).max())


def starts_of(events: Mapping[str, Array], base_ns: int) -> I64:
    """The start of each event: the base + `start_time`, at most what `ts` leaves open away from it."""
    ts, told = events["ts_ns"], events["told_start_ns"]
    start: I64 = np.where(told == MISSING, ts, np.clip(base_ns + told, ts, ts + NS_PER_US - 1))
    return start


def settled(events: Mapping[str, Array], base_ns: int) -> tuple[I64, I64]:
    """Starts and ends of host events, nested and in the order in which the trace tells it.

    Rounding keeps order: a child that `start_time` and `end_time` put inside its parent is inside, one that they put
    behind its neighbour is behind. Where start + `dur` says otherwise by less than the rounding, the start moves, or
    where there is no room, the end.
    """
    start = starts_of(events, base_ns)
    duration = events["duration_ns"]
    told_start = np.where(events["told_start_ns"] == MISSING, start - base_ns, events["told_start_ns"])
    told_end = np.where(events["told_end_ns"] == MISSING, told_start + duration, events["told_end_ns"])
    order = np.lexsort((-duration, -told_end, told_start, events["thread"]))
    slack = np.spacing(np.abs(told_start).astype(np.float32)).astype(np.int64) * 2 + 2
    columns = (events["thread"], told_start, told_end, slack, start, duration)
    starts, ends = np.empty_like(start), np.empty_like(start)
    starts[order], ends[order] = _walk(*(column[order].tolist() for column in columns))
    return starts, ends


def _walk(*columns: list[int]) -> tuple[list[int], list[int]]:
    """New starts and ends of events ordered by thread, told start, longest first.

    `columns`: thread, told start, told end, largest rounding, start, duration.
    """
    moved_starts: list[int] = []
    moved_ends: list[int] = []
    stack: list[_Open] = []
    current = None
    for thread, told_start, told_end, slack, start, duration in zip(*columns, strict=True):
        if thread != current:
            current = thread
            stack = [_Open(_NEVER, _NEVER, -_NEVER)]
        while stack[-1].told_end <= told_start or stack[-1].told_end < told_end:
            stack.pop()
        placed = _placed(stack[-1], start, duration, slack)
        moved_starts.append(placed[0])
        moved_ends.append(placed[1])
        stack[-1].floor = placed[1]
        stack.append(_Open(told_end, placed[1], placed[0]))
    return moved_starts, moved_ends


def _placed(around: _Open, start: int, duration: int, slack: int) -> tuple[int, int]:
    """Start and end of an event inside `around` and behind what is in there already, moved by no more than `slack`."""
    if start < around.floor <= start + slack:
        start = around.floor
    end = start + duration
    if around.end_ns < end <= around.end_ns + slack:
        start = max(start - (end - around.end_ns), min(start, around.floor))
        end = max(start, around.end_ns)
    return start, end
