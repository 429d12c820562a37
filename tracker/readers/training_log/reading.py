"""Read a file: choose its grammar, scan it, make its intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec.structs import replace

from tracker.errors import SourceError
from tracker.readers._source import ReadOptions, SourceText, read_head
from tracker.readers._text import SNIFF_BYTES
from tracker.readers.training_log.capture import LogReading, sizes_in
from tracker.readers.training_log.choosing import (
    WITH_TIMES,
    ChosenGrammar,
    choose,
    choose_by_repetition,
    choose_in,
    framework_without_times,
    notes_on_others,
    what_it_has,
)
from tracker.readers.training_log.columns import PackedColumn
from tracker.readers.training_log.context import RunContext, configuration_of, read_context, resumed
from tracker.readers.training_log.documents import MAX_BYTES, STATE, is_summary_alone, scan_document
from tracker.readers.training_log.epoch_bars import times_of_epoch_bars
from tracker.readers.training_log.events import is_event_file, read_scalars, scan_scalars
from tracker.readers.training_log.grammar import Grammar
from tracker.readers.training_log.intervals import Intervals, intervals_of
from tracker.readers.training_log.left_out import COUNTS
from tracker.readers.training_log.paddle import PERF_SUMMARY, STEPS_PER_SECOND
from tracker.readers.training_log.perf_summary import PerfSummary, counters_of, summary_in
from tracker.readers.training_log.scanning import Scan, scan
from tracker.readers.training_log.step_times import Sizes
from tracker.readers.training_log.text_lines import LineCounts, whole_lines, without_colours
from tracker.readers.training_log.trainer_sessions import (
    UNKNOWN_STEPS,
    WITH_SESSION_STEPS,
    TrainerCollector,
    scan_lines,
    scan_summaries,
)

_LOOKED_FOR: Final = "looked for step lines of the frameworks in docs/formats/training_log.md"


def read_log(path: Path, options: ReadOptions) -> LogReading:
    """Return what a log says. A SourceError where it is no text, or holds no speed."""
    head = read_head(path)
    if is_event_file(head):
        return _read_events(path, options)
    if b"\0" in head[:512]:
        raise SourceError(path, "byte 0", "is binary, no log", remedy="give the text that the job printed")
    choice = choose(path, head) or choose_by_repetition(path, head) or _choose_anywhere(path, options)
    if choice is None:
        raise _without_times(path, head)
    if choice.is_document:
        return _read_document(path, options, choice)
    return _read_lines(path, options, choice)


def _choose_anywhere(path: Path, options: ReadOptions) -> ChosenGrammar | None:
    """Return the grammar of the first step line anywhere in a file."""
    text = _open(path, options)
    for content in whole_lines(text, LineCounts()):
        if (choice := choose_in(content)) is not None:
            return choice
    return None


def _open(path: Path, options: ReadOptions) -> SourceText:
    text = SourceText(path, options)
    # what people and programs write around the lines may be in any encoding
    text.checks_text = False
    return text


def _read_lines(path: Path, options: ReadOptions, choice: ChosenGrammar) -> LogReading:
    text = _open(path, options)
    lines = scan(text, choice.grammar, choice.line)
    if choice.grammar.clock_is_of_epoch:
        for name, values in times_of_epoch_bars(lines).items():
            lines.numbers[name] = PackedColumn.of(values)
    of_lines = tuple(note for quantity, note in choice.grammar.notes.items() if lines.states(quantity))
    context = read_context([lines.head], choice.grammar, choice.line)
    sessions_note = ""
    if lines.states("run_s") or lines.states("run_rate"):
        lines, sessions_note = _with_sessions(path, options, lines, choice)
    intervals, context, changes = _intervals(path, lines, choice, context)
    summary = _perf_summary(lines, choice.grammar)
    # all else is in the intervals
    used_later = {"batch", "clock_ms"} | ({"step"} if lines.timers else set())
    lines.numbers = {name: lines.numbers[name] for name in used_later & lines.numbers.keys()}
    notes = (*of_lines, *changes, *notes_on_others(path, choice))
    if sessions_note:
        notes += (sessions_note,)
    if not len(intervals.last_step) and summary.spreads:
        intervals = _of_summary(summary)
        notes += ("only the Perf Summary: its means stand for one step, their number is not stated",)
    elif not len(intervals.last_step):
        raise _without_times(path, read_head(path, SNIFF_BYTES))
    return LogReading(
        path, text.source(), choice.grammar, lines, context, intervals, notes, tuple(counters_of(summary)), choice.guess
    )


def _with_sessions(path: Path, options: ReadOptions, lines: Scan, choice: ChosenGrammar) -> tuple[Scan, str]:
    """Return the summaries of a log with the steps that they are of, or the lines whose times since the start differ,
    and a sentence on whose steps they are, "" for none. A SourceError where nothing says how many steps were done.
    """
    collector = TrainerCollector(choice.grammar.evaluations)
    for content in whole_lines(_open(path, options), counts := LineCounts()):
        collector.take(without_colours(content))
    collector.take(without_colours(counts.unfinished))
    sessions = collector.finish()
    by_line = scan_lines(sessions, collector.interrupts)
    if by_line is not None:
        return replace(lines, **by_line), ""
    numbers, note = scan_summaries(sessions)
    if not len(numbers["run_s"]):
        raise SourceError(path, "", f"no step time in it: {UNKNOWN_STEPS}", remedy=WITH_SESSION_STEPS)
    places = PackedColumn.of(np.arange(len(numbers["run_s"]), dtype=np.int64))
    nothing = np.zeros(0, dtype=np.int64)
    summaries = replace(
        lines, numbers=numbers, positions=places, interrupts=nothing, starts=nothing, beside_bar=nothing,
        ranks=PackedColumn(), clocks=PackedColumn(),
    )  # fmt: skip
    return summaries, note


def _intervals(
    path: Path, lines: Scan, choice: ChosenGrammar, context: RunContext
) -> tuple[Intervals, RunContext, tuple[str, ...]]:
    """Return the intervals, with what the run was configured with where it was started last, and what changed there."""
    intervals = intervals_of(lines, choice.grammar, _sizes(path, context, lines))
    # bars of evaluations go back too, and what stands in front of them is of these
    is_resumed = intervals.restarts > 0 and not choice.grammar.has_bars
    if intervals.trainings == 1 and not is_resumed:
        return intervals, context, ()
    changes: tuple[str, ...] = ()
    for text in reversed(lines.before_restarts):
        again = read_context([text], choice.grammar, choice.line)
        if again.is_empty:
            continue
        if intervals.trainings == 1:
            again = resumed(context, again)
            changes = _changes(configuration_of(path, context)[0], configuration_of(path, again)[0])
        context = again
        break
    return intervals_of(lines, choice.grammar, _sizes(path, context, lines)), context, changes


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence on what a training was resumed with that it was not started with."""
    changed = [
        f"{key} from {before[key]} to {value}" for key, value in after.items() if before.get(key, value) != value
    ]
    if not changed:
        return ()
    return (f"the training was resumed with another configuration, which counts: {', '.join(changed)}",)


def _sizes(path: Path, context: RunContext, lines: Scan) -> Sizes:
    configuration, _ = configuration_of(path, context)
    batch = sizes_in(configuration, "global_batch_size")
    devices = sizes_in(configuration, "devices")
    if batch is None:
        batch = _batch_of_all(configuration, devices)
    return Sizes(batch, sizes_in(configuration, "sequence_length"), devices)


def _batch_of_all(configuration: dict[str, str], devices: int | None) -> int | None:
    """Return the batch of a step of the whole job behind that of one device; None where a factor is not stated."""
    batch_of_card = sizes_in(configuration, "micro_batch_size") or sizes_in(configuration, "batch_size")
    copies = sizes_in(configuration, "dp") or devices
    if batch_of_card is None or copies is None:
        return None
    return batch_of_card * copies * (sizes_in(configuration, "microbatches") or 1)


def _perf_summary(lines: Scan, grammar: Grammar) -> PerfSummary:
    if grammar.parse is None:
        return PerfSummary()
    text = lines.tail if PERF_SUMMARY.search(lines.tail) else lines.head
    match = PERF_SUMMARY.search(text)
    return summary_in(text[match.start() :].decode("utf-8", "replace").splitlines()) if match else PerfSummary()


def _of_summary(summary: PerfSummary) -> Intervals:
    """Return one interval of the means of a Perf Summary, for a text without any other line."""

    def one(value: float | None) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([np.nan if value is None else value])

    rate = summary.mean("ips")
    nothing = PackedColumn.of(one(None))
    rates = {} if rate is None or summary.unit in STEPS_PER_SECOND else {summary.unit: PackedColumn.of(one(rate))}
    return Intervals(
        last_step=PackedColumn.of(np.zeros(1, dtype=np.int64)),
        stride=np.ones(1, dtype=np.int64),
        step_s=PackedColumn.of(one(summary.mean("batch_cost", "s"))),
        data_s=PackedColumn.of(one(summary.mean("reader_cost", "s"))),
        throughputs=rates,
        mfu=nothing,
        allocated=nothing,
        reserved=nothing,
        segments=np.zeros(1, dtype=np.int32),
        reasons=np.full(1, COUNTS, dtype=np.int8),
        lines=PackedColumn.of(np.zeros(1, dtype=np.int64)),
        is_numbered=False,
    )


def _read_document(path: Path, options: ReadOptions, choice: ChosenGrammar) -> LogReading:
    text = _open(path, replace(options, max_bytes=min(options.max_bytes, MAX_BYTES)))
    content = b"".join(text)
    try:
        lines, note = scan_document(content, choice.grammar)
    except (ValueError, RecursionError) as error:
        raise SourceError(path, "", f"is no whole JSON: {error}", remedy="copy the file again") from error
    context = RunContext()
    intervals = intervals_of(lines, choice.grammar, Sizes())
    if not len(intervals.last_step) and note:
        raise SourceError(path, "", f"no step time in it: {note}", remedy=WITH_SESSION_STEPS)
    if not len(intervals.last_step):
        raise _without_times(path, content[:SNIFF_BYTES])
    return LogReading(path, text.source(), choice.grammar, lines, context, intervals, tuple(filter(None, [note])))


def _read_events(path: Path, options: ReadOptions) -> LogReading:
    text = _open(path, options)
    scalars = read_scalars(text)
    lines, grammar, way = scan_scalars(scalars)
    context = read_context(scalars.texts, grammar, None)
    intervals = intervals_of(lines, grammar, _sizes(path, context, lines)) if lines.count else None
    if intervals is None or not len(intervals.last_step):
        raise SourceError(
            path, "", "no times in it: no scalar of a step time, and none that was written three times",
            remedy="give the log of the job",
        )  # fmt: skip
    if way:
        intervals = replace(intervals, way=way)
    notes: Sequence[str] = []
    if scalars.damaged:
        notes = [f"{scalars.damaged} damaged records left out: their check sums do not fit"]
    if scalars.is_cut:
        notes = [*notes, "the last record is cut off and was left out"]
    return LogReading(path, text.source(), grammar, lines, context, intervals, tuple(notes))


def _without_times(path: Path, head: bytes) -> SourceError:
    if is_summary_alone(head):
        return SourceError(path, "", f"no step time in it: {UNKNOWN_STEPS}", remedy=WITH_SESSION_STEPS)
    framework = framework_without_times(path, head)
    if framework:
        beside = "; trainer_log.jsonl or what the Trainer printed may have them" if STATE.search(head) else ""
        return SourceError(
            path, "", f"no times in it: a log of {framework} {what_it_has(path, head)}{beside}",
            remedy=WITH_TIMES,
        )  # fmt: skip
    return SourceError(
        path, "", f"no line says how fast the training was; {_LOOKED_FOR}",
        remedy=WITH_TIMES,
    )  # fmt: skip
