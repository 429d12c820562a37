"""The rows of those tables of a `Diff` that are read or made row by row: what each of their columns means.

Numbers are as in `Diff`: per step, None for missing. The columns of a table are the fields of its row, in order.
"""

from __future__ import annotations

from msgspec import Struct


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
