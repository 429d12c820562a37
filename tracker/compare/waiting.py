"""Exposed communication in two parts, waiting for other ranks and transfers, and the rank that is waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import Columns
from tracker.compare import match
from tracker.compare.collectives import roles_by_size, split_otherwise
from tracker.compare.overall_rows import ExposedWait, group_splits, sum_exposed_wait
from tracker.compare.side import rows_of_captures
from tracker.results import Contribution
from tracker.schema.column_names import EXPOSED_TRANSMIT_NS, EXPOSED_WAIT_NS, NS, PEER, RANK, RUN_ID, STEP
from tracker.store import queries
from tracker.store.calls.lateness import is_number_in_job, sum_waits_for_last
from tracker.store.calls.splitting import RunCalls, collectives
from tracker.table import number_distinct_rows, number_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracker.compare.side import LoadedSide
    from tracker.results import Part

WAIT: Final = EXPOSED_WAIT_NS
TRANSFER: Final = EXPOSED_TRANSMIT_NS
"""`metric` of the two parts."""
_TITLES: Final = {WAIT: "Waiting for other ranks", TRANSFER: "Transfers"}
_MOST_UNCOVERED: Final = 0.1
"""Part of the exposed communication of a step that may lie outside of its collectives: kernels at its edges."""
_LEAST_OF_CHANGE: Final = 0.02
"""Part of the change of the step below which neither part is worth a row."""
_MOST_CAPTURES: Final = 256
"""Captures of a side of which all calls are read to find who comes last."""
_MAIN: Final = 0.5
"""Part of the waiting that is for one rank, from which on it is named."""

_KEY: Final = ("peer", "role", "is_of_group")
"""What tells one rank that is waited for from another one."""

Sides = tuple["LoadedSide", "LoadedSide"]


class _TaskWait(Struct, frozen=True):
    """A row of `queries.communication_waits`. `is_global`: 1 where `peer` is a rank of the job, 0 where it is a place
    in the group.
    """

    run_id: int
    rank: int
    step: int
    group_role: str | None
    peer: int
    is_global: int
    total_ns: int

    @property
    def waited_for(self) -> Peer:
        """The rank that it waits for."""
        return Peer(self.peer) if self.is_global else Peer(self.peer, self.group_role or "", is_of_group=True)


class _Wait(Struct, frozen=True):
    """How long a rank waits for another one in a step. `peer`, `role`, `is_of_group`: for which, as in Peer."""

    run_id: int
    rank: int
    step: int
    role: str
    peer: int
    is_of_group: int
    ns: int

    @property
    def waited_for(self) -> tuple[int, str, int]:
        """For which rank it waits."""
        return self.peer, self.role, self.is_of_group


class Peer(Struct, frozen=True):
    """A rank that others wait for. `role`: of the groups in which `number` is its place; "" where `number` is that of a
    rank of the job.
    """

    number: int
    role: str = ""
    is_of_group: bool = False

    def describe(self, *, is_captured: bool) -> str:
        """Return what it is called."""
        of_group = " of the group" if self.is_of_group else ""
        return f"rank {self.number}{of_group}" if is_captured else f"rank {self.number}{of_group}, not captured"


class PeerWaits(Struct, frozen=True):
    """Waiting for each rank, ns a step, where most steps have any. `absent`: ranks without a capture."""

    of_peer: Mapping[Peer, float]
    absent: frozenset[Peer] = frozenset()


def split_exposed_part(
    part: Part, sides: Sides, delta_ns: float | None, verdict: str | None
) -> tuple[Contribution, ...]:
    """Return the exposed communication of a diff as waiting and transfers, which add up to it; nothing where that is
    not known on both sides, or says next to nothing. `sides`: with the runs that the part is of.

    The verdict of the part stands at the larger of the two that go its way.
    """
    if part.baseline_ns is None or part.candidate_ns is None:
        return ()
    waits = _measure_waits(part, sides)
    if waits is None:
        return ()
    before, after = waits
    wait_delta = after.wait_ns - before.wait_ns
    transfer_delta = part.delta_ns - wait_delta
    least_ns = _LEAST_OF_CHANGE * abs(delta_ns or 0.0)
    if max(abs(wait_delta), abs(transfer_delta)) <= least_ns:
        return ()
    why = _describe_peer(sides, before.wait_ns, after.wait_ns) or "not hidden by compute"
    if before.is_in_proportion or after.is_in_proportion:
        why += " (of calls hidden in part: in proportion)"
    waiting = _make_row(WAIT, wait_delta, before.wait_ns, after.wait_ns, why)
    ends = (part.baseline_ns - before.wait_ns, part.candidate_ns - after.wait_ns)
    transfers = _make_row(TRANSFER, transfer_delta, *ends, "all of exposed communication but waiting")
    if _find_larger(part.delta_ns, wait_delta, transfer_delta) == WAIT:
        return replace(waiting, verdict=verdict), transfers
    return waiting, replace(transfers, verdict=verdict)


def _make_row(metric: str, delta_ns: float, before_ns: float, after_ns: float, why: str) -> Contribution:
    title = _TITLES[metric]
    return Contribution("part", title, delta_ns, why=why, baseline_ns=before_ns, candidate_ns=after_ns, metric=metric)


def _find_larger(delta_ns: float, wait_delta: float, transfer_delta: float) -> str:
    """Return which of the two carries more of the change of both."""
    direction = 1 if delta_ns > 0 else -1
    return WAIT if wait_delta * direction >= transfer_delta * direction else TRANSFER


def _measure_waits(part: Part, sides: Sides) -> tuple[ExposedWait, ExposedWait] | None:
    """Return the waiting of both sides, None where it is not known of one, or measured in another way."""
    roles = roles_by_size(*sides)
    splits = [group_splits(side, own) for side, own in zip(sides, roles, strict=True)]
    if split_otherwise(*splits):
        return None
    found = []
    for side, own, exposed_ns in zip(sides, roles, (part.baseline_ns, part.candidate_ns), strict=True):
        waiting = sum_exposed_wait(side, own)
        if waiting is None or exposed_ns is None:
            return None
        if abs(waiting.exposed_ns - exposed_ns) > _MOST_UNCOVERED * exposed_ns or waiting.wait_ns > exposed_ns:
            return None
        found.append(waiting)
    return found[0], found[1]


def _describe_peer(sides: Sides, before_ns: float, after_ns: float) -> str:
    """Return for which rank the sides wait more, or less, than before, where it is one for most of that; "" else.

    Of the other side it may not be known for whom it waits: then the sentence says of when it speaks.
    """
    before, after = (_sum_peers(side) for side in sides)
    delta = after_ns - before_ns
    if before.of_peer and after.of_peer:
        direction = 1 if delta > 0 else -1
        changes = {}
        for peer in before.of_peer.keys() | after.of_peer.keys():
            changes[peer] = (after.of_peer.get(peer, 0.0) - before.of_peer.get(peer, 0.0)) * direction
        main = _find_main(changes, abs(delta))
        absent = before.absent | after.absent
        return "" if main is None else f"mostly for {main.describe(is_captured=main not in absent)}"
    larger, waiting_ns, when = (after, after_ns, "now") if delta > 0 else (before, before_ns, "before")
    main = _find_main(larger.of_peer, waiting_ns)
    if main is None:
        return ""
    return f"{when} mostly for {main.describe(is_captured=main not in larger.absent)}"


def _find_main(waits: Mapping[Peer, float], whole_ns: float) -> Peer | None:
    """Return the rank of the longest waits, where these are most of the waiting."""
    main = max(waits, key=lambda peer: (waits[peer], -peer.number, peer.role), default=None)
    return main if main is not None and waits[main] > _MAIN * whole_ns >= 0 else None


def _sum_peers(side: LoadedSide) -> PeerWaits:
    """Return the waiting for each rank, by the statistic of every number; nothing of more captures than can be read."""
    if len(side.captures) > _MOST_CAPTURES or side.is_empty(queries.communication):
        return PeerWaits({})
    waits_of_run: dict[int, list[_TaskWait]] = {run_id: [] for run_id in side.run_ids}
    for wait in side.query(queries.communication_waits).structs(_TaskWait):
        if wait.run_id in waits_of_run:
            waits_of_run[wait.run_id].append(wait)
    waits: list[_Wait] = []
    absent: set[Peer] = set()
    for run_id, own in waits_of_run.items():
        with side.store.connect() as connection:
            calls = collectives(connection, run_id)
        waits += _list_waits(run_id, own, calls)
        absent |= _find_absent(own, calls)
    table = _keep_usual(side, rows_of_captures(match.make_table(_Wait, waits), side.captures))
    (numbered,), keys = number_tables([_fill_absent(table)], _KEY)
    times = match.reduce_side(side, numbered, ["ns", "waits"], parts={"ns": "waits"})[NS]
    of_peer = {}
    for (number, role, is_of_group), ns in zip(keys.rows(*_KEY), times.tolist(), strict=True):
        of_peer[Peer(number, role, bool(is_of_group))] = ns
    return PeerWaits(of_peer, frozenset(absent))


def _list_waits(run_id: int, of_tasks: Sequence[_TaskWait], calls: RunCalls) -> list[_Wait]:
    """Return the waits of a run: those that its tasks name, and of ranks whose tasks name none, those for the rank that
    comes last in a call.
    """
    waits = []
    for task in of_tasks:
        peer = task.waited_for
        waits.append(_Wait(run_id, task.rank, task.step, peer.role, peer.number, int(peer.is_of_group), task.total_ns))
    with_tasks = {task.rank for task in of_tasks}
    for rank, step, number, ns in sum_waits_for_last(calls).rows(RANK, STEP, PEER, NS):
        if rank not in with_tasks:
            waits.append(_Wait(run_id, rank, step, "", number, 0, ns))
    return waits


def _find_absent(of_tasks: Sequence[_TaskWait], calls: RunCalls) -> set[Peer]:
    """Return the ranks of the job that tasks wait for and that have no capture."""
    absent = set()
    for task in of_tasks:
        is_known = task.is_global or is_number_in_job(calls, task.rank, task.group_role or "unknown", task.peer)
        if is_known and task.peer not in calls.calls:
            absent.add(task.waited_for)
    return absent


def _keep_usual(side: LoadedSide, table: Columns) -> Columns:
    """Return the waits of a rank for another one that most of its steps have: no single long one stands for them."""
    counts: dict[tuple[int, int], int] = {}
    for run_id, rank in side.steps.rows(RUN_ID, RANK):
        counts[run_id, rank] = counts.get((run_id, rank), 0) + 1
    of_rank = [RUN_ID, RANK, *_KEY]
    steps, first = number_distinct_rows([table[name] for name in (*of_rank, "step")])
    own, _ = number_distinct_rows([table[name][first] for name in of_rank])
    often = np.bincount(own)[own][steps]
    whole = np.array([counts.get(key, 1) for key in table.rows(RUN_ID, RANK)], dtype=np.int64)
    return table.taken(2 * often > whole)


def _fill_absent(table: Columns) -> Columns:
    """Return the waits with those of 0 ns: a rank that waits for others does not wait for this one. `waits`: 1, for
    each rank that waits for any.
    """
    waits = list(table.structs(_Wait))
    known = {(wait.run_id, wait.rank, wait.waited_for) for wait in waits}
    # of which step nothing is waited for makes no difference
    step_of_rank = {(wait.run_id, wait.rank): wait.step for wait in waits}
    for peer in dict.fromkeys(wait.waited_for for wait in waits):
        for (run_id, rank), step in step_of_rank.items():
            if (run_id, rank, peer) not in known:
                number, role, is_of_group = peer
                waits.append(_Wait(run_id, rank, step, role, number, is_of_group, 0))
    return match.make_table(_Wait, waits).having(waits=np.ones(len(waits)))
