"""Times tracker at the size of a large job and of a large database: ratios, and whether growth is linear.

    .venv/bin/python scripts/bench_scale.py                      # jobs of 8 to 256 ranks, as processes of their own
    .venv/bin/python scripts/bench_scale.py --ranks 8 64 1024    # other sizes
    .venv/bin/python scripts/bench_scale.py --make FOLDER --ranks 64   # only write the traces of a job

The traces are small ones of PyTorch, made here: each rank runs the same few operators and collectives, in groups of 8
ranks and in that of all. They differ between ranks and runs by noise that the seed decides.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any, Final

STEPS: Final = 4
OPERATORS: Final = 40
STEP_US: Final = 20_000
GROUP: Final = 8
START_US: Final = 1_790_000_000_000_000


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


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 64, 256])
    parser.add_argument("--make", type=Path)
    chosen = parser.parse_args()
    if chosen.make:
        for ranks in chosen.ranks:
            write_job(chosen.make / f"{ranks}", ranks)


if __name__ == "__main__":
    main()
