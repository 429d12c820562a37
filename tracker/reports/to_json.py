"""JSON for scripts, schema 1: column names of the tables, times in `_ns`, sizes in `_bytes`, null for missing."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

from tracker.doctor import Findings
from tracker.reports import _human_bottleneck
from tracker.reports._shared import Style, command, plain, records, selected
from tracker.results import (
    CALIBRATION_COLUMNS,
    HISTORY_COLUMNS,
    LOG_COLUMNS,
    Calibration,
    Diff,
    History,
    Log,
    Selection,
    Shown,
)

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
        "baseline": plain(asdict(diff.baseline)),
        "candidate": plain(asdict(diff.candidate)),
        "metric": diff.metric,
        "options": _options(diff.options),
        "notes": list(plain(diff.notes)),
        "environment": records(diff.environment),
    }
    document["bottleneck"] = _both_bottlenecks(diff)
    document.update((name, records(frame)) for name, frame in selected(diff, style))
    document["explanation"] = plain(asdict(diff.explanation))
    return _dump(document)


def show(shown: Shown, style: Style) -> str:
    """The run with its facts and sources, then a list of rows per chosen section."""
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
    return _dump(document)


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
        "options": plain(asdict(log.options)),
    }
    document.update((name, records(getattr(log, name))) for name in LOG_COLUMNS)
    return _dump(document)


def history(history: History, style: Style) -> str:
    """The series, their points by version, their runs, and what else changed."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "pinned": plain(history.pinned),
        "options": plain(asdict(history.options)),
        "notes": list(plain(history.notes)),
    }
    document.update((name, records(getattr(history, name))) for name in HISTORY_COLUMNS)
    return _dump(document)


def calibration(calibration: Calibration, style: Style) -> str:
    """Whose repeats these are, false findings by the smallest change that counts, proposals and noisy series."""
    document: dict[str, Any] = {"schema": SCHEMA}
    for name in ("workload", "configuration", "device", "versions", "run_ids", "baseline", "candidate", "windows"):
        document[name] = plain(getattr(calibration, name))
    document |= {
        "splits": calibration.splits,
        "options": plain(asdict(calibration.options)),
        "notes": list(plain(calibration.notes)),
    }
    document.update((name, records(getattr(calibration, name))) for name in CALIBRATION_COLUMNS)
    return _dump(document)


def doctor(findings: Findings, style: Style) -> str:
    """All that was found; `command` is one line for a shell, null where there is nothing to ingest."""
    found = plain(asdict(findings))
    words = found.pop("command")
    return _dump({"schema": SCHEMA, **found, "command": command(*words) if words else None})


def _options(chosen: Selection) -> dict[str, Any]:
    """How the result was asked for, by the names of the Python interface, without what cannot be written."""
    return {item.name: plain(getattr(chosen, item.name)) for item in fields(chosen) if item.name != "on_progress"}


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
