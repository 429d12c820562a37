"""The workbook of one run: a plain sheet per table, headers made from the column names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tracker.reports import _human_bottleneck, tables_xlsx
from tracker.reports._workbook import Book, field
from tracker.reports.shared import Style, chosen_sections, plain, selected
from tracker.results import Shown

_TITLES: Final = {"ops": "Operators", "api": "Api", "tree": "Tree"}


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
        tables_xlsx.add(book, {_TITLES.get(name, name.replace("_", " ").title().replace(" ", "")): frame})
    return book.save()


def _frames(shown: Shown, style: Style) -> Iterator[tuple[str, Any]]:
    yield from selected(shown, style)
    if "memory" in chosen_sections(shown, style):
        yield "memory_curve", shown.memory_curve
    if not style.only and shown.tree is None:
        yield "facts", shown.facts
        yield "sources", shown.sources
