"""MaxText: language models on JAX."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import PER_DEVICE, Grammar, LineField, number, step_line

GRAMMARS: Final = (
    # the time from the end of a step to that of the next one; the second step is only queued while the first compiles
    # (MaxText/metric_logger.py of 2023 to 2025)
    Grammar(
        name="maxtext",
        title="MaxText",
        lines=(
            step_line(
                "completed step: ", number("step"), ", seconds: ", number("step_s"),
                fields=(LineField("tflops", "TFLOP/s(?:/device)?: "), LineField("tokens_s", "Tokens/s/device: ")),
            ),
        ),
        scopes={"tflops": PER_DEVICE, "tokens_s": PER_DEVICE},
    ),
)  # fmt: skip
