"""One step of a run as a trace of its own, cut from the file that the run was read from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker import readers
from tracker.errors import SourceError, UsageError
from tracker.limits.touch import touch
from tracker.profile import Profile
from tracker.readers import ReadOptions, Span
from tracker.schema.column_names import DIGEST, DURATION_NS, FORMAT, PATH, RANK, STEP
from tracker.store import Store, queries
from tracker.timeline.joined import join
from tracker.timeline.steps import ONLY_STEP
from tracker.units import NS_PER_US, ranges

_ELSEWHERE: Final = {
    "nsys_sqlite": "open its report in Nsight Systems", "ascend_db": "open it in MindStudio Insight",
    "cann": "open its msprof_*.json in MindStudio Insight",
}  # fmt: skip
"""Format -> what shows its timeline. Of CANN, a file holds one iteration, or all of them without their borders."""


class TraceFile(Struct, frozen=True):
    """A trace that a run was read from."""

    path: Path
    format: str
    digest: str


class Cut:
    """A step of a run: `step` of `rank`, from the file at `path`. Iterate over `content` once, to its end; then
    `events` and `bytes` are its size. `name`: a name for the file.
    """

    def __init__(self, run_id: int, rank: int, step: int, source: TraceFile, options: ReadOptions) -> None:
        self.run_id, self.rank, self.step, self.path = run_id, rank, step, source.path
        self.events = self.bytes = 0
        self.name = f"run{run_id}-rank{rank}-step{step}"
        self._digest, self._options = source.digest, options
        self._span = self._found(source.format)

    def content(self, *, compressed: bool) -> Iterator[bytes]:
        """The trace in Chrome's format, plain or as gzip: the events of the step, and no other metadata of the file.

        A SourceError where the file is another one than it was.
        """
        for block in filter(None, _packed(self._parts()) if compressed else self._parts()):
            self.bytes += len(block)
            yield block

    def _parts(self) -> Iterator[bytes]:
        yield b'{"traceEvents": ['
        for event in readers.events_in(self.path, self._span, self._options, self._digest):
            yield (b",\n" if self.events else b"\n") + event
            self.events += 1
        yield b"\n]}\n"

    def _found(self, format: str) -> Span:
        """Where the step is, by the reader of the file."""
        try:
            profile = readers.read(readers.Found(self.path, format), self._options)
        except SourceError:
            readers.check_content(self.path, self._options, self._digest)
            raise
        if all(source.digest.hex() != self._digest for one in profile.captures for source in one.sources):
            readers.check_content(self.path, self._options, self._digest)
        if (span := span_of(profile, self.step)) is None:
            raise SourceError(
                self.path, "", f"has no marker of step {self.step}", remedy="open the whole file in Perfetto"
            )
        return span


def cut(
    store: Store, run_id: int, *, step: int | None = None, rank: int | None = None, options: ReadOptions | None = None
) -> Cut:
    """Step `step` of `rank`, by default the slowest one that can be cut. The file is the one that the database names.

    UsageError for a run, rank or step without a trace; SourceError for a file that is gone, or another one by now.
    """
    of_rank, number, trace = find_trace(store, run_id, step=step, rank=rank)
    with touch(trace.path):
        is_there = trace.path.is_file()
    if not is_there:
        raise SourceError(trace.path, "", "no such file any more", remedy="put the file back")
    # what passed at the ingest passes here: the content is the same
    lenient = replace(options or ReadOptions(), allow_partial=True, skip_bad_rows=True)
    return Cut(run_id, of_rank, number, trace, lenient)


def find_trace(
    store: Store, run_id: int, *, step: int | None = None, rank: int | None = None
) -> tuple[int, int, TraceFile]:
    """Return the rank and number of the step that `cut` takes, and the trace that it is in, there or not.

    UsageError for a run, rank or step without a trace.
    """
    with store.reading():
        queries.require_run(store, run_id)
        steps = queries.steps(store, [run_id]).rows(RANK, STEP, DURATION_NS)
        sources = list(queries.sources(store, [run_id]).rows(RANK, FORMAT, PATH, DIGEST))
    traces = traces_of(sources)
    if not traces:
        formats = list(dict.fromkeys(format for _, format, *_ in sources))
        instead = next((f"{_ELSEWHERE[format]}, or " for format in formats if format in _ELSEWHERE), "")
        raise UsageError(
            f"run:{run_id} was read from {', '.join(formats)}, of which no step can be cut",
            remedy=f"{instead}tracker show run:{run_id} shows its steps",
        )
    if rank is not None and rank not in traces:
        there = ranges(sorted(traces))
        raise UsageError(f"run:{run_id} has no trace of rank {rank}", remedy=f"ranks with a trace: {there}")
    known = [row for row in steps if row[0] in traces and rank in (None, row[0])]
    if not known:
        raise UsageError(f"run:{run_id} has no steps: its details were pruned", remedy="tracker runs lists others")
    chosen = [row for row in known if step is None or row[1] == step]
    if not chosen:
        there = ranges(sorted({number for _, number, _ in known}))
        raise UsageError(f"run:{run_id} has no step {step}", remedy=f"its steps: {there}")
    of_rank, number, _ = max(chosen, key=lambda row: (row[2] or 0, -row[0], -row[1]))
    return of_rank, number, traces[of_rank]


def traces_of(sources: Iterable[tuple[Any, ...]]) -> Mapping[int, TraceFile]:
    """Rank -> its trace, of the files that a run was read from: rank, format, path, digest."""
    found: dict[int, TraceFile] = {}
    for rank, format, path, digest in sources:
        pattern = getattr(readers.load(format), "TRACES", None) if format in readers.NAMES else None
        if pattern is not None and pattern.fullmatch(Path(path).name):
            found.setdefault(rank, TraceFile(Path(path), format, digest))
    return found


def span_of(profile: Profile, step: int) -> Span | None:
    """Return where `step` is in a trace: its markers, the work that it left on a device behind them, and all that the
    device does while it works on the step. Without markers the trace is one step.
    """
    events = [capture.events for capture in profile.captures if capture.events is not None]
    marked = [one for one in events if (one.markers.step == step).any()]
    if not marked:
        return Span() if step == ONLY_STEP and not any(len(one.markers) for one in events) else None
    start = min(int(one.markers.start_ns[one.markers.step == step].min()) for one in marked)
    end = max(int(one.markers.end_ns[one.markers.step == step].max()) for one in marked)
    times = []
    for one in marked:
        joined, begun_ns = join(one), one.device.start_ns
        runs = joined.windows.spans_of(step)
        first_ns, last_ns = (runs.start_ns[0], runs.end_ns[-1]) if len(runs) else (start, end)
        times.append(begun_ns[(joined.step == step) | ((begun_ns >= first_ns) & (begun_ns < last_ns))])
    begun = np.concatenate(times)
    also = np.unique(begun[(begun < start) | (begun >= end)]).tolist()
    # Paddle cuts times to whole us
    return Span(start, end, also, step, NS_PER_US if profile.format == "paddle_trace" else 0)


def _packed(parts: Iterable[bytes]) -> Iterator[bytes]:
    from isal import isal_zlib

    packer = isal_zlib.compressobj(wbits=31)  # gzip, without a time: the same step is the same file
    yield from map(packer.compress, parts)
    yield packer.flush()
