"""CSV for spreadsheets and data frames: the rows of JSON, one header, missing numbers as empty fields.

One table (`--only operator`) is plain CSV. Several tables share one header: the column `section` first, then the union
of their columns; fields that a table does not have stay empty.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec.structs import asdict

from tracker.reports.document import Look
from tracker.reports.rows import Row, names, no_formula, records, tables_of
from tracker.reports.views import bottleneck
from tracker.results import Cluster, Diff, History, Log, Matrix, Shown
from tracker.units import printable

TITLE = "comma-separated values, all tables or the chosen one"
SUFFIX = ".csv"
_Tables = dict[str, Any]


def render(what: str, result: Any, look: Look) -> str:
    """The chosen tables, where a reader chose none also the sentences of a diff, a run or its ranks; of an inbox, a
    board and advice the main table, of a matrix, a log and a history one with what is known of both sides of a cell.
    """
    return written(_MADE.get(what, tables_of)(result, look))


def written(tables: Mapping[str, Any]) -> str:
    """Tables (columns or lists of rows) under one header, the column `section` first where there are several;
    what is missing is empty.
    """
    header = list(dict.fromkeys(name for rows in tables.values() for name in names(rows)))
    several = len(tables) > 1
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((["section"] if several else []) + header)
    for section, rows in tables.items():
        for row in records(rows):
            writer.writerow(([section] if several else []) + [_field(row.get(name)) for name in header])
    return out.getvalue()


def _field(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, list | dict):
        value = str(value)
    # one record per line, and nothing for a terminal to act on; JSON has control characters as they are
    return no_formula(printable(value)) if isinstance(value, str) else value


def _notes(lines: Iterable[str]) -> list[dict[str, Any]]:
    return [{"note": line} for line in lines]


def _diff(diff: Diff, look: Look) -> _Tables:
    tables = tables_of(diff, look)
    if look.only or diff.tree_table is not None:
        return tables
    found = diff.explanation
    return {
        "environment": diff.tables["environment"],
        "bottleneck": bottleneck.rows(*diff.bottlenecks or ()),
        **tables,
        **{name: [asdict(row) for row in getattr(found, name)] for name in ("contributions", "parts", "causes")},
        "judgement": _notes(diff.judgement.sentences if diff.judgement else ()),
        "notes": _notes((found.headline, *found.remarks, *diff.notes)),
    }


def _show(shown: Shown, look: Look) -> _Tables:
    tables = tables_of(shown, look)
    if not look.only and shown.tree_table is None:
        tables["bottleneck"] = [] if shown.bottleneck is None else bottleneck.rows(shown.bottleneck)
        tables |= {name: shown.tables[name] for name in ("facts", "sources")} | {"notes": _notes(shown.notes)}
        tables |= {"advice": shown.tables["advice"]} if shown.advice else {}
    return tables


def _cluster(found: Cluster, look: Look) -> _Tables:
    notes = {} if look.only else {"notes": _notes((found.headline, *found.remarks, *found.missing))}
    return tables_of(found, look) | notes


def _log(log: Log, look: Look) -> _Tables:
    versions = {row["version"]: row for row in records(log.tables["versions"].without("runs"))}
    columns = {row["column"]: row for row in records(log.tables["columns"])}
    cells = records(log.tables["cells"])
    return {"cells": [cell | versions[cell["version"]] | columns[cell["column"]] for cell in cells]}


def _history(history: History, look: Look) -> _Tables:
    points: dict[int, list[Row]] = {}
    for point in records(history.tables["points"]):
        points.setdefault(point["series_id"], []).append(point)
    series = records(history.tables["series"].without("runs", "versions"))
    return {"points": [row | point for row in series for point in points[row["series_id"]]]}


def _matrix(matrix: Matrix, look: Look) -> _Tables:
    from tracker.reports.views.matrix import numbered, rows_of

    labels = numbered([side.label for side in matrix.sides])
    rows = [(row, row.pop("cells")) for row in rows_of(matrix, look.rows(None))]
    return {"cells": [row | cell | {"side": labels[cell["side"]]} for row, cells in rows for cell in cells]}


_MADE: Final[Mapping[str, Callable[[Any, Look], _Tables]]] = {
    "diff": _diff, "show": _show, "cluster": _cluster, "log": _log, "history": _history, "matrix": _matrix,
    "findings": lambda found, look: {"findings": found.tables["findings"]},
    "board": lambda found, look: {"lines": found.tables["lines"].head(look.rows(None))},
    "advice": lambda found, look: {"advice": found.tables["advice"].head(look.rows(None))},
}  # fmt: skip
