"""The rows of the tables of a `Shown`: what each of their columns means.

A table has the columns `rank` and `step` where the user chose these grains. Where a table has the columns of a level of
the profile, which docs/columns.md lists, its row here has those fields alone that are read by their names.
"""

from __future__ import annotations

from msgspec import Struct


class SplitRow(Struct, frozen=True, kw_only=True):
    """A row of a table that the user may split.

    - rank, step: of which the row is, where these are kept apart
    """

    rank: int | None = None
    step: int | None = None


class CaptureRow(Struct, frozen=True, kw_only=True):
    """The whole capture of a rank, with the fields of `Breakdown`.

    - settings: of the profiler, as JSON
    - quality: ok, or what is wrong with the capture; quality_reason: why
    - timeline: device or host
    """

    rank: int | None = None
    settings: str | None = None
    quality: str = "ok"
    quality_reason: str | None = None
    timeline: str | None = None


class StepOfRankRow(Struct, frozen=True, kw_only=True):
    """A step of a rank, with the fields of `Breakdown`.

    - duration_ns: how long it took
    """

    rank: int
    step: int
    duration_ns: int | None = None


class FactRow(Struct, frozen=True, kw_only=True):
    """What is known of the run beside its numbers.

    - kind: fact, configuration or tag
    - key, value: as text
    """

    kind: str
    key: str
    value: str


class LargestRow(SplitRow, frozen=True, kw_only=True):
    """All shapes of the operators, or the kernels, of one name.

    - kind: operator, or kernel where no operator is known
    - calls, total_ns: of the whole capture
    - share: of the time of all of them
    - per_step_ns, calls_per_step: None for what lies outside all steps
    """

    kind: str
    name: str
    calls: int | None
    total_ns: int | None
    share: float | None
    per_step_ns: float | None
    calls_per_step: float | None


class OperatorRow(SplitRow, frozen=True, kw_only=True):
    """An operator with its input shapes, and the numbers of the level `op`."""

    name: str
    input_shapes: str | None


class KernelRow(SplitRow, frozen=True, kw_only=True):
    """A kernel that an operator launched, and the numbers of the level `kernel`.

    - name: as the profiler wrote it; canonical_name: that does not change from build to build
    - input_shapes: its own; op_input_shapes: those of its operator
    - op: its operator
    """

    name: str
    canonical_name: str | None
    input_shapes: str | None
    category: str
    op: str | None
    op_input_shapes: str | None
    per_step_ns: float | None = None


class CollectiveRow(SplitRow, frozen=True, kw_only=True):
    """The calls of a collective in a group, and the numbers of the level `communication`."""

    kind: str
    group_role: str | None
    group_size: int | None
    data_type: str | None
    size_class_bytes: int | None
    per_step_ns: float | None = None


class LinkTotalRow(SplitRow, frozen=True, kw_only=True):
    """What all collectives moved together.

    - level: transport, per transport and group; link, from rank to rank; packet, per size of packet
    - bytes, packets, transit_ns: sums; None where a part is unknown
    - large_packet_ratio: share of large packets, weighted by bytes
    - bandwidth_gb_per_s: in 10^9 bytes/s
    """

    level: str
    transport: str | None
    group_role: str | None
    group_size: int | None
    source_rank: int | None
    target_rank: int | None
    packet_bytes: int | None
    packets: int | None
    bytes: int | None
    transit_ns: int | None
    large_packet_ratio: float | None
    bandwidth_gb_per_s: float | None


class MetricRow(SplitRow, frozen=True, kw_only=True):
    """What was measured in the calls of a kernel, over the whole capture.

    - name, canonical_name, type, core_type, input_shapes: the kernel; calls: that were measured
    - metric: with its unit
    - kind: pipe time, core time, cycles, ratio or other
    - mean, min, max: in the unit that `metric` names
    """

    name: str
    canonical_name: str | None
    type: str | None
    core_type: str | None
    input_shapes: str | None
    metric: str
    kind: str
    calls: int | None
    mean: float | None
    min: float | None
    max: float | None


class CounterRow(SplitRow, frozen=True, kw_only=True):
    """A number of another table of the profiler, over its `calls` values.

    - source: the table
    - name, attribute: of what it is, and what was measured of it, with its unit
    - mean, min, max: in that unit
    """

    source: str
    name: str
    attribute: str
    calls: int | None
    mean: float
    min: float
    max: float


class AllocatedRow(SplitRow, frozen=True, kw_only=True):
    """What an operator allocated in a component, and the numbers of the level `memory`.

    - allocator: the innermost operator, which made most of it; more_allocators: how many others did
    """

    op: str | None
    allocator: str | None = None
    more_allocators: int | None = None


class PeakOwnerRow(Struct, frozen=True, kw_only=True):
    """What an operator held of a component of a rank, from one line of code, when the component held most.

    - op, input_shapes, input_types, module, phase: the operator; allocator: the innermost one, which made the call
    - calls: blocks; bytes: of all of them, None where it is what was allocated before the capture, and not known
    - largest_bytes: of one; first_ns, first_step: when the oldest of them was allocated
    - peak_ns, peak_step: when the component held most; share: of that peak
    - code_line, call_stack: from where the operator was called
    """

    rank: int
    component: str
    op: str | None
    input_shapes: str | None
    input_types: str | None
    module: str | None
    phase: str | None
    allocator: str | None
    calls: int | None
    bytes: int | None
    largest_bytes: int | None
    first_ns: int | None
    first_step: int | None
    peak_ns: int | None
    peak_step: int | None
    code_line: str | None
    call_stack: str | None
    share: float | None = None


class PeakTotalRow(Struct, frozen=True, kw_only=True):
    """What a component of a rank held at its peak, whatever the filters.

    - bytes: None where those of an owner are unknown
    - peak_ns, peak_step: when that was
    """

    rank: int
    component: str
    bytes: int | None
    peak_ns: int | None
    peak_step: int | None


class BlockRow(Struct, frozen=True, kw_only=True):
    """A large single allocation: a row of the level `memory_block`.

    - time_ns: when it was allocated; held_ns: for how long
    - is_released: 1 in the capture, 0 not; None: not known
    """

    step: int | None
    bytes: int | None
    time_ns: int | None
    held_ns: int | None
    is_released: int | None


class IdleRow(SplitRow, frozen=True, kw_only=True):
    """Time in which the device did nothing, by cause and place: a row of the level `idle`."""

    cause: str
    place: str | None


class IdleCauseRow(Struct, frozen=True, kw_only=True):
    """The idle time of one cause at all places.

    - gaps: of its work, which have a part in it; None where the source states idle time alone
    - steps: how many have it
    - share: of all idle time
    """

    cause: str
    ns: int
    gaps: int | None
    steps: int
    per_step_ns: float | None
    share: float | None


class QueueRow(Struct, frozen=True, kw_only=True):
    """How far ahead of the device the host launches the kernels of a stream: a row of the level `queue`."""

    kernels: int


class SummaryRow(Struct, frozen=True, kw_only=True):
    """How a number differs between the rows of a table.

    - metric: a field of `Breakdown`
    - unit: ns, bytes or count
    - rows: how many state it
    - minimum, median, mean, maximum: over these; None where rows are means of several steps, of which only the mean and
      the extremes that the source names are known
    """

    metric: str
    unit: str
    rows: int
    minimum: float | None
    median: float | None
    mean: float
    maximum: float | None


class RankSummaryRow(SummaryRow, frozen=True, kw_only=True):
    """How a number of the whole capture differs between ranks.

    - maximum_rank: whose is the largest
    - share: of a part, in what the parts of all ranks add up to
    """

    maximum_rank: int
    share: float | None


class StepSummaryRow(SummaryRow, frozen=True, kw_only=True):
    """How a number differs between the steps of all ranks.

    - maximum_rank, maximum_step: whose is the largest; None as in the maximum
    """

    maximum_rank: int | None
    maximum_step: int | None


class KernelPipeRow(SplitRow, frozen=True, kw_only=True):
    """A pipe of a core in a kernel: one of the three that worked longest, or of the largest ratios without any.

    - name, canonical_name, type, core_type, input_shapes: the kernel; calls: that were measured
    - core_time_ns: of a call, all of the core
    - place: 1 for the pipe that worked longest
    - kind, metric: what was measured, None where no time of a pipe and no ratio was
    - mean: in the unit that `metric` names
    """

    name: str
    canonical_name: str
    type: str
    core_type: str
    input_shapes: str
    calls: int
    core_time_ns: float | None
    place: int
    kind: str | None
    metric: str | None
    mean: float | None


class CounterSummaryRow(SplitRow, frozen=True, kw_only=True):
    """What a profiler counted in a table of its own, over all things of which it counts it.

    - names: how many things they are
    - mean: of the one thing, None where they are several
    - min, max: over all of them; max_name: of which the largest is
    """

    source: str
    attribute: str
    names: int
    mean: float | None
    min: float | None
    max: float | None
    max_name: str


class InputOperationRow(SplitRow, frozen=True, kw_only=True):
    """An operation of the data pipeline, over the whole capture, as MindSpore's dataset.csv has it.

    - operation: its name, and its stage behind it
    - calls: how often it ran; total_ns: on all of its threads together; average_ns: of one call
    - share: of total_ns in that of all operations
    """

    operation: str
    calls: float | None
    total_ns: float | None
    average_ns: float | None
    share: float | None


class InputQueueRow(SplitRow, frozen=True, kw_only=True):
    """The queue behind an operation of the data pipeline, or how full it was in an interval of the time.

    - operation: that fills it; with `(id:3)` where several operations have its name
    - interval, intervals: which of so many equal ones the row is of; None for all of the time, whose row comes first
    - workers: of the operation; capacity: of the queue; cpu_percent: of the operation
    - empty_share: of the samples with nothing in the queue, as the summary states it, else as they are
    - mean, min, max: entries in the queue, over the samples; sampled_ns: for how long there are samples
    """

    operation: str
    interval: int | None
    intervals: int | None
    workers: float | None
    capacity: float | None
    cpu_percent: float | None
    empty_share: float | None
    mean: float | None
    min: float | None
    max: float | None
    sampled_ns: float | None


class OperatorArgumentRow(SplitRow, frozen=True, kw_only=True):
    """Arguments with which an operator of a type was called, over whole captures, as record_op_args wrote them.

    - operator: its type; inputs, outputs: name, data type, format and shape of each tensor, and its values where the
      operator depends on them; attributes: each with its value
    - calls, total_ns: of the kernels of this type and these input shapes; None where none is known, or where others of
      these arguments have the same shapes
    """

    operator: str
    inputs: str
    outputs: str
    attributes: str
    calls: int | None
    total_ns: int | None


class NodeRow(Struct, frozen=True):
    """What a row of a tree is. Parents come first, and below a row all that is in it.

    - node, parent: its number, and that of the row above (-1: none)
    - level: from 0
    - kind: outside, module, phase, op or kernel
    - path: the names down to it
    """

    node: int
    parent: int
    level: int
    kind: str
    path: str
    name: str
    input_shapes: str


class TreeRow(NodeRow, frozen=True, kw_only=True):
    """A row of `Shown.tree`, which says what its times are.

    - rank, step: of which the row is, where these are kept apart
    - calls: of an op or kernel; of a module or phase those that the source counts, None where it does not
    - op_calls: of all ops below
    - share: of the time of level 0; step_share: of the time of the steps
    """

    calls: int | None
    op_calls: int | None
    host_total_ns: int | None
    host_self_ns: int | None
    device_total_ns: int | None
    device_self_ns: int | None
    share: float | None
    step_share: float | None
    rank: int | None = None
    step: int | None = None
