"""Limits of the judgement that users set: what holds in a line, setting one, taking one back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, text

from tracker.results.thresholds import Threshold
from tracker.store import bulk
from tracker.store.judged import Line
from tracker.store.sql import statement

_PLACE: Final = ("workload_id", "configuration_id", "device_id", "kind", "pattern", "name")
_FORGET: Final = text(f"DELETE FROM threshold WHERE {' AND '.join(f'{name} = :{name}' for name in _PLACE)}")  # noqa: S608 names of above


def of_line(connection: Connection, line: Line) -> tuple[Threshold, ...]:
    """The limits that hold in a line, those of its whole workload among them, in a fixed order."""
    rows = connection.execute(statement("line_thresholds"), line.parameters).all()
    return tuple(
        Threshold(
            row.name, row.threshold, row.kind, row.pattern, row.configuration_id, row.device_id, row.who, row.when_ns,
            row.reason,
        )
        for row in rows
    )  # fmt: skip


def write(connection: Connection, workload_id: int, limits: Sequence[Threshold]) -> None:
    """Set these limits, each in place of the one that stood for the same place and series."""
    for limit in limits:
        connection.execute(_FORGET, _place(workload_id, limit))
    columns = (*_PLACE, "value", "who", "when_ns", "reason")
    rows = [
        (
            *_place(workload_id, limit).values(),
            limit.value,
            bulk.clean(limit.who),
            limit.when_ns,
            bulk.clean(limit.reason),
        )
        for limit in limits
    ]
    bulk.insert(connection, "threshold", columns, rows)


def forget(connection: Connection, workload_id: int, limit: Threshold) -> bool:
    """Take back the limit of this name, place and series, whatever its value; whether there was one."""
    return connection.execute(_FORGET, _place(workload_id, limit)).rowcount > 0


def _place(workload_id: int, limit: Threshold) -> dict[str, Any]:
    place = {name: getattr(limit, name) for name in _PLACE[1:]}
    return {"workload_id": workload_id, **place, "pattern": bulk.clean(limit.pattern)}
