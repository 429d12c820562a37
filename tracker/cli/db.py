"""`tracker db`: the database itself."""

from __future__ import annotations

from typing import Annotated

from tracker.cli.options import Database
from tracker.errors import StoreError, UsageError
from tracker.results.option import Option

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
    from tracker import config
    from tracker.cli import database
    from tracker.cli.output import emit
    from tracker.store import health
    from tracker.units import format_bytes

    settings = config.load(db)
    with database.reading(settings) as store:
        found = health.info(store)
    lines = {
        "database": f"{found.name}  (named by {settings.origin})",
        "server": found.server,
        "schema": f"{found.schema}, the newest" if found.schema == found.newest_schema else found.schema,
        "size": format_bytes(found.bytes),
        **{f"rows of {table}": f"{count:,}" for table, count in found.rows.items() if count},
    }
    width = max(len(title) for title in lines)
    emit("\n".join(f"{title.ljust(width)}  {text}" for title, text in lines.items()))


def check(
    repair: Annotated[
        bool,
        Option("First rebuild what derives from other rows: packed samples and recording settings. Default: only read."),
    ] = False,
    db: Database = None,
) -> None:
    """Check integrity: database file, orphaned rows, dangling references, corrupt blobs. Exit code 2 on damage.

    \b
    Example:
      tracker db check
      tracker db check --repair
    """
    from tracker import config
    from tracker.cli import database
    from tracker.cli.output import emit, note
    from tracker.store import health
    from tracker.store.samples.arrays import HOW_TO_REPAIR
    from tracker.units import counted

    settings = config.load(db)
    with database.writing(settings) if repair else database.reading(settings) as store:
        for made in health.repair(store) if repair else ():
            emit(made)
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
    from tracker import config
    from tracker.cli.output import emit
    from tracker.reports.shared import command
    from tracker.store import connect

    before, after = connect.upgrade(config.load(db).database)
    if before == after:
        emit(f"schema {after} is the newest, nothing to do")
    elif before is None:
        emit(f"schema {after} created")
    else:  # a newer rule may judge the stored runs in another way
        emit(f"schema {before} upgraded to {after}.  Next: {command('tracker', 'versions', 'judge')}")


def copy(
    source: Annotated[
        str, Option("The database to copy: a SQLite file, or postgresql://USER@HOST/NAME.", "FROM", positional=True)
    ],
    target: Annotated[
        str, Option("A new SQLite file, or an empty Postgres database.", "TO", positional=True)
    ],
) -> None:
    """Copy a whole database into an empty one, SQLite or Postgres.

    All rows keep their numbers. FROM is only read, and may be in use; TO is complete, or as empty as before.

    \b
    Example:
      tracker db copy tracker.db postgresql://tracker@db.example/tracker
      tracker db copy postgresql://tracker@db.example/tracker ./copy.db
    """
    from tracker import config
    from tracker.cli import database
    from tracker.cli.output import emit, progress
    from tracker.store import copying, urls
    from tracker.units import counted

    for name, given in (("FROM", source), ("TO", target)):
        if not given:
            raise UsageError(f"{name} is empty", remedy="name a SQLite file, or postgresql://USER@HOST/NAME")
    addresses = [urls.parse_url(config.load(named).database) for named in (source, target)]
    if addresses[0] == addresses[1]:
        raise UsageError("FROM and TO are the same database", remedy="copy into a new, empty one")
    if urls.in_memory(addresses[1]):
        raise UsageError("TO is a database in memory, which ends with this command", remedy="name a SQLite file")
    reads, writes = (address.render_as_string(hide_password=False) for address in addresses)
    try:
        with (
            progress(of_bytes=False) as report,
            database.opened(reads, create=False, read_only=True) as reading,
            database.opened(writes, create=True) as writing,
        ):
            counts = copying.copy(reading, writing, on_progress=report)
            name = writing.url
    except StoreError as error:  # this command has no --db
        remedy = error.remedy.replace(" with --db PATH", "").replace(" with --db", "")
        raise StoreError(error.problem, remedy=remedy) from error
    runs = counted(counts.get("run", 0), "run")
    copied = f"{counted(sum(counts.values()), 'row')} of {counted(len(counts), 'table')}, {runs}: copied to {name}"
    emit(f"{copied}.  Next: name it by --db, TRACKER_DB or the settings file; tracker db info shows which one is used")
