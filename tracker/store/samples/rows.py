"""The samples of runs in the database: made from the rows of their ranks, kept as rows and as one array per run.

The judgement asks for whole runs, and a row per number costs it more than the judging. The table `sample` is the truth:
an array is made from its rows in the transaction that writes them, and where a run has none, the rows are read.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from tracker.profile import MISSING, OWNER_SETTING, STEP_RULES, STEP_SETTING, Breakdown, StepRow, Table
from tracker.schema.column_names import SERIES_ID
from tracker.schema.levels import LEVEL
from tracker.schema.series import IDLE_CAUSE, KINDS, SeriesKey, way_of
from tracker.store import bulk, documents
from tracker.store.bulk import Column
from tracker.store.captures import Placed
from tracker.store.dimensions import Dimension, Key, ids
from tracker.store.failures import Damaged
from tracker.store.levels import list_rows_of_run
from tracker.store.samples.families import SAMPLE_RULES, RankRows, unit_of
from tracker.store.samples.ranks import (
    STATISTICS,
    Measured,
    Samples,
    combine,
    measure,
    measure_document,
    measure_steps_of_ranks,
)
from tracker.store.samples.step_kinds import join_samples, kinds_of_ranks, of_kind, with_step_kind
from tracker.store.sql import statement
from tracker.store.tracks import TRACK_COLUMNS


def _find_sampled_columns() -> dict[str, tuple[str, ...]]:
    columns: dict[str, set[str]] = {}
    for kind in KINDS:
        if not kind.level:
            continue
        of_level = columns.setdefault(kind.level, {"step", "calls"})
        of_level.update((kind.texts,) if kind.texts else kind.key_columns)
        if kind.other_category:
            of_level.add("category")
        for metric in kind.metrics:
            of_level.update({metric.column or metric.name, metric.if_missing, *metric.by_calls})
    columns["idle"] = {"step", "cause", IDLE_CAUSE.column}
    return {level: tuple(name for name in LEVEL[level].row_kinds if name in names) for level, names in columns.items()}


SAMPLED_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = _find_sampled_columns()
"""Level -> its columns that samples are made from."""
_KEY_STATEMENTS: Final[Mapping[str, str]] = {"op_key": "sample_op_keys", "kernel_key": "sample_kernel_keys"}

_DELETE_ARRAY: Final = text("DELETE FROM sample_array WHERE run_id = :run_id")
_REPLACE_ARRAY: Final = text("UPDATE sample_array SET numbers = :numbers WHERE run_id = :run_id")
HOW_TO_REPAIR: Final = "tracker db check --repair makes them again"
_WITH_BY_CALLS: Final = b"\x02"
"""The first byte of an array that holds times by calls. One without has no such byte."""
_WITH_LOWS: Final = b"\x01"
"""The first byte of one of an earlier program, which kept the 10th percentiles over the steps. Nothing reads them."""
_RUNS_PER_QUESTION: Final = 100
"""One array can hold a megabyte."""

_SERIES: Final = Dimension("series", (*TRACK_COLUMNS, *SeriesKey._fields), digest_bytes=8, later=True)
_DELETE_SAMPLES: Final = text("DELETE FROM sample WHERE run_id = :run_id")
_MARK_RULES: Final = text("UPDATE run SET sample_rules = :rules WHERE id = :run_id")
_SERIES_KEYS: Final = text(
    f"SELECT s.id, {', '.join(f's.{name}' for name in (*TRACK_COLUMNS, *SeriesKey._fields))} "  # noqa: S608 names of above
    "FROM sample AS m INNER JOIN series AS s ON m.series_id = s.id WHERE m.run_id = :run_id ORDER BY s.id"
)
_MOVE_SERIES: Final = text("UPDATE sample SET series_id = :new WHERE run_id = :run_id AND series_id = :old")
_SERIES_OF_DIGEST: Final = text("SELECT id FROM series WHERE digest = :digest")
_RENAME_SERIES: Final = text("UPDATE series SET name = :name, digest = :digest WHERE id = :id")
_RUNS_TO_MOVE: Final = text(
    "SELECT m.run_id FROM sample AS m WHERE m.series_id = :old AND EXISTS ("
    "SELECT 1 FROM capture AS c WHERE c.run_id = m.run_id AND c.pruned_at_ns IS NOT NULL) "
    "AND NOT EXISTS (SELECT 1 FROM sample AS o WHERE o.run_id = m.run_id AND o.series_id = :new) ORDER BY m.run_id"
)
_ROUNDED_FROM: Final = 1_000.0
_EXACT: Final = frozenset({"value", "calls", "by_quartile", "by_median"})
"""Columns that are never rounded: they are judged."""


def read_ranks(connection: Connection, run_id: int, *, but: Set[int] = frozenset()) -> list[RankRows]:
    """Return the ranks of a run, without those in `but`, in order."""
    captures = [row for row in _rows(connection, "captures", run_ids=[run_id]) if row.rank not in but]
    if not captures:
        return []
    steps: dict[int, list[StepRow]] = {}
    for row in _rows(connection, "steps", run_ids=[run_id]):
        step = StepRow(row.step, row.start_ns, _breakdown(row), row.steps, row.marker_ns, row.kind)
        steps.setdefault(row.rank, []).append(step)
    wanted = {row.rank for row in captures}
    dimensions, places = _dimensions(connection, run_id)
    tables = {name: _by_rank(connection, name, run_id, wanted, places) for name in SAMPLED_COLUMNS}
    return [
        RankRows(
            row.rank,
            -1 if row.stage is None else row.stage,
            way_of(json.loads(row.settings).get("profiler", "")),
            _breakdown(row),
            steps.get(row.rank, []),
            dimensions | {name: found[row.rank] for name, found in tables.items() if row.rank in found},
            OWNER_SETTING in json.loads(row.settings),
            unit_of(json.loads(row.settings)),
            json.loads(row.settings).get(STEP_SETTING) == STEP_RULES,
        )
        for row in captures
    ]


def _breakdown(row: Any) -> Breakdown:
    return Breakdown(**{name: getattr(row, name) for name in Breakdown.__struct_fields__})


def _dimensions(connection: Connection, run_id: int) -> tuple[dict[str, Table], dict[str, dict[int, int]]]:
    """Return the dimension tables of a run, and for each the place of every id."""
    tables: dict[str, Table] = {}
    places: dict[str, dict[int, int]] = {}
    for name, question in _KEY_STATEMENTS.items():
        result = connection.execute(statement(question), {"run_id": run_id})
        names, rows = list(result.keys()), result.all()
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        tables[name] = {column: list(values) for column, values in zip(names, columns, strict=True) if column != "id"}
        places[name] = {number: place for place, number in enumerate(columns[names.index("id")])}
    return tables, places


def _by_rank(
    connection: Connection, table: str, run_id: int, wanted: Set[int], places: Mapping[str, Mapping[int, int]]
) -> dict[int, Table]:
    """Return the rows of a detail table, by rank."""
    result = connection.execute(list_rows_of_run(table, SAMPLED_COLUMNS[table]), {"run_id": run_id})
    names, rows = list(result.keys()), result.all()
    if not rows:
        return {}
    columns: dict[str, Any] = {}
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        key = name.removesuffix("_id")
        if LEVEL[table].row_kinds.get(name) == "text":
            columns[key] = list(values)
        else:
            columns[key] = _numbers(values, places.get(key) if key != name else None)
    rank = columns.pop("rank")
    found: dict[int, Table] = {}
    for number in sorted(wanted & set(rank.tolist())):
        own = np.flatnonzero(rank == number)
        found[number] = {
            name: values[own] if isinstance(values, np.ndarray) else [values[at] for at in own]
            for name, values in columns.items()
        }
    return found


def _numbers(values: Sequence[Any], places: Mapping[int, int] | None) -> Any:
    """Return whole numbers with MISSING for None, and ids as places in their dimension table."""
    if places is not None:
        return np.array([places[number] for number in values], dtype=np.int64)
    return np.array([MISSING if number is None else number for number in values], dtype=np.int64)


def _rows(connection: Connection, question: str, **parameters: Any) -> list[Any]:
    return list(connection.execute(statement(question), parameters).all())


class SampleArray(Struct, frozen=True, eq=False):
    """The samples of a run: its `series_ids` ascending, and for each the value that is printed and the calls per step
    (nan where they are not counted).

    `by_calls` (2, series): the value, had each call taken the lower quartile, or the median, of the calls of its step;
    nan where the calls are not known one by one.
    """

    series_ids: NDArray[np.int64]
    values: NDArray[np.float64]
    calls: NDArray[np.float64]
    by_calls: NDArray[np.float64]


def write_array(connection: Connection, run_id: int) -> None:
    """Make the array of a run from its rows in `sample`, in the open transaction that wrote them."""
    connection.execute(_DELETE_ARRAY, {"run_id": run_id})
    numbers = pack_samples(array_of_rows(connection, run_id))
    bulk.load(connection, "sample_array", [Column("run_id", "int", [run_id]), Column("numbers", "binary", [numbers])])


def arrays_of(connection: Connection, run_ids: Iterable[int]) -> dict[int, SampleArray]:
    """Return the samples of each of these runs; empty arrays for one without any.

    Raises Damaged where the bytes of one are.
    """
    wanted = sorted(set(run_ids))
    found: dict[int, SampleArray] = {}
    for start in range(0, len(wanted), _RUNS_PER_QUESTION):
        some = {"run_ids": wanted[start : start + _RUNS_PER_QUESTION]}
        for run_id, numbers in bulk.fetch(connection.execute(statement("sample_arrays"), some)):
            try:
                found[run_id] = unpack_samples(bytes(numbers))
            except ValueError as error:
                raise Damaged(f"the samples of run {run_id}", HOW_TO_REPAIR) from error
    # a program of before there were arrays may have written a run
    return {run_id: found.get(run_id) or array_of_rows(connection, run_id) for run_id in wanted}


def damaged_arrays(connection: Connection) -> list[int]:
    """Return the runs whose bytes are damaged, ascending."""
    question = text("SELECT run_id, numbers FROM sample_array ORDER BY run_id")
    damaged = []
    for run_id, numbers in connection.execute(question, execution_options={"yield_per": _RUNS_PER_QUESTION}):
        try:
            unpack_samples(bytes(numbers))
        except ValueError:
            damaged.append(run_id)
    return damaged


def repair_array(connection: Connection, run_id: int) -> bool:
    """Make the damaged array of a run again from its rows; False, and nothing changed, where there are none either."""
    array = array_of_rows(connection, run_id)
    if len(array.series_ids):
        connection.execute(_REPLACE_ARRAY, {"run_id": run_id, "numbers": pack_samples(array)})
    return len(array.series_ids) > 0


def array_of_rows(connection: Connection, run_id: int) -> SampleArray:
    """Return the samples of a run, from its rows in `sample`."""
    rows = bulk.fetch(connection.execute(statement("run_values"), {"run_id": run_id}))
    columns = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    series_ids, values, calls, by_quartile, by_median = columns
    by_calls = np.array([_reals(by_quartile), _reals(by_median)])
    return SampleArray(np.array(series_ids, dtype=np.int64), _reals(values), _reals(calls), by_calls)


def pack_samples(array: SampleArray) -> bytes:
    """Return zlib of a mark, then the steps from one series to the next, values, calls, and the times by calls.

    The mark is a byte, each number has 8, the lowest first. Where no time by calls is known, mark and times are left
    out.
    """
    steps = np.diff(array.series_ids, prepend=0).astype("<i8")
    mark, columns = b"", [array.values, array.calls]
    if not np.isnan(array.by_calls).all():
        mark = _WITH_BY_CALLS
        columns += [*array.by_calls]
    numbers = [column.astype("<f8").tobytes() for column in columns]
    return zlib.compress(b"".join([mark, steps.tobytes(), *numbers]))


def unpack_samples(numbers: bytes) -> SampleArray:
    """Return the array that `pack_samples` packed; ValueError where the bytes are damaged."""
    try:
        plain = zlib.decompress(numbers)
    except zlib.error as error:
        raise ValueError("these bytes are no samples") from error
    # a number has 8 bytes, so that what is over is the mark
    mark = plain[: len(plain) % 8]
    columns = {b"": 2, _WITH_LOWS: 3, _WITH_BY_CALLS: 4}.get(mark)
    if columns is None:
        raise ValueError("these bytes are no samples")
    count, rest = divmod(len(plain) - len(mark), 8 * (1 + columns))
    if rest:
        raise ValueError("series, values and calls differ in number")
    steps = np.frombuffer(plain, dtype="<i8", offset=len(mark), count=count)
    table = np.frombuffer(plain, dtype="<f8", offset=len(mark) + 8 * count).reshape(columns, count)
    by_calls = table[2:] if mark == _WITH_BY_CALLS else np.full((2, count), np.nan)
    return SampleArray(np.cumsum(steps), table[0], table[1], by_calls)


def _reals(numbers: Sequence[Any]) -> NDArray[np.float64]:
    return np.array(numbers, dtype=np.float64)  # None becomes nan


def refresh(connection: Connection, run_ids: Iterable[int], at_hand: Sequence[Placed] = ()) -> None:
    """Make the samples of these runs again, in the open transaction, whose lock on the run rows keeps others from it.

    `at_hand`: captures whose rows need not be read back from the database. Samples of a run whose details were dropped
    cannot be made again: they stay, in the series of the track that the run is in now.
    """
    wanted = sorted(set(run_ids))
    rows = connection.execute(statement("pruned_runs"), {"run_ids": wanted or [-1]}).all()
    pruned = {row.run_id for row in rows}
    for run_id in sorted(pruned):
        _move_series(connection, run_id)
    found = {run_id: samples_of(connection, run_id, at_hand) for run_id in wanted if run_id not in pruned}
    track_of_run = {run_id: _track(connection, run_id) for run_id in found}
    keys: set[Key] = {(*track_of_run[run_id], *key) for run_id, samples in found.items() for key in samples.keys}
    numbers = ids(connection, _SERIES, keys) if keys else {}
    for run_id, samples in found.items():
        series = np.array([numbers[(*track_of_run[run_id], *key)] for key in samples.keys], dtype=np.int64)
        _write(connection, run_id, series, samples)
        write_array(connection, run_id)
        connection.execute(_MARK_RULES, {"run_id": run_id, "rules": SAMPLE_RULES})


def _write(connection: Connection, run_id: int, series: NDArray[np.int64], samples: Samples) -> None:
    order = np.argsort(series)  # rows in the order of the primary key fill the pages of a clustered table
    connection.execute(_DELETE_SAMPLES, {"run_id": run_id})
    bulk.load(connection, "sample", _sample_columns(run_id, series, samples, order))


def keep_step_alone(connection: Connection, run_id: int) -> None:
    """Keep only the step of the ranks that came of a run that waits for others: screens show it, and nothing else of
    its samples. The run counts as one whose samples were never made.
    """
    connection.execute(_DELETE_SAMPLES, {"run_id": run_id})
    connection.execute(_DELETE_ARRAY, {"run_id": run_id})
    connection.execute(_MARK_RULES, {"run_id": run_id, "rules": None})
    if measured := _step_so_far(connection, run_id):
        samples = combine(measured)
        numbers = number_series(connection, _track(connection, run_id), samples.keys)
        _write(connection, run_id, np.array([numbers[key] for key in samples.keys], dtype=np.int64), samples)


def _step_so_far(connection: Connection, run_id: int) -> list[tuple[int, Measured]]:
    """Return the stage and the step of each rank that is here, where it is known."""
    rows_of_rank: dict[tuple[str, int, int], list[tuple[float, float]]] = {}
    for row in connection.execute(statement("step_times"), {"run_id": run_id}):
        rank = (row.settings, -1 if row.stage is None else row.stage, row.rank)
        rows_of_rank.setdefault(rank, []).append((np.nan if row.step_ns is None else row.step_ns, row.steps))
    alike: dict[tuple[str, int, tuple[float, ...]], list[list[float]]] = {}
    for (settings, stage, _), rows in rows_of_rank.items():
        times, weights = zip(*rows, strict=True)
        alike.setdefault((settings, stage, weights), []).append([*times])
    measured = []
    for (settings, stage, weights), table in alike.items():
        way = way_of(json.loads(settings).get("profiler", ""))
        measured += [(stage, one) for one in measure_steps_of_ranks(np.array(table), np.array(weights), way)]
    return measured


def _move_series(connection: Connection, run_id: int) -> None:
    """Put the samples of a run into the series of the track that it is in now."""
    track_key = _track(connection, run_id)
    rows = connection.execute(_SERIES_KEYS, {"run_id": run_id}).all()
    other = [row for row in rows if tuple(row)[1:4] != track_key]
    if not other:
        return
    numbers = ids(connection, _SERIES, {(*track_key, *row[4:]) for row in other})
    moved = [{"run_id": run_id, "old": row[0], "new": numbers[(*track_key, *row[4:])]} for row in other]
    connection.execute(_MOVE_SERIES, moved)
    write_array(connection, run_id)


def rename_series(connection: Connection, series_id: int, track_key: Sequence[int], key: SeriesKey) -> None:
    """Give a series another key, so that its findings go on.

    Where another series has that key, the samples that cannot be made again become the other one's.
    """
    digest = _SERIES.digest((*track_key, *key))
    other = connection.execute(_SERIES_OF_DIGEST, {"digest": digest}).scalar()
    if other is None:
        connection.execute(_RENAME_SERIES, {"name": key.name, "digest": digest, "id": series_id})
        return
    for run_id in connection.scalars(_RUNS_TO_MOVE, {"old": series_id, "new": other}).all():
        connection.execute(_MOVE_SERIES, {"run_id": run_id, "old": series_id, "new": other})
        write_array(connection, run_id)


def number_series(
    connection: Connection, track_key: Sequence[int], keys: Iterable[tuple[str, ...]]
) -> dict[tuple[str, ...], int]:
    """Return the numbers of series in a track (workload, configuration, device); those that are new get one."""
    wanted: dict[Key, tuple[str, ...]] = {(*track_key, *key): key for key in keys}
    return {wanted[key]: number for key, number in ids(connection, _SERIES, wanted).items()} if wanted else {}


def samples_of(connection: Connection, run_id: int, at_hand: Sequence[Placed] = ()) -> Samples:
    """Return the samples of a run from its rows, without writing them; `at_hand`: as in `refresh`.

    Those of each kind of steps stand behind those of all steps.
    """
    ranks = _ranks_of(connection, run_id, at_hand)
    measured = [(rank.stage, measure(rank)) for rank in ranks]
    for document in documents.of_runs(connection, [run_id]).get(run_id, []):
        measured += [(rank.stage, measure_document(rank)) for rank in _ranks_of(connection, document, at_hand)]
    of_kinds = [combine(measured)]
    for kind in kinds_of_ranks(ranks):
        own = [(rank.stage, measure(of_kind(rank, kind))) for rank in ranks]
        of_kinds.append(with_step_kind(combine(own), kind))
    return join_samples(of_kinds)


def _ranks_of(connection: Connection, run_id: int, at_hand: Sequence[Placed]) -> list[RankRows]:
    own = [item for item in at_hand if item.run_id == run_id]
    return [*map(_rank_rows, own), *read_ranks(connection, run_id, but={item.rank for item in own})]


def _rank_rows(item: Placed) -> RankRows:
    stage = item.capture.parallel.get("stage")
    rows = item.rows
    way = way_of(item.capture.settings.get("profiler", ""))
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


def _track(connection: Connection, run_id: int) -> tuple[int, ...]:
    run = connection.execute(statement("run_state"), {"run_id": run_id}).one()
    return tuple(getattr(run, name) for name in TRACK_COLUMNS)


def _sample_columns(run_id: int, series: NDArray[Any], samples: Samples, order: NDArray[Any]) -> list[Column]:
    columns = [
        Column("run_id", "int", [run_id] * len(order)),
        bulk.integers(SERIES_ID, series[order]),
    ]
    for place, name in enumerate(STATISTICS):
        numbers = samples.numbers[order, place]
        # half a nanosecond of a microsecond shows in no report; in SQLite a whole number takes half the room
        shown = numbers if name in _EXACT else np.where(numbers >= _ROUNDED_FROM, np.rint(numbers), numbers)
        columns.append(bulk.floats(name, shown))
    columns.append(bulk.floats("share", samples.share[order]))
    columns.append(bulk.floats("rank_spread", samples.rank_spread[order]))
    columns.append(Column("steps", "short", samples.steps[order].tolist()))
    columns.append(Column("intermittent", "bool", samples.intermittent[order].tolist()))
    return columns
