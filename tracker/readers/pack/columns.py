"""Columns of a pack: arrays and texts as bytes, and back.

A number takes 8 bytes (int64, float64), a text 4 (uint32, its place in the pool of the capture), little-endian. The
first bytes of all values stand together, then all second bytes: most are 0, and gzip takes those away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracker.profile import MISSING, Breakdown, Column, Rows, StepRow, Strings, Table
from tracker.readers.pack.schema import MAX_TEXT_BYTES, TextPool
from tracker.schema.breakdown import BREAKDOWN
from tracker.schema.levels import STEP_LEVEL

_DTYPES: Final = {"text": "<u4", "float": "<f8"}
_INTEGER: Final = "<i8"
_SURROGATES: Final = "surrogatepass"  # JSON may hold halves of pairs, and so may names
_OWN_OF_A_STEP: Final = ("step", "start_ns", "steps", "marker_ns")
_KIND: Final = "kind"
BREAKDOWNS: Final[Mapping[str, str]] = {
    **dict.fromkeys(_OWN_OF_A_STEP, "ns"),
    **{name: kind for column in BREAKDOWN for name, kind in column.row_kinds.items()},
    _KIND: "text",
}
"""Columns -> kinds, as in ROW_COLUMNS."""
LATER_BREAKDOWNS: Final = frozenset(column.name for column in STEP_LEVEL.columns if column.is_later)
"""Columns of BREAKDOWNS that packs of an earlier version lack: all of them are missing there."""


class BadColumn(ValueError):
    """A column that cannot be what was packed."""


def packed_table(kinds: Mapping[str, str], table: Table, pool: Strings) -> dict[str, bytes]:
    """The columns of a table as bytes; their texts go into `pool`."""
    return {name: _packed(kind, table[name], pool) for name, kind in kinds.items()}


def unpacked_table(
    kinds: Mapping[str, str], packed: Mapping[str, bytes], pool: Sequence[str], later: Collection[str] = ()
) -> dict[str, Column]:
    """Return the columns of a table; a BadColumn where there are others, or they have not one length.

    `later`: columns that a pack of an earlier version lacks; those are left out.
    """
    kinds = {name: kind for name, kind in kinds.items() if name in packed or name not in later}
    if packed.keys() != kinds.keys():
        raise BadColumn(f"has the columns {_listed(packed)} and not {_listed(kinds)}")
    table = {name: _unpacked(name, kind, packed[name], pool) for name, kind in kinds.items()}
    if len(lengths := {len(column) for column in table.values()}) > 1:
        raise BadColumn(f"has columns of different length ({_listed(map(str, sorted(lengths)))})")
    return table


def with_missing_columns(kinds: Mapping[str, str], table: Mapping[str, Column]) -> dict[str, Column]:
    """Return the columns of `kinds`, those that `table` lacks with all their values missing."""
    length = len(next(iter(table.values())))
    whole: dict[str, Column] = {}
    for name, kind in kinds.items():
        if name in table:
            whole[name] = table[name]
        elif kind == "text":
            whole[name] = [""] * length
        elif kind == "float":
            whole[name] = np.full(length, np.nan)
        else:
            whole[name] = np.full(length, MISSING, dtype=np.int64)
    return whole


def packed_breakdowns(rows: Rows, pool: Strings) -> dict[str, bytes]:
    """The breakdown of the capture, then those of its steps."""
    whole = StepRow(-1, 0, rows.overall)
    return packed_table(BREAKDOWNS, _steps_table([whole, *rows.steps]), pool)


def unpacked_breakdowns(table: Mapping[str, Column]) -> tuple[Breakdown, tuple[StepRow, ...]]:
    """The breakdown of the capture and its steps, from the columns of BREAKDOWNS, which have at least one row."""
    unknown = [None] * len(table["step"])

    def take(name: str) -> list[Any]:
        # a pack of an earlier program lacks what was not known then
        return _known(table[name]) if name in table else unknown

    breakdowns = [Breakdown(*values) for values in zip(*map(take, Breakdown.__struct_fields__), strict=True)]
    own = [take(name) for name in _OWN_OF_A_STEP]
    kinds = table.get(_KIND, [""] * len(unknown))
    rows = [
        StepRow(step, start_ns, part, steps, marker_ns, str(kind))
        for part, step, start_ns, steps, marker_ns, kind in zip(breakdowns, *own, kinds, strict=True)
    ]
    return breakdowns[0], tuple(rows[1:])


def packed_texts(pool: Strings) -> TextPool:
    """The texts of a pool, of which the first, '', is understood."""
    contents = [text.encode("utf-8", _SURROGATES) for text in pool.texts[1:]]
    if any(len(content) > MAX_TEXT_BYTES for content in contents):
        raise BadColumn(f"holds a text of more than {MAX_TEXT_BYTES >> 20} MiB")
    sizes = np.array([len(content) for content in contents], dtype=np.uint32)
    return TextPool(b"".join(contents), _shuffled(sizes, _DTYPES["text"]))


def unpacked_texts(pool: TextPool) -> list[str]:
    """All texts by their place; a BadColumn where they are none, or longer than texts can be."""
    sizes = _plain("sizes", pool.sizes, _DTYPES["text"])
    if len(sizes) and not sizes.all():
        raise BadColumn("holds an empty text, which stands for itself")
    ends = np.cumsum(sizes, dtype=np.int64)
    if (int(ends[-1]) if len(ends) else 0) != len(pool.content):
        raise BadColumn("holds fewer or more texts than it says")
    starts = [0, *ends.tolist()]
    if len(ends) and int(np.diff(starts).max()) > MAX_TEXT_BYTES:
        raise BadColumn(f"holds a text of more than {MAX_TEXT_BYTES >> 20} MiB")
    try:
        return ["", *(pool.content[a:b].decode("utf-8", _SURROGATES) for a, b in pairwise(starts))]
    except UnicodeDecodeError as error:
        raise BadColumn("holds a text that is not UTF-8") from error


def _steps_table(rows: Sequence[StepRow]) -> Table:
    table: dict[str, Column] = {}
    for name in _OWN_OF_A_STEP:
        own = [getattr(row, name) for row in rows]
        table[name] = np.array([MISSING if value is None else value for value in own])
    table[_KIND] = [row.kind for row in rows]
    for name, kind in BREAKDOWNS.items():
        if name in (*_OWN_OF_A_STEP, _KIND):
            continue
        values = [getattr(row.breakdown, name) for row in rows]
        missing: float = np.nan if kind == "float" else MISSING
        table[name] = values if kind == "text" else np.array([missing if v is None else v for v in values])
    return table


def _known(column: Column) -> list[Any]:
    """The values of a column, None where missing."""
    if isinstance(column, list):
        return column
    missing = np.isnan(column) if column.dtype.kind == "f" else column == MISSING
    return [None if gone else value for value, gone in zip(column.tolist(), missing.tolist(), strict=True)]


def _packed(kind: str, column: Column, pool: Strings) -> bytes:
    if kind == "text":
        return _shuffled(np.array([pool.code(text) for text in column], dtype=np.uint32), _DTYPES[kind])
    return _shuffled(np.asarray(column), _DTYPES.get(kind, _INTEGER))


def _unpacked(name: str, kind: str, packed: bytes, pool: Sequence[str]) -> Column:
    values = _plain(name, packed, _DTYPES.get(kind, _INTEGER))
    if kind != "text":
        return values
    if len(values) and int(values.max()) >= len(pool):
        raise BadColumn(f"refers to a text that is not there, in its column {name}")
    return [pool[code] for code in values.tolist()]


def _shuffled(values: NDArray[Any], dtype: str) -> bytes:
    numbers = np.ascontiguousarray(values, dtype=dtype)
    return numbers.view(np.uint8).reshape(len(numbers), numbers.itemsize).T.tobytes()


def _plain(name: str, packed: bytes, dtype: str) -> NDArray[Any]:
    size = np.dtype(dtype).itemsize
    if len(packed) % size:
        raise BadColumn(f"has half a number at the end of its column {name}")
    planes = np.frombuffer(packed, dtype=np.uint8).reshape(size, len(packed) // size)
    return np.ascontiguousarray(planes.T).view(dtype).reshape(-1)


def _listed(names: Iterable[str]) -> str:
    # what a damaged pack says may be long
    return ", ".join(list(names)[:40])[:400] or "none"
