"""CSV for spreadsheets and data frames: the rows of JSON, one header, missing numbers as empty fields.

One table (`--only operator`) is plain CSV. Several tables share one header: the column `section` first, then the union
of their columns; fields that a table does not have stay empty.
"""

from __future__ import annotations

from msgspec.structs import asdict

from tracker.reports import _human_bottleneck, _human_diff
from tracker.reports.csv_text import Rows, table, written
from tracker.reports.shared import Style, has_tree, plain, selected
from tracker.reports.views.matrix import numbered, rows_of
from tracker.results import (
    CALIBRATION_COLUMNS,
    EXPLAIN_COLUMNS,
    Calibration,
    Diff,
    ExplainedFinding,
    Findings,
    History,
    Log,
    Matrix,
    Shown,
)

TITLE = "comma-separated values, all tables or the chosen one"
SUFFIX = ".csv"
BINARY = False


def diff(diff: Diff, style: Style) -> str:
    """The chosen tables; without `only` and tree also `environment`, `bottleneck`, the explanation as `parts` and
    `causes`, and what the runs can tell as `judgement`."""
    tables: dict[str, tuple[list[str], Rows]] = {}
    everything = not style.only and not has_tree(diff)
    if everything:
        tables["environment"] = table(diff.tables["environment"])
        tables["bottleneck"] = _listed(_human_bottleneck.sides(diff))
    tables.update((name, table(frame)) for name, frame in selected(diff, style))
    if everything:
        explanation = diff.explanation
        tables["parts"] = _listed([asdict(part) for part in explanation.parts])
        tables["causes"] = _listed([asdict(cause) for cause in explanation.causes])
        tables["judgement"] = _listed([{"note": note} for note in diff.judgement.sentences] if diff.judgement else [])
        tables["notes"] = _listed([{"note": note} for note in filter(None, (*diff.notes, _human_diff.note(diff)))])
    return written(tables)


def show(shown: Shown, style: Style) -> str:
    """The chosen tables; without `only` and tree also `bottleneck`, `facts` and `sources`."""
    tables = {name: table(frame) for name, frame in selected(shown, style)}
    if not style.only and shown.tree is None:
        tables["bottleneck"] = _listed([] if shown.bottleneck is None else [_human_bottleneck.flat(shown.bottleneck)])
        tables["facts"] = table(shown.facts)
        tables["sources"] = table(shown.sources)
        tables["notes"] = _listed([{"note": note} for note in shown.notes])
    return written(tables)


def log(log: Log, style: Style) -> str:
    """One row per version and column that has runs, with what is known of both."""
    merged = log.cells.merge(log.versions.drop(columns="runs"), on="version", how="left")
    return written({"cells": table(merged.merge(log.columns, on="column", how="left"))})


def history(history: History, style: Style) -> str:
    """One row per series and version, with what is known of both."""
    series = history.series.drop(columns=["runs", "versions"])
    return written({"points": table(series.merge(history.points, on="series_id", how="left"))})


def findings(found: Findings, style: Style) -> str:
    """One row per finding."""
    return written({"findings": table(found.tables["findings"])})


def explained(found: ExplainedFinding, style: Style) -> str:
    """The tests, runs, events and facts of one finding."""
    return written({name: table(getattr(found, name)) for name in EXPLAIN_COLUMNS})


def matrix(matrix: Matrix, style: Style) -> str:
    """One row per row and side, with what is known of both; `side` is its label."""
    kept = matrix.rows.head(len(rows_of(matrix, style.rows(None))))
    names = numbered([side.label for side in matrix.sides])
    cells = matrix.cells.assign(side=matrix.cells["side"].map(lambda at: names[at]))
    return written({"cells": table(kept.merge(cells, on="row", how="left"))})


def calibration(calibration: Calibration, style: Style) -> str:
    """All tables."""
    return written({name: table(getattr(calibration, name)) for name in CALIBRATION_COLUMNS})


def _listed(rows: Rows) -> tuple[list[str], Rows]:
    return list(rows[0]) if rows else [], plain(rows)
