"""Which processes of a report are ranks of the job, and which only ran beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.profile import NO_STEP, Capture, DeviceKind, Events
from tracker.readers.nsys_sqlite.tables import pid_of
from tracker.units import counted, format_ns

_ALIKE: Final = 0.5
"""Ranks of one job run the same kernels, for at least this share of their kernel time."""

GpuPlace = tuple[int, int]
"""The machine, and the number of the device on it."""


class Member(Struct, frozen=True):
    """One capture of a report: its process, its device (None: of the host), and what the reader says of it."""

    process: int
    gpu: GpuPlace | None
    capture: Capture
    warnings: tuple[str, ...]


def part_neighbours(members: Sequence[Member]) -> tuple[list[Member], list[str]]:
    """Return the captures of the ranks, and a sentence for each process that is left out.

    A process that marks no step is none where another one marks some. Of processes on one device that run other
    kernels the one with most kernel time is the rank.
    """
    processes: dict[int, list[Member]] = {}
    for member in members:
        processes.setdefault(member.process, []).append(member)
    if len(processes) == 1:
        return list(members), []
    by_time = sorted(processes, key=lambda process: -sum(_kernel_ns(one) for one in processes[process]))
    marking = [process for process in by_time if _steps_of(processes[process])]
    ranks: list[int] = []
    sentences: dict[int, str] = {}
    for process in marking or by_time:
        neighbour = _neighbour_of(processes[process], [processes[rank] for rank in ranks])
        if neighbour is None:
            ranks.append(process)
        else:
            why = f"it shares its device with process {pid_of(neighbour)} and runs other kernels"
            sentences[process] = _sentence(processes[process], "is no rank", why)
    for process in processes:
        if process not in ranks and process not in sentences:
            sentences[process] = _sentence_without_steps(processes, process, ranks)
    kept = [member for member in members if member.process in ranks]
    return kept, [sentences[process] for process in sorted(sentences)]


def _sentence_without_steps(processes: dict[int, list[Member]], process: int, ranks: Sequence[int]) -> str:
    """Return that a process is left out since it marks no step. On a device of its own it may still be a rank."""
    own = _gpus_of(processes[process])
    sharing = [rank for rank in ranks if own & _gpus_of(processes[rank])]
    marking = [*sharing, *ranks][0]
    why = f"it marks no step, where process {pid_of(marking)} marks {_steps_of(processes[marking])}"
    if sharing:
        return _sentence(processes[process], "is no rank", f"{why} on the same device")
    return _sentence(processes[process], "is left out", why)


def _sentence(members: Sequence[Member], verdict: str, why: str) -> str:
    """Return what a process is, why, and how much work is left out with it."""
    device = [member.capture.events.device for member in members if member.capture.events]
    kernels = sum(int((table.kind == DeviceKind.KERNEL).sum()) for table in device)
    sentence = f"process {pid_of(members[0].process)} {verdict}: {why}"
    if not kernels:
        return sentence
    kernel_ns = sum(_kernel_ns(member) for member in members)
    return f"{sentence}; its {counted(kernels, 'kernel')} ({format_ns(kernel_ns)}) are in no step"


def _gpus_of(members: Sequence[Member]) -> set[GpuPlace]:
    return {member.gpu for member in members if member.gpu is not None}


def _steps_of(members: Sequence[Member]) -> int:
    """Return how many steps a process marks."""
    return max(int((one.capture.events.markers.step != NO_STEP).sum()) for one in members if one.capture.events)


def _kernel_ns(member: Member) -> int:
    return sum(_time_by_name(member.capture.events).values()) if member.capture.events else 0


def _time_by_name(events: Events) -> dict[int, int]:
    """Return the time of each kernel, by the code of its name."""
    device = events.device
    rows = np.flatnonzero(device.kind == DeviceKind.KERNEL)
    names, place = np.unique(device.name[rows], return_inverse=True)
    total_ns = np.zeros(len(names), dtype=np.int64)
    np.add.at(total_ns, place, (device.end_ns - device.start_ns)[rows])
    return dict(zip(names.tolist(), total_ns.tolist(), strict=True))


def _neighbour_of(members: Sequence[Member], ranks: Sequence[Sequence[Member]]) -> int | None:
    """Return the rank with which a process shares a device while it runs other kernels; None where there is none."""
    for rank in ranks:
        shared = _gpus_of(members) & _gpus_of(rank)
        if not shared:
            continue
        own, others = _times_on(members, shared), _times_on(rank, shared)
        common_ns = sum(ns for name, ns in own.items() if name in others)
        if own and others and common_ns < _ALIKE * sum(own.values()):
            return rank[0].process
    return None


def _times_on(members: Sequence[Member], gpus: set[GpuPlace]) -> dict[int, int]:
    """Return the time of each kernel of a process on these devices, by the code of its name."""
    times: dict[int, int] = {}
    for member in members:
        if member.gpu in gpus and member.capture.events:
            for name, ns in _time_by_name(member.capture.events).items():
                times[name] = times.get(name, 0) + ns
    return times
