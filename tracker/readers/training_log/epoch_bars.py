"""The times behind progress bars that begin again with each epoch, and whose rate is the mean since its start.

Such a rate gives the time since the start of the epoch with more digits than the clock of the bar, which counts whole
seconds.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracker.readers.training_log.scanning import Scan

F64 = NDArray[np.float64]

_LAST_DIGIT: Final = 0.005
"""Half a unit of the last digit of a rate."""
_LAST_SECOND: Final = 1.0
"""The clock of a bar is cut to whole seconds."""
_MOST_OFF: Final = 0.05
"""Part of the lines in which rate and clock may disagree: a bar may be drawn again between the two."""


def times_of_epoch_bars(scan: Scan) -> dict[str, F64]:
    """Return the columns of the lines that state a time: that since the start of the first epoch, and its error.

    Where the clock says that the rate is no mean since the start of the epoch, but that of the last steps, the time of
    a step is that by the rate.
    """
    steps, clock_s = scan.column("step_in_epoch"), scan.column("elapsed_clock")
    rates = scan.column("rate")
    is_rate = rates > 0
    by_rate = np.where(is_rate, 1 / np.where(is_rate, rates, 1.0), np.nan)
    step_s = np.where(is_rate, by_rate, scan.column("step_s"))
    elapsed_s = steps * step_s
    error_s = steps * _LAST_DIGIT * np.where(is_rate, by_rate**2, 1.0)
    nothing = np.full(len(steps), np.nan)
    others = {"elapsed_clock": nothing, "rate": nothing}
    is_off = (elapsed_s < clock_s - error_s) | (elapsed_s > clock_s + _LAST_SECOND + error_s)
    if is_off.mean() > _MOST_OFF:
        return {**others, "step_s": step_s, "by_rate": np.ones(len(steps))}
    counted_s = _counted_through(elapsed_s, scan.column("epoch"), steps)
    return {**others, "step_s": nothing, "elapsed_s": counted_s, "error_s": error_s}


def _counted_through(elapsed_s: F64, epochs: F64, steps: F64) -> F64:
    """Return the time since the start of the first epoch.

    At the end of an epoch a validation may lie between two lines of the last step: the first one counts.
    """
    counted = elapsed_s.copy()
    before_s = 0.0
    last = 0
    for place in range(1, len(elapsed_s)):
        if epochs[place] != epochs[place - 1] or elapsed_s[place] < elapsed_s[place - 1]:
            before_s += float(elapsed_s[last])
            last = place
        elif steps[place] > steps[last]:
            last = place
        counted[place] += before_s
    return counted
