"""`tracker versions`: the versions of a workload, and which one is the fixed baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tracker.cli import _options as options
from tracker.cli import _tables as tables

if TYPE_CHECKING:
    import pandas as pd

app = typer.Typer(
    help="List versions in their order; pin the one to compare with. Without a command: list them.\n\n"
    "\b\nExample:\n"
    "  tracker versions --workload resnet50\n"
    "  tracker versions pin v1 --workload resnet50\n"
    "  tracker diff pinned latest",
    rich_markup_mode=None,
)

Label = Annotated[str, typer.Argument(metavar="LABEL", help="The version.", show_default=False)]


@app.callback(invoke_without_command=True)
def find(
    context: typer.Context,
    workload: options.Workload = None,
    format: tables.ListFormatOption = tables.ListFormat.TEXT,
    db: options.Database = None,
) -> None:
    """List versions; their order is the one in which they came in."""
    if not options.is_list(context):
        return
    from tracker.store import queries

    tables.emit_list(
        lambda store: queries.versions(store, workload), _COLUMNS, format, name="versions", last_line=_next, db=db
    )


def _next(found: pd.DataFrame) -> str:
    """How many versions there are, and what to do with them."""
    labels = list(found["version"])
    if len(set(labels)) > 1:
        return f"{len(labels)} versions.  Next: tracker diff {labels[-2]} {labels[-1]}"
    if labels:
        return "1 version.  Next: tracker ingest another one, then tracker diff"
    return "no versions found.  tracker ingest adds runs of a version"


@app.command(short_help="Make a version the fixed baseline.")
def pin(label: Label, workload: options.Workload = None, db: options.Database = None) -> None:
    """Make a version the fixed baseline of its workload: `pinned` then means it.

    \b
    Example:
      tracker versions pin v1
      tracker diff pinned latest
    """
    from tracker import config
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.store import runs as edits

    with _store.writing(config.load(db)) as store:
        edits.pin(store, label, workload=workload)
    emit(f"{label} pinned.  Next: tracker diff pinned latest")


@app.command()
def unpin(label: Label, workload: options.Workload = None, db: options.Database = None) -> None:
    """Take back a pin.

    \b
    Example:
      tracker versions unpin v1
    """
    from tracker import config
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.store import runs as edits

    with _store.writing(config.load(db)) as store:
        edits.unpin(store, label, workload=workload)
    emit(f"{label} no longer pinned")


_COLUMNS = (
    tables.Column("version", tables.text_of("version")),
    tables.Column("workload", tables.text_of("workload")),
    tables.Column("runs", tables.text_of("runs"), right=True),
    tables.Column("first run (UTC)", tables.moment_of("first_started_at_ns")),
    tables.Column("pinned", lambda row: "pinned" if row["pinned"] else ""),
    tables.Column("commit", tables.text_of("commit")),
    tables.Column("note", tables.text_of("note")),
)
