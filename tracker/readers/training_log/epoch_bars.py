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

_LAST_SECOND: Final = 1.0
"""The clock of a bar is cut to whole seconds."""
_MOST_OFF: Final = 0.05
"""Part of the lines in which rate and clock may disagree: a bar may be drawn again between the two."""


def times_of_epoch_bars(scan: Scan) -> dict[str, F64]:
    """Return the time since the start of the first epoch and how far it may be off, as columns of the lines.

    Where the clock says that the rate is no mean since the start of the epoch, but that of the last steps, return the
    time of a step by the rate.
    """
    steps, clock_s = scan.column("step_in_epoch"), scan.column("wall_s")
    step_s, digit_s = scan.column("step_s"), scan.column("error_s")
    elapsed_s, error_s = steps * step_s, steps * digit_s
    is_off = (elapsed_s < clock_s - error_s) | (elapsed_s > clock_s + _LAST_SECOND + error_s)
    if is_off.mean() > _MOST_OFF:
        return {"by_rate": np.ones(len(steps)), "error_s": np.full(len(steps), np.nan)}
    return {
        "step_s": np.full(len(steps), np.nan),
        "elapsed_s": _counted_through(elapsed_s, scan.column("epoch"), steps),
        "error_s": error_s,
    }


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
