"""The gaps in the work of a device: from when to when no stream works, and until when nothing launched waits.

A device event depends only on what was launched before it, so while launched work waits the host is not to blame. A gap
[start, end) parts at the moment at which the earliest of all later events was handed over, as the call that launches
it ends:

    device  |-- a --|                              |-- b --|
    host              operator, Python  | launch b |
    gap             |<- waits for the host ------->|<->| launched work waits
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I64, MISSING
from tracker.timeline.intervals import Spans, union
from tracker.timeline.joined import Joined
from tracker.timeline.nesting import NONE
from tracker.timeline.windows import first_linked_start

_LEAST_LATENCY_NS: Final = 20_000
_MOST_LATENCY_NS: Final = 200_000
_AHEAD: Final = np.iinfo(np.int64).min
"""The launch of what was queued before the capture began."""
_NOT_KNOWN: Final = np.iinfo(np.int64).max


class Gaps(Struct, frozen=True):
    """The gaps of a capture in order of time, disjoint, none of them empty.

    Per gap: `launched_ns`, between its start and its end: from then on launched work waits. `is_known`: whether it is
    known when what ends it was launched, else what lies before `launched_ns` may be of anybody. `event`: the device
    event with which it ends, -1 for none. `thread`: of the host, which runs the operator that ends the wait for the
    host; `launch_thread`: which makes the call. They differ where a framework hands operators to a thread that
    launches; -1 for none.

    `latency_ns`: how long the start of a launched event may take while the device does nothing; longer waits are for
    something else. `first_work_ns`, `last_work_ns`: from when to when the device works.
    """

    start_ns: I64
    end_ns: I64
    launched_ns: I64
    is_known: NDArray[np.bool_]
    event: I64
    thread: I64
    launch_thread: I64
    latency_ns: int
    first_work_ns: int
    last_work_ns: int

    def waits_for_host(self) -> Spans:
        """Return when the device does nothing because nothing was launched."""
        return union(self.start_ns[self.is_known], self.launched_ns[self.is_known])


def find_gaps(joined: Joined, host_calls: Spans) -> Gaps | None:
    """Return the gaps in the work of the device, from the first to the last event of the capture.

    host_calls: collectives of the host, in which the device waits for the network and no gap is. None where a part of
    the work of the device is not in the source, so that gaps are none.
    """
    extras, device = joined.events.extras, joined.events.device
    if not len(device) or extras.no_kernels or extras.no_copies or extras.no_collectives or extras.only_collectives:
        return None
    busy = union(
        np.concatenate((device.start_ns, host_calls.start_ns)), np.concatenate((device.end_ns, host_calls.end_ns))
    )
    if not len(busy):
        return None
    start_ns = np.concatenate((np.minimum(busy.start_ns[:1], joined.first_ns), busy.end_ns))
    end_ns = np.append(busy.start_ns, max(joined.last_ns, int(busy.end_ns[-1])))
    handed_over_ns = joined.handed_over_ns
    launched_ns, launcher, closing, is_known = _find_launches(joined, handed_over_ns, busy.start_ns)
    # what no later event ends waits for the host until the capture ends
    launched_ns = np.clip(np.append(launched_ns, _NOT_KNOWN), start_ns, end_ns)
    thread, launch_thread = (np.append(own, _busiest(own)) for own in _threads_of(joined, launcher))
    is_known = np.append(is_known, (handed_over_ns != MISSING).any())
    closing = np.append(closing, NONE)
    kept = end_ns > start_ns
    return Gaps(
        start_ns=start_ns[kept],
        end_ns=end_ns[kept],
        launched_ns=launched_ns[kept],
        is_known=is_known[kept],
        event=closing[kept],
        thread=thread[kept],
        launch_thread=launch_thread[kept],
        latency_ns=_find_latency(handed_over_ns, start_ns, end_ns, closing),
        first_work_ns=min(int(device.start_ns.min()), int(busy.start_ns[0])),
        last_work_ns=max(int(device.end_ns.max()), int(busy.end_ns[-1])),
    )


def _find_launches(joined: Joined, handed_over_ns: I64, ends_ns: I64) -> tuple[I64, I64, I64, NDArray[np.bool_]]:
    """Return for each end of a gap the earliest time at which any of the events from then on was handed over, that
    event (-1: none is known), the event with which the gap ends (-1: none), and whether it is known when that one was.
    """
    device, is_timed = joined.events.device, handed_over_ns != MISSING
    # what the capture shows being put into a queue of the host was not queued before it
    linked = is_timed | (joined.launch >= 0)
    is_queued = ~linked & (device.start_ns < first_linked_start(device, linked)) & is_timed.any()
    launched_ns = np.where(is_timed, handed_over_ns, _NOT_KNOWN)
    launched_ns[is_queued] = _AHEAD
    works = np.flatnonzero(device.end_ns > device.start_ns)
    # of events that start at once the one that was launched first stands first
    order = works[np.lexsort((joined.launch_thread[works], launched_ns[works], device.start_ns[works]))]
    starts, launches = device.start_ns[order], launched_ns[order]
    earliest, earliest_row = _smallest_from_here(launches)
    first = np.searchsorted(starts, ends_ns, side="left")
    # a gap that ends with a collective of the host may have no event behind it
    earliest = np.append(earliest, _NOT_KNOWN)[first]
    row = np.append(order[earliest_row], NONE)[first]
    at_end = np.append(order, NONE)[first]
    ends_with_event = np.append(starts, _NOT_KNOWN)[first] == ends_ns
    closing = np.where(ends_with_event, at_end, NONE)
    is_known = np.append(is_timed | is_queued, True)[closing]
    return earliest, np.where(earliest == _NOT_KNOWN, NONE, row), closing, is_known


def _smallest_from_here(values: I64) -> tuple[I64, I64]:
    """Return for each place the smallest of the values from there on, and where the last of these stands.

    >>> [found.tolist() for found in _smallest_from_here(np.array([3, 1, 2, 1, 5]))]
    [[1, 1, 1, 1, 5], [3, 3, 3, 3, 4]]
    """
    backwards = values[::-1]
    smallest = np.minimum.accumulate(backwards)
    is_new = np.ones(len(values), dtype=bool)
    is_new[1:] = smallest[1:] < smallest[:-1]
    place = np.maximum.accumulate(np.where(is_new, np.arange(len(values)), 0))
    return smallest[::-1], len(values) - 1 - place[::-1]


def _threads_of(joined: Joined, event: I64) -> tuple[I64, I64]:
    """Return the thread of the operator that launched each event, or that of the launch call where no operator is
    known, and the thread of the call. -1 for none.
    """
    op = np.append(joined.op, NONE)[event]
    of_call = np.append(joined.launch_thread, NONE)[event]
    of_op = np.append(joined.events.ops.thread.astype(np.int64), NONE)[op]
    return np.where(op >= 0, of_op, of_call), np.where(of_call >= 0, of_call, of_op)


def _busiest(thread: I64) -> int:
    """Return the thread that comes most often, -1 for none."""
    counts = np.bincount(thread[thread >= 0], minlength=1)
    return int(counts.argmax()) if counts.any() else NONE


def _find_latency(handed_over_ns: I64, start_ns: I64, end_ns: I64, closing: I64) -> int:
    """Return twice the median time from the handover to the start on a device that does nothing, in ns, from 20 to 200
    us: 1 to 4 us on NVIDIA, 14 to 24 on MI300X.
    """
    launched_ns = np.append(handed_over_ns, MISSING)[closing]
    took_ns = (end_ns - launched_ns)[(launched_ns > start_ns) & (launched_ns <= end_ns)]
    if not len(took_ns):
        return _LEAST_LATENCY_NS
    return int(np.clip(2 * int(np.median(took_ns)), _LEAST_LATENCY_NS, _MOST_LATENCY_NS))
