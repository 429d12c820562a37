"""All grammars, in the order in which they count: of a file of two families the first one is read."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log import (
    huggingface,
    language,
    megatron,
    mindspore,
    mlperf,
    openmmlab,
    paddle,
    pytorch,
)
from tracker.readers.training_log.grammar import Grammar

GRAMMARS: Final[tuple[Grammar, ...]] = (
    *mlperf.GRAMMARS,
    megatron.MEGATRON,
    *pytorch.GRAMMARS,
    *mindspore.GRAMMARS,
    *openmmlab.GRAMMARS,
    *language.GRAMMARS,
    *paddle.GRAMMARS,
    megatron.DEEPSPEED,
    *huggingface.GRAMMARS,
)
