"""All grammars, in the order in which they count: of a file of two families the first one is read."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log import (
    huggingface,
    jax,
    keras,
    language,
    lightning,
    megatron,
    mindspore,
    mlperf,
    openmmlab,
    paddle,
    pytorch,
    reinforcement,
    swift,
    ultralytics,
    vision,
)
from tracker.readers.training_log.grammar import RATE_UNITS, Grammar
from tracker.units import name_throughput

GRAMMARS: Final[tuple[Grammar, ...]] = (
    *mlperf.GRAMMARS,
    megatron.MEGATRON,
    *pytorch.GRAMMARS,
    *mindspore.GRAMMARS,
    *openmmlab.GRAMMARS,
    *language.GRAMMARS,
    *paddle.GRAMMARS,
    *reinforcement.GRAMMARS,
    *vision.GRAMMARS,
    *ultralytics.GRAMMARS,
    *jax.GRAMMARS,
    *keras.GRAMMARS,
    *lightning.GRAMMARS,
    megatron.DEEPSPEED,
    *swift.GRAMMARS,
    *huggingface.GRAMMARS,
)

_TIMES: Final = (
    ("step_ms", "of a step"),
    ("step_s", "of a step"),
    ("interval_s", "of the interval, by its steps"),
    ("mean_s", "mean since the start: differences"),
    ("elapsed_ms", "since the start: differences"),
    ("elapsed_s", "since the start: differences"),
    ("elapsed_clock", "since the start: differences"),
    ("wall_s", "since the start: differences"),
    ("wall_s", "by the rates where these are finer"),
    ("clock_ms", "wall time of the blocks"),
)


def table_of_grammars() -> list[tuple[str, str, str, str]]:
    """Return title, what the time is, the throughputs, and what is left out beside the warm-up, of each grammar."""
    rows = []
    for grammar in sorted(GRAMMARS, key=lambda grammar: grammar.title.lower()):
        names = {name for line in grammar.lines for name in line.head.groupindex}
        names |= {one.name for line in grammar.lines for one in line.fields}
        times = list(dict.fromkeys(words for name, words in _TIMES if name in names))
        rates = [name_throughput(RATE_UNITS[name], scope) for name, scope in grammar.scopes.items() if name in names]
        if grammar.time_in_words:
            times = [grammar.time_in_words]
        if grammar.rate_in_words:
            rates = [grammar.rate_in_words]
        left_out = []
        if grammar.has_epoch_starts:
            left_out.append("starts of epochs")
        if grammar.evaluations or {"evaluation", "validation_loss"} & names:
            left_out.append("evaluations and checkpoints")
        if {"skipped", "overflow"} & names:
            left_out.append("skipped steps")
        rows.append((grammar.title, " or ".join(times) or "by the throughput", ", ".join(rates), ", ".join(left_out)))
    return rows
