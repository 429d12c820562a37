"""JSON for scripts, schema 1: column names of the tables, times in `_ns`, sizes in `_bytes`, null for missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracker.reports.document import Look

if TYPE_CHECKING:
    from tracker.reports.view import View
    from tracker.results.screens import Result

TITLE = "JSON for scripts (schema 1)"
SUFFIX = ".json"
SCHEMA = 1


def render(result: Result, view: View, look: Look) -> str:
    """Return the whole result: its fields, then a list of rows per table.

    A section of a diff, a run or its ranks that was not chosen has no key; a section without rows is an empty list.
    """
    return _dump({"schema": SCHEMA, **view.json(result, look)})


def joined(pages: Sequence[str]) -> str:
    """Write several documents as the list `diffs` of one."""
    documents = ",\n".join(page.rstrip() for page in pages)
    return f'{{"schema": {SCHEMA}, "diffs": [\n{documents}\n]}}\n'


def _dump(document: dict[str, Any]) -> str:
    """Write valid JSON in ASCII, a line per row, so that two documents can be compared with a line diff."""
    lines = []
    for key, value in document.items():
        text = json.dumps(value, allow_nan=False)
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(f"    {json.dumps(row, allow_nan=False)}" for row in value) + "\n  ]"
        lines.append(f"  {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
