"""MindFormers and the monitors of MindSpore."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import PER_DEVICE, VERSION, Grammar, LineField, number, step_line

_FACTS: Final = {
    "mindspore_version": r"\bmindspore(?: version)?[ :=]+" + VERSION,
    "mindformers_version": r"\bmindformers(?: version)?[ :=]+" + VERSION,
}
_STEP: Final = (
    r"Epoch: ?\[ *", number("epoch"), r"/ *\d+\], *step: ?\[ *", number("step_in_epoch"), "/ *",
    number("epoch_steps"), r"\]",
)  # fmt: skip

GRAMMARS: Final = (
    # whole ms, the mean since the line before
    Grammar(
        name="mindformers",
        title="MindFormers",
        lines=(
            step_line(
                *_STEP,
                fields=(
                    LineField("step_ms", "per_step_time: *", "ms", is_needed=True),
                    LineField("tflops", "train_throughput_per_npu: *", "T"),
                ),
            ),
        ),
        scopes={"tflops": PER_DEVICE},
        facts=_FACTS,
    ),
    Grammar(
        name="mindspore",
        title="MindSpore monitors",
        lines=(
            # LossMonitor of MindSpore's toolkits
            step_line(*_STEP, fields=(LineField("step_ms", r"time: ?\[?", r"\]? ?ms", is_needed=True),)),
            step_line(
                r"epoch: ?\[?",
                number("epoch"),
                r"\]?(?:/ *\d+)?,? *(?:step|iter): ?\[?",
                number("step_in_epoch"),
                fields=(LineField("step_ms", "per step time: *", " ?ms", is_needed=True),),
            ),
            # TimeMonitor: the mean of an epoch
            step_line("epoch time: *", number("interval_s"), " ?m?s, per step time: *", number("step_ms"), " ?ms"),
        ),
        facts=_FACTS,
    ),
)
