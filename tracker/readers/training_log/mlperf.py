"""Results of MLPerf training: lines `:::MLLOG` of JSON."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import TOTAL, Grammar, anywhere, key, line, number

_BEGIN: Final = r":::MLLOG \{"
_STATISTICS: Final = r'[^\r\n]*?"time_ms": *' + number("clock_ms") + r'[^\r\n]*?"key": *"tracked_stats", *"value": *\{'

GRAMMARS: Final = (
    Grammar(
        name="mlperf",
        title="MLPerf (:::MLLOG)",
        lines=(
            line(
                _BEGIN, _STATISTICS, r'[^\r\n}]*?"throughput": *', number("samples_s"), anywhere(key("step", "step")),
                r"[^\r\n]*\}",
            ),
            line(
                _BEGIN, _STATISTICS, r'[^\r\n}]*?"train_step_time": *', number("step_s"),
                anywhere(key("step", "step")), r"[^\r\n]*\}",
            ),
            # the wall time of a block of training, from its start to its stop
            line(
                _BEGIN, r'[^\r\n]*?"time_ms": *', number("clock_ms"), r'[^\r\n]*?"key": *"(?:block|epoch)_',
                r'(?P<mark>start|stop)"', anywhere(key("samples_count", "step")), r"[^\r\n]*\}",
            ),
        ),
        scopes={"samples_s": TOTAL},
        first_steady=0,
    ),
)  # fmt: skip
