"""The Trainer of Hugging Face on a terminal, and the log of LLaMA-Factory."""

from __future__ import annotations

import re
from typing import Final

from tracker.readers.training_log.grammar import REST, TOTAL, Grammar, LineField, json_field, number, step_line

GRAMMARS: Final = (
    # whole seconds since the start, with evaluation and saving in them; `throughput` is a mean since the start
    Grammar(
        name="llamafactory",
        title="LLaMA-Factory (trainer_log.jsonl)",
        lines=(
            step_line(
                '"current_steps": ', number("step"), ', "total_steps": ', number("total"), REST,
                r'"elapsed_time": "(?P<elapsed_clock>[^"\r\n]+)"',
                fields=(LineField("evaluation", r'"eval_loss": (?=\d)'), json_field("total_tokens", "tokens")),
            ),
        ),
        scopes={"tokens_s": TOTAL},
        resolution_s=0.5,
    ),
    # the bar of tqdm, which is written over and over: whole seconds since the start
    Grammar(
        name="transformers",
        title="Hugging Face Trainer (terminal)",
        lines=(
            # a bar with words in front of it is of something else: `Loading checkpoint shards: 100%|`
            step_line(
                r"%\|(?<![A-Za-z]: [ \d]{2}\d%\|)[^\r\n|]*\| *", number("step"), "/", number("total"),
                r" \[(?P<elapsed_clock>[\d:]+)<[^,\]\r\n]*, *",
                rf"(?:{number('step_s')}s/it|{number('rate')}it/s)",
            ),
            # the summary of a session without bars: start, evaluation and saving are in it; also a line with a loss,
            # which has the time since the start where tokens are counted; of how many steps says `trainer_sessions`
            step_line(
                # since 5 numbers stand in quotes
                "'train_runtime': ", "'?", number("run_s"),
                fields=(LineField("samples_s", "'train_samples_per_second': '?"),),
            ),
            # the table of the example programs
            step_line("train_steps_per_second *= *", number("run_rate")),
        ),
        evaluations=(b"Running Evaluation", b"'eval_loss':", b"Saving model checkpoint to", b"Saving checkpoint"),
        has_bars=True,
        beside_bar=(b"'loss': ",),
        scopes={"samples_s": TOTAL},
        resolution_s=0.5,
        requires=re.compile(rb"\{'(?:loss|train_runtime)': |\*{3,} (?:Running training|train metrics) \*{3,}"),
    ),
)  # fmt: skip
