"""What users say of findings: acknowledged, expected, muted until an end, wrong, or a note; and what they take back.
Kept for ever: it changes what is shown, alerted and gated, never a verdict, a level, or an end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from tracker.errors import UsageError, check_reason
from tracker.regressions.found import FoundFinding
from tracker.regressions.inbox import counting_marks, found_rows
from tracker.results import CONFIRMED_STATES, ENDED_STATES
from tracker.store import Store, queries
from tracker.store import findings as stored_findings
from tracker.store import tracks as stored_tracks
from tracker.store.findings import Action, Word
from tracker.store.queries.judgement import UserWord

_LIST: Final = "tracker findings --state all --all lists them"
_NONE: Final = "there are none yet: tracker runs lists what there is"
_NUMBER: Final = re.compile(r"(I-|incident:)?(\d{1,18})", re.ASCII)


def numbers_of(targets: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return the findings (`12`) and incidents (`I-3`) that texts name; UsageError for any other text."""
    findings: list[int] = []
    incidents: list[int] = []
    for target in targets:
        found = _NUMBER.fullmatch(target)
        if found is None:
            raise UsageError(f"{target!r} is no finding", remedy="give numbers, or I-N; tracker findings lists them")
        (incidents if found[1] else findings).append(int(found[2]))
    return findings, incidents


def refusal(state: str, action: Action) -> str:
    """Say why a finding in this state cannot take a word; "" where it can.

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
    rows = _read_findings(store, wish, finding_ids, incident_ids)
    chosen: dict[int, FoundFinding] = {}
    for number in dict.fromkeys(finding_ids):
        if number not in rows:
            raise UsageError(f"there is no finding {number}", remedy=_LIST if rows else _NONE)
        why = refusal(rows[number].state, wish.action)
        if why:
            raise UsageError(f"finding {number}: {why}", remedy=f"tracker explain {number}")
        chosen[number] = rows[number]
    for number in dict.fromkeys(incident_ids):
        own = {finding: row for finding, row in rows.items() if row.incident_id == number}
        if not own:
            raise UsageError(f"there is no incident I-{number}", remedy=_LIST if rows else _NONE)
        able = {}
        for finding, row in own.items():
            is_meant = wish.action == "note" or row.state in (*CONFIRMED_STATES, "expected")
            if is_meant and not refusal(row.state, wish.action):
                able[finding] = row
        if not able:
            raise UsageError(f"I-{number}: no finding of it can be changed by {wish.action}", remedy=_LIST)
        chosen |= able
    below = set(chosen)
    while more := {number for number, row in rows.items() if row.under in below} - below:
        below |= more
    chosen |= {n: rows[n] for n in below - chosen.keys() if not refusal(rows[n].state, wish.action)}

    def write(connection: Connection) -> None:
        for track_key in dict.fromkeys(row.track_key for row in chosen.values()):
            if wish.until_version in {run.version for run in stored_tracks.list_track_runs(connection, track_key)}:
                raise UsageError(
                    f"version {wish.until_version!r} is here already", remedy="name a later one, or a date"
                )
        stored_findings.add_words(connection, chosen, wish)

    store.transact(write)
    return sorted(chosen)


def undo(
    store: Store, wish: Word, *, finding_ids: Sequence[int] = (), incident_ids: Sequence[int] = ()
) -> list[tuple[int, str]]:
    """Take back the last mark of these findings, and of those of these incidents the newest one; all or nothing.

    Return the number of each finding with the mark that it had. The mark and who took it back stay in its events. Notes
    are comments and stay. What a finding covers loses the mark that it got with it. UsageError for a finding that there
    is not, that has no mark, or of whose track a version was judged since: that one was shown, alerted and gated by it.
    """
    check_reason(wish.reason)
    rows = _read_findings(store, wish, finding_ids, incident_ids)
    last_marks = {number: own[-1] for number, own in _marks_of(store).items() if number in rows}
    chosen: dict[int, UserWord] = {}
    for number in dict.fromkeys(finding_ids):
        if number not in rows:
            raise UsageError(f"there is no finding {number}", remedy=_LIST if rows else _NONE)
        if number not in last_marks:
            raise UsageError(f"finding {number} has no mark to take back", remedy=f"tracker explain {number}")
        chosen[number] = last_marks[number]
    for number in dict.fromkeys(incident_ids):
        own = [finding for finding, row in rows.items() if row.incident_id == number]
        if not own:
            raise UsageError(f"there is no incident I-{number}", remedy=_LIST if rows else _NONE)
        marked = [last_marks[finding] for finding in own if finding in last_marks]
        if not marked:
            raise UsageError(f"no finding of I-{number} has a mark to take back", remedy=f"tracker explain I-{number}")
        newest = max(marked, key=lambda mark: (mark.when_ns, mark.mark_id))
        chosen |= {mark.finding_id: mark for mark in marked if _are_one_act(mark, newest)}
    below = set(chosen)
    while more := {number for number, row in rows.items() if row.under in below} - below:
        below |= more
    for number in below - chosen.keys():
        mark = last_marks.get(number)
        if mark is not None and any(_are_one_act(mark, other) for other in list(chosen.values())):
            chosen[number] = mark

    def write(connection: Connection) -> None:
        track_keys = {rows[number].track_key for number in chosen}
        for track_key in sorted(track_keys, key=lambda key: tuple(key.parameters.values())):
            # no version may be judged between the question and the answer
            stored_findings.lock_track(connection, track_key)
        for number, mark in chosen.items():
            _check_nothing_came_since(connection, rows[number].track_key, number, mark)
            if not stored_findings.take_back(connection, mark.mark_id, wish):
                raise UsageError(f"finding {number}: another user took this back", remedy=f"tracker explain {number}")

    store.transact(write)
    return sorted((number, mark.action) for number, mark in chosen.items())


def _read_findings(
    store: Store, wish: Word, finding_ids: Sequence[int], incident_ids: Sequence[int]
) -> dict[int, FoundFinding]:
    """Return all findings by number; what covers what is known in the incidents that are named, whatever their state.

    A finding that is marked as invalid covers what it covered before, so that an undo takes all of it back.
    """

    def is_named(row: FoundFinding) -> bool:
        return row.finding_id in finding_ids or row.incident_id in incident_ids

    rows = found_rows(store, now_ns=wish.when_ns, wanted=is_named, with_invalid=wish.action == "undo")
    return {row.finding_id: row for row in rows if row.finding_id is not None}


def _marks_of(store: Store) -> dict[int, list[UserWord]]:
    """Return the marks of each finding that has one that counts."""
    marks = {number: counting_marks(words) for number, words in queries.finding_words(store).items()}
    return {number: own for number, own in marks.items() if own}


def _are_one_act(mark: UserWord, other: UserWord) -> bool:
    """Return whether two findings got their marks by one command or form."""
    acts = [(one.action, one.who, one.when_ns, one.reason) for one in (mark, other)]
    return acts[0] == acts[1]


def _check_nothing_came_since(
    connection: Connection, track_key: stored_tracks.TrackKey, number: int, mark: UserWord
) -> None:
    """Raise UsageError where a version of the track was judged after a mark was given, or nobody knows."""
    what = f"finding {number}: {mark.action} by {mark.who} cannot be taken back"
    remedy = f"tracker note {number} --reason TEXT adds a comment"
    if mark.newest_version_id is None:
        raise UsageError(f"{what}: what was judged before it is not known", remedy=remedy)
    later = stored_findings.find_version_judged_after(connection, track_key, mark.newest_version_id)
    if later is not None:
        raise UsageError(f"{what}: {later} was judged since", remedy=remedy)
