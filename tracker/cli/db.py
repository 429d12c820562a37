"""`tracker db`: the database itself."""

from __future__ import annotations

import typer

from tracker.cli import _options as options

app = typer.Typer(
    help="The database: where it is, whether it is sound, and its schema.\n\n"
    "\b\nExample:\n"
    "  tracker db info\n"
    "  tracker db upgrade --db postgresql://tracker@db.example/tracker",
    no_args_is_help=True,
    rich_markup_mode=None,
)
