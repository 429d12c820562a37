"""Training jobs made by hand: profilers that write a small trace, and the commands that stand for tracker."""

from __future__ import annotations

import gzip
import json
import shlex
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parents[2]
HOOKS = ROOT / "tracker" / "hooks"
BASE_NS = 1_700_000_000_000_000_000


def trace(rank: int | None = None, *, world_size: int = 8, op: str = "aten::mm") -> str:
    """A trace of one step of 1 ms, in which `op` takes 0.5 ms."""
    slices = [("user_annotation", "ProfilerStep#1", 0, 1000), ("cpu_op", op, 100, 500)]
    events = [
        {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {}}
        for cat, name, ts, dur in slices
    ]
    said = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": world_size}}
    return json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": BASE_NS, **said, "traceEvents": events})


class TorchProfiler:
    """What a handler sees of torch.profiler.profile."""

    def __init__(self, rank: int | None = None, step_num: int = 7) -> None:
        self.rank, self.step_num = rank, step_num

    def export_chrome_trace(self, path: str) -> None:
        with gzip.open(path, "wt") as file:
            file.write(trace(self.rank, op=f"aten::mm_{self.rank}_{self.step_num}"))


def command(folder: Path, script: str) -> str:
    """A program that stands for tracker: what it is given is written to `calls`, then the shell lines run."""
    path = folder / "a tracker" / "tracker"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "$@" >> "{folder}/calls"\n{script}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return f"'{path}'"


REAL_TRACKER = f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -m tracker "$@"'


def real_tracker(folder: Path) -> str:
    """The tracker of this working tree, found wherever the job's own paths point."""
    return command(folder, REAL_TRACKER)


def copied(folder: Path, tracker: list[str]) -> str:
    """The same as copies of a process (`copied_tracker`), for what is no test of how it starts."""
    # completion looks for the shell that called it, which called no copy
    script = f'case "$*" in *-completion*) {REAL_TRACKER};; esac\nexec {shlex.join(tracker)} "$@"'
    return command(folder, script)


def calls(folder: Path) -> list[str]:
    path = folder / "calls"
    return path.read_text().splitlines() if path.exists() else []


def environ(folder: Path, **variables: str) -> dict[str, str]:
    """The variables of a job that has nothing of the developer's machine."""
    return {
        "PATH": "/usr/bin:/bin", "HOME": str(folder / "home"), "TRACKER_SPOOL": str(folder / "spool"),
        "TRACKER_DB": str(folder / "jobs.db"), "TRACKER_VERSION": "v1", "TRACKER_WORKLOAD": "toy", **variables,
    }  # fmt: skip


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Wait for what another process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def in_a_job(script: str, environment: dict[str, str], *, folder: Path, check: bool = True) -> SimpleNamespace:
    """Run Python lines in a process of their own, with the hooks as a copied folder: `tracker_hooks`."""
    import shutil

    if not (folder / "image" / "tracker_hooks").exists():
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(HOOKS, folder / "image" / "tracker_hooks", ignore=ignore)
    before = f"import sys; sys.path.insert(0, {str(folder / 'image')!r})\n"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", before + script],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert not check or done.returncode == 0, done.stderr
    return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)
