"""Lets profiles out of quarantine."""

from __future__ import annotations

from pathlib import Path

from tracker.config.places import user_path
from tracker.errors import UsageError
from tracker.store import Store, inbox

ALL = "all"


def retry(store: Store, what: str, *, now_ns: int) -> list[str]:
    """Let the profile `what`, those below it, or `all` be tried again in the next round; their paths, in order.

    UsageError where none of them is quarantined.
    """
    path = user_path(what).absolute()
    chosen = [
        entry
        for entry in inbox.entries(store, open_only=True)
        if entry.state == "quarantined"
        and (what == ALL or path == Path(entry.path) or path in Path(entry.path).parents)
    ]
    if not chosen:
        where = "nothing" if what == ALL else f"{what}: nothing there"
        raise UsageError(f"{where} is quarantined", remedy="tracker status lists what is")
    inbox.retry(store, chosen, now_ns=now_ns)
    return sorted(entry.path for entry in chosen)
