"""The progress bar of Lightning, which is written over and over."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tracker.readers.training_log.clocks import seconds_of
from tracker.readers.training_log.grammar import Grammar, StepLine

_BAR: Final = (
    r"\bEpoch +(?P<epoch>\d{1,9}): +\d{1,3}%\|[^\r\n|]*\| *(?P<step>\d{1,9})/(?P<steps>\d{1,9}) \[(?P<clock>[\d:]+)<"
    r"[^,\]\r\n]*, *(?P<number>\d{1,9}\.\d{2})(?P<unit>it/s|s/it)(?=,[^\r\n\]]*\bv_num=)"
)
_LINE: Final = re.compile(_BAR)
_LAST_DIGIT: Final = 0.005
"""Half a unit of the last digit of a rate."""


def _parse(text: str) -> Mapping[str, float | str] | None:
    """Return where in its epoch a bar stands, its clock, and the time of a step by its rate.

    >>> row = _parse("Epoch 2:  10%|#   | 40/400 [00:08<01:12,  5.00it/s, v_num=0]")
    >>> row["epoch"], row["step_in_epoch"], row["wall_s"], row["step_s"], round(row["error_s"], 6)
    (2.0, 40.0, 8.0, 0.2, 0.0002)
    """
    bar = _LINE.search(text)
    if bar is None:
        return None
    number = float(bar["number"])
    if not number:
        return None
    is_rate = bar["unit"] == "it/s"
    return {
        "epoch": float(bar["epoch"]), "step_in_epoch": float(bar["step"]), "epoch_steps": float(bar["steps"]),
        "wall_s": seconds_of(bar["clock"].encode()),
        "step_s": 1 / number if is_rate else number,
        "error_s": _LAST_DIGIT / number**2 if is_rate else _LAST_DIGIT,
    }  # fmt: skip


GRAMMARS: Final = (
    # the bar begins again with each epoch and is made with smoothing=0 (callbacks/progress/tqdm_progress.py of 1.8 to
    # 2.5); a validation within the epoch is in its clock
    Grammar(
        name="lightning",
        title="Lightning (progress bar)",
        lines=(StepLine(re.compile(_BAR.encode()), b"v_num="),),
        parse=_parse,
        time_in_words="since the start of the epoch: differences",
        has_epoch_starts=True,
        evaluations=(b"Validation DataLoader", b"Validating:"),
        clock_is_of_epoch=True,
        joins=0.02,
        notes={"by_rate": "the time of a step comes from the rate of a progress bar, which is a mean of several"},
    ),
)
