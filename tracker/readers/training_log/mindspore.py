"""MindFormers and the monitors of MindSpore."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import PER_DEVICE, Grammar, line, number, optional

_FACTS: Final = {
    "mindspore_version": r"\bmindspore(?: version)?[ :=]+(\d[\w.+-]{1,40})",
    "mindformers_version": r"\bmindformers(?: version)?[ :=]+(\d[\w.+-]{1,40})",
}

GRAMMARS: Final = (
    # whole ms, the mean since the line before
    Grammar(
        name="mindformers",
        title="MindFormers",
        lines=(
            line(
                r"Epoch: ?\[ *", number("epoch"), r"/ *\d+\], *step: ?\[ *", number("step_in_epoch"), "/ *",
                number("epoch_steps"), r"\]", r"[^\r\n]*?per_step_time: *", number("step_ms"), "ms",
                optional(r"train_throughput_per_npu: *", number("tflops"), "T"),
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
            line(
                r"Epoch: ?\[ *", number("epoch"), r"/ *\d+\], *step: ?\[ *", number("step_in_epoch"), "/ *",
                number("epoch_steps"), r"\]", r"[^\r\n]*?time: ?\[?", number("step_ms"), r"\]? ?ms",
            ),
            line(
                r"epoch: ?\[?", number("epoch"), r"\]?(?:/ *\d+)?,? *(?:step|iter): ?\[?", number("step_in_epoch"),
                r"\b[^\r\n]*?per step time: *", number("step_ms"), " ?ms",
            ),
            # TimeMonitor: the mean of an epoch
            line(r"epoch time: *", number("interval_s"), r" ?m?s, per step time: *", number("step_ms"), " ?ms"),
        ),
        facts=_FACTS,
    ),
)  # fmt: skip
