"""What chosen runs say of their series, in whatever line and state they are: for a comparison of exactly these runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress

import numpy as np
from msgspec import Struct, field
from msgspec.structs import astuple
from numpy.typing import NDArray
from sqlalchemy import Connection

from tracker.store import judged, samples
from tracker.store.judged import Line, SeriesTable
from tracker.store.queries.recordings import Recorded, recorded
from tracker.store.samples import SAMPLE_RULES
from tracker.store.sql import statement

F64 = NDArray[np.float64]
Key = tuple[str, str, str, str, str]


class ChosenRuns(Struct, frozen=True, eq=False):
    """`keys`: kind, metric, name, input_shapes, part of each series that any of the runs has.

    `values`, `calls`: (series, runs) per step, nan where a run does not have a series. `timelines`: of each run, device
    where any of its ranks has one, else host.
    """

    keys: tuple[Key, ...]
    values: F64
    calls: F64
    timelines: tuple[str, ...]


class _Told(Struct, frozen=True):
    """What is told of a run: its line, and its timeline as in `LineRun`. `stale`: its samples are missing, or by older
    rules, and its details are here.
    """

    line: Line
    stale: bool
    timeline: str


class Known(Struct, frozen=True, eq=False):
    """What was read before of a database: the runs, the series of lines, and per run what it says of these, and how it
    was recorded.
    """

    told: dict[int, _Told] = field(default_factory=dict)
    series: dict[Line, SeriesTable] = field(default_factory=dict)
    runs: dict[int, tuple[F64, F64]] = field(default_factory=dict)
    recordings: dict[int, Recorded] = field(default_factory=dict)

    def recorded(self, connection: Connection, run_ids: Sequence[int]) -> list[Recorded]:
        """What the captures of these runs say of how they were recorded, in their order."""
        missing = [run_id for run_id in run_ids if run_id not in self.recordings]
        self.recordings.update(recorded(connection, missing))
        return [self.recordings[run_id] for run_id in run_ids]

    def lines_of(self, connection: Connection, run_ids: Iterable[int]) -> list[Line]:
        """The lines of these runs, in the order of their numbers."""
        lines = {told.line for told in self.told_of(connection, run_ids).values()}
        return sorted(lines, key=astuple)

    def told_of(self, connection: Connection, run_ids: Iterable[int]) -> dict[int, _Told]:
        """What is told of these runs, whatever their state."""
        asked = sorted(set(run_ids))
        missing = [run_id for run_id in asked if run_id not in self.told]
        for row in connection.execute(statement("run_lines"), {"run_ids": missing}) if missing else ():
            line = Line(row.workload_id, row.configuration_id, row.device_id)
            stale = row.sample_rules != SAMPLE_RULES and row.pruned_at_ns is None
            self.told[row.run_id] = _Told(line, stale, row.timeline)
        return {run_id: self.told[run_id] for run_id in asked}

    def read(self, connection: Connection, run_ids: Iterable[int]) -> None:
        """Read at once what `values_of_runs` will be asked of these runs."""
        of_lines: dict[Line, list[int]] = {}
        for run_id, told in self.told_of(connection, run_ids).items():
            if not told.stale:
                of_lines.setdefault(told.line, []).append(run_id)
        for line, own in of_lines.items():
            self.values_of(connection, own, self.series_of(connection, line))

    def series_of(self, connection: Connection, line: Line) -> SeriesTable:
        """The series of a line, in the order of their keys."""
        if line not in self.series:
            found = judged.series_of(connection, line)
            order = sorted(range(len(found.keys)), key=found.keys.__getitem__)
            self.series[line] = SeriesTable(found.ids[order], tuple([found.keys[row] for row in order]))
        return self.series[line]

    def values_of(self, connection: Connection, run_ids: Sequence[int], series: SeriesTable) -> tuple[F64, F64]:
        """As `judged.values_of`, each run read once; `series`: of the line of these runs."""
        missing = [run_id for run_id in dict.fromkeys(run_ids) if run_id not in self.runs]
        if missing:
            read = judged.values_of(connection, missing, series)
            self.runs.update({run_id: (read[0][:, at], read[1][:, at]) for at, run_id in enumerate(missing)})
        shape = (len(run_ids), len(series.ids))
        values, calls = (np.array([self.runs[run_id][part] for run_id in run_ids]).reshape(shape).T for part in (0, 1))
        return values, calls


class _Part(Struct, frozen=True, eq=False):
    """What the runs at `places` say of `keys`, sorted: (keys, places) arrays, each run together in memory."""

    keys: Sequence[Key]
    places: Sequence[int]
    values: F64
    calls: F64


def values_of_runs(connection: Connection, run_ids: Sequence[int], known: Known | None = None) -> ChosenRuns:
    """The samples of these runs, in their order. Reads only: samples that are missing or by older rules are made for
    the answer and not stored, where the details are here. `known`: of this database; what is read comes to it.
    """
    known = Known() if known is None else known
    told = known.told_of(connection, run_ids)
    parts: list[_Part] = []
    up_to_date: dict[Line, list[int]] = {}
    for at, run_id in enumerate(run_ids):
        if told[run_id].stale:
            parts.append(_made(connection, run_id, at))
        else:
            up_to_date.setdefault(told[run_id].line, []).append(at)
    for line, places in up_to_date.items():
        series = known.series_of(connection, line)
        values, calls = known.values_of(connection, [run_ids[at] for at in places], series)
        there = np.asarray(~np.isnan(values).all(axis=1))
        if there.all():
            parts.append(_Part(series.keys, places, values, calls))
        else:
            keys = list(compress(series.keys, there.tolist()))
            parts.append(_Part(keys, places, values.T[:, there].T, calls.T[:, there].T))
    return _together(parts, tuple(told[run_id].timeline for run_id in run_ids))


def _made(connection: Connection, run_id: int, at: int) -> _Part:
    """The samples of a run, made from its details."""
    made = samples.samples_of(connection, run_id)
    places = [samples.VALUE, samples.CALLS]
    numbers = np.array([[row[at] for at in places] for row in made.numbers], dtype=np.float64).reshape(-1, 2)
    keys = [(key.kind, key.metric, key.name, key.input_shapes, key.part) for key in made.keys]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return _Part([keys[row] for row in order], [at], numbers[order, :1], numbers[order, 1:])


def all_keys(sides: Iterable[Sequence[Key]]) -> Sequence[Key]:
    """The keys that any of the `sides` has, sorted; each has its own sorted. Runs of one line mostly have the same."""
    first, *others = sides
    if all(first is other or first == other for other in others):
        return first
    return tuple(sorted({key for keys in (first, *others) for key in keys}))


def _together(parts: Sequence[_Part], timelines: tuple[str, ...]) -> ChosenRuns:
    if len(parts) == 1 and list(parts[0].places) == list(range(len(timelines))):
        return ChosenRuns(tuple(parts[0].keys), parts[0].values, parts[0].calls, timelines)
    keys = tuple(all_keys([part.keys for part in parts] or [()]))
    row_of = {key: row for row, key in enumerate(keys)}
    values, calls = np.full((2, len(timelines), len(keys)), np.nan)
    for part in parts:
        cells = np.ix_(list(part.places), [row_of[key] for key in part.keys])
        values[cells], calls[cells] = part.values.T, part.calls.T
    return ChosenRuns(keys, values.T, calls.T, timelines)
