"""Where the following of a line stands, as bytes, and back: columns become places in the line, rows their series."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final, get_args

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.judgement.follow.acting import UncertainError
from tracker.judgement.follow.following import Follower
from tracker.judgement.follow.needed import first_read, live, older_of
from tracker.judgement.follow.older import Older
from tracker.judgement.follow.tracked import Tracked
from tracker.judgement.follow.tracks import Change
from tracker.judgement.follow.watched import NEVER, WatchedRun

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
BOOL = NDArray[np.bool_]
BYTES = NDArray[np.uint8]


class State(Struct, frozen=True):
    """A Follower before a version. `older`: what is kept of the runs before; `series`: number of the series of each
    row; `beside`: bytes that who reads the runs asks back; `rests_on`: what the whole line decides for each of its
    runs, and what users did. All columns are places in the line. `normal`: of the runs that are read whole, a bit each;
    `normal_cells`: of the cells of `older`. `found`: the findings that live; `open`, `further`: places in it; `ended`:
    how many others there were of (row, sign, change).
    """

    older: Older
    series: I64
    beside: bytes
    rests_on: bytes
    columns: I32
    variance: F64
    freedom: F64
    normal: BYTES
    normal_cells: BOOL
    creeps_from: I32
    comes_from: I32
    levels: list[tuple[int, list[tuple[int, ...]]]]
    snapshots: list[tuple[int, I32]]
    found: list[Tracked]
    open: list[int]
    further: list[int]
    ended: list[tuple[int, int, Change, int]]


def state_of(follower: Follower, series: I64, runs: int, *, beside: bytes, rests_on: bytes) -> State:
    """The state before the place `runs`, with which a version begins. `series`: number of the series of each row."""
    watched, baselines = follower.watched, follower.baselines
    end = int(np.searchsorted(watched.places, runs))
    first = first_read(follower, end)
    rows = np.flatnonzero(watched.came < runs)
    place_of_row = np.full(len(series), -1, dtype=np.int64)
    place_of_row[rows] = np.arange(len(rows))
    older, normal_cells = older_of(follower, end, first, rows)

    def places(columns: I64) -> I32:
        return np.where(columns < 0, -1, watched.places[columns])[rows].astype(np.int32)

    found = live(follower)
    order = {id(tracked): place for place, tracked in enumerate(found)}
    ended = dict(follower.ended or {})
    for tracked in follower.found:
        if id(tracked) not in order:
            ended[tracked.key] = max(ended.get(tracked.key, 0), tracked.finding.number)
    return State(
        older,
        series[rows],
        beside,
        rests_on,
        places(baselines.windows.columns),
        baselines.windows.variance[rows],
        baselines.windows.freedom[rows],
        np.packbits(baselines.normal[rows, first:end]),
        normal_cells,
        baselines.creeps_from[rows].astype(np.int32),
        baselines.comes_from[rows].astype(np.int32),
        sorted(
            (int(place_of_row[row]), [tuple(map(watched.place, level)) for level in levels])
            for row, levels in baselines.levels.items()
        ),
        [(watched.place(run), places(columns)) for run, columns in sorted(follower.snapshots.items())],
        [moved(tracked, watched.place, int(place_of_row[tracked.row])) for tracked in found],
        [order[id(tracked)] for tracked in follower.open.values()],
        [order[id(tracked)] for tracked in follower.further],
        sorted((int(place_of_row[row]), sign, change, count) for (row, sign, change), count in ended.items()),
    )


def restore(follower: Follower, series: I64, state: State) -> None:
    """Puts `follower`, which has seen nothing yet, where the state stands. Its series may be more: those have no value
    in the runs before. UncertainError where one of the state is not there, or a window has a run without a value.
    """
    watched, baselines = follower.watched, follower.baselines
    rows = rows_of(state.series, series)
    count = len(state.older.places)

    def column(place: int) -> int:
        return int(np.searchsorted(watched.places, place))

    def windows(places: I32) -> I64:
        found = np.full(baselines.windows.columns.shape, -1, dtype=np.int64)
        found[rows] = np.where(places < 0, -1, np.searchsorted(watched.places, places))
        return found

    baselines.windows.columns = windows(state.columns)
    row, at = np.nonzero(baselines.windows.columns >= 0)
    if np.isnan(watched.raw[row, baselines.windows.columns[row, at]]).any():
        raise UncertainError
    baselines.windows.variance[rows] = state.variance
    baselines.windows.freedom[rows] = state.freedom
    end = state.older.followed
    normal = np.unpackbits(state.normal, count=len(rows) * (end - count)).reshape(len(rows), end - count)
    baselines.normal[rows, count:end] = normal
    baselines.normal[rows[state.older.rows], state.older.columns] = state.normal_cells
    baselines.creeps_from[rows], baselines.comes_from[rows] = state.creeps_from, state.comes_from
    baselines.levels = {int(rows[own]): [tuple(map(column, level)) for level in levels] for own, levels in state.levels}
    follower.snapshots = {column(place): windows(columns) for place, columns in state.snapshots}
    follower.found = [moved(tracked, column, int(rows[tracked.row])) for tracked in state.found]
    follower.further = [follower.found[place] for place in state.further]
    follower.open = {follower.found[place].key: follower.found[place] for place in state.open}
    follower.ended = {(int(rows[own]), sign, change): number for own, sign, change, number in state.ended}


def rows_of(before: I64, series: I64) -> I64:
    """The row of each of the series `before` among `series`; UncertainError where one is not there."""
    order = np.argsort(series)
    found = np.minimum(np.searchsorted(series, before, sorter=order), len(series) - 1)
    rows = order[found] if len(series) else found
    if len(before) and not (len(series) and np.array_equal(series[rows], before)):
        raise UncertainError
    return np.asarray(rows, dtype=np.int64)


def older_in(state: State, series: I64, runs: Sequence[WatchedRun]) -> Older:
    """What the state keeps of the older runs of a line, whose rows now are `series` and whose runs `runs`."""
    older = state.older.of_rows(rows_of(state.series, series), len(series), NEVER)
    return replace(older, runs=[runs[place] for place in older.places.tolist()])


def moved(tracked: Tracked, to: Callable[[int], int], row: int) -> Tracked:
    """A copy whose runs are counted otherwise, and its row."""

    def known(place: int | None) -> int | None:
        return None if place is None else to(place)

    return replace(
        tracked,
        row=row,
        first=to(tracked.first),
        baseline=tuple(map(to, tracked.baseline)),
        candidate=tuple(map(to, tracked.candidate)),
        step_baseline=tuple(map(to, tracked.step_baseline)),
        transitions=list(tracked.transitions),
        suspected=known(tracked.suspected),
        last=known(tracked.last),
        turned=known(tracked.turned),
        dated=known(tracked.dated),
        stepped=known(tracked.stepped),
    )


def encoded(state: State) -> bytes:
    """The bytes of a state."""
    return zlib.compress(_ENCODER.encode(state), 1)


def decoded(state: bytes) -> State | None:
    """What was encoded; None where the bytes are damaged: what they say can be found out again."""
    try:
        return _DECODER.decode(zlib.decompress(state))
    except (zlib.error, msgspec.MsgspecError, ValueError):
        return None


def _plain(value: Any) -> Any:
    """An array as its shape and its bytes."""
    if isinstance(value, np.ndarray):
        return value.shape, np.ascontiguousarray(value).tobytes()
    raise NotImplementedError(type(value))


def _array(of: Any, value: Any) -> Any:
    (dtype,) = get_args(get_args(of)[1])
    shape, numbers = value
    return np.frombuffer(numbers, dtype=dtype).reshape(shape)


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_plain)
_DECODER: Final = msgspec.msgpack.Decoder(State, dec_hook=_array)
