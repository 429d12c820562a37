"""CSV for spreadsheets and data frames: the rows of JSON, one header, missing numbers as empty fields.

One table (`--only operator`) is plain CSV. Several tables share one header: the column `section` first, then the union
of their columns; fields that a table does not have stay empty.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from tracker.reports.look import Look
from tracker.reports.rows import Row, names, no_formula, plain, records
from tracker.reports.tables import (
    bottleneck_row,
    bottleneck_rows,
    chosen_tables,
    selected,
    tables_of_incident,
    tables_of_status,
)
from tracker.results import (
    CALIBRATION_COLUMNS,
    EXPLAIN_COLUMNS,
    Advised,
    Board,
    Calibration,
    Cluster,
    Diff,
    ExplainedFinding,
    ExplainedIncident,
    Findings,
    History,
    Log,
    Matrix,
    Shown,
    Status,
)
from tracker.units import printable

if TYPE_CHECKING:
    import pandas as pd

    from tracker.columns import Columns

TITLE = "comma-separated values, all tables or the chosen one"
SUFFIX = ".csv"
BINARY = False
_Table = tuple[list[str], list[Row]]


def written(tables: dict[str, _Table]) -> str:
    """Tables under one header, the column `section` first where there are several; what is missing is empty."""
    header = list(dict.fromkeys(name for columns, _ in tables.values() for name in columns))
    several = len(tables) > 1
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((["section"] if several else []) + header)
    for section, (_, rows) in tables.items():
        for row in rows:
            writer.writerow(([section] if several else []) + [_field(row.get(name)) for name in header])
    return out.getvalue()


def table(rows: Columns | pd.DataFrame) -> _Table:
    """The names of the columns, and the rows."""
    return names(rows), records(rows)


def _field(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, list | dict):
        value = str(value)
    # one record per line, and nothing for a terminal to act on; JSON has control characters as they are
    return no_formula(printable(value)) if isinstance(value, str) else value


def _rows(rows: list[Row]) -> _Table:
    return list(rows[0]) if rows else [], plain(rows)


def diff(diff: Diff, look: Look) -> str:
    """The chosen tables; without `only` and tree also what else changed, the bottlenecks, what explains the change, and
    what limits the verdicts.
    """
    tables: dict[str, _Table] = {}
    everything = not look.only and diff.tree_table is None
    if everything:
        tables["environment"] = table(diff.tables["environment"])
        tables["bottleneck"] = _rows(bottleneck_rows(diff))
    tables.update((name, table(rows)) for name, rows in selected(diff, look))
    if everything:
        found = diff.explanation
        for name in ("contributions", "parts", "causes"):
            tables[name] = _rows([asdict(row) for row in getattr(found, name)])
        tables["judgement"] = _rows([{"note": note} for note in diff.judgement.sentences] if diff.judgement else [])
        tables["notes"] = _rows([{"note": note} for note in (found.headline, *found.remarks, *diff.notes)])
    return written(tables)


def show(shown: Shown, look: Look) -> str:
    """The chosen tables; without `only` and tree also the bottleneck, facts, sources and notes."""
    tables = {name: table(rows) for name, rows in selected(shown, look)}
    if not look.only and shown.tree_table is None:
        tables["bottleneck"] = _rows([] if shown.bottleneck is None else [bottleneck_row(shown.bottleneck)])
        tables["facts"], tables["sources"] = table(shown.tables["facts"]), table(shown.tables["sources"])
        tables["notes"] = _rows([{"note": note} for note in shown.notes])
    return written(tables)


def log(log: Log, look: Look) -> str:
    """One row per version and column that has runs, with what is known of both."""
    merged = log.cells.merge(log.versions.drop(columns="runs"), on="version", how="left")
    return written({"cells": table(merged.merge(log.columns, on="column", how="left"))})


def history(history: History, look: Look) -> str:
    """One row per series and version, with what is known of both."""
    series = history.series.drop(columns=["runs", "versions"])
    return written({"points": table(series.merge(history.points, on="series_id", how="left"))})


def findings(found: Findings, look: Look) -> str:
    """One row per finding."""
    return written({"findings": table(found.tables["findings"])})


def explained(found: ExplainedFinding, look: Look) -> str:
    """The tests, runs, events and facts of one finding."""
    return written({name: table(getattr(found, name)) for name in EXPLAIN_COLUMNS})


def incident(found: ExplainedIncident, look: Look) -> str:
    """The findings of an incident, and the tests, runs, events and facts of each."""
    return written({name: _rows(rows) for name, rows in tables_of_incident(found).items()})


def status(found: Status, look: Look) -> str:
    """Watchers, folders, what is expected there, profiles and messages."""
    return written({name: _rows(rows) for name, rows in tables_of_status(found).items()})


def board(found: Board, look: Look) -> str:
    """One row per line."""
    return written({"lines": table(found.tables["lines"].head(look.rows(None)))})


def advice(found: Advised, look: Look) -> str:
    """One row per piece of advice."""
    return written({"advice": table(found.tables["advice"].head(look.rows(None)))})


def cluster(found: Cluster, look: Look) -> str:
    """The chosen sections; without `only` also what the captures cannot tell."""
    tables = {name: table(rows) for name, rows in chosen_tables(found, look)}
    if not look.only:
        tables["notes"] = _rows([{"note": note} for note in (found.headline, *found.remarks, *found.missing)])
    return written(tables)


def matrix(matrix: Matrix, look: Look) -> str:
    """One row per row and side, with what is known of both; `side` is its label."""
    from tracker.reports.views.matrix import numbered, rows_of

    kept = matrix.rows.head(len(rows_of(matrix, look.rows(None))))
    labels = numbered([side.label for side in matrix.sides])
    cells = matrix.cells.assign(side=matrix.cells["side"].map(lambda at: labels[at]))
    return written({"cells": table(kept.merge(cells, on="row", how="left"))})


def calibration(calibration: Calibration, look: Look) -> str:
    """All tables."""
    return written({name: table(getattr(calibration, name)) for name in CALIBRATION_COLUMNS})
