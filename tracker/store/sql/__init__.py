"""One question per file; `statement` loads it."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final

from sqlalchemy import TextClause, bindparam, text

_LISTS: Final = frozenset(
    {"run_ids", "ranks", "steps", "digests", "finding_ids", "series_ids", "states", "message_ids"}
)
"""Parameters that stand for a list."""

_PARAMETER: Final = re.compile(r"(?<!:):(\w+)")
_COMMENT: Final = re.compile(r"--[^\n]*")


@cache
def statement(name: str) -> TextClause:
    """The statement in `name`.sql."""
    body = _COMMENT.sub("", files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8"))
    lists = _LISTS & set(_PARAMETER.findall(body))
    return text(body).bindparams(*(bindparam(parameter, expanding=True) for parameter in sorted(lists)))
