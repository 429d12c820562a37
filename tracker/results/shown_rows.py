"""The rows of a tree, and of those summaries of a `Shown` that are made row by row: what each of their columns means.

A table has the columns `rank` and `step` where the user chose these grains.
"""

from __future__ import annotations

from msgspec import Struct


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


class KernelPipeRow(Struct, frozen=True, kw_only=True):
    """A pipe of a core in a kernel: one of the three that worked longest, or of the largest ratios without any.

    - rank, step: of which the row is, where these are kept apart
    - name, canonical_name, type, core_type, input_shapes: the kernel; calls: that were measured
    - core_time_ns: of a call, all of the core
    - place: 1 for the pipe that worked longest
    - kind, metric: what was measured, None where no time of a pipe and no ratio was
    - mean: in the unit that `metric` names
    """

    rank: int | None
    step: int | None
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


class CounterSummaryRow(Struct, frozen=True, kw_only=True):
    """What a profiler counted in a table of its own, over all things of which it counts it.

    - rank, step: of which the row is, where these are kept apart
    - names: how many things they are
    - mean: of the one thing, None where they are several
    - min, max: over all of them; max_name: of which the largest is
    """

    rank: int | None
    step: int | None
    source: str
    attribute: str
    names: int
    mean: float | None
    min: float | None
    max: float | None
    max_name: str


class InputOperationRow(Struct, frozen=True, kw_only=True):
    """An operation of the data pipeline, over the whole capture, as MindSpore's dataset.csv has it.

    - rank, step: of which the row is, where these are kept apart
    - operation: its name, and its stage behind it
    - calls: how often it ran; total_ns: on all of its threads together; average_ns: of one call
    - share: of total_ns in that of all operations
    """

    rank: int | None
    step: int | None
    operation: str
    calls: float | None
    total_ns: float | None
    average_ns: float | None
    share: float | None


class InputQueueRow(Struct, frozen=True, kw_only=True):
    """The queue behind an operation of the data pipeline, or how full it was in an interval of the time.

    - rank, step: of which the row is, where these are kept apart
    - operation: that fills it; with `(id:3)` where several operations have its name
    - interval, intervals: which of so many equal ones the row is of; None for all of the time, whose row comes first
    - workers: of the operation; capacity: of the queue; cpu_percent: of the operation
    - empty_share: of the samples with nothing in the queue, as the summary states it, else as they are
    - mean, min, max: entries in the queue, over the samples; sampled_ns: for how long there are samples
    """

    rank: int | None
    step: int | None
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


class OperatorArgumentRow(Struct, frozen=True, kw_only=True):
    """Arguments with which an operator of a type was called, over whole captures, as record_op_args wrote them.

    - rank: of which the row is, where ranks are kept apart
    - operator: its type; inputs, outputs: name, data type, format and shape of each tensor, and its values where the
      operator depends on them; attributes: each with its value
    - calls, total_ns: of the kernels of this type and these input shapes; None where none is known, or where others of
      these arguments have the same shapes
    """

    rank: int | None
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
