"""Words and numbers that mean the same in readers, timeline, store and reports."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from tracker.hooks import machine

MISSING: Final = -(2**63)
"""The int64 that stands for "the source does not say"; NULL in the database, `-` in a report."""

NO_STEP: Final = -1
"""The step of what lies outside all step markers."""

UNLINKED_OP: Final = "(unlinked)"
"""Name of the op that stands for device events without a launch in the capture."""

NO_OP: Final = "(no op)"
"""Name of the op that stands for device events whose launch lies in no op."""

NOT_LISTED: Final = "(not listed)"
"""Name of the op, and of the kernel, that stands for the rows that a shortened table of a source leaves out."""

NOT_LISTED_COLLECTIVES: Final = "(collectives not listed)"
"""The same for kernels of collectives, where the source says how many there were."""

BEFORE_CAPTURE: Final = "(before the capture or unknown)"
"""Name of the op that stands for memory whose allocation the capture does not show."""

MAX_BLOCKS: Final = 200
"""So many of the largest allocations of each rank and component are kept one by one."""

OWNER_RULES: Final = "1"
"""Which op owns an allocation (`timeline.owners`) has a version, which goes up with every change of the rule."""
OWNER_SETTING: Final = "memory_owners"
"""The setting of a capture that holds the OWNER_RULES of its rows. One that states none counted each allocation to the
innermost op, its allocator: memory is compared by the allocator unless both sides state the same.
"""

TRAINING_LOG: Final = "training_log"
PADDLE_SUMMARY: Final = "paddle_summary"
"""Formats of texts, of which a folder may hold both."""
LOG_COUNTERS: Final = TRAINING_LOG
"""`source` of the counters that a training log fills: the course of the run, and what its median leaves out."""

STEP_RULES: Final = "2"
"""What a step is (`timeline.windows`) has a version, which goes up with every change of the rule."""
STEP_SETTING: Final = "step_rules"
"""The setting of a capture that holds the STEP_RULES of its steps on a device. In one that states none a step is what
the host marked, and its parts are those of the work that it launched: neither is compared with windows.
"""
RANGE_RULES: Final = "1"
"""Which NVTX ranges are steps, and which processes of a report are ranks (`readers.nsys_sqlite`), has a version, which
goes up with every change of the rule.
"""
RANGE_SETTING: Final = "range_rules"
"""The setting of an Nsight capture that holds the RANGE_RULES of its steps. One that states none took of numbers that
begin again the longest ranges, a range that comes once for a step, and every process with kernels for a rank.
"""
INCOMPLETE_SETTING: Final = "incomplete"
"""The setting of a capture that holds what of it is not judged, as the JSON of an `Incomplete` (`timeline.checks`)."""
ROUNDING_SETTING: Final = "rounding"
"""The setting of a capture that holds how far numbers of its steps may be from what its source printed, as JSON: name
of the number in a breakdown -> part of it. What is known better than to 0.05 % is not in it.
"""
CHECK_RULES: Final = "1"
"""What is checked of a capture of a device (`timeline.defects`) has a version, which goes up with every new check."""
CHECK_SETTING: Final = "check_rules"
"""The setting of a capture with steps on a device that holds the CHECK_RULES by which it was checked. One that states
none was not checked for lost launches of graphs and of other makers than NVIDIA and AMD, nor for what cannot be.
"""
IDLE_RULES: Final = "1"
"""Why a device idles (`timeline.idle`, `profile.idle_causes`) has a version, which goes up with every change of a rule.
"""
IDLE_SETTING: Final = "idle_rules"
"""The setting of a capture that holds the rules of its causes of idle time, and of its data loading (`idle_rules_of`).
One that states none knew PyTorch's own loaders alone, counted all that came behind a wait as synchronisation, and on
Ascend took for the launch that work is queued on the host.
"""
MARKERS_SETTING: Final = "step_markers"
"""The setting of a capture in which the windows of the steps are as long as the markers of the host, to 1 %: its steps
may be compared with those of a capture whose windows are not known, for records of the device were lost.
"""
AS_WINDOWS: Final = "as windows"
PROCESS_SETTING: Final = "process"
"""The setting of a capture that holds the number of its process on the host, where the source states it."""
RANK_SETTING: Final = "rank_by"
"""The setting of a capture whose source states no rank: how it was found, RANK_BY_NAME or RANK_BY_ORDER."""
RANK_BY_NAME: Final = "name"
RANK_BY_ORDER: Final = "order"
READ_AS_SETTING: Final = "read_as"
"""The setting of a capture of a log that no grammar fits: READ_AS_GUESS, or READ_AS_NAMED where the user named the
format, so that it is judged.
"""
READ_AS_GUESS: Final = "guess"
READ_AS_NAMED: Final = "named format"
RULE_SETTINGS: Final = frozenset(
    {
        OWNER_SETTING,
        STEP_SETTING,
        RANGE_SETTING,
        CHECK_SETTING,
        IDLE_SETTING,
        INCOMPLETE_SETTING,
        MARKERS_SETTING,
        PROCESS_SETTING,
        RANK_SETTING,
        READ_AS_SETTING,
        ROUNDING_SETTING,
    }
)
"""Settings of a capture that tell how tracker read it and found its run: no settings of the profiler."""

STEP_SPREAD: Final = ("model_summary", "ProfileStep")
"""Source and name of the counter that says mean, shortest and longest of steps (ms) whose row is their mean alone."""
CounterName = tuple[str, str, str]
"""Source, name and attribute of a counter."""
TIMER_READER: Final[CounterName] = ("timer_log", "reader_cost", "ms")
TIMER_BATCH: Final[CounterName] = ("timer_log", "batch_cost", "ms")
"""The counters that hold the data loading of a step, and the step, as the timer log beside a trace states them."""
SUMMARY_STEP: Final[CounterName] = ("summary_text", "ProfileStep", "ms")
"""The counter that holds the mean step by the text summary beside a trace, where the trace has another one."""
EMPTY_QUEUE: Final[CounterName] = ("minddata_pipeline_summary", "(to the device)", "queue_empty_freq_pct")
"""The counter that says how much of the time, in percent, the queue is empty from which the device takes its data."""
DEVICE_USE: Final = "device_summary"
"""Source of the counters in which Paddle says `GPU Utilization = current process GPU time / elapsed time`."""
INPUT_OPERATIONS: Final = "input_operation"
INPUT_QUEUES: Final = "input_queue"
"""Sources of the counters of a data pipeline: its operations, and the queues behind them; see InputAttribute."""


class InputAttribute(StrEnum):
    """What the counters of a data pipeline count of an operation. SIZE: of the queue behind it, of each sample; its
    parts over time are `size 1/8` to `size 8/8`. SAMPLED: for how many ms there were samples.
    """

    CALLS = "calls"
    TOTAL = "total_us"
    NUMBER = "number"
    WORKERS = "workers"
    CAPACITY = "capacity"
    EMPTY = "empty_percent"
    CPU = "cpu_percent"
    SAMPLED = "sampled_ms"
    SIZE = "size"


PIPELINE_TIME: Final[CounterName] = ("minddata_pipeline_summary", "(pipeline)", "per_pipeline_time")
"""The counter that says how long, in ms, it takes to get a batch from the data pipeline."""
MODULE_CALLS: Final = "module"
"""`source` of the rows of the table `counter` that count the calls of a module by its frames: `name` is its path."""

OP_FLOPS: Final = "flops"
"""`source` of the rows of the table `counter` that hold the FLOPs of a call of an operator: `name` is the operator,
`attribute` its shapes. For what its shapes do not say.
"""

PHASES: Final = ("", "backward", "clear_grad", "dataloader", "forward", "optimizer", "recompute")
"""The parts of a training step; the empty word where nothing says. recompute: what activation checkpointing runs once
more in the backward pass."""

OF_A_MOMENT: Final = frozenset(machine.NUMBERS)
"""Facts of what a machine did just then, such as its heat."""

OF_A_RUN: Final = frozenset({"job_id"}) | OF_A_MOMENT
"""Facts that name a run, or are of its moment: they differ from run to run and tell nothing of a version."""

OF_THE_CODE: Final = frozenset({"git_commit", "git_dirty"})
"""Facts of the code that ran: they differ from version to version, and are no environment."""

COPIES: Final = ("copy", "memset")
"""Categories of device events that move or set memory."""
BESIDE_COMPUTE: Final = ("communication", *COPIES)
"""Categories of device events that have a part of the step of their own."""
FRAMEWORK_ALLOCATORS: Final = ("PTA", "MindSpore")
"""Components of memory that are the allocator of a framework."""
MICROBATCH_SETTINGS: Final = ("microbatches", "num_microbatches", "num_micro_batches", "micro_batches")
"""Settings and facts that state the microbatches of a step, the first one that is there counts."""
