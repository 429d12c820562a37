"""`tracker board`: where every workload stands."""

from __future__ import annotations

from tracker.api.arguments import opened
from tracker.cli.options import Database, Top
from tracker.cli.output import plan
from tracker.cli.report_options import Page
from tracker.results import BoardOptions


def board(chosen: BoardOptions, top: Top = None, *, page: Page, db: Database = None) -> None:
    """Show every workload on one screen: its newest version, the change since it was good, what is new and open.

    \b
    Example:
      tracker board
      tracker board --workload gpt --format json
      tracker board --owner "Li Wei"
      tracker board -o board.html
    """
    from tracker import config
    from tracker.regressions.board import board as board_of

    delivery = plan(page, "board", "board")
    settings = config.load(db)
    with opened(settings, read_only=True) as store:
        found = board_of(store, options=chosen, owners=settings.alerts.owners)
    delivery.deliver(found, limit=top)
