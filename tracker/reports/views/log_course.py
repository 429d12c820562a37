"""The course of a run whose training log was read: how even its intervals are, and what its median leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from tracker.profile import LOG_COUNTERS
from tracker.reports.cells import ColumnsOf, measured, number, readable
from tracker.reports.document import NAME, Table
from tracker.reports.rows import table_of
from tracker.results.shown_rows import CounterRow
from tracker.units import NS_PER_MS, format_ns

_WINDOW: Final = "slow window, "
_ORDER: Final = ("step time", "jitter", "stall", "left out", "mfu", "throughput", "timer")
"""Beginnings of the names, in the order of the rows."""


def table_of_course(counters: Sequence[CounterRow], ranks: int) -> Table | None:
    """Return the table of the counters that a training log fills; None where no log was read. `ranks`: of the run; of
    several the quantiles are those of rank 0, and what the median leaves out and timers are means of all.
    """
    found = [row for row in counters if row.source == LOG_COUNTERS]
    if not found:
        return None
    columns = [
        _line.text("measure", lambda line: readable(line.name), **NAME),
        _line.number("intervals", lambda line: number(line.intervals)),
        _line.number("value", lambda line: line.value),
        _line.number("smallest", lambda line: line.smallest),
        _line.number("largest", lambda line: line.largest),
    ]
    title = "Course of the run" if ranks == 1 else f"Course of rank 0; left out and timers: means of {ranks} ranks"
    return table_of(title, columns, list(_lines(found)), None, is_first=True)


class _CourseLine(Struct, frozen=True):
    """A number of the course of a run: over how many intervals, and its extremes where it has some."""

    name: str
    intervals: int | None
    value: str
    smallest: str = ""
    largest: str = ""


_line: Final = ColumnsOf(_CourseLine)


def _lines(found: Sequence[CounterRow]) -> Iterator[_CourseLine]:
    for row in sorted(found, key=lambda row: (_place(row.name), row.name)):
        if row.name.startswith(_WINDOW):
            continue
        value, smallest, largest = (_text(number, row.attribute) for number in (row.mean, row.min, row.max))
        if smallest == largest == value:
            yield _CourseLine(row.name, row.calls, value)
        else:
            yield _CourseLine(row.name, row.calls, value, smallest, largest)
    window = {row.name.removeprefix(_WINDOW): row for row in found if row.name.startswith(_WINDOW)}
    if len(window) == 3:
        first, last, ratio = (window[name] for name in ("first step", "last step", "by the rest"))
        steps = f"{number(round(first.mean))} to {number(round(last.mean))}"
        yield _CourseLine(f"slow window: steps {steps}", ratio.calls, f"+{(ratio.mean - 1) * 100:.1f} % to the others")


def _place(name: str) -> int:
    return next((at for at, start in enumerate(_ORDER) if name.startswith(start)), len(_ORDER))


def _text(value: float, attribute: str) -> str:
    if attribute == "ms":
        return format_ns(value * NS_PER_MS)
    if attribute in ("count", "step"):
        return number(round(value))
    unit = "" if attribute == "ratio" else f" {attribute}"
    return f"{measured(value)}{unit}"
