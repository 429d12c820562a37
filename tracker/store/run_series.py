"""What chosen runs say of their series, in whatever line and state they are: for a comparison of exactly these runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from sqlalchemy import Connection

from tracker.results.thresholds import Threshold
from tracker.store import judged, samples, thresholds
from tracker.store.judged import Line
from tracker.store.queries.recordings import Recorded, content_of
from tracker.store.samples import SAMPLE_RULES
from tracker.store.sql import statement

F64 = NDArray[np.float64]
Key = tuple[str, str, str, str, str]
_COLUMNS = (samples.VALUE, samples.CALLS, samples.P10)


class ChosenRun(Struct, frozen=True, eq=False):
    """What a run says of its series: `keys`: kind, metric, name, input_shapes, part of each; `values`, `calls`: per
    step, nan where the run does not have it; `lows`: the 10th percentile over the steps. `limits`: that users set in
    its line; `recorded`: what its captures say of how it was recorded.
    """

    keys: Sequence[Key]
    values: F64
    calls: F64
    lows: F64
    limits: tuple[Threshold, ...]
    recorded: Recorded


def chosen_runs(connection: Connection, run_ids: Sequence[int]) -> list[ChosenRun]:
    """These runs, in their order. Reads only: samples that are missing or by older rules are made for the answer and
    not stored, where the details are here.
    """
    rows = connection.execute(statement("run_lines"), {"run_ids": sorted(set(run_ids))}).all()
    of_lines: dict[Line, list[int]] = {}
    numbers: dict[int, tuple[Sequence[Key], F64, F64, F64]] = {}
    for row in rows:
        own = of_lines.setdefault(Line(row.workload_id, row.configuration_id, row.device_id), [])
        if row.sample_rules != SAMPLE_RULES and row.pruned_at_ns is None:
            made = samples.samples_of(connection, row.run_id)
            keys = [(key.kind, key.metric, key.name, key.input_shapes, key.part) for key in made.keys]
            columns = np.array([[one[at] for at in _COLUMNS] for one in made.numbers], dtype=np.float64)
            values, calls, lows = columns.reshape(-1, len(_COLUMNS)).T
            numbers[row.run_id] = (keys, values, calls, lows)
        else:
            own.append(row.run_id)
    limits = {line: thresholds.of_line(connection, line) for line in of_lines}
    for line, own in of_lines.items():
        series = judged.series_of(connection, line)
        tables = judged.values_of(connection, own, series)
        for at, run_id in enumerate(own):
            values, calls, lows = (table[:, at] for table in tables)
            numbers[run_id] = (series.keys, values, calls, lows)
    found = {
        row.run_id: ChosenRun(
            *numbers[row.run_id],
            limits[Line(row.workload_id, row.configuration_id, row.device_id)],
            content_of(row.content),
        )
        for row in rows
    }
    return [found[run_id] for run_id in run_ids]


def table_of(runs: Sequence[ChosenRun]) -> tuple[list[Key], F64, F64, F64]:
    """The series that any of the runs has, sorted, with their values, calls and lows: (series, runs) arrays."""
    every = {id(run.keys): run.keys for run in runs}  # runs of one line have one object
    keys = sorted({key for own in every.values() for key in own})
    place = {key: at for at, key in enumerate(keys)}
    rows = {number: [place[key] for key in own] for number, own in every.items()}
    values, calls, lows = np.full((3, len(keys), len(runs)), np.nan)
    for at, run in enumerate(runs):
        of_run = rows[id(run.keys)]
        values[of_run, at], calls[of_run, at], lows[of_run, at] = run.values, run.calls, run.lows
    there = np.flatnonzero(~np.isnan(values).all(axis=1))
    return [keys[row] for row in there.tolist()], values[there], calls[there], lows[there]
