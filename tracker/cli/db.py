"""`tracker db`: the database itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from tracker.cli import _options as options
from tracker.errors import StoreError, UsageError

app = typer.Typer(
    help="The database: where it is, whether it is sound, and its schema.\n\n"
    "\b\nExample:\n"
    "  tracker db info\n"
    "  tracker db upgrade --db postgresql://tracker@db.example/tracker\n"
    "  tracker db copy tracker.db postgresql://tracker@db.example/tracker",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command(short_help="Which database, its schema, what it holds.")
def info(db: options.Database = None) -> None:
    """Say which database is used and why, its schema, its size, and what it holds.

    \b
    Example:
      tracker db info
    """
    from tracker import config
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.store import health
    from tracker.units import format_bytes

    settings = config.load(db)
    with _store.reading(settings) as store:
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


@app.command(short_help="Look for damage.")
def check(
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="First make again what other rows tell: the packed samples of runs, and how these were recorded. "
            "Default: change nothing.",
        ),
    ] = False,
    db: options.Database = None,
) -> None:
    """Look for damage: in the file, in the tables, rows whose run or texts are gone, packed rows. Exit code 2 where
    there is some.

    \b
    Example:
      tracker db check
      tracker db check --repair
    """
    from tracker import config
    from tracker.cli import _store
    from tracker.cli._output import emit, tell
    from tracker.store import health
    from tracker.store.samples.arrays import HOW_TO_REPAIR
    from tracker.units import counted

    settings = config.load(db)
    with _store.writing(settings) if repair else _store.reading(settings) as store:
        for made in health.repair(store) if repair else ():
            emit(made)
        problems = health.check(store)
        name = store.url
    for problem in problems:
        tell(f"tracker: {problem}")
    if problems:
        said = f"{name} is damaged: {counted(len(problems), 'problem')}"
        by_itself = not repair and all(problem.endswith(HOW_TO_REPAIR) for problem in problems)
        raise StoreError(said, remedy="tracker db check --repair" if by_itself else "restore it from a copy")
    emit(f"{name} is sound")


@app.command(short_help="Bring the tables up to date.")
def upgrade(db: options.Database = None) -> None:
    """Bring the tables up to date with this version of tracker; the rows stay. Writing commands do it by themselves.

    \b
    Example:
      tracker db upgrade --db postgresql://tracker@db.example/tracker
    """
    from tracker import config
    from tracker.cli._output import emit
    from tracker.reports.commands import command
    from tracker.store import connect

    before, after = connect.upgrade(config.load(db).database)
    if before == after:
        emit(f"schema {after}, nothing to do")
    elif before is None:
        emit(f"schema none upgraded to {after}")
    else:  # a newer rule may see what is there in another way
        emit(f"schema {before} upgraded to {after}.  Next: {command('tracker', 'versions', 'judge')}")


@app.command(short_help="Move to another database: SQLite, Postgres.")
def copy(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="The database to copy: a SQLite file, or postgresql://USER@HOST/NAME.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="TO", help="Where to: a new SQLite file, or a Postgres database without rows.")
    ],
) -> None:
    """Copy a whole database into an empty one: from a SQLite file to Postgres when a team grows, or back to take along.

    Runs, findings and all other rows keep their numbers. FROM is only read, and may be in use; TO is complete, or
    empty as it was.

    \b
    Example:
      tracker db copy tracker.db postgresql://tracker@db.example/tracker
      tracker db copy postgresql://tracker@db.example/tracker ./copy.db
    """
    from tracker import config
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.cli._progress import progress
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
    with (
        _without_option(),
        progress(of_bytes=False) as report,
        _store.opened(reads, create=False, read_only=True) as reading,
        _store.opened(writes, create=True) as writing,
    ):
        counts = copying.copy(reading, writing, on_progress=report)
        name = writing.url
    runs = counted(counts.get("run", 0), "run")
    copied = f"{counted(sum(counts.values()), 'row')} of {counted(len(counts), 'table')}, {runs}: copied to {name}"
    emit(f"{copied}.  Next: have it used, by --db, TRACKER_DB or the settings file; tracker db info says which one is")


@contextmanager
def _without_option() -> Iterator[None]:
    """What opens a database tells of --db, which this command does not have."""
    try:
        yield
    except StoreError as error:
        remedy = error.remedy.replace(" with --db PATH", "").replace(" with --db", "")
        raise StoreError(error.problem, remedy=remedy) from error
