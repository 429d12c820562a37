"""The list of runs as a document, with what of their environment differs, and as files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tracker.errors import FIRST_INGEST
from tracker.page.links import RunsOptions, texts_of
from tracker.profile import OF_A_MOMENT
from tracker.reports.cells import ColumnsOf, words
from tracker.reports.commands import command, command_of
from tracker.reports.document import WORDS, Column, Document, Look, Target
from tracker.reports.rows import records, table_of
from tracker.results.listed import ListedRun, RunFact
from tracker.units import MISSING_TEXT, counted, format_moment, format_ns

if TYPE_CHECKING:
    from tracker.columns import Columns

_MOST_FACTS: Final = 6
"""Columns of the environment: more do not fit beside the others."""
_ALWAYS: Final = ("run", "version", "step time", "started (UTC)")
"""Columns of runs that stand there even where all cells are the same."""


def _ranks(row: ListedRun) -> str:
    """Return the ranks that came, and of how many where those are others."""
    known = [ranks for ranks in (row.ranks, row.ranks_expected) if ranks is not None]
    return "/".join(dict.fromkeys(map(str, known)))


def _started(row: ListedRun) -> str:
    return MISSING_TEXT if row.started_at_ns is None else format_moment(row.started_at_ns)


_run: Final = ColumnsOf(ListedRun)
_COLUMNS: Final = (
    _run.text("run", lambda row: f"run:{row.run_id}", **WORDS), _run.text("version", lambda row: row.version),
    _run.text("workload", lambda row: row.workload),
    _run.text("device", lambda row: f"{row.vendor or ''} {row.device or ''}".strip()),
    _run.number("ranks", _ranks), _run.number("steps", lambda row: words(row.steps)),
    _run.number("step time", lambda row: format_ns(row.step_ns)), _run.text("started (UTC)", _started),
    _run.text("state", lambda row: ": ".join(filter(None, (row.state, row.state_reason)))),
    _run.text("machine", lambda row: row.machine or ""), _run.text("tags", lambda row: row.tags or ""),
    _run.text("commit", lambda row: (row.commit or "")[:12]),
)  # fmt: skip


def document(rows: Sequence[ListedRun], facts: Sequence[RunFact], chosen: RunsOptions, *, has_more: bool) -> Document:
    """Return the list of runs; what is the same in all of them stands in its title and not in a column.

    `facts`: what is known of their environment and configuration; `has_more`: whether older runs fit, too.
    """
    if not rows:
        return _nothing(chosen)
    columns, alike = [], []
    for column in _COLUMNS:
        cells = {column.cell(row) for row in rows}
        if len(rows) > 1 and len(cells) == 1 and column.header not in _ALWAYS:
            alike += [f"{column.header} {next(iter(cells))}"] if "".join(cells).strip(MISSING_TEXT) else []
        else:
            columns.append(column)
    differing = _differing(facts)
    columns += [_column_of(key, values) for key, values in differing[:_MOST_FACTS]]
    notes = [f"only the newest {len(rows):,} are listed: write more words, or a larger limit"] if has_more else []
    others = [key for key, _ in differing[_MOST_FACTS:]]
    notes += [f"they also differ in {', '.join(others)}"] if others else []
    made = table_of(
        "", columns, rows, is_first=True, note="; ".join(notes),
        links=lambda row: Target("run", (("RUN", str(row.run_id)),)), checks=lambda row: f"run:{row.run_id}",
    )  # fmt: skip
    shared = f"; all with {', '.join(alike)}" if alike else ""
    more = f"The newest {counted(len(rows), 'run')}; older ones match, too"
    return Document(
        title=f"runs, the newest first{shared}",
        headline=more if has_more else counted(len(rows), "run"),
        blocks=(made,), next_commands=(command("tracker", "show", f"run:{rows[0].run_id}"),),
    )  # fmt: skip


def _nothing(chosen: RunsOptions) -> Document:
    """Return the document where no run fits the filters."""
    if chosen == RunsOptions():
        return Document(title="runs", headline="No run matches", next_commands=(FIRST_INGEST,))
    state = "" if chosen.state == "all" else f"{chosen.state} "
    headline = f"No {state}run has {' and '.join(chosen.search.split())}" if chosen.search else "No run matches"
    of_any_state = [(name, value) for name, value in texts_of(chosen) if name != "--state"]
    options = [part for pair in [*of_any_state, ("--state", "all")] for part in pair]
    return Document(title="runs", headline=headline, next_commands=(command_of(("tracker", "runs"), (), options),))


def _differing(facts: Sequence[RunFact]) -> list[tuple[str, dict[int, str]]]:
    """Return what runs have different values of, each with run -> value: that of the fewest values first."""
    known: dict[str, dict[int, str]] = {}
    for fact in facts:
        if fact.kind != "tag" and fact.key not in OF_A_MOMENT:
            known.setdefault(fact.key, {})[fact.run_id] = fact.value
    counts = {key: len(set(values.values())) for key, values in known.items()}
    return sorted(((key, known[key]) for key in known if counts[key] > 1), key=lambda pair: (counts[pair[0]], pair[0]))


def _column_of(key: str, values: dict[int, str]) -> Column:
    return _run.text(key, lambda row: values.get(row.run_id, MISSING_TEXT), elastic=True)


def written(rows: Columns, shown: Document | None, format: str) -> str | bytes:
    """Return runs as a file: what `tracker runs --format` prints, a workbook, or the page `shown`."""
    if format == "csv":
        from tracker.reports import csv

        return csv.write_tables({"runs": rows})
    if format == "xlsx":
        from tracker.reports.workbook import Book

        book = Book(lambda _: None)
        book.table("Runs", rows)
        return book.save()
    if format == "json":
        return json.dumps({"schema": 1, "runs": records(rows)}, indent=2, ensure_ascii=False)
    from tracker.reports import html

    assert shown is not None
    return html.render(lambda _: shown, Look())
