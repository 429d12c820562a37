"""To which step an event belongs (the rules stand in the docstrings; NO_STEP is outside all markers)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracker.profile import I64, MISSING, NO_STEP, DeviceEvents, Markers
from tracker.timeline import tree
from tracker.timeline.windows import first_linked_start

ONLY_STEP = 0
"""The number of the one step of a capture without markers."""


def steps_at(markers: Markers, time_ns: I64) -> I64:
    """The step whose marker contains each time, NO_STEP where none does; without markers all is step 0.

    Where markers cross, the one that starts last decides.
    """
    if len(markers) == 0:
        return np.full(len(time_ns), ONLY_STEP, dtype=np.int64)
    one_thread = np.zeros(len(markers), dtype=np.int32)
    found = tree.grow(one_thread, markers.start_ns, markers.end_ns).innermost(
        np.zeros(len(time_ns), dtype=np.int32), time_ns
    )
    return np.where(found >= 0, markers.step[found], NO_STEP)


def steps_of_device(markers: Markers, device: DeviceEvents, launched_ns: I64, linked: NDArray[np.bool_]) -> I64:
    """The step of each device event.

    With a launch, the time of the launch decides. Without one: the source's own step id; else an event that starts
    before the first linked event of its stream was queued before the capture and belongs to no step; else its own
    start decides.
    """
    if len(markers) == 0:
        return np.full(len(device), ONLY_STEP, dtype=np.int64)
    step = steps_at(markers, np.where(linked, launched_ns, device.start_ns))
    queued = device.start_ns < first_linked_start(device, linked)
    own = np.where(np.isin(device.step, markers.step), device.step, NO_STEP)
    says = device.step != MISSING
    unlinked_step = np.where(says, own, np.where(queued, NO_STEP, step))
    return np.where(linked, step, unlinked_step)
