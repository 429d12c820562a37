"""The document of three and more sides: their numbers beside each other, each against the first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace
from rich.cells import cell_len

from tracker.compare.references import short_names
from tracker.reports import cells
from tracker.reports.commands import command_of, options_of
from tracker.reports.document import NAME, Column, Document, Lines, Look, Table, table
from tracker.reports.rows import list_options, plain, rows_of
from tracker.reports.text import GAP, ROWS, shorten
from tracker.reports.view import View
from tracker.reports.views.sections import SERIES_OF_RUN, history_of
from tracker.results import MATRIX_COLUMNS, Matrix
from tracker.results.diff import MatrixCell, MatrixRow
from tracker.results.verdicts import CHANGED, word_of_step
from tracker.schema.column_names import SECTION
from tracker.units import MISSING_TEXT, counted, format_diff, printable, some_of

if TYPE_CHECKING:
    from tracker.results.screens import Rows

_TITLES: Final = {"op": "Operators", "kernel": "Kernels", "communication": "Collectives", "module": "Modules"}
_LABEL: Final = 16
_NAME: Final = 26


def document(matrix: Matrix, look: Look) -> Document:
    """Return the total of the last side against the first, all sides beside each other, and what came with which."""
    lines, heads = lines_of(matrix, None), labels(matrix)
    total = _total(lines)
    last = total.cells[-1] if total is not None else None
    judged = tuple(dict.fromkeys(matrix.judged)) if not matrix.tables["cells"].has("verdict") else ()
    is_marked = any(cell.verdict in cells.MARKS for line in lines for cell in line.cells)
    marks = "▲ REGRESSED or ADDED, ▼ IMPROVED or REMOVED, ? SUSPECT against the side before; " if is_marked else ""
    match = None if matrix.options.match == "shape" else matrix.options.match
    words, by = options_of(matrix.options, ("--match", match)), ["--by", matrix.by] if matrix.by != "op" else []
    sides = [side.label for side in matrix.sides]
    came, verdicts = _changes(lines, heads), () if judged else verdict_lines(matrix)
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
        tone=cells.tone(last.delta, last.diff) if last is not None else "",
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
    total, heads = _total(lines_of(matrix, None)), labels(matrix)
    first, last = (total.cells[0].value, total.cells[-1].value) if total is not None else (None, None)
    if total is None or not first or last is None:
        return f"{heads[-1]} against {heads[0]}: no step time on both sides"
    change = last / first - 1
    word = "slower" if change > 0 else "faster"
    size = cells.times(first, last)
    size += f" {'per step' if total.row.part == 'step_ns' else 'E2E'} ({cells.change(last - first)})"
    is_same = format_diff(change) == "0.0 %"
    # each side is judged against the one before: of the last against the first there is no verdict
    return f"{heads[-1]} ran {'as fast as' if is_same else f'{abs(change) * 100:.1f} % {word} than'} {heads[0]}: {size}"


def verdict_lines(matrix: Matrix) -> tuple[str, ...]:
    """Return what was judged of each side against the one before."""
    pairs = pairwise(numbered([side.label for side in matrix.sides]))
    return tuple(f"{b} against {a}: {text}" for (a, b), text in zip(pairs, matrix.judged, strict=True))


def _total(lines: Sequence[MatrixLine]) -> MatrixLine | None:
    return next((line for line in lines if line.row.part in ("step_ns", "e2e_ns")), None)


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


class MatrixLine(Struct, frozen=True):
    """A row of a matrix with its cells, one for each side in order."""

    row: MatrixRow
    cells: Sequence[MatrixCell]

    @property
    def is_overall(self) -> bool:
        """Whether it is a number of the whole."""
        return self.row.section == "overall"


def lines_of(matrix: Matrix, limit: int | None) -> list[MatrixLine]:
    """Return overall rows, then at most `limit` of the others."""
    cells_of_row: dict[int, list[MatrixCell]] = {}
    for cell in rows_of(MatrixCell, matrix.tables["cells"]):
        cells_of_row.setdefault(cell.row, []).append(cell)
    lines = [MatrixLine(row, cells_of_row[row.row]) for row in rows_of(MatrixRow, matrix.tables["rows"])]
    others = [line for line in lines if not line.is_overall]
    return [line for line in lines if line.is_overall] + others[:limit]


def _tables(matrix: Matrix, look: Look) -> list[Table]:
    """Return the numbers of the whole, and the rows that moved most, with as many sides as the width has room for."""
    lines, heads = lines_of(matrix, look.rows(ROWS)), labels(matrix)
    texts = {line.row.row: [_text(line, cell) for cell in line.cells] for line in lines}
    widths = [max(cell_len(head), *(cell_len(own[at]) for own in texts.values())) for at, head in enumerate(heads)]
    shown = _sides_that_fit(widths, look.width)
    # E2E is the step where all of a step is in the capture
    of_step = texts[lines[0].row.row] if lines and lines[0].row.part == "step_ns" else None
    lines = [line for line in lines if line.row.part != "e2e_ns" or texts[line.row.row] != of_step]
    overall = [line for line in lines if line.is_overall]
    others = [line for line in lines if not line.is_overall]
    # the hints stand once, below the last table
    more = int((matrix.tables["rows"][SECTION] != "overall").sum()) - len(others)
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
    matrix: Matrix, kind: str, lines: Sequence[MatrixLine], texts: Mapping[int, Sequence[str]], shown: Sequence[int]
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
    rows, tones, links = [], [], []
    for line in lines:
        rows.append(("", [_name(line), *(texts[line.row.row][at] for at in shown)]))
        tones.append(("", *(cells.TONES.get(line.cells[at].verdict or "", "") for at in shown)))
        name = SERIES_OF_RUN.get(line.row.part or "") if kind == "run" else line.row.name
        links.append(history_of(matrix.sides[-1].workload, name, *option))
    below = tuple(_unlike(line, heads) for line in lines)
    return table(title, columns, rows, cell_tones=tuple(tones), below=below, links=tuple(links), is_first=True)


def _name(line: MatrixLine) -> str:
    if line.is_overall:
        return "  " * int(line.row.level or 0) + line.row.name
    return " ".join(filter(None, (cells.readable(line.row.name), line.row.input_shapes, line.row.part)))


def _text(line: MatrixLine, cell: MatrixCell) -> str:
    """Return the cell of a side: its value in the unit of the row, its change against the first side, a mark."""
    mark = cells.MARKS.get(cell.verdict or "", "")
    if cell.value is None:
        return " ".join(filter(None, (MISSING_TEXT, mark)))
    value = cells.form(line.row.unit, [one.value for one in line.cells])(cell.value)
    return " ".join(filter(None, (value, "" if _is_bare(line.row, cell) else format_diff(cell.diff), mark)))


def _is_bare(row: MatrixRow, cell: MatrixCell) -> bool:
    # a part of the rest of medians says nothing
    return cell.side == 0 or cell.diff is None or row.unit == "ratio" or row.part == "rest_ns"


def _unlike(line: MatrixLine, heads: Sequence[str]) -> str:
    """Say what the marks of a row rest on whose direction is not that of the change beside them."""
    found = []
    for cell in line.cells:
        mark, change = cells.MARKS.get(cell.verdict or "", ""), cell.previous_diff
        sign = {"▲": 1.0, "▼": -1.0}.get(mark, 0.0)
        if _is_bare(line.row, cell) or sign * (cell.diff or 0.0) >= 0:
            continue
        is_like = change is None or sign * change > 0
        why = f"{'came back' if change is None else format_diff(change)} since {heads[cell.side - 1]}"
        found.append(f"{mark} of {heads[cell.side]}: {why if is_like else 'without the machine-wide drift'}")
    return "; ".join(found)


def _changes(lines: Sequence[MatrixLine], heads: Sequence[str]) -> tuple[str, ...]:
    """Say per side what was found against the one before, the largest changes first; nothing has no line."""
    total = _total(lines)
    listed = [line for line in lines if not line.is_overall]
    sentences = []
    for at in range(1, len(heads)):
        words = [_change_of_total(total, at)] if total is not None else []
        changes: dict[str, float] = {}  # of all rows of a name; a side without a row takes no time
        for line in listed:
            delta = (line.cells[at].value or 0.0) - (line.cells[at - 1].value or 0.0)
            changes[line.row.name] = changes.get(line.row.name, 0.0) + delta
        for verdict in CHANGED:
            names = {line.row.name for line in listed if line.cells[at].verdict == verdict}
            ranked = sorted(names, key=lambda name: (-abs(changes[name]), name))
            named = [f"{cells.readable(name)} {cells.change(changes[name])}" for name in ranked]
            words += [f"{verdict} {some_of(named)}"] if named else []
        if any(words):
            sentences.append(f"{heads[at]}: {'; '.join(filter(None, words))}")
    return tuple(sentences)


def _change_of_total(total: MatrixLine, at: int) -> str:
    """Say how the total changed on a side against the one before; "" where nothing was found."""
    cell, before = total.cells[at], total.cells[at - 1]
    if cell.verdict not in cells.MARKS or cell.value is None or before.value is None:
        return ""
    change = f"{cells.change(cell.value - before.value)}, {format_diff(cell.previous_diff)}"
    return f"{total.row.name.lower()} {word_of_step(cell.verdict, cell.reason)} ({change})"


def list_json(matrix: Matrix, look: Look) -> dict[str, Any]:
    """Return the sides, what their runs can tell, and a list of rows, each with a cell per side."""
    names = MATRIX_COLUMNS["cells"][1:]
    rows = []
    for line in lines_of(matrix, look.rows(None)):
        cells = [{name: getattr(cell, name) for name in names} for cell in line.cells]
        rows.append(asdict(line.row) | {"cells": cells})
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
    for line in lines_of(matrix, look.rows(None)):
        for cell in line.cells:
            cells.append(asdict(line.row) | asdict(cell) | {"side": names_of_sides[cell.side]})
    return {"cells": cells}


VIEW = View(document, json=list_json, csv=list_csv, workbook="matrix")
