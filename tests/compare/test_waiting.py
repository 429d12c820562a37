"""Exposed communication of a diff in two parts, waiting and transfers, and the rank that is waited for."""

from __future__ import annotations

import uuid
from typing import Any

from msgspec.structs import replace

from tests.factories import record, save, save_run
from tests.store.test_call_splits import EARLY, LATE, MS, rank, with_times
from tracker.compare import diff
from tracker.reports import render
from tracker.results import Contribution, Diff
from tracker.store import Store

OF_THREE: dict[str, Any] = {"groups": ["0,1,2"], "world": 3, "group_size": 3}


def save_job(store: Store, version: str, *calls: tuple[float, float], absent: tuple[int, ...] = ()) -> None:
    """Save a run of ranks with one call each, from start to end in ms."""
    captures = []
    for number, (start, end) in enumerate(calls):
        made = rank(number, [(int(start), int(end))], **OF_THREE)
        captures.append(replace(made, sources=(replace(made.sources[0], digest=uuid.uuid4().bytes),)))
    kept = [one for one in captures if one.rank not in absent]
    save_run(store, record(version), kept, formats=["torch_profiler"])


def find_halves(found: Diff) -> dict[str, Contribution]:
    return {row.metric: row for row in found.explanation.contributions if row.metric.startswith("exposed_")}


def test_exposed_communication_is_waiting_and_transfers(store: Store):
    """Ranks 0 and 1 wait 5 ms of 15 for rank 2, then 45 of 53: waiting +40, transfers -2, together +38."""
    save_job(store, "v1", (0, 15), (0, 15), (5, 15))
    save_job(store, "v2", (0, 53), (0, 53), (45, 53))
    found = diff(store, "v1", "v2")
    halves = find_halves(found)
    wait, transfer = halves["exposed_wait_ns"], halves["exposed_transmit_ns"]
    assert (wait.baseline_ns, wait.candidate_ns, wait.delta_ns) == (5 * MS, 45 * MS, 40 * MS)
    assert (transfer.baseline_ns, transfer.candidate_ns, transfer.delta_ns) == (10 * MS, 8 * MS, -2 * MS)
    (part,) = [part for part in found.explanation.parts if part.name == "exposed_communication_ns"]
    assert wait.delta_ns + transfer.delta_ns == part.delta_ns == 38 * MS
    assert wait.why == "mostly for rank 2"


def test_a_screen_names_the_rank_and_the_next_command(store: Store):
    save_job(store, "v1", (0, 15), (0, 15), (5, 15))
    save_job(store, "v2", (0, 53), (0, 53), (45, 53))
    text = str(render(diff(store, "v1", "v2"), "text"))
    assert "waiting for other ranks" in text
    assert "mostly for rank 2: 5.00 -> 45.00 ms" in text
    assert "tracker cluster v2\n" in text
    # the side that waits more is the one to look at
    assert "tracker cluster v2\n" in str(render(diff(store, "v2", "v1"), "text"))


def test_a_rank_known_on_one_side_alone_is_of_that_side(store: Store):
    """Before, all come at once and wait for nobody."""
    save_job(store, "v1", (0, 10), (0, 10), (0, 10))
    save_job(store, "v2", (0, 50), (0, 50), (40, 50))
    assert find_halves(diff(store, "v1", "v2"))["exposed_wait_ns"].why == "now mostly for rank 2"
    assert find_halves(diff(store, "v2", "v1"))["exposed_wait_ns"].why == "before mostly for rank 2"


def test_one_rank_beside_another_says_for_whom_it_waits(store: Store):
    """Rank 0 waits 40 ms for rank 2, which waits for nobody."""
    save_job(store, "v1", (0, 50), (0, 50), (40, 50))
    wait = find_halves(diff(store, "run:1:rank2", "run:1:rank0"))["exposed_wait_ns"]
    assert (wait.delta_ns, wait.why) == (40 * MS, "now mostly for rank 2")


def test_several_late_ranks_have_no_name(store: Store):
    """Each of two ranks comes 20 ms late to one of two calls."""
    for version, late in (("v1", 0), ("v2", 20)):
        captures = []
        for number in range(2):
            first, second = (0, late) if number else (late, 0)
            made = rank(number, [(first, 30), (50 + second, 90)])
            captures.append(replace(made, sources=(replace(made.sources[0], digest=uuid.uuid4().bytes),)))
        save_run(store, record(version), captures, formats=["torch_profiler"])
    wait = find_halves(diff(store, "v1", "v2"))["exposed_wait_ns"]
    assert (wait.delta_ns, wait.why) == (20 * MS, "not hidden by compute")


def test_unknown_waiting_leaves_the_part_whole(store: Store):
    """Of three ranks one is missing, and no profiler says how long the others wait."""
    save_job(store, "v1", (0, 15), (0, 15), (5, 15), absent=(2,))
    save_job(store, "v2", (0, 53), (0, 53), (45, 53), absent=(2,))
    assert [*find_halves(diff(store, "v1", "v2"))] == ["exposed_communication_ns"]


def test_waits_measured_in_two_ways_leave_the_part_whole(store: Store):
    for version, captures in (
        ("v1", [EARLY, LATE]),
        ("v2", [replace(one, rows=with_times(one.rows, transit_ns=MS, wait_ns=40 * MS)) for one in _TWO_OF_THREE]),
    ):
        fresh = [replace(one, sources=(replace(one.sources[0], digest=uuid.uuid4().bytes),)) for one in captures]
        save_run(store, record(version), fresh, formats=["torch_profiler"])
    assert [*find_halves(diff(store, "v1", "v2"))] == ["exposed_communication_ns"]


_TWO_OF_THREE = [rank(0, [(0, 80)]), rank(2, [(0, 80)])]


def test_the_verdict_of_the_part_stands_at_its_larger_half(store: Store):
    """Three runs each; a lone rank whose profiler says that it waits 10 ms of 20, then 40 of 50."""
    for version, whole, wait in (("v1", 20, 10), ("v2", 50, 40)):
        of_profiler = ("all_reduce", whole * MS, {"wait_ns": wait * MS, "exposed_wait_ns": wait * MS})
        start = 10**18 + (version == "v2") * 10**15
        for number in range(3):
            save(store, version, communication=[of_profiler], steps=3, started_at_ns=start + number * 10**12)
    halves = find_halves(diff(store, "v1", "v2"))
    assert (halves["exposed_wait_ns"].delta_ns, halves["exposed_wait_ns"].verdict) == (30 * MS, "REGRESSED")
    assert "exposed_transmit_ns" in halves
    assert halves["exposed_transmit_ns"].verdict is None
