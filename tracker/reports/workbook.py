"""Streams tables into an Excel workbook: few styles, exact numbers, text that stays text, Excel's limits told."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from msgspec import Struct
from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.styles import Alignment, Font, NamedStyle, PatternFill
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.properties import PageSetupProperties

from tracker.reports.rows import no_formula, plain, rows_of, unit_of
from tracker.units import BYTES_PER_KIB, NS_PER_MS, NS_PER_US, counted, format_moment, printable

if TYPE_CHECKING:
    from tracker.columns import Columns

MAX_ROWS = 1_048_576  # of a sheet: Excel specifications and limits, Excel 2007 and later
MAX_TEXT: Final = 32_767  # characters of a cell, in UTF-16 units

SUMMARY_FILL: Final = "DDEBF7"
WORSE_FILL: Final = "FF0000"
_BETTER_FONT: Final = "00803C"
_HEADER_FILL: Final = "1F4E78"

_BASELINE_FILL: Final = "E2EFDA"
_CANDIDATE_FILL: Final = "FFF2CC"

_HEADER_HEIGHT: Final = 46  # points: three lines

_FORMATS: Final = {
    "text": "@", "filter": "@", "flag": "General", "percent": "0.0%", "int": "#,##0", "number": "#,##0.0000",
    **dict.fromkeys(("us", "ms"), "#,##0.000"), **dict.fromkeys(("kb", "mb", "mean"), "#,##0.00"),
}  # fmt: skip
RowKind = TypeVar("RowKind")
_NUMBER_WIDTH: Final = 16  # shows 999,999,999.999; Excel shows ### where a number does not fit
_PER_UNIT: Final = {"us": NS_PER_US, "ms": NS_PER_MS, "kb": BYTES_PER_KIB, "mb": BYTES_PER_KIB * BYTES_PER_KIB}

UNITS: Final = {
    "ns": ("ms", "ms"), "bytes": ("mb", "MiB"), "count": ("count", "count"), "ratio": ("percent", "%"),
    "per_second": ("mean", "per second"),
}  # fmt: skip
"""Unit of a value in a column of several units, or of one -> its kind, and the unit in which it is shown."""
SIDES: Final = (("Baseline", "baseline"), ("Candidate", "candidate"))
"""Both sides of a diff: how headers call them, and how the columns of its tables begin."""
_KINDS: Final = {
    "ns": "us", "bytes": "kb", "count": "count", "ratio": "percent", "change": "percent", "number": "number",
    "rate": "number", "": "text",
}  # fmt: skip
"""Unit of a column -> its kind."""
_SUFFIXES: Final = {"us": " (us)", "kb": " (KiB)"}


_SIGNED: Final = re.compile(r"[+-](\d[\d,.]* (%|[a-zA-Z]+))?( [▲▼?])?( / ([+-]?\d[\d,.]*( (%|[a-zA-Z]+))?|-))?")
"""A number with its sign and unit, or the dash of a missing one: no formula, though it begins as one."""


class Field(Struct, frozen=True):
    """A column of a sheet; truth values stay what they are. `kind`: text, count, percent, number (of any size), us or
    ms (of ns), kb or mb (of bytes), filter (worse, better, ...)."""

    header: str
    kind: str
    value: Callable[[Any], Any]
    width: int


class Block(Struct, frozen=True):
    """A small table of a sheet, or a heading alone."""

    heading: str
    fields: Sequence[Field] = ()
    rows: Sequence[Any] = ()


class Title(Struct, frozen=True):
    """A text in the line above the header of a sheet, over `span` columns from `column` (from 0) on. `style`: note, or
    baseline or candidate for what the columns below are."""

    text: str
    style: str = "note"
    column: int = 0
    span: int = 1


def field(header: str, value: str | Callable[[Any], Any], width: int = 0, kind: str = "") -> Field:
    """Return a column that takes `value`: a field of the row, or a function of the row.

    `kind`: by default what the field ends with, and then the unit of us and kb stands in the header.
    """
    take = attrgetter(value) if isinstance(value, str) else value
    if not kind:
        kind = _KINDS[unit_of(value)] if isinstance(value, str) else "text"
        header += _SUFFIXES.get(kind, "")
    return Field(header, kind, take, width or (_NUMBER_WIDTH if kind != "text" else 24))


class FieldsOf(Generic[RowKind]):
    """Make the columns of a sheet of rows of one kind: a type checker names each field that these rows do not have."""

    def __init__(self, kind: type[RowKind]) -> None:
        self.kind = kind

    def field(self, header: str, value: Callable[[RowKind], Any], width: int = 0, kind: str = "text") -> Field:
        """Return a column that takes `value` of a row."""
        return field(header, value, width, kind)


def both(header: str, name: str, kind: str = "") -> list[Field]:
    """Return a column for each side, of what the row has behind `baseline_` and `candidate_`."""
    return [field(f"{side} {header}", f"{prefix}_{name}", kind=kind) for side, prefix in SIDES]


def coloured_change(tone: str, value: float | None) -> tuple[str, float | None]:
    """Return the cell of a change, green where it is better and red where it is worse."""
    return f"percent {tone}".strip(), value


class Book:
    """A workbook under construction. `tell` gets a sentence for each sheet that had to be cut, and one for texts."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._book = Workbook(write_only=True)
        self._tell = tell
        self._cut_texts = 0
        _add_styles(self._book)

    def sheet(
        self,
        title: str,
        fields: Sequence[Field],
        rows: Sequence[Any],
        *,
        tone: Callable[[Any], str] = lambda row: "",
        above: Sequence[Title] = (),
        fixed: int = 0,
    ) -> Any:
        """Add a sheet with a frozen header, an autofilter and one line per row.

        `tone` of a row: `summary` and `main` give the light blue background, "" none. `above`: a line over the header;
        `fixed`: so many columns stay when one scrolls to the right. What exceeds Excel's row limit is left out; the
        last row says so. Returns the sheet, for charts.
        """
        sheet = self._new(title)
        header = 2 if above else 1
        sheet.freeze_panes = f"{get_column_letter(fixed + 1)}{header + 1}"
        sheet.print_title_rows = f"1:{header}"
        for position, column in enumerate(fields, 1):
            sheet.column_dimensions[get_column_letter(position)].width = column.width
        sheet.row_dimensions[header].height = _HEADER_HEIGHT
        if above:
            # a text runs on over the empty cells behind it
            cells: list[Any] = [None] * max(one.column + one.span for one in above)
            for one in above:
                texts = [one.text, *[None] * (one.span - 1)]
                cells[one.column : one.column + one.span] = [_styled(sheet, text, one.style) for text in texts]
            sheet.append(cells)
        sheet.append([_styled(sheet, column.header, "header") for column in fields])
        count = len(rows)
        kept = count if count + header <= MAX_ROWS else MAX_ROWS - header - 1  # and the row that tells
        for row in rows[:kept]:
            style = tone(row)
            self._append(sheet, [_cell(sheet, column, row, style) for column in fields])
        sheet.auto_filter.ref = f"A{header}:{get_column_letter(len(fields))}{kept + header}"
        if kept < count:
            message = f"{title}: {count - kept:,} of {count:,} rows left out: a sheet holds {MAX_ROWS:,} rows"
            sheet.append([_styled(sheet, message, "text")])
            self._tell(f"{message}; --format csv has them all")
        return sheet

    def table(self, title: str, table: Columns) -> None:
        """Add a plain sheet of a table of a result, with all its rows and columns."""
        self.sheet(title, [_field_of(name, table.listed(name)) for name in table.arrays], rows_of(Struct, table))

    def blocks(self, title: str, blocks: Iterable[Block]) -> tuple[Any, dict[str, tuple[int, int]]]:
        """Add a sheet of small tables below each other, each with its heading; for reading, not for filtering.

        Returns the sheet, and where the rows of each heading stand: the number of its header line, and of the last one.
        """
        sheet = self._new(title)
        for position in range(1, 12):
            sheet.column_dimensions[get_column_letter(position)].width = 48 if position == 1 else 20
        written = 0
        places: dict[str, tuple[int, int]] = {}
        for block in blocks:
            sheet.append([_styled(sheet, block.heading, "heading")])
            has_header = any(column.header for column in block.fields)
            if has_header:
                sheet.row_dimensions[written + 2].height = _HEADER_HEIGHT
                sheet.append([_styled(sheet, column.header, "header") for column in block.fields])
            places[block.heading] = written + 2, written + 2 + len(block.rows)
            written += 2 + has_header + len(block.rows)
            for row in block.rows:
                self._append(sheet, [_cell(sheet, column, row, "") for column in block.fields])
            sheet.append([])
        return sheet, places

    def _append(self, sheet: Any, cells: list[Any]) -> None:
        texts = (cell.value for cell in cells if cell is not None and isinstance(cell.value, str))
        self._cut_texts += sum(len(text) >= MAX_TEXT // 2 - 2 and "…" in text for text in texts)
        sheet.append(cells)

    def _new(self, title: str) -> Any:
        """Add an empty sheet that prints in landscape, as wide as the paper."""
        sheet = self._book.create_sheet(title)
        sheet.page_setup.orientation = "landscape"
        sheet.page_setup.fitToHeight = 0
        sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
        return sheet

    def save(self) -> bytes:
        """Return the finished file."""
        if self._cut_texts:
            texts = counted(self._cut_texts, "text")
            self._tell(f"{texts} cut in the middle: a cell holds {MAX_TEXT:,} characters; --format csv has them whole")
        out = io.BytesIO()
        self._book.save(out)
        return out.getvalue()


def cell_text(text: str) -> str:
    """Return `text` as a cell may hold it: printable, no formula, cut in the middle at Excel's limit.

    >>> cell_text("+3.5 %"), cell_text("- / -"), cell_text("+1+1"), cell_text("-cmd|x")
    ('+3.5 %', '- / -', "'+1+1", "'-cmd|x")

    Excel reads `_x0041_` as `A`, and kernel names do hold such runs (`tile128_x1024_`), so the first `_` is escaped.
    """
    text = printable(text)
    if not _SIGNED.fullmatch(text):
        text = no_formula(text)
    limit = MAX_TEXT if all(char < "\U00010000" for char in text) else MAX_TEXT // 2
    if len(text) > limit:
        half = (limit - 1) // 2
        text = f"{text[:half]}…{text[-half:]}"
    return re.sub("_(?=x[0-9A-Fa-f]{4}_)", "_x005F_", text)


def _cell(sheet: Any, column: Field, row: Any, tone: str) -> Any:
    value, kind = column.value(row), column.kind
    if kind == "filter":  # (word, whether the candidate is worse)
        word, worse = value
        return _styled(sheet, word, "worse" if worse else _named("filter", tone))
    if isinstance(value, tuple):  # a column of several units: (kind, value)
        kind, value = value
    if value is None:
        return _styled(sheet, None, _named("text", tone)) if tone else None
    if isinstance(value, bool):
        kind = "flag"
    elif kind in _PER_UNIT:
        value = value / _PER_UNIT[kind]
    elif kind == "count":
        kind = "int" if float(value).is_integer() else "mean"
    return _styled(sheet, str(value) if kind == "text" else value, _named(kind, tone))


def _named(kind: str, tone: str) -> str:
    return f"{kind} {tone}" if tone else kind


def _styled(sheet: Any, value: Any, style: str) -> Any:
    is_text = isinstance(value, str)
    cell = WriteOnlyCell(sheet, cell_text(plain(value)) if is_text else value)
    if is_text:
        cell.data_type = "s"  # else `#N/A` becomes an error value
    cell.style = style
    return cell


def _add_styles(book: Any) -> None:
    blue = PatternFill("solid", fgColor=SUMMARY_FILL)
    white = Font(bold=True, color="FFFFFF")
    centre = Alignment(horizontal="center")
    for kind, number_format in _FORMATS.items():
        common = {"number_format": number_format} | ({"alignment": centre} if kind == "filter" else {})
        book.add_named_style(NamedStyle(kind, **common))
        book.add_named_style(NamedStyle(f"{kind} summary", fill=blue, **common))
        book.add_named_style(NamedStyle(f"{kind} main", fill=blue, font=Font(bold=True), **common))
    for name, color in (("baseline", _BASELINE_FILL), ("candidate", _CANDIDATE_FILL)):
        book.add_named_style(NamedStyle(name, fill=PatternFill("solid", fgColor=color), font=Font(bold=True)))
    book.add_named_style(NamedStyle("note", font=Font(italic=True)))
    for name, color in (("worse", WORSE_FILL), ("better", _BETTER_FONT)):
        book.add_named_style(NamedStyle(f"percent {name}", number_format=_FORMATS["percent"], font=Font(color=color)))
    book.add_named_style(
        NamedStyle("worse", fill=PatternFill("solid", fgColor=WORSE_FILL), font=white, alignment=centre)
    )
    wrapped = Alignment(wrap_text=True, vertical="center", horizontal="center")
    fill = PatternFill("solid", fgColor=_HEADER_FILL)
    book.add_named_style(NamedStyle("header", fill=fill, font=white, alignment=wrapped))
    book.add_named_style(NamedStyle("heading", font=Font(bold=True, size=12)))


_SPECIAL: Final = {
    "bandwidth_gb_per_s": ("Bandwidth (GB/s)", "number"), "sum_squares_ns2": ("Sum of Squares (ns2)", "count"),
    "bytes": ("Size (KiB)", "kb"),
}  # fmt: skip
_MOMENTS: Final = frozenset({"started_at_ns", "last_run_ns", "when_ns", "until_ns"})
_WIDE: Final = ("name", "canonical_name", "input_shapes", "module", "op", "call_stack", "value", "path")


def _field_of(name: str, values: list[Any]) -> Field:
    """Return the column of a plain sheet: what its name says, times and sizes with the unit in the header.

    The kind of other columns is that of what is in them.
    """
    title, unit, known = name.replace("_", " ").title(), unit_of(name), {type(plain(value)) for value in values}
    known.discard(type(None))
    if name in _SPECIAL:
        return field(_SPECIAL[name][0], name, kind=_SPECIAL[name][1])
    if name in _MOMENTS:
        when = f"{title[:-3]} (UTC)"
        return field(when, lambda row: _moment(getattr(row, name)))
    if unit in ("ns", "bytes"):
        return field(title.rpartition(" ")[0], name)
    if unit == "number" or (unit in ("ratio", "change") and str not in known):
        return field(title, name)
    kind = "count" if known and known <= {int, float} else "text"
    return field(title, name, 40 if name in _WIDE else 0, kind)


def _moment(time_ns: int | None) -> str | None:
    return format_moment(time_ns) if time_ns and time_ns > 0 else None
