"""Plain sheets of a workbook: one per table of a result, headers made from the names of its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from tracker.reports._workbook import Book, Field, field
from tracker.reports.rows import listed, names, plain, records
from tracker.units import format_moment

if TYPE_CHECKING:
    import pandas as pd

    from tracker.columns import Columns

_SPECIAL: Final = {
    "bandwidth_gb_per_s": ("Bandwidth (GB/s)", "number"),
    "sum_squares_ns2": ("Sum of Squares (ns2)", "count"),
    **{name: (name.title(), "number") for name in ("mean", "min", "max")},  # of any size, such as a ratio of 0.001
}
_QUOTIENTS: Final = (
    "share", "diff", "ratio", "effect", "contribution", "change", "gain", "shared factor", "spread", "detectable",
)  # fmt: skip
_PROBABILITIES: Final = ("p", "q")
_MOMENTS: Final = frozenset({"started_at_ns", "last_run_ns", "when_ns", "until_ns"})
_WIDE: Final = ("name", "canonical_name", "input_shapes", "module", "op", "call_stack", "value", "path")


def write(tables: Mapping[str, Columns | pd.DataFrame], tell: Callable[[str], None]) -> bytes:
    """A workbook with a sheet per table, by title."""
    book = Book(tell)
    add(book, tables)
    return book.save()


def add(book: Book, tables: Mapping[str, Columns | pd.DataFrame]) -> None:
    """A sheet per table, by title, with all its rows and columns."""
    for title, table in tables.items():
        book.sheet(title, fields_of(table), (("", row) for row in records(table)), len(table))


def fields_of(table: Columns | pd.DataFrame) -> list[Field]:
    """A column per column of `table`: `_ns` becomes us, bytes become KiB, the unit stands in the header."""
    return [_field_of(name, listed(table, name)) for name in names(table)]


def _field_of(name: str, values: list[Any]) -> Field:
    words = name.replace("_", " ")
    known = [value for value in map(plain, values) if value is not None]
    if name in _SPECIAL:
        return field(*_SPECIAL[name], name)
    if words.endswith(_QUOTIENTS) and not any(isinstance(value, str) for value in known):
        return field(words.title(), "percent", name)
    if words.rpartition(" ")[2] in _PROBABILITIES:
        return field(words.title(), "number", name)
    if name in _MOMENTS:
        return field(f"{words[:-3].title()} (UTC)", "text", lambda row: _moment(row[name]))
    if name.endswith("_ns"):
        return field(f"{words[:-3].title()} (us)", "us", name)
    if name == "bytes" or name.endswith("_bytes"):
        header = "Size" if name == "bytes" else words.removesuffix(" bytes").title()
        return field(f"{header} (KiB)", "kb", name)
    is_number = bool(known) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
    return field(words.title(), "count" if is_number else "text", name, 40 if name in _WIDE else 0)


def _moment(ns: int | None) -> str | None:
    return None if ns is None or ns <= 0 else format_moment(ns)
