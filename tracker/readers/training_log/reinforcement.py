"""verl and prime-rl: reinforcement learning of language models."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import PER_DEVICE, TOTAL, Grammar, LineField, number, step_line

_NUMPY: Final = r"(?:np\.float\d+\()?"
"""With NumPy 2 a number that verl prints may say its type."""

GRAMMARS: Final = (
    # `timing_s/step` holds rollout, reward and update, and the validation and the checkpoint of steps that have one
    # (verl/utils/logger/aggregate_logger.py and verl/trainer/ppo/ray_trainer.py of 0.2 to 0.6)
    Grammar(
        name="verl",
        title="verl (console)",
        lines=(
            step_line(
                r"step:(?<![\w/]step:)", number("step"), " - ",
                fields=(
                    LineField("step_s", rf"timing_s/step:{_NUMPY}", is_needed=True),
                    LineField("tokens_s", rf"perf/throughput:{_NUMPY}"),
                    LineField("allocated_gb", rf"perf/max_memory_allocated_gb:{_NUMPY}"),
                    LineField("evaluation", "timing_s/testing:"),
                    LineField("evaluation", "timing_s/save_checkpoint:"),
                ),
            ),
        ),
        scopes={"tokens_s": PER_DEVICE},
        first_steady=2,
    ),
    # src/prime_rl/trainer/rl/train.py of 0.1 to 0.3; later ones print whole seconds
    Grammar(
        name="prime-rl",
        title="prime-rl (trainer)",
        lines=(
            step_line(
                "Step ", number("step"), r" \| Time: ", number("step_s"), r"s \| Loss: ",
                fields=(
                    LineField("tokens_s", "Throughput: ", " tokens/s", is_needed=True),
                    LineField("mfu", "MFU: ", "%"),
                    LineField("reserved_gib", r"Peak Mem\.: "),
                ),
            ),
        ),
        scopes={"tokens_s": TOTAL},
        first_steady=2,
    ),
)  # fmt: skip
