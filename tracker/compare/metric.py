"""A row of the overall table, and what is summed up for it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Metric(Struct, frozen=True):
    """A row of the overall table; `name` is a column of the step rows, or a key of a mapping of `Sum`."""

    name: str
    title: str
    level: int = 0
    unit: str = "ns"
    in_step: bool = False


class Sum(Struct, frozen=True):
    """Time and number of what a row counts, per step; None: not known, or of no meaning."""

    ns: float | None
    calls: float | None = None


Sums = Mapping[str, Sum]
