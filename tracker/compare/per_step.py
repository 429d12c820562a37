"""The number per step of what `tracker show` lists: that of its series, as `history` and `diff` print it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from tracker.columns import Columns
from tracker.compare import match
from tracker.compare.operators import own_time
from tracker.results import GRAINS, IDLE_KEY
from tracker.store import queries
from tracker.table import Numbered, number_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.compare.side import LoadedSide

NUMBER: Final = "per_step_ns"
_COLLECTIVE: Final = "is_collective"


def with_number(side: LoadedSide, table: Columns, question: queries.Question) -> Columns:
    """Return the rows of an answer to `question` with NUMBER: of all rows of their series, at the grain of `table`; NA
    for what lies outside all steps.
    """
    fine = side.query(question)
    key: tuple[str, ...]
    if question is queries.kernels:
        key, value = ("canonical_name", "input_shapes", _COLLECTIVE), "total_ns"
        table, fine = (own.having(**{_COLLECTIVE: own["category"] == "communication"}) for own in (table, fine))
    elif question is queries.communication:
        key, value = ("kind", "group_role", "size_class_bytes"), "total_ns"
    elif question is queries.api:
        key, value = ("level", "name"), "self_ns"
        fine = fine.having(self_ns=np.where(fine.known(value), fine.reals(value), fine.reals("total_ns")))
    elif question is queries.idle:
        key, value = IDLE_KEY, "ns"
    else:
        key, value = ("name", "input_shapes"), own_time(side)
    return of_rows(side, table, fine, key, value).without(_COLLECTIVE)


def of_rows(side: LoadedSide, table: Columns, fine: Columns, key: Sequence[str], value: str) -> Columns:
    """Return `table` with NUMBER: of the rows in `fine`, at GRAIN, that are equal in `key` and grain."""
    grain = [name for name in GRAINS if name in table]
    names = [*grain, *key]
    (shown, own), _ = number_tables([table.only(names), fine.only(names)], names)
    found = np.full(own.count, np.nan)
    for part in _steps(side) if "step" in grain else (side,):
        inside = np.isin(fine.integers("step"), part.steps.integers("step")) if part is not side else slice(None)
        rows = Numbered(fine.taken(inside), own.number[inside], own.count)
        numbers = match.reduce_side(part, rows, [value])[value]
        found = np.where(np.isnan(numbers), found, numbers)
    return table.having(**{NUMBER: found[shown.number]})


def _steps(side: LoadedSide) -> list[LoadedSide]:
    """Return the side with one step each."""
    steps = side.steps.integers("step")
    return [replace(side, steps=side.steps.taken(steps == step), cache={}) for step in sorted(set(steps.tolist()))]
