"""From the text of one trace to its captures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from tracker.errors import SourceError
from tracker.profile import PROCESS_SETTING, Capture, DeviceKind, Events, Source
from tracker.readers._cut_steps import left_out
from tracker.readers._event_texts import CHUNK_BYTES, EventTexts
from tracker.readers._source import ReadOptions, SourceText
from tracker.readers.torch_profiler import native
from tracker.readers.torch_profiler.assemble import Part, parts_of
from tracker.readers.torch_profiler.collector import Collector
from tracker.readers.torch_profiler.facts import TraceFacts, facts_of
from tracker.readers.torch_profiler.records import Batch
from tracker.readers.torch_profiler.schema import TOP, Top

PART_BYTES: Final = 4 << 20
"""What one thread decodes at once: with less, adding its rows costs more; with more, memory."""

MOST_THREADS: Final = 4
"""Four decode faster than one thread adds their rows."""

_WORTH_THREADS: Final = 1 << 20
"""Of a file on disk, which may be compressed."""


def captures_of(
    text: SourceText, options: ReadOptions, *, chunk_bytes: int = CHUNK_BYTES, threads: int | None = None
) -> tuple[tuple[Capture, ...], tuple[str, ...]]:
    """The captures of a trace, and what the reader of the result should know about them. No events give no captures.

    `threads`: how many decode; None: as many as `options` allows and a file of this size is worth.
    """
    if threads is None:
        threads = _threads_for(text, options)
    collector = Collector(text.path, options, threads)
    chunks: EventTexts[Batch | list[Any]] = EventTexts(
        text,
        collector.decode,
        exporter="torch.profiler",
        allow_partial=options.allow_partial,
        chunk_bytes=chunk_bytes,
        decode_first=collector.decode_first,
        in_parts=collector.in_parts(threads),
    )
    for chunk in chunks:
        collector.add(chunk)
    collector.release()
    facts = facts_of(_top(text, chunks.top_text), text.path)
    partial = "the gzip stream ends early" if text.ended_early else chunks.partial
    parts, notes = parts_of(collector, facts, options.flow_category, is_cut=bool(partial) and not chunks.has_all)
    partial += left_out(step for part in parts for step in part.cut_steps)
    # the rank belongs to the first: one trace is written by one rank
    captures = tuple(_capture(part, facts, text.source(), partial, is_first=i == 0) for i, part in enumerate(parts))
    return captures, (*_warnings(collector, captures, options, partial), *chunks.notes, *notes)


def _threads_for(text: SourceText, options: ReadOptions) -> int:
    threads = min(options.threads, MOST_THREADS)
    if threads > 1 and native.is_built() and text.size_on_disk() >= _WORTH_THREADS:
        text.block_bytes = PART_BYTES
        return threads
    return 1


def _top(text: SourceText, top_text: bytes) -> Top:
    try:
        top = TOP.decode(top_text)
    except msgspec.DecodeError as error:
        raise SourceError(text.path, "top-level keys", str(error), remedy="export the trace again") from error
    if top.traceEvents:
        raise SourceError(text.path, "top-level keys", "'traceEvents' stands twice", remedy="export the trace again")
    return top


def _capture(part: Part, facts: TraceFacts, source: Source, partial: str, *, is_first: bool) -> Capture:
    started_at_ns = facts.utc_ns(part.start_ns)
    return Capture(
        rank=part.rank if part.rank is not None else facts.rank if is_first else None,
        world_size=facts.world_size,
        host=facts.host,
        device=facts.device(part.ordinal, in_use=part.uses_device),
        device_ordinal=part.ordinal,
        started_at_ns=started_at_ns,
        ended_at_ns=facts.utc_ns(part.end_ns),
        sources=(source,),
        settings={**facts.settings, PROCESS_SETTING: part.process} if part.process else facts.settings,
        facts=facts.facts,
        quality="partial" if partial else "ok",
        quality_reason=partial,
        events=part.events,
        configuration=facts.configuration,
        clock_zero_ns=0 if started_at_ns is None else started_at_ns - part.start_ns,
    )


def _has_work(events: Events) -> bool:
    return bool((events.ops.is_annotation == 0).any() or (events.device.kind == DeviceKind.KERNEL).any())


def _warnings(collector: Collector, captures: Sequence[Capture], options: ReadOptions, partial: str) -> tuple[str, ...]:
    warnings = []
    if partial:
        warnings.append(f"partial: {partial}")
    if collector.skipped:
        warnings.append(f"{collector.skipped} events with impossible times were left out")
    if options.flow_category is not None and options.flow_category not in collector.flow_codes:
        warnings.append(f"no flow events of category '{options.flow_category}'; linked by correlation")
    has_steps = any(one.events is not None and len(one.events.markers) for one in captures)
    if captures and not has_steps and not partial:
        warnings.append("no ProfilerStep marks a step (prof.step()): the whole capture is one step")
    if captures and not any(one.events is not None and _has_work(one.events) for one in captures):
        warnings.append("no event of a known category is an operator or a kernel: idle time is all time without copies")
    return tuple(warnings)
