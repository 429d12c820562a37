"""The workbook of a run: what was found, the chosen tables, the course of memory, its facts and sources."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from tracker.reports.rows import plain
from tracker.reports.view import choose_tables
from tracker.reports.views import bottleneck
from tracker.reports.workbook import Book, field
from tracker.reports.workbooks.summary import write_summary_of_run

if TYPE_CHECKING:
    from tracker.reports.document import Look
    from tracker.reports.view import View
    from tracker.results import Shown

_EXACT: Final = 10**15
"""Above it a spreadsheet rounds whole numbers: it shows 15 digits."""


def write(book: Book, shown: Shown, view: View, look: Look) -> None:
    """Write the summary, the run, and the chosen tables that have rows."""
    facts = plain(shown.run)
    if shown.bottleneck is not None:
        facts["bottleneck"] = bottleneck.sentence(shown.bottleneck)
    facts |= {f"per_step.{key}": value for key, value in (facts.pop("per_step", None) or {}).items()}
    facts |= {f"note {place}": note for place, note in enumerate(shown.notes, start=1)}
    run = [(key, value) for key, value in facts.items() if value is not None]
    write_summary_of_run(book, shown)
    book.sheet("Run", [field("Key", itemgetter(0), 28), field("Value", lambda fact: _typed(*fact), 80)], run)
    tables: dict[str, Any] = choose_tables(shown, look)
    if "memory" in shown.chosen_sections(look.only):
        tables["memory_curve"] = shown.tables["memory_curve"]
    if not look.only and shown.tree_table is None:
        tables |= {name: shown.tables[name] for name in ("facts", "sources")}
        if shown.advice:
            tables["advice"] = shown.tables["advice"]
    for name, rows in tables.items():
        title = name.replace("_", " ").title().replace(" ", "")
        if len(rows):
            book.table(view.sheet_titles.get(name, title), rows)


def _typed(key: str, value: Any) -> tuple[str, Any]:
    """Return the kind and the value of a cell: numbers stay numbers where a spreadsheet holds them exactly."""
    if key.endswith("_id"):
        return "flag", value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and abs(value) < _EXACT:
        return "count", value
    return "text", str(value)
