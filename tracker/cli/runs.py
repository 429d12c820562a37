"""`tracker runs`: find runs, and correct what is said about them."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracker.cli import _options as options
from tracker.cli import _tables as tables
from tracker.errors import FIRST_INGEST
from tracker.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracker.columns import Columns
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


DeviceFilter = Annotated[
    str | None, typer.Option("--device", metavar="MODEL", help="Only runs on this hardware model. Default: any.")
]
TagFilter = Annotated[
    str | None, typer.Option("--tag", metavar="KEY[=VALUE]", help="Only runs with this tag. Default: any.")
]
StateFilter = Annotated[
    State,
    typer.Option("--state", help="active runs count in every comparison; excluded and deleted ones count in none."),
]
Limit = Annotated[
    int,
    typer.Option("--limit", metavar="N", min=0, help="List at most N runs, newest first; 0 for all."),
]


@app.callback(invoke_without_command=True)
def find(
    context: typer.Context,
    version: options.Version = None,
    workload: options.Workload = None,
    device: DeviceFilter = None,
    tag: TagFilter = None,
    state: StateFilter = State.ACTIVE,
    limit: Limit = 50,
    format: tables.ListFormatOption = tables.ListFormat.TEXT,
    db: options.Database = None,
) -> None:
    """Find runs; the list is in order of start, newest first."""
    if not options.is_list(context):
        return
    from tracker import compare
    from tracker.errors import UsageError
    from tracker.store import queries

    if tag is not None and not tag.partition("=")[0].strip():
        raise UsageError(f"--tag {tag!r} names no tag", remedy="write --tag KEY or --tag KEY=VALUE")

    def query(store: Store) -> Columns:
        label = None if version is None else compare.label_of(store, version, workload)
        queries.check_filters(store, workload=workload, device=device, version=label)
        return queries.runs.columns(
            store,
            version=label,
            workload=workload,
            device=device,
            tag=tag,
            state=state.value,
            limit=limit or None,
        )

    tables.emit_list(query, _COLUMNS, format, name="runs", last_line=_next, db=db)


def _next(found: Columns) -> str:
    """How many runs were found, and what to do with them."""
    if not len(found):
        return f"no runs found.  tracker runs --state all lists every run; a new one: {FIRST_INGEST}"
    return f"{counted(len(found), 'run')}.  Next: tracker show run:{found.listed('run_id')[0]}"


NewVersion = Annotated[
    str | None,
    typer.Option(
        "--version", metavar="LABEL", help="Move the runs to this version. Default: leave them where they are."
    ),
]
NewWorkload = Annotated[
    str | None,
    typer.Option("--workload", metavar="NAME", help="Move the runs to this workload. Default: leave them."),
]
NewDevice = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="MODEL",
        help="Correct the hardware model; the vendor stays if not named. Only runs on one device form a history. "
        "Default: leave it.",
    ),
]
NewConfiguration = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        metavar="KEY=VALUE",
        help="Replace the whole configuration, what must be equal for runs to be compared: give all of its values, the "
        "world size too where it has one (tracker runs --format json shows it). Default: leave it.",
    ),
]
NewNote = Annotated[
    str | None,
    typer.Option("--note", metavar="TEXT", help="Replace the remark; '' removes it. Default: leave it."),
]


@app.command(short_help="Correct version, workload, device, configuration, note.")
def edit(
    runs: options.Runs,
    version: NewVersion = None,
    workload: NewWorkload = None,
    device: NewDevice = None,
    config: NewConfiguration = None,
    note: NewNote = None,
    db: options.Database = None,
) -> None:
    """Correct the version, workload, device, configuration or note of runs.

    \b
    Example:
      tracker runs edit 41 42 --version v2.1
      tracker runs edit 41 --config batch=32
    """
    from tracker.errors import UsageError
    from tracker.intake import parse_device
    from tracker.store import runs as edits

    if version is None and workload is None and device is None and note is None and not config:
        raise UsageError("nothing to change", remedy="give --version, --workload, --device, --config or --note")
    options.one_line("--note", note)
    # as with an ingest: a vendor that the files state stays where the user names none
    corrected = None if device is None else partial(parse_device, device)
    values = options.pairs(config, "--config") or None

    def change(store: Store, run_ids: list[int]) -> None:
        edits.edit_all(
            store, run_ids, version=version, workload=workload, device=corrected, configuration=values, note=note
        )

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

    _apply(runs, lambda store, run_ids: edits.tag_all(store, run_ids, tags), "tagged", db)


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

    _apply(runs, lambda store, run_ids: edits.untag_all(store, run_ids, keys), "untagged", db)


@app.command(short_help="Leave runs out of every comparison.")
def exclude(runs: options.Runs, reason: Reason, db: options.Database = None) -> None:
    """Leave runs out of every comparison, with the reason; restore takes them back.

    \b
    Example:
      tracker runs exclude 41 --reason 'another job on the node'
    """
    from tracker.store import runs as edits

    options.one_line("--reason", reason)
    _apply(runs, lambda store, run_ids: edits.exclude_all(store, run_ids, reason), "excluded", db)


@app.command()
def restore(runs: options.Runs, db: options.Database = None) -> None:
    """Take excluded or deleted runs back into comparisons.

    \b
    Example:
      tracker runs restore 41
    """
    from tracker.store import runs as edits

    _apply(runs, edits.restore_all, "restored", db)


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

    options.one_line("--reason", reason)
    done = "purged" if purge else "deleted"
    _apply(runs, lambda store, run_ids: edits.delete_all(store, run_ids, reason, purge=purge), done, db)


def _apply(runs: list[str], change: Callable[[Store, list[int]], None], done: str, db: str | None) -> None:
    """`change` all of `runs`, or none where one of them cannot be changed, and say so; what rests on them follows."""
    from tracker import config
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.regressions import judgement

    run_ids = options.run_ids(runs)
    with _store.writing(config.load(db)) as store:
        before = judgement.lines_of(store, run_ids)
        change(store, run_ids)
        judgement.update(store, [*before, *judgement.lines_of(store, run_ids)])
    emit("\n".join(f"run:{run_id} {done}" for run_id in run_ids))


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
