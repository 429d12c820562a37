"""Which findings there may be something to say of: all but those of versions that are over, and told to be over.

So what a look costs follows what is open, not all that ever was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracker.notify.life import Heard
from tracker.notify.seen import OVER, finding_name
from tracker.store import Store, queries
from tracker.store.notifications import UNDELIVERED

_VERSION: Final = 3
"""Where the version stands in the key of an incident."""


def unsettled(store: Store, heard: Sequence[Heard]) -> list[int] | None:
    """The findings that some channel may have to hear of, with all of their version; None: all there are.

    All, where a channel is new: what is old by then has to be written down.
    """
    if not all(one.is_started for one in heard):
        return None
    rows = queries.standings(store)
    wanted = {version for one in heard for version in _on_their_way(one)}
    for row in rows:
        name = finding_name(row)
        is_news = row["direction"] == "regression" and row["state"] in OVER
        if row["state"] == "open" or (
            is_news
            and any(f"{name}.began" in one.told and f"{name}.{row['state']}" not in one.settled for one in heard)
        ):
            wanted.add(row["version_id"])
    return [row["finding_id"] for row in rows if row["version_id"] in wanted]


def _on_their_way(heard: Heard) -> list[int]:
    """The versions of messages that can still become others, or nothing."""
    keys = (key for record in heard.records if record.state in UNDELIVERED for key in record.incidents)
    return [int(key.split(".")[_VERSION]) for key in keys]
