"""Processes without any event of a device, beside others of one time that have them: the host of a job, or its ranks.

The front end of an inference server, or the driver of a cluster, writes a trace as its workers do. It states no rank
and launches nothing, so it is no rank and no run. A process that states a rank, or launched, is one of which the
profiler lost the records of the device: nothing of its steps is judged.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from itertools import accumulate, product
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tracker.intake.pieces import Piece
from tracker.profile.numbered_names import rank_in_path
from tracker.profile.same_job import WITHOUT_PROFILER
from tracker.timeline.checks import add_defect
from tracker.timeline.defects import make_defect
from tracker.units import some_of

File = list[Piece]


class DeviceTimes:
    """When the devices of the files of a call worked, so that no file is compared with each other one."""

    def __init__(self, files: Sequence[File]) -> None:
        """Take the spans of all files with work of a device."""
        spans: dict[Hashable, list[tuple[int, int]]] = {}
        for file in files:
            traits = file[0].traits
            if not _has_device_work(file) or traits.started_at_ns is None or traits.ended_at_ns is None:
                continue
            for key in product(*((value, ...) for value in _stated(file))):
                spans.setdefault(key, []).append((traits.started_at_ns, traits.ended_at_ns))
        # what files state -> the starts in order, and up to each the latest end
        self._by_stated: dict[Hashable, tuple[list[int], list[int]]] = {}
        for stated, own in spans.items():
            own.sort()
            starts, ends = zip(*own, strict=True)
            self._by_stated[stated] = (list(starts), list(accumulate(ends, max)))

    def overlap(self, file: File) -> bool:
        """Return whether a device worked while a file was written, of a job that may be its own."""
        traits = file[0].traits
        if traits.started_at_ns is None or traits.ended_at_ns is None:
            return False
        # what a file leaves out contradicts nothing
        for key in product(*(((...,) if value is None else (value, None)) for value in _stated(file))):
            starts, ends = self._by_stated.get(key, ([], []))
            before = bisect_right(starts, traits.ended_at_ns)
            if before and ends[before - 1] >= traits.started_at_ns:
                return True
        return False


def _stated(file: File) -> tuple[str | None, ...]:
    """Return what files of one job state alike: its number, version and workload; None where a file states none."""
    labels, told = file[0].capture.labels, file[0].told
    version, workload = told.version or labels.get("version"), told.workload or labels.get("workload")
    return file[0].traits.job_id, version, workload


class JobHosts(Struct, frozen=True):
    """The files of a call without the hosts of its jobs, and a sentence on these; "" where there is none."""

    ranks: list[File]
    note: str = ""


def leave_out_hosts(files: Sequence[File], times: DeviceTimes) -> JobHosts:
    """Return the files without the processes that are the host of the job of others."""
    ranks: list[File] = []
    hosts: list[File] = []
    for file in files:
        is_host = _may_be_host(file) and times.overlap(file)
        (hosts if is_host else ranks).append(file)
    if not hosts:
        return JobHosts(ranks)
    names = some_of([Path(file[0].place).name for file in hosts])
    are = "is the host of a job, no rank and no run" if len(hosts) == 1 else "are hosts of jobs, no ranks and no runs"
    note = f"{names} {are}: no work of a device, no rank and no launch in it, beside files of the same time with them"
    return JobHosts(ranks, note)


def _may_be_host(file: File) -> bool:
    """Return whether a file is of a profiler, has no event of a device, states no rank and launched nothing."""
    if _has_device_work(file) or any(piece.traits.work.launched or piece.traits.work.saw_device for piece in file):
        return False
    if any(piece.capture.rank is not None for piece in file) or rank_in_path(file[0].place) is not None:
        return False
    return file[0].capture.settings.get("profiler") not in WITHOUT_PROFILER


def mark_lost_ranks(group: Sequence[File], times: DeviceTimes) -> list[File]:
    """Return the files of a run, as partial where they have no event of a device and others of their job do."""
    are_beside = any(_has_device_work(file) for file in group)
    return [_with_lost_ranks(file, are_beside=are_beside or _is_beside(file, times)) for file in group]


def _has_device_work(file: File) -> bool:
    return any(piece.traits.work.has_device for piece in file)


def _is_beside(file: File, times: DeviceTimes) -> bool:
    """Return whether a file that states no rank is of a job of which others worked on a device."""
    return file[0].capture.rank is None and times.overlap(file)


def _with_lost_ranks(file: File, *, are_beside: bool) -> File:
    marked = []
    for piece in file:
        traits = piece.traits
        is_rank = traits.work.launched or traits.rank is not None
        if traits.work.has_device or not is_rank or not are_beside:
            marked.append(piece)
            continue
        capture = add_defect(piece.capture, make_defect("lost device records"))
        marked.append(replace(piece, capture=capture))
    return marked
