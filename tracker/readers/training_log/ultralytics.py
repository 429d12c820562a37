"""Ultralytics: the progress bar of an epoch at its end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tracker.readers.training_log.clocks import seconds_of
from tracker.readers.training_log.grammar import Grammar, StepLine

_BAR: Final = (
    r"(?<![\d/.])(?P<epoch>\d{1,6})/\d{1,6} +[\d.]+G [^\r\n:]*: +100%"
    r"(?:\|[^|\r\n]*\| *| (?:━)+ )(?P<steps>\d{1,9})/(?P=steps) "
)
_TIME: Final = (
    # tqdm, until 8.3.190; its own bar since, whose rate at the end is that of the whole epoch
    r"(?:\[(?P<clock>[\d:]+)<[^,\]\r\n]*, *(?P<rate>\d{1,9}\.\d+)(?P<unit>it/s|s/it)"
    r"|\d{1,9}\.\d[KMG]?it/s (?:(?P<whole>\d{1,9}\.\d)s|(?P<whole_clock>[\d:]+)))"
)
_LINE: Final = re.compile(_BAR + _TIME)
_LEAST_CLOCK_S: Final = 100.0
"""A clock that is cut to whole seconds is known to 1 % from here on; the rate of tqdm is that of the last steps."""
_LAST_SECOND: Final = 1.0


def _parse(text: str) -> Mapping[str, float | str] | None:
    """Return the epoch that a bar ends, its steps, and how long it took.

    >>> _parse("  3/9  2.51G  1.249  1.314  45  640: 100%|####| 118/118 [00:21<00:00,  5.90it/s]")["interval_s"]
    20.0
    """
    bar = _LINE.search(text)
    if bar is None:
        return None
    steps = float(bar["steps"])
    row: dict[str, float | str] = {"epoch": float(bar["epoch"]), "step_in_epoch": steps, "epoch_steps": steps}
    if bar["clock"] is None:
        return {**row, "interval_s": float(bar["whole"]) if bar["whole"] else seconds_of(bar["whole_clock"].encode())}
    clock_s = seconds_of(bar["clock"].encode())
    if clock_s >= _LEAST_CLOCK_S:
        return {**row, "interval_s": clock_s + _LAST_SECOND / 2}
    rate = float(bar["rate"])
    if not rate:
        return None
    return {**row, "interval_s": steps / rate if bar["unit"] == "it/s" else steps * rate, "by_rate": 1.0}


GRAMMARS: Final = (
    # ultralytics/engine/trainer.py and ultralytics/utils/tqdm.py of 8.0 to 8.3; the bar of a validation has no epoch
    Grammar(
        name="ultralytics",
        title="Ultralytics (YOLO)",
        lines=(StepLine(re.compile((_BAR + _TIME).encode()), b": "),),
        parse=_parse,
        time_in_words="of the epoch, by its steps",
        first_steady=0,
        notes={"by_rate": "the time of a step comes from the rate of a progress bar, which is a mean of several"},
    ),
)
