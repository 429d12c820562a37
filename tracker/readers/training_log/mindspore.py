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

_OVERFLOWS: Final = (LineField("overflow", "overflow cond: True"), LineField("overflow", r"overflow cond: \[True"))

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
                    *_OVERFLOWS,
                ),
            ),
            # since 1.7 the trainer counts steps alone
            step_line(
                r"\{ step: ?\[ *", number("step"), "/ *", number("total"), r"\]",
                fields=(
                    LineField("step_ms", "per_step_time: *", "ms", is_needed=True),
                    LineField("tflops", r"\bthroughput: *", "T"),
                    *_OVERFLOWS,
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
            # `epoch: 1 step: 39`, `epoch[1], iter[377]`, `epoch: [1/10] step: [39/422]`
            step_line(
                r"epoch:? ?\[?", number("epoch"), r"(?:/ *\d+)?\]?(?:/ *\d+)?,? *(?:step|iter):? ?\[?",
                number("step_in_epoch"), fields=(LineField("step_ms", "per step time: *", " ?ms", is_needed=True),),
            ),
            # TimeMonitor: the mean of an epoch, in ms where no unit stands
            step_line("poch time: *", number("interval_s"), " ?s, per step time: *", number("step_s"), r" ?s\b"),
            step_line(
                "poch time: *", rf"(?:{number('interval_ms')}(?: ?ms)?|[\d.]+ ?s), per step time: *", number("step_ms"),
                r"(?: ?ms)?(?![\d.]* ?s\b)",
            ),
        ),
        facts=_FACTS,
    ),
)  # fmt: skip
