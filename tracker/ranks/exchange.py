"""What the ranks send each other: by parallel type, by process group, call by call, and over which link."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.compare.collectives import links_of_side
from tracker.compare.side import GRAIN
from tracker.profile import MISSING
from tracker.results import LINK, SLOW, ShowOptions
from tracker.results.cluster import BalanceRow, CallRow, GroupRow, RankLinkRow, RankRow, RoleRow
from tracker.schema.column_names import BYTES, KIND, RANK, STEP, STEPS
from tracker.store import queries
from tracker.store.calls.splitting import PIPELINE, RunCalls, collectives, is_between_stages
from tracker.table import sort_distinct
from tracker.units import format_numbers

if TYPE_CHECKING:
    from tracker.columns import F64, I64
    from tracker.compare.side import LoadedSide
    from tracker.store.calls.groups import Group

_LONGEST: Final = 1_000
"""Calls that are listed."""
_LINK_BYTES: Final = 1_000_000
"""Links that moved less say nothing of their bandwidth."""
_FEWEST_LINKS: Final = 4
_WEAK: Final = 0.9
"""Bandwidth of a slow link, at most, by the median of its transport."""
_Z: Final = 3.0
_MAD: Final = 1.4826
"""Median absolute deviation -> standard deviation of a normal distribution."""
_BUS: Final[Mapping[str, Callable[[int], float]]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    **dict.fromkeys(("broadcast", "reduce"), lambda n: 1.0),
}
"""Kind -> bus bandwidth by algorithm bandwidth, of n ranks: nccl-tests, doc/PERFORMANCE.md. Only kinds whose payload is
the same on all ranks: of a gather or scatter, profilers record a part or the whole."""


class RankWaits(Struct, frozen=True):
    """What a rank waits, in ns: medians over its steps, None where a call of any step does not know it.

    `wait_ns`: for other ranks; `bubble_ns`: for other stages, exposed; `exposed_wait_ns`: what no compute hides of the
    rest.
    """

    wait_ns: float | None = None
    bubble_ns: float | None = None
    exposed_wait_ns: float | None = None


NO_WAITS: Final = RankWaits()


class _StepSums:
    """Numbers added up by step: the sum of a step is not known where any part of it is not."""

    def __init__(self) -> None:
        self.of_steps: dict[int, float | None] = {}

    def add(self, step: int, value: float | None) -> None:
        before = self.of_steps.get(step, 0.0)
        self.of_steps[step] = None if value is None or before is None else before + value


class _RoleSums:
    """The communication of a rank in groups of one role, by step."""

    def __init__(self) -> None:
        self.calls = _StepSums()
        self.total_ns = _StepSums()
        self.exposed_ns = _StepSums()
        self.wait_ns = _StepSums()


class _WaitSums:
    """What a rank waits, by step, as `RankWaits` says; and whether it talks to other stages."""

    def __init__(self) -> None:
        self.wait_ns = _StepSums()
        self.bubble_ns = _StepSums()
        self.exposed_wait_ns = _StepSums()
        self.has_pipeline = False


class _GroupCalls(Struct, frozen=True, eq=False):
    """The calls of one kind that a rank makes in a group. `bus_speeds`: of those whose bandwidth is known."""

    calls: int
    bytes: int | None
    elapse_ns: int
    transit_ns: int | None
    exposed_ns: int | None
    bus_speeds: F64


def steps_of_ranks(side: LoadedSide) -> dict[int, dict[int, int]]:
    """Return of each captured rank its steps: how many each row of them stands for, by number. A rank without steps has
    none.
    """
    found: dict[int, dict[int, int]] = {rank: {} for rank in side.captures.listed(RANK)}
    for rank, step, count in side.steps.rows(RANK, STEP, STEPS):
        found.setdefault(rank, {})[step] = count
    return found


def median_of_steps(of_steps: Mapping[int, float | None], steps: Mapping[int, int]) -> float | None:
    """Return the median over the steps of a rank of sums, of which a step that has none counts as 0; None where a sum
    is not known. `steps`: how many steps each number stands for.
    """
    if None in of_steps.values() or not steps:
        return None
    return float(np.median([(of_steps.get(step) or 0.0) / count for step, count in steps.items()]))


def role_rows(side: LoadedSide, steps: Mapping[int, Mapping[int, int]]) -> list[RoleRow]:
    """Return the communication of each rank by the role of its groups, medians over its steps; `steps`: of each
    rank.
    """
    sums: dict[tuple[str, int], _RoleSums] = {}
    columns = ("group_role", "rank", "step", "calls", "total_ns", "exposed_ns", "wait_ns")
    communication = side.query(queries.communication, by=GRAIN)
    for role, rank, step, calls, total, exposed, wait in communication.rows(*columns):
        if step not in steps.get(rank, {}):
            continue
        of_role = sums.setdefault((role or "unknown", rank), _RoleSums())
        of_role.calls.add(step, calls)
        of_role.total_ns.add(step, total)
        of_role.exposed_ns.add(step, exposed)
        of_role.wait_ns.add(step, wait)
    rows = []
    for (role, rank), of_role in sorted(sums.items(), key=lambda pair: pair[0]):
        own_steps = steps[rank]
        total_ns = median_of_steps(of_role.total_ns.of_steps, own_steps)
        exposed_ns = median_of_steps(of_role.exposed_ns.of_steps, own_steps)
        row = RoleRow(
            role=role,
            rank=rank,
            calls=median_of_steps(of_role.calls.of_steps, own_steps),
            total_ns=total_ns,
            exposed_ns=exposed_ns,
            exposed_share=exposed_ns / total_ns if total_ns and exposed_ns is not None else None,
            wait_ns=median_of_steps(of_role.wait_ns.of_steps, own_steps),
        )
        rows.append(row)
    return rows


def waits_of_ranks(side: LoadedSide, steps: Mapping[int, Mapping[int, int]]) -> dict[int, RankWaits]:
    """Return what each rank waits that has communication in its steps; another rank has no entry."""
    sums: dict[int, _WaitSums] = {}
    columns = ("rank", "step", "group_role", "kind", "wait_ns", "exposed_wait_ns")
    for rank, step, role, kind, wait, bare in side.query(queries.communication, by=GRAIN).rows(*columns):
        if step not in steps.get(rank, {}):
            continue
        of_rank = sums.setdefault(rank, _WaitSums())
        is_bubble = is_between_stages(role, kind)
        of_rank.has_pipeline |= role == PIPELINE
        exposed = wait if bare is None else bare
        of_rank.wait_ns.add(step, wait)
        of_rank.bubble_ns.add(step, exposed if is_bubble else 0)
        of_rank.exposed_wait_ns.add(step, 0 if is_bubble else exposed)
    waits = {}
    for rank, of_rank in sums.items():
        waits[rank] = RankWaits(
            median_of_steps(of_rank.wait_ns.of_steps, steps[rank]),
            median_of_steps(of_rank.bubble_ns.of_steps, steps[rank]) if of_rank.has_pipeline else None,
            median_of_steps(of_rank.exposed_wait_ns.of_steps, steps[rank]),
        )
    return waits


def calls_of(side: LoadedSide) -> RunCalls:
    """Return the collective calls of the run of a side."""
    with side.store.connect() as connection:
        return collectives(connection, side.run_ids[0])


def group_rows(found: RunCalls, chosen: Sequence[int]) -> list[GroupRow]:
    """Return a row per process group and kind, over the whole capture and its captured ranks, the most waiting
    first.
    """
    by_group: dict[tuple[int, str], dict[int, _GroupCalls]] = {}
    for rank in sorted(set(found.calls) & set(chosen)):
        calls, kinds, transit = found.calls[rank], found.kinds[rank], found.transit_ns[rank]
        keys = np.array([f"{group} {kind}" for group, kind in zip(calls.group.tolist(), kinds.tolist(), strict=True)])
        for key in sort_distinct(keys).tolist() if len(keys) else ():
            group, _, kind = key.partition(" ")
            at = np.flatnonzero(keys == key)
            of_kind = _GroupCalls(
                calls=len(at),
                bytes=_sum(calls.bytes[at]),
                # the time of a call is always known
                elapse_ns=int(calls.elapse_ns[at].sum()),
                transit_ns=_sum(transit[at]),
                exposed_ns=_sum(calls.exposed_ns[at]),
                bus_speeds=_bus_speeds(kind, found.groups[int(group)].ranks, calls.bytes[at], transit[at]),
            )
            by_group.setdefault((int(group), kind), {})[rank] = of_kind
    rows = [_make_group_row(found.groups[number], kind, ranks) for (number, kind), ranks in by_group.items()]
    rows.sort(key=lambda row: (-(row.wait_ns or 0), -row.elapse_ns, row.role, row.ranks, row.kind))
    return rows


def _make_group_row(group: Group, kind: str, by_rank: Mapping[int, _GroupCalls]) -> GroupRow:
    """Return the row of the calls of one kind in a group. `by_rank`: those of each captured member."""
    waits = {rank: own.elapse_ns - own.transit_ns for rank, own in by_rank.items() if own.transit_ns is not None}
    is_whole = len(by_rank) == len(group.ranks) > 0
    is_known = is_whole and len(group.ranks) > 1 and len(waits) == len(by_rank)
    speeds = np.concatenate([own.bus_speeds for own in by_rank.values()])
    transits = [own.transit_ns for own in by_rank.values() if own.transit_ns is not None]
    return GroupRow(
        role=group.role or "unknown",
        ranks=format_numbers(group.ranks or sorted(by_rank)),
        kind=kind,
        calls=max(own.calls for own in by_rank.values()),
        bytes=_total(own.bytes for own in by_rank.values()),
        elapse_ns=sum(own.elapse_ns for own in by_rank.values()),
        transit_ns=max(transits) if is_known else None,
        wait_ns=sum(waits.values()) if is_known else None,
        most_wait_rank=max(waits, key=lambda rank: (waits[rank], -rank)) if is_known else None,
        exposed_ns=_total(own.exposed_ns for own in by_rank.values()),
        bus_gb_per_s=float(np.median(speeds)) if len(speeds) else None,
        complete=int(is_whole),
        captured=len(by_rank),
    )


def _bus_speeds(kind: str, ranks: Sequence[int], sizes: I64, transit: I64) -> F64:
    """GB (1e9 bytes) per second of each call of 1 MB or more; none of kinds that _BUS does not name."""
    count = len(ranks)
    known = (sizes != MISSING) & (sizes >= _LINK_BYTES) & (transit != MISSING) & (transit > 0)
    if count < 2 or kind not in _BUS:
        return np.zeros(0)
    found: F64 = sizes[known] / transit[known] * _BUS[kind](count)
    return found


def _sum(values: I64) -> int | None:
    """Return the sum of numbers, None where one of them is missing."""
    return None if (values == MISSING).any() else int(values.sum())


def _total(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def call_rows(found: RunCalls) -> tuple[list[CallRow], dict[int, int]]:
    """Return the longest calls of complete groups, with the rank that came last; and how often each rank did.

    Starts are compared on one clock: that of the first member, where the clocks of hosts differ. Captures without a
    date have no common clock: which of their ranks came last is not known.
    """
    rows: list[CallRow] = []
    late: dict[int, int] = {}
    for matched in found.matched:
        if not matched.places.shape[1]:
            continue
        columns = [
            (found.calls[rank].start_ns[places] - ahead, found.calls[rank].elapse_ns[places])
            for rank, places, ahead in zip(matched.ranks, matched.places, matched.ahead_ns, strict=True)
        ]
        starts, elapse = (np.stack([column[at] for column in columns]) for at in (0, 1))
        last = starts.argmax(axis=0)
        has_clock = found.without_clock.isdisjoint(matched.ranks)
        is_alone = has_clock & ((starts == starts.max(axis=0)).sum(axis=0) == 1)
        for place in last[is_alone].tolist():
            late[matched.ranks[place]] = late.get(matched.ranks[place], 0) + 1
        first, places = matched.ranks[0], matched.places[0]
        calls, kinds = found.calls[first], found.kinds[first]
        longest = np.argsort(-elapse.max(axis=0), kind="stable")[:_LONGEST]
        for at in longest.tolist():
            place = int(places[at])
            row = CallRow(
                role=found.groups[int(calls.group[place])].role or "unknown",
                ranks=format_numbers(matched.ranks),
                kind=str(kinds[place]),
                order=place,
                step=int(calls.step[place]),
                bytes=None if calls.bytes[place] == MISSING else int(calls.bytes[place]),
                elapse_ns=int(elapse[:, at].max()),
                transit_ns=int(elapse[:, at].min()),
                last_rank=int(matched.ranks[int(last[at])]) if is_alone[at] else None,
                late_ns=int(starts[:, at].max() - starts[:, at].min()) if has_clock else None,
            )
            rows.append(row)
    rows.sort(key=lambda row: (-row.elapse_ns, row.ranks, row.kind, row.order))
    return rows[:_LONGEST], late


def link_rows(side: LoadedSide) -> list[RankLinkRow]:
    """Return the links between ranks, over all collectives and the whole capture; slow ones against those of their
    transport, never against others.
    """
    table = links_of_side(side, ShowOptions(), (), in_steps=False)
    sums: dict[tuple[str, int, int], tuple[int, int]] = {}
    columns = ("level", "transport", "source_rank", "target_rank", "bytes", "transit_ns")
    for level, transport, source, target, size, transit in table.rows(*columns) if len(table) else ():
        if level != LINK or size is None or transit is None or source == target:
            continue
        bytes_before, transit_before = sums.get((transport, source, target), (0, 0))
        sums[transport, source, target] = bytes_before + int(size), transit_before + int(transit)
    by_transport: dict[str, list[RankLinkRow]] = {}
    for (transport, source, target), (size, transit) in sorted(sums.items()):
        link = RankLinkRow(
            transport=transport,
            source_rank=source,
            target_rank=target,
            bytes=size,
            transit_ns=transit,
            bandwidth_gb_per_s=size / transit if transit else None,
        )
        by_transport.setdefault(transport, []).append(link)
    rows: list[RankLinkRow] = []
    for links in by_transport.values():
        rows += _judge_links(links)
    rows.sort(key=lambda row: (row.verdict is None, -(row.z or 0.0), row.transport))
    return rows


def _judge_links(links: Sequence[RankLinkRow]) -> list[RankLinkRow]:
    """Return the links of one transport with the score and the verdict of those that moved enough, if these are
    enough.
    """
    speeds: dict[int, float] = {}
    for at, link in enumerate(links):
        if link.bytes >= _LINK_BYTES and link.bandwidth_gb_per_s:
            speeds[at] = link.bandwidth_gb_per_s
    if len(speeds) < _FEWEST_LINKS:
        return [*links]
    values = np.array([*speeds.values()])
    middle = float(np.median(values))
    deviation = _MAD * float(np.median(np.abs(values - middle)))
    scored = [*links]
    for at, speed in speeds.items():
        z = _score_speed(speed, middle, deviation)
        is_slow = speed < _WEAK * middle and z > _Z
        scored[at] = replace(links[at], z=z if np.isfinite(z) else None, verdict=SLOW if is_slow else None)
    compared = [scored[at] for at in speeds]
    return [replace(link, place=_find_slow_end(link, compared)) if link.verdict else link for link in scored]


def _score_speed(speed: float, middle: float, deviation: float) -> float:
    """Return by how many deviations a link is slower than the median one; infinite where all others are equal."""
    if deviation:
        return (middle - speed) / deviation
    return 0.0 if speed == middle else float("inf")


def _find_slow_end(slow: RankLinkRow, compared: Sequence[RankLinkRow]) -> str:
    """Return what a slow link shares with others that are slow: its sender or its receiver, where all links of that
    rank are; else `link`. `compared`: all links of its transport that have a score.
    """
    from_source = [link for link in compared if link.source_rank == slow.source_rank]
    to_target = [link for link in compared if link.target_rank == slow.target_rank]
    if len(from_source) > 1 and all(link.verdict for link in from_source):
        return "sender"
    if len(to_target) > 1 and all(link.verdict for link in to_target):
        return "receiver"
    return "link"


def balance_rows(side: LoadedSide, ranks: Sequence[RankRow]) -> list[BalanceRow]:
    """Return the largest rank by the mean of its stage: time of its compute, bytes of all_to_all, peak memory."""
    sent: dict[int, float] = {}
    exchanged = side.query(queries.communication, by=("rank",), in_steps=False)
    for rank, kind, size in exchanged.rows(RANK, KIND, BYTES):
        if kind == "all_to_all" and size is not None:
            sent[rank] = sent.get(rank, 0.0) + size
    quantities: Mapping[tuple[str, str], Mapping[int, float | None]] = {
        ("compute", "ns"): {row.rank: row.compute_ns for row in ranks},
        ("all_to_all", "bytes"): sent,
        ("peak memory", "bytes"): {row.rank: row.peak_allocated_bytes for row in ranks},
    }
    rows = []
    for stage in dict.fromkeys(row.stage for row in ranks):
        members = [row.rank for row in ranks if row.stage == stage]
        for (quantity, unit), of_ranks in quantities.items():
            values: dict[int, float] = {}
            for rank in members:
                value = of_ranks.get(rank)
                if value is not None:
                    values[rank] = float(value)
            if len(values) < 2 or not any(values.values()):
                continue
            mean = float(np.mean([*values.values()]))
            largest = max(values, key=lambda rank: (values[rank], -rank))
            row = BalanceRow(
                stage=stage,
                quantity=quantity,
                unit=unit,
                ranks=len(values),
                mean=mean,
                max=values[largest],
                max_rank=largest,
                imbalance=values[largest] / mean,
            )
            rows.append(row)
    return rows
