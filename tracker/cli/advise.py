"""`tracker advise`: what could make a run faster, and by how much at most."""

from __future__ import annotations

from typing import Annotated

import typer

from tracker import config
from tracker.cli import database
from tracker.cli.options import Database, Given, Page, Top
from tracker.cli.output import plan, progress
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
        ),
    ],
    *,
    given: Given[AdviseOptions],
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
    settings = config.load(db)
    given(max_bytes=settings.max_bytes)  # wrong options are errors before the database is opened
    *baseline, side = (f"run:{name}" if name.isascii() and name.isdigit() else name for name in sides)
    with progress() as report, database.opened_for(settings, [*baseline, side]) as store:
        options = given(max_bytes=settings.max_bytes, on_progress=report)
        found = find(store, side, *baseline, options=options)
    delivery.deliver(found, limit=top)
    if found.fails:
        raise typer.Exit(1)
