"""fairseq, nanoGPT, nanochat, modded-nanogpt and llm.c: code that research on language models is made with."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import (
    REST,
    TOTAL,
    VERSION,
    Grammar,
    LineField,
    number,
    optional,
    pair_field,
    step_line,
)

GRAMMARS: Final = (
    # `wall` counts whole seconds since the start, with validation in it; `ups` has two digits
    Grammar(
        name="fairseq",
        title="fairseq",
        lines=(
            step_line(
                "train_inner",
                fields=(
                    pair_field("num_updates", "step", is_needed=True),
                    pair_field("wall", "wall_s"),
                    pair_field("ups", "rate", is_needed=True),
                    pair_field("wps", "words_s"),
                    pair_field("wpb", "batch_words"),
                    pair_field("bsz", "batch"),
                ),
            ),
            # until 0.9: rates are means since the start of the epoch, which say nothing of an interval
            step_line(
                r"epoch \d+: +\d+ / \d+ loss=",
                fields=(
                    pair_field("num_updates", "step", is_needed=True),
                    pair_field("wall", "elapsed_s", is_needed=True),
                    pair_field("wpb", "batch_words"),
                    pair_field("bsz", "batch"),
                ),
            ),
        ),
        scopes={"words_s": TOTAL},
        evaluations=(b"begin validation on", b"aved checkpoint"),
        resolution_s=0.5,
        joins=0.01,
        facts={"python": r"\bpython_version\W+([\d.]{1,20})"},
    ),
    # the time of that one iteration, which holds the evaluation before it; MFU of an A100, -100 until it is known
    Grammar(
        name="nanogpt",
        title="nanoGPT",
        lines=(
            step_line(
                "iter ", number("step"), r": loss [^,\r\n]*, time ", number("step_ms"), "ms",
                rf"(?:, mfu {number('mfu')}%)?",
            ),
        ),
        evaluations=(b": train loss ", b"saving checkpoint to"),
    ),
    # the time of that one step, without evaluation (scripts/base_train.py of nanochat, and train.py of autoresearch)
    Grammar(
        name="nanochat",
        title="nanochat",
        lines=(
            step_line(
                "step ", number("step"), rf"(?:/{number('total')})? \([\d.]+%\) \| ", REST, r"\bdt: ",
                number("step_ms"), "ms",
                fields=(LineField("tokens_s", "tok/sec: ", is_needed=True), LineField("mfu", "mfu: ")),
            ),
        ),
        scopes={"tokens_s": TOTAL},
    ),
    # ms since the start of the training, without validation; begins again behind the warm-up
    Grammar(
        name="modded-nanogpt",
        title="modded-nanogpt",
        lines=(
            step_line(
                "step:", number("step"), "/", number("total"), r" (?:train_loss:\S+ )?train_time:",
                number("elapsed_ms"), "ms step_avg:",
            ),
            # a log that prints at validations only
            step_line(
                "step:", number("step"), "/", number("total"), r" (?:val_\w+:\S+ )*train_time:",
                number("elapsed_ms"), "ms step_avg:",
            ),
        ),
        first_steady=12,
        resolution_s=0.0005,
        facts={"pytorch": r"\bRunning py[tT]orch " + VERSION},
    ),
    Grammar(
        name="llm.c",
        title="llm.c (terminal)",
        lines=(
            step_line(
                "step +", number("step"), "/", number("total"), r" \| (?:train )?loss ", r"[^\r\n]*?\| ",
                number("step_ms"), r" ms \|", optional(number("mfu"), r"% (?:\w+ )?MFU"),
                fields=(LineField("tokens_s", r"\| ", r" tok/s"),),
            ),
        ),
        scopes={"tokens_s": TOTAL},
    ),
)  # fmt: skip
