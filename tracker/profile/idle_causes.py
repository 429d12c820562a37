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
    SYNCHRONISATION = 4
    OPERATOR = 5
    NO_OPERATOR = 6
    LAUNCH_LATENCY = 7
    BETWEEN_KERNELS = 8
    DEPENDENCY = 9
    UNKNOWN = 10

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
    "data loading", "garbage collection", "compile", "allocation", "synchronisation", "host: operator",
    "host: no operator", "launch latency", "between kernels", "dependency", "unknown",
)  # fmt: skip
"""The word of each IdleCause."""

IDLE_SERIES: Final = "idle: "
"""What the names of series of idle time by cause begin with."""

IDLE_REASONS: Final = (
    "the training loop waits for its data",
    "Python collects garbage",
    "code of the device is compiled or loaded",
    "the host takes memory from the driver or gives it back",
    "the host waited for the device, and has not begun the next operator",
    "the host runs an operator or a call of the runtime, and has launched nothing",
    "the host runs no operator",
    "the device starts what was launched",
    "the device goes from one launched event to the next",
    "launched work waits for another stream, an event or another rank",
    "the capture does not say what was launched when",
)
"""What each cause says of the gap."""
