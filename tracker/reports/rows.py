"""The rows of a result as plain values, for all formats."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from tracker.columns import Columns
from tracker.lazy import pd
from tracker.results import GRAINS

Row = dict[str, Any]


def plain(value: Any) -> Any:
    """`value` as JSON knows it: None for what is missing or not finite, exact ints, text, lists, dicts (Structs, too).

    >>> plain(float("nan")), plain(pd.NA), plain(1736413971558972912), plain({"a": (b"\\x01", 2.5)})
    (None, None, 1736413971558972912, {'a': ['01', 2.5]})
    """
    kind = type(value)  # what most values are goes first
    if kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is str:
        return value if value.isascii() else _no_surrogates(value)
    if isinstance(value, Struct):
        return {name: plain(item) for name, item in asdict(value).items()}
    if isinstance(value, Mapping):
        return {_no_surrogates(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    # last, so that what has no frame does not import pandas
    if not isinstance(value, str | bytes) and (value is pd.NA or value is pd.NaT):
        return None
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if text.isascii() else _no_surrogates(text)


def _no_surrogates(text: str) -> str:
    # no strict decoder of UTF-8 or JSON takes a lone surrogate
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def names(rows: Columns | pd.DataFrame) -> list[str]:
    """The names of the columns, in order."""
    return [*rows.arrays] if isinstance(rows, Columns) else [*rows.columns]


def listed(rows: Columns | pd.DataFrame, name: str) -> list[Any]:
    """The values of a column."""
    return rows.listed(name) if isinstance(rows, Columns) else rows[name].tolist()


def has(rows: Columns | pd.DataFrame, name: str) -> bool:
    """Whether any row has something in a column, which may be none of theirs."""
    if name not in rows:
        return False
    return bool((rows.known(name) if isinstance(rows, Columns) else rows[name].notna()).any())


def records(rows: Columns | pd.DataFrame) -> list[Row]:
    """The rows as dicts of plain values, keys in column order.

    Column by column, since iterating over the rows of a frame turns the ints of mixed rows into floats.
    """
    keys = names(rows)
    columns = ([plain(value) for value in listed(rows, name)] for name in keys)
    return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]


def top(rows: Columns | pd.DataFrame, limit: int | None) -> tuple[list[Row], int]:
    """The first rows of a table that is ordered by importance, and how many are left out."""
    found = records(rows if limit is None else rows.head(limit))
    return found, len(rows) - len(found)


def pruned(tree: Columns, limit: int | None) -> Columns:
    """A tree with at most `limit` rows below each row and on level 0, those that come first; None for all."""
    if limit is None:
        return tree
    kept, above = {-1}, Counter[tuple[Any, ...]]()
    chosen = []
    grains = [name for name in GRAINS if name in tree]
    for node, place in zip(tree.listed("node"), tree.rows(*grains, "parent"), strict=True):
        chosen.append(above[place] < limit and place[-1] in kept)
        above[place] += 1
        kept.update([node] if chosen[-1] else ())
    return tree.taken(np.array(chosen, dtype=bool))


def no_formula(text: str) -> str:
    """`text` such that no spreadsheet takes it for a formula: a leading `= + - @`, tab or line end gets a `'` before
    it.

    >>> no_formula("=1+1"), no_formula("aten::mm"), no_formula("")
    ("'=1+1", 'aten::mm', '')
    """
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text
