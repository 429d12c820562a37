"""The document of three and more sides: their numbers beside each other, each against the first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace
from rich.cells import cell_len

from tracker.compare.references import short_names
from tracker.reports import cells
from tracker.reports.commands import command_of, options_of
from tracker.reports.document import NAME, Column, Document, Lines, Look, Table, table
from tracker.reports.rows import Row, list_options, plain, records
from tracker.reports.text import GAP, ROWS, shorten
from tracker.reports.view import View
from tracker.reports.views.sections import SERIES_OF_RUN, history_of
from tracker.results import MATRIX_COLUMNS, Matrix
from tracker.results.verdicts import CHANGED, word_of_step
from tracker.units import MISSING_TEXT, counted, format_diff, printable, some_of

if TYPE_CHECKING:
    from tracker.results.screens import Rows

_TITLES: Final = {"op": "Operators", "kernel": "Kernels", "communication": "Collectives", "module": "Modules"}
_LABEL: Final = 16
_NAME: Final = 26


def document(matrix: Matrix, look: Look) -> Document:
    """Return the total of the last side against the first, all sides beside each other, and what came with which."""
    rows, heads = rows_of(matrix, None), labels(matrix)
    total = _total(rows)
    last = total["cells"][-1] if total else {}
    judged = tuple(dict.fromkeys(matrix.judged)) if not matrix.tables["cells"].has("verdict") else ()
    is_marked = any(cell["verdict"] in cells.MARKS for row in rows for cell in row["cells"])
    marks = "▲ REGRESSED or ADDED, ▼ IMPROVED or REMOVED, ? SUSPECT against the side before; " if is_marked else ""
    match = None if matrix.options.match == "shape" else matrix.options.match
    words, by = options_of(matrix.options, ("--match", match)), ["--by", matrix.by] if matrix.by != "op" else []
    sides = [side.label for side in matrix.sides]
    came, verdicts = _changes(rows, heads), () if judged else verdict_lines(matrix)
    more = ["--details"] if (came or verdicts) and not look.details else ["-o", "diff.xlsx"]
    following = [command_of(("tracker", "diff"), sides, [*by, *words, *more])]
    if more == ["--details"]:
        following.append(command_of(("tracker", "diff"), sides, [*by, *words, "-o", "diff.xlsx"]))
    following += [command_of(("tracker", "diff"), [sides[0], sides[-1]], words)]
    alike = zip(*((one.workload, one.device, one.configuration, counted(one.runs, "run"), counted(one.steps, "step"))
                  for one in matrix.sides), strict=True)  # fmt: skip
    shared = [values[0] for values in alike if len(set(values)) == 1 and values[0] not in cells.UNSAID]
    return Document(
        title=": ".join(filter(None, (", ".join(heads), ", ".join(shared)))),
        headline=headline(matrix),
        tone="" if cells.is_small(last.get("diff")) else cells.tone({"diff": last.get("diff")}, last.get("delta")),
        remarks=judged,
        blocks=(
            *_tables(matrix, look),
            Lines("What came with each side", came, is_first=False, is_wrapped=True),
            Lines("Verdicts", verdicts, is_first=False, is_wrapped=True),
        ),
        notes=(f"{marks}% against {heads[0]}.", *matrix.notes),
        next_commands=tuple(following),
    )


def headline(matrix: Matrix) -> str:
    """Say how the total of the last side compares with that of the first."""
    total, heads = _total(rows_of(matrix, None)), labels(matrix)
    ends = [total["cells"][at]["value"] for at in (0, -1)] if total else [None]
    if total is None or None in ends or not ends[0]:
        return f"{heads[-1]} against {heads[0]}: no step time on both sides"
    change = ends[1] / ends[0] - 1
    word = "slower" if change > 0 else "faster"
    size = cells.times(*ends)
    size += f" {'per step' if total['part'] == 'step_ns' else 'E2E'} ({cells.change(ends[1] - ends[0])})"
    is_same = format_diff(change) == "0.0 %"
    # each side is judged against the one before: of the last against the first there is no verdict
    return f"{heads[-1]} ran {'as fast as' if is_same else f'{abs(change) * 100:.1f} % {word} than'} {heads[0]}: {size}"


def verdict_lines(matrix: Matrix) -> tuple[str, ...]:
    """Return what was judged of each side against the one before."""
    pairs = pairwise(numbered([side.label for side in matrix.sides]))
    return tuple(f"{b} against {a}: {text}" for (a, b), text in zip(pairs, matrix.judged, strict=True))


def _total(rows: Sequence[Row]) -> Row | None:
    return next((row for row in rows if row["part"] in ("step_ns", "e2e_ns")), None)


def labels(matrix: Matrix, width: int | None = _LABEL) -> list[str]:
    """Return the name of each side as it stands over its column, shortened to `width`; no two are equal.

    Paths by their last part, those of one name by as many parts as they differ in; what stands twice is numbered.
    """
    heads = [printable(name) for name in short_names(matrix.sides)]
    short = [head if width is None else shorten(head, width) for head in heads]
    # what only its cut middle makes unique stays whole
    texts = [head if short.count(text) > heads.count(head) else text for head, text in zip(heads, short, strict=True)]
    return numbered(texts)


def numbered(names: Sequence[str]) -> list[str]:
    """Return whole labels, equal ones with their place.

    >>> numbered(["v1", "v2", "v1"])
    ['v1 (1)', 'v2', 'v1 (3)']
    """
    return [f"{name} ({at})" if names.count(name) > 1 else name for at, name in enumerate(names, start=1)]


def rows_of(matrix: Matrix, limit: int | None) -> list[Row]:
    """Return overall rows, then at most `limit` of the others; each with its `cells`, a list by side."""
    cells_of_row: dict[int, list[Row]] = {}
    for cell in records(matrix.tables["cells"]):
        cells_of_row.setdefault(cell["row"], []).append(cell)
    overall: list[Row] = []
    others: list[Row] = []
    for row in records(matrix.tables["rows"]):
        rows = overall if row["section"] == "overall" else others
        rows.append({**row, "cells": cells_of_row[row["row"]]})
    return overall + others[:limit]


def _tables(matrix: Matrix, look: Look) -> list[Table]:
    """Return the numbers of the whole, and the rows that moved most, with as many sides as the width has room for."""
    rows, heads = rows_of(matrix, look.rows(ROWS)), labels(matrix)
    texts = {row["row"]: [_text(row, cell) for cell in row["cells"]] for row in rows}
    widths = [max(cell_len(head), *(cell_len(texts[row["row"]][at]) for row in rows)) for at, head in enumerate(heads)]
    shown = _sides_that_fit(widths, look.width)
    # E2E is the step where all of a step is in the capture
    of_step = texts[rows[0]["row"]] if rows and rows[0]["part"] == "step_ns" else None
    rows = [row for row in rows if row["part"] != "e2e_ns" or texts[row["row"]] != of_step]
    overall = [row for row in rows if row["section"] == "overall"]
    others = [row for row in rows if row["section"] != "overall"]
    # the hints stand once, below the last table
    more = int((matrix.tables["rows"]["section"] != "overall").sum()) - len(others)
    hints = ["--top 0 has all rows"] if more else []
    hidden = [head for at, head in enumerate(heads) if at not in shown]
    if hidden:
        hints.append(f"{counted(len(hidden), 'side')} left out: {', '.join(hidden)}; use a wider terminal")
    first = _table(matrix, "run", overall, texts, shown)
    second = _table(matrix, matrix.by, others, texts, shown)
    return [first, replace(second, more=more, note="; ".join(hints))]


def _sides_that_fit(widths: Sequence[int], width: int | None) -> list[int]:
    """Return the places of the sides that a table of `width` has room for, columns of `widths`; None: all of them."""
    if width is None:
        return list(range(len(widths)))
    room, shown = width - GAP - _NAME, []
    for place in range(len(widths)):
        # from both ends to the middle: the first and the last are always there
        at = place // 2 if place % 2 == 0 else len(widths) - 1 - place // 2
        room -= widths[at] + GAP
        if room < 0 and place > 1:
            break
        shown.append(at)
    return sorted(shown)


def _table(
    matrix: Matrix, kind: str, rows: Sequence[Row], texts: Mapping[int, Sequence[str]], shown: Sequence[int]
) -> Table:
    """Return the table of rows of one kind of series. `texts`: of the cells of a row, by its number; `shown`: which
    sides.
    """
    title, name_head = "Per step", "metric"
    if kind != "run":
        title, name_head = f"{_TITLES[kind]} by their largest movement", "name"
    heads, whole_heads = labels(matrix), labels(matrix, None)
    columns = [Column(name_head, **NAME), *(Column(whole_heads[at], short=heads[at]) for at in shown)]
    option = [] if kind == "op" else [("--kind", kind)]
    lines, tones, links = [], [], []
    for row in rows:
        lines.append(("", [_name(row), *(texts[row["row"]][at] for at in shown)]))
        tones.append(("", *(cells.TONES.get(row["cells"][at]["verdict"] or "", "") for at in shown)))
        name = SERIES_OF_RUN.get(row["part"]) if kind == "run" else row["name"]
        links.append(history_of(matrix.sides[-1].workload, name, *option))
    below = tuple(_unlike(row, heads) for row in rows)
    return table(title, columns, lines, cell_tones=tuple(tones), below=below, links=tuple(links), is_first=True)


def _name(row: Row) -> str:
    if row["section"] == "overall":
        return "  " * int(row["level"] or 0) + str(row["name"])
    return " ".join(filter(None, (cells.readable(row["name"]), row["input_shapes"], row["part"])))


def _text(row: Row, cell: Row) -> str:
    """Return the cell of a side: its value in the unit of the row, its change against the first side, a mark."""
    mark = cells.MARKS.get(cell["verdict"] or "", "")
    if cell["value"] is None:
        return " ".join(filter(None, (MISSING_TEXT, mark)))
    value = cells.form(row["unit"], [one["value"] for one in row["cells"]])(cell["value"])
    return " ".join(filter(None, (value, "" if _is_bare(row, cell) else format_diff(cell["diff"]), mark)))


def _is_bare(row: Row, cell: Row) -> bool:
    # a part of the rest of medians says nothing
    return cell["side"] == 0 or cell["diff"] is None or row["unit"] == "ratio" or row["part"] == "rest_ns"


def _unlike(row: Row, heads: Sequence[str]) -> str:
    """Say what the marks of a row rest on whose direction is not that of the change beside them."""
    found = []
    for cell in row["cells"]:
        mark, change = cells.MARKS.get(cell["verdict"] or "", ""), cell["previous_diff"]
        sign = {"▲": 1.0, "▼": -1.0}.get(mark, 0.0)
        if _is_bare(row, cell) or sign * cell["diff"] >= 0:
            continue
        is_like = change is None or sign * change > 0
        why = f"{'came back' if change is None else format_diff(change)} since {heads[cell['side'] - 1]}"
        found.append(f"{mark} of {heads[cell['side']]}: {why if is_like else 'without the machine-wide drift'}")
    return "; ".join(found)


def _changes(rows: Sequence[Row], heads: Sequence[str]) -> tuple[str, ...]:
    """Say per side what was found against the one before, the largest changes first; nothing has no line."""
    total, lines = _total(rows), []
    listed = [row for row in rows if row["section"] != "overall"]
    for at in range(1, len(heads)):
        words = []
        cell = total["cells"][at] if total else {}
        if total and cell["verdict"] in cells.MARKS and None not in (cell["value"], total["cells"][at - 1]["value"]):
            delta = cell["value"] - total["cells"][at - 1]["value"]
            change = f"{cells.change(delta)}, {format_diff(cell['previous_diff'])}"
            words.append(f"{total['name'].lower()} {word_of_step(cell['verdict'], cell['reason'])} ({change})")
        changes: dict[str, float] = {}  # of all rows of a name; a side without a row takes no time
        for row in listed:
            delta = (row["cells"][at]["value"] or 0.0) - (row["cells"][at - 1]["value"] or 0.0)
            changes[row["name"]] = changes.get(row["name"], 0.0) + delta
        for verdict in CHANGED:
            names = {row["name"] for row in listed if row["cells"][at]["verdict"] == verdict}
            ranked = sorted(names, key=lambda name: (-abs(changes[name]), name))
            named = [f"{cells.readable(name)} {cells.change(changes[name])}" for name in ranked]
            words += [f"{verdict} {some_of(named)}"] if named else []
        if words:
            lines.append(f"{heads[at]}: {'; '.join(words)}")
    return tuple(lines)


def list_json(matrix: Matrix, look: Look) -> dict[str, Any]:
    """Return the sides, what their runs can tell, and a list of rows, each with a cell per side."""
    names = MATRIX_COLUMNS["cells"][1:]
    rows = []
    for row in rows_of(matrix, look.rows(None)):
        cells = [{name: cell[name] for name in names} for cell in row["cells"]]
        rows.append({**row, "cells": cells})
    return {
        "headline": headline(matrix),
        "sides": plain(matrix.sides),
        "metric": matrix.metric,
        "by": matrix.by,
        "options": list_options(matrix.options),
        "notes": plain(matrix.notes),
        "judged": list(matrix.judged),
        "rows": rows,
    }


def list_csv(matrix: Matrix, look: Look) -> dict[str, Rows]:
    """Return the cells, each with its row and the name of its side."""
    names_of_sides = numbered([side.label for side in matrix.sides])
    cells = []
    for row in rows_of(matrix, look.rows(None)):
        of_row = row.pop("cells")
        cells += [row | cell | {"side": names_of_sides[cell["side"]]} for cell in of_row]
    return {"cells": cells}


VIEW = View(document, json=list_json, csv=list_csv, workbook="matrix")
