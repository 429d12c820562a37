"""Step markers of a capture without a trace, whose host is not known: from what its device tasks say."""

from __future__ import annotations

import numpy as np

from tracker.profile import MISSING, DeviceEvents, Markers, StepTimes


def markers_of(device: DeviceEvents, said: StepTimes) -> Markers:
    """A marker per step that the device tasks name, from the first start to the last end of its tasks.

    The duration of such a step is the span of its work on the device; what the host did before is not known. Where no
    task names a step and step_trace_time.csv has one step only, all tasks are of that one.
    """
    step = device.step
    if len(said) == 1 and (step == MISSING).all():
        step = np.full(len(device), said.step[0], dtype=np.int64)
    numbers, back = np.unique(step, return_inverse=True)
    start = np.full(len(numbers), np.iinfo(np.int64).max)
    end = np.full(len(numbers), np.iinfo(np.int64).min)
    np.minimum.at(start, back, device.start_ns)
    np.maximum.at(end, back, device.end_ns)
    order = np.argsort(start, kind="stable")
    order = order[numbers[order] != MISSING]
    return Markers(start[order], end[order], numbers[order], np.zeros(len(order), dtype=np.int32))
