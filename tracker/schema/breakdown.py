"""Where the time of one rank went: the numbers that a step and a whole capture have, declared once.

From `Breakdown` follow the columns of the tables step and capture, the breakdowns of a pack, the kinds of answers and
the data dictionary. A new number is a field here, the timeline or a reader fills it, and a migration adds its column to
both tables.
"""

from typing import Annotated, Final, TypeAlias

from msgspec import Struct

from tracker.schema.declarations import Column

# the kind of a field, as in `declarations.Kind`
Word: TypeAlias = Annotated[str, "word"]
Nanoseconds: TypeAlias = Annotated[int | None, "ns"]
Bytes: TypeAlias = Annotated[int | None, "bytes"]
Number: TypeAlias = Annotated[int | None, "int"]
Real: TypeAlias = Annotated[float | None, "float"]

LATER: Final = "later"
"""Marks a field that packs of an earlier version lack."""


class Breakdown(Struct, frozen=True):
    """Where the time of one rank went, for one step or the whole capture.

    Compute + exposed communication + exposed copies + idle time are `duration_ns` of a step with markers, and `e2e_ns`
    of a capture, to the ns. `timeline` is `device` or `host`.
    `e2e_ns`: from the first start to the last end of the device events that the step launched, or that the capture has.
    `data_loading_idle_ns`: the part of data_loading_ns in which the device does nothing: what a faster loader could
    win. None where the work of the device is not known.
    `host_idle_ns`: the part of idle_ns in which no launched work waits, so that the device waits for the host. None
    where launches are not known.
    `duration_ns`: the window of the step (`timeline.windows`), or the span of the capture; of a step that device tasks
    alone name what the profiler states of it, else the span of its work on the device. None: the source does not say.
    `kernel_*` count compute and communication kernels, no copies; `unlinked_*` those without a launch.
    """

    timeline: Annotated[Word, "device, or host where there is no device activity"]
    duration_ns: Annotated[Nanoseconds, "span of the capture"]
    e2e_ns: Annotated[
        Nanoseconds,
        "last end - first start of device activity = compute + exposed communication + exposed copy + idle time",
    ]
    compute_ns: Annotated[Nanoseconds, "time in which at least one compute kernel ran"]
    communication_ns: Annotated[Nanoseconds, "time in which at least one collective ran"]
    overlap_ns: Annotated[Nanoseconds, "time in which both ran"]
    exposed_communication_ns: Annotated[Nanoseconds, "communication - overlap: time that only waits for communication"]
    copy_ns: Annotated[Nanoseconds, "time in which at least one copy or memset ran"]
    exposed_copy_ns: Annotated[Nanoseconds, "copy time in which neither compute nor communication ran"]
    idle_ns: Annotated[Nanoseconds, "time in which the device did nothing"]
    kernel_count: Annotated[Number, "compute and communication kernels, no copies"]
    kernel_total_ns: Annotated[Nanoseconds, "plain sum of compute and communication kernel time"]
    compute_total_ns: Annotated[Nanoseconds, "plain sum of compute kernel time"]
    communication_total_ns: Annotated[Nanoseconds, "plain sum of communication kernel time"]
    copy_total_ns: Annotated[Nanoseconds, "plain sum of copy and memset time"]
    unlinked_kernel_count: Annotated[Number, "kernels without a launch in the capture"]
    unlinked_kernel_total_ns: Annotated[Nanoseconds, "their time"]
    peak_allocated_bytes: Annotated[Bytes, "largest size that the framework's allocator had given out"]
    peak_reserved_bytes: Annotated[Bytes, "largest size that the framework's allocator had reserved"]
    data_loading_ns: Annotated[Nanoseconds, "time in the data loader"] = None
    bubble_ns: Annotated[Nanoseconds, "pipeline bubble, where the profiler says it"] = None
    preparing_ns: Annotated[Nanoseconds, "preparation before the step, where the profiler says it"] = None
    samples_per_second: Annotated[Real, "throughput, where the profiler says it"] = None
    data_loading_idle_ns: Annotated[Nanoseconds, "of that, time in which the device did nothing"] = None
    host_idle_ns: Annotated[
        Nanoseconds, "idle time in which no launched work waited: the device waits for the host", LATER
    ] = None


def _declare_columns() -> tuple[Column, ...]:
    # they are no strings, as this module does not import annotations from __future__
    columns = []
    for name, annotation in Breakdown.__annotations__.items():
        kind, meaning, *marks = annotation.__metadata__
        columns.append(Column(name, kind, meaning, is_later=LATER in marks))
    return tuple(columns)


BREAKDOWN: Final = _declare_columns()
"""The fields of a breakdown as columns, in their order; each means what it does of a capture."""


def breakdown_columns(behind: str = "", up_to: str = "") -> tuple[Column, ...]:
    """Return the columns of the breakdown that stand behind one and up to another one; empty: from the start, to the
    end.
    """
    names = Breakdown.__struct_fields__
    start = names.index(behind) + 1 if behind else 0
    end = names.index(up_to) + 1 if up_to else len(names)
    return BREAKDOWN[start:end]
