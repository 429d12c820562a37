"""Timers: lines beside the step lines that say how long the parts of a step took.

Megatron-LM prints them behind the step line, in ms of a step, of the quickest and of the slowest rank or of one rank:

    (min, max) time across ranks (ms):
        forward-backward ...............................: (26094.39, 26095.09)
        optimizer ......................................: (3407.56, 3409.92)

    time (ms) | forward-compute: 879.94 | backward-compute: 1373.40 | optimizer: 19.12 | batch-generator: 8.39

DeepSpeed prints the second kind for each micro batch (`wall_clock_breakdown`).
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.readers.training_log.text_lines import line_around, without_colours

_ONE_LINE: Final = b"time (ms) | "
_ACROSS_RANKS: Final = b"time across ranks (ms):"
_IN_LINE: Final = re.compile(rb"[|(,] *([A-Za-z][\w/.-]*(?: [A-Za-z][\w.-]*)?): (\d+(?:\.\d+)?)")
_IN_TABLE: Final = re.compile(rb"([A-Za-z][\w/-]*) \.{2,}: \(?(\d+(?:\.\d+)?)(?:, *(\d+(?:\.\d+)?))?")
_TABLE_BYTES: Final = 8192
"""A table has some dozens of lines of less than 100 bytes."""
_NO_PARTS: Final = re.compile(rb"save-|load-|evaluate|-setup$|init_")
"""Timers of what is done between the steps."""
_WAITING_FOR_DATA: Final = (b"batch-generator", b"batch generator")
_MOST_NAMES: Final = 64
_MOST_VALUES: Final = 100_000
"""Of a timer so many values are kept, the first ones; they are reported as a mean."""


class Timer(Struct, frozen=True):
    """What one timer said: `positions` of its lines in the file, `values` in ms, of the slowest rank."""

    name: str
    waits_for_data: bool
    positions: NDArray[np.int64]
    values: NDArray[np.float32]


class TimerCollector:
    """A collector of the timers of a log, piece by piece."""

    def __init__(self) -> None:
        self._positions: dict[bytes, list[int]] = {}
        self._values: dict[bytes, list[float]] = {}

    def take(self, content: bytes, offset: int) -> None:
        """Look for timers in a piece of text that begins at a byte of the file."""
        for mark in (_ONE_LINE, _ACROSS_RANKS):
            at = content.find(mark)
            while at >= 0:
                end = (
                    self._take_line(content, at, offset) if mark is _ONE_LINE else self._take_table(content, at, offset)
                )
                at = content.find(mark, max(end, at + 1))

    def finish(self) -> tuple[Timer, ...]:
        """Return the timers in the order in which they first came."""
        return tuple(
            Timer(
                name.decode(),
                name in _WAITING_FOR_DATA,
                np.array(positions, dtype=np.int64),
                np.array(self._values[name], dtype=np.float32),
            )
            for name, positions in self._positions.items()
        )

    def _take_line(self, content: bytes, at: int, offset: int) -> int:
        _, end = line_around(content, at)
        for match in _IN_LINE.finditer(without_colours(content[at:end])):
            self._keep(match[1], float(match[2]), offset + at)
        return end

    def _take_table(self, content: bytes, at: int, offset: int) -> int:
        """Take the lines below the head of a table, up to the first one that is not a row of it."""
        begin = at + len(_ACROSS_RANKS)
        end = begin
        for line in content[begin : begin + _TABLE_BYTES].splitlines(keepends=True):
            match = _IN_TABLE.search(without_colours(line))
            if match is None and (line.strip() or end > begin + 2):
                break
            end += len(line)
            if match is not None:
                self._keep(match[1], float(match[3] or match[2]), offset + at)
        return end

    def _keep(self, name: bytes, value: float, position: int) -> None:
        if _NO_PARTS.search(name):
            return
        if name not in self._positions:
            if len(self._positions) >= _MOST_NAMES:
                return
            self._positions[name], self._values[name] = [], []
        if len(self._values[name]) < _MOST_VALUES:
            self._positions[name].append(position)
            self._values[name].append(value)


def place_timer(
    timer: Timer, positions: NDArray[np.int64], steps: NDArray[np.float64], lines: NDArray[np.integer[Any]]
) -> NDArray[np.int64]:
    """Return which interval each value of a timer belongs to, -1 for none: that of the step line in front of it.

    `positions`, `steps`: of all step lines. `lines`: which of them are the intervals. A line that states its step again
    is not among these, but its timers are of the same step.
    """
    line = np.searchsorted(positions, timer.positions, side="right") - 1
    interval = np.searchsorted(lines, line, side="right") - 1
    is_placed = (line >= 0) & (interval >= 0)
    is_placed &= steps[np.maximum(line, 0)] == steps[lines[np.maximum(interval, 0)]]
    return np.where(is_placed, interval, -1)
