"""Who waits for whom: of each rank the time that it waits for each other one, captured or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracker.store import queries
from tracker.store.calls.lateness import counts_as_job, sum_waits_for_last
from tracker.units import format_ns, format_numbers

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide
    from tracker.store.calls.splitting import RunCalls

Row = dict[str, Any]
TASKS: Final = "tasks"
RANKS: Final = "ranks"
"""What names the rank that is waited for: the tasks of a collective, or who of its group comes last."""
_MUCH: Final = 0.10
"""Waiting for one rank by the step, from which on that rank is named."""
_NAMED: Final = 4


def peer_rows(side: LoadedSide, calls: RunCalls, steps: Mapping[int, int]) -> list[Row]:
    """Return how long each rank waits for each other one, mean of a step, the longest first. `steps`: of each rank, 0
    for none.

    A rank whose tasks name their peers waits for these, for several at once; another one waits in each call of a group
    that is captured whole for the rank that comes last. is_global: 0 where the peer is a place in a group whose members
    are not known; captured: None where that cannot be told.
    """
    rows = _rows_of_tasks(side, calls)
    with_tasks = {row["rank"] for row in rows}
    of_calls = _rows_of_calls(calls, side.chosen_steps)
    rows += [row for row in of_calls if row["rank"] in steps and row["rank"] not in with_tasks]
    for row in rows:
        count = steps[row["rank"]]
        row["calls"] = row["calls"] / count if count else None
        row["wait_ns"] = row["wait_ns"] / count if count else None
    rows.sort(key=lambda row: (-(row["wait_ns"] or 0.0), row["rank"], row["role"], row["peer"]))
    return rows


def _rows_of_tasks(side: LoadedSide, calls: RunCalls) -> list[Row]:
    sums: dict[tuple[int, str, int, int], list[int]] = {}
    columns = ("rank", "group_role", "peer", "is_global", "calls", "total_ns", "max_ns")
    for rank, role, peer, is_global, count, total, most in side.query(queries.communication_waits, by=("rank",)).rows(
        *columns
    ):
        found = sums.setdefault((rank, role or "unknown", peer, is_global), [0, 0, 0])
        found[:] = found[0] + count, found[1] + total, max(found[2], most)
    captured = set(calls.calls)
    return [
        {
            "rank": rank, "role": role, "peer": peer, "is_global": is_global,
            "captured": int(peer in captured) if is_global or counts_as_job(calls, rank, role, peer) else None,
            "calls": count, "wait_ns": total, "longest_ns": most, "told_by": TASKS,
        }
        for (rank, role, peer, is_global), (count, total, most) in sums.items()
    ]  # fmt: skip


def _rows_of_calls(calls: RunCalls, chosen_steps: Sequence[int] | None) -> list[Row]:
    """Return what the ranks of whole groups wait for the last one of each call in these steps (None: all), where their
    clocks can be compared.
    """
    sums: dict[tuple[int, str, int], list[int]] = {}
    columns = ("rank", "step", "role", "peer", "calls", "ns", "longest_ns")
    for rank, step, role, peer, count, total, most in sum_waits_for_last(calls).rows(*columns):
        if step >= 0 if chosen_steps is None else step in chosen_steps:
            found = sums.setdefault((rank, role, peer), [0, 0, 0])
            found[:] = found[0] + count, found[1] + total, max(found[2], most)
    return [
        {
            "rank": rank, "role": role, "peer": peer, "is_global": 1, "captured": 1,
            "calls": count, "wait_ns": total, "longest_ns": most, "told_by": RANKS,
        }
        for (rank, role, peer), (count, total, most) in sums.items()
    ]  # fmt: skip


def name_peer(row: Mapping[str, Any]) -> str:
    """Return what a peer is called: by its number in the job where that is proved, else by its place in the group."""
    name = f"rank {row['peer']}" if row["is_global"] else f"rank {row['peer']} of the group"
    return f"{name}, which was not captured," if row["captured"] == 0 else name


def absent_culprit(peers: Sequence[Mapping[str, Any]], step_ns: Mapping[int, float | None]) -> str:
    """Return the sentence about a rank that was not captured and that all captured ranks wait for, 10 % of their step
    or more; "" for none. Waits are means of a step; `step_ns`: of each captured rank.
    """
    waits: dict[tuple[int, int], dict[int, float]] = {}
    rows: dict[tuple[int, int], Mapping[str, Any]] = {}
    for row in peers:
        if row["captured"] == 0 and row["wait_ns"]:
            key = (row["peer"], row["is_global"])
            rows[key] = row
            own = waits.setdefault(key, {})
            own[row["rank"]] = own.get(row["rank"], 0.0) + row["wait_ns"]
    much = {
        key: own
        for key, own in waits.items()
        if all(own.get(rank, 0.0) >= _MUCH * (step or np.inf) for rank, step in step_ns.items())
    }
    if not much:
        return ""
    key = max(much, key=lambda one: (sum(much[one].values()), one))
    parts = [f"rank {rank} for {format_ns(wait)}" for rank, wait in _longest_first(much[key])]
    return f"{name_peer(rows[key])} is waited for: {', '.join(parts)}"


def _longest_first(waits: Mapping[int, float]) -> Iterator[tuple[int, float]]:
    yield from sorted(waits.items(), key=lambda pair: (-pair[1], pair[0]))[:_NAMED]


def remarks_on(peers: Sequence[Mapping[str, Any]], late: Sequence[int]) -> Iterator[str]:
    """Yield who waits for the ranks that are called slow, a sentence."""
    waits: dict[int, float] = {}
    for row in peers:
        if row["peer"] in late and row["is_global"] and row["wait_ns"] and row["rank"] not in late:
            waits[row["rank"]] = waits.get(row["rank"], 0.0) + row["wait_ns"]
    if waits:
        least, most = min(waits.values()), max(waits.values())
        who = f"rank {min(waits)} waits" if len(waits) == 1 else f"ranks {format_numbers(sorted(waits))} wait"
        shortest, longest = format_ns(least), format_ns(most)
        much = longest if shortest == longest else f"{shortest} to {longest}"
        yield f"In collectives {who} {much} a step for {'it' if len(late) == 1 else 'them'}, on average."
