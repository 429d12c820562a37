"""From the intervals of a log to its capture."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import LOG_COUNTERS, NO_STEP, ROUNDING_SETTING, Breakdown, Capture, Rows, Source, StepRow
from tracker.readers import _rows
from tracker.readers.training_log.columns import PackedColumn, are_alike, pick
from tracker.readers.training_log.context import RunContext, configuration_of, device_of, facts_of, labels_of, rank_of
from tracker.readers.training_log.course import STALL, RunCourse, course_of
from tracker.readers.training_log.distribution import mean_of
from tracker.readers.training_log.grammar import LARGEST_STEP_S, RATE_UNITS, Grammar
from tracker.readers.training_log.intervals import Intervals
from tracker.readers.training_log.left_out import LEFT_OUT, SKIPPED
from tracker.readers.training_log.scanning import Scan
from tracker.readers.training_log.timers import place_timer
from tracker.units import NS_PER_MS, NS_PER_S, counted, format_ns

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Flags = NDArray[np.bool_]

TIME_ZONE: Final = "not stated; times are taken as UTC"
MAX_ROWS: Final = 20_000
"""Above this many intervals neighbours are joined when they are stored: a database of many runs stays small, and no
picture shows more.
"""
_MOST_COUNT: Final = 0.8
"""A unit that almost all intervals state is as good as one that all do: a line may lack it at a start."""
_LISTED: Final = 5
"""So many stalls are listed by their step in a sentence."""
_FEWEST_OF_QUANTILES: Final = 5
"""With fewer intervals a quantile is the smallest or the largest of them."""
_LEAST_ROUNDING: Final = 0.0005
"""No change that is judged is so small."""
_GAP: Final = 3.0
"""Times the usual number of steps of an interval, from which lines are missing in it."""
_FEWEST_STRIDES: Final = 3
_LOOKED_AT: Final = 1 << 16
"""So many rows at once: their places take no memory to speak of."""
_LARGEST_BYTES: Final = 2.0**56
"""No device has 64 PiB; a larger number is damage."""


class LogReading(Struct, frozen=True):
    """All that was read of a log: where, its source, its lines, its intervals, and what it says of the run."""

    path: Path
    source: Source
    grammar: Grammar
    scan: Scan
    context: RunContext
    intervals: Intervals
    notes: tuple[str, ...] = ()
    counters: tuple[_rows.Row, ...] = ()
    guess: str = ""


_LARGEST: Final = (1 << 63) - 1
"""What a database holds."""


def capture_of(reading: LogReading) -> tuple[Capture, tuple[str, ...]]:
    """Return the capture, and what the reader of its numbers should know."""
    intervals, scan = reading.intervals, reading.scan
    course = course_of(intervals)
    unit = _main_unit(intervals)
    tables = _tables(reading, course, unit)
    configuration, contradictions = configuration_of(reading.path, reading.context)
    batch, note = _batch_of_intervals(scan, intervals)
    if batch is not None and (note or "global_batch_size" not in configuration):
        configuration["global_batch_size"] = str(batch)
    contradictions += (note,) if note else ()
    started, ended = _times_of_day(scan, intervals)
    settings = {
        "profiler": "off",
        "throughput_unit": unit,
        "throughput_scope": intervals.scopes.get(unit, ""),
        "interval_steps": _steps_of_an_interval(intervals),
        ROUNDING_SETTING: _roundings_of(intervals, unit),
    }
    # last, since of a large log they take more memory than all else
    steps = _step_rows(intervals, unit)
    is_utc = scan.states("clock_ms") or not reading.grammar.lines  # MLPerf, TensorBoard
    zone = {"time_zone": TIME_ZONE} if started is not None and not is_utc else {}
    capture = Capture(
        rank=rank_of(reading.path),
        world_size=None,
        host="",
        device=device_of(reading.path, reading.context),
        device_ordinal=None,
        started_at_ns=started,
        # where no line after the first has a clock, the end is not known
        ended_at_ns=ended if ended != started else None,
        sources=(reading.source,),
        settings={name: value for name, value in settings.items() if value},
        facts=facts_of(reading.context, reading.grammar.name) | zone,
        rows=Rows(_overall(intervals, steps), tuple(steps), tables),
        labels=labels_of(reading.path, reading.context),
        configuration=configuration,
    )
    return capture, (*_sentences(reading, course, len(steps)), *contradictions, *reading.notes)


def _steps_of_an_interval(intervals: Intervals) -> str:
    """Return how many steps an interval has, the median; "" where the log does not number its steps."""
    # of two lines the first may be about step 0 alone: it counts in no median
    if not intervals.is_numbered or not len(intervals.stride):
        return ""
    if are_alike(intervals.stride):
        return str(int(intervals.stride[0]))
    strides = intervals.stride[intervals.counts] if intervals.counts.any() else intervals.stride.copy()
    return str(int(np.median(strides, overwrite_input=True)))


def _roundings_of(intervals: Intervals, unit: str) -> str:
    """Return how far numbers of the steps may be from what the log printed, as ROUNDING_SETTING has it; "" for none."""
    roundings = {
        "duration_ns": intervals.rounding,
        "data_loading_ns": intervals.data_rounding,
        "samples_per_second": intervals.rate_roundings.get(unit, 0.0),
    }
    known = {name: float(f"{rounding:.3g}") for name, rounding in roundings.items() if rounding >= _LEAST_ROUNDING}
    return json.dumps(known) if known else ""


def _batch_of_intervals(scan: Scan, intervals: Intervals) -> tuple[int | None, str]:
    """Return the global batch that most intervals that count state, None for none; a sentence where it changes."""
    if not scan.states("batch"):
        return None, ""
    batch = scan.packed_column("batch").at(intervals.lines).values()
    counted_batch = batch
    if are_alike(batch):
        counted_batch = batch[:1]
    elif intervals.counts.any():
        counted_batch = batch[intervals.counts]
    known = counted_batch[~np.isnan(counted_batch)]
    # a mean of batches of tokens, as fairseq prints it, is no configuration
    if not len(known) or not (known == np.floor(known)).all():
        return None, ""
    sizes, counts = np.unique(known, return_counts=True)
    most = int(np.argmax(counts))
    size = int(sizes[most])
    if len(sizes) == 1:
        return size, ""
    changes = f"the global batch size changes from {int(known[0])} to {int(known[-1])}"
    part = f"{counts[most]} of {len(known)} intervals that count have {size}"
    if 2 * counts[most] > len(known):
        return size, f"{changes}: {part}, and the configuration is theirs; the median is of all intervals"
    return size, f"{changes}: {part}, fewer than half, so that the median is of several batches"


def _times_of_day(scan: Scan, intervals: Intervals) -> tuple[int | None, int | None]:
    if scan.states("clock_ms"):
        clocks = scan.column("clock_ms")
        return int(np.nanmin(clocks)) * NS_PER_MS, int(np.nanmax(clocks)) * NS_PER_MS
    if np.isnan(scan.first_clock):
        return None, None
    if intervals.trainings > 1 and len(scan.clocks):
        # of the training that counts
        clocks = pick(scan.clocks.values(), intervals.lines.values())
        known = clocks[~np.isnan(clocks)]
        return (int(known[0]), int(known[-1])) if len(known) else (None, None)
    return int(scan.first_clock), None if np.isnan(scan.last_clock) else int(scan.last_clock)


def _main_unit(intervals: Intervals) -> str:
    """Return the unit of the throughput that most intervals state; "" where none does."""
    counts = {}
    for unit, values in intervals.throughputs.items():
        if count := int((~values.is_missing() & intervals.counts).sum()):
            counts[unit] = count
    if not counts:
        return ""
    order = {unit: place for place, unit in enumerate(RATE_UNITS.values())}
    # a unit that almost all intervals state is as good as one that all do
    most = _MOST_COUNT * max(counts.values())
    return min((unit for unit, count in counts.items() if count >= most), key=lambda unit: order.get(unit, -1))


def _step_rows(intervals: Intervals, unit: str) -> list[StepRow]:
    """Return a row for each interval that counts; above MAX_ROWS one for each group of neighbours, their mean."""
    many = int(intervals.counts.sum())
    size = -(-many // MAX_ROWS) or 1
    numbers, begins_s, counts = _steps_of_rows(intervals, size)
    no_rates = PackedColumn.of(np.broadcast_to(np.nan, (len(intervals.step_s),)))
    rates = intervals.throughputs.get(unit, no_rates)
    columns = [intervals.step_s, intervals.data_s, rates, intervals.allocated, intervals.reserved]
    tables = [
        _joined(column, intervals.counts, size, largest=column is intervals.allocated or column is intervals.reserved)
        for column in columns
    ]
    rows = []
    for place, (number, begin_s, count) in enumerate(
        zip(numbers.tolist(), begins_s.tolist(), counts.tolist(), strict=True)
    ):
        step_s, data_s, rate, allocated, reserved = (table[place] for table in tables)
        breakdown = _rows.breakdown(
            "host",
            duration_ns=_to_ns(step_s),
            data_loading_ns=_to_ns(data_s),
            samples_per_second=None if np.isnan(rate) else float(rate),
            peak_allocated_bytes=_to_whole(allocated),
            peak_reserved_bytes=_to_whole(reserved),
        )
        start_ns = round(begin_s * NS_PER_S)
        if max(number, start_ns) > _LARGEST:
            raise ValueError(f"step {number} begins {start_ns} ns after the first one")
        rows.append(StepRow(number, start_ns, breakdown, steps=count))
    return rows


def _steps_of_rows(intervals: Intervals, size: int) -> tuple[I64, F64, I64]:
    """Return the last step of each row, when it begins in s, and how many steps it stands for: those that its intervals
    average over.
    """
    is_counted = intervals.counts
    count = int(is_counted.sum())
    firsts = np.arange(0, count, size)
    lasts = np.minimum(firsts + size, count) - 1
    last_steps = intervals.last_step.at(_places_of(is_counted, lasts)).values()
    begins_s = _times_before(intervals, _places_of(is_counted, firsts))
    return last_steps, begins_s, _counts_of_rows(intervals, is_counted, firsts, count)


def _places_of(is_one: Flags, ranks: I64) -> I64:
    """Return the places of some of the rows that are so, by their number among these."""
    found = [np.zeros(0, dtype=np.int64)]
    before = 0
    for begin in range(0, len(is_one), _LOOKED_AT):
        places = begin + np.flatnonzero(is_one[begin : begin + _LOOKED_AT])
        first, last = np.searchsorted(ranks, (before, before + len(places)))
        found.append(places[ranks[first:last] - before])
        before += len(places)
    return np.concatenate(found)


def _counts_of_rows(intervals: Intervals, is_counted: Flags, starts: I64, count: int) -> I64:
    if are_alike(intervals.stride) or not count:
        return np.diff(starts, append=count) * np.maximum(intervals.stride[:1], 1)
    strides = np.maximum(intervals.stride[is_counted], 1)
    if intervals.is_numbered and count >= _FEWEST_STRIDES:
        # lines are missing: the interval is no more than another one, and what it held beside its steps is not known
        usual = max(int(np.median(strides)), 1)
        strides[strides > _GAP * usual] = usual
    return np.add.reduceat(strides, starts).astype(np.int64)


def _times_before(intervals: Intervals, places: I64) -> F64:
    """Return how long all intervals before some places took, in s."""
    before = np.zeros(len(places))
    spent_s = 0.0
    begin = 0
    for step_s in intervals.step_s.pieces():
        end = begin + len(step_s)
        sums = np.cumsum(np.concatenate([[spent_s], np.nan_to_num(step_s) * intervals.stride[begin:end]]))
        is_inside = (places >= begin) & (places < end)
        before[is_inside] = sums[places[is_inside] - begin]
        spent_s = float(sums[-1])
        begin = end
    return before


def _joined(column: PackedColumn, counts: Flags, size: int, *, largest: bool) -> F64:
    """Return the means, or the largest, of each `size` neighbours of the rows that count."""
    if size == 1:
        return column.where(counts)
    joined = []
    begin = 0
    rest = np.zeros(0)
    for numbers in column.pieces():
        counted = np.concatenate([rest, numbers[counts[begin : begin + len(numbers)]]])
        begin += len(numbers)
        whole = len(counted) // size * size
        joined.append(_join(counted[:whole].reshape(-1, size), largest))
        rest = counted[whole:]
    if len(rest):
        padded = np.append(rest, np.full(size - len(rest), np.nan))
        joined.append(_join(padded.reshape(1, size), largest))
    return np.concatenate(joined)


def _join(padded: F64, largest: bool) -> F64:
    known = ~np.isnan(padded)
    count = known.sum(axis=1)
    if largest:
        return np.where(count > 0, np.where(known, padded, -np.inf).max(axis=1), np.nan)
    sums = np.where(known, padded, 0.0).sum(axis=1)
    return np.asarray(np.divide(sums, count, out=np.full(len(count), np.nan), where=count > 0))


def _to_ns(seconds: float) -> int | None:
    return round(float(seconds) * NS_PER_S) if 0 <= seconds <= LARGEST_STEP_S else None


def _to_whole(value: float) -> int | None:
    return round(float(value)) if 0 < value < _LARGEST_BYTES else None


def _overall(intervals: Intervals, steps: Sequence[StepRow]) -> Breakdown:
    """Return sums over the steps where each has an interval that counts: else how long all took is not known.

    The throughput is that of all intervals that count, each by its time: 10 samples/s for 3 s and 50 samples/s for 1 s
    are 20 samples/s. Where no interval says its time, the plain mean.
    """
    is_summary = not intervals.is_numbered and len(steps) == 1
    is_whole = is_summary
    if intervals.is_numbered and len(steps) and intervals.counts.all() and (intervals.stride == 1).all():
        is_whole |= bool(intervals.last_step.first(1)[0] in (0, 1)) and _counts_on(intervals.last_step)
    times = [row.breakdown.duration_ns for row in steps if row.breakdown.duration_ns is not None]
    loads = [row.breakdown.data_loading_ns for row in steps if row.breakdown.data_loading_ns is not None]
    rates = [
        (row.breakdown.samples_per_second, row.steps * (row.breakdown.duration_ns or 0))
        for row in steps
        if row.breakdown.samples_per_second is not None
    ]
    weights = [float(weight) for _, weight in rates]
    if not sum(weights):
        weights = [1.0] * len(rates)
    weighted = sum(rate * weight for (rate, _), weight in zip(rates, weights, strict=True))
    memory = {
        name: max((value for row in steps if (value := getattr(row.breakdown, name)) is not None), default=None)
        for name in ("peak_allocated_bytes", "peak_reserved_bytes")
    }
    return _rows.breakdown(
        "host",
        duration_ns=sum(times) if len(times) == len(steps) and is_whole else None,
        data_loading_ns=sum(loads) if len(loads) == len(steps) and is_whole else None,
        samples_per_second=weighted / sum(weights) if rates else None,
        **memory,
    )


def _counts_on(steps: PackedColumn) -> bool:
    """Whether each step is one more than the step before."""
    before = steps.first(1)[0] - 1
    for numbers in steps.pieces():
        if (np.diff(numbers, prepend=before) != 1).any():
            return False
        before = numbers[-1]
    return True


def _tables(reading: LogReading, course: RunCourse | None, unit: str) -> dict[str, Any]:
    counters = [*reading.counters]
    if course is not None and rank_of(reading.path) in (None, 0):
        # of several logs of one run, one a rank: a mean of quantiles or of step numbers would be nothing of any rank
        counters.extend(_course_counters(reading.intervals, course))
    counters.extend(_left_out_counters(reading.intervals))
    counters.extend(_interval_counters(reading, unit))
    counters.extend(_timer_counters(reading))
    return _rows.tables([], {"counter": counters})


def _course_counters(intervals: Intervals, course: RunCourse) -> Iterator[_rows.Row]:
    """Yield what all intervals say together."""
    quantiles = {"p10": course.p10, "p50": course.p50, "p90": course.p90, "p99": course.p99}
    for name, value in quantiles.items():
        if name != "p50" and course.count < _FEWEST_OF_QUANTILES:
            continue
        yield _counter(f"step time {name}", "ms", course.count, value * 1000)
    if course.jitter is not None:
        yield _counter("jitter (p99 / p50)", "ratio", course.count, course.jitter)
    if course.jitter is not None or course.stalls:
        yield _counter("stalls (above 3 medians)", "count", course.count, float(len(course.stalls)))
    if course.stalls:
        times = intervals.step_s.at(course.stalls).values() * 1000
        yield _counter("stalled intervals", "ms", len(times), float(times.mean()), times)
    if course.window is not None:
        yield _counter("slow window, first step", "step", 1, float(course.window.first))
        yield _counter("slow window, last step", "step", 1, float(course.window.last))
        yield _counter("slow window, by the rest", "ratio", course.window.intervals, course.window.ratio)


def _left_out_counters(intervals: Intervals) -> Iterator[_rows.Row]:
    """Yield how many intervals are left out of the median, by reason."""
    for place, reason in enumerate(LEFT_OUT):
        times = intervals.step_s.where(intervals.reasons == place)
        times = times[~np.isnan(times)] * 1000
        if len(times):
            yield _counter(f"left out: {reason}", "ms", len(times), float(times.mean()), times)


def _interval_counters(reading: LogReading, unit: str) -> Iterator[_rows.Row]:
    """Yield MFU and the throughputs in other units, of each interval; of many intervals over all of them."""
    intervals = reading.intervals
    columns = {("mfu", "%"): intervals.mfu}
    for other, values in intervals.throughputs.items():
        if other != unit:
            columns["throughput", other] = values
    for (name, attribute), packed in columns.items():
        if not packed.has_number():
            continue
        is_known = intervals.counts & ~packed.is_missing()
        count = int(is_known.sum())
        if count > MAX_ROWS:
            mean = mean_of(partial(packed.pieces_where, is_known), count)
            extremes = [(some.min(), some.max()) for some in packed.pieces_where(is_known) if len(some)]
            yield _counter(name, attribute, count, mean, np.array(extremes))
            continue
        numbers, steps = packed.where(is_known), intervals.last_step.where(is_known)
        for value, step in zip(numbers.tolist(), steps.tolist(), strict=True):
            yield _counter(name, attribute, 1, value, step=step)


def _timer_counters(reading: LogReading) -> Iterator[_rows.Row]:
    """Yield the timers that the log prints beside its step lines, over the intervals that count."""
    scan, counts = reading.scan, reading.intervals.counts
    for timer in scan.timers if len(counts) else ():
        interval = place_timer(timer, scan.positions.values(), scan.column("step"), reading.intervals.lines.values())
        is_counted = (interval >= 0) & counts[np.maximum(interval, 0)]
        values = timer.values[is_counted].astype(np.float64)
        if len(values):
            yield _counter(f"timer: {timer.name}", "ms", len(values), float(values.mean()), values)


def _counter(
    name: str, attribute: str, calls: int, mean: float, values: F64 | None = None, step: int = NO_STEP
) -> _rows.Row:
    smallest, largest = (mean, mean) if values is None else (float(values.min()), float(values.max()))
    return {"step": step, "source": LOG_COUNTERS, "name": name, "attribute": attribute, "calls": calls, "mean": mean,
            "min": smallest, "max": largest}  # fmt: skip


def _sentences(reading: LogReading, course: RunCourse | None, rows: int) -> Iterator[str]:
    """Yield what a reader of the numbers should know."""
    intervals, scan = reading.intervals, reading.scan
    many = len(intervals.last_step)
    left_out = []
    for place, reason in enumerate(LEFT_OUT):
        if count := int((intervals.reasons == place).sum()):
            left_out.append(f"{count} {'with' if reason == SKIPPED else 'of'} {reason}")
    if left_out:
        yield f"of {counted(many, 'interval')} the median leaves out {', '.join(left_out)}"
    if course is None and many:
        yield "no line says how long a step took, and the size of a step is not known: only the throughput was read"
    if intervals.way:
        yield f"the time of a step comes from {intervals.way}"
    if course is not None and course.stalls:
        times = intervals.step_s.at(course.stalls).values()
        last_steps = intervals.last_step.at(course.stalls[:_LISTED]).values()
        listed = ", ".join(str(last_step) for last_step in last_steps.tolist())
        more = f" and {len(course.stalls) - _LISTED} more" if len(course.stalls) > _LISTED else ""
        yield (
            f"{counted(len(course.stalls), 'interval')} took more than {STALL:g} times the median, up to "
            f"{format_ns(float(times.max()) * NS_PER_S)} a step: at {listed}{more}"
        )
    if course is not None and course.window is not None:
        window = course.window
        yield (
            f"steps {window.first} to {window.last} were {(window.ratio - 1) * 100:.1f} % slower than the others "
            f"({window.intervals} of {course.count} intervals)"
        )
    if intervals.repeated:
        yield f"{counted(intervals.repeated, 'line')} state a step again; each step counts once"
    if intervals.trainings > 1:
        yield f"the log holds {intervals.trainings} trainings, one appended to the other; the last one counts"
    if intervals.restarts:
        again = (
            f"; {counted(intervals.replaced, 'interval')} of steps done again count once" if intervals.replaced else ""
        )
        yield f"the training was resumed {counted(intervals.restarts, 'time')}{again}"
    if len(intervals.ranks) > 1:
        yield f"{len(intervals.ranks)} ranks report the speed; the steps are those of rank {intervals.ranks[0]}"
    counted_intervals = int(intervals.counts.sum())
    if rows < counted_intervals:
        yield (
            f"{counted_intervals:,} intervals are stored as {rows:,} rows of neighbours; quantiles, jitter and stalls "
            "are of all intervals"
        )
    if scan.is_cut:
        yield "the last line is cut off and was left out"
    if scan.skipped_lines:
        yield f"{counted(scan.skipped_lines, 'line')} of more than 1 MiB passed over"
    units = {unit for unit, values in intervals.throughputs.items() if values.has_number()}
    if reading.grammar.parse is not None and len(units) > 1:
        yield "the lines give their throughput in different units"


def sizes_in(configuration: Mapping[str, str], name: str) -> int | None:
    """Return a number of a configuration; None where it is not stated."""
    value = configuration.get(name, "")
    return int(value) if re.fullmatch(r"[1-9]\d{0,12}", value) else None
