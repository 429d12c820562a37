"""Why a device does nothing: the causes of idle time, in the order in which they are looked for."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class IdleCause(IntEnum):
    """One cause for each ns of idle time; of the host's part of a gap the first that applies."""

    DATA_LOADING = 0
    GARBAGE_COLLECTION = 1
    COMPILE = 2
    ALLOCATION = 3
    PROFILER = 4
    SYNCHRONISATION = 5
    OPERATOR = 6
    NO_OPERATOR = 7
    LAUNCH_LATENCY = 8
    BETWEEN_KERNELS = 9
    DEPENDENCY = 10
    UNKNOWN = 11

    @property
    def word(self) -> str:
        """How rows, screens and series name it.

        >>> IdleCause.NO_OPERATOR.word
        'host: no operator'
        """
        return IDLE_CAUSES[self]

    @property
    def is_of_host(self) -> bool:
        """Whether nothing launched waits: the host is late."""
        return self <= IdleCause.NO_OPERATOR


IDLE_CAUSES: Final = (
    "data loading", "garbage collection", "compile", "allocation", "profiler", "synchronisation",
    "host: operator", "host: no operator", "launch latency", "between kernels", "dependency", "unknown",
)  # fmt: skip
"""The word of each IdleCause."""

IDLE_REASONS: Final = (
    "the training loop waits for its data",
    "Python collects garbage",
    "code of the device is compiled or loaded",
    "the host takes memory from the driver or gives it back",
    "the profiler itself keeps the host busy, as when it writes down what it recorded",
    "the host is in a call that waits for the device, or has just been",
    "the host runs an operator or a call of the runtime, and has launched nothing",
    "the capture shows no operator on the host",
    "the device starts what was launched",
    "the device goes from one launched event to the next",
    "launched work waits for another stream, an event or another rank, or is slow to start",
    "the capture does not say what was launched when",
)
"""What each cause says of the gap."""


def label_idle(cause: str, place: str) -> str:
    """Return the name of a row of idle time, by the word of its cause and its place, "" for none.

    >>> label_idle("synchronisation", "aten::item"), label_idle("host: no operator", "")
    ('synchronisation: aten::item', 'host: no operator: -')
    """
    return f"{cause}: {place or '-'}"
