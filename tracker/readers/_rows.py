"""Tables of `Rows`, made row by row: for sources that have sums already, and few of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tracker.profile import MISSING, ROW_COLUMNS, Breakdown, Column, Table

_LEFT_OUT: Final[Mapping[str, Any]] = {"text": "", "int": MISSING, "ns": MISSING, "bytes": MISSING, "float": np.nan}

Row = Mapping[str, Any]


class Keys:
    """A dimension table in the making: `at(...)` is the position of a key, new or known.

    >>> keys = Keys("op_key"); keys.at(name="mm"), keys.at(name="mm", phase="forward"), keys.at(name="mm")
    (0, 1, 0)
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._places: dict[tuple[str, ...], int] = {}

    def at(self, **texts: str) -> int:
        """The row of the key with these columns, the others empty."""
        key = tuple(texts.get(column, "") for column in ROW_COLUMNS[self._name])
        return self._places.setdefault(key, len(self._places))

    def table(self) -> Table:
        """All keys, in order of first use."""
        columns = list(ROW_COLUMNS[self._name])
        return {column: [key[place] for key in self._places] for place, column in enumerate(columns)}


def table(name: str, rows: Sequence[Row]) -> Table:
    """A table of `Rows` of that name; what a row leaves out or has as None is missing ('', MISSING, NaN).

    >>> table("memory_curve", [{"component": "cpu", "time_ns": 3}])["time_ns"].tolist()
    [3]
    """
    columns: dict[str, Column] = {}
    for column, kind in ROW_COLUMNS[name].items():
        values = [row.get(column) for row in rows]
        known = [_LEFT_OUT[kind] if value is None else value for value in values]
        if kind == "text":
            columns[column] = known
        else:
            columns[column] = np.array(known, dtype=np.float64 if kind == "float" else np.int64)
    return columns


def tables(keys: Sequence[tuple[str, Table]], facts: Mapping[str, Sequence[Row]]) -> dict[str, Table]:
    """All tables of `Rows`, in their order: the dimensions `keys`, the rows of `facts`, all others empty."""
    made = dict(keys)
    return {name: made[name] if name in made else table(name, facts.get(name, ())) for name in ROW_COLUMNS}


def breakdown(timeline: str, **values: Any) -> Breakdown:
    """A breakdown of which only `values` are known."""
    unknown: dict[str, Any] = dict.fromkeys(Breakdown.__struct_fields__)
    return Breakdown(**{**unknown, "timeline": timeline, **values})
