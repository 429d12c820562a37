"""What other files of a job state of the steps of a trace: the timer log and the summary beside it, the data pipeline.

A timer log and a data pipeline say how long a step waits for data, which a trace may not record: the time becomes that
of each step where the step can hold it. All of it stays in counters, which classes and notes are made from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan, nan
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker import readers
from tracker.errors import SourceError
from tracker.intake.pieces import IngestOptions, Piece
from tracker.profile import (
    EMPTY_QUEUE,
    MISSING,
    NO_STEP,
    PIPELINE_TIME,
    ROW_COLUMNS,
    SUMMARY_STEP,
    TIMER_BATCH,
    TIMER_READER,
    Capture,
    CounterName,
    Rows,
    StepRow,
)
from tracker.profile.words import PADDLE_SUMMARY, TRAINING_LOG
from tracker.readers import Found, ReadOptions
from tracker.units import NS_PER_MS, NS_PER_S, format_diff, format_ns

_TIMED: Final = ("paddle_trace", "paddle_summary")
"""Formats of traces beside which the timer of the same profiler may have written a log."""
_SUFFIXES: Final = ("", ".txt", ".log", ".out")
_MOST_FILES: Final = 64
"""A folder with more files than this holds logs of many jobs."""
_MOST_BYTES: Final = 64 << 20
_MOSTLY: Final = 0.5
"""A queue that is empty for more than this share of the time makes the device wait: most of the time."""
_DISAGREES: Final = 0.03
"""The smallest change that counts as one where no threshold is set: sources that differ by less agree."""


class _Timer(Struct, frozen=True):
    """What the log of a timer says: its step and how much of it waits for data, in ns. rank: None for none."""

    name: str
    rank: int | None
    batch_ns: int
    reader_ns: int


def with_data_loading(pieces: Sequence[Piece], options: IngestOptions) -> list[Piece]:
    """Return the pieces with the data loading that other files or tables state."""
    by_folder: dict[Path, list[Piece]] = {}
    for piece in pieces:
        if piece.format in _TIMED:
            by_folder.setdefault(Path(piece.place).parent, []).append(piece)
    beside = {folder: list(_texts_in(folder, options)) for folder in by_folder}
    read = {piece.place for piece in pieces}
    found = []
    for piece in pieces:
        if piece.format not in _TIMED:
            found.append(_with_pipeline(piece))
            continue
        folder = Path(piece.place).parent
        is_alone = sum(other.format == piece.format for other in by_folder[folder]) == 1
        all_timers = (_timer_in(path, capture) for path, capture in beside[folder])
        timers = [timer for timer in all_timers if timer is not None]
        summaries = [path_capture for path_capture in beside[folder] if _is_summary(path_capture[1])]
        timer = _timer_of(piece, timers, is_alone=is_alone)
        timed = piece if timer is None else _with_timer(piece, timer)
        # a summary that is a run of its own is seen there
        if is_alone and len(summaries) == 1 and str(summaries[0][0]) not in read:
            timed = _with_summary(timed, *summaries[0])
        found.append(timed)
    return found


def _texts_in(folder: Path, options: IngestOptions) -> Iterator[tuple[Path, Capture]]:
    """Yield the logs and summaries of a folder."""
    files = sorted(file for file in folder.iterdir() if file.is_file()) if folder.is_dir() else []
    if len(files) > _MOST_FILES:
        return
    for file in files:
        is_text = file.suffix in _SUFFIXES or file.suffix[1:].isdigit()  # workerlog.0
        if not is_text or file.stat().st_size > _MOST_BYTES:
            continue
        formats = [
            seen.claims[0] for seen in readers.survey(file) if seen.claims in ((TRAINING_LOG,), (PADDLE_SUMMARY,))
        ]
        if not formats:
            continue
        try:
            (capture,) = readers.read(Found(file, formats[0]), ReadOptions(max_bytes=options.max_bytes)).captures
        except SourceError:
            continue  # it is no part of what is ingested
        yield file, capture


def _is_summary(capture: Capture) -> bool:
    return capture.settings.get("profiler") == "summary"


def _timer_in(path: Path, capture: Capture) -> _Timer | None:
    """Return what a log says that states data loading; None for other texts."""
    times = None if _is_summary(capture) else _mean_times(capture)
    return None if times is None else _Timer(path.name, capture.rank, *times)


def _mean_times(capture: Capture) -> tuple[int, int] | None:
    """Return the step of a log and the data loading in it, in ns.

    The step is the median of its lines: its own mean counts the steps of warm-up. The data loading is that of its own
    mean where it states one, which has more digits than its lines.
    """
    if capture.rows is None:
        return None
    said = {
        name: mean
        for source, name, unit, mean in _counters(capture.rows)
        if source == "perf_summary" and unit == "s" and mean > 0
    }
    steps = [step.breakdown for step in capture.rows.steps]
    batches = [step.duration_ns for step in steps if step.duration_ns is not None]
    loads = [step.data_loading_ns for step in steps if step.data_loading_ns is not None]
    batch_ns = median(batches) if batches else said.get("batch_cost", nan) * NS_PER_S
    reader_ns = said["reader_cost"] * NS_PER_S if "reader_cost" in said else median(loads or [nan])
    return None if isnan(batch_ns + reader_ns) else (round(batch_ns), round(reader_ns))


def _counters(rows: Rows) -> Iterator[tuple[str, str, str, float]]:
    """Yield source, name, attribute and mean of each counter."""
    table = rows.tables.get("counter", {})
    columns = (table.get(name, ()) for name in ("source", "name", "attribute", "mean"))
    for source, name, attribute, mean in zip(*columns, strict=True):
        yield str(source), str(name), str(attribute), float(mean)


def _timer_of(piece: Piece, timers: Sequence[_Timer], *, is_alone: bool) -> _Timer | None:
    """Return the log of the process that a trace is of; None where several may be, or none is."""
    rank = piece.capture.rank
    of_rank = [timer for timer in timers if timer.rank is not None and timer.rank == rank]
    if len(of_rank) == 1:
        return of_rank[0]
    return timers[0] if is_alone and len(timers) == 1 else None


def _with_timer(piece: Piece, timer: _Timer) -> Piece:
    rows = piece.capture.rows
    if rows is None:
        return piece
    counters = {TIMER_READER: timer.reader_ns / NS_PER_MS, TIMER_BATCH: timer.batch_ns / NS_PER_MS}
    loaded = _with_loading(_with_counters(rows, counters), timer.reader_ns)
    warnings = (*piece.warnings, *filter(None, [_about_timer(rows, timer)]))
    return replace(piece, capture=replace(piece.capture, rows=loaded), warnings=warnings)


def _about_timer(rows: Rows, timer: _Timer) -> str:
    """Return what to know where the log beside a trace has other times; '' where both agree."""
    step_ns = _mean_step(rows)
    if step_ns is None:
        return ""
    loading_ns = fmean(row.breakdown.data_loading_ns or 0 for row in rows.steps)
    is_alike = abs(timer.batch_ns / step_ns - 1) <= _DISAGREES
    if is_alike and abs(timer.reader_ns - loading_ns) <= _DISAGREES * step_ns:
        return ""
    return (
        f"{timer.name} beside it has {format_ns(timer.batch_ns)} per step, {format_ns(timer.reader_ns)} of it data "
        f"loading; here it is {format_ns(step_ns)} ({format_diff(timer.batch_ns / step_ns - 1)}), "
        f"{format_ns(loading_ns)} of it data loading: data loading is taken from {timer.name}"
    )


def _with_summary(piece: Piece, path: Path, summary: Capture) -> Piece:
    """Return a piece with the step of the summary beside it, where that is another one."""
    rows, own = piece.capture.rows, summary.rows
    if rows is None or own is None:
        return piece
    here_ns, there_ns = _mean_step(rows), _mean_step(own)
    if here_ns is None or there_ns is None or abs(there_ns / here_ns - 1) <= _DISAGREES:
        return piece
    note = (
        f"{path.name} beside it has {format_ns(there_ns)} per step, here it is {format_ns(here_ns)} "
        f"({format_diff(there_ns / here_ns - 1)})"
    )
    counted = _with_counters(rows, {SUMMARY_STEP: there_ns / NS_PER_MS})
    return replace(piece, capture=replace(piece.capture, rows=counted), warnings=(*piece.warnings, note))


def _mean_step(rows: Rows) -> float | None:
    """Return how long the mean step is, in ns; None where a step is not known."""
    if not rows.steps or any(not row.breakdown.duration_ns for row in rows.steps):
        return None
    whole_ns = sum((row.breakdown.duration_ns or 0) * row.steps for row in rows.steps)
    return whole_ns / sum(row.steps for row in rows.steps)


def _with_pipeline(piece: Piece) -> Piece:
    """Return a piece with the time of its data pipeline as data loading, where its queue to the device runs empty."""
    rows = piece.capture.rows
    if rows is None:
        return piece
    said = {(source, name, attribute): mean for source, name, attribute, mean in _counters(rows)}
    empty, pipeline_ms = said.get(EMPTY_QUEUE), said.get(PIPELINE_TIME)
    if empty is None or pipeline_ms is None or empty <= 100 * _MOSTLY:
        return piece
    loaded = _with_loading(rows, round(pipeline_ms * NS_PER_MS))
    return replace(piece, capture=replace(piece.capture, rows=loaded))


def _with_loading(rows: Rows, loading_ns: int) -> Rows:
    """Return the rows with this data loading in each step, where each of them is as long as that."""
    if not rows.steps or any((row.breakdown.duration_ns or 0) < loading_ns for row in rows.steps):
        return rows
    count = sum(row.steps for row in rows.steps)
    steps = tuple(_step_with_loading(row, loading_ns) for row in rows.steps)
    # how much of it the device idles is not known
    overall = replace(rows.overall, data_loading_ns=loading_ns * count, data_loading_idle_ns=None)
    return replace(rows, steps=steps, overall=overall)


def _step_with_loading(row: StepRow, loading_ns: int) -> StepRow:
    return replace(row, breakdown=replace(row.breakdown, data_loading_ns=loading_ns, data_loading_idle_ns=None))


def _with_counters(rows: Rows, values: Mapping[CounterName, float]) -> Rows:
    """Return the rows with more counters, each of one value for the whole capture."""
    table = rows.tables.get("counter", {})
    columns: dict[str, Any] = {}
    for column, kind in ROW_COLUMNS["counter"].items():
        added = [_cell(column, name, value) for name, value in values.items()]
        before = table.get(column, ())
        if kind == "text":
            columns[column] = [*before, *added]
        else:
            dtype = np.float64 if kind == "float" else np.int64
            columns[column] = np.concatenate([np.asarray(before, dtype=dtype), np.asarray(added, dtype=dtype)])
    return replace(rows, tables={**rows.tables, "counter": columns})


def _cell(column: str, name: CounterName, value: float) -> Any:
    source, thing, attribute = name
    texts = {"source": source, "name": thing, "attribute": attribute}
    numbers = {"step": NO_STEP, "calls": 1, "mean": value, "min": value, "max": value}
    return texts[column] if column in texts else numbers.get(column, MISSING)
