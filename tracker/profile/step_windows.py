"""Windows of a run: captures of some of its steps, in folders that dynamic profiling of MindSpore names after them.

DynamicProfilerMonitor writes steps 2 to 5 of rank 0 into `rank0_start2_stop5`, and steps 8 to 10, where its settings
change during the run, into `rank0_start8_stop10` beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

_NAME: Final = re.compile(r"rank(?P<rank>\d{1,6})_start(?P<first>\d{1,9})_stop(?P<last>\d{1,9})")
_DEPTH: Final = 4
"""A file of a capture lies in ASCEND_PROFILER_OUTPUT of a folder of its process in that of the window."""


class Window(Struct, frozen=True):
    """The steps that a capture holds, by the name of its folder. `place`: the folder around that one; `first`, `last`:
    numbers of the run, whose first step is 1; `last` is below `first` in a name that no profiler writes.
    """

    place: str
    rank: int
    first: int
    last: int

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"rank{self.rank}_start{self.first}_stop{self.last}"

    @property
    def steps(self) -> int:
        """How many steps it is to hold."""
        return self.last - self.first + 1


@lru_cache(maxsize=1 << 15)
def window_in_path(path: str) -> Window | None:
    """Return the window that the folder of a capture, or of one of its files, is named after; None for other names.

    >>> window = window_in_path("job/rank0_start2_stop5/node_7_20260601_ascend_ms/ASCEND_PROFILER_OUTPUT")
    >>> window.place, window.rank, window.first, window.last
    ('job', 0, 2, 5)
    >>> window_in_path("job/rank0") is None
    True
    """
    whole = Path(path)
    for folder in (whole, *whole.parents)[:_DEPTH]:
        match = _NAME.fullmatch(folder.name)
        if match:
            return Window(str(folder.parent), int(match["rank"]), int(match["first"]), int(match["last"]))
    return None


def are_windows_of_one_run(one: str, other: str) -> bool:
    """Return whether two captures lie in windows of one rank, beside each other."""
    first, second = window_in_path(one), window_in_path(other)
    if first is None or second is None or first == second:
        return False
    return (first.place, first.rank) == (second.place, second.rank)


def describe_windows(windows: Iterable[Window]) -> str:
    """Return which steps of a run its windows hold, and which steps between them none of them holds.

    >>> describe_windows([Window("job", 0, 8, 10), Window("job", 0, 2, 5)])
    'steps 2-5 and 8-10; steps 6-7 between them were not recorded'
    >>> describe_windows([Window("job", 0, 2, 5), Window("job", 0, 6, 6)])
    'steps 2-5 and 6'
    """
    ordered = sorted(windows, key=lambda window: (window.first, window.last))
    held = list(dict.fromkeys(_span(window.first, window.last) for window in ordered))
    gaps = []
    reached = ordered[0].last
    for window in ordered[1:]:
        if window.first > reached + 1:
            gaps.append((reached + 1, window.first - 1))
        reached = max(reached, window.last)
    words = f"steps {', '.join(held[:-1])} and {held[-1]}" if len(held) > 1 else f"steps {held[0]}"
    if not gaps:
        return words
    if len(gaps) == 1 and gaps[0][0] == gaps[0][1]:
        return f"{words}; step {gaps[0][0]} between them was not recorded"
    unrecorded = ", ".join(_span(first, last) for first, last in gaps)
    return f"{words}; steps {unrecorded} between them were not recorded"


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
