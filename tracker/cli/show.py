"""`tracker show`: one run."""

from __future__ import annotations

from typing import Annotated

from tracker.cli.options import Database, Given, Page, Top
from tracker.results import ShowOptions, check_sections
from tracker.results.option import Option
from tracker.results.options import ONLY


def show(
    run: Annotated[
        str,
        Option(
            "41, run:41, run:41:rank3, latest, latest~1, a version with one run, or a path on disk.",
            "RUN",
            positional=True,
        ),
    ],
    *,
    given: Given[ShowOptions],
    only: Annotated[tuple[str, ...], ONLY] = (),
    top: Top = None,
    page: Page,
    db: Database = None,
) -> None:
    """Show where the time of one run went: its steps, largest operators and kernels, communication and memory.

    \b
    Example:
      tracker show latest
      tracker show 41 --by rank --op aten::mm
      tracker show 41 --by module --depth 3
      tracker show trace.pt.trace.json.gz --format json
    """
    from tracker import compare, config
    from tracker.cli import database
    from tracker.cli.output import plan, progress

    delivery = plan(page, f"show_{run}", "show")
    check_sections(only)
    settings = config.load(db)
    given(max_bytes=settings.max_bytes)  # wrong options are errors before the database is opened
    reference = f"run:{run}" if run.isascii() and run.isdigit() else run
    with progress() as report, database.opened_for(settings, [reference]) as store:
        options = given(max_bytes=settings.max_bytes, on_progress=report)
        shown = compare.show(store, reference, options=options)
    delivery.deliver(shown, only=only, limit=top)
