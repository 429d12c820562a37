"""Keras: the line at the end of each epoch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tracker.readers.training_log.grammar import Grammar, StepLine

_BAR: Final = r"(?<![\d/])(?P<steps>\d{1,9})/(?P=steps) (?:\[=+\] - |(?:━)+ |- )(?P<whole>\d{1,9})s "
_MEAN: Final = r"(?:- )?(?:[^\r\n]* - )?(?P<mean>\d{1,9})(?P<unit>us|ms|s)/step\b"
_LINE: Final = re.compile(_BAR + _MEAN)
_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_HALF: Final = 0.5
"""Both times are whole numbers of their unit."""


def _parse(text: str) -> Mapping[str, float | str] | None:
    """Return what the line at the end of an epoch says.

    >>> _parse("500/500 - 75s - 150ms/step - loss: 1.2")
    {'epoch_steps': 500.0, 'step_s': 0.15}
    >>> _parse("500/500 - 1130s - 2s/step - loss: 1.2 - val_loss: 1.1")
    {'epoch_steps': 500.0, 'step_s': 2.26, 'validated': 1.0}
    """
    line = _LINE.search(text)
    if line is None:
        return None
    steps, whole_s = float(line["steps"]), float(line["whole"])
    mean = float(line["mean"])
    step_s = mean * _UNITS[line["unit"]]
    # the one of the two that is rounded less: from one second on the time of a step is printed in whole seconds
    if steps and whole_s and _HALF / whole_s < _HALF / max(mean, _HALF):
        step_s = whole_s / steps
    row: dict[str, float | str] = {"epoch_steps": steps, "step_s": step_s}
    if " val_" in text:
        row["validated"] = 1.0
    return row


GRAMMARS: Final = (
    # the mean of an epoch; a validation lies between the last step and this line (keras/src/utils/progbar.py of 3.x,
    # keras/utils/generic_utils.py of 2.x, with a bar or without)
    Grammar(
        name="keras",
        title="Keras 2 and 3 (fit)",
        lines=(StepLine(re.compile((_BAR + _MEAN).encode()), b"/step"),),
        parse=_parse,
        time_in_words="of the epoch, by its steps, with its validation",
        epoch_lines=re.compile(rb"Epoch (?<!\wEpoch )(?P<epoch>\d{1,9})/\d{1,9}\s*?(?=[\r\n])"),
        requires=re.compile(rb"\bEpoch \d{1,9}/\d{1,9}\s"),
        first_steady=0,
        notes={
            "validated": "each line of Keras is about a whole epoch: the validation behind its steps is in the time of "
            "a step"
        },
    ),
)
