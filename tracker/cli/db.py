"""`tracker db` and `tracker prune`: the database itself, and the details of old runs."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Final

from tracker import config
from tracker.api.arguments import opened
from tracker.api.edits import age
from tracker.cli.options import Database, Workload
from tracker.cli.output import aligned, emit, next_lines, note, progress
from tracker.errors import StoreError, UsageError
from tracker.reports.commands import command
from tracker.results.options import Option
from tracker.units import counted, format_age, format_bytes, format_moment

_NAMED: Final = 20
HELP = (
    "Show, check, upgrade or copy the database.\n\n"
    "\b\nExample:\n"
    "  tracker db info\n"
    "  tracker db upgrade --db postgresql://tracker@db.example/tracker\n"
    "  tracker db copy tracker.db postgresql://tracker@db.example/tracker"
)


def info(db: Database = None) -> None:
    """Show which database is used, and why, with its schema, size and number of rows.

    \b
    Example:
      tracker db info
    """
    from tracker.store import health

    settings = config.load(db)
    with opened(settings, read_only=True) as store:
        found = health.info(store)
    lines = {
        "database": f"{found.name}  (named by {settings.origin})",
        "server": found.server,
        "schema": f"{found.schema}, the newest" if found.schema == found.newest_schema else found.schema,
        "size": format_bytes(found.bytes),
        **{f"rows of {table}": f"{count:,}" for table, count in found.rows.items() if count},
    }
    emit("\n".join(aligned(list(lines.items()))))


def check(
    repair: Annotated[
        bool,
        Option(
            "First rebuild what derives from other rows: packed samples, recording settings, views. Default: only read."
        ),
    ] = False,
    db: Database = None,
) -> None:
    """Check integrity: database file, orphaned rows, dangling references, corrupt blobs. Exit code 2 on damage.

    \b
    Example:
      tracker db check
      tracker db check --repair
    """
    from tracker.regressions import judgement
    from tracker.store import health
    from tracker.store.samples.rows import HOW_TO_REPAIR

    settings = config.load(db)
    with opened(settings, read_only=not repair) as store:
        for made in health.repair(store) if repair else ():
            emit(made)
        if repair and (count := judgement.update(store, judgement.tracks_that_waited(store))):
            emit(f"{counted(count, 'version')} judged: no more ranks of their runs are waited for")
        problems = health.check(store)
        name = store.url
    for problem in problems:
        note(f"tracker: {problem}")
    if problems:
        repairable = not repair and all(problem.endswith(HOW_TO_REPAIR) for problem in problems)
        raise StoreError(
            f"{name} is damaged: {counted(len(problems), 'problem')}",
            remedy="tracker db check --repair" if repairable else "restore it from a copy",
        )
    emit(f"{name} is sound")


def upgrade(db: Database = None) -> None:
    """Upgrade the tables to this version of tracker. Rows stay; commands that write do it by themselves.

    \b
    Example:
      tracker db upgrade --db postgresql://tracker@db.example/tracker
    """
    from tracker.store import connect

    before, after = connect.upgrade(config.load(db).database)
    if before == after:
        emit(f"schema {after} is the newest, nothing to do")
    elif before is None:
        emit(f"schema {after} created")
    else:  # a newer rule may judge the stored runs in another way
        emit(f"schema {before} upgraded to {after}.{next_lines(command('tracker', 'versions', 'judge'))}")


def copy(
    source: Annotated[
        str, Option("The database to copy: a SQLite file, or postgresql://USER@HOST/NAME.", "FROM", positional=True)
    ],
    target: Annotated[str, Option("A new SQLite file, or an empty Postgres database.", "TO", positional=True)],
) -> None:
    """Copy a whole database into an empty one, SQLite or Postgres.

    All rows keep their numbers. FROM is only read, and may be in use; TO is complete, or as empty as before.

    \b
    Example:
      tracker db copy tracker.db postgresql://tracker@db.example/tracker
      tracker db copy postgresql://tracker@db.example/tracker ./copy.db
    """
    from tracker.store import copying, urls

    for name, given in (("FROM", source), ("TO", target)):
        if not given:
            raise UsageError(f"{name} is empty", remedy="name a SQLite file, or postgresql://USER@HOST/NAME")
    reads, writes = (config.load(named).database for named in (source, target))
    addresses = [urls.parse_url(named) for named in (reads, writes)]
    if addresses[0] == addresses[1]:
        raise UsageError("FROM and TO are the same database", remedy="copy into a new, empty one")
    if urls.in_memory(addresses[1]):
        raise UsageError("TO is a database in memory, which ends with this command", remedy="name a SQLite file")
    try:
        with (
            progress(of_bytes=False) as report,
            opened(reads, read_only=True) as reading,
            opened(writes, create=True) as writing,
        ):
            counts = copying.copy(reading, writing, on_progress=report)
            name = writing.url
    except StoreError as error:  # this command has no --db
        remedy = error.remedy.replace(" with --db PATH", "").replace(" with --db", "")
        raise StoreError(error.problem, remedy=remedy) from error
    runs = counted(counts.get("run", 0), "run")
    copied = f"{counted(sum(counts.values()), 'row')} of {counted(len(counts), 'table')}, {runs}: copied to {name}"
    emit(f"{copied}. Name it by --db, TRACKER_DB or the settings file; tracker db info shows which one is used")


def prune(
    older_than: Annotated[
        int | None,
        Option(
            "Only runs that started longer ago: 30d, 12w. Default: prune.older_than of the settings file, else 90d.",
            "AGE",
            read=age,
        ),
    ] = None,
    keep_versions: Annotated[
        int | None,
        Option(
            "Keep the newest N versions of a workload. Default: prune.keep_versions of the settings file, else 5.",
            "N",
            least=0,
            most=1_000_000,
        ),
    ] = None,
    workload: Workload = None,
    yes: Annotated[
        bool, Option("Do not ask for confirmation without --older-than and --keep-versions. Default: ask.", short="-y")
    ] = False,
    dry_run: Annotated[bool, Option("List the runs, and change nothing.")] = False,
    compact: Annotated[
        bool,
        Option(
            "Return the space to the system: rewrites a SQLite file, which needs its size again meanwhile. Default: "
            "the space is used for new runs."
        ),
    ] = False,
    db: Database = None,
) -> None:
    """Delete the details of old runs: rows per operator, kernel, collective and allocation. History stays.

    Samples, findings, and the totals of each rank and step are never deleted. Runs of pinned versions and under open
    findings keep everything. An ingest of the profile restores the details. Branches whose newest run is as old are
    forgotten whole.

    \b
    Example:
      tracker prune --dry-run
      tracker prune --yes
      tracker prune --older-than 30d --keep-versions 10 --workload gpt
    """
    import typer

    from tracker.store import pruning, queries

    settings = config.load(db)
    if older_than is None and keep_versions is None and settings.prune is None and not (dry_run or yes):
        if not (sys.stdin is not None and sys.stdin.isatty()):
            raise UsageError(
                "neither --older-than nor --keep-versions is given",
                remedy="give one, or --yes for 90d and 5; tracker prune --dry-run lists the runs",
            )
        typer.confirm("Delete the details of runs older than 90 d, except the newest 5 versions?", abort=True, err=True)
    rule, now = settings.prune or config.Prune(), time.time_ns()
    older_than = rule.older_than_ns if older_than is None else older_than
    kept = rule.keep_versions if keep_versions is None else keep_versions
    policy = pruning.Policy(max(0, now - older_than), kept, workload)
    with opened(settings, read_only=dry_run) as store:
        queries.check_filters(store, workload=workload)
        found, rows = (pruning.prunable(store, policy), 0) if dry_run else pruning.prune_all(store, policy, now_ns=now)
        branches = pruning.forget_old_branches(store, policy, dry_run=dry_run)
        if compact and not dry_run:
            pruning.compact(store)
    lines = [
        f"run {run.run_id}  {run.workload} {run.version}, started {format_moment(run.started_at_ns)[:10]}"
        for run in found[:_NAMED]
    ]
    lines += [f"... and {len(found) - _NAMED} more"] if len(found) > _NAMED else []
    runs = counted(len(found), "run")
    if not found:
        newest = f"of the newest {kept} versions, " if kept else ""
        lines.append(
            f"no run to prune: all are younger than {format_age(older_than)}, {newest}of a pinned version, under an "
            "open finding, without a start time, or pruned already"
        )
    elif dry_run:
        lines.append(f"{runs} would lose their details; nothing was changed; without --dry-run they are")
    else:
        lines.append(f"{runs}: {counted(rows, 'row')} of details deleted; samples and totals stay")
    if branches:
        verb = "would be forgotten" if dry_run else "forgotten"
        lines.append(f"{verb}, with all their runs: {', '.join(branches)}")
    emit("\n".join(lines))
