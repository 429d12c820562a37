"""`tracker runs`: find runs, and correct what is said about them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracker.cli import _options as options
from tracker.cli import _tables as tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracker.store import Store

app = typer.Typer(
    help="Find runs; edit, tag, exclude, restore or delete them. Without a command: list them.\n\n"
    "\b\nExample:\n"
    "  tracker runs --version v2\n"
    "  tracker runs exclude 41 --reason 'another job on the node'\n"
    "  tracker runs edit 41 --version v2.1",
    rich_markup_mode=None,
)


class State(StrEnum):
    """Which runs a list holds."""

    ACTIVE = "active"
    EXCLUDED = "excluded"
    DELETED = "deleted"
    ALL = "all"


Reason = Annotated[
    str, typer.Option(metavar="TEXT", help="Why; kept with the run and shown in lists.", show_default=False)
]


@app.callback(invoke_without_command=True)
def find(
    context: typer.Context,
    version: Annotated[
        str | None, typer.Option(metavar="LABEL", help="Only runs of this version. Default: any.", show_default=False)
    ] = None,
    workload: options.Workload = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Only runs on this hardware model. Default: any.", show_default=False),
    ] = None,
    tag: Annotated[
        str | None,
        typer.Option(metavar="KEY[=VALUE]", help="Only runs with this tag. Default: any.", show_default=False),
    ] = None,
    state: Annotated[
        State, typer.Option(help="active runs count in every comparison; excluded and deleted ones count in none.")
    ] = State.ACTIVE,
    limit: Annotated[int, typer.Option(metavar="N", min=0, help="List at most N runs, newest first; 0 for all.")] = 50,
    format: tables.ListFormatOption = tables.ListFormat.TEXT,
    db: options.Database = None,
) -> None:
    """Find runs; the list is in order of start, newest first."""
    if not options.is_list(context):
        return
    from tracker import config
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.store import queries

    with _store.reading(config.load(db)) as store:
        found = queries.runs(
            store,
            version=version,
            workload=workload,
            device=device,
            tag=tag,
            state=state.value,
            limit=limit or None,
        )
    count = len(found)
    if count:
        last_line = f"{count} {'run' if count == 1 else 'runs'}.  Next: tracker show run:{found['run_id'].iloc[0]}"
    else:
        last_line = "no runs found.  tracker runs --state all lists every run; tracker ingest adds some"
    emit(tables.render(found, _COLUMNS, format, name="runs", last_line=last_line))


@app.command()
def edit(
    runs: options.Runs,
    version: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="Move the runs to this version. Default: leave them where they are.",
            show_default=False,
        ),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Move the runs to this workload. Default: leave them.", show_default=False),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Correct the hardware model. Only runs on one device form a history. Default: leave it.",
            show_default=False,
        ),
    ] = None,
    note: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Replace the remark; '' removes it. Default: leave it.", show_default=False),
    ] = None,
    db: options.Database = None,
) -> None:
    """Correct the version, workload, device or note of runs.

    \b
    Example:
      tracker runs edit 41 42 --version v2.1
    """
    from tracker.errors import UsageError
    from tracker.intake import parse_device
    from tracker.store import runs as edits

    if version is None and workload is None and device is None and note is None:
        raise UsageError("nothing to change", remedy="give --version, --workload, --device or --note")

    def change(store: Store, run_id: int) -> None:
        if version is not None or workload is not None or device is not None:
            model = None if device is None else parse_device(device)
            edits.relabel(store, run_id, version=version, workload=workload, device=model)
        if note is not None:
            edits.set_note(store, run_id, note)

    _apply(runs, change, "changed", db)


@app.command()
def tag(
    runs: options.Runs,
    values: Annotated[
        list[str],
        typer.Option("--tag", metavar="KEY=VALUE", help="The mark to set; may be given again.", show_default=False),
    ],
    db: options.Database = None,
) -> None:
    """Set tags on runs; a tag of the same key is replaced.

    \b
    Example:
      tracker runs tag 41 42 --tag image=2024-06
    """
    from tracker.store import runs as edits

    tags = options.pairs(values, "--tag")

    def change(store: Store, run_id: int) -> None:
        for key, value in tags.items():
            edits.tag(store, run_id, key, value)

    _apply(runs, change, "tagged", db)


@app.command()
def untag(
    runs: options.Runs,
    keys: Annotated[
        list[str],
        typer.Option("--tag", metavar="KEY", help="The tag to remove; may be given again.", show_default=False),
    ],
    db: options.Database = None,
) -> None:
    """Remove tags from runs.

    \b
    Example:
      tracker runs untag 41 --tag image
    """
    from tracker.store import runs as edits

    def change(store: Store, run_id: int) -> None:
        for key in keys:
            edits.untag(store, run_id, key)

    _apply(runs, change, "untagged", db)


@app.command(short_help="Leave runs out of every comparison.")
def exclude(runs: options.Runs, reason: Reason, db: options.Database = None) -> None:
    """Leave runs out of every comparison, with the reason; restore takes them back.

    \b
    Example:
      tracker runs exclude 41 --reason 'another job on the node'
    """
    from tracker.store import runs as edits

    _apply(runs, lambda store, run_id: edits.exclude(store, run_id, reason), "excluded", db)


@app.command()
def restore(runs: options.Runs, db: options.Database = None) -> None:
    """Take excluded or deleted runs back into comparisons.

    \b
    Example:
      tracker runs restore 41
    """
    from tracker.store import runs as edits

    _apply(runs, edits.restore, "restored", db)


@app.command(short_help="Delete runs: out of lists and comparisons.")
def delete(
    runs: options.Runs,
    reason: Reason,
    purge: Annotated[
        bool,
        typer.Option(
            "--purge",
            help="Remove the rows of the runs from the database for good, so that their files may come in again. "
            "Default: hide the runs, and restore takes them back.",
        ),
    ] = False,
    db: options.Database = None,
) -> None:
    """Delete runs: out of every list and comparison, with the reason.

    \b
    Example:
      tracker runs delete 41 --reason 'wrong machine'
    """
    from tracker.store import runs as edits

    def change(store: Store, run_id: int) -> None:
        edits.delete(store, run_id, reason)
        if purge:
            edits.purge(store, run_id)

    _apply(runs, change, "purged" if purge else "deleted", db)


def _apply(runs: list[str], change: Callable[[Store, int], None], done: str, db: str | None) -> None:
    """`change` each of `runs` and say so; stops at the first that cannot be changed."""
    from tracker import config
    from tracker.cli import _store
    from tracker.cli._output import emit

    with _store.writing(config.load(db)) as store:
        for run_id in options.run_ids(runs):
            change(store, run_id)
            emit(f"run:{run_id} {done}")


def _ranks(row: Mapping[str, Any]) -> str:
    """`2`, or `2/8` while more are expected."""
    here, expected = row["ranks"], row["ranks_expected"]
    return str(here) if expected is None or expected == here else f"{here}/{expected}"


def _device(row: Mapping[str, Any]) -> str:
    return f"{row['vendor'] or ''} {row['device']}".strip()


def _state(row: Mapping[str, Any]) -> str:
    return f"{row['state']}: {row['state_reason']}" if row["state_reason"] else str(row["state"])


_COLUMNS = (
    tables.Column("run", lambda row: f"run:{row['run_id']}"),
    tables.Column("version", tables.text_of("version")),
    tables.Column("workload", tables.text_of("workload")),
    tables.Column("device", _device),
    tables.Column("ranks", _ranks, right=True),
    tables.Column("steps", tables.text_of("steps"), right=True),
    tables.Column("step time", tables.time_of("step_ns"), right=True),
    tables.Column("started (UTC)", tables.moment_of("started_at_ns")),
    tables.Column("state", _state),
    tables.Column("tags", tables.text_of("tags")),
)
