"""Times `tracker ingest` beside other readers of the same PyTorch trace: whole processes, in rounds.

    .venv/bin/python scripts/bench_ingest.py TRACE [TRACE...]                 # tracker alone
    .venv/bin/python scripts/bench_ingest.py TRACE --hta PYTHON --tb PYTHON --msprof PYTHON --rounds 3
    .venv/bin/python scripts/bench_ingest.py TRACE --processors 1 2 4         # by the processors that it may use
    .venv/bin/python scripts/bench_ingest.py --ranks FOLDER                   # on all processors, and on one
    .venv/bin/python scripts/bench_ingest.py TRACE --postgres                 # into a server that it starts, too

Each peer runs in an environment of its own, given as its Python: HolisticTraceAnalysis 0.5 loads the trace and makes
two breakdowns, torch-tb-profiler loads one run, AMD's TraceLens makes one report, msprof-analyze compares the trace
with itself (two files; tracker: two ingests and a diff). What counts is the ratio of the medians in one run of this
script; the page cache is warm, the database is there, start-up and writing are counted. CPU is that of all processes
that a tool starts. Below the table stand the phases of one ingest of each trace, the fastest of the rounds.
"""

from __future__ import annotations

import argparse
import compileall
import importlib.metadata
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench_queries import postgres

AS_USERS: Final = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Where an environment for development keeps Python from keeping what it compiled, each start would compile all."""

ROOT = Path(__file__).resolve().parent.parent
MB: Final = 1e6

HTA: Final = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir='')
try:
    analysis.get_temporal_breakdown(visualize=False)
except AssertionError:
    pass  # its own rounding of ns traces
analysis.get_gpu_kernel_breakdown(visualize=False)
"""
TB: Final = """
import os, sys, tempfile
from torch_tb_profiler.io.cache import Cache
from torch_tb_profiler.profiler.loader import RunLoader
with tempfile.TemporaryDirectory() as folder:
    os.symlink(os.path.abspath(sys.argv[1]), os.path.join(folder, 'host_1.1.pt.trace.json'))
    run = RunLoader('run', folder, Cache()).load()
    assert run.profiles
"""


PHASES: Final = {
    "tracker.readers": {"read": "read: file to events"},
    "tracker.timeline": {"build": "timeline: events to rows"},
    "tracker.store.save": {"save_runs": "save"},
    "tracker.intake.ingesting": {"judge_runs": "judge", "_keep_advice": "advice"},
}
"""Module -> its function -> the phase of an ingest that it is."""

# Runs in front of the command: each of these functions appends a line to a file when it returns. A module is imported
# when the command imports it, so that nothing starts earlier or later than it does without this.
NOTE_PHASES: Final = """
import functools, importlib.machinery, json, os, sys, time
phases, notes, began = json.loads(os.environ["PHASES"]), os.environ["NOTES"], float(os.environ["BEGAN"])
def note(phase, start, cpu):
    wall = time.clock_gettime(time.CLOCK_MONOTONIC)
    line = json.dumps([phase, os.getpid(), start - began, wall - start, time.process_time() - cpu])
    with open(notes, "a") as file:
        file.write(line + "\\n")
def noted(phase, function):
    @functools.wraps(function)
    def call(*args, **named):
        start, cpu = time.clock_gettime(time.CLOCK_MONOTONIC), time.process_time()
        try:
            return function(*args, **named)
        finally:
            note(phase, start, cpu)
    return call
class Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in phases:
            return None
        spec = super().find_spec(name, path, target)
        run = spec.loader.exec_module
        def run_and_note(module):
            run(module)
            for function, phase in phases[name].items():
                setattr(module, function, noted(phase, getattr(module, function)))
        spec.loader.exec_module = run_and_note
        return spec
sys.meta_path.insert(0, Finder)
"""


@dataclass(frozen=True, slots=True)
class Result:
    """One whole process: its time, the CPU of all processes in it, and the memory of the largest of them."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of an ingest: when it began, how long it took, and how busy its process was meanwhile."""

    title: str
    process: int
    start: float
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Tool:
    """What is timed: `prepare` gives the commands for a file and an empty folder, run one after the other."""

    title: str
    commands: Callable[[Path, Path], list[list[str]]]


def timed(commands: Sequence[Sequence[str]], environment: Mapping[str, str] = AS_USERS) -> Result:
    """All `commands` together; a failing one ends the benchmark with what it printed."""
    start = time.perf_counter()
    peak = 0
    cpu = 0.0
    for command in commands:
        with tempfile.TemporaryFile() as printed:
            process = subprocess.Popen(
                command, stdout=printed, stderr=printed, cwd=tempfile.gettempdir(), env=environment
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            peak = max(peak, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
            cpu += usage.ru_utime + usage.ru_stime
            if process.returncode:
                printed.seek(0)
                sys.exit(f"{' '.join(command)}\n{printed.read().decode(errors='replace')[-2000:]}")
    return Result(time.perf_counter() - start, cpu, peak)


def tracker(database: Path | str, *words: str) -> list[str]:
    """A command of this checkout."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tracker.__main__ import run; run()"
    return [sys.executable, "-c", code, *words, "--db", str(database)]


def empty_database(folder: Path) -> Path:
    """A database as it is before the first ingest; made once, then copied."""
    made = folder.parent / "empty.db"
    if not made.exists():
        make_tables(made)
    return Path(shutil.copy(made, folder / "t.db"))


def make_tables(database: Path | str) -> None:
    """Makes the tables of a new database, which is a cost of the first ingest alone."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import tracker.store as s; s.open_store(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(database)], check=True)


def ingest(file: Path, folder: Path) -> list[list[str]]:
    """One ingest into an empty database."""
    return [tracker(empty_database(folder), "ingest", str(file), "--version", "v1", "--workload", "bench")]


def into_postgres(fresh: Callable[[str], tuple[str, bool]]) -> Callable[[Path, Path], list[list[str]]]:
    """One ingest into an empty database of a server; `fresh` makes one."""

    def commands(file: Path, folder: Path) -> list[list[str]]:
        url, _ = fresh("ingest")
        make_tables(url)
        return [tracker(url, "ingest", str(file), "--version", "v1", "--workload", "bench")]

    return commands


def two_and_a_diff(file: Path, folder: Path) -> list[list[str]]:
    """Two files in, and their diff; the second is the first under another digest."""
    database = empty_database(folder)
    said = "--workload", "bench", "--version"
    other = Path(shutil.copy(file, folder / "again.json"))
    with other.open("ab") as again:  # what this process holds would count as memory of those that it starts
        again.write(b"\n")
    os.sync()
    return [
        tracker(database, "ingest", str(file), *said, "v1"),
        tracker(database, "ingest", str(other), *said, "v2"),
        tracker(database, "diff", "v1", "v2"),
    ]


def peer(python: str, code: str) -> Callable[[Path, Path], list[list[str]]]:
    """A peer that reads one file."""
    return lambda file, folder: [[python, "-c", code, str(file)]]


def msprof(python: str) -> Callable[[Path, Path], list[list[str]]]:
    """msprof-analyze, which compares two files."""
    tool = str(Path(python).with_name("msprof-analyze"))
    return lambda file, folder: [
        [tool, "compare", "-d", str(file), "-bp", str(file), "-o", str(folder / "out"), "--force"]
    ]


def tracelens(python: str) -> Callable[[Path, Path], list[list[str]]]:
    """AMD's TraceLens, which makes a workbook of one file."""
    tool = str(Path(python).with_name("TraceLens_generate_perf_report_pytorch"))
    return lambda file, folder: [
        [tool, "--profile_json_path", str(file), "--output_xlsx_path", str(folder / "report.xlsx")]
    ]


def on_processors(command: Sequence[str], count: int) -> list[str]:
    """`command`, which may use so many processors only."""
    code = (
        "import os, sys; os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(sys.argv[1])]); "
        "os.execv(sys.argv[2], sys.argv[2:])"
    )
    return [sys.executable, "-c", code, str(count), *command]


def ingest_on(count: int) -> Tool:
    """One ingest into an empty database that may use so many processors."""
    title = f"tracker: ingest on {count} processor{'s' if count > 1 else ''}"
    return Tool(title, lambda file, folder: [on_processors(command, count) for command in ingest(file, folder)])


def phases_of(file: Path, rounds: int) -> list[Phase]:
    """The phases of one ingest, the fastest of the rounds, in the order in which they begin."""
    best: tuple[float, list[Phase]] | None = None
    with tempfile.TemporaryDirectory() as base:
        for number in range(rounds):
            folder = Path(base, str(number))
            folder.mkdir()
            notes = folder / "notes"
            (command,) = ingest(file, folder)
            command[2] = f"{NOTE_PHASES}\n{command[2]}"
            began = time.clock_gettime(time.CLOCK_MONOTONIC)
            said = {"PHASES": json.dumps(PHASES), "NOTES": str(notes), "BEGAN": str(began)}
            seconds = timed([command], {**AS_USERS, **said}).seconds
            found = [Phase(*json.loads(line)) for line in notes.read_text().splitlines()]
            if best is None or seconds < best[0]:
                best = seconds, sorted(found, key=lambda phase: phase.start)
    return [] if best is None else best[1]


def phase_table(file: Path, rounds: int) -> list[str]:
    """The lines of a markdown table of the phases of an ingest of one file."""
    lines = [f"Phases of an ingest of {file.name}, the fastest of {rounds}:", ""]
    lines += ["| phase | process | from ms | wall ms | CPU ms |", "|---|---|---|---|---|"]
    numbers: dict[int, int] = {}
    for phase in phases_of(file, rounds):
        process = numbers.setdefault(phase.process, len(numbers) + 1)
        times = (f"{1000 * seconds:.0f}" for seconds in (phase.start, phase.seconds, phase.cpu_seconds))
        lines.append(f"| {phase.title} | {process} | {' | '.join(times)} |")
    return lines


def version_of(python: str, package: str) -> str:
    """The version of a package in the environment of `python`."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def tools_of(options: argparse.Namespace, fresh: Any) -> list[tuple[Tool, list[Tool]]]:
    """What of tracker is compared with which peers, and with itself where `fresh` makes Postgres databases."""
    alone = Tool(f"tracker {importlib.metadata.version('tracker')}: ingest", ingest)
    peers = []
    if options.hta:
        title = f"HolisticTraceAnalysis {version_of(options.hta, 'HolisticTraceAnalysis')}: load, two breakdowns"
        peers.append(Tool(title, peer(options.hta, HTA)))
    if options.tb:
        title = f"torch-tb-profiler {version_of(options.tb, 'torch-tb-profiler')}: load one run"
        peers.append(Tool(title, peer(options.tb, TB)))
    if options.tracelens:
        peers.append(
            Tool(f"TraceLens {version_of(options.tracelens, 'TraceLens')}: a report", tracelens(options.tracelens))
        )
    peers += map(ingest_on, options.processors)
    if fresh is not None:
        peers.append(Tool("tracker: ingest into Postgres", into_postgres(fresh)))
    compared = [(alone, peers)]
    if options.msprof:
        title = f"msprof-analyze {version_of(options.msprof, 'msprof-analyze')}: compare two files"
        compared.append(
            (Tool("tracker: two ingests and a diff", two_and_a_diff), [Tool(title, msprof(options.msprof))])
        )
    return compared


def medians(tools: Sequence[Tool], file: Path, rounds: int) -> Mapping[str, Result]:
    """The median of each tool over the rounds; in a round they run one after the other."""
    seen: dict[str, list[Result]] = {tool.title: [] for tool in tools}
    with tempfile.TemporaryDirectory() as base:
        for number in range(rounds):
            for tool in tools:
                folder = Path(base, f"{number}-{tools.index(tool)}")
                folder.mkdir()
                seen[tool.title].append(timed(tool.commands(file, folder)))
                shutil.rmtree(folder)
    return {
        title: Result(
            statistics.median(result.seconds for result in results),
            statistics.median(result.cpu_seconds for result in results),
            max(result.peak_bytes for result in results),
        )
        for title, results in seen.items()
    }


def table(file: Path, compared: Sequence[tuple[Tool, Sequence[Tool]]], rounds: int) -> list[str]:
    """The lines of a markdown table for one file."""
    files = [path for path in file.rglob("*") if path.is_file()] if file.is_dir() else [file]
    size = sum(path.stat().st_size for path in files)
    lines = []
    for ours, peers in compared:
        found = medians([ours, *peers], file, rounds)
        own = found[ours.title].seconds
        for title, result in found.items():
            ratio = "1" if title == ours.title else f"{result.seconds / own:.1f}"
            numbers = (
                f"{result.seconds:.2f} | {result.cpu_seconds:.2f} | {size / MB / result.seconds:.0f} | "
                f"{result.peak_bytes / MB:.0f} | {ratio}"
            )
            what = f"{size / MB:.0f} MB" + (f" in {len(files)} ranks" if file.is_dir() else "")
            lines.append(f"| {what} | {title} | {numbers} |")
    return lines


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", type=Path, metavar="TRACE")
    parser.add_argument("--ranks", type=Path, metavar="FOLDER", help="the ranks of one run")
    parser.add_argument("--processors", nargs="+", type=int, default=[], metavar="N", help="on so many of them, too")
    parser.add_argument("--rounds", type=int, default=3)
    for name in ("hta", "tb", "tracelens", "msprof"):
        parser.add_argument(f"--{name}", metavar="PYTHON", help=f"the Python of the environment that holds {name}")
    parser.add_argument("--postgres", action="store_true", help="ingest into a Postgres server, too")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as base,
        postgres(Path(base, "pg")) if options.postgres else nullcontext() as fresh,
    ):
        measure(options, fresh)


def measure(options: argparse.Namespace, fresh: Any) -> None:
    """Prints the table of what was asked for."""
    compared = tools_of(options, fresh)
    compileall.compile_dir(ROOT / "tracker", quiet=1)
    today = datetime.now(UTC).date()
    print(f"Medians of {options.rounds}, Python {platform.python_version()}, {os.cpu_count()} processors, {today}.\n")
    print("| trace | tool | s | CPU s | MB/s | peak MB | times tracker |")
    print("|---|---|---|---|---|---|---|")
    for file in options.traces:
        print("\n".join(table(file.resolve(), compared, options.rounds)), flush=True)
    if options.ranks:
        both = Tool("tracker: on all processors", ingest)
        one = ingest_on(1)
        print("\n".join(table(options.ranks.resolve(), [(both, [one])], options.rounds)), flush=True)
    for file in options.traces:
        print("\n" + "\n".join(phase_table(file.resolve(), options.rounds)), flush=True)


if __name__ == "__main__":
    main()
