"""The words of options and of frames: sections, statuses, and the keys by which rows are matched."""

from __future__ import annotations

from typing import Final

from tracker.profile import MODULE_CALLS

SECTIONS: Final = (
    "overall", "operator", "kernel", "kernel_type", "metric", "communication", "link", "memory", "memory_peak",
    "memory_block", "module", "api", "counter", "efficiency",
)  # fmt: skip
"""The words of `--only`, in the order in which reports show the sections."""
MATCHES: Final = ("shape", "name")
GRAINS: Final = ("rank", "step")
TREES: Final = ("module", "phase", "op", "kernel")
"""The words of `--match`; of `--by`: the grains of all tables, and what the rows of a tree are."""

BASELINES: Final = ("window", "previous", "pinned")
"""What one side alone may be compared with."""

BOTH: Final = "both"
ADDED: Final = "ADDED"
REMOVED: Final = "REMOVED"
UNMATCHED: Final = "UNMATCHED"
"""Values of a `status` column: on both sides, only on the candidate's, only on the baseline's; on one side only, where
the sides were recorded so differently that this says nothing of the program."""

OP_KEY: Final = ("name", "input_shapes", "input_types")
KERNEL_KEY: Final = ("name", "input_shapes", "category", "core_type", "op")
KERNEL_TYPE_KEY: Final = ("type", "core_type")
METRIC_KEY: Final = ("name", "input_shapes", "core_type", "metric")
COMMUNICATION_KEY: Final = ("kind", "group_role", "group_size", "data_type", "size_class_bytes")
LINK_KEY: Final = ("kind", "group_role", "group_size", "transport", "source_rank", "target_rank")
MODULE_KEY: Final = ("module", "phase")
API_KEY: Final = ("level", "name")
COUNTER_KEY: Final = ("source", "name", "attribute")
NODE: Final = ("node", "parent", "level", "kind", "path", "name", "input_shapes")
"""A row of a tree: its number, that of the row above (-1: none), its level from 0, module / phase / op / kernel, the
names down to it, its own name and shapes. Parents come first, and below a row all that is in it."""

TRANSPORT: Final = "transport"
LINK: Final = "link"
PACKET: Final = "packet"
"""Levels of rows on links: all links of a transport together, one link from rank to rank, packets of one size. Each
level states the same bytes, so sums are made within one level."""

REPEATED_COUNTERS: Final = ("step_trace_time", "op_statistic", "api_statistic", "operator_details", MODULE_CALLS)
"""Tables of a profiler that repeat what other sections are made of (overall, kernels, host API calls, ops, modules)."""

PIPE_TIME: Final = "pipe time"
CORE_TIME: Final = "core time"
CYCLES: Final = "cycles"
RATIO: Final = "ratio"
OTHER_METRIC: Final = "other"
"""Kinds of kernel metrics: the time that a pipe of a core worked, that all of the core did, its cycles, a quotient."""
