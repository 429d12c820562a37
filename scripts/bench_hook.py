"""How long does a hook hold the thread of a job to look at its machine, when a recording begins and when it ends?

    .venv/bin/python scripts/bench_hook.py

Programs that answer after 0.3 s, hang, and print without end stand for nvidia-smi. A recording begins, ends 0.5 s
later, and its profile takes 0.5 s to be written, 40 times each, in a job of 1 GiB, which a fork would have to copy.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from tracker.hooks.machine import HELD_S, Recording

_PROGRAMS = {"answers after 0.3 s": "sleep 0.3; echo x", "hangs": "exec sleep 60", "prints without end": "exec yes"}
_TIMES = 40


def measure(folder: Path, lines: str) -> dict[str, list[float]]:
    """Return the milliseconds of each step of a recording."""
    (folder / "bin").mkdir(exist_ok=True)
    program = folder / "bin" / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{lines}\n")
    program.chmod(0o755)
    files = folder / "proc" / "self" / "fd"
    if not files.exists():
        files.mkdir(parents=True)
        (files / "7").symlink_to("/dev/nvidia0")
        # all but the open devices is what this machine says
        for name in ("loadavg", "cpuinfo", "pressure"):
            (folder / "proc" / name).symlink_to(f"/proc/{name}")
    variables = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": "GPU-7"}
    recording = Recording(variables, proc=str(folder / "proc"))
    taken: dict[str, list[float]] = {"it begins": [], "it ends": [], "the profile is written": []}
    for _ in range(_TIMES):
        for step, action in zip(taken, (recording.begin, recording.end, recording.take), strict=True):
            began = time.perf_counter()
            action()
            taken[step].append(1000 * (time.perf_counter() - began))
            time.sleep(0.0 if action == recording.take else 0.5)
    return taken


def main() -> None:
    """Print the times of each program and step."""
    memory = bytearray(1 << 30)
    memory[::4096] = b"x" * len(memory[::4096])
    print(f"| nvidia-smi | when | median, ms | longest, ms (at most {1000 * HELD_S:.0f}) |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in _PROGRAMS.items():
            for step, times in measure(Path(folder), lines).items():
                print(f"| {name} | {step} | {statistics.median(times):.1f} | {max(times):.1f} |", flush=True)


if __name__ == "__main__":
    main()
