"""Whether two sides are of two models, by the shapes of their operators and the modules that call them.

Models of one framework share most names of operators: each of them has matmuls, copies and normalisations. The shapes
of these say which model it is, and so do the classes of its modules.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.compare.operators import own_time
from tracker.schema.column_names import INPUT_SHAPES, MODULE, NAME, NS
from tracker.store import queries
from tracker.table import number_distinct_rows

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from tracker.columns import Columns
    from tracker.compare.side import LoadedSide

_FEW_SHAPES: Final = 0.1
"""Share of the operators with their shapes, and of the time of either side in these, below which it is another model:
0.39 and more between captures of one model, 0.04 and less between models.
"""
_FEW_MODULES: Final = 0.3
"""The same of modules, by their classes: all of them in captures of one model, 0.13 and less between models, which
share some classes of the framework.
"""
_FEW_NAMES: Final = 0.5
"""Share of the names of operators that captures of one model have in common: 0.59 and more, whatever its inputs."""
_FEWEST: Final = 5
"""Operators with shapes, and modules, of a side from which on they say which model it is."""
_NUMBER: Final = re.compile(r"_\d+$")

Times = dict["Hashable", float]


class _Shared(Struct, frozen=True):
    """What two sides have in common. `share`: of all keys of both; `time`: of the time of that side which has less."""

    share: float
    time: float

    def is_below(self, least: float) -> bool:
        return max(self.share, self.time) < least


def describe_other_model(baseline: LoadedSide, candidate: LoadedSide, names_in_common: float) -> str:
    """Return what shows that two sides are of two models, "" where nothing does.

    Few operators have the same shapes, and either few modules have the same class, or few operators the same name.
    `names_in_common`: share of the names of the operators that both sides have. Inputs of another size change the
    shapes of a model, and neither its modules nor the names of its operators.
    """
    tables = [_take_ops(side) for side in (baseline, candidate)]
    modules = [_sum_by_class(table) for table in tables]
    has_modules = min(map(len, modules)) >= _FEWEST
    shared_modules = _compare_times(*modules) if has_modules else None
    has_other_modules = shared_modules is not None and shared_modules.is_below(_FEW_MODULES)
    has_same_modules = shared_modules is not None and not has_other_modules
    if has_same_modules or not (has_other_modules or names_in_common < _FEW_NAMES):
        return ""
    shapes = [_sum_by_shapes(table) for table in tables]
    if min(map(len, shapes)) < _FEWEST:
        return ""
    shared = _compare_times(*shapes)
    if not shared.is_below(_FEW_SHAPES):
        return ""
    of_shapes = f"only {100 * shared.share:.0f} % of the operators with their shapes are on both sides"
    if shared_modules is None:
        return f"{of_shapes}, and {100 * names_in_common:.0f} % of their names"
    return f"{of_shapes}, and {100 * shared_modules.share:.0f} % of the classes of modules"


def _take_ops(side: LoadedSide) -> Columns:
    ops = side.query(queries.ops)
    return ops.only([NAME, INPUT_SHAPES, MODULE]).having(ns=np.nan_to_num(ops.reals(own_time(side))))


def _sum_by_shapes(ops: Columns) -> Times:
    shaped = ops.taken(ops[INPUT_SHAPES] != "")
    key = (NAME, INPUT_SHAPES)
    number, first = number_distinct_rows([shaped[name] for name in key])
    times = np.bincount(number, shaped.reals(NS), len(first)).tolist()
    return dict(zip(shaped.taken(first).rows(*key), times, strict=True))


def _sum_by_class(ops: Columns) -> Times:
    """Return class of a module -> time of the operators that it calls, or a module in it.

    >>> _NUMBER.sub("", "Linear_12")
    'Linear'
    """
    number, first = number_distinct_rows([ops[MODULE]])
    times_of_paths = np.bincount(number, ops.reals(NS), len(first)).tolist()
    times: Times = {}
    for path, ns in zip(ops[MODULE][first].tolist(), times_of_paths, strict=True):
        if not path:
            continue
        for name in {_NUMBER.sub("", part) for part in path.split("/")}:
            times[name] = times.get(name, 0.0) + ns
    return times


def _compare_times(before: Mapping[Hashable, float], after: Mapping[Hashable, float]) -> _Shared:
    both = before.keys() & after.keys()
    share = len(both) / len(before.keys() | after.keys())
    of_sides = []
    for times in (before, after):
        total = sum(times.values())
        of_sides.append(sum(times[key] for key in both) / total if total else share)
    return _Shared(share, min(of_sides))
