"""Slow steps of a run or of the sides of a diff, with what makes them slow, and the causes of the mean step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from tracker.reports import cells
from tracker.reports.document import NAME, SENTENCE, Column, Look, Table
from tracker.reports.rows import table_of
from tracker.results import MeanCause, MeanChange, SlowStep
from tracker.results.slow_steps import MOST_SLOW_STEPS
from tracker.units import format_ns, time_unit

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Named(Struct, frozen=True):
    """A slow step with the name of its side, "" where there is one side."""

    side: str
    slow: SlowStep


def slow_steps_table(
    steps_of_side: Mapping[str, Sequence[SlowStep]], look: Look, cost_ns: float | None = None
) -> Table:
    """Return the slowest steps of each side, and how many more there are; `steps_of_side`: by the name of the side.
    `cost_ns`: how much longer they make the mean step than the median, None where that stands elsewhere.
    """
    limit = None if look.details else MOST_SLOW_STEPS
    rows: list[_Named] = []
    more = 0
    for side, slow_steps in steps_of_side.items():
        shown = slow_steps[:limit]
        more += len(slow_steps) - len(shown)
        rows += [_Named(side, slow) for slow in shown]
    columns = [
        Column("slow step", lambda row: f"{row.side}: {row.slow.name}" if row.side else row.slow.name, **NAME),
        Column("time", lambda row: row.slow.time),
        Column("longer than the median", lambda row: row.slow.reason, **SENTENCE),
    ]
    note = "" if cost_ns is None else f"They make the mean step {format_ns(cost_ns)} longer than the median step."
    return table_of("", columns, rows, more=more, is_first=True, note=note)


def mean_table(mean: MeanChange) -> Table:
    """Return the causes of the change of the mean step, which add up to it."""
    unit = time_unit(mean.delta_ns, *(cause.delta_ns for cause in mean.causes))
    whole = MeanCause("= mean step", mean.delta_ns)
    columns = [
        Column("cause of the mean", lambda row: row.name, **NAME),
        Column("change", lambda row: cells.signed(format_ns(row.delta_ns, unit), row.delta_ns)),
        Column("of change", lambda row: cells.share_of_change(row.delta_ns / mean.delta_ns)),
    ]
    adds = (*(one.delta_ns for one in mean.causes), None)

    def tone(row: MeanCause) -> str:
        return "strong" if row is whole else ""

    return table_of("", columns, [*mean.causes, whole], is_first=True, tone=tone, adds=adds)
