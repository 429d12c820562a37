"""What the overall table shows beyond the breakdown of each step: rows, and sums of kernels and collectives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tracker.columns import Columns
from tracker.compare import means

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded


class Metric(Struct, frozen=True):
    """A row of the overall table; `name` is a column of the step rows, or a key of a mapping of `Sum`."""

    name: str
    title: str
    level: int = 0
    unit: str = "ns"
    in_e2e: bool = False


class Sum(Struct, frozen=True):
    """Time and number of what a row counts, per step and rank; None: not known, or of no meaning."""

    ns: float | None
    calls: float | None = None


Sums = Mapping[str, Sum]


def medians(side: Loaded, numbers: Columns, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each `key` with its numbers (see `means.per_run`), the median over the runs of the side, None for missing; a run
    without it counts as 0.
    """
    found = means.median_over_runs(side, numbers, [key])
    names = list(found.without(key).arrays)
    for name, *row in found.rows(key, *names):
        yield name, dict(zip(names, row, strict=True))
