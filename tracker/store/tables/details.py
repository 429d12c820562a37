"""Per run, rank and step: one row per distinct thing, with counts and sums; calling contexts are packed.

Columns carry the names of `tracker.profile.ROW_COLUMNS`; a reference to a dimension ends in `_id`, and so does the
number of a text, which stands in detail_text. `ordinal`: the position of the row in its capture, where its natural key
is of many columns.
"""

from __future__ import annotations

from tracker.store.tables.base import (
    DETAIL,
    Base,
    Binary,
    BreakdownColumns,
    key,
    packed,
    real,
    text_number,
    value,
)


class StepKey(Base):
    """What identifies a step; `start_ns` counts from the first event of the capture."""

    run_id: int = key()
    rank: int = key()
    step: int = key()
    start_ns: int = key(primary=False)


class Step(BreakdownColumns, StepKey, table=True):
    """One step of one rank, with its breakdown; none for what lies outside all markers, one without any marker."""

    __tablename__ = "step"
    __table_args__ = DETAIL
    steps: int | None = value()
    data_loading_idle_ns: int | None = value()
    marker_ns: int | None = value()
    host_idle_ns: int | None = value()


class Op(Base, table=True):
    """The calls of one op."""

    __tablename__ = "op"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    step: int = key()
    op_key_id: int = key()
    calls: int | None = value()
    host_total_ns: int | None = value()
    host_self_ns: int | None = value()
    device_total_ns: int | None = value()
    device_self_ns: int | None = value()
    min_ns: int | None = value()
    max_ns: int | None = value()
    sum_squares_ns2: float | None = real()
    kernel_count: int | None = value()
    call_stack_id: int | None = value()
    host_min_ns: int | None = value()
    host_max_ns: int | None = value()


class OpTree(Base, table=True):
    """The calls of each op in each calling context, of all steps of one rank in one row."""

    __tablename__ = "op_tree"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    contexts: Binary = packed()


class Kernel(Base, table=True):
    """The device events of one kernel that one op launched; copies and memsets are among them."""

    __tablename__ = "kernel"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    step: int = key()
    kernel_key_id: int = key()
    op_key_id: int = key()
    category_id: int = text_number(primary=True)
    calls: int | None = value()
    total_ns: int | None = value()
    min_ns: int | None = value()
    max_ns: int | None = value()
    sum_squares_ns2: float | None = real()
    wait_ns: int | None = value()
    bytes: int | None = value()
    block_num: int | None = value()


class KernelMetric(Base, table=True):
    """A measurement of one kernel (PMU, AI Core, occupancy) over its calls in the whole capture: why it is slower."""

    __tablename__ = "kernel_metric"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    kernel_key_id: int = key()
    metric_id: int = text_number(primary=True)
    calls: int | None = value()
    mean: float | None = real()
    min: float | None = real()
    max: float | None = real()


class Communication(Base, table=True):
    """The calls of one collective: kind, group, data type and size class (-1: the source does not say)."""

    __tablename__ = "communication"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    ordinal: int = key()
    step: int = key(primary=False)
    kind_id: int = text_number()
    process_group_id: int = key(primary=False)
    data_type_id: int = text_number()
    size_class_bytes: int = key(primary=False)
    calls: int | None = value()
    bytes: int | None = value()
    total_ns: int | None = value()
    min_ns: int | None = value()
    max_ns: int | None = value()
    sum_squares_ns2: float | None = real()
    transit_ns: int | None = value()
    wait_ns: int | None = value()
    synchronization_ns: int | None = value()
    idle_ns: int | None = value()
    exposed_ns: int | None = value()
    exposed_wait_ns: int | None = value()
    ranks_transit_ns: int | None = value()
    ranks_wait_ns: int | None = value()
    ranks_exposed_wait_ns: int | None = value()
    paired_calls: int | None = value()


class CollectiveCall(Base, table=True):
    """The collective calls of one rank, in one row."""

    __tablename__ = "collective_call"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    calls: Binary = packed()


class CommunicationTask(Base, table=True):
    """What a row of `communication` (its `ordinal`) consists of: one task name on one plane."""

    __tablename__ = "communication_task"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    ordinal: int = key()
    communication: int = key(primary=False)
    name_id: int = text_number()
    plane_id: int = text_number()
    calls: int | None = value()
    total_ns: int | None = value()
    min_ns: int | None = value()
    max_ns: int | None = value()


class CommunicationWait(Base, table=True):
    """How long the calls of a row of `communication` (its `ordinal`) waited for one rank."""

    __tablename__ = "communication_wait"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    ordinal: int = key()
    communication: int = key(primary=False)
    peer: int = key(primary=False)
    is_global: int = key(primary=False)
    calls: int | None = value()
    total_ns: int | None = value()
    max_ns: int | None = value()


class CommunicationLink(Base, table=True):
    """What a row of `communication` (its `ordinal`) moved over one link, in packets of one size or of all sizes."""

    __tablename__ = "communication_link"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    ordinal: int = key()
    communication: int = key(primary=False)
    transport_id: int = text_number()
    source: int = key(primary=False)
    target: int = key(primary=False)
    packet_bytes: int = key(primary=False)
    calls: int | None = value()
    packets: int | None = value()
    bytes: int | None = value()
    transit_ns: int | None = value()
    large_packet_ratio: float | None = real()


class Memory(Base, table=True):
    """What one op allocated, by itself or through a helper inside; of a capture without the setting memory_owners, what
    it allocated while it was the innermost one.
    """

    __tablename__ = "memory"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    step: int = key()
    op_key_id: int = key()
    component_id: int = text_number(primary=True)
    calls: int | None = value()
    bytes: int | None = value()
    held_ns: int | None = value()
    unreleased_bytes: int | None = value()


class MemoryAllocator(Base, table=True):
    """What a row of `memory` consists of: the innermost op that made the call."""

    __tablename__ = "memory_allocator"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    step: int = key()
    op_key_id: int = key()
    component_id: int = text_number(primary=True)
    allocator_id: int = text_number(primary=True)
    calls: int | None = value()
    bytes: int | None = value()
    held_ns: int | None = value()
    unreleased_bytes: int | None = value()


class MemoryPeak(Base, table=True):
    """What one op held, from one line of code, when a component held most; times count from the first event of the
    capture. The rows of a rank and component sum to the peak.
    """

    __tablename__ = "memory_peak"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    ordinal: int = key()
    component_id: int = text_number()
    op_key_id: int = key(primary=False)
    allocator_id: int = text_number()
    call_stack_id: int | None = value()
    calls: int | None = value()
    bytes: int | None = value()
    largest_bytes: int | None = value()
    first_ns: int | None = value()
    first_step: int | None = value()
    peak_ns: int | None = value()
    peak_step: int | None = value()


class MemoryBlock(Base, table=True):
    """One of the largest allocations of a rank and component; `time_ns` counts from the first event of the capture."""

    __tablename__ = "memory_block"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    ordinal: int = key()
    step: int = key(primary=False)
    op_key_id: int = key(primary=False)
    component_id: int = text_number()
    allocator_id: int = text_number()
    call_stack_id: int | None = value()
    bytes: int | None = value()
    time_ns: int = key(primary=False)
    held_ns: int | None = value()
    is_released: int | None = value()


class MemoryCurve(Base, table=True):
    """A point of the allocator's counters over time; `time_ns` counts from the first event of the capture."""

    __tablename__ = "memory_curve"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    ordinal: int = key()
    component_id: int = text_number()
    time_ns: int = key(primary=False)
    allocated_bytes: int | None = value()
    reserved_bytes: int | None = value()


class Counter(Base, table=True):
    """One number of any other table of a profiler, over its values in the step."""

    __tablename__ = "counter"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    ordinal: int = key()
    step: int = key(primary=False)
    source_id: int = text_number()
    name_id: int = text_number()
    attribute_id: int = text_number()
    calls: int | None = value()
    mean: float | None = real()
    min: float | None = real()
    max: float | None = real()


class Idle(Base, table=True):
    """Time in which the device did nothing, by why and where."""

    __tablename__ = "idle"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    ordinal: int = key()
    step: int = key(primary=False)
    cause_id: int = text_number()
    place_id: int = text_number()
    ns: int | None = value()
    gaps: int | None = value()


class LaunchQueue(Base, table=True):
    """How far ahead of the device the host launched the kernels of a stream."""

    __tablename__ = "queue"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    ordinal: int = key()
    step: int = key(primary=False)
    stream: int = key(primary=False)
    kernels: int | None = value()
    lead_ns: int | None = value()
    max_lead_ns: int | None = value()
    queued: int | None = value()


class Api(Base, table=True):
    """The calls of one function of the device runtime, its driver or a layer above."""

    __tablename__ = "api"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    ordinal: int = key()
    step: int = key(primary=False)
    level_id: int = text_number()
    name_id: int = text_number()
    calls: int | None = value()
    total_ns: int | None = value()
    self_ns: int | None = value()
    min_ns: int | None = value()
    max_ns: int | None = value()
