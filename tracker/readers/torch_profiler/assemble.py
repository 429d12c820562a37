"""Columns of a whole trace -> one capture per host process and device."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from msgspec import Struct

from tracker.limits.rows import check_captures, check_rows
from tracker.profile import (
    I32,
    I64,
    MISSING,
    NO_STEP,
    Allocations,
    Collectives,
    Counters,
    DeviceKind,
    Events,
    Extras,
    Frames,
    HostOps,
    Launches,
    Markers,
    Strings,
    are_among,
    each_once,
    empty,
)
from tracker.readers._collectives import CallTable, process_groups
from tracker.readers._device import device_events
from tracker.readers._growing import Array
from tracker.readers.torch_profiler.collectives import call_of_args
from tracker.readers.torch_profiler.collector import Collector
from tracker.readers.torch_profiler.cut import is_whole
from tracker.readers.torch_profiler.engine_steps import steps_of_engine
from tracker.readers.torch_profiler.facts import TraceFacts
from tracker.readers.torch_profiler.flows import link_by_flow
from tracker.readers.torch_profiler.kernel_metrics import kernel_metrics_of
from tracker.readers.torch_profiler.kinds import REQUESTS_OF_COPIES, WAITS
from tracker.readers.torch_profiler.op_collectives import calls_of_ops
from tracker.table import split_rows_by_value
from tracker.units import counted

Table = dict[str, Array]
_NONE_IN_32_BITS: Final = (1 << 32) - 1
"""A correlation of none, as some profilers write -1."""
_HOST: Final = ("ops", "frames", "launches", "memory")
"""The tables of host events."""

_NO_ROWS: Final = np.zeros(0, dtype=np.int64)
_NAMED: Final = 16
"""So many processes that are no ranks are named; more are counted."""

_ON_CPU: Final = 0  # c10::DeviceType::CPU; anything else is a device (CUDA 1, HIP 6, PrivateUse1 20)
# [TP00] 4100, [rank 3] 4100: what scripts make of the processes and devices of the traces that they merge
_MERGED: Final = re.compile(r"\[(?P<label>[^\]]{1,64})\] ?.{1,64}")
_ONE_NUMBER: Final = re.compile(r"\D{0,32}(\d{1,6})")
_TIMES: Final = (("ops", "start_ns", "end_ns"), ("frames", "start_ns", "end_ns"), ("launches", "start_ns", "end_ns"),
                 ("device", "start_ns", "end_ns"), ("allocations", "time_ns", "time_ns"),
                 ("markers", "start_ns", "end_ns"))  # fmt: skip


class Part(Struct, frozen=True):
    """One capture's share: its events, its device (None: host only), whether a device is in use, and its time span.

    `cut_steps`: the steps of a trace that ends early which are not wholly in it, and have no marker therefore.
    `rank`: the rank that the name of the process states, where several ranks were merged into one trace; `process`: the
    process as the trace calls it.
    """

    events: Events
    ordinal: int | None
    uses_device: bool
    start_ns: int
    end_ns: int
    cut_steps: tuple[int, ...] = ()
    rank: int | None = None
    process: str = ""


def parts_of(
    collector: Collector, facts: TraceFacts, flow_category: str | None, *, is_cut: bool = False
) -> tuple[list[Part], list[str]]:
    """Return the captures of a trace, and what its reader should know of how they were separated from each other.

    The host process with most events comes first, or those of merged ranks in order of these; devices in order of their
    ordinal.

    Empty when the trace holds no event that we know. `is_cut`: it ends in the middle of its events; then only the steps
    that are wholly in it are steps. Where none is, one marker without a number says that nothing belongs to a step.
    """
    assembly = _Assembly(collector, facts, flow_category)
    if is_cut:
        assembly.leave_out_cut_steps(expects_device=bool(facts.device_names))
    return list(assembly.parts()), assembly.notes


class _Assembly:
    """The tables of one trace, joined. Processes are numbered by number of host events, most first."""

    def __init__(self, collector: Collector, facts: TraceFacts, flow_category: str | None) -> None:
        self.strings: Strings = collector.strings
        self.thread_keys = list(collector.threads)
        self.thread_names = collector.thread_names
        self.ops = dict(collector.ops.done())
        self.convolutions = collector.convolutions
        self.frames = dict(collector.frames.done())
        self.launches = dict(collector.launches.done())
        self.device = dict(collector.device.done())
        for table in (self.launches, self.device):
            numbers = table["correlation"]
            table["correlation"] = np.where(numbers == _NONE_IN_32_BITS, -1, numbers)
        self.memory = dict(collector.memory.done())
        self.markers = dict(collector.markers.done())
        self.cut: tuple[int, ...] = ()
        self._host_rows: dict[str, dict[int, I64]] = {}
        self.notes: list[str] = []
        self.step_names: dict[int, str] = {}
        self.rows_of_device: I64 | None = None
        self.rows_of_ops: I64 | None = None
        self._leave_out_waits()
        self.process_of = self._number_processes()
        self._take_steps_of_engine()
        self._place_markers()
        self._place_frames()
        chosen = collector.flow_codes.get(flow_category) if flow_category is not None else None
        self.launches, self.device["correlation"] = link_by_flow(
            self.launches, self.device, collector.flows.done(), self.process_of, chosen
        )
        self.device["process"] = self._device_processes()
        self._resolve_collectives(collector, facts)

    # -- processes and threads

    def _number_processes(self) -> I32:
        """Process of each thread; -1 for threads of no host process (streams, `pid` 0 of unresolved Python frames)."""
        count = len(self.thread_keys)
        pids = [pid for pid, _ in self.thread_keys]
        for tables in ((self.ops, self.launches, self.memory), (self.markers,), (self.frames,)):
            rows = sum(
                (np.bincount(t["thread"], minlength=count) for t in tables), start=np.zeros(count, dtype=np.int64)
            )
            if rows.any():
                break
        events: dict[Any, int] = {}
        for pid, number in zip(pids, rows.tolist() if count else [], strict=True):
            if number:
                events[pid] = events.get(pid, 0) + number
        idle = self._processes_that_run_nothing(pids, events)
        order = sorted(events.keys() - idle, key=lambda pid: (-events[pid], str(pid)))
        labels = {pid: label_of_merged(pid) for pid in order}
        # ranks that were merged into one trace are what their names say, whichever has most events
        self.labels = sorted({label for label in labels.values() if label})
        if self.labels:
            order.sort(key=lambda pid: labels[pid])
        self.pids = order
        index = {pid: i for i, pid in enumerate(order)}
        index |= self._host_calls_of_others(idle)
        self.process_count = max(1, len(order))
        check_captures(self.process_count)
        return np.array([index.get(pid, -1) for pid in pids], dtype=np.int32)

    def _processes_that_run_nothing(self, pids: list[Any], events: dict[Any, int]) -> set[Any]:
        """Return the processes that are no ranks, since they run no operators and launch nothing: counters, drivers.

        A trace of only such processes keeps them.
        """
        threads_that_run = {
            int(thread)
            for table in (self.ops, self.markers, self.frames, self.memory)
            for thread in each_once(table["thread"]).tolist()
        }
        active = {pids[thread] for thread in threads_that_run}
        if events.keys() <= active:
            return set()
        undecided = [thread for thread, pid in enumerate(pids) if pid not in active]
        calls = np.isin(self.launches["thread"], np.array(undecided, dtype=np.int64))
        correlations = self.device["correlation"]
        launched = are_among(self.launches["correlation"][calls], correlations[correlations >= 0])
        threads_that_run = set(each_once(self.launches["thread"][calls][launched]).tolist())
        active |= {pids[thread] for thread in threads_that_run}
        return events.keys() - active if events.keys() & active else set()

    def _host_calls_of_others(self, idle: set[Any]) -> dict[Any, int]:
        """Return the processes of calls that take time on the host although their process is no rank, with process 0.

        A process in which no call takes time has counters alone, and is left out.
        """
        takes_time = self.launches["end_ns"] > self.launches["start_ns"]
        callers = set(each_once(self.launches["thread"][takes_time]).tolist())
        calling = {self.thread_keys[thread][0] for thread in callers} & idle
        calls: dict[Any, int] = dict.fromkeys(idle, 0)
        rows = np.bincount(self.launches["thread"], minlength=len(self.thread_keys)).tolist()
        for (pid, _), count in zip(self.thread_keys, rows, strict=True):
            if pid in calls:
                calls[pid] += count
        listed = sorted(idle, key=str)
        for pid in listed[:_NAMED]:
            what = "are host calls of the first process" if pid in calling else "are left out"
            events = counted(calls[pid], "event")
            self.notes.append(f"process {pid} runs no operator and launches nothing, so it is no rank: {events} {what}")
        if len(listed) > _NAMED:
            self.notes.append(f"so do {len(listed) - _NAMED:,} more processes: they are no ranks either")
        return dict.fromkeys(calling, 0)

    def _leave_out_waits(self) -> None:
        """Take the events away in which a device only waits, and make copies of those that move data."""
        texts = self.strings.texts
        names = {code for code in each_once(self.device["name"]).tolist() if texts[code] in WAITS}
        copies = {code for code in each_once(self.device["name"]).tolist() if texts[code] in REQUESTS_OF_COPIES}
        if copies:
            is_copy = np.isin(self.device["name"], list(copies))
            self.device["kind"] = np.where(is_copy, DeviceKind.COPY, self.device["kind"]).astype(np.int8)
        if names:
            works = ~np.isin(self.device["name"], list(names))
            self.rows_of_device = np.cumsum(works) - 1
            self.device = {name: column[works] for name, column in self.device.items()}

    def _take_steps_of_engine(self) -> None:
        """Make steps of the annotations of an inference engine or a loop, where no ProfilerStep marks any.

        What marks a step is no operator.
        """
        if len(self.markers["step"]):
            return
        found = steps_of_engine(self.ops, self.strings)
        if found is None:
            return
        rows, numbers, name = found
        names = (self.strings[code] for code in self.ops["name"][rows].tolist())
        self.step_names = dict(zip(numbers.tolist(), names, strict=True))
        kept = {column: self.ops[column][rows] for column in ("start_ns", "end_ns", "thread", "name")}
        self.markers = kept | {"step": numbers}
        is_op = np.ones(len(self.ops["name"]), dtype=bool)
        is_op[rows] = False
        self.rows_of_ops = np.where(is_op, np.cumsum(is_op) - 1, -1)
        self.ops = {column: values[is_op] for column, values in self.ops.items()}
        self.notes.append(f"no ProfilerStep marks a step: the {len(rows)} annotations such as {name} do")

    def _place_markers(self) -> None:
        """Gives each marker its process, and keeps the outermost of those of one number that overlap.

        Those of one number that do not overlap are steps of two cycles, which are numbered on. Markers of a process
        without ops (edited traces, a profiler in another process) belong to the first process that has none of its own.
        """
        process = self.process_of[self.markers["thread"]]
        if len(process) and (process < 0).any():
            has_markers = np.bincount(process[process >= 0], minlength=self.process_count) > 0
            without = np.flatnonzero(~has_markers).tolist()
            process = np.where(process < 0, without[0] if without else 0, process)
        length = self.markers["end_ns"] - self.markers["start_ns"]
        order = np.lexsort((-length, self.markers["start_ns"], self.markers["step"], process))
        ends: dict[tuple[int, int], int] = {}
        starts: dict[tuple[int, int], int] = {}
        kept = []
        for row in order.tolist():
            key = int(process[row]), int(self.markers["step"][row])
            start_ns = int(self.markers["start_ns"][row])
            # a marker without length that stands there twice begins where it ends
            if key not in ends or (start_ns >= ends[key] and start_ns > starts[key]):
                kept.append(row)
                starts[key], ends[key] = start_ns, int(self.markers["end_ns"][row])
            elif length[row] > length[kept[-1]]:
                # it began later and lasts longer than the one that it overlaps
                kept[-1] = row
                starts[key], ends[key] = start_ns, int(self.markers["end_ns"][row])
        kept.sort(key=lambda row: int(self.markers["start_ns"][row]))
        chosen = np.array(kept, dtype=np.int64)
        markers = {name: column[chosen] for name, column in self.markers.items()} | {"process": process[chosen]}
        if len(ends) < len(kept):
            markers["step"] = self._number_cycles(markers)
        self.markers = markers

    def _number_cycles(self, markers: Table) -> Array:
        """Return the numbers of steps, in each process counted on where they begin again."""
        steps = markers["step"].copy()
        for of_process in split_rows_by_value(markers["process"]).values():
            added = highest = 0
            for row in of_process.tolist():
                if highest and int(steps[row]) + added <= highest:
                    added = highest + 1 - int(steps[row])
                steps[row] += added
                highest = max(highest, int(steps[row]))
        self.notes.append("numbers of steps stand there twice, as in cycles of one schedule: they are counted on")
        return steps

    def leave_out_cut_steps(self, *, expects_device: bool) -> None:
        """Takes away the markers of steps that are not wholly in the file. `expects_device`: the trace names one."""
        markers = self.markers
        if not len(markers["step"]):
            return
        uses_device = expects_device or any(len(table["start_ns"]) for table in (self.launches, self.device))
        whole = is_whole(markers, self.ops, (self.memory, self.frames), uses_device=uses_device)
        self.cut = tuple(markers["step"][~whole].tolist())
        if not whole.any():
            markers = markers | {"step": np.full(len(whole), NO_STEP, dtype=np.int64)}
            whole[0] = True
        self.markers = {name: column[whole] for name, column in markers.items()}

    def _place_frames(self) -> None:
        """Python frames of an unresolved thread (`pid` 0, `tid` 0) go to the main process.

        They are a thread of their own beside resolved frames, where Kineto could not resolve a helper thread only;
        where no frame lies on any thread with ops, they are the frames of the marker's thread, else of the busiest.
        """
        thread = self.frames["thread"]
        lost = self.process_of[thread] < 0
        if not lost.any():
            return
        on_ops = np.isin(thread, each_once(self.ops["thread"]))
        if on_ops.any() or not len(self.ops["thread"]):
            self.process_of[each_once(thread[lost])] = 0
            return
        self.frames["thread"] = np.where(lost, self._main_thread(), thread).astype(np.int32)

    def _main_thread(self) -> int:
        rows = np.bincount(self.ops["thread"], minlength=len(self.thread_keys))
        marked = [t for t in self.markers["thread"].tolist() if rows[t]]
        return int(marked[0]) if marked else int(rows.argmax())

    def _device_processes(self) -> I32:
        """Host process of each device event: the one that launched its correlation.

        Where none or several did, the process that launched most on the same device; else the one with most launches.
        """
        count = len(self.device["start_ns"])
        if self.process_count == 1:
            return np.zeros(count, dtype=np.int32)
        if self.labels:
            return self._device_processes_by_label()
        launcher = self.process_of[self.launches["thread"]]
        known = (self.launches["correlation"] >= 0) & (launcher >= 0)
        owner = _only_owners(self.launches["correlation"][known], launcher[known], self.device["correlation"])
        launches = np.bincount(launcher[launcher >= 0], minlength=self.process_count)
        for rows in split_rows_by_value(self.device["ordinal"]).values():
            votes = owner[rows][owner[rows] >= 0]
            lost = rows[owner[rows] < 0]
            owner[lost] = np.bincount(votes).argmax() if len(votes) else launches.argmax()
        return owner.astype(np.int32)

    def _device_processes_by_label(self) -> I32:
        """Host process of each device event of merged ranks: the one whose name has the label of its lane.

        Each rank numbers its launches by itself, so that a correlation says nothing of another rank.
        """
        process_of_label = {label_of_merged(pid): number for number, pid in reversed(list(enumerate(self.pids)))}
        lanes = [process_of_label.get(label_of_merged(pid), 0) for pid, _ in self.thread_keys]
        return np.array(lanes, dtype=np.int32)[self.device["thread"]]

    def _resolve_collectives(self, collector: Collector, facts: TraceFacts) -> None:
        calls = CallTable()
        self.ops["collective"] = np.full(len(self.ops["start_ns"]), -1, dtype=np.int32)
        op_calls = collector.op_calls
        if self.rows_of_ops is not None:
            rows = self.rows_of_ops.tolist()
            op_calls = [(rows[row], name, args) for row, name, args in op_calls if rows[row] >= 0]
        for row, call in calls_of_ops(op_calls, self.ops, facts.groups):
            self.ops["collective"][row] = calls.index(call)
        self.device["collective"] = np.full(len(self.device["start_ns"]), -1, dtype=np.int32)
        for number, args in collector.kernel_calls:
            row = number if self.rows_of_device is None else int(self.rows_of_device[number])
            kernel_call = call_of_args(args, facts.groups)
            if kernel_call is not None:
                self.device["collective"][row] = calls.index(kernel_call)
                if self.device["kind"][row] == DeviceKind.KERNEL:
                    self.device["kind"][row] = DeviceKind.COMMUNICATION
        self.calls: Collectives = calls.table(self.strings)
        self.groups = process_groups(facts.groups.values(), self.strings)

    # -- captures

    def parts(self) -> Iterator[Part]:
        device_rows = split_rows_by_value(self.device["process"])
        no_rows = np.zeros(0, dtype=np.int64)
        ordinals = {
            process: split_rows_by_value(self.device["ordinal"][device_rows.get(process, no_rows)])
            for process in range(self.process_count)
        }
        check_captures(sum(max(1, len(of_process)) for of_process in ordinals.values()))
        self._check_events(ordinals)
        for process, of_process in ordinals.items():
            rows = device_rows.get(process, no_rows)
            listed = list(of_process)
            wanted: list[int | None] = [*listed] or [None]
            for ordinal in wanted:
                mine = rows if ordinal is None else rows[of_process[ordinal]]
                part = self._part(process, ordinal, listed, rows, mine)
                if part is not None:
                    yield part

    def _check_events(self, ordinals: Mapping[int, Mapping[int, I64]]) -> None:
        """Raise TooManyRowsError where the host events of processes, which each of their devices has, are too many."""
        tables = [getattr(self, name) for name in _HOST]
        events = sum(len(table["thread"]) for table in (*tables, self.device))
        rows = 0
        for process, of_process in ordinals.items():
            rows += max(1, len(of_process)) * sum(len(self._rows_of(name, process)) for name in _HOST)
        check_rows(rows, events, "events of several devices")

    def _rows_of(self, name: str, process: int) -> I64:
        """The rows of a table of host events that are of a process."""
        if name not in self._host_rows:
            self._host_rows[name] = split_rows_by_value(self.process_of[getattr(self, name)["thread"]])
        return self._host_rows[name].get(process, _NO_ROWS)

    def _part(self, process: int, ordinal: int | None, ordinals: list[int], of_process: I64, mine: I64) -> Part | None:
        """The events of a process and one of its devices, None where there are none.

        ordinals: its devices; of_process, mine: the rows of device events of the process, and of this device.
        """
        is_first = ordinals[:1] in ([], [ordinal])
        host = {name: self._of_process(name, process) for name in _HOST}
        host["memory"] = self._memory_of(host["memory"], ordinal, ordinals, is_first=is_first)
        threads = each_once(np.concatenate([table["thread"] for table in host.values()]))
        for table in host.values():
            table["thread"] = np.searchsorted(threads, table["thread"]).astype(np.int32)
        device = {name: column[mine] for name, column in self.device.items()}
        op_external = host["ops"].pop("external")
        marked = self._marker_rows().get(process, _NO_ROWS)
        events = Events(
            strings=self.strings,
            threads=tuple(self._thread_name(thread) for thread in threads.tolist()),
            thread_process=(0,) * len(threads),
            ops=HostOps(**host["ops"]),
            frames=Frames(**host["frames"]),
            launches=Launches(**host["launches"]),
            device=device_events(device),
            collectives=self.calls,
            allocations=self._allocations(host["memory"]),
            markers=Markers(
                start_ns=self.markers["start_ns"][marked],
                end_ns=self.markers["end_ns"][marked],
                step=self.markers["step"][marked],
                process=np.zeros(len(marked), dtype=np.int32),
            ),
            host_is_primary=is_first,
            extras=Extras(
                kernel_metrics=kernel_metrics_of(device, self.strings),
                process_groups=self.groups,
                counters=self.convolutions.counters(self.strings) if is_first else empty(Counters),
                served_elsewhere=self.device["correlation"][np.setdiff1d(of_process, mine, assume_unique=True)],
                step_names=self.step_names,
                op_external=op_external,
                device_external=device["external"],
            ),
        )
        spans = [(getattr(table, a), getattr(table, b)) for name, a, b in _TIMES for table in [getattr(events, name)]]
        spans = [(starts, ends) for starts, ends in spans if len(starts)]
        if not spans:
            return None
        uses_device = len(events.device) > 0 or len(events.launches) > 0 or bool(events.allocations.on_device.any())
        start_ns = min(int(starts.min()) for starts, _ in spans)
        end_ns = max(int(ends.max()) for _, ends in spans)
        pid = self.pids[process] if process < len(self.pids) else ""
        rank = self._rank_of_label(label_of_merged(pid)) if is_first else None
        return Part(events, _known(ordinal), uses_device, start_ns, end_ns, self.cut, rank, str(pid))

    def _rank_of_label(self, label: str) -> int | None:
        """Return the rank of a merged trace: the one number of its label, or its place where labels have several."""
        if label not in self.labels:
            return None
        numbers = [_ONE_NUMBER.fullmatch(other) for other in self.labels]
        ranks = [int(match[1]) for match in numbers if match]
        if len(set(ranks)) < len(self.labels):
            ranks = list(range(len(self.labels)))
        return ranks[self.labels.index(label)]

    def _of_process(self, name: str, process: int) -> Table:
        table: Table = getattr(self, name)
        rows = self._rows_of(name, process)
        if len(rows) == len(table["thread"]):
            return dict(table)
        return {column: values[rows] for column, values in table.items()}

    def _marker_rows(self) -> dict[int, I64]:
        """The rows of the markers of each process."""
        if "markers" not in self._host_rows:
            self._host_rows["markers"] = split_rows_by_value(self.markers["process"])
        return self._host_rows["markers"]

    def _memory_of(self, memory: Table, ordinal: int | None, ordinals: list[int], *, is_first: bool) -> Table:
        """The allocations of one device of a process; host memory and unknown devices go with the first.

        What was allocated on a device that runs nothing belongs to none of the captures. Where no allocation is on a
        device that runs something, profiler and allocator number the devices in two ways: one device is that one.
        """
        on_device = memory["device_type"] != _ON_CPU
        named = on_device & (memory["device_id"] != MISSING)
        numbers = each_once(memory["device_id"][named])
        if ordinal is None or ordinal == MISSING or (len(numbers) == 1 and not np.isin(numbers, ordinals).any()):
            return memory if is_first else {name: column[:0] for name, column in memory.items()}
        mine = named & (memory["device_id"] == ordinal)
        if is_first:
            mine |= ~named
        return {name: column[mine] for name, column in memory.items()}

    def _allocations(self, memory: Table) -> Allocations:
        on_device = memory["device_type"] != _ON_CPU
        words = np.array([self.strings.code("cpu"), self.strings.code("device")], dtype=np.int32)
        return Allocations(
            time_ns=memory["time_ns"],
            thread=memory["thread"],
            bytes=memory["bytes"],
            address=memory["address"],
            on_device=on_device.astype(np.int8),
            component=words[on_device.astype(np.int64)],
            total_allocated_bytes=memory["total_allocated"],
            total_reserved_bytes=memory["total_reserved"],
        )

    def _thread_name(self, thread: int) -> str:
        return self.thread_names.get(thread) or f"thread {self.thread_keys[thread][1]}"


def _only_owners(correlations: I64, processes: I32, wanted: I64) -> I64:
    """Return for each of the `wanted` correlations the one process that has it; -1 where none or several do.

    correlations, processes: one row per launch.
    """
    order = np.lexsort((processes, correlations))
    correlation, process = correlations[order], processes[order]
    first = np.searchsorted(correlation, wanted, side="left")
    last = np.searchsorted(correlation, wanted, side="right") - 1
    found = np.full(len(wanted), -1, dtype=np.int64)
    is_launched = last >= first
    first, last = first[is_launched], last[is_launched]
    # the launches of one correlation stand in order of their processes
    found[is_launched] = np.where(process[first] == process[last], process[first], -1)
    return found


def label_of_merged(pid: object) -> str:
    """Return the label that a script which merges traces puts in front of the number of a process.

    >>> label_of_merged("[TP00] 4100"), label_of_merged(4100), label_of_merged("python")
    ('TP00', '', '')
    """
    match = _MERGED.fullmatch(pid) if isinstance(pid, str) else None
    return match["label"] if match else ""


def _known(ordinal: int | None) -> int | None:
    return None if ordinal == MISSING else ordinal
