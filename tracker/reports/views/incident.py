"""The document of an incident that was explained: a line per finding with the tests that decided; all of each as
details.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from tracker.reports.cells import form
from tracker.reports.document import NAME, Block, Column, Document, Lines, few, table
from tracker.reports.look import Look
from tracker.reports.rows import Row, plain, records
from tracker.reports.views import explained
from tracker.reports.views.findings import KINDS, diff_text, name_of, state_text
from tracker.results import ExplainedIncident
from tracker.units import counted

_FINDINGS = 8


def document(incident: ExplainedIncident, look: Look) -> Document:
    """The findings that no other one covers, the step first."""
    rows = [plain(dict(found.finding)) for found in incident.explained]
    first, number = rows[0], incident.incident_id
    whole = explained.document(incident.explained[0], look)
    where = ", ".join(filter(None, (first["workload"], first["device"], first["configuration"])))
    following = [f"tracker explain {first['finding_id']}", *([] if look.details else ["--details"])]
    if any(row["state"] in ("new", "persisting") for row in rows):
        following += [f'tracker {word} I-{number} --reason "..."' for word in ("ack", "expect")]
    return Document(
        title=f"I-{number}: {where}; {counted(len(rows), 'finding')} in {first['version']}",
        headline=whole.headline,
        verdict=whole.verdict,
        tone=whole.tone,
        blocks=tuple(_blocks(incident, rows, look)),
        notes=few([f"Note: {note}" for found in incident.explained for note in found.notes], look),
        next_commands=tuple(following),
    )


def _blocks(incident: ExplainedIncident, rows: list[Row], look: Look) -> Iterator[Block]:
    shown = incident.explained if look.details else incident.explained[: look.rows(_FINDINGS)]
    columns = [Column("id"), Column("finding", **NAME), Column("before"), Column("after"), Column("change %")]
    columns += [Column("state", left=True, drop=1), Column("cause", left=True, elastic=True)]
    lines = []
    for row, _ in zip(rows, shown, strict=False):
        text = form(row["unit"], [row["baseline_value"], row["candidate_value"]])
        kind = "" if row["kind"] in ("run", "op_name") else f" ({KINDS[row['kind']]})"
        line = [str(row["finding_id"]), f"{name_of(row)}{kind}"]
        line += [text(row["baseline_value"]), text(row["candidate_value"]), diff_text(row), state_text(row)]
        lines.append(("worse" if row["direction"] == "regression" else "better", [*line, row["cause"] or ""]))
    made = table(
        "", columns, lines, more=len(rows) - len(lines), note="(in brackets the limit of a test)", is_first=True
    )
    yield replace(made, below=tuple(explained.in_short(records(found.tests)) for found in shown))
    for found in incident.explained:
        own = explained.document(found, look)
        yield Lines(own.title, (own.headline, *own.remarks), is_first=False, is_wrapped=True)
        yield from (replace(block, is_first=False) for block in own.blocks)
