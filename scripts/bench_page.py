"""Times the pages of `tracker page` on a database of many runs, SQLite and Postgres, beside their goals.

    .venv/bin/python scripts/bench_page.py                 # 1,000 runs x 5,000 series
    .venv/bin/python scripts/bench_page.py --runs 100 --ops 1000 --rounds 5 --folder /scratch

The databases are those of bench_queries.py. A server is started for each; what counts is the time from the request to
the last byte, by a client beside it, as a median. First: of a new server; again: once more, with an unchanged database.
Readers all ask for the board at once, ten times each. --folder keeps the databases, and uses those that it holds. Ends
with 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bench_queries import RUNS_PER_VERSION, Targets, built, command, postgres, run, versions

WARM_S: Final = 2
"""A server imports what pages need once it listens; a person takes longer to open its address."""
AGAIN_MS: Final = 50
START_MS: Final = 1_500
BOARD_MS: Final = 200
DIFF_MS: Final = 600
HISTORY_MS: Final = 150
READERS: Final = 8
AT_ONCE_MS: Final = 500
MEMORY_MB: Final = 250


@contextmanager
def served(database: str, compiled: Path) -> Iterator[tuple[str, int]]:
    """A new server: HOST:PORT and the number of its process."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": str(compiled), "PYTHONUNBUFFERED": "1"}
    words = command(database, "page", "--listen", "127.0.0.1:0", "--no-token")
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[0].removeprefix("http://"), process.pid
        finally:
            process.send_signal(signal.SIGTERM)


def asked(place: str, address: str) -> float:
    """How long a page takes, in ms; ends this program where it is none."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection(place, timeout=120)
    connection.request("GET", address)
    found = connection.getresponse()
    body = found.read()
    took = (time.perf_counter() - start) * 1e3
    connection.close()
    if found.status != 200:
        sys.exit(f"{address}: {found.status}\n{body[:2000].decode(errors='replace')}")
    return took


def pages(runs: int) -> dict[str, tuple[str, float]]:
    """What is timed: its address and its goal in ms."""
    last = (runs - 1) // RUNS_PER_VERSION + 1
    return {
        "board": ("/", BOARD_MS),
        "diff of two versions": (f"/diff?side=v{last - 1:04}&side=v{last:04}", DIFF_MS),
        "history of an op": ("/history?key=bench::op7", HISTORY_MS),
    }


def measure(kind: str, database: str, runs: int, rounds: int, compiled: Path, goals: Targets) -> None:
    """Checks the goals on one database."""
    run(command(database, "db", "upgrade"), compiled)  # one of an earlier day may be older than this program
    starts = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        with served(database, compiled) as (place, _):
            asked(place, "/")
            starts.append((time.perf_counter() - start) * 1e3)
    # after the first one, what was imported is compiled
    goals.check(f"{kind}: start of the process to the first board", statistics.median(starts[1:]), START_MS, "ms")
    firsts: dict[str, list[float]] = {name: [] for name in pages(runs)}
    for _ in range(rounds):
        with served(database, compiled) as (place, _):
            time.sleep(WARM_S)
            for name, (address, _) in pages(runs).items():
                firsts[name].append(asked(place, address))
    with served(database, compiled) as (place, process):
        for name, (address, goal) in pages(runs).items():
            goals.check(f"{kind}: {name}, first", statistics.median(firsts[name]), goal, "ms")
            asked(place, address)
            again = statistics.median(asked(place, address) for _ in range(rounds))
            goals.check(f"{kind}: {name}, again", again, AGAIN_MS, "ms")
        with ThreadPoolExecutor(READERS) as readers:
            times = sorted(readers.map(lambda _: asked(place, "/"), range(10 * READERS)))
        goals.check(f"{kind}: board, {READERS} readers at once, p95", times[int(0.95 * len(times))], AT_ONCE_MS, "ms")
        status = Path(f"/proc/{process}/status")
        if status.exists():
            peak = int(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0]) / 1024
            goals.check(f"{kind}: memory of the server, peak", peak, MEMORY_MB, "MB")


def main() -> None:
    """Prints the table; ends with 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--ops", type=int, default=2500, help="each is two series: by shape, and all shapes together")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="keep the databases here, and use those that are")
    options = parser.parse_args()
    goals = Targets()
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tracker-bench-")))
        folder.mkdir(parents=True, exist_ok=True)
        compiled = folder / "compiled"
        fresh = stack.enter_context(postgres(folder / "pg"))
        print(f"{options.runs:,} runs, medians of {options.rounds}, {versions(fresh)}, {os.cpu_count()} processors.\n")
        file = str(built(folder, options.runs, options.ops, compiled))
        measure("SQLite", file, options.runs, options.rounds, compiled, goals)
        if fresh:
            url, is_there = fresh(f"runs_{options.runs}_{options.ops}", keep=True)
            if not is_there:
                run(command("", "db", "copy", file, url), compiled)
            measure("Postgres", url, options.runs, options.rounds, compiled, goals)
    print("\n".join(["| what | measured | goal | |", "|---|---|---|---|", *goals.rows]))
    sys.exit(1 if goals.missed else 0)


if __name__ == "__main__":
    main()
