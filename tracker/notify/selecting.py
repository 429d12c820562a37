"""Which findings there may be something to say of: all but those of versions that are over, and told to be over.

So what a look costs follows what is open, not all that ever was.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from tracker.notify.life import Heard
from tracker.notify.seen import finding_name
from tracker.store import Store, findings
from tracker.store.findings import Standing
from tracker.store.notifications import UNDELIVERED

_CLOSED: Final = frozenset({"recovered", "vanished", "normal", "expected", "invalid"})
"""States that no reminder, and nothing worse, follows; what comes back has another one."""

_VERSION: Final = 3
"""Where the version stands in the key of an incident."""


def unsettled(store: Store, heard: Sequence[Heard]) -> list[int] | None:
    """The findings of incidents that some channel may have to hear of, with all of their version; None: all there are.

    All, where a channel is new: what is old by then has to be written down.
    """
    if not all(one.is_started for one in heard):
        return None
    with store.connect() as connection:
        standings = findings.standings(connection)
    asked = {version for one in heard for version in _on_their_way(one)}
    told = [(one, _told_names(one)) for one in heard]
    wanted = asked | {
        one.version_id
        for one in standings
        if one.state not in _CLOSED or any(_is_news(one, own, names) for own, names in told)
    }
    return [one.finding_id for one in standings if one.version_id in wanted]


def _is_news(finding: Standing, heard: Heard, told: Collection[str]) -> bool:
    """Whether a channel was told of what is over by now, and not that it is."""
    if finding.named.direction != "regression" or finding.ended_by is None:
        return False
    name = finding_name(finding.named)
    return name in told and f"{name}.{finding.ended_by}.{finding.ended_run_id}" not in heard.settled


def _told_names(heard: Heard) -> frozenset[str]:
    return frozenset(event.rsplit(".", 2)[0] for event in heard.told)


def _on_their_way(heard: Heard) -> list[int]:
    """The versions of messages that can still become others, or nothing."""
    keys = (key for record in heard.records if record.state in UNDELIVERED for key in record.incidents)
    return [int(key.split(".")[_VERSION]) for key in keys]
