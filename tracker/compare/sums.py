"""What the overall table shows beyond the breakdown of each step: rows, and sums of kernels and collectives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from tracker.compare import means
from tracker.lazy import pd

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


def medians(side: Loaded, numbers: pd.DataFrame, key: str) -> Iterator[tuple[str, pd.Series]]:
    """Each `key` with its numbers, the median over the runs of the side; a run without it counts as 0."""
    for name, row in means.median_over_runs(side, numbers, [key]).iterrows():
        yield str(name), row


def known(value: float) -> float | None:
    """`value`, or None where it is missing."""
    return None if pd.isna(value) else float(value)
