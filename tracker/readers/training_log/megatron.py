"""Megatron-LM and what is made of it (Primus, MindSpeed, ModelLink), and DeepSpeed."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import PER_DEVICE, TOTAL, VERSION, Grammar, LineField, number, step_line

_MEMORY: Final = LineField("allocated_gb", "MaxMemAllocated=", "GB")

_FIELDS: Final = (
    LineField("tflops", r"throughput per GPU \(TFLOP/s/GPU\): *"),
    LineField("tflops", r"\| TFLOPs: *"),
    LineField("tokens_s", r"tokens per GPU \(tokens/s/GPU\): *"),
    # Megatron-DeepSpeed of Microsoft
    LineField("tokens_s", r"tokens per gpu per second \(tgs\): *"),
    # MindSpeed once wrote gloabl
    LineField("batch", "glo(?:bal|abl) batch size: *"),
    LineField("skipped", "number of skipped iterations: *"),
    LineField("samples_s", "samples per second: *"),
    # Primus on AMD
    LineField("allocated_gb", r"hip mem usage[\w/]*: *", "GB"),
)
_HEAD: Final = ("iteration +", number("step"), "/ *", number("total"), r" *\|")

MEGATRON: Final = Grammar(
    name="megatron",
    title="Megatron-LM, Primus, MindSpeed, ModelLink",
    lines=(
        # the mean over the iterations since the line before, without evaluation and saving; Primus prints
        # `current/mean`
        step_line(
            *_HEAD,
            fields=(LineField("step_ms", r"elapsed time per iteration \(ms\): *", is_needed=True), *_FIELDS),
        ),
        # Megatron-DeepSpeed of BigScience
        step_line(
            *_HEAD,
            fields=(LineField("step_s", r"elapsed time per iteration \(s\): *", is_needed=True), *_FIELDS),
        ),
        # Megatron-DeepSpeed of Argonne writes `name=value`
        step_line(
            "iteration= *", number("step"), "/ *", number("total"), r" *\|",
            fields=(
                LineField("step_ms", "elapsed_time_per_iteration_ms= *", is_needed=True),
                LineField("tflops", r"\| TFLOPs= *"),
                LineField("tokens_s", "tokens_per_gpu_per_second_tgs= *"),
                LineField("batch", "global_batch_size= *"),
                LineField("skipped", "number_of_skipped_iterations= *"),
                LineField("samples_s", "samples_per_second= *"),
            ),
        ),
    ),
    scopes={"tflops": PER_DEVICE, "tokens_s": PER_DEVICE, "samples_s": TOTAL},
    first_steady=4,
    facts={"megatron_version": r"\bmegatron[-_ ]core(?: version)?[ :=]+" + VERSION},
    has_timers=True,
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
        # 0.6.5 to 0.7: epoch and step
        step_line(
            r"stop\] +\d+/", number("step"), r", RunningAvgSamplesPerSec=[\d.einf+-]+, CurrSamplesPerSec=",
            number("samples_s"), fields=(_MEMORY,),
        ),
        # PipelineEngine: the mean of the steps since the line before
        step_line(
            "steps: ", number("step"), r" loss: +\S+ iter time \(s\): +", number("step_s"), r" samples/sec: +",
            number("samples_s"),
        ),
        # until 0.6 the mean of all steps behind the second one
        step_line(r"stop\] +\d+/", number("step"), ", SamplesPerSec=", number("mean_samples_s"), fields=(_MEMORY,)),
    ),
    scopes={"samples_s": TOTAL},
    takes_clock=True,
    facts={"deepspeed_version": "DeepSpeed info: version=" + VERSION},
    has_timers=True,
)  # fmt: skip

GRAMMARS: Final = (MEGATRON, DEEPSPEED)
