"""The matrix of three or more sides for people: rows and versions, as many columns as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace
from rich.cells import cell_len

from tracker.reports._human import NAME, Column, Row, Table, number, readable, share, side_line, signed
from tracker.reports._human_verdicts import TONES
from tracker.reports._layout import GAP, shorten
from tracker.reports.shared import asked, command_of, records
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
    "Numbers are per step, as in tracker diff of two sides; DIFF against the first side. Marks against the side "
    "before: ▲ REGRESSED or ADDED, ▼ IMPROVED or REMOVED, ? SUSPECT."
)
_FOUND: Final = ("REGRESSED", "ADDED", "SUSPECT", "IMPROVED", "REMOVED")
_MARKS: Final = {"REGRESSED": "▲", "ADDED": "▲", "IMPROVED": "▼", "REMOVED": "▼", "SUSPECT": "?"}
_LABEL: Final = 16
_NAME: Final = 26
_TITLES: Final = {
    "op": "Operators", "kernel": "Kernels", "communication": "Collectives", "module": "Modules",
}  # fmt: skip
_NAMED: Final = 3


def header(matrix: Matrix) -> list[str]:
    """A line per side, then what the runs of each can tell."""
    lines = [side_line(f"{at + 1}", side) for at, side in enumerate(matrix.sides)]
    whole = numbered([side.label for side in matrix.sides])
    lines += [
        f"{after} against {before}: {sentence}"
        for before, after, sentence in zip(whole, whole[1:], matrix.judged, strict=False)
    ]
    return [*lines, *(f"Note: {note}" for note in matrix.notes)]


def labels(matrix: Matrix) -> list[str]:
    """The name of each side as it stands over its column, shortened; no two are equal."""
    return distinct([side.label for side in matrix.sides])


def distinct(names: Sequence[str]) -> list[str]:
    """Paths by their last part, those of one name by as many parts as tell them apart; what stands twice is numbered.

    >>> distinct(["runs/old/t.json", "runs/new/t.json", "v3"]), distinct(["x/a.json", "b/a.json", "x/a.json"])
    (['old/t.json', 'new/t.json', 'v3'], ['a.json (1)', 'b/a.json', 'a.json (3)'])
    """
    parts = [name.rstrip("/").split("/") for name in names]
    heads = [part[-1] if parts.count(part) > 1 else _telling(part, parts) for part in parts]
    short = [shorten(head, _LABEL) for head in heads]
    # what only its cut middle tells apart stays whole
    texts = [head if short.count(text) > heads.count(head) else text for head, text in zip(heads, short, strict=True)]
    return numbered(texts)


def _telling(path: list[str], paths: Sequence[list[str]]) -> str:
    """As many of the last parts of `path` as no other path ends with."""
    others = [other for other in paths if other != path]
    counts = range(1, len(path))
    count = next((n for n in counts if all(other[-n:] != path[-n:] for other in others)), len(path))
    return "/".join(path[-count:])


def numbered(names: Sequence[str]) -> list[str]:
    """Whole labels; equal ones with their place, so that a file tells their columns apart.

    >>> numbered(["v1", "v2", "v1"])
    ['v1 (1)', 'v2', 'v1 (3)']
    """
    return [f"{name} ({at})" if names.count(name) > 1 else name for at, name in enumerate(names, start=1)]


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
        title = "Overall, per step" if is_overall else f"{_TITLES[matrix.by]} by their largest movement"
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
    mark = _MARKS.get(cell["verdict"] or "", "")
    if cell["value"] is None:
        return " ".join(filter(None, (MISSING_TEXT, mark)))
    value = _value(row, cell["value"], values)
    change = "" if cell["side"] == 0 or cell["diff"] is None or row["unit"] == "ratio" else format_diff(cell["diff"])
    return " ".join(filter(None, (value, change, mark)))


def _value(row: Row, value: float, values: Sequence[float | None]) -> str:
    if row["unit"] == "ns":
        return format_ns(value, time_unit(*values))
    if row["unit"] == "bytes":
        return format_bytes(value, size_unit(*values))
    return share(value) if row["unit"] == "ratio" else number(value)


def answer(matrix: Matrix) -> str:
    """What the total of the last side is against the first, and what carries that; then what came with which side."""
    rows, heads = rows_of(matrix, None), labels(matrix)
    total = next((row for row in rows if row["part"] in ("step_ns", "e2e_ns")), None)
    listed = [row for row in rows if row["section"] != "overall"]
    found = [_ends(total, listed, heads)]
    found += [_came_with(total, listed, heads, at) for at in range(1, len(heads))]
    return "; ".join(filter(None, found)) + "."


def _ends(total: Row | None, listed: Sequence[Row], heads: Sequence[str]) -> str:
    """The last side against the first: the total, the name that changed most, and what only one of them has."""
    words = []
    if total is not None and None not in (ends := [total["cells"][at]["value"] for at in (0, -1)]):
        unit = time_unit(*ends)
        size = " -> ".join(format_ns(value, unit) for value in ends)
        change = f"{format_diff(total['cells'][-1]['diff'])}, {_signed(ends[1] - ends[0])}"
        words.append(f"{total['name'].lower()} {size} ({change})")
    last = len(heads) - 1
    if changes := _by_name(listed, 0, last):
        name = max(changes, key=lambda name: abs(changes[name]))
        words.append(f"largest change {readable(name)} {_signed(changes[name])}")
    names = [_names_with(listed, side) for side in (0, last)]
    for own, other, head in ((names[1], names[0], heads[last]), (names[0], names[1], heads[0])):
        if only := [name for name in own if name not in other]:
            words.append(f"only in {head}: {_some(only)}")
    return f"{heads[last]} against {heads[0]}: {', '.join(words)}" if words else f"{len(heads)} sides"


def _came_with(total: Row | None, listed: Sequence[Row], heads: Sequence[str], at: int) -> str:
    """What was found in a side against the one before; "" for nothing."""
    words = []
    verdict = None if total is None else total["cells"][at]["verdict"]
    values = [] if total is None else [total["cells"][place]["value"] for place in (at - 1, at)]
    if total is not None and verdict in _MARKS and None not in values:
        before, now = values
        change = f"{_signed(now - before)}, {format_diff(total['cells'][at]['previous_diff'])}"
        words.append(f"{total['name'].lower()} {verdict} ({change})")
    changes = _by_name(listed, at - 1, at)
    for word in _FOUND:
        names = dict.fromkeys(row["name"] for row in listed if row["cells"][at]["verdict"] == word)
        if names:
            ranked = sorted(names, key=lambda name: -abs(changes.get(name, 0.0)))
            words.append(f"{word} {_some([f'{readable(name)} {_signed(changes.get(name, 0.0))}' for name in ranked])}")
    return f"with {heads[at]}: {', '.join(words)}" if words else ""


def _by_name(listed: Sequence[Row], before: int, after: int) -> dict[str, float]:
    """Name -> how much more time all its rows take in one side than in another; a side without a row takes none."""
    found: dict[str, float] = {}
    for row in listed:
        change = (row["cells"][after]["value"] or 0.0) - (row["cells"][before]["value"] or 0.0)
        found[row["name"]] = found.get(row["name"], 0.0) + change
    return {name: change for name, change in found.items() if change}


def _names_with(listed: Sequence[Row], side: int) -> list[str]:
    """The names that a side has, those with most time first."""
    found: dict[str, float] = {}
    for row in listed:
        if row["cells"][side]["value"]:
            found[row["name"]] = found.get(row["name"], 0.0) + row["cells"][side]["value"]
    return sorted(found, key=lambda name: (-found[name], name))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(map(readable, names[:_NAMED]))}{more}"


def _signed(change: float) -> str:
    return signed(format_ns(change), change)


def hint(matrix: Matrix) -> str:
    """The command that gives all details."""
    chosen = matrix.options
    words = asked(
        chosen,
        ("--by", None if matrix.by == "op" else matrix.by),
        ("--match", None if chosen.match == "shape" else chosen.match),
    )
    sides = [side.label for side in matrix.sides]
    words += ["--format", "xlsx", "-o", "diff.xlsx"]
    return f"Details: {command_of(('tracker', 'diff'), sides, words)}"
