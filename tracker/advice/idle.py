"""Why the devices of the studied ranks do nothing in a usual step, by cause and place.

Of a cause that every step has the places add up to its median, as `show` prints it, so that one step that is slow for
itself makes no advice. Of one that comes now and then, as garbage collection does, they add up to its mean, of three
steps or more without the first: there code is loaded and memory is allocated in any program.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.advice.medians import RankSteps, median_over_steps
from tracker.profile import IdleCause

if TYPE_CHECKING:
    from tracker.columns import F64, Columns

NOW_AND_THEN: Final = frozenset(
    cause.word for cause in (IdleCause.GARBAGE_COLLECTION, IdleCause.COMPILE, IdleCause.ALLOCATION, IdleCause.PROFILER)
)
"""Causes of idle time that a usual step may not have at all."""
_WITH_WARM_UP: Final = 3
"""So many steps show which of them is the first alone."""


class _Cause(Struct, frozen=True):
    """The idle time of a cause on a rank. `places`: ns of a usual step; `behind_share`: which part of it stands behind
    a wait for the device; `behind_of_places`: how much of each place, in ns of all steps; `steps`: in how many of
    `of_steps` it comes.
    """

    places: Mapping[str, float]
    behind_share: float
    behind_of_places: Mapping[str, float]
    steps: int
    of_steps: int


class StepIdle:
    """The idle time of the studied ranks. `rows`: at rank and step, as `queries.idle` has them."""

    def __init__(self, rows: Columns, steps: Mapping[int, RankSteps]) -> None:
        self._rows, self._steps = rows, steps

    @cached_property
    def _causes(self) -> dict[tuple[int, str], _Cause]:
        if not len(self._rows):
            return {}
        found: dict[tuple[int, str], list[tuple[int, str, int, int]]] = {}
        columns = ("rank", "cause", "step", "place", "ns", "behind_wait_ns")
        for rank, cause, step, place, ns, behind_ns in self._rows.rows(*columns):
            found.setdefault((rank, cause), []).append((step, place, ns, behind_ns or 0))
        return {key: _reduce_cause(key[1], own, self._steps[key[0]]) for key, own in found.items()}

    @cached_property
    def says_why(self) -> bool:
        """Whether the source says of any idle time why."""
        return any(cause != IdleCause.UNKNOWN.word for _, cause in self._causes)

    @property
    def places(self) -> frozenset[str]:
        """All places of idle time."""
        return frozenset(place for own in self._causes.values() for place in own.behind_of_places)

    def of_causes(self, rank: int, *causes: IdleCause) -> dict[str, float]:
        """Return the idle time of a rank per step by place, of these causes, the largest first; '' for no place."""
        found: dict[str, float] = {}
        for cause in causes:
            own = self._causes.get((rank, cause.word))
            for place, ns in own.places.items() if own else ():
                found[place] = found.get(place, 0.0) + ns
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))

    def come_in(self, rank: int, *causes: IdleCause) -> tuple[int, int] | None:
        """Return in how many steps of how many these causes come, where they come now and then and not in all of them;
        None else.
        """
        own = [self._causes[rank, cause.word] for cause in causes if (rank, cause.word) in self._causes]
        if not own or any(cause.word not in NOW_AND_THEN for cause in causes):
            return None
        steps, of_steps = max(one.steps for one in own), max(one.of_steps for one in own)
        return (steps, of_steps) if steps < of_steps else None

    def behind_waits(self, rank: int, *causes: IdleCause) -> float:
        """Return the part of the idle time of a rank per step, of these causes, in which the host does what it would
        have done while it waited for the device; 0 where that is not known.
        """
        found = 0.0
        for cause in causes:
            own = self._causes.get((rank, cause.word))
            if own is not None:
                found += own.behind_share * sum(own.places.values())
        return found

    def only_wait(self, rank: int) -> str:
        """Return the one wait behind which all of that stands on a rank; '' where there are several, or one without a
        row of its own.
        """
        waits: dict[str, float] = {}
        behind_ns = 0.0
        for (of_rank, cause), own in self._causes.items():
            if of_rank == rank and cause == IdleCause.SYNCHRONISATION.word:
                waits = dict(own.behind_of_places)
            elif of_rank == rank:
                behind_ns += sum(own.behind_of_places.values())
        named = [wait for wait, ns in waits.items() if ns and ns == behind_ns]
        return named[0] if named else ""


def _reduce_cause(cause: str, rows: list[tuple[int, str, int, int]], own: RankSteps) -> _Cause:
    """Return the idle time of a cause on a rank in a usual step. rows: step, place, ns and ns behind a wait."""
    numbers, weights = own.numbers, own.weights
    all_ns = sum(ns for _, _, ns, _ in rows)
    behind: dict[str, float] = {}
    for _, place, _, behind_ns in rows:
        behind[place] = behind.get(place, 0.0) + behind_ns
    steps = len({step for step, _, ns, _ in rows if ns})
    is_rare = cause in NOW_AND_THEN
    if is_rare and len(numbers) == own.count >= _WITH_WARM_UP:
        rows = [row for row in rows if row[0] != numbers[0]]
        steps, numbers, weights = len({step for step, _, ns, _ in rows if ns}), numbers[1:], weights[1:]
    places: dict[str, float] = {}
    of_steps = dict.fromkeys(numbers.tolist(), 0.0)
    for step, place, ns, _ in rows:
        of_steps[step] += ns
        places[place] = places.get(place, 0.0) + ns
    whole_ns = sum(of_steps.values())
    usual_ns = whole_ns / float(weights.sum()) if is_rare else _median(np.array([*of_steps.values()]), weights)
    return _Cause(
        places={place: ns * usual_ns / whole_ns for place, ns in places.items()} if usual_ns else {},
        behind_share=sum(behind.values()) / all_ns if all_ns else 0.0,
        behind_of_places=behind,
        steps=steps,
        of_steps=len(numbers),
    )


def _median(of_steps: F64, weights: F64) -> float:
    return float(median_over_steps((of_steps / weights)[None, :], weights)[0])
