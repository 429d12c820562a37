"""JSON for scripts, schema 1: column names of the tables, times in `_ns`, sizes in `_bytes`, null for missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from tracker.reports.commands import command
from tracker.reports.look import Look
from tracker.reports.rows import plain, records
from tracker.reports.tables import bottleneck_record, chosen_sections, chosen_tables, selected
from tracker.reports.views.bottleneck import changed
from tracker.results import (
    CALIBRATION_COLUMNS,
    EXPLAIN_COLUMNS,
    HISTORY_COLUMNS,
    LOG_COLUMNS,
    MATRIX_COLUMNS,
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
    Selection,
    Shown,
    Status,
)

if TYPE_CHECKING:
    from tracker.doctor import Findings as DoctorFindings

TITLE = "JSON for scripts (schema 1)"
SUFFIX = ".json"
BINARY = False
SCHEMA = 1


def diff(diff: Diff, look: Look) -> str:
    """Both sides, what else changed, a list of rows per chosen section, the explanation.

    A section that was not chosen has no key; a section without rows is an empty list.
    """
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "baseline": plain(diff.baseline),
        "candidate": plain(diff.candidate),
        "metric": diff.metric,
        "options": _options(diff.options),
        "notes": plain(diff.notes),
        "environment": records(diff.tables["environment"]),
        "bottleneck": None,
    }
    if diff.bottlenecks is not None:
        before, after = map(bottleneck_record, diff.bottlenecks)
        document["bottleneck"] = {"baseline": before, "candidate": after, "changed": changed(diff)}
    document.update((name, records(rows)) for name, rows in selected(diff, look))
    document["explanation"] = plain(diff.explanation)
    judgement = diff.judgement
    document["judgement"] = judgement and {**plain(judgement), "counts": dict(judgement.counts)}
    return _dump(document)


def joined(pages: Sequence[str]) -> str:
    """Several documents as the list `diffs` of one."""
    documents = ",\n".join(page.rstrip() for page in pages)
    return f'{{"schema": {SCHEMA}, "diffs": [\n{documents}\n]}}\n'


def show(shown: Shown, look: Look) -> str:
    """The run with its facts and sources, then a list of rows per chosen section; memory with its course over time."""
    run = plain(shown.run)
    run.setdefault("facts", records(shown.tables["facts"]))
    run.setdefault("sources", records(shown.tables["sources"]))
    document: dict[str, Any] = {"schema": SCHEMA, "run": run, "options": _options(shown.options)}
    document |= {"notes": plain(shown.notes), "bottleneck": bottleneck_record(shown.bottleneck)}
    document.update((name, records(rows)) for name, rows in selected(shown, look))
    if not look.only:
        document["advice"] = plain(shown.advice)
    if "memory" in chosen_sections(shown, look):
        document["memory_curve"] = records(shown.tables["memory_curve"])
    return _dump(document)


def log(log: Log, look: Look) -> str:
    """The workload, its versions, columns and cells, and what each direction gained."""
    fields = {name: plain(getattr(log, name)) for name in ("workload", "baseline", "options")}
    return _dump({"schema": SCHEMA, **fields, **{name: records(getattr(log, name)) for name in LOG_COLUMNS}})


def history(history: History, look: Look) -> str:
    """The series, their points by version, their runs, and what else changed."""
    fields = {name: plain(getattr(history, name)) for name in ("pinned", "options", "notes")}
    return _dump({"schema": SCHEMA, **fields, **{name: records(getattr(history, name)) for name in HISTORY_COLUMNS}})


def findings(found: Findings, look: Look) -> str:
    """Incidents, their findings, and what else changed with them."""
    fields = {name: plain(getattr(found, name)) for name in ("options", "hidden", "notes")}
    return _dump({"schema": SCHEMA, **fields, **{name: records(rows) for name, rows in found.tables.items()}})


def explained(found: ExplainedFinding, look: Look) -> str:
    """One finding with its tests, runs, events and facts, and what else changed."""
    return _dump(_explained(found))


def incident(found: ExplainedIncident, look: Look) -> str:
    """The same of all findings of an incident."""
    explained = [_explained(one) for one in found.explained]
    return _dump({"schema": SCHEMA, "incident_id": found.incident_id, "explained": explained})


def _explained(found: ExplainedFinding) -> dict[str, Any]:
    fields = {"finding": plain(dict(found.finding)), "notes": plain(found.notes), "advice": plain(found.advice)}
    tables = {name: records(getattr(found, name)) for name in (*EXPLAIN_COLUMNS, "environment")}
    return {"schema": SCHEMA, **fields, **tables}


def board(found: Board, look: Look) -> str:
    """Every line, and the step of its last versions."""
    tables = {name: records(rows) for name, rows in found.tables.items()}
    return _dump({"schema": SCHEMA, "headline": found.headline, "options": plain(found.options), **tables})


def advice(found: Advised, look: Look) -> str:
    """The sides, what can be won together, a list of advice with its evidence, and how near operators come to peak."""
    names = ("run", "baseline", "step_ns", "together_ns", "bottleneck", "missing", "notes", "options")
    fields = {name: plain(getattr(found, name)) for name in names}
    efficiency = plain(found.use) | {"rows": records(found.tables["efficiency"].head(look.rows(None)))}
    kept = found.items[: look.rows(None)]
    items = [{name: value for name, value in plain(item).items() if name != "is_shown"} for item in kept]
    return _dump({"schema": SCHEMA, "headline": found.headline, **fields, "advice": items, "efficiency": efficiency})


def cluster(found: Cluster, look: Look) -> str:
    """The run, the answer, and a list of rows per chosen section; with a second run `changes` from the first."""
    fields = {
        name: plain(getattr(found, name)) for name in ("run", "baseline", "verdict", "remarks", "missing", "notes")
    }
    tables = {name: records(rows) for name, rows in chosen_tables(found, look)}
    return _dump({"schema": SCHEMA, "headline": found.headline, **fields, **tables})


def matrix(matrix: Matrix, look: Look) -> str:
    """The sides, what their runs can tell, and a list of rows, each with a cell per side."""
    from tracker.reports.views.matrix import headline, rows_of

    names = MATRIX_COLUMNS["cells"][1:]
    rows = rows_of(matrix, look.rows(None))
    fields: dict[str, Any] = {"headline": headline(matrix)}
    fields |= {name: plain(getattr(matrix, name)) for name in ("sides", "metric", "by")}
    fields |= {"options": _options(matrix.options), "notes": plain(matrix.notes), "judged": list(matrix.judged)}
    cells = [{**row, "cells": [{name: cell[name] for name in names} for cell in row["cells"]]} for row in rows]
    return _dump({"schema": SCHEMA, **fields, "rows": cells})


def calibration(calibration: Calibration, look: Look) -> str:
    """Whose repeats these are, false findings by the smallest change that counts, proposals and noisy series."""
    names = ("workload", "configuration", "device", "versions", "run_ids", "baseline", "candidate", "windows", "splits")
    fields = {name: plain(getattr(calibration, name)) for name in (*names, "options", "notes")}
    tables = {name: records(getattr(calibration, name)) for name in CALIBRATION_COLUMNS}
    return _dump({"schema": SCHEMA, **fields, **tables})


def doctor(findings: DoctorFindings, look: Look) -> str:
    """All that was found; `command`: a line for a shell that ingests all, null where there is nothing to ingest.
    `commands`: those that are proposed, one for each folder that holds runs of a version of its own.
    """
    found = plain(findings)
    words, each = found.pop("command"), found.pop("commands")
    lines = [command(*one) for one in each or filter(None, [words])]
    return _dump({"schema": SCHEMA, **found, "command": command(*words) if words else None, "commands": lines})


def status(status: Status, look: Look) -> str:
    """All of it: watchers, folders with what is expected there, and profiles that are not in the database yet."""
    return _dump({"schema": SCHEMA, **plain(status)})


def _options(chosen: Selection) -> dict[str, Any]:
    """How the result was chosen, by the names of the Python interface, without what no user says."""
    return {name: plain(value) for name, value in asdict(chosen).items() if name not in ("on_progress", "with_advice")}


def _dump(document: dict[str, Any]) -> str:
    """Valid JSON in ASCII, a line per row, so that two documents can be compared with a line diff."""
    lines = []
    for key, value in document.items():
        text = json.dumps(value, allow_nan=False)
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(f"    {json.dumps(row, allow_nan=False)}" for row in value) + "\n  ]"
        lines.append(f"  {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
