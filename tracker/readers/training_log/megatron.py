"""Megatron-LM and what is made of it (Primus, MindSpeed, ModelLink), and DeepSpeed."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import PER_DEVICE, TOTAL, Grammar, line, number, optional

GRAMMARS: Final = (
    # the time is the mean over the iterations since the line before, without evaluation and saving
    Grammar(
        name="megatron",
        title="Megatron-LM, Primus, MindSpeed, ModelLink",
        lines=(
            line(
                r"iteration +", number("step"), r" */ *", number("total"), r" *\|",
                # Primus prints `current/mean`
                r"[^\r\n]*?elapsed time per iteration \(m?s\): *", number("step_ms"),
                optional(r"throughput per GPU \(TFLOP/s/GPU\): *", number("tflops")),
                optional(r"tokens per GPU \(tokens/s/GPU\): *", number("tokens_s")),
                # MindSpeed once wrote gloabl
                optional(r"glo(?:bal|abl) batch size: *", number("batch")),
                optional(r"number of skipped iterations: *", number("skipped")),
                optional(r"samples per second: *", number("samples_s")),
                # Primus on AMD
                optional(r"hip mem usage[\w/]*: *", number("allocated_gb"), "GB"),
            ),
        ),
        scopes={"tflops": PER_DEVICE, "tokens_s": PER_DEVICE, "samples_s": TOTAL},
        first_steady=4,
        facts={"megatron_version": r"\bmegatron[-_ ]core(?: version)?[ :=]+([\w.+-]{1,40})"},
        inner=("deepspeed",),
    ),
    # samples per second between `forward` and `step` of the engine: waiting for data is not in it
    Grammar(
        name="deepspeed",
        title="DeepSpeed",
        lines=(
            line(
                r"global_step=", number("step"), r", RunningAvgSamplesPerSec=[\d.einf+-]+, CurrSamplesPerSec=",
                number("samples_s"), optional("MaxMemAllocated=", number("allocated_gb"), "GB"),
            ),
            # until 0.6
            line(r"stop\] +\d+/", number("step"), r", SamplesPerSec=", number("samples_s"),
                 optional("MaxMemAllocated=", number("allocated_gb"), "GB")),
        ),
        scopes={"samples_s": TOTAL},
        takes_clock=True,
        facts={"deepspeed_version": r"DeepSpeed info: version=([\w.+-]{1,40})"},
    ),
)  # fmt: skip
