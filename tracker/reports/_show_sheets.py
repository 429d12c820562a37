"""The workbook of one run: a plain sheet per table, headers made from the column names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tracker.reports import _human_bottleneck
from tracker.reports._workbook import Book, Field, field
from tracker.reports.shared import Style, chosen_sections, plain, records, selected
from tracker.results import Shown
from tracker.units import format_moment

if TYPE_CHECKING:
    import pandas as pd

_TITLES: Final = {"ops": "Operators", "api": "Api", "tree": "Tree"}
_SPECIAL: Final = {
    "bandwidth_gb_per_s": ("Bandwidth (GB/s)", "number"),
    "sum_squares_ns2": ("Sum of Squares (ns2)", "count"),
    **{name: (name.title(), "number") for name in ("mean", "min", "max")},  # of any size, such as a ratio of 0.001
}
_QUOTIENTS: Final = (
    "share",
    "diff",
    "ratio",
    "effect",
    "contribution",
    "share of change",
    "shared factor",
    "rank spread",
)
_PROBABILITIES: Final = ("p", "q")
_MOMENTS: Final = frozenset({"started_at_ns", "last_run_ns", "when_ns", "until_ns"})
_WIDE: Final = ("name", "canonical_name", "input_shapes", "module", "op", "call_stack", "value", "path")


def write(shown: Shown, style: Style) -> bytes:
    """The chosen tables, the memory curve beside memory, then the run's facts and sources."""
    book = Book(style.tell)
    facts = plain(shown.run)
    if shown.bottleneck is not None:
        facts["bottleneck"] = _human_bottleneck.words(shown.bottleneck)
    run = [{"key": key, "value": str(value)} for key, value in facts.items() if value is not None]
    pair = [field("Key", "text", "key", 28), field("Value", "text", "value", 80)]
    book.sheet("Run", pair, (("", row) for row in run), len(run))
    for name, frame in _frames(shown, style):
        rows = records(frame)
        title = _TITLES.get(name, name.replace("_", " ").title().replace(" ", ""))
        book.sheet(title, fields_of(frame), (("", row) for row in rows), len(rows))
    return book.save()


def _frames(shown: Shown, style: Style) -> Iterator[tuple[str, pd.DataFrame]]:
    yield from selected(shown, style)
    if "memory" in chosen_sections(shown, style):
        yield "memory_curve", shown.memory_curve
    if not style.only and shown.tree is None:
        yield "facts", shown.facts
        yield "sources", shown.sources


def fields_of(frame: pd.DataFrame) -> list[Field]:
    """A column per column of `frame`: `_ns` becomes us, bytes become KiB, the unit stands in the header."""
    return [_field_of(str(name), frame[name]) for name in frame.columns]


def _field_of(name: str, values: pd.Series) -> Field:
    words = name.replace("_", " ")
    if name in _SPECIAL:
        return field(*_SPECIAL[name], name)
    if words.endswith(_QUOTIENTS) or words.rpartition(" ")[2] in _PROBABILITIES:
        return field(words.title(), "percent" if words.endswith(_QUOTIENTS) else "number", name)
    if name in _MOMENTS:
        return field(f"{words[:-3].title()} (UTC)", "text", lambda row: _moment(row[name]))
    if name.endswith("_ns"):
        return field(f"{words[:-3].title()} (us)", "us", name)
    if name == "bytes" or name.endswith("_bytes"):
        header = "Size" if name == "bytes" else words.removesuffix(" bytes").title()
        return field(f"{header} (KiB)", "kb", name)
    # a frame whose rows mix units keeps its numbers as objects
    known = [value for value in values.tolist() if not _is_missing(value)]
    is_number = values.dtype.kind in "iuf" or (bool(known) and all(_is_number(value) for value in known))
    return field(words.title(), "count" if is_number else "text", name, 40 if name in _WIDE else 0)


def _is_missing(value: object) -> bool:
    return plain(value) is None


def _is_number(value: object) -> bool:
    return isinstance(plain(value), int | float) and not isinstance(plain(value), bool)


def _moment(ns: int | None) -> str | None:
    return None if ns is None or ns <= 0 else format_moment(ns)
