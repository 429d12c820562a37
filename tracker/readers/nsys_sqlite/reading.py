"""From an export to its captures: one per process and device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.errors import SourceError
from tracker.profile import (
    CPU,
    MISSING,
    RANGE_RULES,
    RANGE_SETTING,
    Allocations,
    Capture,
    Events,
    Extras,
    LaunchLevel,
    Source,
    Strings,
)
from tracker.readers._collectives import CallTable
from tracker.readers._device import device_events
from tracker.readers._facts import RANK_IN_NAME
from tracker.readers._source import ReadOptions, source_of
from tracker.readers._spans import Spans
from tracker.readers._sqlite import Database, check_journal, journal_beside, opened, picked
from tracker.readers.nsys_sqlite.device import EVENTS, GRAPH, KERNEL, lost_launches, work_of
from tracker.readers.nsys_sqlite.diagnostics import Diagnostics, diagnostics_of, exported_events
from tracker.readers.nsys_sqlite.facts import ExportFacts, facts_of
from tracker.readers.nsys_sqlite.host import (
    CALLS,
    NVTX,
    Threads,
    calls_of,
    host_of,
    launches_of,
    os_calls_of,
    ranges_of,
)
from tracker.readers.nsys_sqlite.iterations import find_steps
from tracker.readers.nsys_sqlite.markers import Ranges
from tracker.readers.nsys_sqlite.memory import allocations_of, metrics_of, usage_of
from tracker.readers.nsys_sqlite.neighbours import Member, part_neighbours
from tracker.readers.nsys_sqlite.tables import Arrays, Names, joined, machine_of, pid_of, tid_of

_FEW: Final = 0.01
"""Launches without work beyond this share are said: at the edges of a window a few are always cut off."""

_ONE_STEP: Final = "the whole capture is one step"

_REMEDIES: Final = {
    KERNEL: "no kernels: trace CUDA (nsys profile --trace=cuda,nvtx) and let the capture cover the work",
    CALLS[0]: "no CUDA calls: kernels cannot be linked to what launched them",
    NVTX: "no NVTX ranges: modules are not known (torch.cuda.nvtx, emit_nvtx)",
}
"""What is missing in the rows where a table is."""


class _Export(Struct, frozen=True):
    """All tables of one file, read. `exported`: process -> how many of the events that CUPTI counts are in them."""

    db: Database
    strings: Strings
    work: Arrays
    launches: Arrays
    os_calls: Arrays
    ranges: Ranges
    usage: Arrays
    facts: ExportFacts
    source: Source
    diagnostics: Diagnostics
    exported: Mapping[int, int]

    @property
    def graphs(self) -> int:
        """How many runs of CUDA graphs were traced as a whole."""
        return len(self.db.ints(GRAPH, ("start",))["start"]) if self.db.has(GRAPH) else 0

    @property
    def no_kernels(self) -> bool:
        """Whether nothing tells of kernels: neither their table nor graphs."""
        return not self.db.has(KERNEL) and not self.graphs


def captures_of(path: Path, options: ReadOptions) -> tuple[tuple[Capture, ...], tuple[str, ...]]:
    """The captures of an export, and what the reader of the result should know about them.

    Processes that worked on a device are ordered by its number, as ranks of one host are; the rank itself is known
    only where the file's name says it. A SourceError where no process did anything.
    """
    source = source_of(path, options)
    check_journal(path)
    with opened(path) as db:
        db.require("StringIds")
        spans = Spans(db, skip_bad_rows=options.skip_bad_rows)
        strings = Strings()
        names = Names(db, strings)
        launches = launches_of(spans, names)
        work = work_of(spans, names, launches)
        ranges = ranges_of(spans, names)
        os_calls = os_calls_of(spans, names)
        # without their calls events cannot be counted: nsys export --tables leaves tables out
        diagnostics = diagnostics_of(db) if db.has(CALLS[0]) else Diagnostics({}, frozenset())
        skipped = sum(spans.skipped.get(table, 0) for table in (*CALLS, *EVENTS))
        exported = exported_events(diagnostics, launches, work, skipped)
        export = _Export(
            db, strings, work, launches, os_calls, ranges, usage_of(db), facts_of(db), source, diagnostics, exported
        )
        warnings = [*filter(None, [journal_beside(path)]), *_missing(export)]
        warnings += spans.warnings()
        members, left_out = part_neighbours(list(_members(export)))
        warnings += left_out
        for member in members:
            warnings += [text for text in member.warnings if text not in warnings]
        captures = [member.capture for member in members]
        warnings += diagnostics.sentences(exported, [member.process for member in members])
    if not any(len(capture.events.markers) for capture in captures if capture.events):
        captures, found = _with_found_steps(captures)
        warnings.append(f"no NVTX range marks a step (step N, iteration N): {found or _ONE_STEP}")
    if not captures:
        problem = "holds no kernels, no CUDA calls and no NVTX ranges"
        remedy = "profile again with nsys profile --trace=cuda,nvtx and export that"
        raise SourceError(path, "", problem, remedy=remedy)
    rank = RANK_IN_NAME.search(path.name)
    if rank:
        captures[0] = replace(captures[0], rank=int(rank.group(1)))
    return tuple(captures), tuple(warnings)


def _with_found_steps(captures: list[Capture]) -> tuple[list[Capture], str]:
    """The captures of an export without markers with those that its ranges and kernels give, and what was found."""
    found = find_steps([capture.events for capture in captures if capture.events])
    if not found.markers:
        return captures, ""
    with_markers = [
        replace(
            capture,
            events=replace(capture.events, markers=own),
            settings={**capture.settings, "steps_found_by": found.kind},
        )
        for capture, own in zip(captures, found.markers, strict=True)
        if capture.events
    ]
    return with_markers, found.sentence


def _missing(export: _Export) -> Iterator[str]:
    """What is not in the export, and what was cut off."""
    for table, remedy in _REMEDIES.items():
        if export.no_kernels if table == KERNEL else not export.db.has(table):
            yield f"the export has no table {table}: {remedy}"
    if graphs := export.graphs:
        yield (f"{graphs} runs of CUDA graphs were traced as a whole; --cuda-graph-trace=node shows the kernels inside")
    workers = set(export.work["process"].tolist())
    others = set(export.ranges.columns["process"].tolist()) - workers
    if workers and others:
        numbers = ", ".join(str(pid_of(process)) for process in sorted(others))
        yield f"NVTX ranges of processes without device work were left out: {numbers}"
    lost, launched = lost_launches(export.launches, export.work)
    if lost > launched * _FEW:
        yield (
            f"{lost} of {launched} launches have no work on a device: the capture ended first, did not trace it, or"
            " they were recorded into a CUDA graph"
        )


def _members(export: _Export) -> Iterator[Member]:
    """Yield the capture of each process and device, or of each process of the host where no device worked."""
    work = export.work
    places = sorted(set(zip(work["process"].tolist(), work["ordinal"].tolist(), strict=True)))
    if not places:
        for process in _host_processes(export):
            yield _member(export, process, None, is_first=True)
        return
    first = dict(reversed(places))
    for process in sorted(first, key=lambda process: (first[process], process)):
        for place in places:
            if place[0] == process:
                yield _member(export, process, place[1], is_first=place[1] == first[process])


def _member(export: _Export, process: int, ordinal: int | None, *, is_first: bool) -> Member:
    capture, warnings = _capture(export, process, ordinal, is_first=is_first)
    gpu = machine_of(process), export.facts.gpu_number(process, ordinal or 0)
    return Member(process, gpu if ordinal is not None else None, capture, warnings)


def _host_processes(export: _Export) -> list[int]:
    """Processes without a device: those with NVTX ranges, else those that called CUDA."""
    for table in (export.ranges.columns, export.launches):
        if len(table["process"]):
            return [int(process) for process in np.unique(table["process"])]
    return []


def _capture(export: _Export, process: int, ordinal: int | None, *, is_first: bool) -> tuple[Capture, tuple[str, ...]]:
    events, warnings = _events(export, process, ordinal, is_first=is_first)
    cuda = ~np.isin(events.launches.level, (LaunchLevel.OS, LaunchLevel.PROFILER))
    spans = [(table.start_ns, table.end_ns) for table in (events.ops, events.device, events.markers)]
    spans.append((events.launches.start_ns[cuda], events.launches.end_ns[cuda]))
    start_ns = min(int(starts.min()) for starts, _ in spans if len(starts))
    end_ns = max(int(ends.max()) for _, ends in spans if len(ends))
    facts = export.facts
    started_at_ns = facts.utc(start_ns)
    in_use = ordinal is not None or bool(cuda.any())
    capture = Capture(
        rank=None,
        world_size=None,
        host=facts.host,
        device=facts.device(process, ordinal or 0) if in_use else CPU,
        device_ordinal=ordinal,
        started_at_ns=started_at_ns,
        ended_at_ns=facts.utc(end_ns),
        sources=(export.source,),
        settings={**facts.settings, RANGE_SETTING: RANGE_RULES},
        facts=facts.facts,
        events=events,
        clock_zero_ns=0 if started_at_ns is None else started_at_ns - start_ns,
    )
    return capture, warnings


def _events(export: _Export, process: int, ordinal: int | None, *, is_first: bool) -> tuple[Events, tuple[str, ...]]:
    launches = picked(export.launches, export.launches["process"] == process)
    of_process = export.work["process"] == process
    work = picked(export.work, of_process & (export.work["ordinal"] == ordinal))
    ends = [export.work["end_ns"][of_process], launches["end_ns"], export.ranges.columns["end_ns"]]
    last_ns = max((int(column.max()) for column in ends if len(column)), default=MISSING)
    ranges = export.ranges.of_process(process, last_ns)
    api = joined([launches, picked(export.os_calls, export.os_calls["process"] == process)])
    threads = Threads(np.unique(np.concatenate([api["thread"], ranges.columns["thread"]])))
    calls = CallTable()
    host = host_of(ranges, threads, export.strings, calls, on_device=bool(of_process.any()))
    gpu = export.facts.gpu_number(process, ordinal or 0)
    events = Events(
        strings=export.strings,
        threads=tuple(f"thread {tid_of(number)}" for number in threads.ids.tolist()),
        thread_process=(0,) * len(threads.ids),
        ops=host.ops,
        frames=host.frames,
        launches=calls_of(api, threads),
        device=device_events(work),
        collectives=calls.table(export.strings),
        allocations=_allocations(export, process, ordinal, launches, threads, is_first=is_first),
        markers=host.markers,
        host_is_primary=is_first,
        extras=Extras(
            op_phase=host.phase,
            counters=metrics_of(export.db, gpu, export.strings),
            no_kernels=export.no_kernels,
            waiting_threads=True,
            served_elsewhere=export.work["correlation"][of_process & (export.work["ordinal"] != ordinal)],
            collected_events=export.diagnostics.collected.get(process, MISSING),
            exported_events=export.exported.get(process, 0),
            ends_at_once=True,
        ),
    )
    return events, tuple(f"process {pid_of(process)}: {text}" for text in host.warnings)


def _allocations(
    export: _Export, process: int, ordinal: int | None, launches: Arrays, threads: Threads, *, is_first: bool
) -> Allocations:
    """Those of the device; what names no device belongs to the first."""
    usage = export.usage
    mine = usage["deviceId"] == (ordinal or 0)
    if is_first:
        mine |= usage["deviceId"] == MISSING
    return allocations_of(picked(usage, mine & (usage["process"] == process)), launches, threads, export.strings)
