"""PyTorch: a handler for `torch.profiler.profile(on_trace_ready=...)` that hands each trace to tracker.

    from tracker_hooks import torch_profiler

    with torch.profiler.profile(
        schedule=torch_profiler.watched(torch.profiler.schedule(wait=5, warmup=2, active=5, repeat=1)),
        on_trace_ready=torch_profiler.on_trace_ready("prof", workload="gpt", configuration={"batch": "32"}),
    ) as prof:
        for batch in batches:
            train(batch)
            prof.step()

Every rank that is profiled uses it; ranks of one job become one run. `watched` has the clocks of the device read while
steps are recorded; without it they are read when the handler is made and when it is called.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable

from . import machine
from .job import Job, harmless
from .machine import watched

__all__ = ["on_trace_ready", "watched"]


def on_trace_ready(folder: str, worker_name: str | None = None, **options: Any) -> Callable[[Any], None]:
    """A handler that writes each trace into `folder` as `WORKER.stepN.TIME.pt.trace.json.gz` and hands it over.

    `worker_name`: default rank, host and process. `options`: see `job.Job`.
    """
    job = Job(**options)

    @harmless
    def handle(profiler: Any) -> None:
        machine.recording.end()
        os.makedirs(folder, exist_ok=True)
        window = f"step{getattr(profiler, 'step_num', 0)}.{time.time_ns()}"
        path = os.path.join(folder, f"{worker_name or job.worker_name()}.{window}.pt.trace.json.gz")
        profiler.export_chrome_trace(path)
        job.hand_over(path)

    return handle
