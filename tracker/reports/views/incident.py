"""The document of an incident that was explained: a line per finding with the tests that decided; all of each as
details.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from tracker.reports.document import Block, Document, Lines, few
from tracker.reports.look import Look
from tracker.reports.rows import Row, plain, records
from tracker.reports.views import explained
from tracker.reports.views.findings import rows_of, where_of
from tracker.results import ExplainedIncident
from tracker.units import counted

_FINDINGS: Final = 8


def document(incident: ExplainedIncident, look: Look) -> Document:
    """The findings that no other one covers, the step first."""
    rows = [
        plain(dict(found.finding)) | {"below": explained.in_short(records(found.tests))} for found in incident.explained
    ]
    first, number = rows[0], incident.incident_id
    whole = explained.document(incident.explained[0], look)
    following = [f"tracker explain {first['finding_id']}", *([] if look.details else ["--details"])]
    if any(row["state"] in ("new", "persisting") for row in rows):
        following += [f'tracker {word} I-{number} --reason "..."' for word in ("ack", "expect")]
    return Document(
        title=f"I-{number}: {where_of(first)}; {counted(len(rows), 'finding')} in {first['version']}",
        headline=whole.headline,
        verdict=whole.verdict,
        tone=whole.tone,
        blocks=tuple(_blocks(incident, rows, look)),
        notes=few([note for found in incident.explained for note in found.notes], look),
        next_commands=tuple(following),
    )


def _blocks(incident: ExplainedIncident, rows: list[Row], look: Look) -> Iterator[Block]:
    made = rows_of(rows, replace(look, details=True), None if look.details else look.rows(_FINDINGS))
    yield replace(made, note="(in brackets the limit of a test)", is_first=True)
    advice = [item for found in incident.explained for item in found.advice]
    if advice:
        yield explained.what_to_do(advice, rows[0])
    shared: list[Block] = []
    for found in incident.explained:
        own = explained.document(found, look)
        yield Lines(own.title, (own.headline, *own.remarks), is_first=False, is_wrapped=True)
        for block in own.blocks:
            if block.title in ("Tests", "Runs", "Events"):
                yield replace(block, is_first=False)
            elif block.title != "What to do" and block not in shared:
                shared.append(block)
    yield from (replace(block, is_first=False) for block in shared)
