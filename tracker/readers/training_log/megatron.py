"""Megatron-LM and what is made of it (Primus, MindSpeed, ModelLink), and DeepSpeed."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import PER_DEVICE, TOTAL, VERSION, Grammar, LineField, number, step_line

_MEMORY: Final = LineField("allocated_gb", "MaxMemAllocated=", "GB")

MEGATRON: Final = Grammar(
    name="megatron",
    title="Megatron-LM, Primus, MindSpeed, ModelLink",
    lines=(
        step_line(
            "iteration +", number("step"), "/ *", number("total"), r" *\|",
            fields=(
                # the mean over the iterations since the line before, without evaluation and saving; Primus prints
                # `current/mean`
                LineField("step_ms", r"elapsed time per iteration \(ms\): *", is_needed=True),
                LineField("tflops", r"throughput per GPU \(TFLOP/s/GPU\): *"),
                LineField("tflops", r"\| TFLOPs: *"),
                LineField("tokens_s", r"tokens per GPU \(tokens/s/GPU\): *"),
                # MindSpeed once wrote gloabl
                LineField("batch", "glo(?:bal|abl) batch size: *"),
                LineField("skipped", "number of skipped iterations: *"),
                LineField("samples_s", "samples per second: *"),
                # Primus on AMD
                LineField("allocated_gb", r"hip mem usage[\w/]*: *", "GB"),
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
