"""What users say of findings: acknowledged, expected, muted until an end, wrong, or a note. Kept for ever: it changes
what is shown, alerted and gated, never a verdict, a level, or an end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection

from tracker.errors import UsageError, check_reason
from tracker.regressions.inbox import found_rows, track_key_of
from tracker.results import CONFIRMED_STATES, ENDED_STATES
from tracker.store import Store
from tracker.store import findings as stored_findings
from tracker.store import tracks as stored_tracks
from tracker.store.findings import Action, Word

_LIST: Final = "tracker findings --state all --all lists them"
_NONE: Final = "there are none yet: tracker runs lists what there is"
_NUMBER: Final = re.compile(r"(I-|incident:)?(\d{1,18})", re.ASCII)


def numbers_of(targets: Sequence[str]) -> tuple[list[int], list[int]]:
    """The findings (`12`) and incidents (`I-3`) that texts name; UsageError for any other text."""
    findings: list[int] = []
    incidents: list[int] = []
    for target in targets:
        found = _NUMBER.fullmatch(target)
        if found is None:
            raise UsageError(f"{target!r} is no finding", remedy="give numbers, or I-N; tracker findings lists them")
        (incidents if found[1] else findings).append(int(found[2]))
    return findings, incidents


def refusal(state: str, action: Action) -> str:
    """Why a finding in this state cannot take a word; "" where it can.

    >>> refusal("recovered", "mute"), refusal("new", "unmute"), refusal("new", "ack")
    ('it is recovered, and needs no mute', 'it is not muted', '')
    """
    if action == "note":
        return ""
    if action == "unmute":
        return "" if state == "muted" else "it is not muted"
    if state in ENDED_STATES and action != "invalid":
        return f"it is {state}, and needs no {action}"
    if state == "invalid":
        return "it is invalid already"
    if state == "expected" and action in ("ack", "expect", "mute"):
        return "it is expected already"
    return ""


def act(store: Store, wish: Word, *, finding_ids: Sequence[int] = (), incident_ids: Sequence[int] = ()) -> list[int]:
    """Say of these findings, and of those of these incidents that can take it, what a user wants; their numbers.

    All or nothing. What a finding covers takes the same word. UsageError names a finding that there is not, or that
    cannot be changed so, and an incident of which no finding can.
    """
    check_reason(wish.reason)
    if wish.action == "mute" and wish.until_ns is not None and wish.until_ns <= wish.when_ns:
        raise UsageError("a mute needs an end that lies ahead", remedy="give a later one")
    rows = {row["finding_id"]: row for row in found_rows(store, now_ns=wish.when_ns) if row["finding_id"] is not None}
    chosen: dict[int, dict[str, Any]] = {}
    for number in dict.fromkeys(finding_ids):
        if number not in rows:
            raise UsageError(f"there is no finding {number}", remedy=_LIST if rows else _NONE)
        why = refusal(rows[number]["state"], wish.action)
        if why:
            raise UsageError(f"finding {number}: {why}", remedy=f"tracker explain {number}")
        chosen[number] = rows[number]
    for number in dict.fromkeys(incident_ids):
        own = [row for row in rows.values() if row["incident_id"] == number]
        if not own:
            raise UsageError(f"there is no incident I-{number}", remedy=_LIST if rows else _NONE)
        meant = (row for row in own if wish.action == "note" or row["state"] in (*CONFIRMED_STATES, "expected"))
        able = [row for row in meant if not refusal(row["state"], wish.action)]
        if not able:
            raise UsageError(f"I-{number}: no finding of it can be changed by {wish.action}", remedy=_LIST)
        chosen |= {row["finding_id"]: row for row in able}
    below = set(chosen)
    while more := {number for number, row in rows.items() if row["under"] in below} - below:
        below |= more
    chosen |= {n: rows[n] for n in below - chosen.keys() if not refusal(rows[n]["state"], wish.action)}

    def write(connection: Connection) -> None:
        for track_key in dict.fromkeys(map(track_key_of, chosen.values())):
            if wish.until_version in {run.version for run in stored_tracks.list_track_runs(connection, track_key)}:
                raise UsageError(
                    f"version {wish.until_version!r} is here already", remedy="name a later one, or a date"
                )
        stored_findings.add_words(connection, chosen, wish)

    store.transact(write)
    return sorted(chosen)
