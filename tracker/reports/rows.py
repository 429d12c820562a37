"""The rows of a result as plain values, and which of its tables a reader chose."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, Final, TypeVar

import numpy as np
from msgspec import Struct, defstruct
from msgspec.structs import asdict, replace

from tracker.columns import Column as ColumnOfResult
from tracker.columns import Columns
from tracker.reports.document import Column, Group, Table, empty, table

RowKind = TypeVar("RowKind", bound=Struct)
_UNITS: Final[Mapping[str, str]] = {
    "ns": "ns", "bytes": "bytes", "s": "rate",
    **dict.fromkeys(("share", "ratio", "detectable", "effect", "contribution", "spread"), "ratio"),
    **dict.fromkeys(("diff", "change", "gain", "factor"), "change"),
    **dict.fromkeys(("mean", "min", "max", "p", "q", "percent"), "number"),
    **dict.fromkeys(("calls", "ops", "packets", "step", "steps", "size", "rank", "ranks", "runs"), "count"),
    **dict.fromkeys(("names", "gaps", "kernels", "stream", "stages", "microbatches", "second", "count"), "count"),
    **dict.fromkeys(("interval", "intervals", "workers", "capacity"), "count"),
}  # fmt: skip

_ROWS_AT_ONCE: Final = 4096
_PLAIN_KINDS: Final = frozenset("iub")
"""Kinds of numpy whose values are plain: whole numbers and flags."""


def unit_of(name: str) -> str:
    """Return what a column of a result holds, by the last word of its name: ns, bytes, count, ratio, change (a ratio
    with a sign), number (of any size), rate (per second); "" for text.

    >>> unit_of("baseline_ns"), unit_of("bandwidth_gb_per_s"), unit_of("name")
    ('ns', 'rate', '')
    """
    return _UNITS.get(name.rpartition("_")[2], "")


def plain(value: Any) -> Any:
    """Return `value` as JSON knows it: None for what is missing or not finite, exact ints, text, lists, dicts (Structs,
    too).

    >>> plain(float("nan")), plain(1736413971558972912), plain({"a": (b"\\x01", 2.5)})
    (None, 1736413971558972912, {'a': ['01', 2.5]})
    """
    kind = type(value)  # what most values are goes first
    if kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is str:
        return _no_surrogates(value)
    if isinstance(value, Struct):
        return {name: plain(item) for name, item in asdict(value).items()}
    if isinstance(value, Mapping):
        return {_no_surrogates(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return _no_surrogates(value.hex() if isinstance(value, bytes) else str(value))


def _no_surrogates(text: str) -> str:
    # no strict decoder of UTF-8 or JSON takes a lone surrogate
    return text if text.isascii() else re.sub("[\ud800-\udfff]", "\ufffd", text)


def names(rows: Columns | list[dict[str, Any]]) -> list[str]:
    """Return the names of the columns, in order; those of the first of dicts."""
    return [*rows.arrays] if isinstance(rows, Columns) else [*rows[0]] if rows else []


def records(rows: Columns | list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows as dicts of plain values, keys in column order."""
    if not isinstance(rows, Columns):
        return [*map(plain, rows)]
    names = [*map(_no_surrogates, rows.arrays)]
    columns = [_list_plain(rows, name) for name in rows.arrays]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def rows_of(kind: type[RowKind], rows: Columns) -> list[RowKind]:
    """Return the rows as structs of `kind`, whose fields hold plain values.

    A field without a column has its default. A column without a field, as those are that a level of the profile
    declares alone, is an attribute of the rows by its name.
    """
    names = tuple(rows.arrays)
    row_kind = _with_columns(kind, names)
    columns = [_list_plain(rows, name) for name in names]
    return [row_kind(**dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)]


@cache
def _with_columns(kind: type[RowKind], names: tuple[str, ...]) -> type[RowKind]:
    """Return `kind` with a field for each of these columns."""
    others = [(name, Any, None) for name in names if name not in kind.__struct_fields__]
    if not others:
        return kind
    row_kind: Any = defstruct(kind.__name__, others, bases=(kind,), frozen=True, kw_only=True)
    found: type[RowKind] = row_kind
    return found


def _list_plain(rows: Columns, name: str) -> list[Any]:
    """Return a column as plain values; whole numbers, which most are, are so already."""
    values = rows.listed(name)
    column = rows.arrays[name]
    kind = (column.values if isinstance(column, ColumnOfResult) else column).dtype.kind
    return values if kind in _PLAIN_KINDS else [*map(plain, values)]


def table_of(
    title: str,
    columns: Sequence[Column],
    rows: Columns | Sequence[Any],
    limit: int | None = None,
    *,
    kind: type[Struct] = Struct,
    tone: Callable[[Any], str] = lambda row: "",
    **parts: Any,
) -> Table:
    """Return a table of the first rows of a result, or of anything that `columns` make cells of.

    It says how many are left out. `kind`: what a row of a table of a result is; `tone`: of a row; `parts`: other fields
    of the table, functions of a row where they have a value for each.
    """
    kept: Sequence[Any] = rows_of(kind, rows.head(limit)) if isinstance(rows, Columns) else rows[:limit]
    heads = [head for one in columns for head in (one.columns if isinstance(one, Group) else (one,))]
    lines = []
    cell_links = []
    has_links = any(head.link for head in heads)
    for row in kept:
        if has_links:
            cell_links.append(tuple(head.link(row) if head.link else None for head in heads))
        cells = [one.cells(row) if isinstance(one, Group) else (one.cell(row),) for one in columns]
        lines.append((tone(row), [*chain.from_iterable(cells)]))
    made = {name: tuple(map(part, kept)) if callable(part) else part for name, part in parts.items()}
    # what made the cells is no part of what a table says
    plain_heads = [replace(head, cell=empty, link=None) for head in heads]
    if has_links:
        made["cell_links"] = tuple(cell_links)
    return table(title, plain_heads, lines, **{"more": len(rows) - len(kept)} | made)


def list_records(rows: Columns) -> Iterator[dict[str, Any]]:
    """Yield the rows as `records` gives them, without holding all of a long list at once."""
    for low in range(0, len(rows), _ROWS_AT_ONCE):
        yield from records(rows.taken(slice(low, low + _ROWS_AT_ONCE)))


def no_formula(text: str) -> str:
    """Return `text` such that no spreadsheet takes it for a formula, and no runner of CI for a command: a leading
    `= + - @`, tab or line end, and `::`, gets a `'` before it.

    >>> no_formula("=1+1"), no_formula("aten::mm"), no_formula(" ::error::x"), no_formula("")
    ("'=1+1", 'aten::mm', "' ::error::x", '')
    """
    is_active = text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) or text.lstrip().startswith("::")
    return f"'{text}" if is_active else text


def list_notes(sentences: Iterable[str]) -> list[dict[str, Any]]:
    """Return sentences as the rows of a table."""
    return [{"note": sentence} for sentence in sentences]


def list_options(chosen: Struct) -> dict[str, Any]:
    """Return how a result was chosen, by the names of the Python interface, without what no user says."""
    options = asdict(chosen)
    for name in ("on_progress", "with_advice", "with_flame"):
        options.pop(name, None)
    return {name: plain(value) for name, value in options.items()}
