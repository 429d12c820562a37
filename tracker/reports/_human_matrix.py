"""The matrix of three or more sides for people: rows and versions, as many columns as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rich.cells import cell_len

from tracker.reports._human import NAME, Column, Row, Table, number, readable, share, side_line
from tracker.reports._human_verdicts import TONES
from tracker.reports._layout import GAP, shorten
from tracker.reports._shared import asked, command, records
from tracker.results import Matrix
from tracker.units import (
    MISSING_TEXT,
    format_bytes,
    format_diff,
    format_ns,
    size_unit,
    time_unit,
)

NOTE: Final = (
    "Means per step and rank, the median over the runs of a side; DIFF against the first side. Marks against the side "
    "before: ▲ REGRESSED, ▼ IMPROVED, ? SUSPECT."
)
_MARKS: Final = {"REGRESSED": "▲", "IMPROVED": "▼", "SUSPECT": "?"}
_LABEL: Final = 16
_NAME: Final = 26
_TITLES: Final = {
    "op": "Operators", "kernel": "Kernels", "communication": "Collectives", "module": "Modules",
}  # fmt: skip
_NAMED: Final = 3


def header(matrix: Matrix) -> list[str]:
    """A line per side, then what the runs of each can tell."""
    lines = [side_line(f"{at + 1}", side) for at, side in enumerate(matrix.sides)]
    lines += [
        f"{after.label} against {before.label}: {sentence}"
        for before, after, sentence in zip(matrix.sides, matrix.sides[1:], matrix.judged, strict=False)
    ]
    return [*lines, *(f"Note: {note}" for note in matrix.notes)]


def labels(matrix: Matrix) -> list[str]:
    """The name of each side as it stands over its column: the end of a path, shortened."""
    return [shorten(side.label.rstrip("/").rpartition("/")[2] or side.label, _LABEL) for side in matrix.sides]


def rows_of(matrix: Matrix, limit: int | None) -> list[Row]:
    """Overall rows, then at most `limit` of the others; each with its `cells`, a list by side."""
    cells: dict[int, list[Row]] = {}
    for cell in records(matrix.cells):
        cells.setdefault(cell["row"], []).append(cell)
    rows = [{**row, "cells": cells[row["row"]]} for row in records(matrix.rows)]
    listed = [row for row in rows if row["section"] != "overall"]
    return [row for row in rows if row["section"] == "overall"] + (listed if limit is None else listed[:limit])


def tables(matrix: Matrix, limit: int | None, width: int | None = None) -> list[Table]:
    """The numbers of the whole, and what `by` asks for; `width`: of the terminal, None for all columns."""
    rows = rows_of(matrix, limit)
    texts = {row["row"]: _texts(row) for row in rows}
    heads = labels(matrix)
    widths = [max(cell_len(head), *(cell_len(texts[row["row"]][at]) for row in rows)) for at, head in enumerate(heads)]
    kept = list(range(len(heads))) if width is None else fitting(widths, width - _NAME)
    lost = [heads[at] for at in range(len(heads)) if at not in kept]
    made = []
    for is_overall in (True, False):
        own = [row for row in rows if (row["section"] == "overall") is is_overall]
        title = "Overall, per step and rank" if is_overall else f"{_TITLES[matrix.by]} by their largest movement"
        columns = (Column("metric" if is_overall else "name", **NAME), *(Column(heads[at]) for at in kept))
        cells = tuple((_name(row), *(texts[row["row"]][at] for at in kept)) for row in own)
        tones = tuple(("", *(_tone(row["cells"][at]) for at in kept)) for row in own)
        table = Table(title, columns, cells, ("",) * len(own), cell_tones=tones)
        if not is_overall:
            left = int((matrix.rows["section"] != "overall").sum()) - len(own)
            note = f"No room for {', '.join(lost)}: a wider terminal or --format csv has them." if lost else ""
            table = replace(table, more=left, note=note)
        made.append(table)
    return made


def fitting(widths: Sequence[int], room: int) -> list[int]:
    """Which columns fit into `room`, from both ends to the middle: the first and the last are always there.

    >>> fitting([10, 10, 10, 10], 40), fitting([10, 10, 10, 10], 50)
    ([0, 1, 3], [0, 1, 2, 3])
    """
    count = len(widths)
    order = [at // 2 if at % 2 == 0 else count - 1 - at // 2 for at in range(count)]
    kept: list[int] = []
    for place, at in enumerate(order):
        room -= widths[at] + GAP
        if room < 0 and place > 1:
            break
        kept.append(at)
    return sorted(kept)


def _name(row: Row) -> str:
    indent = "  " * int(row["level"] or 0)
    if row["section"] == "overall":
        return indent + str(row["name"])
    return " ".join(filter(None, (readable(row["name"]), row["input_shapes"], row["part"])))


def _tone(cell: Row) -> str:
    return TONES.get(cell["verdict"] or "", "") if cell["verdict"] in _MARKS else ""


def _texts(row: Row) -> list[str]:
    """The cell of each side: its value in the unit of the row, DIFF, and the mark of its verdict."""
    values = [cell["value"] for cell in row["cells"]]
    return [_text(row, cell, values) for cell in row["cells"]]


def _text(row: Row, cell: Row, values: Sequence[float | None]) -> str:
    if cell["value"] is None:
        return MISSING_TEXT
    value = _value(row, cell["value"], values)
    change = "" if cell["side"] == 0 or cell["diff"] is None or row["unit"] == "ratio" else format_diff(cell["diff"])
    return " ".join(filter(None, (value, change, _MARKS.get(cell["verdict"] or "", ""))))


def _value(row: Row, value: float, values: Sequence[float | None]) -> str:
    if row["unit"] == "ns":
        return format_ns(value, time_unit(*values))
    if row["unit"] == "bytes":
        return format_bytes(value, size_unit(*values))
    return share(value) if row["unit"] == "ratio" else number(value)


def answer(matrix: Matrix) -> str:
    """The total of the last side against the first, and with which side which rows became worse."""
    rows = rows_of(matrix, None)
    heads = labels(matrix)
    found = []
    total = next((row for row in rows if row["part"] in ("step_ns", "e2e_ns")), None)
    if total is not None and None not in (ends := [total["cells"][at]["value"] for at in (0, -1)]):
        unit = time_unit(*ends)
        size = " -> ".join(format_ns(value, unit) for value in ends)
        change = format_diff(total["cells"][-1]["diff"])
        found.append(f"{heads[-1]} against {heads[0]}: {total['name'].lower()} {size} ({change})")
    for at in range(1, len(heads)):
        names = [row for row in rows if row["section"] != "overall" and row["cells"][at]["verdict"] == "REGRESSED"]
        if names:
            shown = ", ".join(readable(row["name"]) for row in names[:_NAMED])
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            found.append(f"REGRESSED with {heads[at]}: {shown}{more}")
    return "; ".join(found or [f"{len(heads)} sides"]) + "."


def hint(matrix: Matrix) -> str:
    """The command that gives all details."""
    chosen = matrix.options
    words = asked(
        chosen,
        ("--by", None if matrix.by == "op" else matrix.by),
        ("--match", None if chosen.match == "shape" else chosen.match),
    )
    sides = (side.label for side in matrix.sides)
    return f"Details: {command('tracker', 'diff', *sides, *words, '--format', 'xlsx', '-o', 'diff.xlsx')}"
