"""Opens rendered workbooks again."""

from __future__ import annotations

import io
import json

import openpyxl


def opened(document):
    """The workbook of rendered bytes."""
    return openpyxl.load_workbook(io.BytesIO(document))


def rows(sheet):
    """The rows below the header as dicts of their cells by header."""
    at = header_row(sheet)
    header = [cell.value for cell in sheet[at]]
    return [dict(zip(header, line, strict=True)) for line in sheet.iter_rows(min_row=at + 1)]


def header_row(sheet):
    """The number of the header's row: the first below the line of titles, where there is one."""
    return int(sheet.freeze_panes.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")) - 1


def values(sheet):
    """The rows below the header as dicts of values by header."""
    return [{name: cell.value for name, cell in row.items()} for row in rows(sheet)]


def fill(cell):
    """The background colour of a cell as six hex digits, None without one."""
    return cell.fill.fgColor.rgb[-6:] if cell.fill.fill_type == "solid" else None


def dump(document):
    """A workbook as text: per sheet its set-up and a line per row, the cells with value, format and background."""
    lines = []
    for sheet in opened(document):
        widths = [round(sheet.column_dimensions[key].width) for key in sorted(sheet.column_dimensions, key=_column)]
        lines.append(f"== {sheet.title} freeze={sheet.freeze_panes} filter={sheet.auto_filter.ref} widths={widths}")
        lines += [json.dumps([_cell(cell) for cell in row]) for row in sheet.iter_rows()]
    return "\n".join(lines) + "\n"


def _column(letters):
    return len(letters), letters


def _cell(cell):
    if cell.value is None and fill(cell) is None:
        return None
    return [cell.value, *filter(None, (cell.number_format.replace("General", "").replace("@", ""), fill(cell)))]
