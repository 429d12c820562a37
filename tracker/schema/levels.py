"""The levels of a profile (operators, kernels, collectives, ...): every kind of row of a capture, declared once.

A level says what tells its rows apart, how their numbers add up over ranks and steps, what they mean, and the smallest
that they can be. From this follow the rows that a reader or the timeline makes (`profile.ROW_COLUMNS`), the tables of
the database (`store.tables.captures`), their order at load, the statements that sum a level (`store.levels`),
the kinds of answers, the checks of packs, and the data dictionary (docs/columns.md).

A new column of a level is stored once it stands here, the timeline or a reader fills it, and a migration adds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tracker.schema.breakdown import breakdown_columns
from tracker.schema.declarations import (
    Column,
    Kind,
    Level,
    key,
    meaning,
    number,
    real,
    size,
    text,
    time,
)

# columns that several levels have
STEP: Final = key(
    "step", "step number of the profiler's marker, or its own step id; -1: outside all; 0 where nothing says", least=-1
)
OP: Final = Column("op_key", "op_key", "the op, in op_key; in kernel: the op that launched it", is_required=True)
KERNEL: Final = Column("kernel_key", "kernel_key", "the kernel, in kernel_key", is_required=True)
CALL_STACK: Final = Column("call_stack", "call_stack", "the most frequent call stack of the op, in call_stack")
OWNER_STACK: Final = meaning(CALL_STACK, "from where the op was called, in call_stack")
PART_OF: Final = Column(
    "communication", "communication", "ordinal of the row of communication that the task, link or waiting belongs to",
    is_required=True,
)  # fmt: skip
NAME: Final = text("name", "its name as the profiler wrote it, in detail_text")
COMPONENT: Final = text("component", "cpu, device, or the profiler's own word; in detail_text")
ALLOCATOR: Final = text(
    "allocator", "the innermost op, which made the call, such as aten::empty, in detail_text; empty: unknown"
)
MOMENT: Final = Column("time_ns", "ns", "moment, from the first event of the capture", is_required=True, least=None)
CALLS: Final = number("calls", "sum", "number of calls")
KNOWN_CALLS: Final = number("calls", "known", "number of calls")
TOTAL: Final = time("total_ns", "sum", "sum of the durations")
KNOWN_TOTAL: Final = time("total_ns", "known", "sum of the durations")
SHORTEST: Final = time("min_ns", "min", "shortest call")
LONGEST: Final = time("max_ns", "max", "longest call")
SQUARES: Final = real("sum_squares_ns2", "real_sum", "sum of the squared durations, for the spread")
BYTES: Final = size("bytes", "sum", "bytes moved; in memory: bytes allocated")
WAIT: Final = time("wait_ns", "sum", "waiting: for the device before it ran; in communication: for the other ranks")
TRANSIT: Final = time("transit_ns", "sum", "transmitting")
HOST_TOTAL: Final = time(
    "host_total_ns", "sum",
    "time on the host, nested calls included; only the outermost of nested calls of one op counts",
)  # fmt: skip
DEVICE_TOTAL: Final = time("device_total_ns", "sum", "time of the device events launched in the op or below it")
DEVICE_SELF: Final = time("device_self_ns", "sum", "time of the device events that the op launched itself")
STATISTICS: Final = (
    real("mean", "mean_by_calls", "mean of the values", least=None),
    real("min", "min", "smallest value", least=None),
    real("max", "max", "largest value", least=None),
)
HELD: Final = (
    number("calls", "sum", "number of allocations"),
    BYTES,
    time("held_ns", "known", "sum over the allocations of the time until they were freed"),
    size("unreleased_bytes", "sum", "bytes not freed within the capture"),
)

LEVELS: Final[tuple[Level, ...]] = (
    Level("op", "The calls of one op.", (
        STEP, OP, CALLS, HOST_TOTAL,
        time("host_self_ns", "sum", "time on the host, without nested ops"),
        DEVICE_TOTAL, DEVICE_SELF,
        meaning(SHORTEST, "smallest device total of one call; of a host timeline, smallest host total"),
        meaning(LONGEST, "largest device total of one call; of a host timeline, largest host total"),
        meaning(SQUARES, "sum over the calls of the squared device total, or host total, for the spread"),
        number("kernel_count", "sum", "device events that the op launched itself"),
        CALL_STACK,
        time("host_min_ns", "min", "smallest host total of one call; NULL on a host timeline, whose min_ns is that",
             answer_behind="max_ns"),
        time("host_max_ns", "max", "largest host total of one call; NULL on a host timeline, whose max_ns is that",
             answer_behind="host_min_ns"),
        time("self_by_quartile_ns", "sum", "time on the host, without nested ops, had each call taken the lower "
             "quartile of the calls of its row; NULL unless a host timeline has each call", is_later=True),
        time("self_by_median_ns", "sum", "time on the host, without nested ops, had each call taken the median of the "
             "calls of its row; NULL unless a host timeline has each call", is_later=True),
        Column("raw_name", "optional_text", "name of the op as the profiler wrote it, of several the first, in "
               "detail_text; NULL: that of its key", is_later=True),
    ), key=("step", "op_key")),
    Level("op_tree", "The calls of each op in each calling context, of all steps of one rank in one row.", (
        STEP,
        key("node", "number of the calling context, the same in every step of the capture"),
        key("parent", "number of the context around it; -1: none", least=-1),
        OP, CALLS, HOST_TOTAL,
        DEVICE_TOTAL, DEVICE_SELF,
        number("kernel_count", "sum", "device events that were launched in the context or below"),
    ), key=("step", "node"), is_packed=True),
    Level("kernel", "The device events of one kernel that one op launched; copies and memsets are among them.", (
        STEP, KERNEL, OP,
        text("category", "matmul, vector, flash_attention_forward, ..., communication, copy, memset, other; in "
             "detail_text"),
        CALLS, TOTAL, SHORTEST, LONGEST, SQUARES, WAIT, BYTES,
        number("block_num", "max", "blocks that the kernel ran on, the most of all calls (NPU)"),
        time("beside_ns", "sum", "of the total, time in which a compute kernel of another operator (of none: of "
             "another name) ran, too; NULL: no compute kernel, or an earlier program read the run", is_later=True),
        time("sequence_saved_ns", "sum", "of the total, what its calls take in sequences of three or more elementwise "
             "kernels of one tensor size, one directly behind another on a stream, but for the longest of each; NULL: "
             "no compute kernel, no shapes, or an earlier program read the run", is_later=True),
        Column("sequence", "optional_text", "names of such a sequence in order, that in which it most often stands; in "
               "detail_text; NULL: in none", is_later=True),
    ), key=("step", "kernel_key", "op_key", "category")),
    Level("communication", "The calls of one collective: kind, group, data type and size class (-1: the source does "
          "not say).", (
        STEP,
        text("kind", "all_reduce, all_gather, ...; in detail_text"),
        Column("group", "group", "the group, in process_group"),
        text("data_type", "element type of the payload; in detail_text"),
        Column("size_class_bytes", "size_class", "payload of one call, rounded up to a power of two; -1: the source "
               "does not say", least=-1),
        CALLS, BYTES, TOTAL, SHORTEST, LONGEST, SQUARES, TRANSIT, WAIT,
        time("synchronization_ns", "sum", "synchronizing, where the profiler says it"),
        time("idle_ns", "sum", "idle within the collective, where the profiler says it"),
        time("exposed_ns", "sum", "not hidden by compute"),
        time("exposed_wait_ns", "sum", "of that, waiting for the other ranks"),
        time("ranks_transit_ns", "sum", "transmitting, as all ranks of the group report: the shortest of them in "
             "each call; NULL unless each call of the row has its partners", made_by_store=True),
        time("ranks_wait_ns", "sum", "waiting for the other ranks, as all of them report: what the call took beyond "
             "that", made_by_store=True),
        time("ranks_exposed_wait_ns", "sum", "of that, what no compute hides; NULL where that is not known",
             made_by_store=True),
        number("paired_calls", "sum", "calls of the row that were found on all ranks of the group; NULL: not looked "
               "for, as ranks are missing or the group is not known", made_by_store=True),
    ), is_numbered=True, largest="total_ns"),
    Level("communication_task", "What a row of `communication` (its `ordinal`) consists of: one task name on one "
          "plane.", (
        PART_OF, NAME,
        text("plane", "lane of the hardware that the task ran on; in detail_text"),
        KNOWN_CALLS, KNOWN_TOTAL, SHORTEST, LONGEST,
    ), is_numbered=True, inside="communication", largest="total_ns"),
    Level("communication_wait", "How long the calls of a row of `communication` (its `ordinal`) waited for one rank.", (
        PART_OF,
        key("peer", "the rank that was waited for; as is_global says"),
        key("is_global", "1: the peer is a global rank; 0: its place in the group, whose members are not known"),
        meaning(KNOWN_CALLS, "number of calls that waited for the rank"),
        meaning(KNOWN_TOTAL, "waiting of all calls for the rank: of each the union of its tasks that wait for it"),
        meaning(LONGEST, "longest waiting of one call"),
    ), is_numbered=True, inside="communication", largest="total_ns"),
    Level("communication_link", "What a row of `communication` (its `ordinal`) moved over one link, in packets of one "
          "size or of all sizes.", (
        PART_OF,
        text("transport", "how the bytes travelled: SDMA, RDMA, HCCS, ...; in detail_text"),
        key("source", "the rank that sends; -1: all links together", answer="source_rank", least=-1),
        key("target", "the rank that receives; -1: all links together", answer="target_rank", least=-1),
        key("packet_bytes", "size of the packets that the row counts; -1: all sizes together", least=-1),
        meaning(KNOWN_CALLS, "number of entries of the profiler: calls, per link and packet size"),
        number("packets", "sum", "number of packets"),
        BYTES, TRANSIT,
        real("large_packet_ratio", "mean_by_bytes", "share of large packets, weighted by bytes"),
    ), is_numbered=True, inside="communication", largest="bytes"),
    Level("kernel_metric", "A measurement of one kernel (PMU, AI Core, occupancy) over its calls in the whole capture: "
          "why it is slower.", (
        KERNEL,
        text("metric", "what was measured, as the profiler spells it, with its unit; in detail_text"),
        meaning(CALLS, "number of calls that were measured"),
        *STATISTICS,
    ), key=("kernel_key", "metric")),
    Level("counter", "One number of any other table of a profiler, over its values in the step.", (
        STEP,
        text("source", "the profiler's table that the number is from, in detail_text"),
        NAME,
        text("attribute", "what was measured of the thing, with its unit; in detail_text"),
        meaning(CALLS, "number of values"),
        *STATISTICS,
    ), is_numbered=True),
    Level("memory", "What one op allocated, by itself or through a helper inside; of a capture without the setting "
          "memory_owners, what it allocated while it was the innermost one.", (
        STEP, OP, COMPONENT, *HELD,
    ), key=("step", "op_key", "component"), largest="bytes"),
    Level("memory_allocator", "What a row of `memory` consists of: the innermost op that made the call.", (
        STEP, OP, COMPONENT, ALLOCATOR, *HELD,
    ), key=("step", "op_key", "component", "allocator"), largest="bytes"),
    Level("memory_peak", "What one op held, from one line of code, when a component held most; times count from the "
          "first event of the capture. The rows of a rank and component sum to the peak.", (
        COMPONENT,
        meaning(OP, "the op that allocated; one stands for all that was allocated before the capture"),
        ALLOCATOR, OWNER_STACK,
        meaning(CALLS, "number of blocks that were held"),
        size("bytes", "sum", "bytes that were held; of what was allocated before: the rest of the peak, NULL: not "
             "known", least=None),
        size("largest_bytes", "max", "bytes of the largest of them"),
        time("first_ns", "min", "when the oldest of them was allocated, from the first event of the capture",
             least=None),
        number("first_step", "min", "the step in which that was; -1: in none", least=-1),
        time("peak_ns", "", "moment of the peak, from the first event of the capture", least=None),
        number("peak_step", "", "the step in which that was; -1: in none", least=-1),
    ), is_numbered=True),
    Level("memory_block", "One of the largest allocations of a rank and component; `time_ns` counts from the first "
          "event of the capture.", (
        STEP, OP, COMPONENT, ALLOCATOR, OWNER_STACK,
        meaning(BYTES, "bytes of the allocation"),
        MOMENT,
        time("held_ns", "sum", "time until it was released; NULL: not in the capture, or not known"),
        number("is_released", "", "1: released in the capture, 0: not; NULL: not known"),
    ), is_numbered=True),
    Level("memory_curve", "A point of the allocator's counters over time; `time_ns` counts from the first event of the "
          "capture.", (
        COMPONENT, MOMENT,
        size("allocated_bytes", "max", "given out by the allocator at that moment"),
        size("reserved_bytes", "max", "reserved by the allocator at that moment"),
    ), is_numbered=True),
    Level("idle", "Time in which the device did nothing, by why and where.", (
        STEP,
        text("cause", "why the device did nothing, in detail_text"),
        text("place", "the operator, call, frame or kernel where, in detail_text; empty: none is named"),
        time("ns", "sum", "idle time of the device, ns: the rows of a step add up to its idle time"),
        number("gaps", "sum", "how many gaps in the work of the device have a part in it; NULL: the profiler states "
               "idle time alone"),
        time("behind_wait_ns", "known", "what of it the host would have done while it waited for the device, in gaps "
             "that this wait opened; of a synchronisation: what so stands behind it; NULL: the profiler states idle "
             "time alone, or an earlier program read the run", is_later=True),
    ), is_numbered=True, largest="ns"),
    Level("queue", "How far ahead of the device the host launched the kernels of a stream.", (
        STEP,
        key("stream", "stream or queue of the device, as the profiler numbers it", least=None),
        number("kernels", "sum", "kernels of which it is known when they were launched"),
        time("lead_ns", "sum", "from the end of the launch call (on Ascend its start, on the thread of CANN) to the "
             "start of the kernel, summed over its kernels"),
        time("max_lead_ns", "max", "the same of one kernel, the longest"),
        number("queued", "sum", "kernels that were launched before the event ahead of them on the stream ended: the "
               "device had work"),
    ), key=("step", "stream"), is_numbered=True),
    Level("api", "The calls of one function of the device runtime, its driver or a layer above.", (
        STEP,
        text("level", "runtime or driver; acl, node, model or hccl: the layers of CANN above its runtime; os: the "
             "operating system; in detail_text"),
        NAME, CALLS, TOTAL,
        time("self_ns", "sum", "sum of the durations, without nested calls"),
        SHORTEST, LONGEST,
    ), is_numbered=True, largest="total_ns"),
)  # fmt: skip
"""In the order of the tables of `profile.Rows`; a level stands behind those that it refers to."""

RANKS_OR_PROFILER: Final = ("transit_ns", "wait_ns", "exposed_wait_ns")
"""Parts of a collective that its ranks report together, in the column `ranks_...`; else the profiler may state them."""
PROFILER_ALONE: Final = ("synchronization_ns", "idle_ns")
"""Parts of a collective that only a profiler states."""

_MEANINGS_OF_A_STEP: Final = {
    "duration_ns": "the step: compute + exposed communication + exposed copy + idle time",
    "e2e_ns": "last end - first start of the device activity that the step launched",
}
"""What columns of a breakdown mean in a step, where that is not what they mean in a capture."""


def _breakdown_of_a_step(behind: str = "", up_to: str = "") -> list[Column]:
    columns = []
    for column in breakdown_columns(behind, up_to):
        columns.append(meaning(column, _MEANINGS_OF_A_STEP.get(column.name, column.meaning)))
    return columns


STEP_LEVEL: Final = Level(
    "step",
    "One step of one rank, with its breakdown; none for what lies outside all markers, one without any marker.",
    (
        STEP,
        Column("start_ns", "ns", "start, from the first event of the capture", is_required=True, least=None),
        # in the order of the table, at whose end migrations add columns
        *_breakdown_of_a_step(up_to="samples_per_second"),
        number("steps", "", "how many steps the row stands for: its numbers are their mean; NULL: one", least=1),
        *_breakdown_of_a_step("samples_per_second", "data_loading_idle_ns"),
        time(
            "marker_ns",
            "",
            "how long the host's marker of the step lasts, where the step is a window of the device",
            is_later=True,
        ),
        *_breakdown_of_a_step("data_loading_idle_ns"),
        Column(
            "kind",
            "word",
            "what the step does: DECODE, with optimizer; empty where all steps of its capture do the same",
            is_later=True,
        ),
    ),
    key=("step",),
)
"""A step. It is none of `LEVELS`, as it comes as a `profile.StepRow` and not as columns."""

LEVEL: Final[Mapping[str, Level]] = {level.name: level for level in LEVELS}
"""Name -> level."""

OP_KEY: Final = ("name", "input_shapes", "input_types", "module", "phase")
"""The texts of a key of an op."""
KERNEL_KEY: Final = ("name", "canonical_name", "type", "core_type", "input_shapes", "input_types", "input_formats")
"""The texts of a key of a kernel."""


def columns_of_kind(*kinds: Kind) -> Iterator[tuple[Level, Column]]:
    """Yield the columns of these kinds that are stored as such, with their levels; those of steps come last."""
    for level in (*LEVELS, STEP_LEVEL):
        if not level.is_packed:
            yield from ((level, column) for column in level.columns if column.kind in kinds)
