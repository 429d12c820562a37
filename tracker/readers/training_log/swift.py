"""ms-swift, which prints the dict of the Trainer of Hugging Face with the step and the time since the start in it."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import REST, Grammar, LineField, number, step_line

GRAMMARS: Final = (
    # whole seconds since the start of the session, with evaluation and saving in them; `train_speed` is the mean since
    # the start, and `logging.jsonl` has the same with double quotes (swift/trainers/callback.py of 3.x)
    Grammar(
        name="ms-swift",
        title="ms-swift (terminal, logging.jsonl)",
        lines=(
            step_line(
                r"global_step/max_steps\]?['\"]: ?['\"]", number("step"), "/", number("total"), REST,
                r"['\"]elapsed_time['\"]: ?['\"](?P<elapsed_clock>[^'\"\r\n]+)",
                fields=(
                    LineField("evaluation", r"['\"]eval_loss['\"]: (?=\d)"),
                    LineField("reserved_gib", r"['\"]memory\(GiB\)['\"]: "),
                ),
            ),
            # Megatron-SWIFT (swift/megatron/callbacks of 4.0)
            step_line(
                r"iteration['\"]: ?['\"]", number("step"), "/", number("total"), REST,
                r"['\"]elapsed_time['\"]: ?['\"](?P<elapsed_clock>[^'\"\r\n]+)",
                fields=(
                    LineField("evaluation", r"['\"]eval_loss['\"]: (?=\d)"),
                    LineField("reserved_gib", r"['\"]memory\(GiB\)['\"]: "),
                ),
            ),
        ),
        evaluations=(b"Saving model checkpoint to",),
        resolution_s=0.5,
        beside=("transformers",),
    ),
)  # fmt: skip
