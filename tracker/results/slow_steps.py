"""Steps that took much longer than the median of their rank, and what the mean over all steps is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.units import format_ns, time_unit

__all__ = ["MeanCause", "MeanChange", "SlowStep"]

MOST_SLOW_STEPS: Final = 3
"""Slow steps that a first screen lists."""


class SlowStep(Struct, frozen=True):
    """A step that took more than 1.2 times the median of its rank, ns.

    `steps`: of how many steps the row is the mean; `longer_ns`: than the median; `cause`: what makes at least half of
    that, "" where nothing does; `cause_ns`: by how much that is longer than its own median. `slow_ranks`: for how many
    ranks of its run the step was slow; of several the one is shown that does not wait for others. `is_of_ranks`,
    `is_of_runs`: whether there are several of which it is one. `has_parts`: whether the source says what steps are made
    of.
    """

    run_id: int
    rank: int
    step: int
    ns: float
    longer_ns: float
    cause: str = ""
    cause_ns: float = 0.0
    steps: int = 1
    slow_ranks: int = 1
    is_of_ranks: bool = False
    is_of_runs: bool = False
    has_parts: bool = True

    @property
    def name(self) -> str:
        """Which step it is: its number, and the rank and the run where there are several."""
        words = f"step {self.step}" if self.steps == 1 else f"step {self.step} (mean of {self.steps:,} steps)"
        where = [f"rank {self.rank}"] if self.is_of_ranks else []
        where += [f"run:{self.run_id}"] if self.is_of_runs else []
        return f"{words} of {', '.join(where)}" if where else words

    @property
    def time(self) -> str:
        """How long it took."""
        return format_ns(self.ns, time_unit(self.ns))

    @property
    def reason(self) -> str:
        """By how much it is longer, and by what.

        >>> SlowStep(1, 0, 6, 210.06e6, 199.94e6, "data loading", 199.94e6).reason
        '+199.94 ms data loading'
        >>> SlowStep(1, 0, 6, 210.06e6, 199.94e6).reason
        '+199.94 ms, no part explains half of it'
        """
        unit = time_unit(self.ns)
        if self.cause:
            text = f"+{format_ns(self.cause_ns, unit)} {self.cause}"
        elif self.has_parts:
            text = f"+{format_ns(self.longer_ns, unit)}, no part explains half of it"
        else:
            text = f"+{format_ns(self.longer_ns, unit)}, not split by the source"
        return f"{text} ({self.slow_ranks} ranks were slow in it)" if self.slow_ranks > 1 else text


class MeanCause(Struct, frozen=True):
    """What a part of the step adds to the change of the mean step, ns; the rest is what is small, and what medians over
    ranks leave.
    """

    name: str
    delta_ns: float


class MeanChange(Struct, frozen=True):
    """The mean step on both sides, ns, and its causes, the largest first: their `delta_ns` sum to its own exactly."""

    baseline_ns: float
    candidate_ns: float
    delta_ns: float
    causes: tuple[MeanCause, ...]


def describe_slowest(slow_steps: Sequence[SlowStep], runs: int, side: str = "") -> str:
    """Return what the slowest step took, and how many more there are. Where it is the same step of each of the `runs`,
    that of the median run stands for them. `side`: the name of theirs, where it is not the one that is spoken of.

    >>> describe_slowest([SlowStep(1, 0, 6, 210.06e6, 199.94e6, "data loading", 199.94e6)], 1)
    'step 6 took 210.06 ms, +199.94 ms data loading'
    """
    first, others = slow_steps[0], len(slow_steps) - 1
    if {one.step for one in slow_steps} == {first.step} and len(slow_steps) == runs:
        first, others = replace(slow_steps[runs // 2], is_of_runs=False), 0
    of_side = f" of {side}" if side else ""
    more = f", and {others:,} more {'step was' if others == 1 else 'steps were'} slow" if others else ""
    return f"{first.name}{of_side} took {first.time}, {first.reason}{more}"
