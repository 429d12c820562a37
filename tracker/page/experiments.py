"""The list of experiments as a document."""

from __future__ import annotations

from collections.abc import Sequence

from tracker.reports.cells import ColumnsOf, readable
from tracker.reports.document import NAME, WORDS, Document, Target
from tracker.reports.rows import table_of
from tracker.results.experiments import ListedExperiment
from tracker.units import MISSING_TEXT, counted, format_moment


def write_document(found: Sequence[ListedExperiment]) -> Document:
    """Return the experiments, each with its answer, the newest first."""
    of_row = ColumnsOf(ListedExperiment)
    columns = [
        of_row.text("experiment", lambda row: row.name, **WORDS),
        of_row.text("workload", lambda row: row.workload),
        of_row.text("baseline", lambda row: readable(row.baseline), **NAME),
        of_row.text("candidate", lambda row: readable(row.candidate), **NAME),
        of_row.text("state", lambda row: row.state),
        of_row.text("answer", lambda row: row.change.answer if row.change.words else MISSING_TEXT),
        of_row.text("started (UTC)", lambda row: format_moment(row.started_at_ns)),
        of_row.text("host", lambda row: row.host),
    ]
    made = table_of("", columns, found, is_first=True, links=lambda row: Target("experiment", (("ID", row.name),)))
    return Document(
        title="experiments of tracker ab, the newest first",
        headline=counted(len(found), "experiment") if found else "No experiment yet",
        blocks=(made,) if found else (),
        next_commands=() if found else ("tracker ab BASELINE CANDIDATE -- COMMAND",),
    )
