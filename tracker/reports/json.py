"""JSON for scripts, schema 1: column names of the tables, times in `_ns`, sizes in `_bytes`, null for missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from tracker.reports.commands import command
from tracker.reports.document import Look
from tracker.reports.rows import chosen_sections, plain, records, tables_of
from tracker.reports.views import bottleneck
from tracker.results import MATRIX_COLUMNS, Advised, Diff, ExplainedFinding, ExplainedIncident, Matrix, Selection, Shown

if TYPE_CHECKING:
    from tracker.doctor import Findings as DoctorFindings

TITLE = "JSON for scripts (schema 1)"
SUFFIX = ".json"
SCHEMA = 1
_FIELDS: Final = {
    "log": ("workload", "baseline", "options"), "history": ("pinned", "options", "notes"),
    "findings": ("options", "hidden", "notes"), "board": ("headline", "options"),
    "cluster": ("headline", "run", "baseline", "verdict", "remarks", "missing", "notes"),
    "calibration": (
        "workload", "configuration", "device", "versions", "run_ids", "baseline", "candidate", "windows", "splits",
        "options", "notes",
    ),
}  # fmt: skip
"""Word of a view -> what the document has before the tables of its result."""


def render(what: str, result: Any, look: Look) -> str:
    """The whole result: its fields, then a list of rows per table. A section of a diff, a run or its ranks that was not
    chosen has no key; a section without rows is an empty list.
    """
    if what in _MADE:
        document = _MADE[what](result, look)
    else:
        document = {name: plain(getattr(result, name)) for name in _FIELDS[what]}
        document |= {name: records(rows) for name, rows in tables_of(result, look).items()}
    return _dump({"schema": SCHEMA} | document)


def joined(pages: Sequence[str]) -> str:
    """Several documents as the list `diffs` of one."""
    documents = ",\n".join(page.rstrip() for page in pages)
    return f'{{"schema": {SCHEMA}, "diffs": [\n{documents}\n]}}\n'


def _diff(diff: Diff, look: Look) -> dict[str, Any]:
    """Both sides, what else changed, a list of rows per chosen section, the explanation."""
    sides = None
    if diff.bottlenecks is not None:
        before, after = map(bottleneck.record, diff.bottlenecks)
        sides = {"baseline": before, "candidate": after, "changed": bottleneck.changed(diff)}
    judgement = diff.judgement
    return {
        "baseline": plain(diff.baseline),
        "candidate": plain(diff.candidate),
        "metric": diff.metric,
        "options": _options(diff.options),
        "notes": plain(diff.notes),
        "environment": records(diff.tables["environment"]),
        "bottleneck": sides,
        **{name: records(rows) for name, rows in tables_of(diff, look).items()},
        "explanation": plain(diff.explanation),
        "judgement": judgement and {**plain(judgement), "counts": dict(judgement.counts)},
    }


def _show(shown: Shown, look: Look) -> dict[str, Any]:
    """The run with its facts and sources, then a list of rows per chosen section; memory with its course over time."""
    run = plain(shown.run)
    run.setdefault("facts", records(shown.tables["facts"]))
    run.setdefault("sources", records(shown.tables["sources"]))
    document = {"run": run, "options": _options(shown.options), "notes": plain(shown.notes)}
    document["bottleneck"] = bottleneck.record(shown.bottleneck)
    document |= {name: records(rows) for name, rows in tables_of(shown, look).items()}
    if "operator" in chosen_sections(shown, look):
        # sums of ops and kernels, for who reads one list; rows of ops can be added up from a table of cells
        document["largest"] = records(shown.tables["largest"].head(look.rows(None)))
    if not look.only:
        document["advice"] = plain(shown.advice)
    if "memory" in chosen_sections(shown, look):
        document["memory_curve"] = records(shown.tables["memory_curve"])
    return document


def _explained(found: ExplainedFinding | ExplainedIncident, look: Look) -> dict[str, Any]:
    """One finding with its tests, runs, events and facts, and what else changed; the same of all of an incident."""
    if isinstance(found, ExplainedIncident):
        explained = [{"schema": SCHEMA} | _explained(one, look) for one in found.explained]
        return {"incident_id": found.incident_id, "explained": explained}
    fields = {name: plain(getattr(found, name)) for name in ("finding", "notes", "advice")}
    tables = {name: records(rows) for name, rows in tables_of(found, look).items()}
    return fields | tables


def _advice(found: Advised, look: Look) -> dict[str, Any]:
    """The sides, what can be won together, a list of advice with its evidence, and how near operators come to peak."""
    names = ("headline", "run", "baseline", "step_ns", "together_ns", "bottleneck", "missing", "notes", "options")
    efficiency = plain(found.use) | {"rows": records(found.tables["efficiency"].head(look.rows(None)))}
    kept = found.items[: look.rows(None)]
    items = [{name: value for name, value in plain(item).items() if name != "is_shown"} for item in kept]
    return {name: plain(getattr(found, name)) for name in names} | {"advice": items, "efficiency": efficiency}


def _matrix(matrix: Matrix, look: Look) -> dict[str, Any]:
    """The sides, what their runs can tell, and a list of rows, each with a cell per side."""
    from tracker.reports.views.matrix import headline, rows_of

    names = MATRIX_COLUMNS["cells"][1:]
    rows = rows_of(matrix, look.rows(None))
    fields: dict[str, Any] = {"headline": headline(matrix)}
    fields |= {name: plain(getattr(matrix, name)) for name in ("sides", "metric", "by")}
    fields |= {"options": _options(matrix.options), "notes": plain(matrix.notes), "judged": list(matrix.judged)}
    cells = [{**row, "cells": [{name: cell[name] for name in names} for cell in row["cells"]]} for row in rows]
    return fields | {"rows": cells}


def _doctor(findings: DoctorFindings, look: Look) -> dict[str, Any]:
    """All that was found; `command`: a line for a shell that ingests all, null where there is nothing to ingest.
    `commands`: those that are proposed, one for each folder that holds runs of a version of its own.
    """
    found: dict[str, Any] = plain(findings)
    words, each = found.pop("command"), found.pop("commands")
    lines = [command(*one) for one in each or filter(None, [words])]
    return found | {"command": command(*words) if words else None, "commands": lines}


_MADE: Final[Mapping[str, Callable[[Any, Look], dict[str, Any]]]] = {
    "diff": _diff, "show": _show, "explained": _explained, "advice": _advice,
    "matrix": _matrix, "doctor": _doctor, "status": lambda status, look: plain(status),
}  # fmt: skip


def _options(chosen: Selection) -> dict[str, Any]:
    """How the result was chosen, by the names of the Python interface, without what no user says."""
    unsaid = ("on_progress", "with_advice", "with_flame")
    return {name: plain(value) for name, value in asdict(chosen).items() if name not in unsaid}


def _dump(document: dict[str, Any]) -> str:
    """Valid JSON in ASCII, a line per row, so that two documents can be compared with a line diff."""
    lines = []
    for key, value in document.items():
        text = json.dumps(value, allow_nan=False)
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(f"    {json.dumps(row, allow_nan=False)}" for row in value) + "\n  ]"
        lines.append(f"  {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
