"""MindSpore: a callback for `Model.train` that profiles some steps and hands the capture to tracker.

    from tracker_hooks import mindspore_profiler

    profiled = mindspore_profiler.callback("prof", first_step=10, last_step=14, workload="gpt")
    model.train(1, dataset, callbacks=[LossMonitor(), profiled])

and `on_trace_ready(folder)` for a profiler with a schedule, as `mindspore.profiler.tensorboard_trace_handler`.
"""

from __future__ import annotations

import os
from typing import Any, Callable

from . import _ascend, machine
from .job import Job, harmless, warn

_ENDING = "_ascend_ms"


def callback(
    folder: str, *, first_step: int, last_step: int, profiler: dict[str, Any] | None = None, **options: Any
) -> Any:
    """A `mindspore.Callback` that profiles the steps `first_step` to `last_step` of each process into `folder`.

    `profiler`: further arguments of `mindspore.Profiler`. `options`: see `job.Job`. Steps count from 1, as
    `cur_step_num` does. Where MindSpore cannot profile, a callback that does nothing: `Model.train` ends the job at
    anything in `callbacks=[...]` that is none. None where there is no MindSpore at all.
    """
    nothing = None
    try:
        import mindspore

        nothing = mindspore.Callback()
        return _profiling(mindspore)(mindspore, Job(**options), folder, (first_step, last_step), profiler or {})
    except Exception as error:  # noqa: BLE001 nothing here may end a training job
        warn(f"MindSpore gives no callback ({type(error).__name__}: {error}); nothing is profiled")
        return nothing


def on_trace_ready(folder: str, worker_name: str | None = None, **options: Any) -> Callable[[Any], None]:
    """A handler for `mindspore.profiler.profile(on_trace_ready=...)` that analyses each capture and hands it over."""
    job = Job(**options)
    worker = worker_name or job.worker_name()
    try:
        import mindspore

        own = mindspore.profiler.tensorboard_trace_handler(folder, worker)
    except Exception as error:  # noqa: BLE001 nothing here may end a training job
        warn(f"MindSpore gives no handler ({type(error).__name__}: {error}); nothing is handed over")
        return _ascend.analysed
    return _ascend.handler(job, own, folder, _ENDING, worker=worker, complete=True)


def _profiling(mindspore: Any) -> Any:
    """The class of the callback: `Model.train` takes only children of MindSpore's own, which is known only now."""

    class Profiling(mindspore.Callback):  # type: ignore[misc]
        def __init__(
            self, mindspore: Any, job: Job, folder: str, steps: tuple[int, int], arguments: dict[str, Any]
        ) -> None:
            super().__init__()
            self._steps, self._is_on = steps, False
            # ranks that share a folder would take the captures of each other
            own = os.path.join(folder, job.worker_name())
            self._hand_over = _ascend.handler(job, _ascend.analysed, own, _ENDING, worker="", complete=True)
            # now, as MindSpore's own examples do: on Ascend it has to be there before the network is
            self._profiler = mindspore.Profiler(start_profile=False, output_path=own, **arguments)

        @harmless
        def on_train_step_begin(self, run_context: Any) -> None:
            if run_context.original_args().cur_step_num == self._steps[0]:
                machine.recording.begin()
                self._profiler.start()
                self._is_on = True

        @harmless
        def on_train_step_end(self, run_context: Any) -> None:
            if run_context.original_args().cur_step_num >= self._steps[1]:
                self._finish()

        @harmless
        def on_train_end(self, run_context: Any) -> None:
            self._finish()  # the job ended before the last step that was asked for

        def _finish(self) -> None:
            was_on, self._is_on = self._is_on, False
            if was_on:
                machine.recording.end()
                self._profiler.stop()
                self._profiler.analyse()
                self._hand_over(self._profiler)

    return Profiling
