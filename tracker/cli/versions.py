"""`tracker versions`: the versions of a workload, and which one is the fixed baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracker.cli import _options as options
from tracker.cli import _tables as tables
from tracker.errors import FIRST_INGEST
from tracker.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.columns import Columns
    from tracker.store import Store

app = typer.Typer(
    help="List versions in their order, change it, pin the one to compare with. Without a command: list them.\n\n"
    "\b\nExample:\n"
    "  tracker versions --workload resnet50\n"
    "  tracker versions pin v1 --workload resnet50\n"
    "  tracker versions order v1.9 --before v2.0\n"
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
    """List versions; their order is the one in which they came in, unless tracker versions order gave another one."""
    if not options.is_list(context):
        return
    from tracker.store import queries

    def query(store: Store) -> Columns:
        queries.check_filters(store, workload=workload)
        return queries.versions.columns(store, workload)

    proposed: list[str] = []

    def listed(store: Store) -> Columns:
        found = query(store)
        proposed.extend(_proposed(store, found.listed("workload")))
        return found

    tables.emit_list(listed, _COLUMNS, format, name="versions", last_line=lambda rows: _next(rows, proposed), db=db)


def _proposed(store: Store, workloads: Sequence[str]) -> list[str]:
    """A diff of the newest two versions of the last workload that has two which can be compared; else nothing."""
    from tracker.cli import _next as proposals

    diffs = [proposals.diff_of(store, workload) for workload in dict.fromkeys(reversed(workloads))]
    return [diff for diff in diffs if diff][:1]


def _next(found: Columns, proposed: Sequence[str]) -> str:
    """How many versions there are, and what to do with them."""
    if not len(found):
        return f"no versions found.  Next: {FIRST_INGEST}"
    following = f"Next: {proposed[0]}" if proposed else f"Next: {FIRST_INGEST}"
    return f"{counted(len(found), 'version')}.  {following}"


@app.command(short_help="Make a version the fixed baseline.")
def pin(label: Label, workload: options.Workload = None, db: options.Database = None) -> None:
    """Make a version the fixed baseline of its workload: `pinned` then means it.

    \b
    Example:
      tracker versions pin v1
      tracker diff pinned latest
    """
    from tracker import compare, config
    from tracker.cli import _next as proposals
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.regressions import judgement
    from tracker.store import runs as edits

    with _store.writing(config.load(db)) as store:
        label = compare.label_of(store, label, workload)
        workload = edits.pin(store, label, workload=workload)
        judgement.update(store, judgement.lines_of(store, workload=workload))
        following = proposals.diff_of(store, workload, pinned=True)
    emit(f"{label} pinned.  {_compared(following, workload)}")


@app.command()
def unpin(label: Label, workload: options.Workload = None, db: options.Database = None) -> None:
    """Take back a pin.

    \b
    Example:
      tracker versions unpin v1
    """
    from tracker import compare, config
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.regressions import judgement
    from tracker.store import runs as edits

    with _store.writing(config.load(db)) as store:
        label = compare.label_of(store, label, workload)
        edits.unpin(store, label, workload=workload)
        judgement.update(store, judgement.lines_of(store, workload=workload))
    emit(f"{label} no longer pinned")


@app.command(short_help="Put versions into another order.")
def order(
    labels: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LABEL...",
            help="The versions to move, in their order; without --after and --before: all versions of the workload.",
            show_default=False,
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="Put them behind this version. Default: the labels are the whole order.",
            show_default=False,
        ),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="Put them in front of this version. Default: as for --after.", show_default=False
        ),
    ] = None,
    from_git: Annotated[
        Path | None,
        typer.Option(
            metavar="REPOSITORY",
            help="Take the order from this git repository, which is only read: by the commits of the versions, or by "
            "labels that are tags or commits. Default: the order is named.",
            show_default=False,
        ),
    ] = None,
    workload: options.Workload = None,
    db: options.Database = None,
) -> None:
    """Put versions into another order: every DIFF against the version before follows.

    \b
    Example:
      tracker versions order v1.9.1 --after v1.9
      tracker versions order v1 v2 v3 --workload resnet50
      tracker versions order --from-git ~/src/model
    """
    from tracker import compare, config
    from tracker.cli import _git, _store
    from tracker.cli import _next as proposals
    from tracker.cli._output import emit, tell
    from tracker.errors import UsageError
    from tracker.regressions import judgement
    from tracker.store import queries
    from tracker.store import runs as edits
    from tracker.store.order import order_versions

    if sum(bool(way) for way in (after, before, from_git)) > 1 or bool(labels) == bool(from_git):
        raise UsageError(
            "say in one way what the order is",
            remedy="name the versions, alone or with --after or --before; or --from-git",
        )
    with _store.writing(config.load(db)) as store:
        wanted = [compare.label_of(store, label, workload) for label in labels or ()]
        after, before = (one and compare.label_of(store, one, workload) for one in (after, before))
        if from_git is not None:
            known = queries.versions.columns(store, workload)
            workloads = set(known.listed("workload"))
            if len(workloads) != 1:
                raise UsageError("there is not one workload", remedy="choose one with --workload")
            found = _git.order_of(from_git, dict(known.rows("version", "commit")))
            if found.unknown:
                tell(f"not in {from_git}, so left behind the version before: {', '.join(found.unknown)}")
            wanted, workload = list(found.labels), workloads.pop()
        done = order_versions(store, wanted, workload=workload, after=after, before=before)
        workload = edits.workload_of(store, wanted[0], workload)
        judgement.update(store, judgement.lines_of(store, workload=workload))
        following = proposals.diff_of(store, workload)
    emit(f"{' '.join(done)}\n{len(done)} versions in order.  {_compared(following, workload)}")


def _compared(proposed: str | None, workload: str) -> str:
    """The next command: the diff that can be made now, else the list of versions."""
    from tracker.reports.commands import command

    return f"Next: {proposed or command('tracker', 'versions', '--workload', workload)}"


@app.command(short_help="Bring what is known of versions up to date.")
def judge(workload: options.Workload = None, db: options.Database = None) -> None:
    """Judge all versions whose runs or baselines changed since they were judged, as after an upgrade of tracker.

    Ingests and edits do this by themselves.

    \b
    Example:
      tracker versions judge
    """
    from tracker import config
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.regressions import judgement
    from tracker.reports.commands import command
    from tracker.store import queries

    where = ("--workload", workload) if workload else ()
    with _store.writing(config.load(db)) as store:
        queries.check_filters(store, workload=workload)
        count = judgement.update(store, judgement.lines_of(store, workload=workload))
    emit(f"{counted(count, 'version')} judged.  Next: {command('tracker', 'versions', *where)}")


_COLUMNS = (
    tables.Column("version", tables.text_of("version")),
    tables.Column("workload", tables.text_of("workload")),
    tables.Column("runs", tables.text_of("runs"), right=True),
    tables.Column("first run (UTC)", tables.moment_of("first_started_at_ns")),
    tables.Column("pinned", lambda row: "pinned" if row["pinned"] else ""),
    tables.Column("commit", tables.text_of("commit")),
    tables.Column("note", tables.text_of("note")),
)
