"""The collectives of a usual step: how much of them is exposed, and what of that is waiting for other ranks.

All numbers are medians over the steps of a rank (`medians`), so that a first collective which waits for the rank that
started last is no part of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from msgspec import Struct

from tracker.advice.medians import RankSteps, median_over_steps, usual_over_steps

if TYPE_CHECKING:
    from tracker.columns import F64, Columns, Flags

Row = dict[str, Any]
_Key = TypeVar("_Key", bound=Hashable)
PIPELINE: Final = "pp"
"""Role of the groups in which stages wait for each other."""
_TWO_SIDED: Final = ("send", "recv", "send_recv")
_UNKNOWN: Final = "unknown"


class RankWaits(Struct, frozen=True):
    """Exposed waiting of a rank in a step, in ns. `least`: what is known of it; `whole`: None where that of any call is
    not known; `bubble`: waiting for other stages, None without a group of stages, and where it is not known.
    """

    least: float
    whole: float | None
    bubble: float | None


class StepCollectives:
    """The collectives of the ranks of a run in their steps. `rows`: at rank and step, as `queries.communication` has
    them; `exposed`: of each rank the exposed communication of its steps, nan where it is not known.
    """

    def __init__(self, rows: Columns, steps: Mapping[int, RankSteps], exposed: Mapping[int, F64]) -> None:
        self._steps, self._exposed = steps, exposed
        rank, step = rows.integers("rank"), rows.integers("step")
        place = np.zeros(len(rows), dtype=np.int64)
        is_inside = np.zeros(len(rows), dtype=bool)
        for number, own in steps.items():
            of_rank = rank == number
            found = np.minimum(np.searchsorted(own.numbers, step[of_rank]), len(own.numbers) - 1)
            place[of_rank], is_inside[of_rank] = found, own.numbers[found] == step[of_rank]
        rows = rows.taken(is_inside)
        self._rows, self._rank, self._place = rows, rank[is_inside], place[is_inside]
        self._roles = [role or _UNKNOWN for role in rows.listed("group_role")]
        self._kinds = [kind or _UNKNOWN for kind in rows.listed("kind")]
        self._numbers = {name: rows.reals(name) for name in ("calls", "bytes", "exposed_ns")}
        self._numbers["wait_ns"] = _find_least_waits(rows)
        bare = rows.reals("exposed_wait_ns")
        # `cluster` takes all waiting for other stages as exposed where nothing says which part is
        self._bubbles = np.where(np.isnan(bare), rows.reals("wait_ns"), bare)

    def sum_by(self, key_of: Callable[[str, str], _Key]) -> dict[_Key, dict[int, Row]]:
        """Return the collectives of a usual step of each key (of role and kind) and rank: calls, bytes; exposed_ns;
        wait_ns, what of it is waiting; transfer_ns, what is none; each None where it is not known of some row; `steps`:
        in how many steps they come.
        """
        keys = [key_of(role, kind) for role, kind in zip(self._roles, self._kinds, strict=True)]
        number = {key: at for at, key in enumerate(dict.fromkeys(keys))}
        numbers = np.array([number[key] for key in keys], dtype=np.int64)
        found: dict[_Key, dict[int, Row]] = {}
        for rank, own in self._steps.items():
            of_rank = self._rank == rank
            for key, at in number.items():
                chosen = of_rank & (numbers == at)
                if chosen.any():
                    found.setdefault(key, {})[rank] = self._sum_rows(rank, own, chosen)
        return found

    def sum_small(self, role: str, kind: str, rank: int, limit: float, otherwise: float) -> Row | None:
        """Return the calls of a usual step whose payload is below `limit` bytes, as `sum_by` has them; None for none.
        `otherwise`: the payload of calls that do not state it.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            payload = self._numbers["bytes"] / self._numbers["calls"]
        payload = np.where(np.isnan(payload), otherwise, payload)
        is_named = [own == (role, kind) for own in zip(self._roles, self._kinds, strict=True)]
        chosen = np.array(is_named, dtype=bool) & (self._rank == rank) & (payload < limit)
        chosen &= np.nan_to_num(self._numbers["exposed_ns"]) > 0
        return self._sum_rows(rank, self._steps[rank], chosen) if chosen.any() else None

    def _sum_rows(self, rank: int, own: RankSteps, chosen: Flags) -> Row:
        tables = {name: self._table(own, chosen, values) for name, values in self._numbers.items()}
        # calls may run at the same time
        exposed = tables["exposed_ns"] = self._at_most_exposed(rank, tables["exposed_ns"])
        tables["wait_ns"] = np.minimum(tables["wait_ns"], exposed)
        tables["transfer_ns"] = exposed - np.nan_to_num(tables["wait_ns"])
        row: Row = {}
        for name, table in tables.items():
            reduce = median_over_steps if name == "wait_ns" else usual_over_steps
            row[name] = None if np.isnan(table).any() else float(reduce(table[None, :], own.weights)[0])
        row["steps"] = int(own.weights[tables["calls"] > 0].sum())
        return row

    def _table(self, own: RankSteps, chosen: Flags, values: F64) -> F64:
        """Return the sums of the chosen rows in the steps of a rank; nan where a row of a step is not known."""
        return np.bincount(self._place[chosen], values[chosen], len(own.numbers)) / own.weights

    def _at_most_exposed(self, rank: int, table: F64) -> F64:
        return np.fmin(table, self._exposed[rank]) if not np.isnan(table).any() else table

    def waits_of_ranks(self) -> dict[int, RankWaits]:
        """Return the exposed waiting of each rank that has collectives."""
        waits = self._numbers["wait_ns"]
        roles, kinds = np.array(self._roles, dtype=object), np.array(self._kinds, dtype=object)
        is_of_pipeline = np.array(roles == PIPELINE, dtype=bool)
        is_bubble = is_of_pipeline & np.isin(kinds, _TWO_SIDED)
        found = {}
        for rank, own in self._steps.items():
            of_rank = self._rank == rank
            if not of_rank.any():
                continue
            known = self._at_most_exposed(rank, self._table(own, of_rank, np.nan_to_num(waits)))
            whole = self._at_most_exposed(rank, self._table(own, of_rank, waits))
            bubble = self._at_most_exposed(rank, self._table(own, of_rank & is_bubble, self._bubbles))
            has_stages = bool((of_rank & is_of_pipeline).any())
            found[rank] = RankWaits(
                least=_median(known, own) or 0.0,
                whole=_median(whole, own),
                bubble=_median(bubble, own) if has_stages else None,
            )
        return found


def _median(table: F64, own: RankSteps) -> float | None:
    return None if np.isnan(table).any() else float(median_over_steps(table[None, :], own.weights)[0])


def _find_least_waits(rows: Columns) -> F64:
    """Return the exposed waiting of rows. Of calls that compute hides in part it is at least all that is exposed beyond
    the transit, which the ranks of a group tell together; nan where nothing says it.
    """
    wait, exposed, transit = (rows.reals(name) for name in ("exposed_wait_ns", "exposed_ns", "transit_ns"))
    return np.where(np.isnan(wait), np.maximum(exposed - transit, 0.0), wait)


def longest_waited_for(rows: Columns, own: RankSteps) -> tuple[int, bool, float] | None:
    """Return the rank that a rank waits for longest in a usual step: its number, whether that is its number in the job,
    and the time; None for none. `rows`: of that rank, at steps, as `queries.communication_waits` has them.
    """
    peers: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for step, peer, is_global, total_ns in rows.rows("step", "peer", "is_global", "total_ns"):
        peers.setdefault((peer, is_global), []).append((step, total_ns))
    waits = {}
    for key, of_steps in peers.items():
        steps, times = (np.array(column) for column in zip(*of_steps, strict=True))
        place = np.searchsorted(own.numbers, steps)
        table = np.bincount(place, times, len(own.numbers)) / own.weights
        waits[key] = float(median_over_steps(table[None, :], own.weights)[0])
    if not waits or not max(waits.values()):
        return None
    peer, is_global = max(waits, key=lambda key: (waits[key], key))
    return peer, bool(is_global), waits[peer, is_global]
