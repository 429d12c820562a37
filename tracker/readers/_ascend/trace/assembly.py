"""The events of a capture: the host by its trace, the device by its tables and its trace, and what links them."""

from __future__ import annotations

from tracker.profile import Allocations, Events, Extras, Strings, empty
from tracker.readers._ascend.kernels import Kernels
from tracker.readers._ascend.trace.collectives import Told, calls_of
from tracker.readers._ascend.trace.device import TraceTasks, device_rows
from tracker.readers._ascend.trace.events import Trace
from tracker.readers._ascend.trace.handovers import handovers_of
from tracker.readers._ascend.trace.host import Host, launches_of


def events_of(
    host: Host, tasks: TraceTasks, kernels: Kernels | None, trace: Trace | None, told: Told, strings: Strings
) -> tuple[Events, list[str]]:
    """The events, and warnings of what did not fit.

    `host` and `tasks`: those of `trace`. `kernels`: None where no table has them; such a table lists no copies, which
    are unknown without tasks of a trace. Allocations are empty, markers those of the trace, and of the extras only
    blocks, tasks, handovers and what is known of collectives and copies is there.
    """
    rows = device_rows(kernels, tasks, strings)
    handovers = handovers_of(rows, tasks, host)
    calls = calls_of(rows, trace, tasks.collectives, told, strings)
    events = Events(
        strings=strings,
        threads=host.threads,
        thread_process=(0,) * len(host.threads),
        ops=host.ops,
        frames=host.frames,
        launches=launches_of(host, rows.events.correlation, tasks.arrows, rows.used_arrows, strings),
        device=calls.events,
        collectives=calls.table,
        allocations=empty(Allocations),
        markers=host.markers,
        extras=Extras(
            block_num=rows.block_num,
            task=rows.task,
            collective_times=calls.times,
            collective_tasks=calls.tasks,
            collective_links=calls.links,
            no_copies=kernels is not None and not len(tasks.tasks["start_ns"]),
            handover_ns=handovers.ns,
            handover_thread=handovers.thread,
        ),
    )
    unused = f"{calls.unused} records of communication.json fit no collective of the device"
    return events, [unused] if calls.unused else []
