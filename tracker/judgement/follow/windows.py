"""The runs that each series is judged against: the last ones on its level that were normal or accepted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tracker.detectors.baseline import ENOUGH, WINDOW
from tracker.detectors.spread import Spread, pooled

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


def gathered(values: F64, rows: I64, columns: I64) -> F64:
    """The values of `rows` in the columns (rows, n) of each; nan where a column is -1."""
    places = columns.T  # column by column, see `arrays.cut`
    return np.where(places < 0, np.nan, values[rows, np.maximum(places, 0)]).T


class Windows:
    """The windows of all series of a line. `columns` (series, 8): runs, the newest last, -1 where there are fewer."""

    def __init__(self, series: int) -> None:
        self.columns: I64 = np.full((series, WINDOW), -1, dtype=np.int64)
        self.variance: F64 = np.full(series, np.nan)
        self.freedom: F64 = np.zeros(series)

    def accept(self, rows: I64, column: int) -> None:
        """The run `column` joins the windows of `rows`."""
        self.columns[rows, :-1] = self.columns[rows, 1:]
        self.columns[rows, -1] = column
        # a level with runs enough needs the spread of the one before no more
        own = rows[(self.columns[rows] >= 0).sum(axis=1) >= ENOUGH]
        self.variance[own], self.freedom[own] = np.nan, 0.0

    def join(self, row: int, columns: Sequence[int]) -> None:
        """Runs of before that turned out to be as they should be: each once, the newest 8 stay."""
        own = self.columns[row]
        kept = sorted({*own[own >= 0].tolist(), *columns})[-own.shape[0] :]
        self.columns[row] = -1
        for column in kept:
            self.accept(np.array([row]), column)

    def restart(self, row: int, columns: Sequence[int], centred: F64) -> None:
        """An accepted change: the window of `row` begins anew with `columns`, and keeps the spread of the old level."""
        old = gathered(centred, np.array([row]), self.columns[[row]])
        with np.errstate(invalid="ignore"):
            spread = pooled(np.log(old))
        self.columns[row] = -1
        for column in columns:
            self.accept(np.array([row]), column)
        if len(columns) < ENOUGH:
            self.variance[row], self.freedom[row] = spread.variance[0], spread.freedom[0]

    def older(self, rows: I64) -> Spread | None:
        """The spread that is kept of older levels, None where none of `rows` has one."""
        if not self.freedom[rows].any():
            return None
        return Spread(self.variance[rows], self.freedom[rows])

    def enough(self, rows: I64) -> NDArray[np.bool_]:
        """Which of `rows` can be judged: 3 runs, or one with the spread of an older level."""
        known = (self.columns[rows] >= 0).sum(axis=1)
        return np.asarray((known >= ENOUGH) | ((known > 0) & (self.freedom[rows] > 0)))
