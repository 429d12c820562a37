"""Names and kinds of work for rows that a reader made from sums: the part of the meaning that needs no events."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.profile import Breakdown, Rows, Table
from tracker.profile.words import BESIDE_COMPUTE
from tracker.schema.column_names import KERNEL_KEY, OP_KEY, TOTAL_NS
from tracker.timeline.categories import category_of_kernel, category_of_op
from tracker.timeline.collective_names import OpSays, is_communication, op_says
from tracker.timeline.names import canonical_name

_COPY = re.compile(r"mem(?P<what>cpy|set)", re.IGNORECASE)


def named(rows: Rows) -> Rows:
    """The rows with a canonical name for every kernel and a category for every kernel row that has none yet.

    Compute goes by the launching op where that decides, else by the kernel's name. Where it follows from them, the
    summed time of compute and of communication is filled in too. Rows that lack nothing are returned as they are.
    """
    kernels, keys, ops = (rows.tables[name] for name in ("kernel", "kernel_key", "op_key"))
    if all(_texts(keys, "canonical_name")) and all(_texts(kernels, "category")):
        return rows
    names, canonical = _texts(keys, "name"), _texts(keys, "canonical_name")
    canonical = [known or canonical_name(name) for known, name in zip(canonical, names, strict=True)]
    launching = zip(_texts(ops, "name"), _texts(ops, "phase"), strict=True)
    by_op = [(category_of_op(name, phase), phase, op_says(name)) for name, phase in launching]
    categories = [
        known or _category(names[kernel], *by_op[op])
        for known, kernel, op in zip(_texts(kernels, "category"), kernels[KERNEL_KEY], kernels[OP_KEY], strict=True)
    ]
    tables = {
        **rows.tables,
        "kernel_key": {**keys, "canonical_name": canonical},
        "kernel": {**kernels, "category": categories},
    }
    totals = _totals(np.array(categories, dtype=object), cast("NDArray[np.int64]", kernels[TOTAL_NS]))
    only_step = len(rows.steps) == 1 and rows.steps[0].breakdown == rows.overall
    overall = _filled(rows.overall, totals)
    steps = tuple(replace(step, breakdown=overall) for step in rows.steps) if only_step else rows.steps
    return replace(rows, overall=overall, steps=steps, tables=tables)


def _texts(table: Table, column: str) -> Sequence[str]:
    return cast("Sequence[str]", table[column])


def _category(name: str, of_op: str | None, phase: str, says: OpSays) -> str:
    if match := _COPY.match(name):
        return "copy" if match["what"].lower() == "cpy" else "memset"
    if is_communication(name, says=says):
        return "communication"
    return of_op or category_of_kernel(name, phase, launched_by_operator=of_op == "")


def _totals(categories: NDArray[Any], total_ns: NDArray[np.int64]) -> dict[str, int]:
    is_communication_row = categories == "communication"
    return {
        "compute_total_ns": int(total_ns[~np.isin(categories, BESIDE_COMPUTE)].sum()),
        "communication_total_ns": int(total_ns[is_communication_row].sum()),
    }


def _filled(breakdown: Breakdown, totals: dict[str, int]) -> Breakdown:
    """The sums are known only where the sum of all kernels is, and agrees with them."""
    if breakdown.kernel_total_ns != sum(totals.values()):
        return breakdown
    unknown: dict[str, Any] = {name: value for name, value in totals.items() if getattr(breakdown, name) is None}
    return replace(breakdown, **unknown)
