"""The folders that the profilers of torch_npu and MindSpore write: `WORKER_TIME_ascend_pt`, `WORKER_TIME_ascend_ms`."""

from __future__ import annotations

import os
from typing import Any, Callable

from . import machine
from .job import Job, harmless

_OUTPUT = "ASCEND_PROFILER_OUTPUT"
_DONE = "analyse.done"
"""What the analysis leaves in the output when it is through (torch_npu and MindSpore since 2025)."""


def captures(folder: str, ending: str) -> set[str]:
    """The captures in `folder`, of all processes that write there; none where it cannot be looked into."""
    try:
        names = os.listdir(folder)
    except OSError:
        return set()
    return {os.path.join(folder, name) for name in names if name.endswith(ending)}


def handler(
    job: Job, analyse: Callable[[Any], None], folder: str, ending: str, *, worker: str, complete: bool
) -> Callable[[Any], None]:
    """A handler that calls the profiler's own one, `analyse`, and hands over what came into `folder` since.

    `worker`: how the names of this process's captures begin, before a `_`; empty: all are its own. `complete`: the
    analysis is done when `analyse` returns; else a capture is handed over now and taken once it is analysed.
    """
    known = captures(folder, ending)

    @harmless
    def handle(profiler: Any) -> None:
        machine.recording.end()
        analyse(profiler)
        for path in sorted(captures(folder, ending) - known):
            # `rank1_...` is no capture of `rank12`
            if os.path.basename(path).startswith(worker and worker + "_"):
                known.add(path)
                job.hand_over(path, wait_for=None if complete else os.path.join(path, _OUTPUT, _DONE))

    return handle


def analysed(profiler: Any) -> None:
    """Nothing to do: whoever calls has analysed already."""
