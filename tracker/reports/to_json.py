"""JSON for scripts, schema 1: column names of the tables, times in `_ns`, sizes in `_bytes`, null for missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from tracker.reports import _human_bottleneck, _human_diff
from tracker.reports.shared import Style, chosen_sections, command, plain, records, selected
from tracker.reports.views.matrix import headline, rows_of
from tracker.results import (
    CALIBRATION_COLUMNS,
    EXPLAIN_COLUMNS,
    HISTORY_COLUMNS,
    LOG_COLUMNS,
    MATRIX_COLUMNS,
    Calibration,
    Diff,
    ExplainedFinding,
    History,
    Judgement,
    Log,
    Matrix,
    Selection,
    Shown,
    Status,
)
from tracker.results import Findings as Found

if TYPE_CHECKING:
    from tracker.doctor import Findings

TITLE = "JSON for scripts (schema 1)"
SUFFIX = ".json"
BINARY = False
SCHEMA = 1


def diff(diff: Diff, style: Style) -> str:
    """Both sides, what else changed, a list of rows per chosen section, the explanation.

    A section that was not asked for has no key; a section without rows is an empty list.
    """
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "baseline": plain(diff.baseline),
        "candidate": plain(diff.candidate),
        "metric": diff.metric,
        "options": _options(diff.options),
        "notes": [*filter(None, (*plain(diff.notes), _human_diff.note(diff)))],
        "environment": records(diff.tables["environment"]),
    }
    document["bottleneck"] = _both_bottlenecks(diff)
    document.update((name, records(frame)) for name, frame in selected(diff, style))
    document["explanation"] = plain(diff.explanation)
    document["judgement"] = None if diff.judgement is None else _judgement(diff.judgement)
    return _dump(document)


def joined(pages: Sequence[str]) -> str:
    """Several documents as the list `diffs` of one."""
    documents = ",\n".join(page.rstrip() for page in pages)
    return f'{{"schema": {SCHEMA}, "diffs": [\n{documents}\n]}}\n'


def show(shown: Shown, style: Style) -> str:
    """The run with its facts and sources, then a list of rows per chosen section; memory with its course over time."""
    run = plain(shown.run)
    run.setdefault("facts", records(shown.facts))
    run.setdefault("sources", records(shown.sources))
    document: dict[str, Any] = {"schema": SCHEMA, "run": run, "options": _options(shown.options), "notes": []}
    document["notes"] += plain(shown.notes)
    document["bottleneck"] = _human_bottleneck.record(shown.bottleneck)
    tables = {name: records(frame) for name, frame in selected(shown, style)}
    # the documented order of keys; what came later stands behind it
    for name in ("overall", "steps", "ops", "kernels", "communication", "memory", "copies", "modules", "api", *tables):
        if name in tables:
            document[name] = tables[name]
    if "memory" in chosen_sections(shown, style):
        document["memory_curve"] = records(shown.memory_curve)
    return _dump(document)


def _judgement(judgement: Judgement) -> dict[str, Any]:
    return {**plain(judgement), "counts": dict(judgement.counts)}


def _both_bottlenecks(diff: Diff) -> dict[str, Any] | None:
    if diff.bottlenecks is None:
        return None
    before, after = (_human_bottleneck.record(found) for found in diff.bottlenecks)
    return {"baseline": before, "candidate": after, "changed": _human_bottleneck.changed(diff)}


def log(log: Log, style: Style) -> str:
    """The workload, its versions, columns and cells, and what each direction gained."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "workload": plain(log.workload),
        "baseline": plain(log.baseline),
        "options": plain(log.options),
    }
    document.update((name, records(getattr(log, name))) for name in LOG_COLUMNS)
    return _dump(document)


def history(history: History, style: Style) -> str:
    """The series, their points by version, their runs, and what else changed."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "pinned": plain(history.pinned),
        "options": plain(history.options),
        "notes": list(plain(history.notes)),
    }
    document.update((name, records(getattr(history, name))) for name in HISTORY_COLUMNS)
    return _dump(document)


def findings(found: Found, style: Style) -> str:
    """Incidents, their findings, and what else changed with them."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "options": plain(found.options),
        "hidden": found.hidden,
        "notes": list(plain(found.notes)),
    }
    document.update((name, records(rows)) for name, rows in found.tables.items())
    return _dump(document)


def explained(found: ExplainedFinding, style: Style) -> str:
    """One finding with its tests, runs, events and facts, and what else changed."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "finding": plain(dict(found.finding)),
        "notes": list(plain(found.notes)),
    }
    document.update((name, records(getattr(found, name))) for name in (*EXPLAIN_COLUMNS, "environment"))
    return _dump(document)


def matrix(matrix: Matrix, style: Style) -> str:
    """The sides, what their runs can tell, and a list of rows, each with a cell per side."""
    names = MATRIX_COLUMNS["cells"][1:]
    rows = rows_of(matrix, style.rows(None))
    return _dump(
        {
            "schema": SCHEMA,
            "headline": headline(matrix),
            "sides": plain(matrix.sides),
            "metric": matrix.metric,
            "by": matrix.by,
            "options": _options(matrix.options),
            "notes": list(plain(matrix.notes)),
            "judged": list(matrix.judged),
            "rows": [{**row, "cells": [{name: cell[name] for name in names} for cell in row["cells"]]} for row in rows],
        }
    )


def calibration(calibration: Calibration, style: Style) -> str:
    """Whose repeats these are, false findings by the smallest change that counts, proposals and noisy series."""
    document: dict[str, Any] = {"schema": SCHEMA}
    for name in ("workload", "configuration", "device", "versions", "run_ids", "baseline", "candidate", "windows"):
        document[name] = plain(getattr(calibration, name))
    document |= {
        "splits": calibration.splits,
        "options": plain(calibration.options),
        "notes": list(plain(calibration.notes)),
    }
    document.update((name, records(getattr(calibration, name))) for name in CALIBRATION_COLUMNS)
    return _dump(document)


def doctor(findings: Findings, style: Style) -> str:
    """All that was found; `command`: a line for a shell that ingests all, null where there is nothing to ingest.
    `commands`: those that are proposed, one for each folder that holds runs of a version of its own.
    """
    found = plain(findings)
    words, each = found.pop("command"), found.pop("commands")
    lines = [command(*one) for one in each or filter(None, [words])]
    return _dump({"schema": SCHEMA, **found, "command": command(*words) if words else None, "commands": lines})


def status(status: Status, style: Style) -> str:
    """All of it: watchers, folders with what is expected there, and profiles that are not in the database yet."""
    return _dump({"schema": SCHEMA, **plain(status)})


def _options(chosen: Selection) -> dict[str, Any]:
    """How the result was asked for, by the names of the Python interface, without what cannot be written."""
    return {name: plain(value) for name, value in asdict(chosen).items() if name != "on_progress"}


def _dump(document: dict[str, Any]) -> str:
    """Valid JSON in ASCII, a line per row, so that two documents can be compared with a line diff."""
    lines = [f"  {_compact(key)}: {_rows(value)}" for key, value in document.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _rows(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return _compact(value)
    return "[\n" + ",\n".join(f"    {_compact(row)}" for row in value) + "\n  ]"


def _compact(value: Any) -> str:
    return json.dumps(value, allow_nan=False)
