"""What happened on one rank, as columns: the tables that a reader fills, never one object per event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from tracker.profile.words import MISSING

I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


class Strings:
    """A pool of distinct texts; each has a code, in order of first use.

    >>> pool = Strings(); pool.code("aten::mm"), pool.code("aten::mm"), pool.code(""), pool.texts
    (1, 1, 0, ['', 'aten::mm'])
    """

    __slots__ = ("_codes", "texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts: list[str] = [""]
        self._codes: dict[str, int] = {"": 0}
        for text in texts:
            self.code(text)

    def code(self, text: str) -> int:
        """The code of `text`, given out on first use."""
        known = self._codes.get(text)
        if known is None:
            known = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return known

    def codes(self, texts: Sequence[str | None]) -> list[int]:
        """The code of each text, as `code` gives it; that of None is that of the empty text."""
        known = self._codes
        return [known[text] if text in known else self.code(text or "") for text in texts]

    def __getitem__(self, code: int) -> str:
        return self.texts[code]

    def __len__(self) -> int:
        return len(self.texts)


class DeviceKind(IntEnum):
    """What the source says about a device event; timeline decides which kernels are communication."""

    KERNEL = 0
    COMMUNICATION = 1
    COPY = 2
    MEMSET = 3


class LaunchLevel(IntEnum):
    """Where a launch call was seen. FLOW is no call: a flow arrow of the trace, kept only to link a device event.

    ACL, NODE, MODEL, HCCL: the layers of CANN above its runtime; they link a device event only where nothing else does.
    QUEUE: a framework hands work to a thread of its own or takes it there (`Enqueue`, `Dequeue`); it links nothing.
    OS: calls of the operating system (pthread, ioctl), on any thread; they link nothing and do not bound a capture.
    PROFILER: work of the profiler itself, as writing down what it recorded, on the thread that it keeps busy, or on one
    of its own where the source does not say which; as with OS.
    """

    RUNTIME = 0
    DRIVER = 1
    FLOW = 2
    ACL = 3
    NODE = 4
    MODEL = 5
    HCCL = 6
    QUEUE = 7
    OS = 8
    PROFILER = 9


class EventColumns(Struct, frozen=True):
    """Base of the column tables: equal lengths, checked dtypes."""

    def __post_init__(self) -> None:
        lengths = {len(getattr(self, name)) for name in self.__struct_fields__}
        if len(lengths) > 1:
            raise ValueError(f"{type(self).__name__}: columns of different length {sorted(lengths)}")

    def __len__(self) -> int:
        return len(getattr(self, self.__struct_fields__[0]))


class HostOps(EventColumns, frozen=True):
    """Operators and user annotations on host threads, in any order; step markers are not among them.

    `thread`: index into `Events.threads`. `is_annotation`: 1 for user annotations. `module`: the module path the source
    itself names (0: none; timeline then looks at `Frames`). `sequence`: autograd sequence number or -1;
    `is_backward`: 1 where the source says the op ran for a forward op of the same `sequence`.
    `collective`: index into `Collectives` or -1.
    """

    start_ns: I64
    end_ns: I64
    thread: I32
    name: I32
    input_shapes: I32
    input_types: I32
    module: I32
    call_stack: I32
    sequence: I64
    is_backward: I8
    is_annotation: I8
    collective: I32


class Frames(EventColumns, frozen=True):
    """Python frames and `nn.Module` calls on host threads. `is_module`: 1 where `name` is a module instance
    (`Linear_0`).
    """

    start_ns: I64
    end_ns: I64
    thread: I32
    name: I32
    is_module: I8


class Launches(EventColumns, frozen=True):
    """Host calls of the device runtime and driver, launching or not. `correlation` is -1 for calls without one."""

    start_ns: I64
    end_ns: I64
    thread: I32
    name: I32
    level: I8
    correlation: I64


class DeviceEvents(EventColumns, frozen=True):
    """Kernels, copies and memsets of ONE device. `step`: the source's own step id, or MISSING. `bytes`: or MISSING.

    `process`: index of the host process whose launches may match (see `Events.thread_process`).
    `correlation`: equal to that of its launch, -1 for none. `collective`: index into `Collectives` or -1.
    `type`, `core_type`, `input_shapes`, `input_types`, `input_formats`: what NPU profilers say of a kernel, else 0.
    """

    start_ns: I64
    end_ns: I64
    stream: I64
    process: I32
    correlation: I64
    name: I32
    kind: I8
    bytes: I64
    step: I64
    collective: I32
    type: I32
    core_type: I32
    input_shapes: I32
    input_types: I32
    input_formats: I32
    wait_ns: I64


class Collectives(EventColumns, frozen=True):
    """What the source says of a collective call. `kind` like `all_reduce`; `group_role` like `dp`; missing: 0 /
    MISSING.

    `bytes`: payload of one call on this rank. `group`: the source's raw group id, which differs from process to
    process. `group_ranks`: the members as `ranks_text` writes them. `peer`: the global rank at the other end of a send
    or receive, -1 for none. `source_index`: the number of the call in its group, where each row is one call.
    """

    kind: I32
    group: I32
    group_role: I32
    group_size: I64
    group_ranks: I32
    data_type: I32
    bytes: I64
    peer: I64
    source_index: I64


class ProcessGroups(EventColumns, frozen=True):
    """The groups that the process is in, whether or not a call names them. `ranks`: as `ranks_text` writes them, 0:
    unknown.
    """

    role: I32
    size: I64
    ranks: I32


class Allocations(EventColumns, frozen=True):
    """Allocator events. `bytes` < 0 frees. `component`: `cpu`, `device` or a profiler's own word.

    `on_device`: 0 host memory, 1 device memory. `total_*`: the allocator's counters after the event, or MISSING.
    """

    time_ns: I64
    thread: I32
    bytes: I64
    address: I64
    on_device: I8
    component: I32
    total_allocated_bytes: I64
    total_reserved_bytes: I64


class Markers(EventColumns, frozen=True):
    """Step markers: `step` is the number in `ProfilerStep#N`; one row per step, ordered by start. NO_STEP: a time of
    which nothing belongs to a step.
    """

    start_ns: I64
    end_ns: I64
    step: I64
    process: I32


class KernelMetrics(EventColumns, frozen=True):
    """Measurements of single kernels (PMU / AI Core, occupancy): `event` is an index into DeviceEvents, `metric` as the
    source spells it, with its unit. What a kernel does not state has no row.
    """

    event: I32
    metric: I32
    value: F64


class CollectiveTimes(EventColumns, frozen=True):
    """Where the time of a collective call went, as the profiler says; each or MISSING. `collective`: index into
    Collectives, of which a source that knows these times has one row per call.
    """

    collective: I32
    transit_ns: I64
    wait_ns: I64
    synchronization_ns: I64
    idle_ns: I64


class CollectiveTasks(EventColumns, frozen=True):
    """The tasks of a collective call (`Notify_Wait`, `Memcpy`, `Reduce_Inline`, ...) on their plane. `peer`: the rank
    at the other end, a global one where the members of the group are known, else the rank in the group; -1 for none.
    """

    collective: I32
    name: I32
    plane: I32
    start_ns: I64
    end_ns: I64
    peer: I64


class CollectiveLinks(EventColumns, frozen=True):
    """What a collective call moved. `transport`: SDMA, RDMA, HCCS, ...

    `source`, `target`: global ranks, or -1 for all links.
    `packet_bytes`: size of the packets that the row counts, or -1 for all sizes. `packets`: how many, or MISSING.
    `large_packet_ratio`: share of large packets, NaN where not said.
    """

    collective: I32
    transport: I32
    source: I64
    target: I64
    packet_bytes: I64
    packets: I64
    bytes: I64
    transit_ns: I64
    large_packet_ratio: F64


class MemoryPoints(EventColumns, frozen=True):
    """The course of memory as the profiler sampled it; each counter or MISSING."""

    time_ns: I64
    component: I32
    allocated_bytes: I64
    reserved_bytes: I64


class Counters(EventColumns, frozen=True):
    """Any other table of a profiler, one row per number.

    `source` is the file or table (`l2_cache`), `name` the thing measured,
    `attribute` the measurement with its unit (`Hit Rate`). `step`: the source's own step id, or NO_STEP.
    """

    step: I64
    source: I32
    name: I32
    attribute: I32
    value: F64


class ApiTotals(EventColumns, frozen=True):
    """Host calls of which the source knows sums over the whole capture alone; `level` as of Launches. `min_ns`,
    `max_ns`: of one call, or MISSING.
    """

    level: I8
    name: I32
    calls: I64
    total_ns: I64
    min_ns: I64
    max_ns: I64


class StepTimes(EventColumns, frozen=True):
    """What the profiler itself says of a step; each or MISSING.

    Bubble and preparation do not show in events. The others are a breakdown of its own, which stands in where the
    device tasks are unknown.
    """

    step: I64
    bubble_ns: I64
    preparing_ns: I64
    compute_ns: I64
    communication_ns: I64
    overlap_ns: I64
    exposed_communication_ns: I64
    idle_ns: I64


def empty(table: type[EventColumns]) -> Any:
    """A table of `table`'s columns without rows.

    >>> len(empty(Markers))
    0
    """
    kinds = {"I8": np.int8, "I32": np.int32, "I64": np.int64, "F64": np.float64}
    return table(**{name: np.zeros(0, dtype=kinds[table.__annotations__[name]]) for name in table.__struct_fields__})


class Extras(Struct, frozen=True):
    """What only some profilers know; empty by default.

    `block_num`: blocks per DeviceEvents row (or MISSING), or empty. `task`: per DeviceEvents row the number of its task
    on its stream, as an NPU counts them (or MISSING), or empty. `op_phase`: per HostOps row the part of a training
    step that the source itself names, a word of PHASES or none (0), or empty; it goes down to the ops inside.
    `allocation_op`: per Allocations row the op that the source itself names, or none (0), or empty.
    `allocation_ns`: per Allocations row when memory was really allocated, where `time_ns` is when its op asked
    for it (a queue is between them), or empty.
    `process_groups`: those of the process, where the source lists them.
    `only_collectives`: the source has no other work of the device, so that nothing is known of compute and copies
    beyond `step_times`. `no_collectives`: there were collectives, of which the source has lost all.
    `no_kernels`: the source knows copies and memsets of the device, and nothing of kernels. `no_copies`: the other way
    round. `no_device`: the capture is of a device, and the source has no event of it.
    `waiting_threads`: ranges are of their thread alone, also where it waits for another one that does the work.
    `served_elsewhere`: correlations of the device events of the process that ran on its other devices.
    `collected_events`: how many calls and device events of the process the profiler states that it collected, or
    MISSING; `exported_events`: how many of them are in the source. `ends_at_once`: the capture ends without waiting for
    the device, so that its last launches may have no kernels.
    `op_external`, `device_external`: per HostOps and per DeviceEvents row the id by which a device event names its op,
    -1 for none, or empty.
    `handover_ns`: per DeviceEvents row when the host handed it over to the device, MISSING where that is not known, or
    empty: the end of its launch call. `handover_thread`: index into `Events.threads` of the thread that did so, -1 or
    empty: that of its launch.
    `step_names`: the name of each marker that says more than the number of its step, by that number.
    """

    block_num: I64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    op_phase: I32 = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    allocation_op: I32 = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    allocation_ns: I64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    kernel_metrics: KernelMetrics = field(default_factory=lambda: empty(KernelMetrics))
    process_groups: ProcessGroups = field(default_factory=lambda: empty(ProcessGroups))
    collective_times: CollectiveTimes = field(default_factory=lambda: empty(CollectiveTimes))
    collective_tasks: CollectiveTasks = field(default_factory=lambda: empty(CollectiveTasks))
    collective_links: CollectiveLinks = field(default_factory=lambda: empty(CollectiveLinks))
    memory_points: MemoryPoints = field(default_factory=lambda: empty(MemoryPoints))
    counters: Counters = field(default_factory=lambda: empty(Counters))
    step_times: StepTimes = field(default_factory=lambda: empty(StepTimes))
    api_totals: ApiTotals = field(default_factory=lambda: empty(ApiTotals))
    only_collectives: bool = False
    no_collectives: bool = False
    no_kernels: bool = False
    no_copies: bool = False
    no_device: bool = False
    waiting_threads: bool = False
    served_elsewhere: I64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    collected_events: int = MISSING
    exported_events: int = 0
    ends_at_once: bool = False
    step_names: Mapping[int, str] = field(default_factory=dict)
    op_external: I64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    device_external: I64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    handover_ns: I64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    handover_thread: I32 = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    task: I64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


class Events(Struct, frozen=True):
    """All that happened on one rank. `threads[i]` names thread i; `thread_process[i]` is the index of its process."""

    strings: Strings
    threads: tuple[str, ...]
    thread_process: tuple[int, ...]
    ops: HostOps
    frames: Frames
    launches: Launches
    device: DeviceEvents
    collectives: Collectives
    allocations: Allocations
    markers: Markers
    host_is_primary: bool = True
    """False for the second and further devices of one process: their host time is counted with the first."""
    extras: Extras = field(default_factory=Extras)
