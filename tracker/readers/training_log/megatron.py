"""Megatron-LM and what is made of it (Primus, MindSpeed, ModelLink), and DeepSpeed."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import PER_DEVICE, TOTAL, VERSION, Field, Grammar, number, step_line

_MEMORY: Final = Field("allocated_gb", "MaxMemAllocated=", "GB")

MEGATRON: Final = Grammar(
    name="megatron",
    title="Megatron-LM, Primus, MindSpeed, ModelLink",
    lines=(
        step_line(
            "iteration +", number("step"), "/ *", number("total"), r" *\|",
            fields=(
                # the mean over the iterations since the line before, without evaluation and saving; Primus prints
                # `current/mean`
                Field("step_ms", r"elapsed time per iteration \(ms\): *", is_needed=True),
                Field("tflops", r"throughput per GPU \(TFLOP/s/GPU\): *"),
                Field("tflops", r"\| TFLOPs: *"),
                Field("tokens_s", r"tokens per GPU \(tokens/s/GPU\): *"),
                # MindSpeed once wrote gloabl
                Field("batch", "glo(?:bal|abl) batch size: *"),
                Field("skipped", "number of skipped iterations: *"),
                Field("samples_s", "samples per second: *"),
                # Primus on AMD
                Field("allocated_gb", r"hip mem usage[\w/]*: *", "GB"),
            ),
        ),
    ),
    scopes={"tflops": PER_DEVICE, "tokens_s": PER_DEVICE, "samples_s": TOTAL},
    first_steady=4,
    facts={"megatron_version": r"\bmegatron[-_ ]core(?: version)?[ :=]+" + VERSION},
)  # fmt: skip

# samples per second between `forward` and `step` of the engine: waiting for data is not in it
DEEPSPEED: Final = Grammar(
    name="deepspeed",
    title="DeepSpeed",
    lines=(
        step_line(
            "global_step=", number("step"), r", RunningAvgSamplesPerSec=[\d.einf+-]+, CurrSamplesPerSec=",
            number("samples_s"), fields=(_MEMORY,),
        ),
        # until 0.6
        step_line(r"stop\] +\d+/", number("step"), ", SamplesPerSec=", number("samples_s"), fields=(_MEMORY,)),
    ),
    scopes={"samples_s": TOTAL},
    takes_clock=True,
    facts={"deepspeed_version": "DeepSpeed info: version=" + VERSION},
)  # fmt: skip

GRAMMARS: Final = (MEGATRON, DEEPSPEED)
