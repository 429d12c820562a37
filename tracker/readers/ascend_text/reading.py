"""From the files of one capture to its profile."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tracker.errors import SourceError
from tracker.profile import (
    I64,
    MISSING,
    NPU_VENDOR,
    OPERATOR_ARGUMENTS,
    ApiTotals,
    Capture,
    Device,
    DeviceEvents,
    Events,
    Markers,
    MemoryPoints,
    Profile,
    Source,
    StepTimes,
    Strings,
    empty,
)
from tracker.readers._ascend.api_calls import api_totals_of
from tracker.readers._ascend.chips import UNKNOWN, chip_beside, chip_of, rated_clock
from tracker.readers._ascend.clocks import APART_NS, clock_ahead_ns
from tracker.readers._ascend.communication import CommunicationOp, MatrixTotal, read_communication, read_matrix
from tracker.readers._ascend.core_clock import clock_facts
from tracker.readers._ascend.counters import CounterRows, step_times_of
from tracker.readers._ascend.csv_tables import ALLOW_PARTIAL, CsvTable, read_table
from tracker.readers._ascend.device_queue import add_empty_queue, add_pipeline_summary
from tracker.readers._ascend.files import KERNELS, TRACE
from tracker.readers._ascend.handovers import UNKNOWN as UNKNOWN_HANDOVERS
from tracker.readers._ascend.handovers import lacks_all
from tracker.readers._ascend.input_pipeline import QueueNumbers, add_operations, add_queues, queues_of_samples
from tracker.readers._ascend.json_files import read_object
from tracker.readers._ascend.kernels import Kernels, kernel_metrics_of, kernels_of, leave_out_bad_tasks
from tracker.readers._ascend.memory import FRAMEWORK, MINDSPORE, Blocks, blocks_of, memory_points_of
from tracker.readers._ascend.metadata import (
    Metadata,
    first_known,
    groups_table,
    host_in_name,
    metadata_of,
    rank_in_name,
)
from tracker.readers._ascend.operator_arguments import read_arguments
from tracker.readers._ascend.sources import sources_of
from tracker.readers._ascend.trace.allocations import allocation_ops_of, allocations_of
from tracker.readers._ascend.trace.assembly import events_of
from tracker.readers._ascend.trace.collectives import Told
from tracker.readers._ascend.trace.device import TraceTasks, kernel_tasks, kernels_of_ops, trace_tasks_of
from tracker.readers._ascend.trace.events import Trace, read_trace
from tracker.readers._ascend.trace.host import Host, host_of, no_host
from tracker.readers._ascend.windows import number_steps_by_window, window_of
from tracker.readers._source import ReadOptions
from tracker.readers.ascend_text import folders
from tracker.readers.ascend_text.completeness import cut_at, fewer_than_counted, lacking
from tracker.readers.ascend_text.folders import Layout
from tracker.readers.ascend_text.steps import markers_of

ONLY_COLLECTIVES: Final = "neither kernel_details.csv nor trace_view.json: collectives are all that is known"
NO_TABLES: Final = "neither kernel_details.csv nor trace_view.json"
OF_STEPS: Final = (
    "neither kernel_details.csv nor trace_view.json: compute, communication and idle time are those of "
    "step_trace_time.csv, kernels and copies are unknown"
)
_PIPELINE: Final = "minddata_pipeline_summary"
_RAW_PIPELINE: Final = "minddata_pipeline_raw"
_DATASET: Final = "dataset"
_ORDINAL: Final = re.compile(r"NPU:(\d{1,9})")


class _Read(Struct):
    """What the files said, file by file."""

    strings: Strings = field(default_factory=Strings)
    sources: list[Source] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    partial: str = ""
    metadata: Metadata = field(default_factory=Metadata)
    chip: str = UNKNOWN
    rated_mhz: int | None = None
    trace: Trace | None = None
    tasks: TraceTasks = field(default_factory=lambda: trace_tasks_of(None))
    kernels: Kernels | None = None
    left_out: int = 0
    only_collectives: bool = False
    ordinal: int | None = None
    ops: list[CommunicationOp] = field(default_factory=list)
    totals: list[MatrixTotal] = field(default_factory=list)
    blocks: Blocks | None = None
    points: MemoryPoints = field(default_factory=lambda: empty(MemoryPoints))
    steps: StepTimes = field(default_factory=lambda: empty(StepTimes))
    statistic: CsvTable | None = None
    api: ApiTotals = field(default_factory=lambda: empty(ApiTotals))
    metrics: Any = None
    clock_ahead_ns: int = 0


def profile_of(name: str, layout: Layout, options: ReadOptions) -> Profile:
    """The one capture of `layout`; a SourceError names the file and place where it cannot be read."""
    read = _Read()
    window = window_of(layout.root)
    counters = CounterRows(read.strings)
    _read_metadata(read, layout, options)
    _read_events(read, layout, options, counters)
    _read_tables(read, layout, options, counters)
    _read_operator_arguments(read, layout, options, counters)
    _check_complete(read, layout, options)
    _take_collectives(read)
    _put_on_one_clock(read)
    events = _events(read, counters)
    if not any(len(getattr(events, table)) for table in ("ops", "device", "allocations", "frames", "launches")):
        raise SourceError(layout.root, "", "the capture holds no events", remedy="profile at least one step")
    events, said = number_steps_by_window(events, window)
    read.warnings += said
    read.warnings += _missing(read, layout, events)
    return Profile(name, str(layout.root), (_capture(read, layout, events),), tuple(read.warnings))


# -- files


def _read_metadata(read: _Read, layout: Layout, options: ReadOptions) -> None:
    info, metadata = (_json(read, path, options) for path in (layout.info, layout.metadata))
    read.metadata = metadata_of(info, metadata)
    infos = [_json(read, path, options) for path in layout.chips]
    chips, rated = {chip_of(info) for info in infos}, {rated_clock(info) for info in infos}
    read.chip = chips.pop() if len(chips) == 1 else UNKNOWN
    read.rated_mhz = rated.pop() if len(rated) == 1 else None
    if read.chip == UNKNOWN:
        read.chip = chip_beside(layout.homes)


def _json(read: _Read, path: Path | None, options: ReadOptions) -> dict[str, Any]:
    if path is None:
        return {}
    value, source = read_object(path, options)
    read.sources.append(source)
    return value


def _read_events(read: _Read, layout: Layout, options: ReadOptions, counters: CounterRows) -> None:
    files = layout.files
    if TRACE in files:
        read.trace, source, read.partial = read_trace(files[TRACE], options, read.strings, counters)
        read.sources.append(source)
        read.tasks = trace_tasks_of(read.trace)
    if KERNELS in files:
        table = _table(read, files[KERNELS], options, are_tasks=True)
        read.left_out = table.skipped
        read.kernels = kernels_of(table, read.strings)
        read.metrics = kernel_metrics_of(table, read.strings)
        read.ordinal = _ordinal(table.texts("device"))
    if folders.COMMUNICATION in files:
        read.ops, source = read_communication(files[folders.COMMUNICATION], options)
        read.sources.append(source)
    if folders.MATRIX in files:
        read.totals, source = read_matrix(files[folders.MATRIX], options)
        read.sources.append(source)


def _read_tables(read: _Read, layout: Layout, options: ReadOptions, counters: CounterRows) -> None:
    files = layout.files
    if folders.ALLOCATIONS in files:
        table = _table(read, files[folders.ALLOCATIONS], options)
        read.blocks = blocks_of(table, read.strings, MINDSPORE if layout.is_mindspore else FRAMEWORK)
        read.ordinal = first_known(read.ordinal, _ordinal(table.texts("device_type")))
    if folders.MEMORY in files:
        table = _table(read, files[folders.MEMORY], options)
        read.points = memory_points_of(table, read.strings, is_mindspore=layout.is_mindspore)
    stated: list[QueueNumbers] = []
    sampled: list[QueueNumbers] = []
    for path in layout.counted:
        source = re.sub(r"_\d+$", "", path.stem)
        if source == _PIPELINE:
            of_summary, queues = add_pipeline_summary(path, options, counters, source)
            read.sources.append(of_summary)
            stated += queues
            continue
        table = _table(read, path, options)
        if path.name == folders.STEPS:
            read.steps = step_times_of(table)
        if path.name == folders.STATISTIC:
            read.statistic = table
            read.warnings += filter(None, [cut_at(table)])
        if source == _RAW_PIPELINE:
            sampled += queues_of_samples(table)
        if source == _DATASET:
            add_operations(counters, table)
        # the trace has the calls themselves, unless the profiler's level left them out
        if source != "api_statistic" or read.trace is None or not read.trace.calls.rows:
            counters.add_table(table, source)
            if source == _RAW_PIPELINE and not any(other.stem.startswith(_PIPELINE) for other in layout.counted):
                add_empty_queue(table, counters)
            if source == "api_statistic":
                read.api = api_totals_of(table, read.strings)
    add_queues(counters, stated, sampled)


def _read_operator_arguments(read: _Read, layout: Layout, options: ReadOptions, counters: CounterRows) -> None:
    recorded, sources = read_arguments(layout.root, options)
    read.sources += sources
    for one in recorded:
        counters.add(OPERATOR_ARGUMENTS, [one.operator], one.arguments.text(), [1])


def _table(read: _Read, path: Path, options: ReadOptions, *, are_tasks: bool = False) -> CsvTable:
    table = read_table(path, options)
    if are_tasks and options.skip_bad_rows:
        leave_out_bad_tasks(table)
    read.sources.append(table.source)
    if table.skipped:
        read.warnings.append(f"{table.skipped} rows of {path.name} with impossible values were left out")
    if table.partial:
        read.partial = read.partial or f"{path.name}: {table.partial}"
    return table


def _check_complete(read: _Read, layout: Layout, options: ReadOptions) -> None:
    """A table that lacks kernels was truncated: a SourceError unless that may pass, and then the capture is partial."""
    if read.kernels is None:
        return
    lost = lacking(read.kernels, read.tasks, read.left_out, read.strings)
    if not lost and read.statistic is not None and not len(kernel_tasks(read.tasks, read.strings)):
        lost = fewer_than_counted(read.kernels, read.left_out, read.statistic, read.strings)
    if lost and not options.allow_partial:
        raise SourceError(layout.files[KERNELS], "", f"the table ends early: {lost}", remedy=ALLOW_PARTIAL)
    if lost:
        read.partial = read.partial or lost
    if not len(read.kernels):
        # a table without a row says nothing; a trace or the collectives stand in
        read.kernels, read.metrics = None, None


def _take_collectives(read: _Read) -> None:
    """Where nothing else tells of the device, the collectives of communication.json are all of its work."""
    if read.kernels is not None or read.trace is not None:
        return
    read.kernels = kernels_of_ops(read.ops, read.strings) if read.ops else None
    read.only_collectives = True
    if read.partial:
        return
    if _states_steps(read):
        read.partial = OF_STEPS
    else:
        read.partial = ONLY_COLLECTIVES if read.ops else NO_TABLES


def _states_steps(read: _Read) -> bool:
    """Return whether step_trace_time.csv says how long a device computed."""
    return bool((read.steps.compute_ns != MISSING).any())


def _ordinal(cells: Iterable[str] | None) -> int | None:
    """The one device that a table is about, None where it names none or several."""
    numbers = {_ORDINAL.sub(r"\1", cell) for cell in cells or ()} - {""}
    found = {int(number) for number in numbers if re.fullmatch(r"\d{1,9}", number)}
    return found.pop() if len(found) == 1 else None


def _put_on_one_clock(read: _Read) -> None:
    """Move the tables to the clock of the trace, where that counts from its own start and they have dates."""
    if read.kernels is None or read.trace is None or _starts_near(read):
        return
    ahead_ns = clock_ahead_ns(read.kernels, read.tasks)
    if not ahead_ns:
        return
    read.clock_ahead_ns = ahead_ns
    read.kernels = replace(
        read.kernels, start_ns=read.kernels.start_ns - ahead_ns, end_ns=read.kernels.end_ns - ahead_ns
    )
    read.ops = [replace(op, start_ns=op.start_ns - ahead_ns) for op in read.ops]
    read.points = replace(read.points, time_ns=read.points.time_ns - ahead_ns)
    if read.blocks is not None:
        read.blocks = replace(read.blocks, time_ns=read.blocks.time_ns - ahead_ns)
    read.warnings.append(
        "trace_view.json counts from its own start, kernel_details.csv has dates: tasks are matched by stream and "
        "task, and the dates are those of the table"
    )


def _starts_near(read: _Read) -> bool:
    """Return whether the tasks of trace and table begin on one day: two clocks are further apart."""
    starts = read.tasks.tasks["start_ns"]
    assert read.kernels is not None
    if not len(starts) or not len(read.kernels):
        return True
    return abs(int(read.kernels.start_ns.min()) - int(starts.min())) < APART_NS


# -- events


def _events(read: _Read, counters: CounterRows) -> Events:
    strings = read.strings
    host = no_host() if read.trace is None else host_of(read.trace)
    told = Told(read.ops, read.totals, read.metadata)
    events, warnings = events_of(host, read.tasks, read.kernels, read.trace, told, strings)
    read.warnings += warnings
    return replace(
        events,
        allocations=events.allocations if read.blocks is None else allocations_of(read.blocks, host, strings),
        markers=_markers(read, host, events.device),
        extras=replace(
            events.extras,
            allocation_op=events.extras.allocation_op
            if read.blocks is None
            else allocation_ops_of(read.blocks, strings),
            allocation_ns=events.extras.allocation_ns if read.blocks is None else read.blocks.time_ns,
            process_groups=groups_table(read.metadata, strings),
            memory_points=read.points,
            counters=counters.done(),
            step_times=read.steps,
            api_totals=read.api,
            only_collectives=read.only_collectives,
            # parts of a step that the profiler's own table states are known without an event
            no_device=not len(events.device) and not (read.only_collectives and _states_steps(read)),
            kernel_metrics=events.extras.kernel_metrics if read.metrics is None else read.metrics,
        ),
    )


def _markers(read: _Read, host: Host, device: DeviceEvents) -> Markers:
    """The host's markers; those of the device's own Step Ids where nothing is known of the host.

    Where the host is known and has no marker, several Step Ids part its kernels but not its ops, whose steps are other
    spans of time than those of their kernels: then the capture stays one step, and a warning says so.
    """
    if len(host.markers):
        return host.markers
    if not (len(host.ops) or len(host.calls) or len(host.frames)):
        return markers_of(device, read.steps)
    named = np.unique(device.step[device.step != MISSING])
    if len(named) > 1:
        read.warnings.append(
            f"kernel_details.csv names {len(named)} steps, trace_view.json has no ProfilerStep that says which ops are "
            "in which: the capture is one step"
        )
    return host.markers


# -- the capture


def _capture(read: _Read, layout: Layout, events: Events) -> Capture:
    metadata = read.metadata
    clocks = read.trace.one_core_clock() if read.trace else []
    # a table without a row is the same file in every capture
    tables = {KERNELS} if read.kernels is not None else set()
    times = list(_times(events))
    in_name = (rank_in_name(path.name) for path in (layout.info,) if path is not None)
    by_folder = (rank_in_name(name) for name in layout.names)
    hosts = (host_in_name(name) for name in layout.names)
    return Capture(
        rank=first_known(metadata.rank, *in_name, *by_folder),
        world_size=metadata.world_size,
        host=next((host for host in hosts if host), ""),
        device=Device(NPU_VENDOR, read.chip),
        device_ordinal=read.ordinal,
        started_at_ns=None if not times else read.clock_ahead_ns + min(int(column.min()) for column in times),
        ended_at_ns=None if not times else read.clock_ahead_ns + max(int(column.max()) for column in times),
        clock_zero_ns=read.clock_ahead_ns,
        sources=sources_of(read.sources, {TRACE, TRACE + folders.GZIPPED} | tables),
        settings=metadata.settings,
        facts={**metadata.facts, **clock_facts(clocks, events.device, read.rated_mhz)},
        quality="partial" if read.partial else "ok",
        quality_reason=read.partial,
        events=events,
        parallel=metadata.parallel,
        configuration=metadata.configuration,
    )


def _times(events: Events) -> Iterator[I64]:
    for table in (events.ops, events.frames, events.launches, events.device, events.markers):
        yield from (column for column in (table.start_ns, table.end_ns) if len(column))
    if len(events.allocations):
        yield events.allocations.time_ns


def _missing(read: _Read, layout: Layout, events: Events) -> Iterator[str]:
    if read.partial:
        yield f"partial: {read.partial}"
    if read.trace is not None and read.trace.skipped:
        yield f"{read.trace.skipped} events with impossible times were left out"
    if read.trace is not None:
        yield from read.trace.notes
    if read.trace is not None and read.trace.left_open:
        yield "trace_view.json was never closed: its last ] is missing, all events before it are whole"
    states_free = bool((read.steps.idle_ns != MISSING).any())
    if TRACE not in layout.files:
        steps = "as step_trace_time.csv states them" if states_free else "as long as the device works"
        yield f"no trace_view.json: no ops, kernels without the op that launched them, steps {steps}"
    if events.extras.no_copies and not read.only_collectives:
        own = "idle time counts them, as Free of step_trace_time.csv does"
        free = own if states_free else "E2E and idle time are unknown as well"
        yield f"kernel_details.csv lists no copies and memsets, so these are unknown; {free}"
    if lacks_all(events):
        yield f"no HostToDevice arrow of trace_view.json leads to the device: {UNKNOWN_HANDOVERS}"
    if read.kernels is None and not read.partial:
        yield "no kernel_details.csv: kernels by trace_view.json, without types, shapes and metrics"
    if read.blocks is None and not len(read.points.time_ns):
        yield "no operator_memory.csv and no memory_record.csv: nothing is known of memory"
    if layout.unknown:
        yield f"not read, unknown to this reader: {', '.join(layout.unknown)}"
