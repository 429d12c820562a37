"""The document of an optimisation log: a row per version and its columns beside each other where they fit, else a line
per column, and each column as a table of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from tracker.profile import UNKNOWN_DEVICE
from tracker.reports import cells
from tracker.reports.cells import ColumnsOf
from tracker.reports.commands import command, option_words
from tracker.reports.document import Block, Column, Document, Look, Table, Target, Trend, level, table
from tracker.reports.rows import table_of
from tracker.reports.text import ROWS, fits
from tracker.reports.view import View
from tracker.results import LOG_TITLES as MEASURES
from tracker.results import PROFILERS, Log
from tracker.results.log import LogAdviceRow, LogCellRow, LogColumnRow, LogDirectionRow, LogVersionRow
from tracker.results.verdicts import CHANGED, word_of_step
from tracker.units import MISSING_TEXT, counted, format_diff, format_ns, printable

if TYPE_CHECKING:
    from tracker.results.screens import Rows

_WIDTH: Final = 120  # of a pipe, a file or a page
_LABEL: Final = 10  # a longer label of the baseline stands only in the title
_VERSIONS: Final = 25
_LONGEST_COMMIT: Final = 12
_OPEN: Final = 30
_NAMED: Final = 3
"""Columns that a headline names."""
_cell = ColumnsOf(LogCellRow)
_direction = ColumnsOf(LogDirectionRow)
_advised = ColumnsOf(LogAdviceRow)


class Part(Struct, frozen=True):
    """One of the things that make a column of the log: `value` stands in its head, `words` in a sentence."""

    key: str
    value: str
    words: str


def document(log: Log, look: Look) -> Document:
    """Return the newest version against the baseline, then the log."""
    columns = log.rows.columns
    if not columns:
        headline = f"No active run of {log.workload} has a number to show"
        return Document(
            title=f"{log.workload}, no version", headline=headline, next_commands=("tracker runs --state all",)
        )
    shared, differing = _parts(columns)
    counts = [counted(len(log.rows.versions), "version"), *[f"{len(columns)} columns"] * (len(columns) > 1)]
    headline, verdict, tone = _answer(log, columns)
    words = option_words(log.options, *(["metric"] if log.options.metric != "best" else []))
    words += option_words(log.options, "baseline", "device", "last", "config", "by")
    more = [] if look.details else ["--details"]
    asked = ("tracker", "log", "--workload", log.workload, *words)
    whole, width = _table(log, columns, look, ""), look.width or _WIDTH
    if len(columns) == 1 and len(log.rows.cells) > 1:
        whole = replace(whole, chart=Trend(columns[0].unit, tuple(map(_trend_point, log.rows.cells))))
    found: list[Block] = [whole]
    if len(columns) > 1 and not fits(whole, width):
        titles = map(_sentence, differing)
        own = [_table(log, [column], look, title) for column, title in zip(columns, titles, strict=True)]
        found = [_overview(log, columns, look), *(replace(one, is_first=False) for one in own)]
    found += [_directions(log, look)] if log.rows.directions else []
    return Document(
        title=": ".join(filter(None, (f"{log.workload}, {', '.join(counts)}", _sentence(shared)))),
        headline=headline,
        verdict=verdict,
        tone=tone,
        blocks=(*found, *([_advice(log, look)] if log.rows.advice else [])),
        next_commands=tuple(command(*asked, *last) for last in (more, ["-o", "log.xlsx"]) if last),
    )


def _trend_point(cell: LogCellRow) -> tuple[str, float | None, tuple[float, ...], str, str]:
    """Return a version as a chart draws it: label, value, no values of its runs, and a word where it changed."""
    verdict = _find_change(cell)
    return cell.version, cell.value, (), word_of_step(verdict, cell.reason), cells.TONES.get(verdict, "")


def _find_change(cell: LogCellRow) -> str:
    """Return the verdict of a cell, "" where it is no change."""
    return cell.verdict if cell.verdict is not None and cell.verdict in CHANGED else ""


def cell_tone(diff: float | None, higher_is_better: bool) -> str:
    """Return whether a change is `better` or `worse`, as far as it shows.

    >>> cell_tone(0.1, True), cell_tone(0.1, False), cell_tone(0.0001, True), cell_tone(None, True)
    ('better', 'worse', '', '')
    """
    if diff is None or format_diff(diff) == "0.0 %":
        return ""
    return "better" if (diff > 0) == higher_is_better else "worse"


def short_names(columns: Sequence[LogColumnRow]) -> list[str]:
    """Return what differs between the columns, but for the unit; "" where there is only one."""
    _, differing = _parts(columns)
    return [
        " ".join(MEASURES[column.measure] if part.key == "unit" else part.words for part in parts if part.words)
        for column, parts in zip(columns, differing, strict=True)
    ]


def _parts(columns: Sequence[LogColumnRow]) -> tuple[list[Part], list[list[Part]]]:
    """Return what makes all `columns`, then what else makes each: configuration, device, measure, profiler and scope.

    What is counted of a job of one process is per rank and total alike, so that it goes with the others.
    """
    scopes = {column.scope for column in columns if column.scope}
    only = scopes.pop() if len(scopes) == 1 else ""
    found = []
    for column in columns:
        scope = column.scope or only
        is_rate = column.measure == "throughput"
        measure = f"throughput in {column.unit}" if is_rate else MEASURES[column.measure]
        found.append([
            *(Part(key, value, f"{key}={value}") for key, value in cells.pairs(column.configuration)),
            Part("device", column.device, _name_device(column.device)),
            Part("unit", column.unit if is_rate else measure, measure),
            Part("profiler", column.profiler, PROFILERS[column.profiler]),
            Part("counted", scope or MISSING_TEXT, scope),
        ])  # fmt: skip
    shared = [part for part in found[0] if all(part in other for other in found)] if found else []
    return shared, [[part for part in parts if part not in shared] for parts in found]


def _name_device(device: str) -> str:
    return "unknown device" if device == UNKNOWN_DEVICE.model else device


def _sentence(parts: Sequence[Part]) -> str:
    """Return parts in words, as the title of a column has them."""
    text = ""
    for part, before in zip(parts, [None, *parts], strict=False):
        glue = " " if part.key == "profiler" and before is not None and before.key == "unit" else ", "
        text += f"{glue if text else ''}{part.words}" if part.words else ""
    return text


def _answer(log: Log, columns: Sequence[LogColumnRow]) -> tuple[str, str, str]:
    """Compare the newest version of each column with the baseline: a sentence, a verdict, a tone."""
    newest = {cell.column: cell for cell in log.rows.cells}
    first_version = {cell.column: cell.version for cell in reversed(log.rows.cells)}
    if len(columns) == 1:
        (cell,) = newest.values()
        return _answer_of_one(columns[0], cell, log.baseline or first_version[cell.column])
    alone = "without another version"
    is_alone = {}
    sides: Counter[str] = Counter()
    for column in columns:
        number = column.column
        cell = newest[number]
        is_alone[number] = cell.baseline_diff is None or cell.version == (log.baseline or first_version[number])
        if is_alone[number]:
            sides[alone] += 1
        elif cells.is_small(cell.baseline_diff):
            sides["within 1 %"] += 1
        else:
            sides[cell_tone(cell.baseline_diff, column.higher_is_better)] += 1
    of_each = ""
    if len(columns) <= _NAMED:
        changes = []
        for name, column in zip(short_names(columns), columns, strict=True):
            number = column.column
            change = alone if is_alone[number] else format_diff(newest[number].baseline_diff)
            changes.append(f"{name} {change}")
    else:
        of_each = f" of each of {len(columns)} columns"
        changes = [f"{sides[word]} {word}" for word in ("worse", "better", "within 1 %", alone) if sides[word]]
    named = cells.count_changes(newest.values())
    judged = f"; of these {named}" if named else ""
    baseline = log.baseline or "the first one"
    return f"The newest version{of_each} against {baseline}: {', '.join(changes)}{judged}", "", ""


def _answer_of_one(column: LogColumnRow, newest: LogCellRow, baseline: str) -> tuple[str, str, str]:
    """Return what `_answer` does, of a log with one column; `newest`: its newest cell."""
    unit = "" if column.unit in ("ns", "bytes") else f" {column.unit}"
    # the version before can be the baseline, too
    diffs = {baseline: newest.baseline_diff, newest.previous_version: newest.previous_diff}
    changes = []
    for version, diff in diffs.items():
        if diff is not None and version not in (None, newest.version):
            changes.append(f"{format_diff(diff)} against {version}")
    format_value = _value_format(column, [newest.value])
    sentence = f"{newest.version} is at {format_value(newest.value)}{unit}"
    verdict = _find_change(newest)
    tone = cells.TONES.get(verdict) or cell_tone(newest.baseline_diff, column.higher_is_better)
    word = word_of_step(verdict, newest.reason)
    return f"{sentence}: {', '.join(changes) or 'no other version to compare it with'}", word, tone


def _value_format(column: LogColumnRow, values: Sequence[float]) -> Callable[[float | None], str]:
    """Return a function that writes values of a column in one unit, the one that fits `values`."""
    if column.unit in ("ns", "bytes"):
        return cells.form(column.unit, values)
    places = 1 if max(values) >= 1000 else 2
    return lambda value: MISSING_TEXT if value is None else f"{value:,.{places}f}"


def _verdict(cell: LogCellRow) -> str:
    if not cell.verdict:
        return ""
    return word_of_step(cells.verdict_or_why(cell.verdict, cell.previous_diff), cell.reason)


def _glosses(named: Iterable[tuple[str, LogCellRow]]) -> str:
    """Say what the verdicts of cells mean that are no change; each cell stands behind its name."""
    return cells.glosses_of(cells.ShownVerdict(name, _verdict(cell), cell.reason) for name, cell in named)


class _Words(Struct, frozen=True):
    """What is known of versions in words: the header of a column, what it takes of a row, and how much of that it
    shows, None for all.
    """

    header: str
    take: Callable[[LogVersionRow], str | None]
    longest: int | None = None


_DIRECTION: Final = _Words("direction", lambda row: row.direction)
_COMMIT: Final = _Words("commit", lambda row: row.commit, longest=_LONGEST_COMMIT)
_NOTE: Final = _Words("note", lambda row: row.note)
_MACHINE: Final = _Words("machine", lambda row: row.machine)


def _table(log: Log, columns: Sequence[LogColumnRow], look: Look, title: str) -> Table:
    """Return a row per version; of each column its value, changes, and what is known of them."""
    found: dict[int, dict[str, LogCellRow]] = {column.column: {} for column in columns}
    for cell in log.rows.cells:
        if cell.column in found:
            found[cell.column][cell.version] = cell
    versions = [row for row in log.rows.versions if any(row.version in own for own in found.values())]
    shown = versions if look.details else versions[-_VERSIONS:]
    named = {row.version for row in shown}
    differing = [[part for part in parts if part.key != "unit"] for parts in _parts(columns)[1]]
    # where columns differ in several things, each has a line of the head
    heads = [Column("\n".join([*(printable(part.key) for part in differing[0]), "version"]), left=True)]
    rows = [[row.version] for row in shown]
    for one in (_DIRECTION, _COMMIT, _NOTE, _MACHINE) if look.details else (_DIRECTION, _NOTE, _MACHINE):
        if any(_says_more(one, row) for row in versions):
            heads.append(Column(one.header, left=True, elastic=one.longest is None))
            before = None
            for row, line in zip(shown, rows, strict=True):
                text = one.take(row)
                # a direction stands once, at the first of its neighbours
                again = one is _DIRECTION and text and text == before
                line.append("" if again else (text or MISSING_TEXT)[: one.longest])
                before = text
    tones = [[""] * len(line) for line in rows]
    for column, parts in zip(columns, differing, strict=True):
        own = found[column.column]
        for head, find_change in _columns(log, column, list(own.values()), [part.value for part in parts], look):
            heads.append(head)
            for row, line, colours in zip(shown, rows, tones, strict=True):
                known = own.get(row.version)
                line.append(MISSING_TEXT if known is None else head.cell(known))
                change = None if known is None or find_change is None else find_change(known)
                colours.append(cell_tone(change, column.higher_is_better))
    left_out = len(versions) - len(shown)
    hidden = f"{counted(left_out, 'older version')} left out; --details shows all" if left_out else ""
    judged = [cell for own in found.values() for cell in own.values() if cell.version in named]
    note = "; ".join(filter(None, (_glosses((cell.version, cell) for cell in judged), hidden)))
    workload = ("--workload", str(log.workload))
    links = tuple(Target("runs", (("--version", row.version), workload)) for row in shown)
    drawn = {"cell_tones": tuple(map(tuple, tones)), "links": links, "main": 0}
    return table(title, level(heads), [("", row) for row in rows], note=note, is_first=True, **drawn)


def _says_more(words: _Words, row: LogVersionRow) -> bool:
    """Return whether a version has words of this kind; a label like 20230808_69edec3bb7 holds the commit already."""
    text = words.take(row)
    return text is not None and text != "" and (words is not _COMMIT or text not in row.version)


_Change = Callable[[LogCellRow], float | None]


def _columns(
    log: Log, column: LogColumnRow, found: Sequence[LogCellRow], head: Sequence[str], look: Look
) -> list[tuple[Column, _Change | None]]:
    """Return the columns of a table for one column of the log, each with the change that colours it."""
    name = column.unit if column.measure == "throughput" else MEASURES[column.measure]
    against = "first" if log.baseline is None else log.baseline if len(log.baseline) <= _LABEL else "baseline"
    gap, against = "\n" if head else " ", printable(against)
    format_value = _value_format(column, [cell.value for cell in found])
    made: list[tuple[Column, _Change | None]] = [
        (_cell.number("\n".join([*map(printable, head), name]), lambda cell: format_value(cell.value)), None),
        _column_of_change(f"vs{gap}{against}", lambda cell: cell.baseline_diff, drop=1),
        _column_of_change(f"vs{gap}previous", lambda cell: cell.previous_diff),
    ]
    if any(cell.expected for cell in found):
        made.append((_cell.number("gain / expected", _gain, drop=2), None))
    if any(map(_verdict, found)):
        # the verdict rests on this one
        made.append(_column_of_change(f"vs{gap}level", lambda cell: cell.judged_diff))
        made.append((_cell.text("verdict", _verdict), None))
    if look.details:
        made.append((_cell.number("runs", _spread), None))
    return made


def _column_of_change(header: str, find_change: _Change, **look: Any) -> tuple[Column, _Change]:
    return _cell.number(header, lambda cell: format_diff(find_change(cell)), **look), find_change


def _spread(cell: LogCellRow) -> str:
    return cells.spread(cell.runs, cell.value, cell.minimum, cell.maximum)


def _gain(cell: LogCellRow) -> str:
    text, gain = cell.expected or MISSING_TEXT, cell.expected_gain
    if text == MISSING_TEXT and cell.gain is None:
        return MISSING_TEXT
    return f"{format_diff(cell.gain)} / {text if gain is None else format_diff(gain)}"


class _Newest(Struct, frozen=True):
    """The newest cell of a column. `name`: what makes the column; `value`: as text; `values`: of all versions."""

    name: str
    cell: LogCellRow
    value: str
    values: tuple[float, ...]
    higher_is_better: bool


_newest = ColumnsOf(_Newest)


def _overview(log: Log, columns: Sequence[LogColumnRow], look: Look) -> Table:
    """Return a line per column: what makes it, and its newest version against the baseline and the version before."""
    cells_of_column: dict[int, list[LogCellRow]] = {column.column: [] for column in columns}
    for cell in log.rows.cells:
        cells_of_column[cell.column].append(cell)
    parts_of_columns = [{part.key: part.value for part in parts} for parts in _parts(columns)[1]]
    keys = list(dict.fromkeys(key for parts in parts_of_columns for key in parts))
    rows = []
    for column, parts in zip(columns, parts_of_columns, strict=True):
        of_versions = cells_of_column[column.column]
        newest = of_versions[-1]
        name = " ".join(parts.get(key, MISSING_TEXT) for key in keys)
        value = _value_format(column, [newest.value])(newest.value)
        values = tuple(cell.value for cell in of_versions)
        rows.append(_Newest(name, newest, value, values, column.higher_is_better))
    heads = [
        _newest.text("column", lambda row: row.name, elastic=True),
        _newest.text("versions", lambda row: cells.sparkline(row.values[-_VERSIONS:]), drop=2),
        _newest.text("newest", lambda row: row.cell.version, drop=1),
        _newest.number("value", lambda row: row.value),
        _newest.number("vs baseline" if log.baseline else "vs first", lambda row: format_diff(row.cell.baseline_diff)),
        _newest.number("vs previous", lambda row: format_diff(row.cell.previous_diff)),
    ]
    if any(_verdict(row.cell) for row in rows):
        heads.append(_newest.number("vs level", lambda row: format_diff(row.cell.judged_diff)))
        heads.append(_newest.text("verdict", lambda row: _verdict(row.cell)))
    hidden = "" if look.details else "--details has all versions of each column"
    note = "; ".join(filter(None, (_glosses((row.name, row.cell) for row in rows), hidden)))
    limit = None if look.details else look.rows(_OPEN)
    return table_of(
        "", heads, rows, limit, note=note, is_first=True, lead=f"column: {' '.join(keys)}",
        tone=lambda row: cell_tone(row.cell.baseline_diff, row.higher_is_better),
    )  # fmt: skip


def _directions(log: Log, look: Look) -> Table:
    """Return what the versions of a direction gained together."""
    names = {row.column: row.title for row in log.rows.columns}
    found = [row for row in log.rows.directions if row.column in names]
    heads = [
        _direction.text("direction", lambda row: cells.readable(row.direction)),
        _direction.number("versions", lambda row: str(row.versions)),
        _direction.number("gain", lambda row: format_diff(row.gain)),
        _direction.text("where", lambda row: names[row.column], elastic=True),
    ]
    limit = None if look.details else look.rows(ROWS)
    return table_of(
        "Gain in speed by direction", heads, found, limit, is_first=True, tone=lambda row: cell_tone(row.gain, True)
    )


def _advice(log: Log, look: Look) -> Table:
    """Return advice that came and was taken, with what it promised at most and what the step won."""
    found = log.rows.advice
    limit = None if look.details else look.rows(ROWS)
    shown = found if limit is None else found[-limit:]
    heads = [_advised.text("version", lambda row: cells.readable(row.version))]
    if len({(row.device, row.configuration) for row in found}) > 1:
        heads.append(_advised.text("of", _name_track, elastic=True))
    heads += [
        _advised.text("", lambda row: row.status),
        _advised.text("advice", lambda row: f"{row.rule} {row.title}", elastic=True),
        _advised.number("saves at most", lambda row: format_ns(row.expected_ns)),
        _advised.number("step got shorter by", _format_realised),
    ]
    # a bound of one change says nothing of the others of that version
    is_above = any((row.realised_ns or 0) > (row.expected_ns or 0) > 0 for row in shown)
    note = "A step that got shorter by more than the advice saves had other changes, too." if is_above else ""
    return table_of(
        "Advice: new in a version, or followed by it", heads, shown, more=len(found) - len(shown), note=note,
        is_first=True,
        tone=lambda row: "better" if row.realised_ns is not None else "",
    )  # fmt: skip


def _name_track(row: LogAdviceRow) -> str:
    return " ".join(filter(None, (row.device, row.configuration)))


def _format_realised(row: LogAdviceRow) -> str:
    return "" if row.realised_ns is None else format_ns(row.realised_ns)


def list_csv(log: Log, look: Look) -> dict[str, Rows]:
    """Return the cells, each with what is known of its version and its column."""
    versions = {version.version: asdict(version) for version in log.rows.versions}
    for version in versions.values():
        # a cell has runs of its own
        version.pop("runs")
    columns = {column.column: asdict(column) for column in log.rows.columns}
    return {"cells": [asdict(cell) | versions[cell.version] | columns[cell.column] for cell in log.rows.cells]}


VIEW = View(document, csv=list_csv, workbook="log")
