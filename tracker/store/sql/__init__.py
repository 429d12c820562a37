"""One question per file; `statement` loads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from sqlalchemy import TextClause, bindparam, text

QUESTION: Final = "tracker_question"
"""The option of a statement by which it is known as one of these."""

_LISTS: Final = frozenset(
    {"run_ids", "ranks", "steps", "digests", "finding_ids", "series_ids", "states", "message_ids", "sizes"}
)
"""Parameters that stand for a list."""

_PARAMETER: Final = re.compile(r"(?<!:):(\w+)")
_COMMENT: Final = re.compile(r"--[^\n]*")
_LAST_SELECT: Final = re.compile(r"^SELECT", re.MULTILINE)
_COLUMN: Final = re.compile(r"^(?:SELECT| {3}) (?:\w+\.|\S.* AS )(\w+),?$", re.MULTILINE)


@cache
def statement(name: str) -> TextClause:
    """The statement in `name`.sql."""
    return question(_COMMENT.sub("", Path(__file__).with_name(f"{name}.sql").read_text(encoding="utf-8")))


def question(body: str) -> TextClause:
    """The statement with this text."""
    lists = _LISTS & set(_PARAMETER.findall(body))
    found = text(body).bindparams(*(bindparam(parameter, expanding=True) for parameter in sorted(lists)))
    return found.execution_options(**{QUESTION: True})


@cache
def columns_of(question: TextClause) -> tuple[str, ...]:
    """The columns of the answer to a statement, each at the end of a line.

    >>> columns_of(statement("sample_arrays"))
    ('run_id', 'numbers')
    """
    body = question.text
    start = max(found.start() for found in _LAST_SELECT.finditer(body))
    return tuple(_COLUMN.findall(body[start : body.index("\nFROM", start) + 1]))


def select_columns(columns: Mapping[str, str]) -> str:
    """Return what stands behind SELECT: name in the answer -> SQL.

    >>> print(select_columns({"rank": "d.rank", "calls": "SUM(d.calls)"}))
    <BLANKLINE>
        d.rank,
        SUM(d.calls) AS calls
    """
    listed = []
    for name, column in columns.items():
        is_so_called = column.partition(".")[2] == name
        listed.append(column if is_so_called else f"{column} AS {name}")
    return ",".join(f"\n    {column}" for column in listed)
