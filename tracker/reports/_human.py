"""Tables for people: full names, one unit for all values of a row; `to_text` and `to_markdown` decide how they look."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.profile import NO_OP, NOT_LISTED, UNLINKED_OP
from tracker.reports import _human_verdicts
from tracker.reports.shared import is_small, records
from tracker.results import BOTH, UNMATCHED, Diff, Side
from tracker.units import MISSING_TEXT, counted, format_bytes, format_diff, format_ns, size_unit, steps_words, time_unit

if TYPE_CHECKING:
    import pandas as pd

    from tracker.columns import Columns

Row = dict[str, Any]
Unit = tuple[int, str]

GRAIN: Final = ("stage", "rank", "step")
READABLE: Final = {
    UNLINKED_OP: "(unlinked) no launch in the capture",
    NO_OP: "(no op) launched outside any op",
    NOT_LISTED: "(not listed) left out of the source's table",
}


class Column(Struct, frozen=True):
    """A column of text. `elastic`: may be shortened. `fold`: may move under the first elastic column of its row.

    `drop`: what may be left out where there is no room, highest first; 0 never. `code`: holds names from a profile.
    `place`: holds code lines, of which the file name must stay.
    `header`: of one line, or of several that all columns of the table have.
    """

    header: str
    left: bool = False
    elastic: bool = False
    fold: bool = False
    drop: int = 0
    code: bool = False
    place: bool = False


class Table(Struct, frozen=True):
    """Rows of cells for people. `tones`: per row `worse`, `better`, `sum`, `strong` or nothing. `more`: rows that are
    not shown. `lead`: a line between title and rows. `below`: per row a sentence under it, or ""; empty for none.
    `cell_tones`: per row the tone of each cell, where they differ; then no column may fold or drop.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    tones: tuple[str, ...]
    more: int = 0
    note: str = ""
    lead: str = ""
    below: tuple[str, ...] = ()
    cell_tones: tuple[tuple[str, ...], ...] = ()


PAIR: Final = re.compile(r" (?=[^ =]+=)")
"""Between the pairs of a configuration as text: `batch=32 precision=bf16`."""
WORDS: Final = {"left": True, "elastic": True}
NAME: Final = WORDS | {"code": True}
UNDER: Final = NAME | {"fold": True}
PLACE: Final = UNDER | {"place": True}


def make(
    title: str, columns: Sequence[Column], rows: Sequence[tuple[str, Sequence[str]]], *, more: int = 0, note: str = ""
) -> Table:
    """A table from (tone, cells) pairs."""
    return Table(
        title, tuple(columns), tuple(tuple(cells) for _, cells in rows), tuple(tone for tone, _ in rows), more, note
    )


def level(columns: Sequence[Column]) -> list[Column]:
    """`columns` with headers of equally many lines, empty ones on top."""
    height = max(column.header.count("\n") for column in columns)
    return [replace(column, header="\n" * (height - column.header.count("\n")) + column.header) for column in columns]


def readable(name: Any) -> str:
    """An op name as people should read it; the stand-ins for missing ops say what they are."""
    return MISSING_TEXT if name in (None, "") else READABLE.get(str(name), str(name))


def series_name(row: Mapping[str, Any]) -> str:
    """The name of the series of a row with `kind` and `name`, as people should read it."""
    return readable(str(row["name"]))


def signed(text: str, value: float | None) -> str:
    """`text` of a change with its sign; no sign where it shows as zero."""
    digits = text.lstrip("-")
    if value is None or not any(char in "123456789" for char in digits):
        return digits if value is not None else text
    return text if value < 0 else f"+{text}"


def number(value: float | None) -> str:
    """A count, or a mean of counts.

    >>> number(1200), number(2.5), number(0.333), number(None)
    ('1,200', '2.5', '0.33', '-')
    """
    if value is None:
        return MISSING_TEXT
    text = f"{value:,.2f}".rstrip("0").rstrip(".")
    return text or "0"


def share(value: float | None) -> str:
    """A quotient in per cent.

    >>> share(0.125), share(-0.0001), share(None)
    ('12.5 %', '0.0 %', '-')
    """
    return MISSING_TEXT if value is None else f"{round(value * 100, 1) + 0.0:.1f} %"


def calls_cell(baseline: float | None, candidate: float | None) -> str:
    """The calls of both sides; of the one side that has some where a row is on one side only."""
    if baseline is None or candidate is None:
        return number(candidate if baseline is None else baseline)
    return pair(number(baseline), number(candidate))


def pair(baseline: str, candidate: str) -> str:
    """Two cells as one: `12` where they are equal, else `12 -> 14`."""
    return baseline if baseline == candidate else f"{baseline} -> {candidate}"


def cell(value: float | None, unit: str, *beside: float | None) -> str:
    """A number in the unit that suits it and the values beside it."""
    if unit == "ns":
        return format_ns(value, time_unit(value, *beside))
    if unit == "bytes":
        return format_bytes(value, size_unit(value, *beside))
    return number(value)


def _grain(row: Row) -> str:
    return ", ".join(f"{name} {number(row[name])}" for name in GRAIN if name in row)


def grain_columns(rows: Sequence[Row]) -> list[Column]:
    """The column that says of which stage, rank or step a row is; none where rows are not kept apart by these."""
    return [Column("of", left=True)] if rows and _grain(rows[0]) else []


def grain_cells(row: Row) -> list[str]:
    """The cell under `grain_columns`."""
    return [_grain(row)] if _grain(row) else []


def per_call(row: Row) -> list[str]:
    """Average, minimum and maximum of one call, in one unit."""
    total, calls = row["total_ns"], row["calls"]
    times = [total / calls if total is not None and calls else None, row["min_ns"], row["max_ns"]]
    return [cell(time, "ns", *times) for time in times]


def values(
    unit_name: str, baseline: float | None, candidate: float | None, delta: float | None
) -> tuple[str, str, str]:
    """Baseline, candidate and change in one unit; `unit_name`: ns, bytes, count or ratio."""
    form: Callable[[float | None], str]
    if unit_name == "ns":
        form = partial(format_ns, unit=time_unit(baseline, candidate, delta))
    elif unit_name == "bytes":
        form = partial(format_bytes, unit=size_unit(baseline, candidate, delta))
    elif unit_name == "ratio":
        change = MISSING_TEXT if delta is None else signed(f"{delta * 100:.1f} pp", delta)
        return share(baseline), share(candidate), change
    else:
        form = number
    return form(baseline), form(candidate), signed(form(delta), delta)


def tone(row: Row, delta: float | None) -> str:
    """By its verdict where it was judged, else `worse` or `better` by the sign of the change, unless it is small."""
    if row.get("verdict"):
        return _human_verdicts.TONES.get(row["verdict"], "")
    if not delta or row.get("status") == UNMATCHED or (row.get("status", BOTH) == BOTH and is_small(row.get("diff"))):
        return ""
    return "worse" if delta > 0 else "better"


def diff_cell(row: Row) -> str:
    """DIFF in per cent, or ADDED, REMOVED or UNMATCHED."""
    status = row.get("status", BOTH)
    return str(status) if status not in (BOTH, None) else format_diff(row.get("diff"))


def group_words(row: Row) -> str:
    """The key of a communication row behind its kind: group, data type, size class.

    >>> group_words({"group_role": "dp", "group_size": 8, "data_type": "bfloat16", "size_class_bytes": 1 << 20})
    'dp x8, bfloat16, size class 1.00 MiB'
    """
    size, class_bytes = row["group_size"], row["size_class_bytes"]
    # the match keys of the store are never NULL: -1 and 0 stand for "the source does not say" there
    group = " ".join(filter(None, (row["group_role"], f"x{number(size)}" if size and size > 0 else "")))
    size_class = f"size class {format_bytes(class_bytes)}" if class_bytes and class_bytes > 0 else ""
    return ", ".join(filter(None, (group, row["data_type"], size_class))) or MISSING_TEXT


def side_columns(what: str = "", calls: str = "calls") -> list[Column]:
    """The columns that every comparison ends with."""
    counts = [Column(calls, drop=1)] if calls else []
    return [*counts, Column(f"baseline{what}"), Column(f"candidate{what}"), Column("change"), Column("DIFF")]


def verdict_columns(table: Columns | pd.DataFrame) -> list[Column]:
    """The columns over `_human_verdicts.cells`."""
    return (
        [Column("verdict", left=True), Column("judged", drop=2), Column("q", drop=3)]
        if _human_verdicts.judged(table)
        else []
    )


def side_cells(row: Row, of: str = "ns", unit: str = "ns") -> list[str]:
    """The cells under `side_columns`: calls, both values, change, DIFF."""
    calls = calls_cell(row.get("baseline_calls"), row.get("candidate_calls"))
    cells = values(unit, row.get(f"baseline_{of}"), row.get(f"candidate_{of}"), row.get(f"delta_{of}"))
    return [calls, *cells, diff_cell(row)]


def top(table: Columns | pd.DataFrame, limit: int | None) -> tuple[list[Row], int]:
    """The first rows of a table that is ordered by importance, and how many are left out."""
    rows = records(table if limit is None else table.head(limit))
    return rows, len(table) - len(rows)


def side_line(
    role: str, side: Side, total_metric: str = "", totals: tuple[float, float] | None = None, ranged: int | None = None
) -> str:
    """What a side is, how much lies behind its numbers, and how far `totals` of its runs, `ranged` ones, lie apart."""
    what = ", ".join(filter(None, (side.workload, side.device, side.configuration)))
    counts = ", ".join(counted(*pair) for pair in ((side.runs, "run"), (side.ranks, "rank")))
    steps = f"only {steps_words(side.chosen_steps)}" if side.chosen_steps else _steps(side)
    return f"{role} {side.label}: {what}; {counts}, {steps}{_spread(side, total_metric, totals, ranged)}"


def _steps(side: Side) -> str:
    few = side.fewest_steps
    return f"{'' if few is None or few == side.steps else f'{few:,} to '}{counted(side.steps, 'step')}"


def _spread(side: Side, total_metric: str, totals: tuple[float, float] | None, ranged: int | None) -> str:
    if totals is None or side.runs < 2:
        return ""
    unit = time_unit(*totals)
    word = "step" if total_metric == "step_ns" else "E2E"
    some = "" if ranged is None or ranged == side.runs else f"{ranged} of "
    return (
        f"; {word} {format_ns(totals[0], unit)} to {format_ns(totals[1], unit)} over {some}{counted(side.runs, 'run')}"
    )


def side_lines(diff: Diff, roles: tuple[str, str] = ("baseline", "candidate")) -> list[str]:
    """The line of each side."""
    found = diff.explanation
    ranges = (found.baseline_range_ns, found.candidate_range_ns)
    return [
        side_line(role, side, found.total_metric, totals, ranged)
        for role, side, totals, ranged in zip(
            roles, (diff.baseline, diff.candidate), ranges, found.ranged_runs or (None, None), strict=True
        )
    ]


def metric_words(diff: Diff) -> str:
    """What the times of ops are, in words."""
    return "host self time" if diff.metric == "host_self_ns" else "device self time"
