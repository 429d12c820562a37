"""JSON for scripts, schema 1: column names of the tables, times in `_ns`, sizes in `_bytes`, null for missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracker.columns import Columns
from tracker.reports.document import Look
from tracker.reports.rows import list_records

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
    # json.dumps makes an encoder for each call, which takes as long as a row
    encode = json.JSONEncoder(allow_nan=False).encode
    lines = []
    for key, value in document.items():
        rows = list_records(value) if isinstance(value, Columns) else value
        if isinstance(value, list | Columns) and len(value):
            text = "[\n" + ",\n".join(f"    {encode(row)}" for row in rows) + "\n  ]"
        else:
            text = encode([] if isinstance(value, Columns) else value)
        lines.append(f"  {encode(key)}: {text}")
    return without_commands("{\n" + ",\n".join(lines) + "\n}\n")


def without_commands(document: str) -> str:
    """Return JSON in which no runner of CI finds a command: `##[` acts anywhere in a line. The texts stay what they
    are.

    >>> json.loads(without_commands('"a ##[error]"')), without_commands('"##[x"')
    ('a ##[error]', '"\\\\u0023#[x"')
    """
    return document.replace("##[", r"\u0023#[")
