"""What a cut table does not list, from the totals that the summary states elsewhere.

Authors of reports and logs shorten the long tables (Operator, Kernel). The ratios that are left are still those of the
whole table, and the Overview still counts all kernels: total / ratio is the sum of the whole table. What is missing
from it becomes a row of its own, so that sums and shares are those of the run and not those of the lines that were
kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from tracker.readers.paddle_summary.sections import Kind, Row, Sections, Spread

_COMPLETE: Final = 99.0
"""Ratios of a whole table sum to 100 %, but for what rounding loses."""
_ROUNDING: Final = 0.005
"""Per cent that rounding can take from each row: ratios are printed with two digits."""

_Side = Callable[[Row], Spread]


class Rest(Struct, frozen=True):
    """What a table does not list. None: the text does not say it. `whole_ns`: the sum of the whole table."""

    whole_ns: int | None
    listed_ns: int
    calls: int | None = None

    @property
    def ns(self) -> int | None:
        """The time of the rows that are not listed."""
        return None if self.whole_ns is None else max(0, self.whole_ns - self.listed_ns)


def kernels_left_out(sections: Sections) -> Rest | None:
    """The kernels that a Kernel Summary does not list; None where it lists all, or is not there."""
    rows = sections.spreads.get("Kernel", [])
    stated = sections.overview.get(("GPU", "Kernel"), Kind(None, None)).calls
    listed = sum(row.calls or 0 for row in rows)
    if not rows or stated == listed:
        return None
    rest = _rest(sections, "Kernel", rows, lambda row: row.device)
    if stated is None or stated < listed:
        return rest
    whole_ns = rest.whole_ns if rest else None
    return Rest(whole_ns, _sum(rows, lambda row: row.device), stated - listed)


def collectives_left_out(sections: Sections, listed: Sequence[Row]) -> Rest | None:
    """The collectives among the kernels that are not listed. `listed`: those that are. None where all are."""
    stated = sections.overview.get(("GPU", "Communication"), Kind(None, None))
    calls = (stated.calls or 0) - sum(row.calls or 0 for row in listed)
    if calls <= 0:
        return None
    return Rest(stated.time_ns, _sum(listed, lambda row: row.device), calls)


def ops_left_out(sections: Sections) -> tuple[Rest | None, Rest | None]:
    """The ops that an Operator Summary does not list: their time on the host, and on the device."""
    rows = [row for row in sections.spreads.get("Operator", ()) if row.level == 0]
    host = _rest(sections, "Operator", rows, lambda row: row.host)
    return host, _rest(sections, "Operator", rows, lambda row: row.device)


def _rest(sections: Sections, title: str, rows: Sequence[Row], side: _Side) -> Rest | None:
    """None for a table that is whole."""
    percents = [share for row in rows if (share := side(row).percent) is not None]
    is_cut = title in sections.shortened
    lacking = 0 < sum(percents) + _ROUNDING * len(percents) < _COMPLETE
    if not rows or not (is_cut or lacking):
        return None
    timed = [row for row in rows if (side(row).percent or 0) > 0 and side(row).total_ns is not None]
    percent = sum(side(row).percent or 0.0 for row in timed)
    total = _sum(timed, side)
    return Rest(round(total / percent * 100) if percent else None, _sum(rows, side))


def _sum(rows: Sequence[Row], side: _Side) -> int:
    return sum(side(row).total_ns or 0 for row in rows)
