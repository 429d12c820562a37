"""The collectives of a usual step: how much of them is exposed, and what of that is waiting for other ranks.

All numbers are medians over the steps of a rank (`medians`), so that a first collective which waits for the rank that
started last is no part of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from msgspec import Struct

from tracker.advice.medians import RankSteps, median_over_steps, steps_of_ranks
from tracker.advice.rows import UNKNOWN
from tracker.schema.column_names import (
    BYTES,
    CALLS,
    EXPOSED_COMMUNICATION_NS,
    EXPOSED_NS,
    EXPOSED_WAIT_NS,
    GROUP_ROLE,
    IS_GLOBAL,
    KIND,
    PEER,
    RANK,
    STEP,
    TOTAL_NS,
    TRANSIT_NS,
    WAIT_NS,
)
from tracker.store.calls.splitting import PIPELINE, is_between_stages
from tracker.store.samples.statistics import over_steps
from tracker.table import split_rows_by_value

if TYPE_CHECKING:
    from tracker.columns import F64, I64, Columns

_Key = TypeVar("_Key", bound=Hashable)


class RankWaits(Struct, frozen=True):
    """Exposed waiting of a rank in a step, in ns. `least`: what is known of it; `whole`: None where that of any call is
    not known; `bubble`: waiting for other stages, None without a group of stages, and where it is not known.
    """

    least: float
    whole: float | None
    bubble: float | None


class UsualCollectives(Struct, frozen=True):
    """Collectives of a rank in a usual step; None where a number is not known of some of them.

    `wait_ns`: what of `exposed_ns` is waiting for other ranks; `transfer_ns`: what is none; `steps`: in how many steps
    they come.
    """

    calls: float | None
    bytes: float | None
    exposed_ns: float | None
    wait_ns: float | None
    transfer_ns: float | None
    steps: int


class StepCollectives:
    """The collectives of the ranks of a run in their steps. `rows`: at rank and step, as `queries.communication` has
    them; `steps`: those of the run, with their exposed communication.
    """

    def __init__(self, rows: Columns, steps: Columns) -> None:
        self._steps = steps_of_ranks(steps)
        self._exposed = _exposed_of_ranks(steps)
        rank, step = rows.integers(RANK), rows.integers(STEP)
        place = np.zeros(len(rows), dtype=np.int64)
        is_inside = np.zeros(len(rows), dtype=bool)
        for number, of_rank in split_rows_by_value(rank).items():
            own = self._steps.get(number)
            if own is None:
                continue
            found = np.minimum(np.searchsorted(own.numbers, step[of_rank]), len(own.numbers) - 1)
            place[of_rank], is_inside[of_rank] = found, own.numbers[found] == step[of_rank]
        rows = rows.taken(is_inside)
        self._place = place[is_inside]
        self._of_rank = split_rows_by_value(rank[is_inside])
        self._roles = [role or UNKNOWN for role in rows.listed(GROUP_ROLE)]
        self._kinds = [kind or UNKNOWN for kind in rows.listed(KIND)]
        self._calls, self._bytes, self._exposed_ns = (rows.reals(name) for name in (CALLS, BYTES, EXPOSED_NS))
        self._wait_ns = _find_least_waits(rows)
        bare = rows.reals(EXPOSED_WAIT_NS)
        # `cluster` takes all waiting for other stages as exposed where nothing says which part is
        self._bubbles = np.where(np.isnan(bare), rows.reals(WAIT_NS), bare)

    def sum_by(self, key_of: Callable[[str, str], _Key]) -> dict[_Key, dict[int, UsualCollectives]]:
        """Return the collectives of a usual step of each key (of role and kind) and rank."""
        keys = [key_of(role, kind) for role, kind in zip(self._roles, self._kinds, strict=True)]
        number = {key: at for at, key in enumerate(dict.fromkeys(keys))}
        numbers = np.array([number[key] for key in keys], dtype=np.int64)
        found: dict[_Key, dict[int, UsualCollectives]] = {}
        for rank, rows in sorted(self._of_rank.items()):
            for key, at in number.items():
                chosen = rows[numbers[rows] == at]
                if len(chosen):
                    found.setdefault(key, {})[rank] = self._sum_rows(rank, chosen)
        return found

    def sum_small(self, role: str, kind: str, rank: int, limit: float, otherwise: float) -> UsualCollectives | None:
        """Return the calls of a usual step whose payload is below `limit` bytes, as `sum_by` has them; None for none.
        `otherwise`: the payload of calls that do not state it.
        """
        chosen = []
        for row in self._of_rank.get(rank, np.zeros(0, dtype=np.int64)).tolist():
            calls, size = self._calls[row], self._bytes[row]
            payload = otherwise if np.isnan(size) or not calls else size / calls
            is_exposed = self._exposed_ns[row] > 0
            if (self._roles[row], self._kinds[row]) == (role, kind) and payload < limit and is_exposed:
                chosen.append(row)
        return self._sum_rows(rank, np.array(chosen)) if chosen else None

    def _sum_rows(self, rank: int, chosen: I64) -> UsualCollectives:
        own = self._steps[rank]
        calls = self._table(own, chosen, self._calls)
        # calls may run at the same time
        exposed = self._at_most_exposed(rank, self._table(own, chosen, self._exposed_ns))
        wait = np.minimum(self._table(own, chosen, self._wait_ns), exposed)
        return UsualCollectives(
            calls=_reduce(calls, own),
            bytes=_reduce(self._table(own, chosen, self._bytes), own),
            exposed_ns=_reduce(exposed, own),
            wait_ns=_median(wait, own),
            transfer_ns=_reduce(exposed - np.nan_to_num(wait), own),
            steps=int(own.weights[calls > 0].sum()),
        )

    def _table(self, own: RankSteps, chosen: I64, values: F64) -> F64:
        """Return the sums of the chosen rows in the steps of a rank; nan where a row of a step is not known."""
        return np.bincount(self._place[chosen], values[chosen], len(own.numbers)) / own.weights

    def _at_most_exposed(self, rank: int, table: F64) -> F64:
        return np.fmin(table, self._exposed[rank]) if not np.isnan(table).any() else table

    def rotating_wait_ns(self) -> float:
        """Return the longest waiting of any rank in a usual step: now one rank waits and now another. 0 where ranks
        count their steps otherwise, or are alone.
        """
        numbers = {tuple(own.numbers.tolist()) for own in self._steps.values()}
        if len(self._steps) < 2 or len(numbers) != 1:
            return 0.0
        waits = []
        for rank, rows in self._of_rank.items():
            known = np.nan_to_num(self._wait_ns)
            waits.append(self._at_most_exposed(rank, self._table(self._steps[rank], rows, known)))
        own = next(iter(self._steps.values()))
        return _median(np.max(waits, axis=0), own) or 0.0 if waits else 0.0

    def waits_of_ranks(self) -> dict[int, RankWaits]:
        """Return the exposed waiting of each rank that has collectives."""
        waits = self._wait_ns
        is_of_pipeline = np.array([role == PIPELINE for role in self._roles], dtype=bool)
        is_bubble = np.array([*map(is_between_stages, self._roles, self._kinds)], dtype=bool)
        found = {}
        for rank, rows in sorted(self._of_rank.items()):
            own = self._steps[rank]
            known = self._at_most_exposed(rank, self._table(own, rows, np.nan_to_num(waits)))
            whole = self._at_most_exposed(rank, self._table(own, rows, waits))
            bubble = self._at_most_exposed(rank, self._table(own, rows[is_bubble[rows]], self._bubbles))
            has_stages = bool(is_of_pipeline[rows].any())
            found[rank] = RankWaits(
                least=_median(known, own) or 0.0,
                whole=_median(whole, own),
                bubble=_median(bubble, own) if has_stages else None,
            )
        return found


def _exposed_of_ranks(steps: Columns) -> dict[int, F64]:
    """Return the exposed communication of the steps of each rank, in their order; nan where it is not known."""
    order = np.argsort(steps.integers(STEP), kind="stable")
    exposed = steps.reals(EXPOSED_COMMUNICATION_NS)[order]
    rows = split_rows_by_value(steps.integers(RANK)[order])
    return {rank: exposed[own] for rank, own in rows.items()}


def _reduce(table: F64, own: RankSteps) -> float | None:
    """Return the number of a usual step; None where that of any step is not known."""
    return None if np.isnan(table).any() else float(over_steps(table[None, :], own.weights)[0])


def _median(table: F64, own: RankSteps) -> float | None:
    return None if np.isnan(table).any() else float(median_over_steps(table[None, :], own.weights)[0])


def _find_least_waits(rows: Columns) -> F64:
    """Return the exposed waiting of rows. Of calls that compute hides in part it is at least all that is exposed beyond
    the transit, which the ranks of a group tell together; nan where nothing says it.
    """
    wait, exposed, transit = (rows.reals(name) for name in (EXPOSED_WAIT_NS, EXPOSED_NS, TRANSIT_NS))
    return np.where(np.isnan(wait), np.maximum(exposed - transit, 0.0), wait)


def longest_waited_for(rows: Columns, own: RankSteps) -> tuple[int, bool, float] | None:
    """Return the rank that a rank waits for longest in a usual step: its number, whether that is its number in the job,
    and the time; None for none. `rows`: of that rank, at steps, as `queries.communication_waits` has them.
    """
    peers: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for step, peer, is_global, total_ns in rows.rows(STEP, PEER, IS_GLOBAL, TOTAL_NS):
        peers.setdefault((peer, is_global), []).append((step, total_ns))
    waits = {}
    for key, of_steps in peers.items():
        steps, times = (np.array(column) for column in zip(*of_steps, strict=True))
        inside = np.isin(steps, own.numbers)
        place = np.searchsorted(own.numbers, steps[inside])
        table = np.bincount(place, times[inside], len(own.numbers)) / own.weights
        waits[key] = float(median_over_steps(table[None, :], own.weights)[0])
    if not waits or not max(waits.values()):
        return None
    peer, is_global = max(waits, key=lambda key: (waits[key], key))
    return peer, bool(is_global), waits[peer, is_global]
