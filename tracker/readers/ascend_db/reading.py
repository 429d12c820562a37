"""From the files of one capture to its columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.profile import MISSING, NPU_VENDOR, OPERATOR_ARGUMENTS, Capture, Device, Events, Extras, Source, Strings
from tracker.readers._ascend.communication import links_table
from tracker.readers._ascend.core_clock import UNKNOWN as UNKNOWN_CLOCK
from tracker.readers._ascend.core_clock import clock_facts
from tracker.readers._ascend.handovers import UNKNOWN, lacks_all
from tracker.readers._ascend.json_files import read_object
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
from tracker.readers._ascend.windows import number_steps_by_window, window_of
from tracker.readers._source import ReadOptions, source_of
from tracker.readers._spans import Spans
from tracker.readers._sqlite import Database, check_journal, journal_beside, opened
from tracker.readers.ascend_db import missing
from tracker.readers.ascend_db.analysis import Analysis, analysis_of
from tracker.readers.ascend_db.communication import Calls, calls_of
from tracker.readers.ascend_db.counters import Sample, counters_of
from tracker.readers.ascend_db.device import Work, work_of
from tracker.readers.ascend_db.files import CaptureFiles
from tracker.readers.ascend_db.host import host_of
from tracker.readers.ascend_db.memory import allocations_of, memory_points_of
from tracker.readers.ascend_db.tasks import Tasks, tasks_of
from tracker.readers.ascend_db.texts import Texts

_SPANS: Final = ("ops", "frames", "launches", "device", "markers")


class _Open(Struct, frozen=True):
    """One database with what stands beside it.

    analysis: the analysis database, where there is one. arguments: with which operators were called.
    """

    files: CaptureFiles
    db: Database
    spans: Spans
    analysis: Database | None
    metadata: Metadata
    sources: tuple[Source, ...]
    arguments: tuple[Sample, ...]


def captures_of(files: CaptureFiles, options: ReadOptions) -> tuple[tuple[Capture, ...], tuple[str, ...]]:
    """One capture per device of the database, and what the reader of the result should know about them."""
    databases = [source_of(path, options) for path in (files.database, files.analysis) if path is not None]
    for path in filter(None, (files.database, files.analysis)):
        check_journal(path)
    read = {path: read_object(path, options) for path in (files.info, files.metadata) if path is not None}
    recorded, of_arguments = read_arguments(files.folder, options)
    arguments = tuple(Sample(OPERATOR_ARGUMENTS, one.operator, one.arguments.text(), 1) for one in recorded)
    beside_it = [*(source for _, source in read.values()), *of_arguments]
    sources = sources_of([*databases, *beside_it], {files.database.name})
    beside = {path: value for path, (value, _) in read.items()}
    with ExitStack() as stack:
        db = stack.enter_context(opened(files.database))
        db.require("STRING_IDS", "TASK")
        analysis = stack.enter_context(opened(files.analysis)) if files.analysis else None
        spans = Spans(db, skip_bad_rows=options.skip_bad_rows, names=("startNs", "endNs"))
        source = _Open(files, db, spans, analysis, _metadata(files, db, beside), sources, arguments)
        devices = tasks_of(spans)
        captures = []
        warnings = list(filter(None, [journal_beside(files.database)]))
        for place, (device, tasks) in enumerate(devices.items()):
            capture, said = _capture(source, device, tasks, is_first=place == 0, is_only=len(devices) == 1)
            captures.append(capture)
            warnings += [text for text in said if text not in warnings]
        warnings += spans.warnings()
    return tuple(captures), tuple(warnings)


def _metadata(files: CaptureFiles, db: Database, beside: Mapping[Path, Mapping[str, Any]]) -> Metadata:
    """What stands beside the events, and in the files `beside`; META_DATA goes before profiler_metadata.json."""
    info, metadata = (beside[path] if path else {} for path in (files.info, files.metadata))
    return metadata_of(info, {**metadata, **_meta_data(db)})


def _meta_data(db: Database) -> Mapping[str, Any]:
    values = {}
    for name, text in db.rows("META_DATA", "name", "value"):
        try:
            values[str(name)] = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            values[str(name)] = text  # a plain word, like 1.0.0
    return values


def _capture(
    source: _Open, device: int, tasks: Tasks, *, is_first: bool, is_only: bool
) -> tuple[Capture, tuple[str, ...]]:
    db, metadata, files = source.db, source.metadata, source.files
    ranks_known = (_ranks(db).get(device), metadata.rank, files.rank_in_name, rank_in_name(files.folder.name))
    events, lacks, warnings = _events(source, device, tasks, is_first=is_first, is_only=is_only)
    events, of_window = number_steps_by_window(events, window_of(files.folder))
    start_ns, end_ns = _span(events)
    capture = Capture(
        rank=first_known(*(ranks_known if is_only or is_first else ranks_known[:1])),
        world_size=metadata.world_size,
        host=_host(db) or host_in_name(files.folder.name),
        device=Device(NPU_VENDOR, _model(db, device)),
        device_ordinal=device,
        started_at_ns=start_ns,
        ended_at_ns=end_ns,
        sources=source.sources,
        settings=metadata.settings,
        facts={**metadata.facts, **clock_facts(_core_clock(db, device), events.device)},
        quality="partial" if lacks else "ok",
        quality_reason="; ".join(lacks),
        events=events,
        parallel=metadata.parallel,
        configuration=metadata.configuration,
    )
    return capture, (*lacks, *warnings, *of_window)


def _ranks(db: Database) -> dict[int, int]:
    """The rank of each device; none for one whose rank is not known, which is NULL or -1."""
    table = db.ints("RANK_DEVICE_MAP", ("rankId", "deviceId"))
    pairs = zip(table["deviceId"].tolist(), table["rankId"].tolist(), strict=True)
    return {device: rank for device, rank in pairs if rank >= 0}


def _host(db: Database) -> str:
    return next((str(name) for (name,) in db.rows("HOST_INFO", "hostName") if name), "")


def _model(db: Database, device: int) -> str:
    names = {number: str(name) for number, name in db.rows("NPU_INFO", "id", "name") if name}
    if device in names:
        return names[device]
    return names.popitem()[1] if len(set(names.values())) == 1 else "unknown"


def _core_clock(db: Database, device: int) -> list[tuple[int, float]]:
    """Return when which clock of the cores of a device began, in MHz."""
    table = db.ints("AICORE_FREQ", (), ("deviceId", "timestampNs"))
    clocks = db.floats("AICORE_FREQ", (), ("freq",))["freq"]
    # without its time an entry is of any, and the clock at no time known
    clocks = np.where(table["timestampNs"] == MISSING, UNKNOWN_CLOCK, clocks)
    is_own = np.isin(table["deviceId"], (device, MISSING))
    return [*zip(table["timestampNs"][is_own].tolist(), clocks[is_own].tolist(), strict=True)]


def _events(
    source: _Open, device: int, tasks: Tasks, *, is_first: bool, is_only: bool
) -> tuple[Events, tuple[str, ...], tuple[str, ...]]:
    """The events, what they lack of the device's work, and what else the user should know."""
    db, metadata = source.db, source.metadata
    strings = Strings()
    texts = Texts(db, strings)
    only = None if is_only else device
    calls = calls_of(source.spans, texts, tasks, metadata, device=device, is_only=is_only)
    work = work_of(db, texts, tasks, calls)
    host = host_of(source.spans, texts, work.connection)
    blocks = allocations_of(db, texts, host, device=only)
    if source.analysis:
        analysis = analysis_of(source.analysis, calls, strings, metadata, device=only)
    else:
        analysis = Analysis(links=links_table(calls.moved, strings))
    device_events = replace(work.events, process=host.threads.processes_of(work.pid))
    handovers = host.handovers(work.connection, device_events.process, device_events.start_ns)
    lacks = missing.lacks_of(db, texts, tasks, len(calls.table), len(work.events))
    events = Events(
        strings=strings,
        threads=host.threads.names,
        thread_process=host.threads.process,
        ops=host.ops,
        frames=host.frames,
        launches=host.launches,
        device=device_events,
        collectives=calls.table,
        allocations=blocks.events,
        markers=host.markers,
        host_is_primary=is_first,
        extras=replace(
            _extras(source, texts, calls, work, analysis, only, source.arguments if is_first else ()),
            allocation_op=blocks.op,
            allocation_ns=blocks.time_ns,
            handover_ns=handovers.ns,
            handover_thread=handovers.thread,
            no_collectives=missing.NO_COLLECTIVES in lacks,
            no_device=not len(work.events),
        ),
    )
    warnings = (*missing.warnings_of(db, source.files.database, metadata.settings), *host.warnings)
    if lacks_all(events):
        warnings = (*warnings, f"no call in CANN_API leads to the device: {UNKNOWN}")
    return events, lacks, warnings


def _extras(
    source: _Open,
    texts: Texts,
    calls: Calls,
    work: Work,
    analysis: Analysis,
    only: int | None,
    arguments: tuple[Sample, ...],
) -> Extras:
    return Extras(
        process_groups=groups_table(source.metadata, texts.strings),
        block_num=work.block_num,
        task=work.task,
        kernel_metrics=work.metrics,
        collective_times=analysis.times,
        collective_tasks=calls.tasks,
        collective_links=analysis.links,
        memory_points=memory_points_of(source.db, texts, device=only),
        counters=counters_of(source.spans, texts, [*analysis.samples, *arguments], device=only),
        step_times=analysis.steps,
    )


def _span(events: Events) -> tuple[int | None, int | None]:
    """First start and last end of all that happened."""
    tables = [getattr(events, name) for name in _SPANS]
    filled = [table for table in tables if len(table)]
    if not filled:
        return None, None
    return min(int(table.start_ns.min()) for table in filled), max(int(table.end_ns.max()) for table in filled)
