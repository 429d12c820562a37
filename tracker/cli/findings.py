"""`tracker findings` and `tracker explain`: what got worse or better, since when, and why."""

from __future__ import annotations

import json
from typing import Annotated

from tracker.cli.options import Database, FailOn, Page, Top
from tracker.results import FindingsOptions
from tracker.results.option import Option


def findings(
    chosen: FindingsOptions, page: Page, fail_on: FailOn = None, top: Top = None, db: Database = None
) -> None:
    """List confirmed regressions and improvements by version: incidents, each with the findings that explain it.

    The runs of a version are judged together, against the newest runs of the level before it. A change in a single run
    is a suspect until further runs decide. A regression stays open until it recovers; tracker ack, expect, mute and
    invalid change whether it is shown, alerted and gated.

    \b
    Example:
      tracker findings --new
      tracker findings --workload gpt --version v8 --all
      tracker findings --state all -o findings.xlsx
      tracker findings --new --fail-on new
      tracker findings --format prometheus -o /var/lib/node_exporter/tracker.prom
    """
    from msgspec.structs import replace

    from tracker import compare, config
    from tracker.cli import database
    from tracker.cli.output import finish, plan
    from tracker.regressions.gates import gate_of_findings
    from tracker.regressions.inbox import findings as findings_of

    delivery = plan(page, f"findings_{chosen.workload or ''}".rstrip("_"), "findings")
    with database.reading(config.load(db)) as store, store.reading():
        if chosen.version is not None:
            chosen = replace(chosen, version=compare.label_of(store, chosen.version, chosen.workload))
        found = findings_of(store, options=chosen)
        incidents = found.tables["incidents"].records()
        found = replace(found, notes=(*found.notes, *compare.notes_between(store, incidents)))
    gate = gate_of_findings(found, fail_on or "new")
    delivery.deliver(found, limit=top, gate=gate)
    if fail_on:
        finish(gate)


def explain(
    finding: Annotated[
        str, Option("A finding (12) or an incident (I-3), as tracker findings lists them.", "ID", positional=True)
    ],
    page: Page,
    db: Database = None,
) -> None:
    """Explain a finding, or all findings of an incident: every test with its value and limit, its runs and events.

    \b
    Example:
      tracker explain 12
      tracker explain I-3
      tracker explain 12 --format json
    """
    from msgspec.structs import replace

    from tracker import compare, config
    from tracker.cli import database
    from tracker.cli.output import plan
    from tracker.errors import UsageError
    from tracker.regressions.actions import numbers_of
    from tracker.regressions.explain import explain as explain_one
    from tracker.regressions.explain import findings_of

    numbers, incidents = numbers_of([finding])
    delivery = plan(page, f"finding_{finding}", "explained")
    for format in delivery.formats:
        if incidents and format not in ("text", "markdown", "json"):
            raise UsageError(
                f"--format {format} takes a single finding", remedy="name a finding, or choose text, markdown or json"
            )
    with database.reading(config.load(db)) as store, store.reading():
        numbers += [number for incident in incidents for number in findings_of(store, incident)]
        found = [explain_one(store, number) for number in numbers]
        notes = compare.notes_between(store, [one.finding for one in found])
        found = [replace(one, notes=(*one.notes, *notes)) for one in found]

    def joined(documents: list[str], format: str) -> str:
        if format != "json":
            return "\n\n".join(text.rstrip("\n") for text in documents)
        explained = [json.loads(text) for text in documents]
        document = {"schema": explained[0]["schema"], "incident_id": incidents[0], "explained": explained}
        return json.dumps(document, indent=2)

    delivery.deliver(*found, joined=joined if incidents else None)
