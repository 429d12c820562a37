"""PyTorch on Ascend: a handler for `torch_npu.profiler.profile(on_trace_ready=...)` that hands captures to tracker.

    from tracker_hooks import torch_npu_profiler

    with torch_npu.profiler.profile(
        schedule=torch_npu_profiler.watched(torch_npu.profiler.schedule(wait=5, warmup=2, active=5, repeat=1)),
        on_trace_ready=torch_npu_profiler.on_trace_ready("prof", workload="gpt"),
    ) as prof:
        ...

It does what `torch_npu.profiler.tensorboard_trace_handler` does, which it calls.
"""

from __future__ import annotations

from typing import Any, Callable

from . import _ascend
from .job import Job, warn
from .machine import watched

__all__ = ["on_trace_ready", "watched"]


def on_trace_ready(
    folder: str,
    worker_name: str | None = None,
    *,
    analyse_flag: bool = True,
    async_mode: bool = False,
    **options: Any,
) -> Callable[[Any], None]:
    """A handler that has torch_npu analyse each capture in `folder` and hands it over.

    `worker_name`, `analyse_flag`, `async_mode`: as torch_npu takes them; a capture that is analysed later is taken
    once it is. `worker_name`: default rank, host and process. `options`: see `job.Job`.
    """
    job = Job(**options)
    worker = worker_name or job.worker_name()
    try:
        import torch_npu

        given = {"async_mode": True} if async_mode else {}  # not every torch_npu knows the word
        own = torch_npu.profiler.tensorboard_trace_handler(folder, worker, analyse_flag=analyse_flag, **given)
    except Exception as error:  # noqa: BLE001 nothing here may end a training job
        warn(f"torch_npu gives no handler ({type(error).__name__}: {error}); nothing is handed over")
        return _ascend.analysed
    complete = analyse_flag and not async_mode
    return _ascend.handler(job, own, folder, "_ascend_pt", worker=worker, complete=complete)
