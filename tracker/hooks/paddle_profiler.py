"""Paddle: a handler for `paddle.profiler.Profiler(on_trace_ready=...)` that hands each trace to tracker.

from tracker_hooks import paddle_profiler

with paddle.profiler.Profiler(
    scheduler=(5, 10), on_trace_ready=paddle_profiler.on_trace_ready("prof", workload="resnet50")
) as prof:
    for batch in batches:
        train(batch)
        prof.step()
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
    """A handler that writes each trace into `folder` as `WORKER.stepN.TIME.paddle_trace.json` and hands it over.

    `worker_name`: default rank, host and process. `options`: see `job.Job`.
    """
    job = Job(**options)

    @harmless
    def handle(profiler: Any) -> None:
        machine.recording.end()
        os.makedirs(folder, exist_ok=True)
        window = f"step{getattr(profiler, 'step_num', 0)}.{time.time_ns()}"
        path = os.path.join(folder, f"{worker_name or job.worker_name()}.{window}.paddle_trace.json")
        profiler.export(path, format="json")  # as paddle.profiler.export_chrome_tracing does
        job.hand_over(path)

    return handle
