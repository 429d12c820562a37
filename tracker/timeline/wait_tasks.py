"""How long collective calls waited for other ranks, and in which of their tasks."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I64, MISSING, CollectiveTasks, CollectiveTimes, Events, Strings, Table
from tracker.table import group_rows, split_rows_by_value
from tracker.timeline.intervals import union

_WAIT = "Notify_Wait"
_SEND = "RDMASend"


class Waits(Struct, frozen=True):
    """What is known of waiting, per row of `Collectives`.

    `of_collective`: the rows in `tasks` of its waiting tasks; `has_tasks`: any task is known, waiting or not;
    `has_peers`: its waiting tasks name the ranks that they wait for.
    `wait_ns`: how long it waited in all: the union of its waiting tasks where they name their peers, else what the
    profiler says, else that union, else MISSING. On a 910B, where a call waits for each peer on a plane of its own, the
    profiler counts the first plane alone: 5.9 ms of 102.
    """

    tasks: CollectiveTasks
    of_collective: dict[int, I64]
    has_tasks: NDArray[np.bool_]
    has_peers: NDArray[np.bool_]
    wait_ns: I64


def waits_of(events: Events) -> Waits:
    """The waiting of all collective calls of one rank."""
    tasks, times = events.extras.collective_tasks, events.extras.collective_times
    has_tasks = np.zeros(len(events.collectives), dtype=bool)
    has_tasks[tasks.collective] = True
    rows = np.flatnonzero(_is_wait(tasks, events.strings))
    own = split_rows_by_value(tasks.collective[rows].astype(np.int64))
    of_collective = {collective: rows[places] for collective, places in own.items()}
    wait_ns = np.where(has_tasks, 0, MISSING).astype(np.int64)
    for collective, waiting in of_collective.items():
        wait_ns[collective] = union(tasks.start_ns[waiting], tasks.end_ns[waiting]).total_ns
    has_peers = np.zeros(len(events.collectives), dtype=bool)
    has_peers[tasks.collective[rows[tasks.peer[rows] >= 0]]] = True
    told = told_ns(times, times.wait_ns, len(events.collectives))
    wait_ns = np.where((told == MISSING) | has_peers, wait_ns, told)
    return Waits(tasks, of_collective, has_tasks, has_peers, wait_ns)


def wait_table(events: Events, row_of_collective: I64, waits: Waits) -> Table:
    """Table `communication_wait`: per row of `communication` and peer how long its calls waited for that rank; a call
    can wait for several at once, on planes of their own.
    """
    tasks = waits.tasks
    is_global = np.array([bool(text) for text in events.strings.texts], dtype=np.int64)
    places: list[tuple[int, int, int]] = []
    lengths: list[int] = []
    for collective, rows in waits.of_collective.items():
        if row_of_collective[collective] < 0:
            continue
        for peer, own in split_rows_by_value(tasks.peer[rows]).items():
            if peer >= 0:
                known = int(is_global[events.collectives.group_ranks[collective]])
                places.append((int(row_of_collective[collective]), peer, known))
                lengths.append(union(tasks.start_ns[rows[own]], tasks.end_ns[rows[own]]).total_ns)
    columns = np.array(places, dtype=np.int64).reshape(-1, 3).T
    waited_ns = np.array(lengths, dtype=np.int64)
    groups = group_rows(*columns)
    communication, peer, known = columns[:, groups.first]
    return {
        "communication": communication,
        "peer": peer,
        "is_global": known,
        "calls": groups.counts,
        "total_ns": groups.sums(waited_ns),
        "max_ns": groups.largest(waited_ns),
    }


def told_ns(times: CollectiveTimes, column: I64, collectives: int) -> I64:
    """Per row of `Collectives`, of which there are `collectives`, the sum of `column` of `times`; MISSING where the
    profiler does not say all of it.
    """
    found = np.full(collectives, MISSING, dtype=np.int64)
    records = group_rows(times.collective)
    found[times.collective[records.first]] = records.add_up_marked(column, MISSING, "sum")
    return found


def _is_wait(tasks: CollectiveTasks, strings: Strings) -> NDArray[np.bool_]:
    """Return which tasks wait for another rank: those that name one; in a call whose tasks name none, those on the
    lowest plane of the call on which tasks wait.

    CANN counts the tasks of that plane for `Wait Time` in communication.json: where the planes are one after the other,
    the others wait for the first one. A wait behind two sends over RDMA (or behind the wait and send that follow them)
    is for the data, so it transmits.
    """
    if not len(tasks):
        return np.zeros(0, dtype=bool)
    names = strings.texts
    plane = _plane_numbers(names)[tasks.plane]
    wait = np.array([name == _WAIT for name in names], dtype=bool)[tasks.name]
    send = np.array([name == _SEND for name in names], dtype=bool)[tasks.name]
    calls = group_rows(tasks.collective)
    on_first = plane == calls.smallest(np.where(wait, plane, len(names)))[calls.number]
    names_peer = tasks.peer >= 0
    in_call_with_peers = calls.largest((wait & names_peer).astype(np.int64))[calls.number] > 0
    for_a_rank = np.where(in_call_with_peers, names_peer, on_first)
    order = np.lexsort((tasks.end_ns, tasks.start_ns, plane, tasks.collective))

    def back(flags: NDArray[np.bool_], places: int) -> NDArray[np.bool_]:
        """For each task in order: the flag of the task `places` before it on the same plane of the same call."""
        moved = np.zeros(len(order), dtype=bool)
        here, there = order[places:], order[:-places]
        same = (tasks.collective[here] == tasks.collective[there]) & (plane[here] == plane[there])
        moved[places:] = flags[there] & same
        return moved

    after_sends = back(send, 2) & back(send, 1) | back(send, 4) & back(send, 3) & back(wait, 2) & back(send, 1)
    transmits = np.zeros(len(order), dtype=bool)
    transmits[order] = after_sends
    found: NDArray[np.bool_] = wait & for_a_rank & ~transmits
    return found


def _plane_numbers(texts: tuple[str, ...] | list[str]) -> I64:
    """For each text its place in the order of planes: numbers as numbers, then the rest."""

    def order(text: str) -> tuple[bool, int, str]:
        return (not text.isdecimal(), int(text) if text.isdecimal() else 0, text)

    place = {text: index for index, text in enumerate(sorted(set(texts), key=order))}
    return np.array([place[text] for text in texts], dtype=np.int64)
