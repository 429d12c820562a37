"""Excel workbooks: that of a diff as in the comparison tools of Ascend, of all other results a sheet per table."""

from __future__ import annotations

from tracker.lazy import pd
from tracker.reports import diff_workbook
from tracker.reports.look import Look
from tracker.reports.rows import plain, records
from tracker.reports.tables import chosen_sections, selected
from tracker.reports.views import bottleneck
from tracker.reports.workbook import Book, field, fields_of
from tracker.results import EXPLAIN_COLUMNS, Diff, ExplainedFinding, Findings, Shown

TITLE = "Excel workbook with all details"
SUFFIX = ".xlsx"
BINARY = True
_TITLES = {"ops": "Operators"}


def diff(diff: Diff, look: Look) -> bytes:
    """A sheet per chosen section, then Environment and Explanation."""
    return diff_workbook.write(diff, look)


def show(shown: Shown, look: Look) -> bytes:
    """The chosen tables, the memory curve beside memory, then the run's facts and sources."""
    book = Book(look.tell)
    facts = plain(shown.run)
    if shown.bottleneck is not None:
        facts["bottleneck"] = bottleneck.sentence(shown.bottleneck)
    facts |= {f"note {place}": note for place, note in enumerate(shown.notes, start=1)}
    run = [{"key": key, "value": str(value)} for key, value in facts.items() if value is not None]
    pair = [field("Key", "text", "key", 28), field("Value", "text", "value", 80)]
    book.sheet("Run", pair, (("", row) for row in run), len(run))
    tables = dict(selected(shown, look))
    if "memory" in chosen_sections(shown, look):
        tables["memory_curve"] = shown.tables["memory_curve"]
    if not look.only and shown.tree_table is None:
        tables |= {name: shown.tables[name] for name in ("facts", "sources")}
    for name, rows in tables.items():
        title = _TITLES.get(name, name.replace("_", " ").title().replace(" ", ""))
        _sheet(book, title, rows.frame)
    return book.save()


def findings(found: Findings, look: Look) -> bytes:
    """A sheet each for incidents, findings, what else changed, and tracks."""
    book = Book(look.tell)
    for name in found.tables:
        _sheet(book, name.capitalize(), getattr(found, name).convert_dtypes())
    return book.save()


def explained(found: ExplainedFinding, look: Look) -> bytes:
    """The finding, its tests, its runs, its life and facts, a sheet each."""
    book = Book(look.tell)
    frames = {"finding": pd.DataFrame([found.finding], dtype=object)}
    frames |= {name: getattr(found, name) for name in EXPLAIN_COLUMNS}
    for name, frame in frames.items():
        _sheet(book, name.capitalize(), frame.convert_dtypes())
    return book.save()


def _sheet(book: Book, title: str, frame: pd.DataFrame) -> None:
    book.sheet(title, fields_of(frame), (("", row) for row in records(frame)), len(frame))
