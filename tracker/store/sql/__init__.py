"""One question per file; `statement` loads it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from sqlalchemy import TextClause, bindparam, text

QUESTION: Final = "tracker_question"
"""The option of a statement by which it is known as one of these."""

_LISTS: Final = frozenset(
    {"run_ids", "ranks", "steps", "digests", "finding_ids", "series_ids", "states", "message_ids"}
)
"""Parameters that stand for a list."""

_PARAMETER: Final = re.compile(r"(?<!:):(\w+)")
_COMMENT: Final = re.compile(r"--[^\n]*")
_LAST_SELECT: Final = re.compile(r"^SELECT", re.MULTILINE)
_COLUMN: Final = re.compile(r"^(?:SELECT| {3}) (?:\w+\.|\S.* AS )(\w+),?$", re.MULTILINE)


@cache
def statement(name: str) -> TextClause:
    """The statement in `name`.sql."""
    body = _COMMENT.sub("", Path(__file__).with_name(f"{name}.sql").read_text(encoding="utf-8"))
    lists = _LISTS & set(_PARAMETER.findall(body))
    question = text(body).bindparams(*(bindparam(parameter, expanding=True) for parameter in sorted(lists)))
    return question.execution_options(**{QUESTION: True})


@cache
def columns_of(name: str) -> tuple[str, ...]:
    """The columns of the answer to `name`.sql, each at the end of a line.

    >>> columns_of("sample_arrays")
    ('run_id', 'numbers')
    """
    body = statement(name).text
    start = max(found.start() for found in _LAST_SELECT.finditer(body))
    return tuple(_COLUMN.findall(body[start : body.index("\nFROM", start) + 1]))
