"""MMEngine and mmcv, as JSON and as text, and Detectron2."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import REST, Grammar, anywhere, key, line, number, optional, required

_ENVIRONMENT: Final = {
    "pytorch": r"\bPyTorch(?:: | {2,})([\w.+-]{1,60})",
    "cuda_runtime_version": r"\bCUDA Runtime (\d{1,3}\.\d{1,3})",
    "nvcc": r"\bNVCC: Build ([\w./-]{1,60})",
    "driver_version": r"\bDriver version {2,}([\d.]{1,20})",
    "python": r"\bPython(?:: | {2,})(\d\.\d{1,3}\.\d{1,3})",
}

GRAMMARS: Final = (
    # mean over the lines' interval; `time` holds `data_time`, no evaluation
    Grammar(
        name="mmcv",
        title="mmcv 1.x (*.log.json)",
        lines=(
            line(
                r'\{"mode": *"train", *"epoch": *', number("epoch"), r', *"iter": *', number("step_in_epoch"),
                required(key("time", "step_s")), anywhere(key("data_time", "data_s")),
                anywhere(key("memory", "allocated_mib")), r"[^\r\n]*?\}",
            ),
        ),
        has_epoch_starts=True,
        facts=_ENVIRONMENT,
    ),
    Grammar(
        name="mmengine",
        title="MMEngine (vis_data/*.json, scalars.json)",
        lines=(
            line(
                r'\{"', required(r'"(?:loss|lr|base_lr)": '), required(key("time", "step_s")),
                anywhere(key("data_time", "data_s")), required(key("step", "step")),
                anywhere(key("epoch", "epoch")), anywhere(key("memory", "allocated_mib")), r"[^\r\n]*?\}",
            ),
        ),
        has_epoch_starts=True,
        facts=_ENVIRONMENT,
    ),
    Grammar(
        name="mmengine",
        title="MMEngine and mmcv (text)",
        lines=(
            line(
                r"Epoch ?(?:\(train\))? *\[", number("epoch"), r"\]\[ *", number("step_in_epoch"), "/ *",
                number("epoch_steps"), r"\]", REST, r"\btime: *", number("step_s"),
                optional(r"data_time: *", number("data_s")), optional(r"memory: *", number("allocated_mib")),
            ),
            line(
                r"Iter ?(?:\(train\))? *\[ *", number("step"), "/ *", number("total"), r"\]", REST, r"\btime: *",
                number("step_s"), optional(r"data_time: *", number("data_s")),
                optional(r"memory: *", number("allocated_mib")),
            ),
        ),
        has_epoch_starts=True,
        facts=_ENVIRONMENT,
    ),
    Grammar(
        name="detectron2",
        title="Detectron2 (log.txt)",
        lines=(
            # the last window, beside the last iteration
            line(
                r"iter: ", number("step"), r"  +total_loss: ", REST, r"\btime: ", number("step_s"),
                r"  +last_time: ", REST, r"\bdata_time: ", number("data_s"),
                optional(r"max_mem: ", number("allocated_mib"), "M"),
            ),
            # until 0.6 the mean of all iterations since the start
            line(
                r"iter: ", number("step"), r"  +total_loss: ", REST, r"\btime: ", number("mean_s"),
                optional(r"data_time: ", number("data_s")), optional(r"max_mem: ", number("allocated_mib"), "M"),
            ),
        ),
        starts=(b"Starting training from iteration",),
        resolution_s=0.00005,
        joins=0.01,
        facts=_ENVIRONMENT,
    ),
    # medians of the last 20 iterations
    Grammar(
        name="detectron2",
        title="Detectron2 (metrics.json)",
        lines=(
            line(
                r'\{"', required(r'"eta_seconds": '), required(key("iteration", "step")),
                required(key("time", "step_s")), anywhere(key("data_time", "data_s")), r"[^\r\n]*?\}",
            ),
        ),
        facts=_ENVIRONMENT,
    ),
)  # fmt: skip
