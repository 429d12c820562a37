"""Times tracker at the size of a large job and of a large database: CPU and memory, and how they grow.

    .venv/bin/python scripts/bench_scale.py                      # jobs of 8, 64 and 256 ranks
    .venv/bin/python scripts/bench_scale.py --ranks 8 1024       # other sizes; of more than 256 no rank comes alone
    .venv/bin/python scripts/bench_scale.py --databases          # 1,000 runs x 5,000 series and 100 x 20,000 as well
    .venv/bin/python scripts/bench_scale.py --make FOLDER --ranks 64   # only write the traces of a job

The traces are small ones of PyTorch, made here: each rank runs the same few operators and collectives, in groups of 8
ranks and in that of all; they differ between ranks and runs by noise that the seed decides. Each row is a process of
its own, or many: its CPU counts start-up. S1: ranks that ingest themselves, one after the other. S2 and S4: all ranks
in one call, and `show` of the run. With --databases also S5 and S6, one more run of a judged track and its memory, and
S9, the diff of two of its versions, by bench_judging.py and bench_queries.py.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import bench_judging
import bench_queries
from bench_ingest import empty_database, timed, tracker

STEPS: Final = 4
OPERATORS: Final = 40
STEP_US: Final = 20_000
GROUP: Final = 8
START_US: Final = 1_790_000_000_000_000
MB: Final = 1e6
MOST_ALONE: Final = 256
"""Ranks of the largest job whose ranks come alone: each is a process."""
DATABASES: Final = ((100, 10_000), (1000, 2500))
"""Runs and operators of the databases that are made; an operator is two series."""


def write_job(folder: Path, ranks: int, *, run: int = 0, seed: int = 1) -> list[Path]:
    """Write a trace for each rank of a job, and return the files in the order of ranks."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for rank in range(ranks):
        noise = random.Random(seed * 1_000_003 + run * 10_007 + rank)
        path = folder / f"rank{rank}.pt.trace.json"
        path.write_text(json.dumps(trace_of(rank, ranks, run, noise)), encoding="utf-8")
        files.append(path)
    return files


def trace_of(rank: int, ranks: int, run: int, noise: random.Random) -> dict[str, Any]:
    """Return the trace of one rank: operators with a kernel each, and two collectives a step."""
    start = START_US + run * 10_000_000
    events: list[dict[str, Any]] = []
    own_group = [rank - rank % GROUP + place for place in range(GROUP) if rank - rank % GROUP + place < ranks]
    for step in range(STEPS):
        begins = start + step * STEP_US
        events.append(_span(f"ProfilerStep#{step}", "user_annotation", 1, 1, begins, STEP_US - 1))
        at = begins + 10.0
        for number in range(OPERATORS):
            lasting = 200 + noise.random() * 4
            correlation = step * 1000 + number + 1
            shapes = {"Input Dims": [[64, 64 + number], [64 + number, 64]], "Input type": ["float", "float"]}
            events.append(_span(f"aten::op{number}", "cpu_op", 1, 1, at, 20, **shapes))
            events.append(_span("cudaLaunchKernel", "cuda_runtime", 1, 1, at + 5, 5, correlation=correlation))
            where = {"device": 0, "stream": 7, "correlation": correlation}
            events.append(_span(f"kernel_of_op{number}", "kernel", 0, 7, at + 40, lasting, **where))
            at += 240
        for place, (name, members) in enumerate((("tp", own_group), ("default_pg", [*range(ranks)]))):
            correlation = step * 1000 + 900 + place
            events.append(_span("c10d::allreduce_", "cpu_op", 1, 1, at, 20))
            events.append(_span("cudaLaunchKernel", "cuda_runtime", 1, 1, at + 5, 5, correlation=correlation))
            said = {
                "device": 0, "stream": 20, "correlation": correlation, "Collective name": "allreduce",
                "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "dtype": "Float", "Group size": len(members),
                "Process Group Name": f"{name}{members[0]}", "Process Group Description": name,
                "Process Group Ranks": str(members),
            }  # fmt: skip
            late = noise.random() * 50
            collective = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"
            events.append(_span(collective, "kernel", 0, 20, at + 60 + late, 500 - late, **said))
            at += 700
    information = {"backend": "nccl", "rank": rank, "world_size": ranks}
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85 << 30}],
        "distributedInfo": information, "traceEvents": events, "baseTimeNanoseconds": 0,
    }  # fmt: skip


def _span(name: str, kind: str, process: int, lane: int, start: float, lasting: float, **said: Any) -> dict[str, Any]:
    return {
        "ph": "X", "cat": kind, "name": name, "pid": process, "tid": lane, "ts": round(start, 3),
        "dur": round(lasting, 3), "args": said,
    }  # fmt: skip


def measure_alone(files: list[Path], folder: Path) -> str:
    """Return a row: the CPU of the second rank, of the last but one and the last, and of all by that of the second."""
    database = empty_database(folder)
    labels = ("--workload", "scale", "--version", "v1", "--expect-ranks", str(len(files)))
    cpu = [timed([tracker(database, "ingest", str(file), *labels)]).cpu_seconds for file in files]
    growth = sum(cpu) / (len(files) * cpu[1])
    return f"| {len(files):,} | {cpu[1]:.2f} s | {cpu[-2]:.2f} s | {cpu[-1]:.2f} s | {growth:.2f} |"


def measure_together(files: list[Path], folder: Path) -> str:
    """Return a row: CPU and peak memory of one ingest of all ranks, its CPU a rank, and those of `show`."""
    database = empty_database(folder)
    ingest = timed([tracker(database, "ingest", str(files[0].parent), "--workload", "scale", "--version", "v1")])
    show = timed([tracker(database, "show", "run:1")])
    ingested = (
        f"{ingest.cpu_seconds:.2f} s | {ingest.cpu_seconds / len(files) * 1e3:.0f} ms | {ingest.peak_bytes / MB:.0f} MB"
    )
    return f"| {len(files):,} | {ingested} | {show.cpu_seconds:.2f} s | {show.peak_bytes / MB:.0f} MB |"


def measure_databases(folder: Path) -> None:
    """Print what one more run of a large track costs, and the diff of two of its versions."""
    print("\n| runs x series | one more run, CPU | its memory | diff, CPU |\n|---|---|---|---|")
    compiled = folder / "compiled"
    for runs, operators in DATABASES:
        judged = bench_judging.built(folder, runs, operators, compiled)
        ms, memory = bench_judging.measure(judged, folder, runs, 3, prints=False)
        filled = bench_queries.built(folder, runs, operators, compiled)
        versions = (f"v{1:04}", f"v{runs // bench_queries.RUNS_PER_VERSION:04}")
        diff = bench_queries.timed(str(filled), ("diff", *versions), 3, compiled)
        print(f"| {runs:,} x {2 * operators:,} | {ms:.0f} ms | {memory:.0f} MB | {diff.cpu:.0f} ms |", flush=True)


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 64, 256])
    parser.add_argument("--databases", action="store_true")
    parser.add_argument("--make", type=Path)
    chosen = parser.parse_args()
    if chosen.make:
        for ranks in chosen.ranks:
            write_job(chosen.make / f"{ranks}", ranks)
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tracker-scale-")))
        (work := folder / "work").mkdir()
        jobs = [write_job(folder / f"{ranks}", ranks) for ranks in chosen.ranks]
        print("| ranks that come alone | second | last but one | last | all by ranks x second |\n|---|---|---|---|---|")
        for files in jobs:
            if len(files) <= MOST_ALONE:
                print(measure_alone(files, work), flush=True)
        print("\n| ranks in one call | ingest | a rank | peak | show | peak |\n|---|---|---|---|---|---|")
        for files in jobs:
            print(measure_together(files, work), flush=True)
        if chosen.databases:
            measure_databases(folder)


if __name__ == "__main__":
    main()
