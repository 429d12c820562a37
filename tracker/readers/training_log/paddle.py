"""The Trainer of PaddleNLP, and the other programs of Paddle."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tracker.readers.training_log.grammar import (
    PER_DEVICE,
    TOTAL,
    VERSION,
    Grammar,
    StepLine,
    number,
    pair_field,
    step_line,
)
from tracker.readers.training_log.paddle_lines import counts_one_rank, speed_of
from tracker.units import NS_PER_S

_FACTS: Final = {
    "gpu_compute_capability": r"\bGPU Compute Capability: (\d{1,2}\.\d)",
    "cuda_driver_version": r"\bDriver API Version: (\d{1,3}\.\d{1,3})",
    "cuda_runtime_version": r"\bRuntime API Version: (\d{1,3}\.\d{1,3})",
    "cudnn_version": r"\bcuDNN Version: (\d{1,3}\.\d{1,3})",
}
STEPS_PER_SECOND: Final = ("steps/s", "step/s")

# a number that is no address: `ips: 127.0.0.1` names a host
_SPEED: Final = re.compile(rb"\b(?:avg_)?(?:batch_cost|reader_cost|ips|elapse|speed)(?: ?: *|=)\d+\.\d+(?![.\d])")
PERF_SUMMARY: Final = re.compile(rb"(?<!=)={8,}+Perf Summary={8,}")
"""The head of the table that the timer of Paddle prints at the end."""


def _parse(text: str) -> Mapping[str, float | str] | None:
    """Return what a line of any program of Paddle says of its speed, under the names of `grammar`.

    `unit`: of the throughput. `scope`: whose it is, where the program is known.
    """
    speed = speed_of(text)
    if speed is None:
        return None
    row: dict[str, float | str] = {"unit": speed.unit}
    for name, value in (("step", speed.step), ("epoch", speed.epoch), ("throughput", speed.throughput)):
        if value is not None:
            row[name] = value
    for name, time_ns in (("step_s", speed.step_ns), ("data_s", speed.loading_ns)):
        if time_ns is not None:
            row[name] = time_ns / NS_PER_S
    if speed.unit in STEPS_PER_SECOND:
        row.pop("throughput", None)
    if "throughput" in row and counts_one_rank(text):
        row["scope"] = PER_DEVICE
    return row


GRAMMARS: Final = (
    # `interval_runtime` is the time of the whole interval
    Grammar(
        name="paddlenlp",
        title="PaddleNLP Trainer",
        lines=(
            step_line(
                "global_step: ", number("step"), r"\b",
                fields=(
                    pair_field("interval_runtime", "interval_s", is_needed=True),
                    pair_field("interval_samples_per_second", "samples_s"),
                    pair_field("interval_tokens_per_second_per_device", "tokens_s"),
                    pair_field("interval_hardware_tflops_per_device", "tflops"),
                    pair_field("max_memory_allocated", "allocated_gb"),
                ),
            ),
        ),
        scopes={"samples_s": TOTAL, "tokens_s": PER_DEVICE, "tflops": PER_DEVICE},
        evaluations=(b"***** Running Evaluation *****", b"Saving model checkpoint to"),
        facts={"framework_version": r"\bpaddle(?:paddle)? version[ :]+" + VERSION, **_FACTS},
    ),
    Grammar(
        name="paddle",
        title="Paddle (PaddleClas, PaddleSeg, PaddleDetection, PaddleNLP, paddle.profiler timer)",
        lines=(StepLine(_SPEED, b""),),
        has_epoch_starts=True,
        counts_in_epochs=True,
        takes_clock=True,
        facts=_FACTS,
        parse=_parse,
        numbers_stand_alone=True,
        time_in_words="of a step",
        rate_in_words="as the line says it",
    ),
)  # fmt: skip
