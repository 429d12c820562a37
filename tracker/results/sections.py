"""The sections of a diff and of a run: words of `--only`, the tables of each, its title, and why it may be empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

__all__ = ["SECTIONS"]


class Section(Struct, frozen=True):
    """A part of a diff or a run that a reader may choose.

    `word`: of `--only`. `tables`: those that it chooses, as far as a diff or a run has them. `title`: of its first
    table in a diff; {time} stands for what the time of operators is. `why_empty`: why its tables may have no rows.
    """

    word: str
    tables: tuple[str, ...]
    title: str
    why_empty: str

    @property
    def title_of_run(self) -> str:
        """The title of its first table in a report of one run."""
        return self.title.partition(" by change of ")[0]


SECTION: Final[Mapping[str, Section]] = {
    one.word: one
    for one in (
        Section(
            "overall",
            ("overall", "steps", "rank_summary", "step_summary"),
            "Overall, per step",
            "no step markers in the capture",
        ),
        Section(
            "operator",
            ("ops",),
            "Operators by change of {time}",
            "the source states no operators",
        ),
        Section(
            "kernel",
            ("kernels", "copies"),
            "Kernels by change of total time",
            "the source states none: no device at work, or a capture of the host alone",
        ),
        Section(
            "kernel_type",
            ("kernel_types",),
            "Kernel types by change of total time",
            "only Ascend's profiler names types of kernels, at Level1 and above",
        ),
        Section(
            "metric",
            ("kernel_metrics", "kernel_pipes"),
            "Kernel metrics, means of a call",
            "Ascend's profiler measures kernels at Level1 and above and with aic_metrics, PyTorch's states occupancy "
            "of CUDA kernels; a diff needs them of both sides",
        ),
        Section(
            "communication",
            ("communication",),
            "Communication by change of total time",
            "no collectives ran, or the source does not tell them apart",
        ),
        Section(
            "link",
            ("communication_links", "link_totals"),
            "Links by change of transit time",
            "only Ascend's profiler says over which links collectives go, at Level1 and above",
        ),
        Section(
            "memory",
            ("memory",),
            "Memory allocated by operators",
            "the source states no allocations; PyTorch's profilers do with profile_memory=True",
        ),
        Section(
            "memory_peak",
            ("memory_peak", "memory_peak_totals"),
            "Memory at the peak, by owner",
            "the source does not say at which addresses memory was allocated, or a run was ingested by an older "
            "tracker; a diff needs it of both sides",
        ),
        Section(
            "memory_block",
            ("memory_blocks",),
            "Largest single allocations",
            "the source states no allocations, or a run was ingested by an older tracker; a diff needs them of both "
            "sides",
        ),
        Section(
            "module",
            ("modules",),
            "Modules by change of {time}",
            "the source states no modules; PyTorch's profilers do with with_modules=True or with_stack=True",
        ),
        Section(
            "api",
            ("api",),
            "Host API calls by change of total time",
            "the source states no calls of the device's runtime; a diff needs them inside steps",
        ),
        Section(
            "idle",
            ("idle_causes", "idle", "queues"),
            "Idle time of the device by change",
            "the device never idles, the source does not say why, or a run was ingested by an older tracker (tracker "
            "ingest --again); a diff needs it of both sides",
        ),
        Section(
            "input",
            ("input_operations", "input_queues"),
            "Input pipeline: operations by change of average time",
            "only MindSpore's profiler measures a data pipeline, with data_process=True or activities that have CPU; a "
            "diff needs it of both sides",
        ),
        Section(
            "argument",
            ("operator_arguments",),
            "Arguments of operators",
            "none were recorded, or none differ between the sides; torch_npu's profiler records them with "
            "record_op_args=True in a folder *_ascend_pt_op_args beside the capture; a diff needs them of both sides",
        ),
        Section(
            "counter",
            ("counters", "counter_summary"),
            "Counters of the profilers, by relative change",
            "the profiler wrote no tables of its own; a diff needs them of both sides",
        ),
        Section(
            "efficiency",
            ("efficiency",),
            "Efficiency, which is of one run: tracker show",
            "no matmul, convolution or attention with known shapes, or not chosen; it is of one run",
        ),
    )
}
"""Word of `--only` -> its section, in the order in which reports show them."""

SECTIONS: Final = tuple(SECTION)
"""The words of `--only`, in the order in which reports show the sections."""
