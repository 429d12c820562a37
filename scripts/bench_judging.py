"""Times judging one more run of a track of few and of many runs, and its memory: it should hardly grow with the track.

    .venv/bin/python scripts/bench_judging.py                          # 100 and 1,000 older runs x 5,000 series
    .venv/bin/python scripts/bench_judging.py --runs 100 5000 --ops 1000 --rounds 3

One made run is ingested; the others are copies of its rows whose samples differ by noise of 1 %, five runs to a
version. Most operators stay as they are; every tenth version makes one of them slower for good, and the next one takes
that back, so that there are findings old and new. All are judged once; what is timed is `update` after one more run,
in a process of its own that has imported everything. The smallest processor time of the rounds, which a busy machine
disturbs least, and the largest peak memory. --folder keeps the
databases, and uses copies of those that it holds. Ends with 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import numpy as np
from bench_queries import ROOT, RUNS_PER_VERSION, Targets, command, copy, run, trace

from tracker.store.samples.rows import SampleArray, pack_samples, unpack_samples

NOISE: Final = 0.01
SLOWER: Final = 8.0
EVERY: Final = 10 * RUNS_PER_VERSION
"""Runs between two changes."""

ONE_MORE_MS: Final = {1100: 150, 5000: 400}
"""Series of the track -> processor time of one more run."""
GROWTH: Final = 2.0
MEMORY_GROWTH: Final = 1.3

_TABLES: Final = ("run", "step", "capture", "source", "run_fact", "run_group")
"""What is copied of a run besides its samples: all that the judgement asks for."""

JUDGE: Final = """
import json, resource, sys, time
sys.path.insert(0, {root!r})
from tracker.regressions.judgement import tracks_of, update
import pandas
from tracker.store import open_store
with open_store({url!r}, create=False) as store:
    lines = tracks_of(store, {runs!r})
    began, cpu = time.perf_counter(), time.process_time()
    update(store, lines)
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
print(json.dumps([took * 1e3, cpu * 1e3, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def noisy(array: SampleArray, number: int) -> SampleArray:
    """The samples of the run of a number: noise, and what its version changed."""
    draw = np.random.default_rng(number)
    values = array.values * np.exp(draw.normal(0.0, NOISE, len(array.values)))
    spell, place = divmod(number, EVERY)
    if spell and place < 2 * RUNS_PER_VERSION:
        values[spell * 7919 % len(values)] *= SLOWER
    # each has times by calls, too, as on a host timeline: the judge chooses of three statistics
    by_calls = values * np.exp(draw.normal(-0.1, NOISE, (2, len(values))))
    return SampleArray(array.series_ids, values, array.calls, by_calls)


def add(database: Path, numbers: Sequence[int]) -> None:
    """The runs of these numbers, as copies of run 1."""
    with closing(sqlite3.connect(database)) as connection:
        columns = {
            table: [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            for table in (*_TABLES, "version")
        }
        (numbers_of_first,) = connection.execute("SELECT numbers FROM sample_array WHERE run_id = 1").fetchone()
        first = unpack_samples(numbers_of_first)
        for number in numbers:
            of_version = (number - 1) // RUNS_PER_VERSION + 1
            if number % RUNS_PER_VERSION == 1:
                copy(connection, "version", columns["version"], number, of_version)
            for table in _TABLES:
                copy(connection, table, columns[table], number, of_version)
            own = pack_samples(noisy(first, number))
            connection.execute("INSERT INTO sample_array (run_id, numbers) VALUES (?, ?)", (number, own))
        connection.commit()


def judged(database: Path, runs: Sequence[int] | None) -> tuple[float, float, float]:
    """Judges the lines of these runs, or all: ms, ms of a processor, and the peak memory of the process in MB."""
    code = JUDGE.format(root=str(ROOT), url=str(database), runs=None if runs is None else list(runs))
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    took, cpu, memory = json.loads(done.stdout.splitlines()[-1])
    return took, cpu, memory


def built(folder: Path, runs: int, ops: int, compiled: Path) -> Path:
    """The database of so many runs, judged; made where it is not there yet."""
    database = folder / f"judging-{runs}x{ops}.db"
    if not database.exists():
        (file := folder / "made.pt.trace.json").write_text(trace(ops))
        making = folder / f"judging-{runs}x{ops}.making.db"
        making.unlink(missing_ok=True)
        run(command(str(making), "ingest", str(file), "--version", "v0001", "--workload", "bench"), compiled)
        add(making, range(2, runs + 1))
        judged(making, None)
        making.rename(database)
    return database


def measure(database: Path, folder: Path, runs: int, rounds: int, *, prints: bool = True) -> tuple[float, float]:
    """The smallest processor time of one more run, and the largest peak memory, over rounds of one run each.

    prints: a line a round, as it comes.
    """
    one = folder / "one_more.db"
    for left in folder.glob("one_more.db*"):
        left.unlink()
    shutil.copy(database, one)
    add(one, [runs + 1])
    judged(one, [runs + 1])  # by the program as it is now: that of an earlier day may have kept something else
    found = []
    for number in range(runs + 2, runs + rounds + 2):
        add(one, [number])
        found.append(judged(one, [number]))
        if prints:
            print(f"| {runs:,} | {number:,} | {' | '.join(f'{one:.0f}' for one in found[-1])} |", flush=True)
    return min(one[1] for one in found), max(one[-1] for one in found)


def main() -> None:
    """Prints the tables; ends with 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--ops", type=int, default=2500, help="each is two series: by shape, and all shapes together")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="keep the databases here, and use those that are")
    options = parser.parse_args()
    targets = Targets()
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tracker-bench-")))
        folder.mkdir(parents=True, exist_ok=True)
        print("| older runs | run | ms | CPU ms | MB |\n|---|---|---|---|---|")
        took = {
            runs: measure(built(folder, runs, options.ops, folder / "compiled"), folder, runs, options.rounds)
            for runs in sorted(options.runs)
        }
    fewest, most = min(took), max(took)
    # each operator is two series
    limit = next((ms for series, ms in ONE_MORE_MS.items() if 2 * options.ops <= series), max(ONE_MORE_MS.values()))
    for runs, (ms, memory) in took.items():
        targets.check(f"one more run after {runs:,}, CPU", ms, limit, "ms")
        targets.check(f"its memory beside {fewest:,} runs", memory / took[fewest][1], MEMORY_GROWTH, "times")
    targets.check(f"one more of {most:,} to one of {fewest:,}", took[most][0] / took[fewest][0], GROWTH, "times")
    print("\n".join(["", "| what | measured | target | |", "|---|---|---|---|", *targets.rows]))
    sys.exit(1 if targets.missed else 0)


if __name__ == "__main__":
    main()
