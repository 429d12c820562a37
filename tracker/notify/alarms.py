"""What happened that is no incident: no run came, a profile cannot be read, a watcher is gone, a budget is not met."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Alarm(Struct, frozen=True):
    """What happened: `key` makes it one message of its kind. `workload`: empty where it is about all of them."""

    key: str
    kind: Literal["missing_runs", "quarantined", "watcher", "budget", "budget_met"]
    workload: str
    title: str
    lines: tuple[str, ...] = ()
    severity: str = "warning"
