"""Runs are formed without comparing each file with each other one, and are those that comparing would form."""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest
from msgspec.structs import replace

from tests.factories import H100
from tests.test_who_is_who import of_process, piece
from tracker.intake import Piece, form_runs
from tracker.profile import CPU, Device, Source
from tracker.profile.job_groups import group_files
from tracker.profile.same_job import why_apart
from tracker.profile.traits import CaptureWork, Traits, work_of

ONE = piece("one.json", rank=0)
WORK = work_of(ONE.capture)


def named(name: str, **values: Any) -> Piece:
    """A file like ONE under another name and digest, with other values of its capture."""
    source = Source(f"job/{name}", 1, name.encode())
    made = replace(ONE.capture, sources=(source,), **values)
    fingerprint = replace(ONE.fingerprint, process=(name,))
    return Piece(made, "torch_profiler", (), f"job/{name}", fingerprint=fingerprint, work=WORK)


def at(second: float, lasts: float = 1) -> dict[str, int]:
    start = (ONE.capture.started_at_ns or 0) + int(second * 10**9)
    return {"started_at_ns": start, "ended_at_ns": start + int(lasts * 10**9)}


def cycle(number: int, process: int) -> Piece:
    """The `number`-th cycle of a process, of one step."""
    one = named(f"node_{process}.{number}.json", **at(2 * number))
    return of_process(replace(one, work=replace(WORK, steps=(number,))), str(process))


# how files are made, and how many runs 2,000 of them are
SHAPES: dict[str, tuple[Callable[[int], Piece], int]] = {
    "repeats": (lambda i: named(f"run{i}.json", **at(2 * i)), 2000),
    "repeats within a minute": (lambda i: named(f"run{i}.json", **at(i / 100, lasts=0.005)), 2000),
    "ranks of one job": (lambda i: named(f"rank{i}.json", rank=i), 1),
    "ranks of 250 jobs": (lambda i: named(f"{i // 8}_{i % 8}.json", rank=i % 8, **at(2 * (i // 8))), 250),
    "ranks of 10 jobs at once": (lambda i: named(f"{i}.json", rank=i // 10, facts={"job_id": str(i % 10)}), 10),
    "ranks by their names": (lambda i: named(f"TP-{i}.json", rank=None), 1),
    "cycles of one process": (lambda i: cycle(i, 41), 1),
    "cycles of 500 processes": (lambda i: cycle(i % 4, i // 4), 500),
    "copies of one file": (lambda i: replace(named(f"{i}.json"), fingerprint=ONE.fingerprint), 1),
}
COMPARISONS = {"takes", "begins", "why_apart", "ran_at_once", "are_on_other_clocks", "are_repeats", "is_later_cycle"}
"""The functions that compare a file with one other, or with one group."""


def count_comparisons(files: Sequence[Piece]) -> int:
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_name in COMPARISONS:
            calls[frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        form_runs(files)
    finally:
        sys.setprofile(None)
    return calls.total()


@pytest.mark.parametrize("shape", SHAPES)
def test_two_thousand_files_need_two_comparisons_each(shape: str):
    make, runs = SHAPES[shape]
    files = [make(number) for number in range(2000)]
    assert len(form_runs(files)) == runs
    assert count_comparisons(files) <= 4000


def test_ten_thousand_files_are_formed_within_seconds():
    make, _ = SHAPES["repeats within a minute"]
    files = [make(number) for number in range(10_000)]
    start = time.process_time()
    assert len(form_runs(files)) == 10_000
    # 0.9 s on two quiet cores, 570 s where each is compared with all
    assert time.process_time() - start < 3


def test_groups_are_those_that_comparing_each_two_forms():
    draw = random.Random(7)
    for _ in range(300):
        files = sorted((any_file(draw) for _ in range(12)), key=lambda file: file.started_at_ns or 0)
        assert group_files(files) == group_by_pairs(files)


def any_file(draw: random.Random) -> Traits:
    """A file of one of few jobs, ranks, hosts, times and devices, so that each rule decides something."""
    start = draw.choice([None, *range(0, 200, 20)])
    start_ns = None if start is None else start * 10**9
    lasts_ns = draw.choice([5, 30, None]) if start_ns is not None else None
    return Traits(
        place="job/a.json",
        rank=0,
        host=draw.choice(["", "a", "b", "c"]),
        device_ordinal=0,
        started_at_ns=start_ns,
        ended_at_ns=None if start_ns is None or lasts_ns is None else start_ns + lasts_ns * 10**9,
        work=CaptureWork(
            collectives=draw.choice([(), (("all_reduce", 4),)]), has_device=draw.choice([True, True, False])
        ),
        ranks=frozenset(draw.choice([[], [0], [1], [2], [3], [0, 1], [2, 3]])),
        world_size=draw.choice([None, 4, 4]),
        job_id=draw.choice([None, None, "7", "8"]),
        labels=draw.choice([{}, {}, {"version": "v1"}]),
        configuration=draw.choice([{}, {}, {"tp": "2"}, {"tp": "4"}, {"dp": "2"}]),
        device=draw.choice([H100, H100, Device("NVIDIA", "unknown"), Device("NVIDIA", "A100"), CPU]),
    )


def group_by_pairs(files: Sequence[Traits]) -> list[list[int]]:
    """Group files as `group_files` does, by comparing each file with all before it."""
    groups: list[list[int]] = []
    for place, file in enumerate(files):
        homes = [group for group in groups if why_apart([files[member] for member in group], [file]) is None]
        if homes:
            max(homes, key=lambda group: sum(at_once(files[member], file) for member in group)).append(place)
        else:
            groups.append([place])
    return groups


def at_once(one: Traits, other: Traits) -> bool:
    """Whether two files ran at the same time, by one clock."""
    return why_apart([alone(one, rank=0)], [alone(other, rank=1)]) is None


def alone(file: Traits, *, rank: int) -> Traits:
    """A file that states nothing but when it ran."""
    times = {"started_at_ns": file.started_at_ns, "ended_at_ns": file.ended_at_ns}
    return Traits(place="", rank=rank, host="", device_ordinal=None, ranks=frozenset({rank}), **times)
