"""The course of a run whose training log was read: how even its intervals are, and what its median leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tracker.profile import LOG_COUNTERS
from tracker.reports.cells import col, measured, number
from tracker.reports.document import NAME, Column, Table
from tracker.reports.rows import Row, table_of
from tracker.units import NS_PER_MS, format_ns

_WINDOW: Final = "slow window, "
_ORDER: Final = ("step time", "jitter", "stall", "left out", "mfu", "throughput", "timer")
"""Beginnings of the names, in the order of the rows."""


def table_of_course(counters: Sequence[Row], ranks: int) -> Table | None:
    """Return the table of the counters that a training log fills; None where no log was read. `ranks`: of the run; of
    several the quantiles are those of rank 0, and what the median leaves out and timers are means of all.
    """
    found = [row for row in counters if row["source"] == LOG_COUNTERS]
    if not found:
        return None
    columns = [
        col("measure", "name", **NAME), Column("intervals", lambda row: number(row["intervals"])),
        Column("value", lambda row: str(row["value"])),
        Column("smallest", lambda row: str(row["smallest"])), Column("largest", lambda row: str(row["largest"])),
    ]  # fmt: skip
    title = "Course of the run" if ranks == 1 else f"Course of rank 0; left out and timers: means of {ranks} ranks"
    return table_of(title, columns, list(_rows(found)), None, is_first=True)


def _rows(found: Sequence[Row]) -> Iterator[Row]:
    ordered = sorted(found, key=lambda row: (_place(row["name"]), row["name"]))
    for row in ordered:
        if row["name"].startswith(_WINDOW):
            continue
        value, smallest, largest = (_text(row[name], row["attribute"]) for name in ("mean", "min", "max"))
        is_single = smallest == largest == value
        yield {
            "name": row["name"], "intervals": row["calls"], "value": value,
            "smallest": "" if is_single else smallest, "largest": "" if is_single else largest,
        }  # fmt: skip
    window = {row["name"].removeprefix(_WINDOW): row for row in found if row["name"].startswith(_WINDOW)}
    if len(window) == 3:
        first, last, ratio = (window[name] for name in ("first step", "last step", "by the rest"))
        yield {
            "name": f"slow window: steps {number(round(first['mean']))} to {number(round(last['mean']))}",
            "intervals": ratio["calls"], "value": f"+{(ratio['mean'] - 1) * 100:.1f} % to the others",
            "smallest": "", "largest": "",
        }  # fmt: skip


def _place(name: str) -> int:
    return next((at for at, start in enumerate(_ORDER) if name.startswith(start)), len(_ORDER))


def _text(value: float, attribute: str) -> str:
    if attribute == "ms":
        return format_ns(value * NS_PER_MS)
    if attribute in ("count", "step"):
        return number(round(value))
    unit = "" if attribute == "ratio" else f" {attribute}"
    return f"{measured(value)}{unit}"
