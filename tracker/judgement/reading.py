"""Reads the runs of a line to be followed: all of them, or those that a checkpoint does not stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, get_args

import msgspec
import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray
from sqlalchemy import Connection

from tracker.detectors import life
from tracker.detectors.life import Acted
from tracker.judgement.basis import Basis
from tracker.judgement.follow import ReadLine, State, UserAction, Watched, WatchedRun, older_in, watched_of
from tracker.judgement.follow.tracks import Change
from tracker.judgement.judging import Values
from tracker.judgement.recorded import Key, Split, recordings_of, series_id, split, tag_of_number
from tracker.results.recording import Recording
from tracker.store import judged
from tracker.store.findings import Action
from tracker.store.judged import Line, LineRun, SeriesTable
from tracker.store.queries.recordings import Recorded
from tracker.store.samples.arrays import SampleArray

I64 = NDArray[np.int64]

DIRECTIONS: Final[Mapping[int, str]] = {1: "regression", -1: "improvement"}
_SIGNS: Final = {word: sign for sign, word in DIRECTIONS.items()}
_ACTIONS: Final[Mapping[str, life.Action]] = {word: word for word in get_args(life.Action)}
_CHANGES: Final[Mapping[str, Change]] = {word: word for word in get_args(Change)}
_NEVER: Final = 2**31 - 1
"""The place of a version that has no run yet."""


class StoredRuns(Struct, frozen=True, eq=False):
    """What was read of the runs of a line: `watched`, and the rows of it; `ids`: the series of the keys of those.
    `runs`: one for each column of `watched`, of which `made` has the last ones. `recordings`: of all runs of the line.
    """

    watched: Watched
    made: Split
    ids: I64
    runs: Sequence[LineRun]
    recordings: Sequence[Recording]

    @property
    def numbers(self) -> I64:
        """The number of each row, see `Split.numbers`."""
        return self.made.numbers(self.ids)


class Read(Struct, eq=False):
    """What was read of a line so far: its `series`, and the samples of runs that a checkpoint does not stand for, by
    number.
    """

    series: SeriesTable | None = None
    arrays: dict[int, SampleArray] = field(default_factory=dict)

    def series_of(self, connection: Connection, line: Line) -> SeriesTable:
        """The series of the line, read once; for those that come meanwhile see `judged.values_of`."""
        if self.series is None:
            self.series = judged.series_of(connection, line)
        return self.series


class StoredLine:
    """A line in the database; see `follow.LineToRead`. `at_hand`: what was read of it."""

    def __init__(self, connection: Connection, line: Line, basis: Basis) -> None:
        self._connection, self._line, self._basis, self._runs = connection, line, basis, basis.runs
        self.at_hand = Read()
        self.runs = watched_runs(basis.runs)
        self.stored: StoredRuns | None = None

    def read(self, known: State | None) -> ReadLine:
        """All runs; with a state those from its first one on. `stored`: what was read last."""
        stored = self.stored = self.whole() if known is None else self.since(known)
        numbers = stored.numbers
        return ReadLine(stored.watched, numbers, self._actions(stored, numbers), self._beside)

    def whole(self, *, recordings: bool = True) -> StoredRuns:
        """All runs. `recordings`: runs recorded differently have rows of their own; else a row is a series."""
        series = self.at_hand.series_of(self._connection, self._line)
        values, calls = judged.values_of(self._connection, [run.run_id for run in self._runs], series)
        there = np.asarray(~np.isnan(values).all(axis=1))
        values, calls = values[there], calls[there]
        keys = _those(series.keys, there)
        found = recordings_of(keys, values, self._recorded_of(self._runs)) if recordings else ()
        made = split(keys, values, calls, found)
        watched = watched_of(Values.of_split(made), self.runs, self._basis.limits)
        return StoredRuns(watched, made, series.ids[there], self._runs, found)

    def since(self, known: State) -> StoredRuns:
        """The runs from the first one on that a state does not stand for, behind what it keeps of the others."""
        first, series = known.older.first, self.at_hand.series_of(self._connection, self._line)
        before = known.older.followed - len(known.older.places)
        runs = self._runs[first:]
        values, calls = judged.values_of(self._connection, [run.run_id for run in runs], series, self.at_hand.arrays)
        own = series_id(known.series)
        there = np.isin(series.ids, own) | ~np.isnan(values[:, before:]).all(axis=1)
        values, calls, ids, keys = values[there], calls[there], series.ids[there], _those(series.keys, there)
        found = [*_unpacked(known.beside), *recordings_of(keys, values[:, before:], self._recorded_of(runs[before:]))]
        tags: list[set[int]] = [set() for _ in keys]
        place = {number: at for at, number in enumerate(ids.tolist())}
        for number, tag in zip(own.tolist(), tag_of_number(known.series).tolist(), strict=True):
            if number in place:
                tags[place[number]].add(tag)
        made = split(keys, values, calls, found, tags)
        older = older_in(known, made.numbers(ids), self.runs)
        watched = watched_of(Values.of_split(made), self.runs[first:], self._basis.limits, older)
        named = [self._runs[at] for at in older.places.tolist()]
        return StoredRuns(watched, made, ids, [*named, *runs], found)

    def _recorded_of(self, runs: Sequence[LineRun]) -> list[Recorded]:
        return [self._basis.recordings[run.run_id] for run in runs]

    def _beside(self, runs: int) -> bytes:
        """How the first `runs` runs were recorded: what their series show is not read again."""
        return b"" if self.stored is None else _packed(self.stored.recordings[:runs])

    def _actions(self, stored: StoredRuns, numbers: I64) -> list[UserAction]:
        """What users did to findings of series that are there."""
        rows_of: dict[int, list[int]] = {}
        for row, number in enumerate(series_id(numbers).tolist()):
            rows_of.setdefault(number, []).append(row)
        place = {run.run_id: at for at, run in enumerate(self._runs)}
        labels = {run.version: at for run, at in zip(self._runs, (one.version for one in self.runs), strict=True)}

        def row_of(action: Action) -> int:
            """The row of the recording of the run with which the finding began."""
            own, first = rows_of[action.key[0]], place.get(action.key[3])
            tag = 0 if first is None else stored.made.tag_of(stored.made.keys[own[0]], first)
            return next((row for row in own if int(stored.made.tags[row]) == tag), own[0])

        return [_user_action(one, row_of(one), labels) for one in self._basis.actions if one.key[0] in rows_of]


def watched_runs(runs: Sequence[LineRun]) -> list[WatchedRun]:
    """The runs of a line, as they are followed."""
    versions = {number: at for at, number in enumerate(dict.fromkeys(run.version_id for run in runs))}
    return [
        WatchedRun(run.run_id, versions[run.version_id], run.started_at_ns, run.timeline == "device", run.version)
        for run in runs
    ]


def _those(keys: Sequence[Key], there: NDArray[np.bool_]) -> list[Key]:
    return [key for key, known in zip(keys, there.tolist(), strict=True) if known]


def _user_action(action: Action, row: int, versions: Mapping[str, int]) -> UserAction:
    """`versions`: the place of each version of the line that has runs."""
    _, direction, change, first_run = action.key
    until = None if action.until_version is None else versions.get(action.until_version, _NEVER)
    acted = Acted(_ACTIONS[action.action], action.who, action.when_ns, action.reason, action.until_ns, until)
    return UserAction((row, _SIGNS[direction], _CHANGES[change]), first_run, action.after_run_id, acted)


def _packed(recordings: Sequence[Recording]) -> bytes:
    """Each recording once, and which of them each run has."""
    number = {one: at for at, one in enumerate(dict.fromkeys(recordings))}
    return msgspec.msgpack.encode((list(number), np.array([number[one] for one in recordings], "<i4").tobytes()))


def _unpacked(packed: bytes) -> list[Recording]:
    distinct, numbers = msgspec.msgpack.decode(packed, type=tuple[list[Recording], bytes])
    return [distinct[at] for at in np.frombuffer(numbers, "<i4").tolist()]
