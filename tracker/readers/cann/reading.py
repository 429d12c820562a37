"""From the files at one path to its captures, one per device."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from tracker.errors import SourceError
from tracker.profile import (
    NPU_VENDOR,
    ApiTotals,
    Capture,
    Device,
    Events,
    MemoryPoints,
    Profile,
    Strings,
    empty,
)
from tracker.readers._ascend import prof_folders
from tracker.readers._ascend.api_calls import api_totals_of
from tracker.readers._ascend.chips import UNKNOWN, chip_beside
from tracker.readers._ascend.communication import CommunicationOp, MatrixTotal, read_communication, read_matrix
from tracker.readers._ascend.core_clock import clock_facts
from tracker.readers._ascend.counters import CounterRows
from tracker.readers._ascend.json_files import read_object
from tracker.readers._ascend.kernels import Kernels
from tracker.readers._ascend.metadata import Metadata
from tracker.readers._ascend.sources import sources_of
from tracker.readers._ascend.trace.allocations import allocation_ops_of, allocations_of
from tracker.readers._ascend.trace.assembly import events_of
from tracker.readers._ascend.trace.collectives import Told
from tracker.readers._ascend.trace.device import trace_tasks_of
from tracker.readers._ascend.trace.host import host_of, no_host
from tracker.readers._source import ReadOptions
from tracker.readers.cann import tables as of_tables
from tracker.readers.cann.clock import dated, span_of
from tracker.readers.cann.folders import DeviceFiles, devices_in, name_of
from tracker.readers.cann.info import Info, info_of
from tracker.readers.cann.steps import Steps, steps_of_table, steps_of_trace
from tracker.readers.cann.tables import Tables
from tracker.readers.cann.timeline import Timeline, Timelines, core_times_of, is_timeline, timeline_files

_KERNELS, _TASKS, _STEPS = "op_summary.csv", "task_time.csv", "step_trace.csv"
_BLOCKS, _POINTS, _API = "operator_memory.csv", "memory_record.csv", "api_statistic.csv"
_COMMUNICATION, _MATRIX = "communication.json", "communication_matrix.json"
_OWN_COLUMNS: Final = frozenset((_KERNELS, _STEPS, _BLOCKS, _POINTS))
"""Tables with rows of their own; every other becomes counters."""

LEFT_OUT: Final = re.compile(r"msprof_tx\.(?:csv|json)")
"""The same ranges as in msprof_*.json."""


class _Read(Struct):
    """What the files of one device said. `owns_host`: no earlier device has what they show of the host."""

    files: DeviceFiles
    owns_host: bool
    strings: Strings = field(default_factory=Strings)
    warnings: list[str] = field(default_factory=list)
    info: Info = field(default_factory=Info)
    timeline: Timeline | None = None
    kernels: Kernels | None = None
    metrics: Any = None
    api: ApiTotals = field(default_factory=lambda: empty(ApiTotals))
    ops: list[CommunicationOp] = field(default_factory=list)
    totals: list[MatrixTotal] = field(default_factory=list)
    steps: Steps | None = None
    core_clock: Mapping[str, str] = field(default_factory=dict)


def profile_of(name: str, path: Path, options: ReadOptions) -> Profile:
    """The captures at `path`; a SourceError names the file and place where it cannot be read."""
    tables, timelines = Tables(options), Timelines(options)
    captures: list[Capture] = []
    warnings: list[str] = []
    shown: set[Path] = set()
    for files in _by_device(devices_in(path), tables):
        # devices that share a timeline share what it shows of the host
        paths = timeline_files(files.files)
        read = _Read(files, owns_host=shown.isdisjoint(paths))
        counters = CounterRows(read.strings)
        read.timeline = timelines.read(paths, read.strings, counters, files.device, owns_host=read.owns_host)
        _read_files(read, tables, counters, options)
        undated = _events(read, tables, counters)
        clocks = read.timeline.trace.one_core_clock() if read.timeline else []
        read.core_clock = clock_facts(clocks, undated.device, read.info.rated_mhz)
        events, is_dated = dated(undated, read.info.clock)
        if not _happened(events):
            tables.disown(files.device)
            continue
        shown |= set(paths)
        captures.append(_capture(read, events, tables.partial, is_dated=is_dated))
        warnings += [*read.warnings, *_missing(read, events, is_dated=is_dated)]
    if not captures:
        raise SourceError(path, "", "the capture holds no events", remedy="profile at least one step")
    # what one process wrote stays together: all of its captures have all of its files
    file_names = [Path(file.path).name for file in tables.sources]
    sources = sources_of(tables.sources, {file_name for file_name in file_names if _is_main(file_name)})
    numbered = [replace(capture, sources=sources) for capture in _with_ranks(captures)]
    return Profile(name, str(path), tuple(numbered), tuple(dict.fromkeys([*warnings, *tables.warnings])))


def _by_device(found: Sequence[DeviceFiles], tables: Tables) -> Iterator[DeviceFiles]:
    """`found`, where files without a folder of their device are parted by the devices that their tables name."""
    for files in found:
        paths = [path for kind in (_KERNELS, _TASKS) for path in files.files.get(kind, ())]
        devices = tables.devices_in(paths) if files.device is None else []
        yield from (replace(files, device=device) for device in devices) if devices else (files,)


def _with_ranks(captures: Sequence[Capture]) -> list[Capture]:
    """The captures, of which further devices of one process have no rank: the file of each says that of the process."""
    ranks = [capture.rank for capture in captures]
    if len(set(ranks)) == len(ranks):
        return list(captures)
    return [capture if place == 0 else replace(capture, rank=None) for place, capture in enumerate(captures)]


def _is_main(name: str) -> bool:
    said = name_of(name)
    return said is not None and said.kind in ("msprof", "op_summary", "task_time", "hccl")


def _happened(events: Events) -> bool:
    return any(len(getattr(events, table)) for table in ("device", "launches", "ops", "allocations"))


# -- files


def _read_files(read: _Read, tables: Tables, counters: CounterRows, options: ReadOptions) -> None:
    files, device = read.files.files, read.files.device
    for source in read.timeline.sources if read.timeline else ():
        tables.add_source(source)
    if kernels := tables.tasks_of(files.get(_KERNELS, ()), device):
        read.kernels, read.metrics = of_tables.kernels_of_tables(kernels, read.strings)
    elif read.timeline is None and (tasks := tables.tasks_of(files.get(_TASKS, ()), device)):
        read.kernels = of_tables.kernels_of_tasks(tasks, read.strings)
    if _COMMUNICATION in files:
        read.ops, source = read_communication(files[_COMMUNICATION][0], options)
        tables.add_source(source)
    if _MATRIX in files:
        read.totals, source = read_matrix(files[_MATRIX][0], options)
        tables.add_source(source)
    _read_steps(read, tables, counters)
    _count_tables(read, tables, counters)
    read.info = info_of({name: _json(path, tables, options) for name, path in read.files.infos.items()}, device)


def _json(path: Path, tables: Tables, options: ReadOptions) -> Mapping[str, Any]:
    value, source = read_object(path, options)
    tables.add_source(source)
    return value


def _read_steps(read: _Read, tables: Tables, counters: CounterRows) -> None:
    rows = tables.of(read.files.files.get(_STEPS, ()), read.files.device)
    if read.timeline is not None and read.timeline.trace.spans:
        read.steps = steps_of_trace(read.timeline.trace, counters)
    elif rows:
        read.steps = steps_of_table(rows[0], counters)
    read.warnings += read.steps.warnings if read.steps else ()


def _count_tables(read: _Read, tables: Tables, counters: CounterRows) -> None:
    """Counters of every table that has no rows of its own; of api_statistic where no timeline has the calls."""
    has_calls = read.timeline is not None and read.timeline.trace.calls.rows
    for kind, paths in read.files.files.items():
        if not kind.endswith(".csv") or kind in _OWN_COLUMNS or LEFT_OUT.fullmatch(kind):
            continue
        for table in tables.of(paths, read.files.device):
            if kind != _API or not has_calls:
                counters.add_table(table, kind.removesuffix(".csv"))
                if kind == _API:
                    read.api = api_totals_of(table, read.strings)


# -- events


def _events(read: _Read, tables: Tables, counters: CounterRows) -> Events:
    strings, files, device = read.strings, read.files.files, read.files.device
    trace = read.timeline.trace if read.timeline else None
    host = no_host() if trace is None else host_of(trace)
    core_times = {} if trace is None else trace.core_times.done()
    tasks = trace_tasks_of(trace)
    events, warnings = events_of(host, tasks, read.kernels, trace, Told(read.ops, read.totals, Metadata()), strings)
    read.warnings += warnings
    if read.kernels is None and core_times:
        read.metrics = core_times_of(events.device, tasks, core_times, strings)
    blocks = of_tables.blocks_of_tables(tables.of(files.get(_BLOCKS, ()), device), strings)
    points = of_tables.points_of_tables(tables.of(files.get(_POINTS, ()), device), strings)
    return replace(
        events,
        host_is_primary=read.owns_host,
        allocations=events.allocations if blocks is None else allocations_of(blocks, host, strings),
        markers=read.steps.markers if read.steps else host.markers,
        extras=replace(
            events.extras,
            no_device=not len(events.device),
            allocation_op=events.extras.allocation_op if blocks is None else allocation_ops_of(blocks, strings),
            allocation_ns=events.extras.allocation_ns if blocks is None else blocks.time_ns,
            memory_points=empty(MemoryPoints) if points is None else points,
            counters=counters.done(),
            api_totals=read.api,
            kernel_metrics=events.extras.kernel_metrics if read.metrics is None else read.metrics,
        ),
    )


# -- the capture


def _capture(read: _Read, events: Events, partial: str, *, is_dated: bool) -> Capture:
    span = span_of(events) if is_dated else None
    partial = (read.timeline.partial if read.timeline else "") or partial
    return Capture(
        rank=read.info.rank,
        world_size=None,
        host=read.info.host,
        device=Device(NPU_VENDOR, _chip(read)),
        device_ordinal=read.files.device,
        started_at_ns=span[0] if span else None,
        ended_at_ns=span[1] if span else None,
        sources=(),
        facts={**read.info.facts, **read.core_clock},
        quality="partial" if partial else "ok",
        quality_reason=partial,
        events=events,
    )


def _chip(read: _Read) -> str:
    """By info.json, else by the databases of the same capture."""
    files = [file.absolute() for files in read.files.files.values() for file in files]
    homes = [home for file in files for home in file.parents[:3] if prof_folders.is_prof_name(home.name)]
    return chip_beside(homes) if read.info.chip == UNKNOWN else read.info.chip


def _missing(read: _Read, events: Events, *, is_dated: bool) -> Iterator[str]:
    yield from read.files.left_out
    if read.timeline and read.timeline.partial:
        yield f"partial: {read.timeline.partial}"
    if read.timeline and read.timeline.trace.skipped:
        yield f"{read.timeline.trace.skipped} events with impossible times were left out"
    yield from read.timeline.trace.notes if read.timeline else ()
    for name in read.timeline.trace.left_open if read.timeline else ():
        yield f"{name} was never closed: its last ] is missing, all events before it are whole"
    if read.timeline is None:
        yield "no msprof_*.json: no calls of CANN, no tasks of collectives, and kernels without what launched them"
    if events.extras.no_copies:
        yield "no timeline lists copies and memsets: these are unknown, and with them E2E and idle time"
    if _KERNELS not in read.files.files:
        yield "no op_summary_*.csv: kernels by their tasks, without types and shapes"
    if not len(events.allocations) and not len(events.extras.memory_points):
        yield "no operator_memory_*.csv and no memory_record_*.csv: nothing is known of memory"
    if not is_dated:
        yield "no start_info for the clock of this capture: its times have no date"
    unknown = _unknown(read.files.files)
    if unknown:
        yield f"not read, unknown to this reader: {', '.join(unknown)}"


def _unknown(files: Mapping[str, Sequence[Path]]) -> list[str]:
    """JSON files that are neither timelines nor parts of one; every table is read."""
    return [
        path.name
        for kind, paths in files.items()
        for path in paths
        if kind.endswith(".json")
        and kind not in (_COMMUNICATION, _MATRIX)
        and not LEFT_OUT.fullmatch(kind)
        and not is_timeline(path)
    ]
