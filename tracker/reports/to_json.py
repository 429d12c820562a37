"""JSON for scripts, schema 1: column names of the tables, times in `_ns`, sizes in `_bytes`, null for missing."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from tracker.reports._shared import Style, plain, records, selected
from tracker.results import Diff, Shown

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
        "notes": list(plain(diff.notes)),
        "environment": records(diff.environment),
    }
    document.update((name, records(frame)) for name, frame in selected(diff, style))
    document["explanation"] = plain(asdict(diff.explanation))
    return _dump(document)


def show(shown: Shown, style: Style) -> str:
    """The run with its facts and sources, then a list of rows per chosen section."""
    run = plain(shown.run)
    run.setdefault("facts", records(shown.facts))
    run.setdefault("sources", records(shown.sources))
    document: dict[str, Any] = {"schema": SCHEMA, "run": run}
    tables = {name: records(frame) for name, frame in selected(shown, style)}
    # the documented order of keys; what came later stands behind it
    for name in ("overall", "steps", "ops", "kernels", "communication", "memory", "copies", "modules", "api"):
        if name in tables:
            document[name] = tables[name]
    return _dump(document)


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
