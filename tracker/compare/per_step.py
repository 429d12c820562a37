"""The number per step of what `tracker show` lists: that of its series, as `history` and `diff` print it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from tracker.columns import Columns
from tracker.compare import match
from tracker.compare.operators import own_time
from tracker.results import GRAINS, IDLE_KEY
from tracker.schema.column_names import CALLS, CATEGORY, DEVICE_SELF_NS, HOST_SELF_NS, STEP, TOTAL_NS
from tracker.schema.series import KIND, OWN_TIMES
from tracker.store import queries
from tracker.table import Numbered, number_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.compare.side import LoadedSide

NUMBER: Final = "per_step_ns"
_IS_OTHER: Final = "is_other_category"
_KIND_OF_QUESTION: Final = {
    queries.ops: KIND["op"],
    queries.kernels: KIND["kernel"],
    queries.communication: KIND["communication"],
    queries.api: KIND["api"],
}


_NUMBERS: Final = {
    queries.ops: (CALLS, DEVICE_SELF_NS, HOST_SELF_NS),
    queries.kernels: (CALLS, TOTAL_NS),
    queries.communication: (TOTAL_NS,),
    queries.api: ("self_ns", "total_ns"),
    queries.idle: ("ns", "gaps"),
}
"""The numbers of each question that numbers per step are made of."""


def query_fine(side: LoadedSide, question: queries.Question) -> Columns:
    """Return the answer to a question by rank and step, with the numbers that numbers per step are made of."""
    return side.query(question, numbers=_NUMBERS[question])


def with_number(side: LoadedSide, table: Columns, question: queries.Question) -> Columns:
    """Return the rows of an answer to `question` with NUMBER: of all rows of their series, at the grain of `table`; NA
    for what lies outside all steps.
    """
    fine = query_fine(side, question)
    if question is queries.idle:
        # each place is listed; the series are of whole causes
        return of_rows(side, table, fine, IDLE_KEY, "ns")
    kind = _KIND_OF_QUESTION[question]
    if kind.metrics == OWN_TIMES:
        return of_rows(side, table, fine, kind.key_columns, own_time(side))
    metric, key = kind.metrics[0], kind.key_columns
    if metric.if_missing:
        stated = np.where(fine.known(metric.name), fine.reals(metric.name), fine.reals(metric.if_missing))
        fine = fine.having(**{metric.name: stated})
    if kind.other_category:
        # rows of the other category are listed in the same table, and never added to those of this kind
        table, fine = (rows.having(**{_IS_OTHER: rows[CATEGORY] == kind.other_category}) for rows in (table, fine))
        key = (*key, _IS_OTHER)
    return of_rows(side, table, fine, key, metric.name).without(_IS_OTHER)


def of_rows(side: LoadedSide, table: Columns, fine: Columns, key: Sequence[str], value: str) -> Columns:
    """Return `table` with NUMBER: of the rows in `fine`, at GRAIN, that are equal in `key` and grain."""
    grain = [name for name in GRAINS if name in table]
    names = [*grain, *key]
    (shown, numbered), _ = number_tables([table.only(names), fine.only(names)], names)
    if "step" not in grain:
        rows = Numbered(fine, numbered.number, numbered.count)
        per_step = match.reduce_side(side, rows, [value])[value]
        return table.having(**{NUMBER: per_step[shown.number]})
    per_step = np.full(numbered.count, np.nan)
    for one_step in _single_steps(side):
        inside = np.isin(fine.integers(STEP), one_step.steps.integers(STEP))
        rows = Numbered(fine.taken(inside), numbered.number[inside], numbered.count)
        numbers = match.reduce_side(one_step, rows, [value])[value]
        per_step = np.where(np.isnan(numbers), per_step, numbers)
    return table.having(**{NUMBER: per_step[shown.number]})


def _single_steps(side: LoadedSide) -> list[LoadedSide]:
    """Return the side with one step each."""
    steps = side.steps.integers(STEP)
    return [replace(side, steps=side.steps.taken(steps == step), cache={}) for step in sorted(set(steps.tolist()))]
