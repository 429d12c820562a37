"""The windows of the steps: when each step runs on the device. The one authority on where a step begins and ends.

The host marks a step while it launches the work of that step. Where it runs ahead, the device works on a step long
after its marker has ended, so that markers are not when a step ran. A window begins where the device has finished what
was launched before the step, and ends where it has finished what the step launched:

    host    |-1-|-2-|-3-|               |- wait -|
    device      |----- 1 -----|----- 2 -----|----- 3 -----|
    windows |------- 1 -------|----- 2 -----|----- 3 -----|

Where the device finishes each step within its marker, windows and markers are the same. Host time between two markers,
while the device is done, is in no window. Without known kernels the markers are the windows.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I64, MISSING, NO_STEP, DeviceEvents, Markers
from tracker.timeline.intervals import Spans
from tracker.units import NS_PER_US, counted

_BEFORE_ALL = np.iinfo(np.int64).min
"""A moment before all others: launched before the capture; and of a device that has finished nothing yet."""


class Windows(Struct, frozen=True):
    """The windows of a capture in order of time, disjoint. One per marker: `step` comes again where its marker does.

    `marker_ns`: how long each marker lasts on the host. `are_of_device`: cut where the device begins and ends a step;
    else the windows are the markers.
    """

    step: I64
    start_ns: I64
    end_ns: I64
    marker_ns: I64
    are_of_device: bool

    def spans_of(self, step: int) -> Spans:
        """Return when a step runs; no span where its windows are empty."""
        is_own = (self.step == step) & (self.end_ns > self.start_ns)
        return Spans(self.start_ns[is_own], self.end_ns[is_own])

    def start_of(self, step: int) -> int:
        """Return when the first window of a step begins."""
        return int(self.start_ns[self.step == step].min())

    def marker_of(self, step: int) -> int:
        """Return how long the markers of a step last together, in ns."""
        return int(self.marker_ns[self.step == step].sum())


def overlap_warning(markers: Markers) -> str:
    """Return a sentence where markers overlap or nest, else ''."""
    order = np.lexsort((-markers.end_ns, markers.start_ns))
    ends_late = markers.end_ns[order][:-1] > markers.start_ns[order][1:]
    # clocks of whole microseconds let neighbours overlap by one
    overlap_ns = (markers.end_ns[order][:-1] - markers.start_ns[order][1:])[ends_late]
    count = int((overlap_ns > NS_PER_US).sum())
    if not count:
        return ""
    overlap = "overlaps" if count == 1 else "overlap"
    return f"{counted(count, 'step marker')} {overlap} the next one: a step ends where the next one begins"


def cut_windows(
    markers: Markers,
    device: DeviceEvents,
    launched_ns: I64,
    is_kernel: NDArray[np.bool_],
    communicates: NDArray[np.bool_],
) -> Windows:
    """Return the window of each marker.

    device, launched_ns, is_kernel, communicates: one row per device event. `launched_ns` is what `launch_times` gives.
    Copies, memsets and events of other streams than the main one move no window: they count in the window in which
    they run.
    """
    order = np.lexsort((-markers.end_ns, markers.start_ns))
    step, start_ns, end_ns = markers.step[order], markers.start_ns[order], markers.end_ns[order]
    marker_ns = end_ns - start_ns
    next_start_ns = np.append(start_ns[1:], np.iinfo(np.int64).max)
    # of markers that overlap the earlier one ends where the later one begins. Where one nests in another, the time of
    # the outer one behind it is in no window
    end_ns = np.minimum(end_ns, next_start_ns)
    on_main = _find_main_stream(device, is_kernel, communicates)
    if not on_main.any():
        return Windows(step, start_ns, end_ns, marker_ns, are_of_device=False)
    # work that is launched between two markers, as an evaluation is, delays the next step and lengthens none
    before_ns = _finish_times(start_ns, launched_ns[on_main], device.end_ns[on_main])
    after_ns = _finish_times(end_ns, launched_ns[on_main], device.end_ns[on_main])
    return Windows(step, np.maximum(start_ns, before_ns), np.maximum(end_ns, after_ns), marker_ns, are_of_device=True)


def take_markers(windows: Windows, markers: Markers) -> Windows:
    """Return the windows as long as the markers, where what the device did is not known."""
    order = np.lexsort((-markers.end_ns, markers.start_ns))
    return Windows(
        windows.step, markers.start_ns[order], markers.end_ns[order], windows.marker_ns, windows.are_of_device
    )


def launch_times(markers: Markers, device: DeviceEvents, call_ns: I64, linked: NDArray[np.bool_]) -> I64:
    """Return when each device event was launched, in ns on the clock of the host.

    call_ns: start of the launch call of each event, which counts where `linked` is set.

    An event without a launch that states its step was launched when that step first began. One that starts before the
    first linked event of its stream was queued before the capture. Any other was launched at its own start.
    """
    is_queued = device.start_ns < first_linked_start(device, linked)
    found = np.where(is_queued, _BEFORE_ALL, device.start_ns)
    order = np.lexsort((markers.start_ns, markers.step))
    place = np.minimum(np.searchsorted(markers.step[order], device.step), max(len(order) - 1, 0))
    if len(order):
        marker = order[place]
        states_step = (device.step != MISSING) & (device.step != NO_STEP) & (markers.step[marker] == device.step)
        found = np.where(states_step, markers.start_ns[marker], found)
    return np.where(linked, call_ns, found)


def first_linked_start(device: DeviceEvents, linked: NDArray[np.bool_]) -> I64:
    """Return per event the start of the first linked event of its stream; the smallest int64 where there is none."""
    _, stream = np.unique(device.stream, return_inverse=True)
    first = np.full(int(stream.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, stream[linked], device.start_ns[linked])
    # a stream without linked events has no queue that anything is known of
    first[first == np.iinfo(np.int64).max] = _BEFORE_ALL
    return first[stream]


def _find_main_stream(
    device: DeviceEvents, is_kernel: NDArray[np.bool_], communicates: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which events are kernels of the stream with most kernel time that is no communication."""
    computes = is_kernel & ~communicates & (device.end_ns > device.start_ns)
    if not computes.any():
        return np.zeros(len(device), dtype=bool)
    streams, place = np.unique(device.stream[computes], return_inverse=True)
    busy_ns = np.zeros(len(streams), dtype=np.int64)
    np.add.at(busy_ns, place, (device.end_ns - device.start_ns)[computes])
    # argmax takes the lowest stream of equal ones, so that the order of the events does not matter
    found: NDArray[np.bool_] = is_kernel & (device.stream == streams[busy_ns.argmax()])
    return found


def _finish_times(before_ns: I64, launched_ns: I64, end_ns: I64) -> I64:
    """Return for each moment the latest end of all events launched before it; the smallest int64 where none is."""
    order = np.argsort(launched_ns, kind="stable")
    latest_end_ns = np.maximum.accumulate(end_ns[order])
    launched = np.searchsorted(launched_ns[order], before_ns, side="left")
    return np.where(launched > 0, latest_end_ns[np.maximum(launched - 1, 0)], _BEFORE_ALL)
