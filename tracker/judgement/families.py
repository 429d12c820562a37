"""What a series is to the judgement: its family, whether it is a leaf, which way is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracker.store.samples import SUMMARY, UNPROFILED

Family = tuple[str, str] | tuple[str, str, str] | tuple[str, str, str, int]
"""Kind and metric; of run-level series that were not measured under a profiler's trace, also how they were; where runs
of a line were recorded differently, also which recording (see `recorded`)."""

RUN: Final = "run"
WAYS: Final = ("", SUMMARY, UNPROFILED)
"""How the numbers of a whole run came about, the `part` of its series: in a trace, in a profiler's summary, without a
profiler. A profiler costs time, so that numbers of two ways are never compared. The first one that is there stands for
the step that operators are a part of.
"""

THE_STEP: Final = frozenset({"step", "e2e", "compute"})
"""Run-level series that are the step, or what it computes: an incident with one of them is one of the step itself."""

LEAVES: Final = ("op", "kernel")
"""Kinds whose series say what all of them share: the first that has any."""

UNCOUNTED: Final = frozenset({"module", "phase"})
"""Kinds whose calls say nothing beyond those of the ops in them."""

OWN_CLOCK: Final = frozenset({"api"})
"""Kinds that another clock times than the leaves, so that they share something else."""

BETTER_IF_MORE: Final = frozenset({"samples_per_second"})


def family_of(kind: str, metric: str, part: str, tag: int = 0, *, tagged: bool = False) -> Family:
    """The family of a series. `tag`: which recording, where it is `tagged`.

    >>> family_of("communication", "total_ns", "dp"), family_of("run", "duration_ns", "unprofiled")
    (('communication', 'total_ns'), ('run', 'duration_ns', 'unprofiled'))
    """
    way = part if kind == RUN else ""
    if tagged:
        return (kind, metric, way, tag)
    return (kind, metric, way) if way else (kind, metric)


def is_tagged(family: Family) -> bool:
    """Whether only some runs of a line, recorded alike, can say anything of the series of a family."""
    return len(family) > 3


def way_of(family: Family) -> str:
    """How a run-level series was measured, a word of WAYS."""
    return family[2] if len(family) > 2 else ""


def telling(values: NDArray[np.float64], rows: NDArray[np.int64], columns: Sequence[int]) -> list[int]:
    """Those of `columns` in which `values` (series, runs; nan for missing) say anything of `rows`."""
    return [column for column in columns if not np.isnan(values[rows, column]).all()]


def leaf_of(families: Sequence[Family]) -> Family | None:
    """The family of leaves: ops where there are any, else kernels; device time before host time."""
    found = leaves_of(families)
    return found[0] if found else None


def leaves_of(families: Sequence[Family]) -> list[Family]:
    """The family of leaves, of each recording that has its own; those that all runs share go before others."""
    known = {family for family in families if family[0] in LEAVES}
    if not known:
        return []

    def place(family: Family) -> tuple[bool, int, str]:
        return is_tagged(family), LEAVES.index(family[0]), family[1]

    first = min(map(place, known))
    return sorted((family for family in known if place(family) == first), key=lambda family: family[3:])


def ranked_leaves(families: Sequence[Family]) -> list[Family]:
    """All families of leaves, those first that `leaves_of` prefers."""
    found: list[Family] = []
    while more := leaves_of([family for family in families if family not in found]):
        found += more
    return found


def more_is_better(families: Sequence[Family]) -> NDArray[np.bool_]:
    """Which series are better when they are larger."""
    return np.array([metric in BETTER_IF_MORE for _, metric, *_ in families], dtype=bool)


def unit_of(metric: str) -> str:
    """The unit of a metric: ns, bytes or per_second.

    >>> unit_of("device_self_ns"), unit_of("peak_allocated_bytes"), unit_of("samples_per_second")
    ('ns', 'bytes', 'per_second')
    """
    return "per_second" if metric.endswith("_per_second") else "bytes" if metric.endswith("bytes") else "ns"
