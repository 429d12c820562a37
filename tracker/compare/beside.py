"""What other files of a job stated of the steps of a run, in sentences for the reader."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from tracker.compare.overall import has_trace, step_numbers
from tracker.profile import SUMMARY_STEP, TIMER_BATCH, TIMER_READER, CounterName
from tracker.schema.column_names import ATTRIBUTE, MEAN, NAME, PATH, RUN_ID, SOURCE, STEP_NS
from tracker.schema.series import UNPROFILED_STEP
from tracker.store import documents, queries
from tracker.units import NS_PER_MS, format_diff, format_ns

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide


_OTHER_JOB: Final = 2.0
"""From this ratio of the two steps on a reader is asked: a profiler seldom costs as much as the step."""


def counted(side: LoadedSide, counter: CounterName) -> float | None:
    """Return the value of a counter of whole captures: the mean of the ranks, the median of the runs."""
    if side.is_part:  # it is one number for all steps
        return None
    found: dict[int, list[float]] = {}
    table = side.query(queries.counters, by=("run",), in_steps=False)
    for run_id, *name, mean in table.rows(RUN_ID, SOURCE, NAME, ATTRIBUTE, MEAN):
        if tuple(name) == counter and mean is not None:
            found.setdefault(run_id, []).append(mean)
    return float(median([fmean(values) for values in found.values()])) if found else None


def remark_on_log(side: LoadedSide) -> Iterator[str]:
    """Yield that a log may be of another job than the trace beside it, where their steps differ by far."""
    numbers = step_numbers(side)
    of_log, traced = numbers.get(UNPROFILED_STEP), numbers.get(STEP_NS)
    if not side.has_markers or not has_trace(side) or not of_log or not traced:
        return
    ratio = max(of_log, traced) / min(of_log, traced)
    if ratio >= _OTHER_JOB:
        size = "longer" if of_log > traced else "shorter"
        yield (
            f"The step of the log ({format_ns(of_log)}) is {ratio:.1f} times {size} than that of the trace "
            f"({format_ns(traced)}): whether both are of one job is not known. If not: tracker runs restore the log."
        )


def note_on_documents(side: LoadedSide) -> Iterator[str]:
    """Yield which stored runs are other sources of this run, such as the timer log beside its trace."""
    with side.store.connect() as connection:
        found = documents.of_runs(connection, side.run_ids)
    own = [run_id for run_ids in found.values() for run_id in run_ids]
    if not own:
        return
    names: dict[int, dict[str, None]] = {}
    for run_id, path in queries.sources(side.store, own).rows(RUN_ID, PATH):
        names.setdefault(run_id, {})[Path(path).name] = None
    sources = [f"run:{run_id} ({', '.join(names.get(run_id, ()))})" for run_id in own]
    yield f"Other sources of it: {', '.join(sources)}."


def notes_on_files_beside(side: LoadedSide) -> Iterator[str]:
    """Yield the times of the timer log and the summary beside a trace, where they differ from those of the trace."""
    # their own numbers are means as well
    mean_ns = step_numbers(side).get("mean_step_ns")
    if not mean_ns or isnan(mean_ns):
        return
    batch_ms, reader_ms, summary_ms = (counted(side, name) for name in (TIMER_BATCH, TIMER_READER, SUMMARY_STEP))
    if batch_ms is not None and reader_ms is not None:
        diff = format_diff(batch_ms * NS_PER_MS / mean_ns - 1)
        yield (
            f"The timer log beside it has {format_ns(batch_ms * NS_PER_MS)} per step, "
            f"{format_ns(reader_ms * NS_PER_MS)} of it data loading, which is taken from there; the mean step here is "
            f"{format_ns(mean_ns)} ({diff})."
        )
    if summary_ms is not None:
        diff = format_diff(summary_ms * NS_PER_MS / mean_ns - 1)
        yield (
            f"The summary beside it has {format_ns(summary_ms * NS_PER_MS)} per step; the mean step here is "
            f"{format_ns(mean_ns)} ({diff})."
        )
