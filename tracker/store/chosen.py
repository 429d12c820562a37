"""What chosen runs say of their series, in whatever line and state they are: for a comparison of exactly these runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from tracker.store import judged, samples
from tracker.store.judged import Line
from tracker.store.samples import CALLS, SAMPLE_RULES, VALUE
from tracker.store.sql import statement

F64 = NDArray[np.float64]
Key = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True, eq=False)
class ChosenRuns:
    """`keys`: kind, metric, name, input_shapes, part of each series that any of the runs has.

    `values`, `calls`: (series, runs) per step, nan where a run does not have a series. `timelines`: of each run, device
    where any of its ranks has one, else host.
    """

    keys: tuple[Key, ...]
    values: F64
    calls: F64
    timelines: tuple[str, ...]


def values_of_runs(connection: Connection, run_ids: Sequence[int]) -> ChosenRuns:
    """The samples of these runs, in their order. Reads only: samples that are missing or by older rules are made for
    the answer and not stored, where the details are here.
    """
    rows = {row.run_id: row for row in connection.execute(statement("run_lines"), {"run_ids": list(run_ids) or [-1]})}
    found: dict[Key, tuple[F64, F64]] = {}

    def cells(key: Key) -> tuple[F64, F64]:
        return found.setdefault(key, (np.full(len(run_ids), np.nan), np.full(len(run_ids), np.nan)))

    up_to_date: dict[Line, list[int]] = {}
    for at, run_id in enumerate(run_ids):
        row = rows[run_id]
        if row.sample_rules == SAMPLE_RULES or row.pruned_at_ns is not None:
            line = Line(row.workload_id, row.configuration_id, row.device_id)
            up_to_date.setdefault(line, []).append(at)
            continue
        made = samples.samples_of(connection, run_id)
        for key, numbers in zip(made.keys, made.numbers, strict=True):
            value, calls = cells((key.kind, key.metric, key.name, key.input_shapes, key.part))
            value[at], calls[at] = numbers[VALUE], numbers[CALLS]
    for line, places in up_to_date.items():
        series = judged.series_of(connection, line)
        tables = judged.values_of(connection, [run_ids[at] for at in places], series)
        for place in np.flatnonzero(~np.isnan(tables[0]).all(axis=1)).tolist():
            for numbers, table in zip(cells(series.keys[place]), tables, strict=True):
                numbers[places] = table[place]
    keys = tuple(sorted(found))
    shape = (len(keys), len(run_ids))
    values, calls = (np.array([found[key][part] for key in keys]).reshape(shape) for part in (0, 1))
    return ChosenRuns(keys, values, calls, tuple(rows[run_id].timeline for run_id in run_ids))
