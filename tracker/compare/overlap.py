"""Kernels that run at the same time: how much of their time they hide of each other, and whose that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import Columns, objects
from tracker.compare import coverage, match
from tracker.compare.kernel_causes import STAND_INS
from tracker.profile.words import BESIDE_COMPUTE
from tracker.results import Contribution
from tracker.schema.column_names import (
    BESIDE_NS,
    CANONICAL_NAME,
    CATEGORY,
    COMPUTE_NS,
    COMPUTE_TOTAL_NS,
    OP,
    OWNER,
    TOTAL_NS,
)
from tracker.store import queries
from tracker.store.samples.statistics import over_runs
from tracker.table import is_among, number_tables
from tracker.units import some_of

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide

OVERLAP: Final = "overlap"
_HIDDEN: Final = "hidden_ns"
_LEAST_OF_OVERLAP: Final = 0.05
"""Part of the overlap from which on an operator takes part in it."""
_MOST_NAMES: Final = 3

Sides = tuple["LoadedSide", "LoadedSide"]


class _Owner(Struct, frozen=True):
    """An operator, or a kernel without one: its time a step and how much of it others run beside it, before and after,
    ns.
    """

    name: str
    times: tuple[float, float]
    beside: tuple[float, float]

    @property
    def change_ns(self) -> float:
        return self.beside[1] - self.beside[0]


def measure_overlap(sides: Sides) -> Contribution | None:
    """Return by how much longer the step is since fewer kernels run at the same time, or shorter since more do; None
    where that is not known, or did not change. `baseline_ns`, `candidate_ns`: the time that they hide, so that
    `delta_ns` goes the other way.
    """
    if any(side.side.timeline != "device" for side in sides):
        return None
    before, after = (_sum_hidden(side) for side in sides)
    if np.isnan(before) or np.isnan(after) or before == after:
        return None
    return Contribution(OVERLAP, "", before - after, baseline_ns=before, candidate_ns=after)


def _sum_hidden(side: LoadedSide) -> float:
    """Return the time of compute kernels less that in which any runs, by the statistic of every number."""
    steps = side.steps
    hidden = np.maximum(steps.reals(COMPUTE_TOTAL_NS) - steps.reals(COMPUTE_NS), 0.0)
    own = replace(side, steps=steps.having(**{_HIDDEN: hidden}), cache={})
    return float(over_runs(match.reduce_steps(own, [_HIDDEN])[_HIDDEN][None, :])[0])


def describe_owners(sides: Sides, before: float, after: float) -> str:
    """Return which operators run less, or more, beside others: two by their names where all of it is of these two.

    Which of three or more run beside which is not known, and not said. "" where the runs do not say whose it is.
    """
    owners = _list_owners(sides)
    place, whole_ns = (0, before) if before > after else (1, after)
    direction = 1 if after > before else -1
    sharing = [one for one in owners if one.beside[place] >= _LEAST_OF_OVERLAP * whole_ns]
    moved = [one for one in sharing if one.change_ns * direction >= _LEAST_OF_OVERLAP * abs(after - before)]
    moved.sort(key=lambda one: (-abs(one.change_ns), one.name))
    if len(sharing) == len(moved) == 2:
        # the shorter one is the one that the other hides
        first, second = sorted(moved, key=lambda one: (one.times[place], one.name))
        return f"{first.name} beside {second.name}"
    if not moved:
        return ""
    names = some_of([one.name for one in moved], most=_MOST_NAMES)
    return f"{'less' if after < before else 'more'} of {names} beside others"


def _list_owners(sides: Sides) -> list[_Owner]:
    """Return what runs beside others on a side; nothing where a side has no kernels, or an earlier program read it."""
    tables = [_query_owned(side) for side in coverage.blank_unless_both(*sides, coverage.KERNELS)]
    if not all(len(table) and table.known(BESIDE_NS).all() for table in tables):
        return []
    rows, keys = number_tables(tables, ["owner"])
    names = [TOTAL_NS, BESIDE_NS]
    numbers = [match.reduce_side(side, own, names) for side, own in zip(sides, rows, strict=True)]
    before, after = ([np.nan_to_num(one[name]).tolist() for name in names] for one in numbers)
    columns = zip(keys.listed(OWNER), *before, *after, strict=True)
    return [_Owner(name, (total, new_total), (beside, new)) for name, total, beside, new_total, new in columns]


def _query_owned(side: LoadedSide) -> Columns:
    """Return the compute kernels of a side with what they are counted to."""
    kernels = side.query(queries.kernels)
    kernels = kernels.taken(~is_among(kernels[CATEGORY], BESIDE_COMPUTE))
    owners = np.where(is_among(kernels[OP], STAND_INS), kernels[CANONICAL_NAME], kernels[OP])
    return kernels.having(owner=objects(owners.tolist()))
