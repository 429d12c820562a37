"""torchtitan and NeMo: trainers for large language models on PyTorch."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import (
    PER_DEVICE,
    REST,
    Grammar,
    line,
    number,
    optional,
)

GRAMMARS: Final = (
    # tokens per second since the line before, of one device: divided by the other parallel sizes too
    Grammar(
        name="torchtitan",
        title="torchtitan",
        lines=(
            line(
                r"step: *", number("step"), r" +loss: ",
                optional(r"memory: *", number("reserved_gib"), "GiB"),
                REST, r"(?:tps|wps): *", number("tokens_s"),
                optional(r"tflops: *", number("tflops")), optional(r"mfu: *", number("mfu"), "%"),
            ),
        ),
        scopes={"tokens_s": PER_DEVICE, "tflops": PER_DEVICE},
        takes_clock=True,
        evaluations=(b"Saving the checkpoint", b"validate step:", b"Finished saving the checkpoint"),
        facts={"torchtitan_version": r"torchtitan version: ([\w.+-]{1,40})"},
    ),
    Grammar(
        name="nemo",
        title="NeMo",
        lines=(
            line(
                r"Training epoch ", number("epoch"), r", iteration ", number("step_in_epoch"), "/", r"\d+",
                optional(r"global_batch_size: ", number("batch")), optional(r"global_step: ", number("step")),
                REST, r"train_step_timing in s: ", number("step_s"), optional(r"(?P<evaluation>val_loss)"),
            ),
            # the bar of Lightning
            line(
                r"global_step=", number("step"), r"\b", REST, r"train_step_timing in s=", number("step_s"),
                optional(r"(?P<evaluation>val_loss)"),
            ),
        ),
    ),
)  # fmt: skip
