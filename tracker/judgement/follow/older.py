"""What is kept of the runs of a line that are not read again: all that one more run can still be judged by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
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
    said: dict[Family, BOOL] = field(default_factory=dict)
    factors: dict[Family, F64] = field(default_factory=dict)
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

    @property
    def no_factor(self) -> F64:
        """The factor of a family that none of the runs that were followed has."""
        return np.zeros(self.followed)

    def said_of(self, family: Family) -> BOOL:
        """Which of the runs say anything of a family."""
        return self.said.get(family, np.zeros(len(self.places), dtype=bool))

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
