"""Who waits for whom: of each rank the time that it waits for each other one, captured or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.compare.side import GRAIN
from tracker.ranks.exchange import median_of_steps
from tracker.results.cluster import PeerRow
from tracker.store import queries
from tracker.store.calls.lateness import is_number_in_job, sum_waits_for_last
from tracker.units import format_ns, format_numbers

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide
    from tracker.store.calls.splitting import RunCalls

TASKS: Final = "tasks"
RANKS: Final = "ranks"
"""What names the rank that is waited for: the tasks of a collective, or who of its group comes last."""
MUCH: Final = 0.10
"""Waiting for one rank by the step, from which on that rank is named."""
_USUALLY: Final = 0.8
"""Share of the steps in which a rank waits for another one, from which on it is not now for one and now for another."""
_MUCH_AT_ONCE: Final = 3.0
"""Waiting of one step by the usual step, from which on it is worth a word."""
_NAMED: Final = 4


class PeerWaits(PeerRow, frozen=True, kw_only=True):
    """A row of a rank and a peer, and what sentences are made of. `of_steps`: ns that it waits in each step that has
    such a call, None where that is not known; `is_usual`: whether almost all of its steps have one.
    """

    of_steps: Mapping[int, float | None]
    is_usual: bool


def peer_rows(side: LoadedSide, calls: RunCalls, steps: Mapping[int, Mapping[int, int]]) -> list[PeerWaits]:
    """Return how long each rank waits for each other one, medians over its steps, the longest first. `steps`: of each
    rank.

    A rank whose tasks name their peers waits for these, for several at once; another one waits in each call of a group
    that is captured whole for the rank that comes last. is_global: 0 where the peer is a place in a group whose members
    are not known; captured: None where that cannot be told.
    """
    rows = _rows_of_tasks(side, calls, steps)
    with_tasks = {row.rank for row in rows}
    of_calls = _rows_of_calls(calls, steps)
    rows += [row for row in of_calls if row.rank not in with_tasks]
    rows.sort(key=lambda row: (-(row.wait_ns or 0.0), row.rank, row.role, row.peer))
    return rows


class _Waits:
    """The calls of a rank that wait for another one, and how long they do, by step; and the longest of a call."""

    def __init__(self) -> None:
        self.calls: dict[int, float | None] = {}
        self.wait_ns: dict[int, float | None] = {}
        self.longest_ns = 0

    def add(self, step: int, calls: int, wait_ns: int, longest_ns: int) -> None:
        """Add calls of a step."""
        self.calls[step] = (self.calls.get(step) or 0) + calls
        self.wait_ns[step] = (self.wait_ns.get(step) or 0) + wait_ns
        self.longest_ns = max(self.longest_ns, longest_ns)


def _rows_of_tasks(side: LoadedSide, calls: RunCalls, steps: Mapping[int, Mapping[int, int]]) -> list[PeerWaits]:
    sums: dict[tuple[int, str, int, int], _Waits] = {}
    columns = ("rank", "step", "group_role", "peer", "is_global", "calls", "total_ns", "max_ns")
    waits = side.query(queries.communication_waits, by=GRAIN)
    for rank, step, role, peer, is_global, count, total, most in waits.rows(*columns):
        if step in steps.get(rank, {}):
            sums.setdefault((rank, role or "unknown", peer, is_global), _Waits()).add(step, count, total, most)
    rows = []
    for (rank, role, peer, is_global), waits_for_peer in sums.items():
        # a place in a group of which nothing says the members may be any rank
        is_known = is_global or is_number_in_job(calls, rank, role, peer)
        captured = int(peer in calls.calls) if is_known else None
        rows.append(_make_row(rank, role, peer, is_global, captured, TASKS, waits_for_peer, steps[rank]))
    return rows


def _rows_of_calls(calls: RunCalls, steps: Mapping[int, Mapping[int, int]]) -> list[PeerWaits]:
    """Return what the ranks of whole groups wait for the last one of each call in their steps, where their clocks can
    be compared.
    """
    sums: dict[tuple[int, str, int], _Waits] = {}
    columns = ("rank", "step", "role", "peer", "calls", "ns", "longest_ns")
    for rank, step, role, peer, count, total, most in sum_waits_for_last(calls).rows(*columns):
        if step in steps.get(rank, {}):
            sums.setdefault((rank, role, peer), _Waits()).add(step, count, total, most)
    return [
        _make_row(rank, role, peer, 1, 1, RANKS, waits_for_peer, steps[rank])
        for (rank, role, peer), waits_for_peer in sums.items()
    ]


def _make_row(
    rank: int,
    role: str,
    peer: int,
    is_global: int,
    captured: int | None,
    source: str,
    waits: _Waits,
    steps: Mapping[int, int],
) -> PeerWaits:
    """Return the row of a rank and a peer. `source`: what names the peer; `steps`: of the rank, how many each number
    stands for.
    """
    return PeerWaits(
        rank=rank,
        role=role,
        peer=peer,
        is_global=is_global,
        captured=captured,
        calls=median_of_steps(waits.calls, steps),
        wait_ns=median_of_steps(waits.wait_ns, steps),
        longest_ns=waits.longest_ns,
        told_by=source,
        of_steps=waits.wait_ns,
        is_usual=len(waits.wait_ns) >= _USUALLY * len(steps),
    )


def name_peer(row: PeerRow) -> str:
    """Return what a peer is called: by its number in the job where that is proved, else by its place in the group."""
    name = f"rank {row.peer}" if row.is_global else f"rank {row.peer} of the group"
    return f"{name}, which was not captured," if row.captured == 0 else name


def find_absent_rank(peers: Sequence[PeerRow], step_ns: Mapping[int, float | None]) -> tuple[str, float]:
    """Return the sentence about a rank that was not captured and that all captured ranks wait for, 10 % of their step
    or more, and how long the median one of them does; "" and 0 for none. Waits are medians of the steps; `step_ns`: of
    each captured rank.
    """
    waits: dict[tuple[int, int], dict[int, float]] = {}
    rows: dict[tuple[int, int], PeerRow] = {}
    for row in peers:
        if row.captured == 0 and row.wait_ns:
            key = (row.peer, row.is_global)
            rows[key] = row
            of_ranks = waits.setdefault(key, {})
            of_ranks[row.rank] = of_ranks.get(row.rank, 0.0) + row.wait_ns
    much = {}
    for key, of_ranks in waits.items():
        # of a rank whose step is not known no waiting is much
        if all(of_ranks.get(rank, 0.0) >= MUCH * (step or np.inf) for rank, step in step_ns.items()):
            much[key] = of_ranks
    if not much:
        return "", 0.0
    key = max(much, key=lambda one: (sum(much[one].values()), one))
    parts = [f"rank {rank} for {format_ns(wait)}" for rank, wait in _longest_first(much[key])]
    return f"{name_peer(rows[key])} is waited for: {', '.join(parts)}", float(np.median([*much[key].values()]))


def _longest_first(waits: Mapping[int, float]) -> Iterator[tuple[int, float]]:
    yield from sorted(waits.items(), key=lambda pair: (-pair[1], pair[0]))[:_NAMED]


def remark_on_one_step(peers: Sequence[PeerWaits], step_ns: float) -> Iterator[str]:
    """Yield a sentence where a rank waits for another one for three usual steps or longer in one step alone, and
    not at all in most steps: the longest such waiting. `step_ns`: the usual step.
    """
    least_ns = max(1.0, _MUCH_AT_ONCE * step_ns)
    found: list[tuple[float, int, PeerWaits]] = []
    for row in peers:
        long = [(ns, step) for step, ns in row.of_steps.items() if ns is not None and ns >= least_ns]
        if not row.wait_ns and len(long) == 1:
            found.append((*long[0], row))
    if found:
        ns, step, row = max(found, key=lambda one: (one[0], -one[2].rank))
        yield f"In step {step} only, rank {row.rank} waits {format_ns(ns)} for {name_peer(row).removesuffix(',')}."


def remarks_on(peers: Sequence[PeerRow], late: Sequence[int]) -> Iterator[str]:
    """Yield who waits for the ranks that are called slow, a sentence."""
    waits: dict[int, float] = {}
    for row in peers:
        if row.peer in late and row.is_global and row.wait_ns and row.rank not in late:
            waits[row.rank] = waits.get(row.rank, 0.0) + row.wait_ns
    if waits:
        least, most = min(waits.values()), max(waits.values())
        who = f"rank {min(waits)} waits" if len(waits) == 1 else f"ranks {format_numbers(sorted(waits))} wait"
        shortest, longest = format_ns(least), format_ns(most)
        much = longest if shortest == longest else f"{shortest} to {longest}"
        yield f"In collectives {who} {much} a step for {'it' if len(late) == 1 else 'them'}."
