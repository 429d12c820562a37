"""Watches folders: from a profile that is complete to a run, its judgement and a message; again and again.

Each job is a plain function of `rounds` with a clock of its own; `service` runs them as a process. What is known lies
in the database: the inbox (profiles on their way), leases (who is at what), watchers and folders. So a watcher that
was killed is followed by any other, and several get along.
"""

from __future__ import annotations

from tracker.watch.retrying import retry
from tracker.watch.rounds import once
from tracker.watch.service import EXIT_INTERRUPTED, Service, check
from tracker.watch.status import status
from tracker.watch.work import Event, Stopped, Work, new_owner, this_host

__all__ = [
    "EXIT_INTERRUPTED", "Event", "Service", "Stopped", "Work", "check", "new_owner", "once", "retry", "status",
    "this_host",
]  # fmt: skip
