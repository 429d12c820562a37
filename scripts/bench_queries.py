"""Times diff and history in a database of many runs beside the same in one of ten: SQL alone, and whole commands.

    .venv/bin/python scripts/bench_queries.py                      # 1,000 runs x 5,000 series
    .venv/bin/python scripts/bench_queries.py --runs 100 --ops 1000 --rounds 5

One made run is ingested; the others are copies of its rows in which every time differs by up to 2 %, five runs to a
version, judged by tracker. SQL: what the database took to answer all questions of a command, in a process that has
started; whole: the process from its start to its end. Medians.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parent.parent
RUNS_PER_VERSION: Final = 5
SPREAD: Final = 0.02

IN_SQL: Final = """
import sys, time
sys.path.insert(0, {root!r})
from sqlalchemy import event
from sqlalchemy.engine import Engine
spent = [0]
@event.listens_for(Engine, "before_cursor_execute")
def before(connection, cursor, statement, parameters, context, executemany):
    context.began = time.perf_counter_ns()
@event.listens_for(Engine, "after_cursor_execute")
def after(connection, cursor, statement, parameters, context, executemany):
    spent[0] += time.perf_counter_ns() - context.began

import contextlib, io
from tracker.__main__ import main
with contextlib.redirect_stdout(io.StringIO()):
    try:
        main()
    except SystemExit as ended:
        code = ended.code
print(spent[0] / 1e6, file=sys.stderr)
sys.exit(code)
"""


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


def tracker(database: Path, *words: str) -> list[str]:
    """A command of this checkout."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tracker.__main__ import main; main()"
    return [sys.executable, "-c", code, *words, "--db", str(database)]


def fill(database: Path, runs: int) -> None:
    """Copies of the rows of run 1 until there are so many runs, and their versions, judged."""
    connection = sqlite3.connect(database)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = {table: [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')] for table in tables}
    for run in range(2, runs + 1):
        version = (run - 1) // RUNS_PER_VERSION + 1
        if run % RUNS_PER_VERSION == 1:
            copy(connection, "version", columns["version"], run, version)
        for table in tables:
            if table == "run" or "run_id" in columns[table]:
                copy(connection, table, columns[table], run, version)
    connection.commit()
    connection.close()
    subprocess.run(tracker(database, "versions", "judge"), check=True, capture_output=True)


def copy(connection: sqlite3.Connection, table: str, columns: Sequence[str], run: int, version: int) -> None:
    """The rows of a table that belong to run 1, or to its version, once more for another."""
    taken = dict(values(table, columns))
    where = "run_id = 1" if "run_id" in columns else "id = 1"
    names, found = ", ".join(taken), ", ".join(taken.values())
    statement = f'INSERT INTO "{table}" ({names}) SELECT {found} FROM "{table}" WHERE {where}'  # noqa: S608 own names
    connection.execute(statement, {"run": run, "version": version})


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


def median_ms(command: Sequence[str], rounds: int, *, in_sql: bool) -> float:
    """The median over rounds: of the whole process, or of the SQL in it."""
    found = []
    for _ in range(rounds + 1):  # the first one warms the page cache
        start = time.perf_counter()
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command[3:])}\n{done.stderr[-2000:]}")
        whole = (time.perf_counter() - start) * 1e3
        found.append(float(done.stderr.splitlines()[-1]) if in_sql else whole)
    return statistics.median(found[1:])


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--ops", type=int, default=2500, help="each is two series: by shape, and all shapes together")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sizes = (2 * RUNS_PER_VERSION, options.runs)
        databases = [Path(folder, f"{runs}.db") for runs in sizes]
        (file := Path(folder, "made.pt.trace.json")).write_text(trace(options.ops))
        for runs, database in zip(sizes, databases, strict=True):
            said = ("--version", "v0001", "--workload", "bench")
            subprocess.run(tracker(database, "ingest", str(file), *said), check=True, capture_output=True)
            fill(database, runs)
        print(f"Medians of {options.rounds}, Python {platform.python_version()}, {os.cpu_count()} processors.\n")
        print("| command | runs | SQL ms | whole ms |")
        print("|---|---|---|---|")
        for runs, database in zip(sizes, databases, strict=True):
            last = (runs - 1) // RUNS_PER_VERSION + 1
            for words in (("diff", f"v{last - 1:04}", f"v{last:04}"), ("history", "bench::op7"), ("findings", "--new")):
                whole = tracker(database, *words)
                inside = [whole[0], "-c", IN_SQL.format(root=str(ROOT)), *whole[3:]]
                numbers = [
                    median_ms(inside, options.rounds, in_sql=True),
                    median_ms(whole, options.rounds, in_sql=False),
                ]
                print(f"| {' '.join(words)} | {runs} | {numbers[0]:.1f} | {numbers[1]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
