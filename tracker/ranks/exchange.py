"""What the ranks send each other: by parallel type, by process group, call by call, and over which link."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracker.compare.collectives import links_of_side
from tracker.compare.side import GRAIN
from tracker.profile import MISSING
from tracker.results import LINK, SLOW, ShowOptions
from tracker.store import queries
from tracker.store.calls.splitting import PIPELINE, RunCalls, collectives, is_between_stages
from tracker.table import sort_distinct
from tracker.units import format_numbers

if TYPE_CHECKING:
    from tracker.columns import F64, I64
    from tracker.compare.side import LoadedSide

Row = dict[str, Any]
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


def steps_of_ranks(side: LoadedSide) -> dict[int, dict[int, int]]:
    """Return of each captured rank its steps: how many each row of them stands for, by number. A rank without steps has
    none.
    """
    found: dict[int, dict[int, int]] = {rank: {} for rank in side.captures.listed("rank")}
    for rank, step, count in side.steps.rows("rank", "step", "steps"):
        found.setdefault(rank, {})[step] = count
    return found


def median_of_steps(of_steps: Mapping[int, float | None], steps: Mapping[int, int]) -> float | None:
    """Return the median over the steps of a rank of sums, of which a step that has none counts as 0; None where a sum
    is not known. `steps`: how many steps each number stands for.
    """
    if None in of_steps.values() or not steps:
        return None
    return float(np.median([(of_steps.get(step) or 0.0) / count for step, count in steps.items()]))


def role_rows(side: LoadedSide, steps: Mapping[int, Mapping[int, int]]) -> list[Row]:
    """Communication of each rank by the role of its groups, medians over its steps; `steps`: of each rank."""
    names = ("calls", "total_ns", "exposed_ns", "wait_ns")
    sums: dict[tuple[str, int], dict[str, dict[int, float | None]]] = {}
    columns = ("group_role", "rank", "step", *names)
    for role, rank, step, *values in side.query(queries.communication, by=GRAIN).rows(*columns):
        if step not in steps.get(rank, {}):
            continue
        own = sums.setdefault((role or "unknown", rank), {name: {} for name in names})
        for name, value in zip(names, values, strict=True):
            _add(own[name], step, value)
    rows = []
    for (role, rank), own in sorted(sums.items()):
        row: Row = {"role": role, "rank": rank}
        row |= {name: median_of_steps(own[name], steps[rank]) for name in names}
        known = row["total_ns"] and row["exposed_ns"] is not None
        rows.append(row | {"exposed_share": row["exposed_ns"] / row["total_ns"] if known else None})
    return rows


def _add(sums: dict[int, float | None], step: int, value: float | None) -> None:
    """Add a value to the sum of a step, which is not known where any part is not."""
    before = sums.get(step, 0.0)
    sums[step] = None if value is None or before is None else before + value


def waits_of_ranks(side: LoadedSide, steps: Mapping[int, Mapping[int, int]]) -> dict[int, Row]:
    """Return of each rank with steps its waiting for others, that for other stages, and what of the rest no compute
    hides: medians over its steps, None where a call of any step does not know it. A rank without calls waits for
    nobody, and has no bubble.
    """
    names = ("wait_ns", "bubble_ns", "exposed_wait_ns")
    sums: dict[int, dict[str, dict[int, float | None]]] = {}
    with_pipeline: set[int] = set()
    columns = ("rank", "step", "group_role", "kind", "wait_ns", "exposed_wait_ns")
    for rank, step, role, kind, wait, bare in side.query(queries.communication, by=GRAIN).rows(*columns):
        if step not in steps.get(rank, {}):
            continue
        own = sums.setdefault(rank, {name: {} for name in names})
        is_bubble = is_between_stages(role, kind)
        if role == PIPELINE:
            with_pipeline.add(rank)
        exposed = wait if bare is None else bare
        _add(own["wait_ns"], step, wait)
        _add(own["bubble_ns"], step, exposed if is_bubble else 0)
        _add(own["exposed_wait_ns"], step, 0 if is_bubble else exposed)
    found: dict[int, Row] = {}
    for rank, own in sums.items():
        row: Row = {name: median_of_steps(own[name], steps[rank]) for name in names}
        found[rank] = row if rank in with_pipeline else row | {"bubble_ns": None}
    return found


def calls_of(side: LoadedSide) -> RunCalls:
    """The collective calls of the run of a side."""
    with side.store.connect() as connection:
        return collectives(connection, side.run_ids[0])


def group_rows(found: RunCalls, chosen: Sequence[int]) -> list[Row]:
    """A row per process group and kind, over the whole capture and its captured ranks, the most waiting first."""
    sums: dict[tuple[int, str], dict[int, list[Any]]] = {}
    for rank in sorted(set(found.calls) & set(chosen)):
        calls, kinds, transit = found.calls[rank], found.kinds[rank], found.transit_ns[rank]
        keys = np.array([f"{group} {kind}" for group, kind in zip(calls.group.tolist(), kinds.tolist(), strict=True)])
        for key in sort_distinct(keys).tolist() if len(keys) else ():
            group, _, kind = key.partition(" ")
            at = np.flatnonzero(keys == key)
            own = [_sum(values[at]) for values in (calls.bytes, calls.elapse_ns, transit, calls.exposed_ns)]
            speeds = _bus_speeds(kind, found.groups[int(group)].ranks, calls.bytes[at], transit[at])
            sums.setdefault((int(group), kind), {})[rank] = [len(at), *own, speeds]
    rows = []
    for (number, kind), by_rank in sums.items():
        group = found.groups[number]
        waits = {rank: own[2] - own[3] for rank, own in by_rank.items() if own[3] is not None}
        is_whole = len(by_rank) == len(group.ranks) > 0
        known = is_whole and len(group.ranks) > 1 and len(waits) == len(by_rank)
        speeds = np.concatenate([own[5] for own in by_rank.values()])
        rows.append(
            {
                "role": group.role or "unknown", "ranks": format_numbers(group.ranks or sorted(by_rank)), "kind": kind,
                "calls": max(own[0] for own in by_rank.values()), "bytes": _total(own[1] for own in by_rank.values()),
                "elapse_ns": sum(own[2] for own in by_rank.values()),
                "transit_ns": max(own[3] for own in by_rank.values()) if known else None,
                "wait_ns": sum(waits.values()) if known else None,
                "most_wait_rank": max(waits, key=lambda rank: (waits[rank], -rank)) if known else None,
                "exposed_ns": _total(own[4] for own in by_rank.values()),
                "bus_gb_per_s": float(np.median(speeds)) if len(speeds) else None,
                "complete": int(is_whole), "captured": len(by_rank),
            }
        )  # fmt: skip
    rows.sort(key=lambda row: (-(row["wait_ns"] or 0), -row["elapse_ns"], row["role"], row["ranks"], row["kind"]))
    return rows


def _bus_speeds(kind: str, ranks: Sequence[int], sizes: I64, transit: I64) -> F64:
    """GB (1e9 bytes) per second of each call of 1 MB or more; none of kinds that _BUS does not name."""
    count = len(ranks)
    known = (sizes != MISSING) & (sizes >= _LINK_BYTES) & (transit != MISSING) & (transit > 0)
    if count < 2 or kind not in _BUS:
        return np.zeros(0)
    found: F64 = sizes[known] / transit[known] * _BUS[kind](count)
    return found


def _sum(values: I64) -> int | None:
    return None if (values == MISSING).any() else int(values.sum())


def _total(values: Any) -> int | None:
    listed = list(values)
    return None if None in listed else sum(listed)


def call_rows(found: RunCalls) -> tuple[list[Row], dict[int, int]]:
    """The longest calls of complete groups, with the rank that came last; and how often each rank did.

    Starts are compared on one clock: that of the first member, where the clocks of hosts differ. Captures without a
    date have no common clock: which of their ranks came last is not known.
    """
    rows: list[Row] = []
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
            group = found.groups[int(calls.group[place])]
            rows.append(
                {
                    "role": group.role or "unknown", "ranks": format_numbers(matched.ranks),
                    "kind": str(kinds[place]), "order": place, "step": int(calls.step[place]),
                    "bytes": None if calls.bytes[place] == MISSING else int(calls.bytes[place]),
                    "elapse_ns": int(elapse[:, at].max()), "transit_ns": int(elapse[:, at].min()),
                    "last_rank": int(matched.ranks[int(last[at])]) if is_alone[at] else None,
                    "late_ns": int(starts[:, at].max() - starts[:, at].min()) if has_clock else None,
                }
            )  # fmt: skip
    rows.sort(key=lambda row: (-row["elapse_ns"], row["ranks"], row["kind"], row["order"]))
    return rows[:_LONGEST], late


def link_rows(side: LoadedSide) -> list[Row]:
    """The links between ranks, over all collectives and the whole capture; slow ones against those of their transport,
    never against others.
    """
    table = links_of_side(side, ShowOptions(), (), in_steps=False)
    table = table.taken(table["level"] == LINK) if len(table) else table
    sums: dict[tuple[str, int, int], list[float]] = {}
    columns = ("transport", "source_rank", "target_rank", "bytes", "transit_ns")
    for transport, source, target, size, transit in table.rows(*columns) if len(table) else ():
        if size is not None and transit is not None and source != target:
            both = sums.setdefault((transport, source, target), [0, 0])
            both[:] = both[0] + size, both[1] + transit
    rows: list[Row] = [
        {
            "transport": transport, "source_rank": source, "target_rank": target, "bytes": int(size),
            "transit_ns": int(transit), "bandwidth_gb_per_s": size / transit if transit else None,
        }
        for (transport, source, target), (size, transit) in sorted(sums.items())
    ]  # fmt: skip
    for transport in dict.fromkeys(row["transport"] for row in rows):
        own = [row for row in rows if row["transport"] == transport]
        _judge_links([row for row in own if row["bytes"] >= _LINK_BYTES and row["bandwidth_gb_per_s"]])
    rows.sort(key=lambda row: (row.get("verdict") is None, -(row.get("z") or 0.0), row["transport"]))
    return rows


def _judge_links(rows: Sequence[Row]) -> None:
    if len(rows) < _FEWEST_LINKS:
        return
    speeds = np.array([row["bandwidth_gb_per_s"] for row in rows])
    middle = float(np.median(speeds))
    deviation = _MAD * float(np.median(np.abs(speeds - middle)))
    for row, speed in zip(rows, speeds.tolist(), strict=True):
        row["z"] = (middle - speed) / deviation if deviation else 0.0 if speed == middle else float("inf")
        if speed < _WEAK * middle and row["z"] > _Z:
            row["verdict"] = SLOW
        if not np.isfinite(row["z"]):
            row["z"] = None
    for row in rows:
        if row.get("verdict"):
            of_source, of_target = (
                [one for one in rows if one[end] == row[end]] for end in ("source_rank", "target_rank")
            )
            place = "link"
            if len(of_target) > 1 and all(one.get("verdict") for one in of_target):
                place = "receiver"
            if len(of_source) > 1 and all(one.get("verdict") for one in of_source):
                place = "sender"
            row["place"] = place


def balance_rows(side: LoadedSide, ranks: Sequence[Row]) -> list[Row]:
    """The largest rank by the mean of its stage: time of its compute, bytes of all_to_all, peak memory."""
    sent: dict[int, float] = {}
    exchanged = side.query(queries.communication, by=("rank",), in_steps=False)
    for rank, kind, size in exchanged.rows("rank", "kind", "bytes"):
        if kind == "all_to_all" and size is not None:
            sent[rank] = sent.get(rank, 0.0) + size
    quantities: Mapping[tuple[str, str], Mapping[int, Any]] = {
        ("compute", "ns"): {row["rank"]: row.get("compute_ns") for row in ranks},
        ("all_to_all", "bytes"): sent,
        ("peak memory", "bytes"): {row["rank"]: row.get("peak_allocated_bytes") for row in ranks},
    }
    rows = []
    for stage in dict.fromkeys(row["stage"] for row in ranks):
        members = [row["rank"] for row in ranks if row["stage"] == stage]
        for (quantity, unit), values in quantities.items():
            own = {rank: float(values[rank] or 0.0) for rank in members if values.get(rank) is not None}
            if len(own) < 2 or not any(own.values()):
                continue
            mean, most = float(np.mean([*own.values()])), max(own, key=lambda rank: (own[rank], -rank))
            rows.append(
                {
                    "stage": stage, "quantity": quantity, "unit": unit, "ranks": len(own), "mean": mean,
                    "max": own[most], "max_rank": most, "imbalance": own[most] / mean,
                }
            )  # fmt: skip
    return rows
