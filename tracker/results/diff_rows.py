"""The rows of the tables of a `Diff`: what each of their columns means.

Numbers are as in `Diff`: per step, None for missing. The columns of a table are the fields of its row, in order. Of
the tables of `results.columns.MATCHED_COLUMNS`, which declares their numbers, a row here has those fields alone that
are read by their names.
"""

from __future__ import annotations

from msgspec import Struct

from tracker.results.shown_rows import NodeRow


class EnvironmentRow(Struct, frozen=True):
    """What differs between two sides beside their profiles; all of it is text.

    - kind: workload, device, configuration, code, fact, host, setting, capture or tag
    - key: what of that kind
    - baseline, candidate: what each side says, several values with ` | ` between; None where it does not say
    """

    kind: str
    key: str
    baseline: str | None
    candidate: str | None


class OverallRow(Struct, frozen=True):
    """A number of the whole step.

    - metric: step_ns, e2e_ns, compute_ns (below it a row per category, `matmul:cube` and `matmul:vector` where the
      profiler tells them apart, `mc2:NAME` per kernel and below it `mc2:NAME:computing`, `mc2:NAME:communication`),
      operator_ns (plain sum of compute kernels; below it operator_cube_ns, operator_vector_ns),
      exposed_communication_ns (below it `exposed_communication_ns:GROUP` per process group, of that
      `exposed_wait_ns:GROUP` (in proportion where compute hides a collective in part and only its whole waiting is
      known) and the rest `exposed_transmit_ns:GROUP`; where the profiler states them, of the whole collectives, hidden
      by compute or not, `group_synchronization_ns:GROUP` (in the waiting), `group_transit_ns:GROUP` and
      `group_idle_ns:GROUP`; and `groups_at_once_ns`, what these rows lack to add up to it: below 0 where several of
      them count the same time), communication_ns, overlap_ns, copy_ns, exposed_copy_ns, idle_ns, idle_share,
      kernel_count, peak_allocated_bytes (of the framework's allocator; below it `peak_allocated_bytes:COMPONENT`), ...
    - title: the metric in words
    - level: 0 main, 1, 2 below
    - unit: ns, bytes, count or ratio; of values and delta
    - share: of the step (of E2E without step markers)
    - calls: kernels of a row that sums kernels, collectives of a row that sums collectives, else None
    - verdict and what follows it: see VERDICT_COLUMNS
    """

    metric: str
    title: str
    level: int
    unit: str
    baseline_value: float | None
    candidate_value: float | None
    delta: float | None
    diff: float | None
    baseline_share: float | None
    candidate_share: float | None
    baseline_calls: float | None
    candidate_calls: float | None
    verdict: str | None = None
    judged_diff: float | None = None
    q: float | None = None
    detectable: float | None = None
    reason: str | None = None


class OperatorChange(Struct, frozen=True):
    """An operator with its input shapes and types on both sides.

    - baseline_name: what it is called in the baseline, where `op_map` says that; else None
    - ns: of the kind that `Diff.metric` names; calls: per step; total_calls: in all steps and ranks of the side
    - calls_delta_ns, per_call_delta_ns: what more calls and slower calls make of delta_ns, which is their sum
    - host_total_ns, host_self_ns, device_total_ns, device_self_ns: with and without the calls inside
    - host_delta_ns, host_diff: of the host self time
    - average_ns, min_ns, max_ns: of a call with what it calls, on the device where there is one; host_min_ns,
      host_max_ns: on the host; min and max None where an op stands for all below it
    - verdict and what follows it: see VERDICT_COLUMNS
    """

    name: str
    input_shapes: str | None
    input_types: str | None
    baseline_name: str | None
    status: str
    baseline_ns: float | None
    candidate_ns: float | None
    delta_ns: float | None
    diff: float | None
    baseline_calls: float | None
    candidate_calls: float | None
    calls_delta_ns: float | None
    per_call_delta_ns: float | None
    baseline_host_total_ns: float | None
    candidate_host_total_ns: float | None
    baseline_host_self_ns: float | None
    candidate_host_self_ns: float | None
    baseline_device_total_ns: float | None
    candidate_device_total_ns: float | None
    baseline_device_self_ns: float | None
    candidate_device_self_ns: float | None
    baseline_total_calls: float | None
    candidate_total_calls: float | None
    host_delta_ns: float | None
    host_diff: float | None
    baseline_average_ns: float | None
    candidate_average_ns: float | None
    baseline_min_ns: float | None
    candidate_min_ns: float | None
    baseline_max_ns: float | None
    candidate_max_ns: float | None
    baseline_host_min_ns: float | None
    candidate_host_min_ns: float | None
    baseline_host_max_ns: float | None
    candidate_host_max_ns: float | None
    verdict: str | None = None
    judged_diff: float | None = None
    q: float | None = None
    detectable: float | None = None
    reason: str | None = None


class OperatorDetailRow(Struct, frozen=True):
    """A kernel that an operator launched: what a row of `ops` consists of.

    - name, input_shapes, input_types: of the operator; kernel, category: of the kernel
    """

    name: str
    input_shapes: str | None
    input_types: str | None
    kernel: str
    category: str
    baseline_calls: float | None
    candidate_calls: float | None
    baseline_ns: float | None
    candidate_ns: float | None
    delta_ns: float | None
    diff: float | None


class MatchedRow(Struct, frozen=True, kw_only=True):
    """A row of a table of MATCHED_COLUMNS, beside its key and the numbers that are declared there.

    - status: BOTH, ADDED, REMOVED or UNMATCHED
    - verdict, judged_diff, q, reason: see VERDICT_COLUMNS; None where the rows of the table are no series
    """

    status: str
    baseline_ns: float | None
    candidate_ns: float | None
    delta_ns: float | None
    diff: float | None
    baseline_calls: float | None = None
    candidate_calls: float | None = None
    verdict: str | None = None
    judged_diff: float | None = None
    q: float | None = None
    reason: str | None = None


class KernelChange(MatchedRow, frozen=True, kw_only=True):
    """A kernel of both sides.

    - name: the canonical name; type: as an NPU's profiler names it, else ""; core_type: of the cores that it runs on
    - op: the operator whose time in the kernel changed most; more_ops: how many others launch it
    - why: what the metrics say of longer or shorter calls, else ""
    """

    name: str
    input_shapes: str | None
    type: str | None
    category: str | None
    core_type: str | None
    op: str | None
    more_ops: float | None
    why: str | None


class KernelTypeChange(MatchedRow, frozen=True, kw_only=True):
    """The kernels of a type, as an NPU's profiler names it, on both sides."""

    type: str
    core_type: str | None


class CollectiveChange(MatchedRow, frozen=True, kw_only=True):
    """The calls of a collective in a group on both sides.

    - split_by: what tells the parts of its time apart: ranks, profiler or tasks; None where nothing does
    """

    kind: str
    group_role: str | None
    group_size: int | None
    data_type: str | None
    size_class_bytes: int | None
    baseline_split_by: str | None
    candidate_split_by: str | None


class CollectiveDetailRow(Struct, frozen=True, kw_only=True):
    """What the calls of a collective consist of: one task name on one plane.

    - plane: the lane of the hardware that the task ran on
    """

    kind: str
    group_role: str | None
    group_size: int | None
    data_type: str | None
    size_class_bytes: int | None
    name: str
    plane: str | None


class ModuleChange(MatchedRow, frozen=True, kw_only=True):
    """A module in a phase on both sides."""

    module: str | None
    phase: str | None


class ApiChange(MatchedRow, frozen=True, kw_only=True):
    """A call of the host API on both sides."""

    level: str
    name: str


class IdleChange(MatchedRow, frozen=True, kw_only=True):
    """Time in which the device did nothing, by cause and place, on both sides."""

    cause: str
    place: str | None


class LinkChange(Struct, frozen=True):
    """What a collective moved over a transport on both sides.

    - source_rank, target_rank: None for all links together
    - level: transport, for all links together; link, for one from rank to rank
    - bandwidth_gb_per_s: in 10^9 bytes/s; large_packet_ratio: share of large packets
    - delta_ns, diff: of transit_ns
    """

    kind: str
    group_role: str | None
    group_size: int | None
    transport: str | None
    source_rank: int | None
    target_rank: int | None
    level: str
    status: str
    baseline_calls: float | None
    candidate_calls: float | None
    baseline_packets: float | None
    candidate_packets: float | None
    baseline_bytes: float | None
    candidate_bytes: float | None
    baseline_transit_ns: float | None
    candidate_transit_ns: float | None
    baseline_bandwidth_gb_per_s: float | None
    candidate_bandwidth_gb_per_s: float | None
    baseline_large_packet_ratio: float | None
    candidate_large_packet_ratio: float | None
    delta_ns: float | None
    diff: float | None


class AllocatedChange(Struct, frozen=True):
    """What an operator allocated on both sides, by itself or through helpers inside.

    - allocator: the innermost op of most of the bytes; more_allocators: how many others
    - verdict and what follows it: see VERDICT_COLUMNS
    """

    name: str
    input_shapes: str | None
    input_types: str | None
    status: str
    baseline_bytes: float | None
    candidate_bytes: float | None
    baseline_calls: float | None
    candidate_calls: float | None
    delta_bytes: float | None
    diff: float | None
    allocator: str | None
    more_allocators: float | None
    verdict: str | None = None
    judged_diff: float | None = None
    q: float | None = None
    detectable: float | None = None
    reason: str | None = None


class AllocatedDetailRow(Struct, frozen=True):
    """What one allocator allocated of a component for an operator: what a row of `memory` consists of.

    - held_ns: until it was freed; unreleased_bytes: never freed in the capture
    """

    name: str
    input_shapes: str | None
    input_types: str | None
    component: str
    allocator: str | None
    baseline_bytes: float | None
    candidate_bytes: float | None
    baseline_calls: float | None
    candidate_calls: float | None
    baseline_held_ns: float | None
    candidate_held_ns: float | None
    baseline_unreleased_bytes: float | None
    candidate_unreleased_bytes: float | None
    delta_bytes: float | None
    diff: float | None


class PeakTotalChange(Struct, frozen=True):
    """What a component held at its peak on both sides, whatever the filters."""

    component: str
    baseline_bytes: float | None
    candidate_bytes: float | None
    delta_bytes: float | None
    diff: float | None


class CounterChange(Struct, frozen=True):
    """A number of another table of both profilers, over its `calls` values of a run.

    - source: the table; name, attribute: of what it is, and what was measured of it
    - mean, min, max, delta: in the unit that `attribute` names
    """

    source: str
    name: str
    attribute: str
    baseline_calls: float | None
    candidate_calls: float | None
    baseline_mean: float | None
    candidate_mean: float | None
    baseline_min: float | None
    candidate_min: float | None
    baseline_max: float | None
    candidate_max: float | None
    delta: float | None
    diff: float | None


class TreeChange(NodeRow, frozen=True):
    """A row of `Diff.tree`.

    - ns, self_ns: with and without the rows below that are no ops, of the kind that `Diff.metric` names
    - share, step_share, calls, op_calls: as in `TreeRow`
    - verdict and what follows it: see VERDICT_COLUMNS; of rows whose time is that of one series
    """

    status: str
    baseline_ns: float | None
    candidate_ns: float | None
    baseline_self_ns: float | None
    candidate_self_ns: float | None
    delta_ns: float | None
    diff: float | None
    baseline_share: float | None
    candidate_share: float | None
    baseline_step_share: float | None
    candidate_step_share: float | None
    baseline_calls: float | None
    candidate_calls: float | None
    baseline_op_calls: float | None
    candidate_op_calls: float | None
    baseline_host_total_ns: float | None
    candidate_host_total_ns: float | None
    baseline_host_self_ns: float | None
    candidate_host_self_ns: float | None
    baseline_device_total_ns: float | None
    candidate_device_total_ns: float | None
    baseline_device_self_ns: float | None
    candidate_device_self_ns: float | None
    verdict: str | None = None
    judged_diff: float | None = None
    q: float | None = None
    detectable: float | None = None
    reason: str | None = None


class OperatorKernelRow(Struct, frozen=True):
    """A single kernel that an op launched, beside that of the other side: the n-th of an op and a kernel beside the
    n-th. It is of one rank of one run of each side, and of all chosen steps.

    - name, input_shapes, input_types: of the op, as its row in `ops`
    - kernel: its canonical name; kernel_name: as the profiler wrote it
    - ns: how long it ran; start_ns: from the start of the capture
    - task_id: its number on its stream, of an NPU; task_type: the kind of core that it ran on; kernel_shapes: its own
      inputs; step: None outside of all steps
    """

    name: str
    input_shapes: str
    input_types: str
    kernel: str
    status: str
    baseline_ns: float | None
    candidate_ns: float | None
    delta_ns: float | None
    diff: float | None
    baseline_kernel_name: str
    candidate_kernel_name: str
    baseline_task_id: float | None
    candidate_task_id: float | None
    baseline_task_type: str
    candidate_task_type: str
    baseline_kernel_shapes: str
    candidate_kernel_shapes: str
    baseline_step: float | None
    candidate_step: float | None
    baseline_stream: float | None
    candidate_stream: float | None
    baseline_start_ns: float | None
    candidate_start_ns: float | None


class KernelMetricRow(Struct, frozen=True):
    """What the profilers of both sides measured in the calls of a kernel: means over the calls of whole captures.

    PMU of an NPU; of PyTorch traces of CUDA the occupancy in %, blocks and warps per SM, computed from the launch.

    - name, input_shapes, core_type: the kernel
    - metric: what was measured, with its unit
    - kind: pipe time, core time, cycles, ratio or other
    - average_ns: of a call of the kernel
    - mean: in the unit that `metric` names; delta, diff: of it
    - share: how much of the change of average_ns a time covers; the pipes of a core overlap, so shares may sum to more
      than 1
    - moved: whether that is 10 % or more, None where the kernel takes as long as before (within 2 %), and for what is
      no time
    """

    name: str
    input_shapes: str
    core_type: str
    metric: str
    kind: str
    baseline_average_ns: float | None
    candidate_average_ns: float | None
    baseline_mean: float | None
    candidate_mean: float | None
    delta: float | None
    diff: float | None
    share: float | None
    moved: bool | None


class MemoryPeakRow(Struct, frozen=True):
    """What was held when a component held most, on the rank with the highest peak of the run in the middle of its side.

    The rows of a side and component sum to its peak: one of them (`tracker.profile.BEFORE_CAPTURE`) is what was
    allocated before the capture.

    - component, name, input_shapes, module, allocator: what tells rows from each other
    - bytes, calls: of all blocks; largest_bytes: of one
    - first_ns, first_step: when the oldest of the blocks was allocated, from the start of the capture
    - code_line, call_stack: of most of the bytes, on the side that holds more
    """

    component: str
    name: str
    input_shapes: str
    module: str
    allocator: str
    status: str
    baseline_bytes: float | None
    candidate_bytes: float | None
    baseline_calls: float | None
    candidate_calls: float | None
    baseline_largest_bytes: float | None
    candidate_largest_bytes: float | None
    baseline_first_ns: float | None
    candidate_first_ns: float | None
    baseline_first_step: float | None
    candidate_first_step: float | None
    delta_bytes: float | None
    diff: float | None
    code_line: str
    call_stack: str

    @property
    def larger_bytes(self) -> float:
        """The bytes of the side that has more."""
        return max(self.baseline_bytes or 0, self.candidate_bytes or 0)


class MemoryBlockRow(Struct, frozen=True):
    """One of the largest single allocations of the captures of `MemoryPeakRow`.

    - name, input_shapes, input_types, component, allocator: of the op that allocated
    - place: 1 for the largest of an op, beside the largest of it on the other side, and so on
    - status: "" where the other side may have one that is not listed
    - held_ns: until it was freed; time_ns: from the start of the capture; is_released: 1 or 0, None where nothing says
    - code_line, call_stack: from where it was allocated
    """

    name: str
    input_shapes: str
    input_types: str
    component: str
    allocator: str
    place: float
    status: str
    baseline_bytes: float | None
    candidate_bytes: float | None
    baseline_held_ns: float | None
    candidate_held_ns: float | None
    baseline_time_ns: float | None
    candidate_time_ns: float | None
    baseline_step: float | None
    candidate_step: float | None
    baseline_is_released: float | None
    candidate_is_released: float | None
    delta_bytes: float | None
    diff: float | None
    baseline_code_line: str
    candidate_code_line: str
    baseline_call_stack: str
    candidate_call_stack: str

    @property
    def larger_bytes(self) -> float:
        """The bytes of the side that has more."""
        return max(self.baseline_bytes or 0, self.candidate_bytes or 0)


class OperatorArgumentChange(Struct, frozen=True):
    """Arguments with which an operator of a type was called on one side alone, over all runs and ranks of the sides.

    - operator: its type
    - status: BOTH for arguments that stand for each other, which differ in what `changed` says; ADDED, REMOVED for
      those that have no such counterpart
    - changed: `inputs`, `outputs`, `attributes`, those that differ, joined by commas; "" unless the status is BOTH
    - baseline, candidate: what changed, of each side; all of the arguments unless the status is BOTH, None on a side
      without them
    """

    operator: str
    status: str
    changed: str
    baseline: str | None
    candidate: str | None


class InputOperationChange(Struct, frozen=True, kw_only=True):
    """An operation of the data pipeline of two sides: medians over their runs and ranks, of whole captures.

    - operation, calls, total_ns, average_ns, share: as in `InputOperationRow`; None on a side without it
    - delta_ns, diff: of the average, for captures may be of other lengths
    """

    operation: str
    baseline_calls: float | None
    candidate_calls: float | None
    baseline_average_ns: float | None
    candidate_average_ns: float | None
    delta_ns: float | None
    diff: float | None
    baseline_share: float | None
    candidate_share: float | None
    baseline_total_ns: float | None
    candidate_total_ns: float | None


class InputQueueChange(Struct, frozen=True, kw_only=True):
    """The queue behind an operation of the data pipeline of two sides: medians over their runs and ranks.

    - operation, interval, intervals, mean, empty_share, capacity, workers, cpu_percent: as in `InputQueueRow`
    - delta, diff: of the mean size
    """

    operation: str
    interval: int | None
    intervals: int | None
    baseline_mean: float | None
    candidate_mean: float | None
    delta: float | None
    diff: float | None
    baseline_empty_share: float | None
    candidate_empty_share: float | None
    baseline_capacity: float | None
    candidate_capacity: float | None
    baseline_workers: float | None
    candidate_workers: float | None
    baseline_cpu_percent: float | None
    candidate_cpu_percent: float | None
