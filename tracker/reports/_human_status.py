"""What watches, what waits and what went wrong, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from tracker.errors import without_place
from tracker.results.status import (
    ExpectedStatus,
    FolderStatus,
    MessageStatus,
    ProfileStatus,
    SpooledStatus,
    Status,
    WatcherStatus,
)
from tracker.units import counted, format_age, format_bytes, format_moment

_STATES: Final = ("waiting", "ready", "working", "quarantined", "ingested", "passed")
_WORDS: Final = {"working": "being read", "passed": "passed over"}
_LISTED: Final = 20
_LISTED_OF_QUEUE: Final = 5
"""So many are listed; of those that only wait their turn fewer; JSON has them all."""
_NAMED: Final = 5
"""Files that were not recognised are named, so many per folder; JSON has them all."""


def watchers(status: Status) -> list[str]:
    """A line per watcher."""
    return [_watcher(one, status.now_ns) for one in status.watchers] or ["none is, or was"]


def _watcher(one: WatcherStatus, now_ns: int) -> str:
    since = f"since {_moment(one.started_ns)}"
    ended = "" if one.ended_ns is None else f"{one.state} at {_moment(one.ended_ns)}"
    if one.state in ("killed", "lost"):
        ended = f"{one.state}, last heard of at {_moment(one.heartbeat_ns)}"
    rounds = "no round yet" if one.round_ns is None else f"last round {_ago(one.round_ns, now_ns)}"
    if one.state == "late":
        rounds += f", last heard of {_ago(one.heartbeat_ns, now_ns)}"
    if not ended and one.job_ns is not None:
        rounds += f", at {one.job} for {format_age(now_ns - one.job_ns)}"
    every = "one round only" if one.every_ns is None else f"every {format_age(one.every_ns)}"
    error = "" if one.error_ns is None else f"; last error {_ago(one.error_ns, now_ns)}: {one.error}"
    what = f"{ended or f'{one.state} {since}'}, {every}, {rounds}"
    return f"{one.host} pid {one.pid}: {what}{error}"


def folders(status: Status) -> list[str]:
    """A line per folder, and one below for each workload that is expected there."""
    lines = []
    for one in status.folders:
        lines.append(_folder(one, status.now_ns))
        if one.error and one.error_ns is not None:
            lines.append(f"  ERROR {one.error} (since {_moment(one.error_ns)})")
        if one.not_taken:
            named = ", ".join(f"{path.removeprefix(f'{one.path}/')} ({why})" for path, why in one.not_taken[:_NAMED])
            more = f" and {len(one.not_taken) - _NAMED} more" if len(one.not_taken) > _NAMED else ""
            lines.append(f"  {counted(len(one.not_taken), 'file')} not recognised: {named}{more}")
        lines += [f"  {_expected(each, status.now_ns)}" for each in one.expected]
    return lines


def _folder(one: FolderStatus, now_ns: int) -> str:
    where = f" on {one.host}" if one.host else ", the same for all machines"
    held = ", ".join(f"{one.profiles[state]:,} {_word(state)}" for state in _STATES if state in one.profiles)
    last = "" if one.arrived_ns is None else f"; last new run {_ago(one.arrived_ns, now_ns)}"
    return f"{one.path}/{one.layout}{where}: {held or 'no profiles'}{last}; looked at {_ago(one.looked_ns, now_ns)}"


def _expected(one: ExpectedStatus, now_ns: int) -> str:
    run = f"run:{one.run_id} of {one.version}, " if one.run_id is not None else ""
    last = "no run yet" if one.last_ns is None else f"last run {run}{_ago(one.last_ns, now_ns)}"
    due = f"MISSING since {_moment(one.due_ns)}" if one.is_missing else f"next expected by {_moment(one.due_ns)}"
    return f"{one.workload or 'any workload'}: {last}, one every {format_age(one.every_ns)}: {due}"


def profiles(status: Status, state: str) -> list[str]:
    """A line per profile in this state."""
    found = [one for one in status.profiles if one.state == state]
    most = _LISTED if state == "quarantined" else _LISTED_OF_QUEUE
    more = [f"and {len(found) - most:,} more"] if len(found) > most else []
    return [_profile(one, status.now_ns) for one in found[:most]] + more


def _profile(one: ProfileStatus, now_ns: int) -> str:
    reason = without_place(one.reason, one.path)
    if one.state == "quarantined":
        return f"{one.path}: {reason} (since {_moment(one.state_ns)})"
    parts = [format_bytes(one.size_bytes)]
    if one.state == "waiting":
        parts.append(f"stands still for {format_age(now_ns - one.changed_ns)}")
    else:
        parts.append(f"{_word(one.state)} for {format_age(now_ns - one.state_ns)}")
    if one.attempts:
        parts.append(f"tried {counted(one.attempts, 'time')}")
    if one.next_try_ns > now_ns:
        parts.append(f"again at {_moment(one.next_try_ns)}")
    return f"{one.path}: {', '.join(parts)}{f': {reason}' if reason else ''}"


def spooled(status: Status) -> list[str]:
    """A line per folder that is shut, then one per profile that a job queued."""
    found = status.spooled
    more = [f"and {len(found) - _LISTED:,} more"] if len(found) > _LISTED else []
    shut = [f"ERROR {one.path}: {one.problem}" for one in status.shut]
    return shut + [_spooled(one, status.now_ns) for one in found[:_LISTED]] + more


def _spooled(one: SpooledStatus, now_ns: int) -> str:
    tried = f", tried {counted(one.attempts, 'time')}" if one.attempts else ""
    fate = f"queued for {format_age(now_ns - one.queued_ns)}"
    if one.is_given_up:
        kept = "" if one.kept_until_ns is None else f", kept until {_moment(one.kept_until_ns)}"
        fate = f"given up, see {one.entry}{kept}"
    elif one.next_try_ns > now_ns:
        tried += f", again at {_moment(one.next_try_ns)}"
    why = without_place(one.why, one.profile)
    return f"{one.profile or one.entry}: {fate}{tried}{f': {why}' if why else ''}"


def messages(status: Status) -> list[str]:
    """A line per message that was not delivered."""
    found = status.messages
    more = [f"and {len(found) - _LISTED:,} more: tracker notify --list"] if len(found) > _LISTED else []
    return [_message(one, status.now_ns) for one in found[:_LISTED]] + more


def _message(one: MessageStatus, now_ns: int) -> str:
    tried = f", tried {counted(one.attempts, 'time')}" if one.attempts else ""
    state = "given up" if one.state == "dead" else one.state
    error = f": {one.last_error}" if one.last_error else ""
    return f"{one.id} to {one.channel}, {state} for {format_age(now_ns - one.created_ns)}{tried}: {one.title}{error}"


def silences(status: Status) -> list[str]:
    """A line per silence, and how many findings are muted one by one."""
    lines = [
        f"op {one.op}, workload {one.workload}, device {one.device} until {_moment(one.until_ns)}, by {one.who}: "
        f"{one.reason}"
        for one in status.silences
    ]
    return [*lines, f"{counted(status.muted, 'finding')}: tracker findings --state muted"] if status.muted else lines


def answer(status: Status) -> str:
    """What matters, and what to do next."""
    alive = sum(one.state == "alive" for one in status.watchers)
    late = sum(one.is_missing for folder in status.folders for one in folder.expected)
    states = Counter(one.state for one in status.profiles)
    wrong = sum(bool(folder.error) for folder in status.folders)
    dead = sum(one.state == "dead" for one in status.messages)
    parts = [
        f"{counted(alive, 'watcher')} alive",
        f"{counted(wrong, 'folder')} with an error" if wrong else "",
        f"{counted(late, 'workload')} without the run that was expected" if late else "",
        *(f"{counted(states[state], 'profile')} {_word(state)}" for state in _order(states)),
        f"{len(status.spooled):,} queued by jobs" if status.spooled else "",
        f"{counted(len(status.shut), 'folder')} of spools that cannot be taken from" if status.shut else "",
        f"{counted(dead, 'message')} given up" if dead else "",
        f"{counted(len(status.messages) - dead, 'message')} not delivered yet" if len(status.messages) > dead else "",
    ]
    return f"{', '.join(filter(None, parts))}.  Next: {_next(status, alive, states)}"


def _order(states: Counter[str]) -> Iterator[str]:
    return (state for state in ("quarantined", "working", "ready", "waiting") if states[state])


def _next(status: Status, alive: int, states: Counter[str]) -> str:
    if states["quarantined"]:
        return "tracker watch --retry all, once they can be read"
    if any(one.state == "dead" for one in status.messages):
        return "tracker notify --test, then tracker notify --retry dead"
    if not alive and not status.folders:
        return "tracker watch --help"
    if not alive:
        return "tracker watch, or tracker watch --once from cron"
    return "tracker findings --new"


def sections(status: Status) -> Sequence[tuple[str, Sequence[str]]]:
    """Titles and lines, in the order in which they are asked for."""
    return (
        ("Watchers", watchers(status)),
        ("Folders", folders(status)),
        ("Quarantined, tried again when their files change", profiles(status, "quarantined")),
        ("Being read", profiles(status, "working")),
        ("Ready", profiles(status, "ready")),
        ("Waiting", profiles(status, "waiting")),
        ("Queued by jobs of this machine", spooled(status)),
        ("Messages", messages(status)),
        ("Muted", silences(status)),
    )


def _word(state: str) -> str:
    return _WORDS.get(state, state)


def _moment(ns: int) -> str:
    return f"{format_moment(ns)} UTC"


def _ago(ns: int, now_ns: int) -> str:
    return f"{format_age(now_ns - ns)} ago"
