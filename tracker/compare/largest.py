"""The operators of one run with most time, all shapes of a name together; kernels where no operator is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.columns import Columns, objects
from tracker.compare.filters import matching
from tracker.compare.kernel_causes import NOT_OPERATORS
from tracker.compare.operators import own_time
from tracker.compare.per_step import NUMBER, of_rows, query_fine
from tracker.profile import NOT_LISTED, NOT_LISTED_COLLECTIVES
from tracker.results import SHOWN_COLUMNS
from tracker.schema.column_names import CALLS, CANONICAL_NAME, KIND, NAME, SHARE, TOTAL_NS
from tracker.store import queries
from tracker.table import AddUp, add_up_rows, is_among, sort_largest_first

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide
    from tracker.results import ShowOptions

_NOT_NAMED: Final = (NOT_LISTED, NOT_LISTED_COLLECTIVES)
"""Rows of kernels that stand for what the source left out of its table."""


def largest_names(side: LoadedSide, ops: Columns, kernels: Columns, options: ShowOptions) -> Columns:
    """Return a row per name of `ops`, or of `kernels` where no operator has time of its own: the columns of
    `largest` in SHOWN_COLUMNS, the longest per step first.

    `ops`, `kernels`: those that pass the filters of `options`, in int ns. `per_step_ns` (the median over the steps and
    ranks, as history has it) and `calls_per_step` are NA for what lies outside all steps.
    """
    own_ns = own_time(side)
    names = sum_names(ops, kernels, own_ns)
    kind = names.listed(KIND)[0] if len(names) else ""
    if kind == "operator":
        fine = query_fine(side, queries.ops)
        fine = fine.having(total_ns=fine[own_ns])
        for column, pattern in (("name", options.op), ("module", options.module)):
            fine = matching(fine, column, pattern)
    else:
        fine = matching(_named_canonically(query_fine(side, queries.kernels)), "op", options.op)
    times = of_rows(side, names, fine, ("name",), TOTAL_NS)[NUMBER]
    calls = of_rows(side, names, fine, ("name",), "calls")[NUMBER]
    found = names.having(per_step_ns=times, calls_per_step=calls).only(SHOWN_COLUMNS["largest"])
    return sort_largest_first(found, ["per_step_ns", "total_ns"], ["name"])


def sum_names(ops: Columns, kernels: Columns, own_ns: str) -> Columns:
    """Return `kind` (operator, kernel), name, calls, total_ns (of the capture) and the sum of `share` by name.

    `own_ns`: the column of `ops` that is their own time. Names without time are left out.
    """
    of_ops = _sum_by_name(ops.having(total_ns=ops[own_ns]))
    if not is_among(of_ops[NAME], NOT_OPERATORS).all() or not len(kernels):
        return _of_kind(of_ops, "operator")
    named = _named_canonically(kernels)
    named = named.taken(~is_among(named[NAME], _NOT_NAMED))
    return _of_kind(_sum_by_name(named), "kernel")


def _named_canonically(kernels: Columns) -> Columns:
    """Return kernels under the names that do not change from build to build, where they have one."""
    pairs = zip(kernels[CANONICAL_NAME], kernels[NAME], strict=True)
    return kernels.having(name=objects([canonical or name for canonical, name in pairs]))


def _sum_by_name(rows: Columns) -> Columns:
    numbers: dict[str, AddUp] = {CALLS: "known", TOTAL_NS: "known", SHARE: "known"}
    sums = add_up_rows(rows, ["name"], numbers)
    return sums.taken(np.nan_to_num(sums.reals(TOTAL_NS)) > 0)


def _of_kind(sums: Columns, kind: str) -> Columns:
    return sums.having(kind=objects([kind] * len(sums)))
