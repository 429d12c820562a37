"""What the threads that launch work do at a moment, and which of it keeps the device waiting."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I32, I64, IdleCause, LaunchLevel, each_once
from tracker.profile.runtime_names import allocates, collects_garbage, compiles, waits_for_device
from tracker.timeline.intervals import Spans
from tracker.timeline.joined import Joined
from tracker.timeline.loading import NO_CALLS, find_operators
from tracker.timeline.nesting import NONE
from tracker.timeline.tree import BLOCK_ROWS, Tree, grow

_WAITING_FRAME: Final = re.compile(
    r"^<built-in method (?:acquire of _?thread\.|poll of select\.|select of select|recv_bytes|sem_wait)"
    r"|threading\.py\(\d+\): (?:wait|join|_wait_for_tstate_lock)$|queue\.py\(\d+\): get$"
    r"|(?:connection|selectors)\.py\(\d+\): (?:wait|poll|select|_poll|recv|_recv)$"
)


class Explained(Struct, frozen=True):
    """Why the host has launched nothing, per moment: an IdleCause, and the code of the text that names the place."""

    cause: I64
    place: I64


class _CauseAt(Struct, frozen=True):
    """At which moments a cause applies, and the code of the text that then names its place."""

    cause: IdleCause
    applies: NDArray[np.bool_]
    place: I64


class _Layer(Struct, frozen=True):
    """Nested spans of the threads with the code of the name of each. `codes`: each name once."""

    tree: Tree
    name: I32
    texts: list[str]
    codes: list[int]

    @classmethod
    def of(cls, tree: Tree, name: I32, texts: list[str]) -> _Layer:
        """Return the layer of the spans of a tree."""
        return cls(tree, name, texts, each_once(name[tree.order]).tolist())

    def at(self, thread: I64, time_ns: I64) -> I64:
        """Return the innermost span of each thread at each moment, -1 for none."""
        if not len(self.tree.order):
            return np.full(len(time_ns), NONE, dtype=np.int64)
        return self.tree.innermost(thread, time_ns)

    def nearest(self, row: I64, test: Callable[[str], bool]) -> I64:
        """Return for each span itself or the nearest around it of which the name passes the test, -1 for none."""
        passes = _passing(self.codes, self.texts, test)
        if not passes.any():
            return np.full(len(row), NONE, dtype=np.int64)
        return self.outwards(row, passes[self.name])

    def outwards(self, row: I64, passes: NDArray[np.bool_]) -> I64:
        """Return for each span itself or the nearest around it that passes, -1 for none."""
        found = row.copy()
        climbing = np.flatnonzero(found >= 0)
        while len(climbing):
            climbing = climbing[~passes[found[climbing]]]
            found[climbing] = self.tree.parent[found[climbing]]
            climbing = climbing[found[climbing] >= 0]
        return found

    def names(self, row: I64) -> I64:
        """Return the code of the name of each span, 0 (no text) for -1."""
        return _at(self.name, row, missing=0)


class _Waits(Struct, frozen=True):
    """Calls of one thread that wait for the device, in order of their start.

    `until_ns`: when each has had its effect: when the operator around it ends, or a launch latency after it returned,
    whichever is later; but when the thread begins anything else, whatever comes first.
    """

    call: I64
    start_ns: I64
    until_ns: I64


class HostWork:
    """The operators, ranges, runtime calls and Python frames of the threads that launch work, and the data loaders."""

    def __init__(self, joined: Joined, frames: Tree | None, asked: Spans, latency_ns: int) -> None:
        """frames: the tree of the Python frames of `joined.events`, None without any. asked: when to look. latency_ns:
        how long the device may take to start what was launched.
        """
        events = joined.events
        texts = events.strings.texts
        self._threads = joined.launching_threads
        self._asked = asked
        self._latency_ns = latency_ns
        launches = self._launches = events.launches
        self._is_call = ~np.isin(launches.level, NO_CALLS) & np.isin(launches.thread, self._threads)
        self._is_profiler = launches.level == LaunchLevel.PROFILER
        self._is_wait = _passing(each_once(launches.name).tolist(), texts, waits_for_device)[launches.name]
        self._waits: dict[int, _Waits] = {}
        # a device that is busy most of the time asks for few of the calls
        rows = np.flatnonzero(self._is_call & _meets(launches.start_ns, launches.end_ns, asked))
        self._calls = _Layer.of(grow(launches.thread, launches.start_ns, launches.end_ns, rows), launches.name, texts)
        self._ops = _Layer.of(joined.tree, events.ops.name, texts)
        self._is_operator = events.ops.is_annotation == 0
        # a range of a user that a profiler took for an operator ends no wait
        self._is_caller = find_operators(events)
        is_helper = _passing(each_once(events.ops.name).tolist(), texts, _is_helper)
        self._is_of_user = self._is_caller & ~is_helper[events.ops.name]
        self._frames = None if frames is None else _Layer.of(frames, events.frames.name, texts)
        self._loads = joined.loads
        # of other threads all together: which of them loads does not matter
        is_other = joined.loads & ~np.isin(events.ops.thread, self._threads)
        one_thread = np.zeros(len(events.ops), dtype=np.int32)
        loaders = grow(one_thread, events.ops.start_ns, events.ops.end_ns, np.flatnonzero(is_other))
        self._loaders_beside = _Layer.of(loaders, events.ops.name, texts)

    def moments(self) -> I64:
        """Return when anything begins or ends in the spans asked for that may be a cause, in no order."""
        found = [self._asked_of(self._waits_of(lane).until_ns) for lane in self._threads.tolist()]
        for layer in (self._ops, self._calls, self._loaders_beside, self._frames):
            if layer is None:
                continue
            tree = layer.tree
            for low in range(0, len(tree.order), BLOCK_ROWS):
                rows = tree.order[low : low + BLOCK_ROWS]
                if layer is not self._loaders_beside:
                    rows = rows[np.isin(tree.thread[rows], self._threads)]
                found += [self._asked_of(tree.start_ns[rows]), self._asked_of(tree.end_ns[rows])]
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)

    def _asked_of(self, moments_ns: I64) -> I64:
        """Return those of the moments that lie in the spans asked for."""
        return moments_ns[_meets(moments_ns, moments_ns, self._asked)]

    def explain(self, thread: I64, launch_thread: I64, time_ns: I64) -> Explained:
        """Return what each thread does at each moment, the first cause that applies. What stands between two of
        `moments` has one cause. launch_thread: that of the calls, where operators are of another one.
        """
        cause, place = np.zeros(len(time_ns), dtype=np.int64), np.zeros(len(time_ns), dtype=np.int64)
        is_open = np.ones(len(time_ns), dtype=bool)
        for one in self._find_causes(thread, launch_thread, time_ns):
            rows = np.flatnonzero(is_open & one.applies)
            cause[rows], place[rows] = one.cause, one.place[rows]
            is_open[rows] = False
        return Explained(cause, place)

    def find_waits(self, thread: I64, launch_thread: I64, time_ns: I64) -> tuple[I64, I64]:
        """Return in what the host waits for the device at each moment, the code of its name (0: it does not), and since
        when.
        """
        call = self._find_waiting(self._find_acting(thread, launch_thread, time_ns), time_ns)
        since_ns = np.where(call >= 0, _at(self._launches.start_ns, call), time_ns)
        return self._place_of_call(call), since_ns

    def _find_causes(self, thread: I64, launch_thread: I64, time_ns: I64) -> Iterator[_CauseAt]:
        """Yield the causes in the order in which they count; the last one always applies.

        What frames say comes behind what operators and calls say: without stacks of more time it is known only that no
        operator runs, and of a loader of another thread that nobody is known to work meanwhile.
        """
        calls, ops = self._calls, self._ops
        acting = self._find_acting(thread, launch_thread, time_ns)
        around, call = ops.at(acting, time_ns), calls.at(acting, time_ns)
        loader = ops.outwards(around, self._loads)
        yield _CauseAt(IdleCause.DATA_LOADING, loader >= 0, ops.names(loader))
        for cause, test in ((IdleCause.GARBAGE_COLLECTION, collects_garbage), (IdleCause.COMPILE, compiles)):
            for layer, row in ((ops, around), (calls, call)):
                named = layer.nearest(row, test)
                yield _CauseAt(cause, named >= 0, layer.names(named))
        allocating, waiting = calls.nearest(call, allocates), self._find_waiting(acting, time_ns)
        yield _CauseAt(IdleCause.ALLOCATION, allocating >= 0, calls.names(allocating))
        profiling = calls.outwards(call, self._is_profiler)
        yield _CauseAt(IdleCause.PROFILER, profiling >= 0, calls.names(profiling))
        yield _CauseAt(IdleCause.SYNCHRONISATION, waiting >= 0, self._place_of_call(waiting))
        operator = self._operator_of(around)
        yield _CauseAt(IdleCause.OPERATOR, operator >= 0, ops.names(operator))
        yield _CauseAt(IdleCause.OPERATOR, call >= 0, calls.names(call))
        if self._frames is None:
            yield self._find_loader_beside(time_ns)
        else:
            yield from self._find_causes_in_frames(self._frames, acting, time_ns, around)
        # without stacks the innermost range of the user says most
        yield _CauseAt(IdleCause.NO_OPERATOR, np.ones(len(time_ns), dtype=bool), ops.names(around))

    def _find_causes_in_frames(self, frames: _Layer, thread: I64, time_ns: I64, around: I64) -> Iterator[_CauseAt]:
        """Yield the causes where no operator and no call runs. around: the innermost range at each moment, -1: none."""
        frame = self._on_any_thread(frames, thread, time_ns)
        for cause, test in ((IdleCause.GARBAGE_COLLECTION, collects_garbage), (IdleCause.COMPILE, compiles)):
            named = frames.nearest(frame, test)
            yield _CauseAt(cause, named >= 0, frames.names(named))
        beside = self._find_loader_beside(time_ns)
        # a thread in a frame works, whatever another one loads, unless the frame waits for a lock, as a queue has one
        waits = np.where(frame >= 0, frames.nearest(frame, _waits_for_another) == frame, True)
        yield _CauseAt(beside.cause, beside.applies & waits, beside.place)
        line = frames.nearest(frame, _is_line_of_python)
        begins_ns = _at(frames.tree.start_ns, line)
        # a range that the innermost line has opened says more than the line
        is_innermost = (line >= 0) & (_at(self._ops.tree.start_ns, around) <= begins_ns)
        yield _CauseAt(IdleCause.NO_OPERATOR, is_innermost, frames.names(line))

    def _find_loader_beside(self, time_ns: I64) -> _CauseAt:
        """Return at which moments a thread that launches nothing loads data."""
        loaders = self._loaders_beside
        loader = loaders.at(np.zeros(len(time_ns), dtype=np.int64), time_ns)
        return _CauseAt(IdleCause.DATA_LOADING, loader >= 0, loaders.names(loader))

    def _operator_of(self, row: I64) -> I64:
        """Return for each range or operator the innermost operator that it is or lies in, -1 for none."""
        return self._ops.outwards(row, self._is_operator)

    def _find_caller(self, thread: I64, time_ns: I64) -> I64:
        """Return the operator that calls the runtime on each thread at each moment, as a user would name it, else the
        innermost one; -1 for none.
        """
        row = self._ops.at(thread, time_ns)
        of_user = self._ops.outwards(row, self._is_of_user)
        return np.where(of_user >= 0, of_user, self._ops.outwards(row, self._is_caller))

    def _find_acting(self, thread: I64, launch_thread: I64, time_ns: I64) -> I64:
        """Return the thread whose work keeps the device waiting at each moment.

        That is the one that launches next, while it is in an operator, a range or a call. Where it is in none, another
        one that launches may be: autograd launches on a thread of its own, and waits for what its caller does before
        and after. One that launches what others queue is late by its own calls, wherever the others are by then.
        """
        acting = np.where(self._calls.at(launch_thread, time_ns) >= 0, launch_thread, thread)
        if len(self._threads):
            # a thread that only copies ahead keeps nobody waiting by what it does
            acting[~np.isin(acting, self._threads)] = self._threads[0]
        is_idle = ~self._acts(acting, time_ns)
        for other in self._threads.tolist():
            rows = np.flatnonzero(is_idle)
            if not len(rows):
                break
            acts = rows[self._acts(np.full(len(rows), other, dtype=np.int64), time_ns[rows])]
            acting[acts], is_idle[acts] = other, False
        return acting

    def _acts(self, thread: I64, time_ns: I64) -> NDArray[np.bool_]:
        """Return whether each thread is in an operator, a range or a call at each moment, or has just waited."""
        is_in_any = (self._ops.at(thread, time_ns) >= 0) | (self._calls.at(thread, time_ns) >= 0)
        return np.asarray(is_in_any | (self._find_waiting(thread, time_ns) >= 0))

    def _on_any_thread(self, layer: _Layer, thread: I64, time_ns: I64) -> I64:
        """Return the innermost span of each thread at each moment; where it has none, that of another thread."""
        found = layer.at(thread, time_ns)
        for other in self._threads.tolist():
            lacks = np.flatnonzero(found == NONE)
            if not len(lacks):
                break
            found[lacks] = layer.at(np.full(len(lacks), other, dtype=np.int64), time_ns[lacks])
        return found

    def _find_waiting(self, thread: I64, time_ns: I64) -> I64:
        """Return the call that each thread waits in, or has just waited in; -1 for none."""
        found = np.full(len(time_ns), NONE, dtype=np.int64)
        for lane in self._threads.tolist():
            asks = np.flatnonzero(thread == lane)
            if not len(asks):
                continue
            waits = self._waits_of(lane)
            last = np.searchsorted(waits.start_ns, time_ns[asks], side="right") - 1
            is_waiting = last >= 0
            is_waiting[is_waiting] = time_ns[asks[is_waiting]] < waits.until_ns[last[is_waiting]]
            found[asks[is_waiting]] = waits.call[last[is_waiting]]
        return found

    def _waits_of(self, lane: int) -> _Waits:
        """Return the calls of a thread that wait for the device."""
        if lane not in self._waits:
            launches, ops = self._launches, self._ops.tree
            of_lane = self._is_call & (launches.thread == lane)
            own = np.flatnonzero(of_lane & self._is_wait)
            own = own[np.argsort(launches.start_ns[own], kind="stable")]
            # a wait that another one makes is a part of that one
            reach_ns = np.maximum.accumulate(launches.end_ns[own])
            is_outer = np.ones(len(own), dtype=bool)
            is_outer[1:] = launches.end_ns[own][1:] > reach_ns[:-1]
            own = own[is_outer]
            start_ns, end_ns = launches.start_ns[own], launches.end_ns[own]
            operator = self._find_caller(np.full(len(own), lane, dtype=np.int64), start_ns)
            behind_ns = np.maximum(end_ns + self._latency_ns, _at(ops.end_ns, operator))
            calls = of_lane & ~self._is_wait & ~self._is_profiler
            begins = np.sort(np.concatenate((ops.start_ns[ops.thread == lane], launches.start_ns[calls])))
            following = np.searchsorted(begins, end_ns, side="left")
            until_ns = np.minimum(np.append(begins, np.iinfo(np.int64).max)[following], behind_ns)
            self._waits[lane] = _Waits(own, start_ns, until_ns)
        return self._waits[lane]

    def _place_of_call(self, call: I64) -> I64:
        """Return the name of the operator that makes each call, else that of the call; 0 for -1."""
        made = np.flatnonzero(call >= 0)
        place = self._calls.names(call)
        thread, start_ns = self._launches.thread[call[made]], self._launches.start_ns[call[made]]
        operator = self._find_caller(thread.astype(np.int64), start_ns)
        place[made] = np.where(operator >= 0, self._ops.names(operator), place[made])
        return place


def _passing(codes: Sequence[int], texts: list[str], test: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Return for each text whether it passes the test; of texts that are none of the codes False."""
    passes = np.zeros(len(texts), dtype=bool)
    for code in codes:
        passes[code] = test(texts[code])
    return passes


def _meets(start_ns: I64, end_ns: I64, spans: Spans) -> NDArray[np.bool_]:
    """Return which spans from start to end share a moment with one of `spans`, their ends with them."""
    if not len(spans):
        return np.zeros(len(start_ns), dtype=bool)
    first = np.minimum(np.searchsorted(spans.end_ns, start_ns, side="left"), len(spans) - 1)
    found: NDArray[np.bool_] = (spans.start_ns[first] <= end_ns) & (start_ns <= spans.end_ns[first])
    return found


def _is_helper(name: str) -> bool:
    """Return whether an operator is one that others call, and no user: aten::_local_scalar_dense of aten::item."""
    return "::_" in name


def _waits_for_another(name: str) -> bool:
    """Return whether a frame waits for another thread or process."""
    return _WAITING_FRAME.search(name) is not None


def _is_line_of_python(name: str) -> bool:
    """Return whether a frame is a line of Python code: names of built-in functions hold addresses of a run."""
    return not name.startswith("<")


def _at(values: NDArray[np.integer], row: I64, *, missing: int = NONE) -> I64:
    """Return the value of each row, `missing` for row -1."""
    found = np.full(len(row), missing, dtype=np.int64)
    known = np.flatnonzero(row >= 0)
    found[known] = values[row[known]]
    return found
