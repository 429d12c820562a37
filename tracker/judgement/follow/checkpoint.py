"""How far a line was followed, as bytes: with it, one more run costs one step, and the findings are the same.

A checkpoint stands for the first runs of a line and holds under a key: whatever could have made these runs say
something else makes another key, and then the line is followed from its first run.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.judgement.follow.following import Follower, versions_of
from tracker.judgement.follow.tracked import Tracked, UserAction
from tracker.judgement.follow.version_verdicts import VersionVerdicts
from tracker.judgement.follow.watched import Watched

I64 = NDArray[np.int64]

FORM: Final = 5
"""Goes up when what a checkpoint holds, or how, changes."""


class Checkpoint(Struct, frozen=True):
    """The state after the first `runs` runs. `key`: what it holds for; `state`: bytes."""

    runs: int
    key: bytes
    state: bytes


class _State(msgspec.Struct, frozen=True):
    """A Follower. `series`: number of the series of each row; arrays are their bytes, row by row; `open`, `further`:
    places in `found`.
    """

    series: bytes
    columns: bytes
    variance: bytes
    freedom: bytes
    normal: bytes
    creeps_from: bytes
    comes_from: bytes
    levels: dict[int, list[tuple[int, ...]]]
    snapshots: dict[int, bytes]
    found: list[Tracked]
    open: list[int]
    further: list[int]


def resume(
    watched: Watched,
    series: I64,
    actions: Iterable[UserAction],
    fingerprint: Callable[[int, tuple[Any, ...]], bytes],
    *,
    known: Checkpoint | None,
    now_ns: int | None = None,
) -> tuple[list[Tracked], Checkpoint | None, list[VersionVerdicts]]:
    """What `follow` finds, from `known` on where that holds, the checkpoint for the next time, and the verdicts of the
    versions that were looked at: the newest ones, in order.

    `series`: number of the series of each row of `watched`. `fingerprint`: bytes that stand for what the first so many
    runs say, for the limits, and for what else is given. The checkpoint stands before the newest version: more runs of
    that one may come.
    """
    follower = Follower(watched, actions)
    versions = versions_of(watched.runs)
    newest = versions[-1].start if versions else 0
    first = 0
    if known is not None and known.runs <= newest and known.key == _key(follower, series, known.runs, fingerprint):
        state = _decoded(known.state)
        if state is not None:
            _restore(follower, series, state, known.runs)
            first = known.runs
    for runs in versions[:-1]:
        if runs.start >= first:
            follower.observe(runs)
    kept = None
    if newest > 0:
        kept = Checkpoint(newest, _key(follower, series, newest, fingerprint), _encoded(follower, series, newest))
    if versions:
        follower.observe(versions[-1])
    return follower.result(now_ns), kept, follower.verdicts


def _key(follower: Follower, series: I64, runs: int, fingerprint: Callable[[int, tuple[Any, ...]], bytes]) -> bytes:
    """What stands for all that the state after the first `runs` runs rests on."""
    watched = follower.watched
    actions = [
        (place, int(series[action.key[0]]), action)
        for place, own in sorted(follower.actions.items())
        if place < runs
        for action in own
    ]
    done = [(place, number, action.key[1:], action.first_run, action.acted) for place, number, action in actions]
    seen = [(run.version, run.started_at_ns) for run in watched.runs[:runs]]
    # what the whole line decides for each of its runs
    whole = (watched.leaves, bool(np.isnan(watched.step).all()))
    return fingerprint(runs, (FORM, whole, seen, watched.runs[runs].version, done))


def _encoded(follower: Follower, series: I64, runs: int) -> bytes:
    places = {id(tracked): place for place, tracked in enumerate(follower.found)}
    state = _State(
        series.astype(np.int64).tobytes(),
        follower.baselines.windows.columns.astype(np.int32).tobytes(),
        follower.baselines.windows.variance.tobytes(),
        follower.baselines.windows.freedom.tobytes(),
        np.packbits(follower.baselines.normal[:, :runs]).tobytes(),
        follower.baselines.creeps_from.astype(np.int32).tobytes(),
        follower.baselines.comes_from.astype(np.int32).tobytes(),
        follower.baselines.levels,
        {run: columns.astype(np.int32).tobytes() for run, columns in follower.snapshots.items()},
        follower.found,
        [places[id(tracked)] for tracked in follower.open.values()],
        [places[id(tracked)] for tracked in follower.further],
    )
    return zlib.compress(msgspec.msgpack.encode(state), 1)


def _decoded(state: bytes) -> _State | None:
    """What was encoded; None where the bytes are damaged: what they say can be found out again."""
    try:
        return msgspec.msgpack.decode(zlib.decompress(state), type=_State)
    except (zlib.error, msgspec.MsgspecError):
        return None


def _restore(follower: Follower, series: I64, state: _State, runs: int) -> None:
    """Puts `follower`, which has seen nothing yet, where the checkpoint of the first `runs` runs stands.

    Its series may be fewer, or other ones besides: those have no value in the runs that it stands for.
    """
    before = np.frombuffer(state.series, dtype=np.int64)
    row_of = {number: row for row, number in enumerate(series.tolist())}
    rows: I64 = np.array([row_of.get(number, -1) for number in before.tolist()], dtype=np.int64)
    here = rows >= 0
    to = rows[here]
    width = follower.baselines.windows.columns.shape[1]

    def windows(raw: bytes) -> I64:
        found = np.full(follower.baselines.windows.columns.shape, -1, dtype=np.int64)
        found[to] = np.frombuffer(raw, dtype=np.int32).reshape(-1, width)[here]
        return found

    follower.baselines.windows.columns = windows(state.columns)
    follower.baselines.windows.variance[to] = np.frombuffer(state.variance)[here]
    follower.baselines.windows.freedom[to] = np.frombuffer(state.freedom)[here]
    normal = np.unpackbits(np.frombuffer(state.normal, dtype=np.uint8), count=len(before) * runs)
    follower.baselines.normal[to, :runs] = normal.reshape(len(before), runs)[here]
    follower.baselines.creeps_from[to] = np.frombuffer(state.creeps_from, dtype=np.int32)[here]
    follower.baselines.comes_from[to] = np.frombuffer(state.comes_from, dtype=np.int32)[here]
    follower.baselines.levels = {int(rows[row]): own for row, own in state.levels.items() if rows[row] >= 0}
    follower.snapshots = {run: windows(raw) for run, raw in state.snapshots.items()}
    follower.found = state.found
    for tracked in state.found:
        tracked.row = int(rows[tracked.row])
    follower.further = [state.found[place] for place in state.further]
    follower.open = {state.found[place].key: state.found[place] for place in state.open}
