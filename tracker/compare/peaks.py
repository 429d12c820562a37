"""Peaks of memory for the overall table: of the framework's allocator, and beside it of what else was sampled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.compare import knowing
from tracker.compare.metric import Metric
from tracker.store import queries
from tracker.store.samples.statistics import over_runs

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded

_TITLES: Final = {"peak_allocated_bytes": "Peak memory allocated", "peak_reserved_bytes": "Peak memory reserved"}
_FRAMEWORKS: Final = ("PTA", "MindSpore")
_WORDS: Final = {"APP": "APP: the whole process", "GE": "GE: the graph engine"}


def component_peaks(side: Loaded) -> dict[str, float]:
    """`peak_allocated_bytes:<component>` and `peak_reserved_bytes:<component>` of a capture that names the components
    of an NPU's memory: the largest of a run.

    Nothing of chosen steps: the components were sampled over time.
    """
    if side.chosen_steps is not None or not side.has_rows(queries.memory_peaks):
        return {}
    table = knowing.of_captures(side.about(queries.memory_peaks), side.captures)
    if not {*_FRAMEWORKS} & {*table.listed("component")}:
        return {}
    found: dict[str, float] = {}
    for name in _TITLES:
        largest: dict[tuple[str, int], float] = {}
        for run_id, component, value in table.rows("run_id", "component", name.removeprefix("peak_")):
            if value is not None:
                largest[component, run_id] = max(largest.get((component, run_id), 0.0), float(value))
        for component in sorted({component for component, _ in largest}):
            of_runs = [value for (own, _), value in largest.items() if own == component]
            found[f"{name}:{component}"] = float(over_runs(np.array([of_runs]))[0])
    return found


def peak_metrics(found: Iterable[str]) -> list[Metric]:
    """The rows of the peaks, given the keys `found` of `component_peaks` of all sides.

    The peak of a rank is that of its framework's allocator, which the title names where components are told apart.
    """
    keys = set(found)
    rows = []
    for name, title in _TITLES.items():
        components = sorted(key.partition(":")[2] for key in keys if key.startswith(f"{name}:"))
        framework = " or ".join(word for word in _FRAMEWORKS if word in components)
        whose = f" ({framework} alone)" if framework else ""
        rows.append(Metric(name, f"{title}{whose}", unit="bytes"))
        for component in components:
            if component not in _FRAMEWORKS:
                rows.append(Metric(f"{name}:{component}", _WORDS.get(component, component), 1, unit="bytes"))
    return rows
