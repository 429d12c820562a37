"""What several report formats need: the wishes of the reader, plain values, harmless text, which tables belong to a
section."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from tracker.columns import Columns
from tracker.lazy import pd
from tracker.results import GRAINS, SECTIONS, Diff, Selection, Shown
from tracker.results.gates import Gate
from tracker.units import NS_PER_US, printable

DIFF_TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "overall": ("overall",),
    "operator": ("ops",),
    "kernel": ("kernels",),
    "kernel_type": ("kernel_types",),
    "metric": ("kernel_metrics",),
    "communication": ("communication",),
    "link": ("communication_links",),
    "memory": ("memory",),
    "memory_peak": ("memory_peak", "memory_peak_totals"),
    "memory_block": ("memory_blocks",),
    "module": ("modules",),
    "api": ("api",),
    "counter": ("counters",),
}
"""Section -> the tables of a `Diff` that answer it."""

SHOW_TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    **DIFF_TABLES,
    "overall": ("overall", "steps", "rank_summary", "step_summary"),
    "kernel": ("kernels", "copies"),
    "metric": ("kernel_metrics", "kernel_pipes"),
    "link": ("communication_links", "link_totals"),
    "counter": ("counters", "counter_summary"),
}
"""Section -> the frames of a `Shown` that answer it."""


_SMALL: Final = 0.01


class Style(Struct, frozen=True):
    """What the reader asked for; `render` says what each wish means."""

    only: tuple[str, ...] = ()
    limit: int | None = None
    width: int | None = None
    color: bool = False
    tell: Callable[[str], None] = print
    gate: Gate | None = None

    def sections(self, default: Sequence[str] = SECTIONS) -> tuple[str, ...]:
        """The sections to show, in reading order."""
        wanted = self.only or tuple(default)
        return tuple(section for section in SECTIONS if section in wanted)

    def rows(self, default: int | None) -> int | None:
        """How many rows a table may have, None for all."""
        limit = default if self.limit is None else self.limit
        return limit or None


def chosen_sections(result: Diff | Shown, style: Style, default: Sequence[str] = SECTIONS) -> tuple[str, ...]:
    """The sections to show, in reading order; a tree that is asked for stands alone, unless `only` names sections."""
    if isinstance(result, Diff) and result.is_refused:
        return ()
    return () if has_tree(result) and not style.only else style.sections(default)


def has_tree(result: Diff | Shown) -> bool:
    """Whether a tree was asked for."""
    return _tree(result) is not None


def _tree(result: Diff | Shown) -> Columns | pd.DataFrame | None:
    return result.tree_table if isinstance(result, Diff) else result.tree


def selected(result: Diff | Shown, style: Style) -> Iterator[tuple[str, Columns | pd.DataFrame]]:
    """Name and rows of each table of the chosen sections, cut to the limit; a tree comes first, cut at each level."""
    tables = DIFF_TABLES if isinstance(result, Diff) else SHOW_TABLES
    limit = style.rows(None)
    if (tree := _tree(result)) is not None:
        yield "tree", pruned(tree, limit)
    for section in chosen_sections(result, style):
        for name in tables[section]:
            rows: Columns | pd.DataFrame = result.tables[name] if isinstance(result, Diff) else getattr(result, name)
            yield name, rows if limit is None else rows.head(limit)


def pruned(tree: Columns | pd.DataFrame, limit: int | None) -> Columns | pd.DataFrame:
    """A tree with at most `limit` rows below each row and on level 0, those that come first; None for all."""
    if limit is None:
        return tree
    kept, above = {-1}, Counter[tuple[Any, ...]]()
    chosen = []
    places = (listed(tree, name) for name in (*(name for name in GRAINS if name in tree), "parent"))
    for node, place in zip(listed(tree, "node"), zip(*places, strict=True), strict=True):
        chosen.append(above[place] < limit and place[-1] in kept)
        above[place] += 1
        kept.update([node] if chosen[-1] else ())
    mask = np.array(chosen, dtype=bool)
    return tree.taken(mask) if isinstance(tree, Columns) else tree[mask].reset_index(drop=True)


def is_small(diff: float | None) -> bool:
    """Whether a relative change is too small to be coloured: below 1 %, as two runs of one program differ.

    >>> is_small(0.009), is_small(-0.02), is_small(None)
    (True, False, False)
    """
    return diff is not None and abs(diff) < _SMALL


def plain(value: Any) -> Any:
    """`value` as JSON knows it: None for what is missing or not finite, exact ints, text, lists, dicts (Structs, too).

    >>> plain(float("nan")), plain(pd.NA), plain(1736413971558972912), plain({"a": (b"\\x01", 2.5)})
    (None, None, 1736413971558972912, {'a': ['01', 2.5]})
    """
    if isinstance(value, Struct):
        return {name: plain(item) for name, item in asdict(value).items()}
    if isinstance(value, Mapping):
        return {_no_surrogates(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> bool | int | float | str | None:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    # last, so that what has no frame does not import pandas
    if not isinstance(value, str | bytes) and (value is pd.NA or value is pd.NaT):
        return None
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if text.isascii() else _no_surrogates(text)


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


def records(rows: Columns | pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as dicts of plain values, keys in column order.

    Column by column, since iterating over the rows of a frame turns the ints of mixed rows into floats.
    """
    keys = names(rows)
    columns = ([plain(value) for value in listed(rows, name)] for name in keys)
    return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]


def no_formula(text: str) -> str:
    """`text` such that no spreadsheet takes it for a formula: a leading `= + - @`, tab or line end gets a `'` before
    it.

    >>> no_formula("=1+1"), no_formula("aten::mm"), no_formula("")
    ("'=1+1", 'aten::mm', '')
    """
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text


def _no_surrogates(text: str) -> str:
    # no strict decoder of UTF-8 or JSON takes a lone surrogate
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def asked(chosen: Selection, *own: tuple[str, object]) -> list[str]:
    """The options of a question, as on the command line: `own` first, then what every selection has; None is not said.

    >>> from tracker.results import ShowOptions
    >>> asked(ShowOptions(op="aten::mm", ranks=(0, 2), skip_bad_rows=True), ("--depth", 3), ("--by", None))
    ['--depth', '3', '--rank', '0', '--rank', '2', '--op', 'aten::mm', '--skip-bad-rows']
    """
    pairs = [
        *own,
        *(("--rank", rank) for rank in chosen.ranks),
        ("--stage", chosen.stage),
        ("--module", chosen.module),
        ("--op", chosen.op),
        ("--kind", chosen.kind),
        ("--group", chosen.group),
        ("--min-us", None if chosen.minimum_ns is None else f"{chosen.minimum_ns / NS_PER_US:.12g}"),
        ("--workload", chosen.workload),
        ("--input-format", chosen.format),
        ("--flow-category", chosen.flow_category),
    ]
    words = [str(part) for name, value in pairs if value is not None for part in (name, value)]
    switches = {"--allow-partial": chosen.allow_partial, "--skip-bad-rows": chosen.skip_bad_rows}
    return [*words, *(name for name, given in switches.items() if given)]


def command(*words: str) -> str:
    """A command line that a shell takes as these words.

    >>> command("tracker", "diff", "v 1", "v2")
    "tracker diff 'v 1' v2"
    """
    import shlex

    return " ".join(printable(shlex.quote(word)) for word in words)


def command_of(program: Sequence[str], names: Sequence[str], options: Sequence[str] = ()) -> str:
    """A command line with its names, then its options; names that begin with - stand at the end, behind --.

    >>> command_of(("tracker", "diff"), ["v1", "v2"], ["--top", "3"]), command_of(("tracker", "show"), ["-a"])
    ('tracker diff v1 v2 --top 3', 'tracker show -- -a')
    """
    if any(name.startswith("-") for name in names):
        return command(*program, *options, "--", *names)
    return command(*program, *names, *options)


def exact_command(*words: str) -> str | None:
    r"""A command line that a shell takes as exactly these words; None where one cannot be written as it is.

    >>> exact_command("tracker", "diff", "v 1", "v2"), exact_command("tracker", "diff", "v1\u200b")
    ("tracker diff 'v 1' v2", None)
    """
    return command(*words) if all(printable(word) == word for word in words) else None
