"""Moves the times of a capture from the clock of the machine to UTC."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from tracker.profile import I64, MISSING, EventColumns, Events
from tracker.readers.cann.info import DATE_NS, Clock

_TABLES: Final = ("ops", "frames", "launches", "device", "allocations", "markers")
_EXTRAS: Final = ("collective_tasks", "memory_points")
_TIMES: Final = ("start_ns", "end_ns", "time_ns")


def span_of(events: Events) -> tuple[int, int] | None:
    """First and last time of all that happened; None where nothing did."""
    columns = [column for table in _tables(events) for column in _times(table).values() if len(column)]
    if not columns:
        return None
    return min(int(column.min()) for column in columns), max(int(column.max()) for column in columns)


def dated(events: Events, clock: Clock | None) -> tuple[Events, bool]:
    """The events with times in UTC and True; as they are and False where nothing says what date their clock shows.

    CANN 7 and later write dates. Before, times are those of CLOCK_MONOTONIC_RAW, and start_info has the date at which
    that clock stood where; its offset is only used where all events lie between start and end of the capture.
    """
    span = span_of(events)
    if span is None or span[0] >= DATE_NS:
        return events, span is not None
    if clock is None or not clock.covers(*span):
        return events, False
    shifted = {name: _shifted(getattr(events, name), clock.to_utc_ns) for name in _TABLES}
    extras = {name: _shifted(getattr(events.extras, name), clock.to_utc_ns) for name in _EXTRAS}
    extras["handover_ns"] = _later(events.extras.handover_ns, clock.to_utc_ns)
    return replace(events, **shifted, extras=replace(events.extras, **extras)), True


def _tables(events: Events) -> Iterator[Any]:
    yield from (getattr(events, name) for name in _TABLES)
    yield from (getattr(events.extras, name) for name in _EXTRAS)


def _times(table: EventColumns) -> dict[str, Any]:
    return {name: getattr(table, name) for name in _TIMES if hasattr(table, name)}


def _shifted(table: Any, offset_ns: int) -> Any:
    return replace(table, **{name: _later(column, offset_ns) for name, column in _times(table).items()})


def _later(times_ns: I64, offset_ns: int) -> I64:
    shifted: I64 = times_ns + offset_ns * (times_ns != MISSING)
    return shifted
