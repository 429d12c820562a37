"""What users say of findings: it changes what is shown, alerted and gated, never a verdict, a level, or an end. A note
changes nothing of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

from msgspec import Struct

Row = dict[str, Any]
Action = Literal["ack", "expect", "mute", "unmute", "invalid", "note"]


class Said(Struct, frozen=True):
    """Where a finding stands for its readers. `until_ns`, `until_version`: end of a mute."""

    state: str
    until_ns: int | None = None
    until_version: str | None = None


def state_of(base: str, *, is_new: bool, words: Sequence[Row], versions: Collection[str], now_ns: int) -> Said:
    """The state of a finding: its own, and what users said in the order of time.

    `base`: as the judgement says; `is_new`: the newest version decided it; `versions`: labels that have runs in its
    track, which end mutes. A finding that has ended is over whatever was said, but for invalid.
    """
    said = Said("new" if is_new else "persisting") if base == "open" else Said(base)
    quiet: Said | None = None
    for word in words:
        action = word["action"]
        if action == "invalid":
            said, quiet = Said("invalid"), None
        elif action == "note" or base != "open" or said.state == "invalid":
            continue
        elif action == "mute":
            quiet = Said("muted", word["until_ns"], word["until_version"])
        elif action == "unmute":
            quiet = None
        else:
            said, quiet = Said("acknowledged" if action == "ack" else "expected"), None
    if quiet is None:
        return said
    is_over = quiet.until_version in versions if quiet.until_ns is None else quiet.until_ns <= now_ns
    return said if is_over else quiet


def refusal(state: str, action: Action) -> str:
    """Why a finding in this state cannot take a word; "" where it can.

    >>> refusal("recovered", "mute"), refusal("new", "unmute"), refusal("new", "ack")
    ('it is recovered, and needs no mute', 'it is not muted', '')
    """
    if action == "note":
        return ""
    if action == "unmute":
        return "" if state == "muted" else "it is not muted"
    if state in ("recovered", "taken back", "accepted", "vanished") and action != "invalid":
        return f"it is {state}, and needs no {action}"
    if state == "invalid":
        return "it is invalid already"
    if state == "expected" and action in ("ack", "expect", "mute"):
        return "it is expected already"
    return ""
