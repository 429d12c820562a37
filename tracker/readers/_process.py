"""Processes of our own on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO


def start_process(module: str) -> subprocess.Popen[bytes]:
    """A process that runs `main()` of a module of this package, with pipes; an OSError where none can be started.

    It takes nothing from the folder that it runs in, but the package from where this one was taken.
    """
    package = Path(__file__).parents[2]
    paths = os.pathsep.join(filter(None, (str(package), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-P", "-c", f"from {module} import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths},
    )


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def pipe(end: IO[bytes] | None) -> IO[bytes]:
    """A pipe of a process that was started with pipes."""
    if end is None:
        raise OSError("no pipe")
    return end
