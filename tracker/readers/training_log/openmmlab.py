"""MMEngine and mmcv, as JSON and as text, and Detectron2."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import VERSION, Grammar, LineField, json_field, number, step_line

_ENVIRONMENT: Final = {
    "pytorch": r"\bPyTorch(?:: | {2,})" + VERSION,
    "cuda_runtime_version": r"\bCUDA Runtime (\d{1,3}\.\d{1,3})",
    "nvcc": r"\bNVCC: Build (cuda_[\d.]{1,20}[\w./-]{0,40})",
    "driver_version": r"\bDriver version {2,}([\d.]{1,20})",
    "python": r"\bPython(?:: | {2,})(\d\.\d{1,3}\.\d{1,3})",
}
_JSON: Final = (
    json_field("time", "step_s", is_needed=True),
    json_field("data_time", "data_s"),
    json_field("memory", "allocated_mib"),
)
_TEXT: Final = (
    LineField("step_s", r"[ ,]time: *", is_needed=True),
    LineField("data_s", "data_time: *"),
    LineField("allocated_mib", "memory: *"),
)
_EVENTS: Final = (LineField("data_s", "data_time: "), LineField("allocated_mib", "max_mem: ", "M"))
_LOSS: Final = r"(?:/\d+)?  +(?:[\w./-]+: [^\s:]+  +)*?\w*loss\w*: "
"""Behind the iteration; `total_loss` comes first but for programs that have one loss, or scalars of their own."""

GRAMMARS: Final = (
    # means over the interval of a line; `time` holds `data_time`, no evaluation
    Grammar(
        name="mmcv",
        title="mmcv 1.x (*.log.json)",
        lines=(
            step_line(
                '"mode": ?"train", "epoch": ', number("epoch"), ', "iter": ', number("step_in_epoch"), fields=_JSON
            ),
        ),
        has_epoch_starts=True,
        facts=_ENVIRONMENT,
    ),
    Grammar(
        name="mmengine",
        title="MMEngine (vis_data/*.json)",
        lines=(
            # up to the next brace: of each one in a line of megabytes all of the rest would be searched; with several
            # optimizers each has a learning rate of its own
            step_line(
                r'\{(?=[^\r\n{]*?"(?:[\w.]+/)?(?:base_)?lr": )',
                fields=(*_JSON, json_field("step", "step", is_needed=True), json_field("epoch", "epoch")),
            ),
        ),
        has_epoch_starts=True,
        facts=_ENVIRONMENT,
    ),
    Grammar(
        name="mmengine",
        title="MMEngine and mmcv (text)",
        lines=(
            step_line(
                r"Epoch ?(?:\(train\))? *\[", number("epoch"), r"\]\[ *", number("step_in_epoch"), "/ *",
                number("epoch_steps"), r"\]", fields=_TEXT,
            ),
            step_line(
                r"Iter ?(?:\(train\))? *\[ *", number("step"), "/ *", number("total"), r"\]", fields=_TEXT,
            ),
        ),
        has_epoch_starts=True,
        facts=_ENVIRONMENT,
    ),
    Grammar(
        name="detectron2",
        title="Detectron2 (log.txt)",
        lines=(
            # the mean of all iterations since the start; newer versions print the last iteration beside it, which says
            # nothing of the others of its interval
            step_line(
                "iter: ", number("step"), _LOSS,
                fields=(LineField("mean_s", "  time: ", is_needed=True), *_EVENTS),
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
            step_line(
                r'\{(?=[^\r\n{]*?"(?:eta_seconds|total_loss)": )',
                fields=(
                    json_field("iteration", "step", is_needed=True),
                    json_field("time", "step_s", is_needed=True),
                    json_field("data_time", "data_s"),
                ),
            ),
        ),
        facts=_ENVIRONMENT,
    ),
)  # fmt: skip
