"""Writes the samples of runs: all of a run at once, from the rows of all of its ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from tracker.profile import OWNER_SETTING, STEP_RULES, STEP_SETTING
from tracker.store import bulk
from tracker.store.bulk import Column
from tracker.store.details import Placed
from tracker.store.dimensions import Dimension, ids
from tracker.store.samples.arrays import keep_array
from tracker.store.samples.families import RankRows, SeriesKey, unit_of, way_of
from tracker.store.samples.measured import STATISTICS, measure
from tracker.store.samples.ranks import Samples, combine
from tracker.store.samples.stored import ranks_of
from tracker.store.samples.words import SAMPLE_RULES
from tracker.store.sql import statement

_LINE: Final = ("workload_id", "configuration_id", "device_id")
_SERIES: Final = Dimension("series", (*_LINE, *SeriesKey._fields), digest_bytes=8)
_FORGET: Final = text("DELETE FROM sample WHERE run_id = :run_id")
_MARK: Final = text("UPDATE run SET sample_rules = :rules WHERE id = :run_id")
_KEYS: Final = text(
    f"SELECT s.id, {', '.join(f's.{name}' for name in (*_LINE, *SeriesKey._fields))} "  # noqa: S608 names of above
    "FROM sample AS m INNER JOIN series AS s ON m.series_id = s.id WHERE m.run_id = :run_id ORDER BY s.id"
)
_MOVE: Final = text("UPDATE sample SET series_id = :new WHERE run_id = :run_id AND series_id = :old")
_ROUNDED_FROM: Final = 1_000.0


def refresh(connection: Connection, run_ids: Iterable[int], at_hand: Sequence[Placed] = ()) -> None:
    """Make the samples of these runs again, in the open transaction, whose lock on the run rows keeps others from it.

    `at_hand`: captures whose rows need not be read back from the database. Samples of a run whose details were dropped
    cannot be made again: they stay, in the series of the line that the run is in now.
    """
    wanted = sorted(set(run_ids))
    rows = connection.execute(statement("pruned_runs"), {"run_ids": wanted or [-1]}).all()
    pruned = {row.run_id for row in rows}
    for run_id in sorted(pruned):
        _move(connection, run_id)
    found = {run_id: samples_of(connection, run_id, at_hand) for run_id in wanted if run_id not in pruned}
    lines = {run_id: _line(connection, run_id) for run_id in found}
    keys = {(*lines[run_id], *key) for run_id, samples in found.items() for key in samples.keys}
    numbers = ids(connection, _SERIES, keys) if keys else {}
    for run_id, samples in found.items():
        series = np.array([numbers[(*lines[run_id], *key)] for key in samples.keys], dtype=np.int64)
        order = np.argsort(series)  # rows in the order of the primary key fill the pages of a clustered table
        connection.execute(_FORGET, {"run_id": run_id})
        bulk.load(connection, "sample", _columns(run_id, series, samples, order))
        keep_array(connection, run_id)
        connection.execute(_MARK, {"run_id": run_id, "rules": SAMPLE_RULES})


def _move(connection: Connection, run_id: int) -> None:
    """Put the samples of a run into the series of the line that it is in now."""
    line = _line(connection, run_id)
    rows = connection.execute(_KEYS, {"run_id": run_id}).all()
    other = [row for row in rows if tuple(row)[1:4] != line]
    if not other:
        return
    numbers = ids(connection, _SERIES, {(*line, *row[4:]) for row in other})
    moved = [{"run_id": run_id, "old": row[0], "new": numbers[(*line, *row[4:])]} for row in other]
    connection.execute(_MOVE, moved)
    keep_array(connection, run_id)


def number_series(
    connection: Connection, line: Sequence[int], keys: Iterable[tuple[str, ...]]
) -> dict[tuple[str, ...], int]:
    """The numbers of series in a line (workload, configuration, device); those that are new get one."""
    wanted = {(*line, *key): key for key in keys}
    return {wanted[key]: number for key, number in ids(connection, _SERIES, wanted).items()} if wanted else {}


def samples_of(connection: Connection, run_id: int, at_hand: Sequence[Placed] = ()) -> Samples:
    """The samples of a run from its rows, without writing them; `at_hand`: as in `refresh`."""
    own = [item for item in at_hand if item.run_id == run_id]
    ranks = [_rank_rows(item) for item in own]
    ranks += ranks_of(connection, run_id, but={item.rank for item in own})
    return combine([(rank.stage, measure(rank)) for rank in ranks])


def _rank_rows(item: Placed) -> RankRows:
    stage = item.capture.parallel.get("stage")
    rows = item.rows
    way = way_of(item.capture.settings)
    settings = item.capture.settings
    return RankRows(
        item.rank,
        -1 if stage is None else stage,
        way,
        rows.overall,
        rows.steps,
        rows.tables,
        by_owner=OWNER_SETTING in settings,
        unit=unit_of(settings),
        has_windows=settings.get(STEP_SETTING) == STEP_RULES,
    )


def _line(connection: Connection, run_id: int) -> tuple[int, ...]:
    run = connection.execute(statement("run_state"), {"run_id": run_id}).one()
    return tuple(getattr(run, name) for name in _LINE)


def _columns(run_id: int, series: NDArray[Any], samples: Samples, order: NDArray[Any]) -> list[Column]:
    columns = [
        Column("run_id", "int", [run_id] * len(order)),
        bulk.integers("series_id", series[order]),
    ]
    for place, name in enumerate(STATISTICS):
        numbers = samples.numbers[order, place]
        # nobody can see half a nanosecond of a microsecond; in SQLite a whole number takes half the room
        shown = numbers if name in ("value", "calls") else np.where(numbers >= _ROUNDED_FROM, np.rint(numbers), numbers)
        columns.append(bulk.floats(name, shown))
    columns.append(bulk.floats("share", samples.share[order]))
    columns.append(bulk.floats("rank_spread", samples.rank_spread[order]))
    columns.append(Column("steps", "short", [samples.steps] * len(order)))
    columns.append(Column("intermittent", "bool", samples.intermittent[order].tolist()))
    return columns
