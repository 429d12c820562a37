"""`tracker advise`: what could make a run faster, and by how much at most."""

from __future__ import annotations

from typing import Annotated

import typer

from tracker.cli import database
from tracker.cli.options import Database, Top
from tracker.cli.output import plan
from tracker.cli.report_options import Page
from tracker.errors import UsageError
from tracker.results import AdviseOptions
from tracker.results.options import Option


def advise(
    sides: Annotated[
        list[str],
        Option(
            "A version, 41, run:41, latest, or a path on disk. With a baseline only advice that is new, grown or gone.",
            "[BASELINE] SIDE",
            positional=True,
            offers="side",
        ),
    ],
    *,
    chosen: AdviseOptions,
    top: Top = None,
    page: Page,
    db: Database = None,
) -> None:
    """Advise what to change: each with what it can win at most, the evidence, and what to do.

    What is below 1 % of the step is left out. What a profile does not hold cannot be judged, and is listed.

    \b
    Example:
      tracker advise latest
      tracker advise v41 v42
      tracker advise ./profile.pt.trace.json.gz --only kernels --all
    """
    from tracker.compare.advised import advise as find

    if len(sides) > 2:
        raise UsageError(f"{len(sides)} sides", remedy="name one side, or a baseline and one")
    delivery = plan(page, f"advice_{sides[-1]}", "advice")
    *baseline, side = map(database.run_reference, sides)
    with database.compared(db, [*baseline, side], chosen) as (store, options):
        found = find(store, side, *baseline, options=options)
    delivery.deliver(found, limit=top)
    if found.fails:
        raise typer.Exit(1)
