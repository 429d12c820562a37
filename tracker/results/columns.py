"""The words of options and frames, the keys by which rows are matched, and the columns of the frames of `Diff` and
`Shown`, in order; the classes say what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tracker.profile import INPUT_OPERATIONS, INPUT_QUEUES, MODULE_CALLS, OP_FLOPS
from tracker.results.diff_rows import (
    AllocatedChange,
    AllocatedDetailRow,
    ApiChange,
    CollectiveChange,
    CollectiveDetailRow,
    CounterChange,
    EnvironmentRow,
    IdleChange,
    InputOperationChange,
    InputQueueChange,
    KernelChange,
    KernelMetricRow,
    KernelTypeChange,
    LinkChange,
    MatchedRow,
    MemoryBlockRow,
    MemoryPeakRow,
    ModuleChange,
    OperatorArgumentChange,
    OperatorChange,
    OperatorDetailRow,
    OperatorKernelRow,
    OverallRow,
    PeakTotalChange,
    TreeChange,
)
from tracker.results.shown_rows import (
    CounterSummaryRow,
    IdleCauseRow,
    InputOperationRow,
    InputQueueRow,
    KernelPipeRow,
    LargestRow,
    LinkTotalRow,
    NodeRow,
    OperatorArgumentRow,
    PeakTotalRow,
    RankSummaryRow,
    StepSummaryRow,
    TreeRow,
)
from tracker.results.verdicts import VERDICT_COLUMNS

__all__ = [
    "ADDED", "API_KEY", "BASELINES", "BOTH", "COMMUNICATION_KEY", "CORE_TIME", "COUNTER_KEY", "CYCLES",
    "DIFF_COLUMNS", "GRAINS", "IDLE_KEY", "KERNEL_TYPE_KEY", "LINK", "LINK_KEY", "LOG_TITLES",
    "MODULE_KEY", "NODE", "ONE_BY_ONE", "OP_KEY", "OTHER_METRIC", "PACKET", "PIPE_TIME", "PROFILERS", "RATIO",
    "REMOVED", "REPEATED_COUNTERS", "SHOWN_COLUMNS", "TRANSPORT", "TREES", "TREE_COLUMNS", "TREE_DIFF_COLUMNS",
    "UNMATCHED",
]  # fmt: skip

GRAINS: Final = ("rank", "step")
TREES: Final = ("module", "phase", "op", "kernel")
"""The words of `--by`: the grains of all tables, and what the rows of a tree are."""

BASELINES: Final = ("window", "previous", "pinned")
"""What one side alone may be compared with."""

ONE_BY_ONE: Final = "one by one"
"""Words of the note on allocations that a detail alone lists."""

BOTH: Final = "both"
ADDED: Final = "ADDED"
REMOVED: Final = "REMOVED"
UNMATCHED: Final = "UNMATCHED"
"""Values of a `status` column: on both sides, only on the candidate's, only on the baseline's; on one side only, where
the sides were recorded so differently that this says nothing of the program."""

OP_KEY: Final = ("name", "input_shapes", "input_types")
KERNEL_KEY: Final = ("name", "input_shapes", "category", "core_type", "op")
KERNEL_TYPE_KEY: Final = ("type", "core_type")
COMMUNICATION_KEY: Final = ("kind", "group_role", "group_size", "data_type", "size_class_bytes")
LINK_KEY: Final = ("kind", "group_role", "group_size", "transport", "source_rank", "target_rank")
MODULE_KEY: Final = ("module", "phase")
API_KEY: Final = ("level", "name")
IDLE_KEY: Final = ("cause", "place")
COUNTER_KEY: Final = ("source", "name", "attribute")
NODE: Final = NodeRow.__struct_fields__
"""What a row of a tree is."""

TRANSPORT: Final = "transport"
LINK: Final = "link"
PACKET: Final = "packet"
"""Levels of rows on links: all links of a transport together, one link from rank to rank, packets of one size. Each
level states the same bytes, so sums are made within one level."""

REPEATED_COUNTERS: Final = ("step_trace_time", "op_statistic", "api_statistic", "operator_details", MODULE_CALLS,
                             OP_FLOPS, INPUT_OPERATIONS, INPUT_QUEUES)  # fmt: skip
"""Tables of a profiler that repeat what other sections are made of (overall, kernels, host API calls, ops, modules, the
data pipeline).
"""

PIPE_TIME: Final = "pipe time"
CORE_TIME: Final = "core time"
CYCLES: Final = "cycles"
RATIO: Final = "ratio"
OTHER_METRIC: Final = "other"
"""Kinds of kernel metrics: the time that a pipe of a core worked, that all of the core did, its cycles, a quotient."""


def _sides(*names: str) -> tuple[str, ...]:
    return tuple(f"{side}_{name}" for name in names for side in ("baseline", "candidate"))


class Measure(Struct, frozen=True):
    """A number that a row of a diff has of both sides.

    `name`: of its columns, behind `baseline_` and `candidate_`.
    `header`: of its columns in a workbook. `word`: of its column in text, empty where it has none of its own.
    `adds_up`: it is summed per step; an average and the extremes of a call are made of other numbers.
    """

    name: str
    header: str
    word: str = ""
    adds_up: bool = True


CALLS: Final = Measure("calls", "Calls")
TIME: Final = Measure("ns", "Total Duration")
AVERAGE: Final = Measure("average_ns", "Avg Duration", adds_up=False)
SHORTEST: Final = Measure("min_ns", "Min Duration", adds_up=False)
LONGEST: Final = Measure("max_ns", "Max Duration", adds_up=False)


class DiffTable(Struct, frozen=True):
    """The columns of a table of a diff whose rows are matched by a key.

    `key`: the columns by which rows are matched. `texts`: what else a row says in front of its numbers.
    `measures`: its numbers of both sides; `measures_behind`: those behind the change.
    `texts_behind`: what a row says behind all numbers.
    `has_status`: whether it says which side has the row. `has_verdicts`: whether its rows are series.
    `level`: of a table whose rows are those of a level of the profile as they are: nothing else has to be declared.
    """

    key: tuple[str, ...]
    measures: tuple[Measure, ...]
    texts: tuple[str, ...] = ()
    measures_behind: tuple[Measure, ...] = ()
    texts_behind: tuple[str, ...] = ()
    has_status: bool = True
    has_verdicts: bool = False
    level: str = ""

    @property
    def all_measures(self) -> tuple[Measure, ...]:
        """Its numbers of both sides, those behind the change the last."""
        return (*self.measures, *self.measures_behind)

    @property
    def sums(self) -> tuple[str, ...]:
        """The names of the numbers that add up."""
        return tuple(one.name for one in self.all_measures if one.adds_up)

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns, in order."""
        status = ("status",) if self.has_status else ()
        verdicts = VERDICT_COLUMNS if self.has_verdicts else ()
        return (
            *self.key, *self.texts, *status, *_sides(*(one.name for one in self.measures)), "delta_ns", "diff",
            *_sides(*(one.name for one in self.measures_behind)), *self.texts_behind, *verdicts,
        )  # fmt: skip


MATCHED_COLUMNS: Final[Mapping[str, DiffTable]] = {
    "kernels": DiffTable(
        KERNEL_KEY[:-1],
        (CALLS, TIME, AVERAGE, SHORTEST, LONGEST), texts=("op", "type"), texts_behind=("why", "more_ops"),
        has_verdicts=True,
    ),
    "kernel_types": DiffTable(KERNEL_TYPE_KEY, (CALLS, TIME, AVERAGE, LONGEST, SHORTEST)),
    "communication": DiffTable(
        COMMUNICATION_KEY,
        (
            CALLS, Measure("bytes", "Payload"), TIME, AVERAGE, LONGEST, SHORTEST, Measure("exposed_ns", "Exposed"),
            Measure("wait_ns", "Wait"), Measure("transit_ns", "Transit"),
        ),
        measures_behind=(
            Measure("exposed_wait_ns", "Exposed Wait"), Measure("synchronization_ns", "Synchronization, of Wait"),
            Measure("idle_ns", "Idle"),
        ),
        texts_behind=_sides("split_by"),
        has_verdicts=True,
    ),
    "communication_details": DiffTable(
        (*COMMUNICATION_KEY, "name", "plane"), (CALLS, TIME, AVERAGE, LONGEST, SHORTEST), has_status=False
    ),
    "modules": DiffTable(
        MODULE_KEY, (Measure("calls", "Operator Calls"), Measure("ns", "{place} Self Time")), has_verdicts=True
    ),
    "api": DiffTable(
        API_KEY, (CALLS, TIME, Measure("self_ns", "Self Time"), AVERAGE), has_verdicts=True,
    ),
    "idle": DiffTable(IDLE_KEY, (Measure("ns", "Idle Time"), Measure("gaps", "Gaps"))),
}  # fmt: skip
"""The tables of `Diff` whose rows are matched by a key, by name."""

DIFF_ROWS: Final[Mapping[str, type[Struct]]] = {
    "environment": EnvironmentRow,
    "overall": OverallRow,
    "ops": OperatorChange,
    "op_details": OperatorDetailRow,
    "op_kernels": OperatorKernelRow,
    "kernels": KernelChange,
    "kernel_types": KernelTypeChange,
    "kernel_metrics": KernelMetricRow,
    "communication": CollectiveChange,
    "communication_details": CollectiveDetailRow,
    "communication_links": LinkChange,
    "memory": AllocatedChange,
    "memory_details": AllocatedDetailRow,
    "memory_peak": MemoryPeakRow,
    "memory_peak_totals": PeakTotalChange,
    "memory_blocks": MemoryBlockRow,
    "modules": ModuleChange,
    "api": ApiChange,
    "idle": IdleChange,
    "input_operations": InputOperationChange,
    "input_queues": InputQueueChange,
    "operator_arguments": OperatorArgumentChange,
    "counters": CounterChange,
    **{name: MatchedRow for name, table in MATCHED_COLUMNS.items() if table.level},
}
"""What a row of each table of `Diff` is. Of those of MATCHED_COLUMNS, what has no field is a number."""

DIFF_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    name: MATCHED_COLUMNS[name].columns if name in MATCHED_COLUMNS else kind.__struct_fields__
    for name, kind in DIFF_ROWS.items()
}
"""The columns of each frame of `Diff`, in order; `Diff` says what they mean."""


def _columns_behind_grains(kind: type[Struct]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name not in GRAINS)


SHOWN_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "largest": _columns_behind_grains(LargestRow),
    "rank_summary": RankSummaryRow.__struct_fields__,
    "step_summary": StepSummaryRow.__struct_fields__,
    "kernel_pipes": _columns_behind_grains(KernelPipeRow),
    "link_totals": _columns_behind_grains(LinkTotalRow),
    "memory_peak_totals": PeakTotalRow.__struct_fields__,
    "idle_causes": IdleCauseRow.__struct_fields__,
    "input_operations": _columns_behind_grains(InputOperationRow),
    "input_queues": _columns_behind_grains(InputQueueRow),
    "operator_arguments": _columns_behind_grains(OperatorArgumentRow),
    "counter_summary": _columns_behind_grains(CounterSummaryRow),
}  # fmt: skip
"""The columns of the summaries in `Shown`, behind those of the grain; `Shown` says what they mean."""
TREE_COLUMNS: Final = _columns_behind_grains(TreeRow)
"""The columns of `Shown.tree` behind those of the grain."""
TREE_DIFF_COLUMNS: Final = TreeChange.__struct_fields__
"""The columns of `Diff.tree`."""


LOG_METRICS: Final = ("best", "throughput", "step", "e2e", "memory")
PROFILERS: Final[Mapping[str, str]] = {
    "off": "without a profiler",
    "on": "under a profiler",
    "summary": "in a profiler's summary",
}
"""How a number came about, which the setting `profiler` of a capture says: these never share a column of a log."""

LOG_TITLES: Final[Mapping[str, str]] = {
    "throughput": "throughput",
    "step": "step time",
    "e2e": "E2E",
    "memory": "peak memory allocated",
}
"""The words of `tracker log --metric`."""
