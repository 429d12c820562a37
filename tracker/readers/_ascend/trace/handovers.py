"""When the work of a trace was handed over to the device: by arrows `HostToDevice`, else by the calls of CANN."""

from __future__ import annotations

import numpy as np

from tracker.readers._ascend.handovers import Handovers, LaunchCalls
from tracker.readers._ascend.trace.device import DeviceRows, TraceTasks, find_arrows
from tracker.readers._ascend.trace.host import CONNECTIONS, Host


def handovers_of(rows: DeviceRows, tasks: TraceTasks, host: Host) -> Handovers:
    """Return when each device event was handed over.

    An arrow ends where its task starts, within 1 ns, and begins in the call that launches it. Without an arrow it is
    the start of the call of CANN that has the connection of the event.
    """
    arrows, calls = tasks.handovers, host.calls
    starts = np.flatnonzero(arrows["is_end"] == 0)
    lanes = arrows["lane"][starts]
    threads = host.thread_of[lanes] if len(lanes) else np.zeros(0, dtype=np.int32)
    begins = LaunchCalls(arrows["id"][starts], arrows["time_ns"][starts], threads)
    ids = find_arrows(arrows, tasks.lane_stream, rows.events.stream, rows.task_start_ns)
    by_arrow = Handovers.by_key(begins, ids, rows.task_start_ns)
    connected = LaunchCalls(calls.correlation, calls.start_ns, calls.thread)
    named = np.where(rows.connection >= 0, CONNECTIONS + rows.connection, -1)
    return by_arrow.or_else(Handovers.by_key(connected, named, rows.task_start_ns))
