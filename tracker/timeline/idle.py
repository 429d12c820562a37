"""Why the device idles: each ns of idle time of a step has one cause and one place.

The part of a gap before its launch is the host's: it is cut wherever anything begins or ends on the thread that
launches next, so that each piece has one cause, the first of `IdleCause` that applies. Behind the launch a short time
is what any launch takes; what lasts longer waits for another stream, an event or another rank.

A gap that begins while the host waits for the device is one that this wait opened: what the host does from then on is
the cause, and the wait is what it stands behind.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.profile import I64, MISSING, IdleCause, StepRow, Table, each_once
from tracker.table import Groups, group_rows
from tracker.timeline.host_work import HostWork
from tracker.timeline.idle_gaps import Gaps
from tracker.timeline.intervals import Spans, join, union
from tracker.timeline.joined import Joined
from tracker.timeline.names import canonical_name
from tracker.timeline.nesting import NONE
from tracker.timeline.steps import ONLY_STEP
from tracker.timeline.tree import Tree

_GAPS_AT_ONCE: Final = 1 << 15
"""Gaps whose pieces are held at once: the time before a launch is cut into dozens of them."""
_FRAME: Final = re.compile(r"(?P<path>.*)\((?P<line>\d+)\): (?P<function>.+)", re.DOTALL)


class Pieces(Struct, frozen=True):
    """Parts of gaps, disjoint. `gap`: the row of the gap; `cause`: an IdleCause; `place`, `wait`: the codes of texts of
    the events that name the place, and the wait of the host that opened the gap, 0 for none; `behind_until_ns`: up to
    when the host would have been done, had it not waited.
    """

    start_ns: I64
    end_ns: I64
    gap: I64
    cause: I64
    place: I64
    wait: I64
    behind_until_ns: I64

    def taken(self, rows: NDArray[np.bool_]) -> Pieces:
        """Return some of the pieces."""
        return Pieces(*(getattr(self, name)[rows] for name in self.__struct_fields__))


class IdleTime(Struct, frozen=True):
    """The idle time of a capture. `loading`: when the device idles for want of data.

    `table`: `step`, `cause`, `place` ('': nobody names one), `ns`, `gaps` (how many have a part in the row),
    `behind_wait_ns` (what of it the host would have done while it waited for the device, in gaps that this wait opened;
    of a synchronisation: what so stands behind it); the last two are MISSING where gaps are not known. The rows of a
    step add up to its idle time, to the ns; of a step the largest comes first.
    """

    table: Table
    loading: Spans


def stated_idle_table(steps: Sequence[StepRow]) -> Table:
    """Return the idle time that the profiler states of each step as a table of `IdleTime`: without a word on why."""
    stated = [(row.step, row.breakdown.idle_ns) for row in steps if row.breakdown.idle_ns]
    return _table([(step, IdleCause.UNKNOWN.word, "", ns, MISSING, MISSING) for step, ns in stated])


def explain_idle(joined: Joined, gaps: Gaps, frames: Tree | None) -> IdleTime:
    """Return the idle time of each step by cause and place. frames: the tree of `events.frames`, None without any."""
    own_steps = find_windows(joined, gaps)
    sums: dict[tuple[int, str, str], list[int]] = {}
    behind_waits: Counter[tuple[int, str]] = Counter()
    loading = union(gaps.start_ns[:0], gaps.end_ns[:0])
    for pieces in list_pieces(joined, gaps, frames):
        loads = pieces.cause == IdleCause.DATA_LOADING
        loading = join(loading, union(pieces.start_ns[loads], pieces.end_ns[loads]))
        _add_pieces(sums, behind_waits, pieces, own_steps, joined.events.strings.texts)
    for (step, wait), ns in behind_waits.items():
        of_wait = sums.get((step, IdleCause.SYNCHRONISATION.word, wait))
        if of_wait is not None:
            of_wait[-1] = ns
    rows = [(*key, *numbers) for key, numbers in sums.items()]
    return IdleTime(_table(sorted(rows, key=lambda row: (row[0], -row[3], row[1], row[2]))), loading)


def list_pieces(joined: Joined, gaps: Gaps, frames: Tree | None) -> Iterator[Pieces]:
    """Yield the idle time of the capture by cause and place, some gaps at a time; all pieces of a gap come at once."""
    explains = _HostPieces.prepare(joined, gaps, frames)
    for low in range(0, len(gaps.start_ns), _GAPS_AT_ONCE):
        rows_of_gaps = np.arange(low, min(low + _GAPS_AT_ONCE, len(gaps.start_ns)))
        yield _find_pieces(joined, gaps, explains, rows_of_gaps)


def take_steps(pieces: Pieces, windows: tuple[I64, I64, I64]) -> tuple[Pieces, I64]:
    """Return the pieces that lie in steps, cut where one begins or ends, and the step of each. windows: as of
    `find_windows`.
    """
    step_starts_ns, step_ends_ns, number = windows
    pieces = _cut_at(pieces, each_once(np.concatenate((step_starts_ns, step_ends_ns))))
    window = np.searchsorted(step_starts_ns, pieces.start_ns, side="right") - 1
    is_inside = (window >= 0) & (pieces.start_ns < np.append(step_ends_ns, 0)[window])
    return pieces.taken(is_inside), number[window[is_inside]]


def name_idle_place(cause: IdleCause, text: str) -> str:
    """Return how rows name the place of idle time of this cause, of the text of an event; "" for none."""
    # names of kernels differ from build to build, so that two of them may be one place
    return canonical_name(text) if cause is IdleCause.DEPENDENCY else name_place(text)


def _add_pieces(
    sums: dict[tuple[int, str, str], list[int]],
    behind_waits: Counter[tuple[int, str]],
    pieces: Pieces,
    windows: tuple[I64, I64, I64],
    texts: Sequence[str],
) -> None:
    """Add the time, the gaps, and the time behind a wait of some pieces to `sums`, by step, cause and place, and the
    last of these to `behind_waits`, by step and wait; all pieces of a gap come at once.

    windows: as of `find_windows`.
    """
    pieces, step = take_steps(pieces, windows)
    groups = group_rows(step, pieces.cause, pieces.place)
    behind_ns = np.maximum(np.minimum(pieces.end_ns, pieces.behind_until_ns) - pieces.start_ns, 0)
    lasting_ns = groups.sums(pieces.end_ns - pieces.start_ns)
    numbers = (lasting_ns, _count_gaps(groups, pieces.gap), groups.sums(behind_ns))
    of_waits = group_rows(step, pieces.wait)
    for row, ns in zip(of_waits.first.tolist(), of_waits.sums(behind_ns).tolist(), strict=True):
        if ns:
            behind_waits[int(step[row]), texts[int(pieces.wait[row])]] += ns
    for row, *own in zip(groups.first.tolist(), *(values.tolist() for values in numbers), strict=True):
        cause, place = IdleCause(int(pieces.cause[row])), texts[int(pieces.place[row])]
        known = sums.setdefault((int(step[row]), cause.word, name_idle_place(cause, place)), [0, 0, 0])
        for place_in_row, value in enumerate(own):
            known[place_in_row] += value


@lru_cache(1 << 12)
def name_place(text: str) -> str:
    """Return how a place is named: of a Python frame its function, and the file and line where that begins.

    >>> name_place("/opt/torchvision/video_classification.py(129): preprocess"), name_place("aten::item")
    ('preprocess (video_classification.py:129)', 'aten::item')
    >>> name_place("model/layers/__init__.py(7): call")
    'call (layers/__init__.py:7)'
    """
    frame = _FRAME.fullmatch(text)
    if not frame:
        return text
    parts = re.split(r"[/\\]", frame["path"])
    # many packages have a file of this name
    file = "/".join(parts[-2:]) if parts[-1] == "__init__.py" else parts[-1]
    return f"{frame['function']} ({file}:{frame['line']})"


def _table(rows: Sequence[tuple[Any, ...]]) -> Table:
    step, cause, place, ns, gaps, behind_ns = zip(*rows, strict=True) if rows else ((), (), (), (), (), ())
    return {
        "step": np.array(step, dtype=np.int64),
        "cause": list(cause),
        "place": list(place),
        "ns": np.array(ns, dtype=np.int64),
        "gaps": np.array(gaps, dtype=np.int64),
        "behind_wait_ns": np.array(behind_ns, dtype=np.int64),
    }


def find_windows(joined: Joined, gaps: Gaps) -> tuple[I64, I64, I64]:
    """Return start, end and number of the windows of the steps in order of time, without empty ones. The one step of a
    capture without markers lasts from the first to the last work of the device.
    """
    windows = joined.windows
    if not len(joined.events.markers):
        return np.array([gaps.first_work_ns]), np.array([gaps.last_work_ns]), np.array([ONLY_STEP])
    is_step = (windows.end_ns > windows.start_ns) & np.isin(windows.step, joined.steps)
    return windows.start_ns[is_step], windows.end_ns[is_step], windows.step[is_step]


def _count_gaps(groups: Groups, gap: I64) -> I64:
    """Return of how many gaps each group has pieces."""
    pairs = group_rows(groups.number, gap)
    counts: I64 = np.bincount(groups.number[pairs.first], minlength=len(groups)).astype(np.int64)
    return counts


class _HostPieces(Struct, frozen=True):
    """What the host does while the device waits for it, and the moments at which that changes, in order."""

    host: HostWork
    moments_ns: I64

    @classmethod
    def prepare(cls, joined: Joined, gaps: Gaps, frames: Tree | None) -> _HostPieces | None:
        """None where the device never waits for a launch that is known."""
        waits = gaps.waits_for_host()
        if not len(waits):
            return None
        host = HostWork(joined, frames, waits, gaps.latency_ns)
        return cls(host, each_once(host.moments()))

    def explain(self, gaps: Gaps, pieces: Pieces) -> Pieces:
        """Return the pieces, one of each gap, cut at each moment, and each with its cause and place."""
        opened_ns = gaps.start_ns[pieces.gap]
        wait, since_ns = self.host.find_waits(gaps.thread[pieces.gap], gaps.launch_thread[pieces.gap], opened_ns)
        # without the wait the host would have been ahead by as long as it had waited by then
        until_ns = opened_ns + (opened_ns - since_ns)
        pieces = _cut_at(replace(pieces, wait=wait, behind_until_ns=until_ns), self.moments_ns)
        found = self.host.explain(gaps.thread[pieces.gap], gaps.launch_thread[pieces.gap], pieces.start_ns)
        is_wait = found.cause == IdleCause.SYNCHRONISATION
        behind_until_ns = np.where(is_wait, pieces.start_ns, pieces.behind_until_ns)
        return replace(pieces, cause=found.cause, place=found.place, behind_until_ns=behind_until_ns)


def _find_pieces(joined: Joined, gaps: Gaps, explains: _HostPieces | None, rows: I64) -> Pieces:
    """Return the idle time of some gaps by cause and place. explains: None where nothing waits for a known launch."""
    start_ns, launched_ns, end_ns = gaps.start_ns[rows], gaps.launched_ns[rows], gaps.end_ns[rows]
    none = np.zeros(len(rows), dtype=np.int64)
    at_work_ns = np.minimum(end_ns, launched_ns + gaps.latency_ns)
    short = np.where(launched_ns > start_ns, IdleCause.LAUNCH_LATENCY, IdleCause.BETWEEN_KERNELS)
    waits = np.full(len(rows), IdleCause.DEPENDENCY, dtype=np.int64)
    device = joined.events.device
    kernel = np.where(gaps.event[rows] == NONE, 0, device.name[gaps.event[rows]].astype(np.int64))
    found = _together(
        _find_host_pieces(gaps, explains, rows),
        Pieces(launched_ns, at_work_ns, rows, short.astype(np.int64), none, none, launched_ns),
        Pieces(at_work_ns, end_ns, rows, waits, kernel, none, at_work_ns),
    )
    return found.taken(found.end_ns > found.start_ns)


def _find_host_pieces(gaps: Gaps, explains: _HostPieces | None, rows: I64) -> Pieces:
    """Return the parts of some gaps before anything that was launched waits."""
    rows = rows[gaps.launched_ns[rows] > gaps.start_ns[rows]]
    unknown, none = np.full(len(rows), IdleCause.UNKNOWN, dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    start_ns = gaps.start_ns[rows]
    before_launch = Pieces(start_ns, gaps.launched_ns[rows], rows, unknown, none, none, start_ns)
    is_known = gaps.is_known[rows]
    if explains is None or not is_known.any():
        return before_launch
    return _together(before_launch.taken(~is_known), explains.explain(gaps, before_launch.taken(is_known)))


def _together(*parts: Pieces) -> Pieces:
    return Pieces(*(np.concatenate([getattr(part, name) for part in parts]) for name in Pieces.__struct_fields__))


def _cut_at(pieces: Pieces, moments_ns: I64) -> Pieces:
    """Return the pieces cut at each moment that lies inside of one. moments_ns: in order, each once."""
    first = np.searchsorted(moments_ns, pieces.start_ns, side="right")
    stop = np.searchsorted(moments_ns, pieces.end_ns, side="left")
    count = np.maximum(stop - first, 0)
    if not count.any():
        return pieces
    own = np.repeat(np.arange(len(count)), count + 1)
    # the first part of a piece begins with it, each other one at a moment
    begins = np.cumsum(count + 1) - (count + 1)
    inside = np.arange(len(own)) - begins[own]
    start_ns = np.append(moments_ns, 0)[np.where(inside > 0, first[own] + inside - 1, -1)]
    start_ns = np.where(inside > 0, start_ns, pieces.start_ns[own])
    end_ns = np.append(start_ns[1:], 0)
    is_last = inside == count[own]
    end_ns = np.where(is_last, pieces.end_ns[own], end_ns)
    others = (pieces.gap, pieces.cause, pieces.place, pieces.wait, pieces.behind_until_ns)
    return Pieces(start_ns, end_ns, *(column[own] for column in others))
