"""torchtitan, NeMo and torchtune: trainers for large language models on PyTorch."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import PER_DEVICE, VERSION, Grammar, LineField, number, step_line

GRAMMARS: Final = (
    # tokens per second since the line before, of one device: divided by the other parallel sizes too
    Grammar(
        name="torchtitan",
        title="torchtitan",
        lines=(
            step_line(
                "step:", " *", number("step"), r" +loss: ", not_behind="validate ",
                fields=(
                    LineField("tokens_s", "(?:tps|wps): *", is_needed=True),
                    LineField("tflops", "tflops: *"),
                    LineField("mfu", "mfu: *", "%"),
                    LineField("reserved_gib", "memory: *", "GiB"),
                ),
            ),
        ),
        scopes={"tokens_s": PER_DEVICE, "tflops": PER_DEVICE},
        takes_clock=True,
        evaluations=(b"Saving the checkpoint", b"validate step:", b"Finished saving the checkpoint"),
        facts={"torchtitan_version": "torchtitan version: " + VERSION},
    ),
    Grammar(
        name="nemo",
        title="NeMo",
        lines=(
            step_line(
                "Training epoch ", number("epoch"), ", iteration ", number("step_in_epoch"), r"/\d+",
                fields=(
                    LineField("step_s", "train_step_timing in s: ", is_needed=True),
                    LineField("step", "global_step: "),
                    LineField("batch", "global_batch_size: "),
                    LineField("tflops", "TFLOPS_per_GPU: "),
                    # stays in the lines behind it until the next validation
                    LineField("validation_loss", r"\bval_loss: "),
                ),
            ),
            # the bar of Lightning, whose steps count from 0
            step_line(
                "global_step=", number("step"), r"\b",
                fields=(
                    LineField("step_s", "train_step_timing in s=", is_needed=True),
                    LineField("validation_loss", r"\bval_loss="),
                ),
            ),
        ),
        scopes={"tflops": PER_DEVICE},
        beside=("lightning",),
    ),
    # the throughput of one device over the steps since the line before (torchtune/training/metric_logging.py of 0.1 to
    # 0.6)
    Grammar(
        name="torchtune",
        title="torchtune",
        lines=(
            step_line(
                "Step ", number("step"), r" \| ",
                fields=(
                    LineField("tokens_s", "tokens_per_second_per_gpu:", is_needed=True),
                    LineField("allocated_gib", "peak_memory_alloc:"),
                    LineField("reserved_gib", "peak_memory_reserved:"),
                ),
            ),
        ),
        scopes={"tokens_s": PER_DEVICE},
    ),
)  # fmt: skip
