"""What is kept of the runs of a line that are not read again: all that one more run can still be judged by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.judgement.families import Family

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
BOOL = NDArray[np.bool_]


def _none(dtype: type) -> Any:
    return field(default_factory=lambda: np.zeros(0, dtype=dtype))


class Older(Struct, frozen=True, eq=False):
    """The runs before the place `first`, from which on runs are read whole, as far as something still refers to them.

    `places`, `runs`: of these runs, in order. `step`: of each. `said`: by family, which of them say anything of it.
    `factors`: by family what those share, and after them the runs from `first` on that were followed already. A cell is
    a series and one of the runs: `rows`, `columns`: which, by row of the line and place in `places`; `raw`, `centred`,
    `calls`: what it says there, see `Watched`; what is no cell is not known. `came`, `counted`: per row, and
    `has_step`: see `Watched`.
    """

    first: int = 0
    places: I64 = _none(np.int64)
    runs: Sequence[Any] = ()
    step: F64 = _none(np.float64)
    said: Sequence[tuple[tuple[Any, ...], BOOL]] = ()
    factors: Sequence[tuple[tuple[Any, ...], F64]] = ()
    rows: I64 = _none(np.int64)
    columns: I64 = _none(np.int64)
    raw: F64 = _none(np.float64)
    centred: F64 = _none(np.float64)
    calls: F64 = _none(np.float64)
    came: I64 = _none(np.int64)
    counted: I64 = _none(np.int64)
    has_step: bool = False
    followed: int = 0
    """Runs, of `places` and from `first` on, that were followed already."""

    def factor_of(self, family: Family) -> F64:
        """What the series of a family share, of the runs that were followed already."""
        return next((own for known, own in self.factors if known == family), np.zeros(self.followed))

    def said_of(self, family: Family) -> BOOL:
        """Which of the runs say anything of a family."""
        return next((own for known, own in self.said if known == family), np.zeros(len(self.places), dtype=bool))

    def with_cells(self, values: F64, cells: F64) -> F64:
        """`values` (series, runs) of the runs that are read, behind those of the older ones."""
        if not len(self.places):
            return values
        count = len(self.places)
        whole = np.empty((count + values.shape[1], len(values))).T  # each run together in memory
        whole[:, :count] = np.nan
        whole[self.rows, self.columns] = cells
        whole[:, count:] = values
        return whole

    def of_rows(self, rows: I64, count: int, missing: int) -> Older:
        """The same for a line of `count` rows: `rows` says for each row here which one of those it is. `missing`: what
        `came` and `counted` are of the others.
        """
        came, counted = np.full((2, count), missing, dtype=np.int64)
        came[rows], counted[rows] = self.came, self.counted
        return replace(self, rows=rows[self.rows], came=came, counted=counted)
