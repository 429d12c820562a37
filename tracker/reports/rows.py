"""The rows of a result as plain values, and which of its tables a reader chose."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace

from tracker.columns import Columns
from tracker.reports.document import Column, Group, Look, Table, empty, table
from tracker.results import EXPLAIN_COLUMNS, GRAINS, Cluster, Diff, ExplainedIncident, Shown, Status
from tracker.results.sections import SECTION

Row = dict[str, Any]
_UNITS: Final[Mapping[str, str]] = {
    "ns": "ns", "bytes": "bytes", "s": "rate",
    **dict.fromkeys(("share", "ratio", "detectable", "effect", "contribution", "spread"), "ratio"),
    **dict.fromkeys(("diff", "change", "gain", "factor"), "change"),
    **dict.fromkeys(("mean", "min", "max", "p", "q"), "number"),
    **dict.fromkeys(("calls", "ops", "packets", "step", "steps", "size", "rank", "ranks", "runs"), "count"),
    **dict.fromkeys(("names", "gaps", "kernels", "stream", "stages", "microbatches", "second", "count"), "count"),
}  # fmt: skip


def unit_of(name: str) -> str:
    """What a column of a result holds, by the last word of its name: ns, bytes, count, ratio, change (a ratio with a
    sign), number (of any size), rate (per second); "" for text.

    >>> unit_of("baseline_ns"), unit_of("bandwidth_gb_per_s"), unit_of("name")
    ('ns', 'rate', '')
    """
    return _UNITS.get(name.rpartition("_")[2], "")


def plain(value: Any) -> Any:
    """`value` as JSON knows it: None for what is missing or not finite, exact ints, text, lists, dicts (Structs, too).

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


def names(rows: Columns | list[Row]) -> list[str]:
    """The names of the columns, in order; those of the first of dicts."""
    return [*rows.arrays] if isinstance(rows, Columns) else [*rows[0]] if rows else []


def records(rows: Columns | list[Row]) -> list[Row]:
    """The rows as dicts of plain values, keys in column order."""
    return [*map(plain, rows.records() if isinstance(rows, Columns) else rows)]


def table_of(
    title: str,
    columns: Sequence[Column],
    rows: Columns | Sequence[Any],
    limit: int | None = None,
    *,
    tone: Callable[[Any], str] = lambda row: "",
    **parts: Any,
) -> Table:
    """A table of the first rows of a result, or of anything that `columns` make cells of; it says how many are left
    out. `tone`: of a row; `parts`: other fields of the table, functions of a row where they have a value for each.
    """
    kept: Sequence[Any] = records(rows.head(limit)) if isinstance(rows, Columns) else rows[:limit]
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


def tables_of(result: Any, look: Look) -> dict[str, Any]:
    """The chosen tables of a result by name, those of a diff, a run or its ranks cut to the limit: columns, or lists of
    rows.
    """
    limit = look.rows(None)
    if isinstance(result, Diff | Shown):  # a tree comes first, cut at each level
        tables: dict[str, Any] = {} if result.tree_table is None else {"tree": pruned(result.tree_table, limit)}
        chosen = (name for section in chosen_sections(result, look) for name in SECTION[section].tables)
        return tables | {name: result.tables[name].head(limit) for name in chosen if name in result.tables}
    if isinstance(result, Cluster):  # changes where there are two runs
        names = look.only or [name for name in result.tables if name != "changes" or result.baseline is not None]
        return {name: rows.head(limit) for name, rows in result.tables.items() if name in names}
    if isinstance(result, ExplainedIncident):  # each row with the number of its finding
        tables = {"findings": [plain(dict(one.finding)) for one in result.explained]}
        for name in EXPLAIN_COLUMNS:
            tables[name] = [
                {"finding_id": one.finding["finding_id"]} | row
                for one in result.explained for row in records(one.tables[name])
            ]  # fmt: skip
        return tables
    if isinstance(result, Status):  # what it says of the whole, then its lists, that of what is expected the last
        values = plain(result)
        lists = {name: rows for name, rows in values.items() if isinstance(rows, list)}
        for row in lists["folders"]:
            del row["expected"]
            row |= {key: str(row[key]) for key in ("profiles", "not_taken")}
        expected = [{"path": one.path} | plain(each) for one in result.folders for each in one.expected]
        whole = {name: value for name, value in values.items() if name not in lists}
        return {"status": [whole]} | lists | {"expected": expected}
    return dict(result.tables)


def chosen_sections(result: Diff | Shown, look: Look) -> tuple[str, ...]:
    """The sections to show, in reading order; a tree stands alone, unless `only` names sections."""
    if isinstance(result, Diff) and result.is_refused:
        return ()
    return () if result.tree_table is not None and not look.only else look.sections()
