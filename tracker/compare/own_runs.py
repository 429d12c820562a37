"""Rows of a baseline of which each is of the runs that its own verdict rests on.

The rows of a table are series. A series that changed before the others has another level than the step, and is compared
with runs of it: see `regressions.bases`. Every other row is of the runs that the step is compared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.columns import Columns
from tracker.schema.column_names import CAUSE, RUN_ID
from tracker.schema.series import (
    IDLE_CAUSE,
    IDLE_SERIES,
    KIND,
    KIND_OF_TABLE,
    OWN_TIMES,
    RUN,
    WAYS,
    SeriesKey,
    metric_of_number,
    ways_of_number,
)
from tracker.table import number_distinct_rows

_IDLE: Final = "idle"
"""The table of a Diff whose rows are places of a cause, which is one series."""


class OwnRuns(Struct, frozen=True):
    """Which runs the rows of a side are of. `step`: those of rows without runs of their own; `of_series`: own ones.

    `own_time`, `by_name`: as in `list_keys`. `left_out`: tables whose rows are no whole series.
    """

    step: frozenset[int]
    of_series: Mapping[SeriesKey, frozenset[int]]
    own_time: str
    by_name: bool = False
    left_out: frozenset[str] = frozenset()

    def keep(self, table: str, rows: Columns, *, by_name: bool = False) -> Columns:
        """Return those of the rows, each of one run, of which the run is one that their series is compared with.

        `table`: of the Diff that is made from them, whose key columns they have. `by_name`: all shapes of an operator
        are of the runs of its name.
        """
        runs = rows.integers(RUN_ID)
        in_step = np.isin(runs, sorted(self.step))
        columns = _key_columns(table)
        if not len(rows) or not columns or table in self.left_out:
            return rows if in_step.all() else rows.taken(in_step)
        number, first = number_distinct_rows([rows[name] for name in columns])
        distinct = rows.only(columns).taken(first)
        kept = in_step
        for at, own in enumerate(self._list_own(table, distinct, by_name=by_name or self.by_name)):
            if own is not None:
                is_of_key = number == at
                kept[is_of_key] = np.isin(runs[is_of_key], sorted(own))
        return rows if kept.all() else rows.taken(kept)

    def of_number(self, number: str) -> frozenset[int] | None:
        """Return the runs that a number of a whole run is compared with, None where these are those of the step."""
        return self._of_run(metric_of_number(number), ways=ways_of_number(number))

    def _of_run(self, metric: str, name: str | None = None, ways: Sequence[str] = WAYS) -> frozenset[int] | None:
        """Return the runs of a series of whole runs, of the best of these ways in which it was measured."""
        found = {}
        for key, runs in self.of_series.items():
            if key.kind == RUN and key.metric == metric and name in (None, key.name):
                found[key.part] = runs
        return next((found[way] for way in ways if way in found), None)

    def _list_own(self, table: str, rows: Columns, *, by_name: bool) -> list[frozenset[int] | None]:
        """Return of each of these keys the runs that it is compared with, None where these are those of the step."""
        if table == _IDLE:
            return [self._of_run(IDLE_CAUSE.name, f"{IDLE_SERIES}{cause}") for cause in rows.listed(CAUSE)]
        keys = list_keys(table, rows, self.own_time, by_name=by_name)
        return [self.of_series.get(key) for key in keys]


def _key_columns(table: str) -> tuple[str, ...]:
    if table == _IDLE:
        return ("cause",)
    return KIND_OF_TABLE[table].diff_columns if table in KIND_OF_TABLE else ()


def list_keys(table_name: str, table: Columns, own_time: str, *, by_name: bool) -> list[SeriesKey]:
    """Return the series of each row of a table of KIND_OF_TABLE; NO_SERIES for rows that are none.

    `own_time`: the time by which operators are judged; `by_name`: all shapes of an operator are one row.
    """
    kind = KIND_OF_TABLE[table_name]
    if kind.word == "op" and by_name:
        kind = KIND["op_name"]
    metric = own_time if kind.metrics == OWN_TIMES else kind.metrics[0].name
    return [kind.make_key(metric, values) for values in table.rows(*kind.diff_columns)]
