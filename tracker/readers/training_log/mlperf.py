"""Results of MLPerf training: lines `:::MLLOG` of JSON."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import TOTAL, Grammar, json_field, number, step_line

_STATISTICS: Final = (
    r":::MLLOG \{", r'[^\r\n]*?"time_ms": *', number("clock_ms"), r'[^\r\n]*?"key": *"tracked_stats", *"value": *\{',
)  # fmt: skip

GRAMMARS: Final = (
    Grammar(
        name="mlperf",
        title="MLPerf (:::MLLOG)",
        lines=(
            step_line(
                *_STATISTICS, r'[^\r\n}]*?"throughput": *', number("samples_s"), fields=(json_field("step", "step"),)
            ),
            step_line(
                *_STATISTICS, r'[^\r\n}]*?"train_step_time": *', number("step_s"), fields=(json_field("step", "step"),)
            ),
            # the wall time of a block of training, from its start to its stop
            step_line(
                r":::MLLOG \{", r'[^\r\n]*?"time_ms": *', number("clock_ms"), r'[^\r\n]*?"key": *"(?:block|epoch)_',
                r'(?P<mark>start|stop)"', fields=(json_field("samples_count", "step"),),
            ),
        ),
        scopes={"samples_s": TOTAL},
        first_steady=0,
    ),
)  # fmt: skip
