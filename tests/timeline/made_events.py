"""Events of one rank from a few lines, for stories that a reader can compute in the head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from tracker.profile import (
    CPU,
    MISSING,
    NO_STEP,
    Allocations,
    Capture,
    CollectiveLinks,
    Collectives,
    CollectiveTasks,
    CollectiveTimes,
    Counters,
    DeviceEvents,
    DeviceKind,
    EventColumns,
    Events,
    Extras,
    Frames,
    HostOps,
    KernelMetrics,
    Launches,
    LaunchLevel,
    Markers,
    MemoryPoints,
    ProcessGroups,
    Rows,
    StepTimes,
    Strings,
)
from tracker.timeline import rows_of

DTYPES = {"I8": np.int8, "I32": np.int32, "I64": np.int64, "F64": np.float64}
PLAIN = (HostOps, Frames, Launches, DeviceEvents, Collectives, Allocations, Markers)
EXTRA = {
    KernelMetrics: "kernel_metrics",
    CollectiveTimes: "collective_times",
    CollectiveTasks: "collective_tasks",
    CollectiveLinks: "collective_links",
    MemoryPoints: "memory_points",
    ProcessGroups: "process_groups",
    Counters: "counters",
    StepTimes: "step_times",
}


class Made:
    """Collects rows per table; texts are given as text. Thread n belongs to process 0 unless `processes` says more."""

    def __init__(self, processes: tuple[int, ...] = (0, 0, 0, 0)) -> None:
        self.strings = Strings()
        self.processes = processes
        self.host_is_primary = True
        self.rows: dict[type[EventColumns], list[dict[str, Any]]] = {table: [] for table in (*PLAIN, *EXTRA)}
        self.blocks: list[int] = []

    def op(self, name: str, start: int, end: int, thread: int = 0, **given: Any) -> None:
        row = {"input_shapes": "", "input_types": "", "module": "", "call_stack": "", "sequence": -1}
        row |= {"is_backward": 0, "is_annotation": 0, "collective": -1}
        self._add(HostOps, row, name=name, start_ns=start, end_ns=end, thread=thread, **given)

    def annotation(self, name: str, start: int, end: int, thread: int = 0, **given: Any) -> None:
        self.op(name, start, end, thread, is_annotation=1, **given)

    def frame(self, name: str, start: int, end: int, thread: int = 0, is_module: int = 0) -> None:
        self._add(Frames, {}, name=name, start_ns=start, end_ns=end, thread=thread, is_module=is_module)

    def launch(
        self, start: int, correlation: int, *, thread: int = 0, end: int | None = None, name: str = "cudaLaunchKernel",
        level: int = LaunchLevel.RUNTIME,
    ) -> None:  # fmt: skip
        ends = start + 1 if end is None else end
        self._add(
            Launches, {}, name=name, start_ns=start, end_ns=ends, thread=thread, level=level, correlation=correlation
        )

    def kernel(self, name: str, start: int, end: int, correlation: int = -1, **given: Any) -> None:
        row = {
            "stream": 7,
            "process": 0,
            "kind": DeviceKind.KERNEL,
            "bytes": MISSING,
            "step": MISSING,
            "collective": -1,
        }
        row |= dict.fromkeys(("type", "core_type", "input_shapes", "input_types", "input_formats"), "")
        row |= dict.fromkeys(("bytes", "step", "wait_ns"), MISSING)
        self._add(DeviceEvents, row, name=name, start_ns=start, end_ns=end, correlation=correlation, **given)

    def npu_kernel(
        self, name: str, start: int, end: int, correlation: int = -1, *, metrics: Any = None, blocks: int = MISSING,
        **given: Any,
    ) -> None:  # fmt: skip
        """A kernel with measurements: {metric: value}."""
        self.blocks += [MISSING] * (len(self.rows[DeviceEvents]) - len(self.blocks)) + [blocks]
        for metric, value in (metrics or {}).items():
            self.measure(len(self.rows[DeviceEvents]), metric, value)
        self.kernel(name, start, end, correlation, **given)

    def measure(self, event: int, metric: str, value: float) -> None:
        self._add(KernelMetrics, {}, event=event, metric=metric, value=value)

    def hcom(self, name: str, start: int, end: int, correlation: int = -1, **given: Any) -> int:
        """A collective call of an NPU with a description of its own, whose row is returned."""
        of_event = {"step": given.pop("step", MISSING), "stream": given.pop("stream", 7)}
        collective = self.collective(**{"kind": "all_reduce", "group_role": "dp", "group_size": 8, **given})
        kind = DeviceKind.COMMUNICATION
        self.kernel(name, start, end, correlation, kind=kind, collective=collective, **of_event)
        return collective

    def times(self, collective: int, **given: Any) -> None:
        row = dict.fromkeys(("transit_ns", "wait_ns", "synchronization_ns", "idle_ns"), MISSING)
        self._add(CollectiveTimes, row, collective=collective, **given)

    def task(self, collective: int, name: str, start: int, end: int, plane: str = "0", peer: int = -1) -> None:
        times = {"start_ns": start, "end_ns": end}
        self._add(CollectiveTasks, times, collective=collective, name=name, plane=plane, peer=peer)

    def link(self, collective: int, transport: str, size: int, **given: Any) -> None:
        row = {"source": -1, "target": -1, "packet_bytes": -1, "packets": MISSING, "transit_ns": MISSING}
        row |= {"large_packet_ratio": np.nan}
        self._add(CollectiveLinks, row, collective=collective, transport=transport, bytes=size, **given)

    def memory_point(self, time: int, component: str, allocated: int = MISSING, reserved: int = MISSING) -> None:
        self._add(
            MemoryPoints, {}, time_ns=time, component=component, allocated_bytes=allocated, reserved_bytes=reserved
        )

    def counter(self, source: str, name: str, attribute: str, value: float, step: int = NO_STEP) -> None:
        self._add(Counters, {}, source=source, name=name, attribute=attribute, value=value, step=step)

    def step_times(self, step: int, **given: int) -> None:
        """What the profiler itself says of a step, in ns: bubble=5, idle=7, ..."""
        row = dict.fromkeys(StepTimes.__struct_fields__, MISSING)
        self._add(StepTimes, row, step=step, **{f"{name}_ns": value for name, value in given.items()})

    def copy(self, start: int, end: int, correlation: int = -1, **given: Any) -> None:
        self.kernel("Memcpy HtoD (Pinned -> Device)", start, end, correlation, kind=DeviceKind.COPY, **given)

    def memset(self, start: int, end: int, correlation: int = -1, **given: Any) -> None:
        self.kernel("Memset (Device)", start, end, correlation, kind=DeviceKind.MEMSET, **given)

    def collective(self, kind: str, **given: Any) -> int:
        row = {"group": "", "group_role": "", "group_size": MISSING, "group_ranks": "", "data_type": ""}
        row |= {"bytes": MISSING, "peer": -1, "source_index": MISSING}
        self._add(Collectives, row, kind=kind, **given)
        return len(self.rows[Collectives]) - 1

    def allocation(self, time: int, size: int, address: int, thread: int = 0, **given: Any) -> None:
        row = {"on_device": 1, "component": "device", "total_allocated_bytes": MISSING, "total_reserved_bytes": MISSING}
        self._add(Allocations, row, time_ns=time, bytes=size, address=address, thread=thread, **given)

    def step(self, number: int, start: int, end: int) -> None:
        self._add(Markers, {"process": 0}, step=number, start_ns=start, end_ns=end)

    def events(self) -> Events:
        tables = {table: self._table(table) for table in self.rows}
        threads = tuple(f"thread {number}" for number in range(len(self.processes)))
        return Events(
            self.strings,
            threads,
            self.processes,
            tables[HostOps],
            tables[Frames],
            tables[Launches],
            tables[DeviceEvents],
            tables[Collectives],
            tables[Allocations],
            tables[Markers],
            self.host_is_primary,
            self._extras(tables),
        )

    def _extras(self, tables: Any) -> Extras:
        blocks = self.blocks + [MISSING] * (len(self.rows[DeviceEvents]) - len(self.blocks)) if self.blocks else []
        named = {name: tables[table] for table, name in EXTRA.items()}
        # an op may be given `phase`, which is no column of its table
        phases = [self.strings.code(row.get("phase", "")) for row in self.rows[HostOps]]
        op_phase = np.array(phases if any(phases) else [], dtype=np.int32)
        # and an allocation the `op` that the source names
        said = [self.strings.code(row.get("op", "")) for row in self.rows[Allocations]]
        allocation_op = np.array(said if any(said) else [], dtype=np.int32)
        device, handed_over = self.rows[DeviceEvents], {}
        # and a device event the `handover_ns` and the `handover_thread`
        if any("handover_ns" in row for row in device):
            handed_over["handover_ns"] = np.array([row.get("handover_ns", MISSING) for row in device], dtype=np.int64)
            handed_over["handover_thread"] = np.array(
                [row.get("handover_thread", -1) for row in device], dtype=np.int32
            )
        return Extras(np.array(blocks, dtype=np.int64), op_phase, allocation_op, **named, **handed_over)

    def built(self, loader_names: Sequence[str] = (), **extras: Any) -> Rows:
        """The rows; `extras`: what the source does not have, such as no_copies=True."""
        events = self.events()
        return rows_of(replace(events, extras=replace(events.extras, **extras)), loader_names=loader_names)

    def capture(self, rank: int | None = 0, world_size: int | None = None) -> Capture:
        return Capture(rank, world_size, "host", CPU, 0, None, None, (), events=self.events())

    def shuffled(self, order: Any) -> Made:
        """The same rows in another order; `order` is a random.Random."""
        other = Made(self.processes)
        other.host_is_primary = self.host_is_primary
        for table, rows in self.rows.items():
            mixed = list(rows)
            # collectives are referred to by place, markers are ordered by contract; device events see below
            if table not in (Collectives, DeviceEvents, KernelMetrics, Markers):
                order.shuffle(mixed)
            other.rows[table] = mixed
        # measurements and blocks follow their device events
        places = list(range(len(self.rows[DeviceEvents])))
        order.shuffle(places)
        other.rows[DeviceEvents] = [self.rows[DeviceEvents][place] for place in places]
        other.blocks = [self.blocks[place] if place < len(self.blocks) else MISSING for place in places]
        moved = [{**row, "event": places.index(row["event"])} for row in self.rows[KernelMetrics]]
        order.shuffle(moved)
        other.rows[KernelMetrics] = moved
        return other

    def _add(self, table: type[EventColumns], defaults: dict[str, Any], **given: Any) -> None:
        self.rows[table].append(defaults | given)

    def _table(self, table: type[EventColumns]) -> Any:
        columns = {}
        for name, kind in table.__annotations__.items():
            values = [row[name] for row in self.rows[table]]
            coded = [self.strings.code(value) if isinstance(value, str) else value for value in values]
            columns[name] = np.array(coded, dtype=DTYPES[kind])
        return table(**columns)


def records(table: Any, *columns: str) -> list[tuple[Any, ...]]:
    """Rows of a table as tuples of the named columns, in the table's order."""
    return list(zip(*(_listed(table[column]) for column in columns), strict=True))


def by_op(rows: Rows, *columns: str, table: str = "op") -> dict[Any, Any]:
    """name of the op key -> the named columns (a single one bare); names must be unique in `table`."""
    names = rows.tables["op_key"]["name"]
    found: dict[Any, Any] = {}
    for key, *values in records(rows.tables[table], "op_key", *columns):
        assert names[key] not in found
        found[names[key]] = values[0] if len(values) == 1 else tuple(values)
    return found


def _listed(column: Any) -> list[Any]:
    return column if isinstance(column, list) else column.tolist()
