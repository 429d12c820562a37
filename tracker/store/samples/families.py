"""Which series the rows of a rank hold: their keys (`schema.series`), with a value per row of the profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import MISSING, Breakdown, IdleCause, StepRow, Table
from tracker.schema.column_names import CALLS, CATEGORY, CAUSE, STEP
from tracker.schema.series import (
    ALLOCATED,
    ALLOCATED_BY_ALLOCATOR,
    IDLE_CAUSE,
    IDLE_SERIES,
    KINDS,
    NO_SERIES,
    OWN_TIMES,
    RUN,
    Metric,
    SeriesKey,
    SeriesKind,
    own_time_of,
)
from tracker.store.bulk import clean, cleaned

SAMPLE_RULES: Final = 10
"""Goes up with every change that can change a sample; stored with the run, so that older ones are made again."""

I64 = NDArray[np.int64]


def unit_of(settings: Mapping[str, str]) -> str:
    """Return the unit of the throughput, from the settings of a capture; "" where the source does not say it.

    >>> unit_of({"throughput_unit": "images/s"}), unit_of({})
    ('images/s', '')
    """
    return clean(settings.get("throughput_unit", ""))


class RankRows(Struct, frozen=True):
    """The rows of one rank.

    `way`: how its numbers of the whole run were measured, one of `series.WAYS`.
    `tables`: as in `tracker.profile.Rows`, at least the columns that are read here.
    `by_owner`: whether its memory is counted to the op that a user would name, else to the allocator.
    `unit`: of its throughput, "" where the source does not say it.
    `has_windows`: whether its steps are windows of the device.
    """

    rank: int
    stage: int
    way: str
    overall: Breakdown
    steps: Sequence[StepRow]
    tables: Mapping[str, Table]
    by_owner: bool = False
    unit: str = ""
    has_windows: bool = False


class Family(Struct, frozen=True):
    """Rows of one table under the series that they belong to: `series` indexes `keys`, -1 for none.

    `step`, `values`, `calls`: per row; MISSING where the source does not say. `calls` None: the series counts none.
    `by_calls`: what the values would be, had each call taken what is usual for the calls of its row, one array per
    column of `series.Metric.by_calls`; empty for a metric without such columns.
    """

    keys: Sequence[SeriesKey]
    series: I64
    step: I64
    values: I64
    calls: I64 | None
    by_calls: Sequence[I64] = ()


def make_families(rows: RankRows) -> Iterator[Family]:
    """Yield the families of a rank, but for those of RUN_SERIES."""
    for kind in KINDS:
        table = rows.tables.get(kind.level)
        if table is None or not len(table[STEP]):
            continue
        for metric in _followed_metrics(rows, kind):
            yield _make_family(rows, table, kind, metric)
    idle = rows.tables.get("idle")
    if idle is not None and len(idle[STEP]):
        yield _make_idle_family(rows, idle)


def _followed_metrics(rows: RankRows, kind: SeriesKind) -> tuple[Metric, ...]:
    """Return the metrics of a kind that this rank has: of operators one time, and of memory one way of counting."""
    if kind.metrics == OWN_TIMES:
        own_time = own_time_of(rows.overall.timeline)
        return tuple(metric for metric in OWN_TIMES if metric.name == own_time)
    if kind.word == "memory":
        return (ALLOCATED,) if rows.by_owner else (ALLOCATED_BY_ALLOCATOR,)
    return kind.metrics


def _make_family(rows: RankRows, table: Table, kind: SeriesKind, metric: Metric) -> Family:
    """Return the rows of a level as one metric of its series."""
    texts = rows.tables[kind.texts] if kind.texts else table
    key_values = list(zip(*(_plain_values(texts[column]) for column in kind.key_columns), strict=True))
    # a profile repeats its names in every step: a key is made once for each
    distinct_values = list(dict.fromkeys(key_values))
    keys, places = number_keys(kind.make_key(metric.name, values) for values in distinct_values)
    place_of_values = dict(zip(distinct_values, places.tolist(), strict=True))
    series = np.array([place_of_values[values] for values in key_values], dtype=np.int64)
    if kind.texts:
        series = series[_whole_numbers(table[kind.texts])]
    if kind.other_category:
        is_other = np.array([category == kind.other_category for category in table[CATEGORY]], dtype=bool)
        series = np.where(is_other, -1, series)
    values = _whole_numbers(table[metric.column or metric.name])
    if metric.if_missing:
        values = np.where(values == MISSING, _whole_numbers(table[metric.if_missing]), values)
    by_calls = [_whole_numbers(table[name]) for name in metric.by_calls]
    return Family(keys, series, _whole_numbers(table[STEP]), values, _whole_numbers(table[CALLS]), by_calls)


def _make_idle_family(rows: RankRows, table: Table) -> Family:
    """Return the idle time of the device by cause; what no rule explains is in the idle time of the step alone."""
    key_of_cause = {IdleCause.UNKNOWN.word: NO_SERIES}
    for cause in table[CAUSE]:
        if cause not in key_of_cause:
            key_of_cause[cause] = SeriesKey(RUN, IDLE_CAUSE.name, f"{IDLE_SERIES}{cause}", part=rows.way)
    keys, series = number_keys(key_of_cause[cause] for cause in table[CAUSE])
    return Family(keys, series, _whole_numbers(table[STEP]), _whole_numbers(table[IDLE_CAUSE.column]), None)


def number_keys(keys: Iterable[SeriesKey]) -> tuple[list[SeriesKey], I64]:
    """Return the distinct keys, and for each entry the place of its key among them; -1 for NO_SERIES.

    >>> forward = SeriesKey("phase", "device_self_ns", "forward")
    >>> number_keys([NO_SERIES, forward, forward])[1].tolist()
    [-1, 0, 0]
    """
    places = {NO_SERIES: -1}
    # NO_SERIES is in it, so that the next free place is one less than its length
    codes = [places.setdefault(key, len(places) - 1) for key in keys]
    del places[NO_SERIES]
    return list(places), np.array(codes, dtype=np.int64)


def _plain_values(column: Any) -> list[Any]:
    """Return texts as the database holds them, and whole numbers as Python does."""
    if len(column) and not isinstance(column[0], str):
        numbers: list[Any] = _whole_numbers(column).tolist()
        return numbers
    return cleaned(column)


def _whole_numbers(values: Any) -> I64:
    return np.asarray(values, dtype=np.int64)
