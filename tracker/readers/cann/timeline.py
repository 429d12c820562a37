"""The timeline files of one device -> one trace; which file repeats which; AI core times of kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.profile import DeviceEvents, DeviceKind, KernelMetrics, Source, Strings
from tracker.readers._ascend.counters import CounterRows
from tracker.readers._ascend.trace.device import TraceTasks
from tracker.readers._growing import Array
from tracker.readers._source import ReadOptions
from tracker.readers.cann.folders import name_of
from tracker.readers.cann.trace import MsprofTrace, Pid
from tracker.units import NS_PER_MS, NS_PER_US

WHOLE: Final = "msprof"
STEPS: Final = "step_trace"
_PARTS: Final = frozenset(("task_time", "hccl", STEPS, "acl", "api", "ge", "runtime_api"))
_RANGES: Final = "msprof_tx"
_OLD_FOLDER: Final = "timeline"


class Timeline(Struct, frozen=True):
    """The trace of one device. `partial`: why it is only a part, '' when it is whole."""

    trace: MsprofTrace
    sources: tuple[Source, ...]
    partial: str


def is_timeline(path: Path) -> bool:
    """True for a timeline or a part of one."""
    name = name_of(path.name)
    if name is None or name.form != "json" or name.kind == _RANGES:
        return False
    return name.kind in (WHOLE, *_PARTS) or path.resolve().parent.name == _OLD_FOLDER


def timeline_files(files: Mapping[str, Sequence[Path]]) -> tuple[Path, ...]:
    """The timeline files to read, so that no event is read twice.

    msprof_* of an iteration holds all that task_time_* and hccl_* of the iteration hold; these are read where it is
    missing. step_trace_* holds all iterations, msprof_* only its own.
    """
    whole = tuple(files.get(f"{WHOLE}.json", ()))
    covered = {name.numbers for path in whole if (name := name_of(path.name))}
    others = [path for paths in files.values() for path in paths if path not in whole and is_timeline(path)]
    names = [(path, name_of(path.name)) for path in others]
    needed = [path for path, name in names if name and (name.kind == STEPS or name.numbers not in covered)]
    return (*whole, *needed)


class Timelines:
    """The timelines of a capture, device by device. Which process is of which device is found out once."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._known: dict[tuple[Path, ...], Mapping[Pid, int]] = {}

    def read(
        self, paths: tuple[Path, ...], strings: Strings, counters: CounterRows, device: int | None, *, owns_host: bool
    ) -> Timeline | None:
        """The trace in `paths` without what belongs to other devices than `device`; None where there are no files.

        The counters of the host are left out as well unless `owns_host`.
        """
        if not paths:
            return None
        skip = self._others(paths, device)
        trace, sources, partial = self._read(paths, strings, counters, skip)
        if paths not in self._known:
            # only behind the last event it is known which process is of which device
            self._known[paths] = trace.device_of_process()
            skip = self._others(paths, device)
            if skip:
                trace, sources, partial = self._read(paths, strings, counters, skip)
        trace.finish(counted=None if owns_host else frozenset(self._known[paths]) - skip)
        return Timeline(trace, sources, partial)

    def _others(self, paths: tuple[Path, ...], device: int | None) -> frozenset[Pid]:
        """The processes that are known to be of other devices."""
        known = self._known.get(paths, {})
        return frozenset(pid for pid, number in known.items() if device is not None and number != device)

    def _read(
        self, paths: Sequence[Path], strings: Strings, counters: CounterRows, skip: frozenset[Pid]
    ) -> tuple[MsprofTrace, tuple[Source, ...], str]:
        trace = MsprofTrace(self._options, strings, counters, skip)
        read = [trace.read(path) for path in paths]
        # step_trace_* of every iteration is the same file
        sources = {source.digest: source for source, _ in reversed(read)}
        return trace, tuple(sources.values()), next((partial for _, partial in read if partial), "")


def core_times_of(
    device: DeviceEvents, tasks: TraceTasks, core_times: Mapping[str, Array], strings: Strings
) -> KernelMetrics:
    """Time and cycles of the AI core of each kernel, under the names that op_summary gives them."""
    columns = (tasks.tasks["start_ns"], tasks.tasks["stream"], tasks.tasks["name"])
    row_of = {key: row for row, key in enumerate(zip(*(column.tolist() for column in columns), strict=True))}
    kernels = np.flatnonzero(device.kind == DeviceKind.KERNEL)
    keys = zip(*(c[kernels].tolist() for c in (device.start_ns, device.stream, device.name)), strict=True)
    rows = np.array([row_of.get(key, -1) for key in keys], dtype=np.int64)
    kernels, rows = kernels[rows >= 0], rows[rows >= 0]
    time = core_times["core_time"][rows] / _per_us(tasks.tasks, core_times["core_time"])
    events, names, values = [], [], []
    for title, column in (("aicore_time(us)", time), ("total_cycles", core_times["cycles"][rows])):
        known = np.isfinite(column)
        events.append(kernels[known].astype(np.int32))
        names.append(np.full(int(known.sum()), strings.code(title), dtype=np.int32))
        values.append(column[known])
    return KernelMetrics(np.concatenate(events), np.concatenate(names), np.concatenate(values))


def _per_us(tasks: Mapping[str, Array], core_time: Array) -> float:
    """What `Aicore Time(ms)` is divided by to get us.

    CANN 6 writes us under this title: cycles / (cores x MHz) of a capture give the same number. It is ms only where no
    task would then have been on the core for longer than it ran.
    """
    known = np.isfinite(core_time)
    duration = (tasks["end_ns"] - tasks["start_ns"])[known]
    is_ms = bool((core_time[known] * NS_PER_MS <= duration + NS_PER_US).all())
    return NS_PER_US / NS_PER_MS if is_ms else 1.0
