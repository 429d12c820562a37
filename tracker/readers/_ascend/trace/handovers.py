"""When the work of a trace was handed over to the device: by arrows `HostToDevice`, else by the calls of CANN."""

from __future__ import annotations

import numpy as np

from tracker.profile import I64
from tracker.readers._ascend.handovers import Handovers, LaunchCalls
from tracker.readers._ascend.trace.device import DeviceRows, TraceTasks
from tracker.readers._ascend.trace.host import CONNECTIONS, Host


def handovers_of(rows: DeviceRows, tasks: TraceTasks, host: Host) -> Handovers:
    """Return when each device event was handed over.

    An arrow ends where its task starts, within 1 ns; it begins at the start of the call. Without an arrow the call of
    CANN that has the connection of the event is that call.
    """
    arrows, calls = tasks.handovers, host.calls
    starts = np.flatnonzero(arrows["is_end"] == 0)
    lanes = arrows["lane"][starts]
    threads = host.thread_of[lanes] if len(lanes) else np.zeros(0, dtype=np.int32)
    begins = LaunchCalls(arrows["id"][starts], arrows["time_ns"][starts], threads)
    by_arrow = Handovers.by_key(begins, _arrow_ids(rows, tasks), rows.task_start_ns)
    connected = LaunchCalls(calls.correlation, calls.start_ns, calls.thread)
    named = np.where(rows.connection >= 0, CONNECTIONS + rows.connection, -1)
    return by_arrow.or_else(Handovers.by_key(connected, named, rows.task_start_ns))


def _arrow_ids(rows: DeviceRows, tasks: TraceTasks) -> I64:
    """Return the id of the arrow that ends at each device event: on its stream, else on any; -1 for none."""
    arrows = tasks.handovers
    ends = np.flatnonzero(arrows["is_end"] == 1)
    found = np.full(len(rows.task_start_ns), -1, dtype=np.int64)
    if not len(ends):
        return found
    times_ns, ids = arrows["time_ns"][ends], arrows["id"][ends]
    streams = tasks.lane_stream[arrows["lane"][ends]]
    own_streams = rows.events.stream
    any_stream = np.zeros(len(ends), dtype=np.int64), np.zeros(len(found), dtype=np.int64)
    for stream, own_stream in ((streams, own_streams), any_stream):
        for near in (0, -1, 1):
            lacks = np.flatnonzero(found < 0)
            row = _rows_of_pairs(stream, times_ns, own_stream[lacks], rows.task_start_ns[lacks] + near)
            found[lacks] = np.append(ids, -1)[row]
    return found


def _rows_of_pairs(streams: I64, times_ns: I64, of_stream: I64, of_time_ns: I64) -> I64:
    """Return the first row with each pair of stream and time, -1 for none."""
    moments, moment = np.unique(times_ns, return_inverse=True)
    lanes, lane = np.unique(streams, return_inverse=True)
    pairs, first = np.unique(lane * len(moments) + moment, return_index=True)
    own_moment = np.minimum(np.searchsorted(moments, of_time_ns), len(moments) - 1)
    own_lane = np.minimum(np.searchsorted(lanes, of_stream), len(lanes) - 1)
    place = np.minimum(np.searchsorted(pairs, own_lane * len(moments) + own_moment), len(pairs) - 1)
    row = first[place]
    return np.where((streams[row] == of_stream) & (times_ns[row] == of_time_ns), row, -1)
