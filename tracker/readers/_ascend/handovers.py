"""When the host handed work over to the device, and the thread that did so.

What links a device event to its op is no launch: a framework puts work into a queue of the host, from which a thread of
CANN takes it, compiles what is new, and launches it. An arrow `HostToDevice` of a trace leads from a moment in the call
that launches to the start of the task. In a database call and task have one connection id: the moment is the start of
the call.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from tracker.profile import I32, I64, MISSING, Events

CLOCKS_NS: Final = 20_000
"""By how much a task may begin before the call that launched it, where several calls have its key: the clocks of host
and device differ.
"""
UNKNOWN: Final = "it is not known when its work was launched, nor why it idles"
"""What a capture of a device says of which all handovers are missing."""


class LaunchCalls(Struct, frozen=True):
    """Calls that launch, each with the `key` by which device events name it, -1 for none."""

    key: I64
    start_ns: I64
    thread: I32


class Handovers(Struct, frozen=True):
    """Per device event when it was handed over, or MISSING, and the thread that did so, or -1."""

    ns: I64
    thread: I32

    @classmethod
    def by_key(cls, calls: LaunchCalls, key: I64, start_ns: I64) -> Handovers:
        """Return the handovers of device events that name their call by a key, -1 for none, and start at `start_ns`."""
        row = find_latest(calls.key, calls.start_ns, key, start_ns + CLOCKS_NS)
        ns = np.append(calls.start_ns, MISSING)[row]
        thread = np.append(calls.thread, -1)[row]
        return cls(ns.astype(np.int64), thread.astype(np.int32))

    def or_else(self, other: Handovers) -> Handovers:
        """Return these handovers, where they are not known the other ones."""
        is_known = self.ns != MISSING
        return Handovers(np.where(is_known, self.ns, other.ns), np.where(is_known, self.thread, other.thread))


def lacks_all(events: Events) -> bool:
    """Return whether calls or arrows lead to the device, and none of them says when it was handed its work."""
    linked = events.launches.correlation[events.launches.correlation >= 0]
    has_launches = np.isin(events.device.correlation, linked).any()
    return bool(has_launches and (events.extras.handover_ns == MISSING).all())


def find_latest(keys: I64, times_ns: I64, of_key: I64, until_ns: I64) -> I64:
    """Return for each key and time the row of the last of the times of that key until then, the first of all where none
    is; -1 where no time has the key.

    >>> keys, times_ns = np.array([7, 7, 8]), np.array([10, 20, 30])
    >>> find_latest(keys, times_ns, np.array([7, 7, 8, 9, -1]), np.array([19, 20, 29, 50, 50])).tolist()
    [0, 1, 2, -1, -1]
    """
    found = np.full(len(of_key), -1, dtype=np.int64)
    if not len(keys) or not len(of_key):
        return found
    order = np.lexsort((times_ns, keys))
    moments, number = np.unique(times_ns, return_inverse=True)
    distinct, code = np.unique(keys, return_inverse=True)
    own = np.minimum(np.searchsorted(distinct, of_key), len(distinct) - 1)
    # one number per key and time, in their order
    place = (code * (len(moments) + 1) + number)[order]
    asked = own * (len(moments) + 1) + np.searchsorted(moments, until_ns, side="right") - 1
    first = np.searchsorted(place, own * (len(moments) + 1), side="left")
    last = np.searchsorted(place, asked, side="right") - 1
    row = order[np.maximum(first, last)]
    is_found = (of_key >= 0) & (keys[row] == of_key)
    found[is_found] = row[is_found]
    return found
