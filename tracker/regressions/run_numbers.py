"""The numbers of several runs as a whole: their step, and the parts that it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.results.leading_cause import DATA_LOADING, IDLE_TIME
from tracker.schema.series import OF_WHOLE_CAPTURE, STEP_SERIES, STEP_WAYS, UNPROFILED
from tracker.store import Store, queries
from tracker.store.samples.statistics import over_runs

PARTS: Final = (IDLE_TIME, "exposed communication", "exposed copy")
"""Series of whole runs that make a step with what it computes."""
_ALL_OF_STEP: Final = 0.99
"""Part of a step from which on what it computes leaves nothing to the other parts."""


class RunNumber(Struct, frozen=True):
    """A number of a run as a whole. `name`: of its series; `way`: how it was measured, of STEP_WAYS."""

    name: str
    way: str
    value: float | None


class RunNumbers:
    """The numbers of runs as a whole, which are read once for all of them."""

    def __init__(self, store: Store, run_ids: Iterable[int]) -> None:
        self._of_run: dict[int, list[tuple[str, RunNumber]]] = {}
        columns = ("run_id", "name", "part", "step_kind", "per_step")
        for run_id, name, way, kind, value in queries.run_level(store, sorted({*run_ids})).rows(*columns):
            self._of_run.setdefault(run_id, []).append((kind, RunNumber(name, way, value)))

    def of(self, run_ids: Iterable[int], step_kind: str) -> list[RunNumber]:
        """Return the numbers of some of them, of their steps of one kind."""
        numbers = []
        for run_id in run_ids:
            for kind, one in self._of_run.get(run_id, ()):
                if kind == step_kind or (not kind and one.name in OF_WHOLE_CAPTURE):
                    numbers.append(one)
        return numbers


def number_of(numbers: Sequence[RunNumber], names: Iterable[str], ways: Sequence[str] = STEP_WAYS) -> float | None:
    """Return the number of several runs: of the first of `names` that they have, by the first of `ways` that is there;
    None where none is above 0.
    """
    for name in names:
        own = [one for one in numbers if one.name == name]
        there = {one.way for one in own}
        way = next((way for way in ways if way in there), None)
        known = [one.value for one in own if one.way == way and one.value and one.value > 0]
        if known:
            return float(over_runs(np.array([known]))[0])
    return None


def find_shared_way(before: Sequence[RunNumber], after: Sequence[RunNumber]) -> str | None:
    """Return the best of STEP_WAYS in which the step of both sides was measured; None where there is none."""
    ways_of_sides = [{one.way for one in side if one.name in STEP_SERIES} for side in (before, after)]
    return next((way for way in STEP_WAYS if all(way in ways for ways in ways_of_sides)), None)


def list_parts(numbers: Sequence[RunNumber], way: str) -> dict[str, float]:
    """Return what the step of several runs is made of, by the name of its series, measured in one way.

    A part that is not stated is 0 where what is computed is all of the step; else it is not known.
    """
    found = {}
    for name in dict.fromkeys(one.name for one in numbers if one.way == way):
        number = number_of(numbers, [name], [way])
        if number is not None:
            found[name] = number
    step_ns = next((found[name] for name in STEP_SERIES if name in found), None)
    if step_ns and found.get("compute", 0.0) >= _ALL_OF_STEP * step_ns:
        found = dict.fromkeys(PARTS, 0.0) | found
    if way == UNPROFILED and DATA_LOADING not in found:
        # a run that has a trace, too, takes it from the log of the timer, and states it beside its trace
        loading_ns = number_of(numbers, [DATA_LOADING])
        if loading_ns is not None:
            found[DATA_LOADING] = loading_ns
    return found
