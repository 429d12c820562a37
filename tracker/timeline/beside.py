"""Parts of the work on one capture that are done at once, on several threads.

Sorting and searching of NumPy hold no lock of Python's. What the parts share is only read.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Final, ParamSpec, TypeVar

from tracker.profile import Events

Answer = TypeVar("Answer")
Parameters = ParamSpec("Parameters")

MOST_THREADS: Final = 3
"""Threads of one capture: no more than three of its parts take long."""

_LEAST_EVENTS: Final = 50_000
"""Of smaller captures a part is done in less time than a thread takes to start, of which a trace has 512 captures."""

_MOST_EVENTS: Final = 2 << 20
"""Of larger captures the parts together hold too much memory at once."""


def is_worth_threads(events: int) -> bool:
    """Return whether work on so many events takes longer than to start a thread."""
    return events >= _LEAST_EVENTS


class Beside:
    """Begins parts of the work on a capture; they end with `stack`.

    `threads`: how many there may be. With one, or of a small or large capture, a part is done when its answer is asked
    for.
    """

    def __init__(self, events: Events, threads: int, stack: ExitStack) -> None:
        tables = (events.ops, events.frames, events.launches, events.device, events.allocations)
        self._pool: ThreadPoolExecutor | None = None
        count = sum(map(len, tables))
        if threads > 1 and is_worth_threads(count) and count <= _MOST_EVENTS:
            self._pool = stack.enter_context(ThreadPoolExecutor(min(threads, MOST_THREADS), "timeline"))

    def begin(
        self, part: Callable[Parameters, Answer], *arguments: Parameters.args, **named: Parameters.kwargs
    ) -> Callable[[], Answer]:
        """Begin a part, and return what waits for its answer; to be asked once."""
        if self._pool is None:
            return partial(part, *arguments, **named)
        return self._pool.submit(part, *arguments, **named).result
