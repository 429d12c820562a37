"""More than two sides: their numbers beside each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import field

from tracker.errors import UsageError
from tracker.results.diff import Side
from tracker.results.options import DiffOptions, check_words
from tracker.results.screens import Result
from tracker.units import counted

if TYPE_CHECKING:
    import pandas as pd

MATRIX_ROWS: Final = ("op", "kernel", "communication", "module")
"""What the rows of a matrix may be, below the numbers of the whole."""

MATRIX_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "rows": ("row", "section", "name", "input_shapes", "part", "level", "unit", "movement"),
    "cells": ("row", "side", "value", "delta", "diff", "previous_diff", "verdict", "q"),
}


class Matrix(Result, frozen=True, eq=False):
    """Three or more sides, in the order in which they were named. Frames have the columns of MATRIX_COLUMNS.

    - sides; metric: as in `Diff`
    - rows: what the cells are of. section: overall, then what `by` says (op, kernel, communication, module); name (a
      title in overall), input_shapes, part (what else tells a row from others of its name), level (of overall rows);
      unit: ns, bytes, count, ratio; movement: largest - smallest value of the sides, a side without the row counting
      as 0, by which the rows behind overall are ordered
    - cells: one per row and side (by its place), in the unit of the row, per step, as in `Diff`; NA: the side does not
      have the row. delta, diff: against the first side; previous_diff, verdict, q: against the side before, NA for the
      first one and where nothing was judged
    - judged: one sentence per side but the first, what its runs can tell against those of the side before
    """

    sides: tuple[Side, ...]
    metric: str
    by: str
    rows: pd.DataFrame
    cells: pd.DataFrame
    judged: tuple[str, ...]
    options: DiffOptions = field(default_factory=DiffOptions)
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The sides in order."""
        return f"{counted(len(self.sides), 'side')}: {', '.join(side.label for side in self.sides)}"


def check_matrix(options: DiffOptions, by: str, depth: int | None = None) -> None:
    """UsageError for what makes sense for two sides only."""
    check_words("matrix", (by,), MATRIX_ROWS)
    given = {
        "--depth": depth or options.depth, "--max-kernels": options.max_kernels, "--op-map": options.op_map,
        "--baseline-step": options.baseline_steps, "--candidate-step": options.candidate_steps, "--only": options.only,
        "--force": options.force,
    }  # fmt: skip
    two = [name for name, value in given.items() if value]
    if two:
        raise UsageError(
            f"{two[0]} compares two sides, and there are more", remedy="name two sides, or leave it out of the matrix"
        )
