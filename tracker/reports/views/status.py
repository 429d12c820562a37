"""The document of a status: whether something is wrong, then watchers, folders, profiles and messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tracker.errors import without_place
from tracker.reports.document import Document, Lines, Look
from tracker.reports.rows import plain
from tracker.reports.view import View
from tracker.results.status import FolderStatus, MessageStatus, ProfileStatus, SpooledStatus, Status, WatcherStatus
from tracker.units import counted, format_age, format_bytes, format_moment, some_of

_STATES: Final = ("waiting", "ready", "working", "quarantined", "ingested", "passed")
_WORDS: Final = {"working": "being read", "passed": "skipped"}
_LISTED: Final = 10
_QUEUE: Final = 5
_NAMED: Final = 5


def document(status: Status, look: Look) -> Document:
    """Return the status, problems first; lists are cut, and say how many they leave out."""
    problems, now = _problems(status), status.now_ns
    alive = sum(one.state == "alive" for one in status.watchers)
    queue = [one for state in ("working", "ready", "waiting") for one in status.profiles if one.state == state]
    bad = [
        f"{one.path}: {without_place(one.reason, one.path)} (since {_moment(one.state_ns)})"
        for one in status.profiles
        if one.state == "quarantined"
    ]
    muted = [f"{counted(status.muted, 'finding')}: tracker findings --state muted"] if status.muted else []
    silences = [
        f"op {one.op}, workload {one.workload}, device {one.device} until {_moment(one.until_ns)}, by {one.who}: "
        f"{one.reason}"
        for one in status.silences
    ]
    spooled = [f"ERROR {one.path}: {one.problem}" for one in status.shut]
    spooled += _cut([_spooled(one, now) for one in status.spooled], _LISTED, look)
    sections = (
        ("Watchers", _cut([_watcher(one, now) for one in status.watchers], _LISTED, look) or ["none has run"]),
        ("Folders", [line for one in status.folders for line in _folder(one, now)]),
        ("Quarantined, tried again when their files change", _cut(bad, _LISTED, look)),
        ("On their way", _cut([_queued(one, now) for one in queue], _QUEUE, look)),
        ("Queued by jobs of this machine", spooled),
        ("Messages", _cut([_message(one, now) for one in status.messages], _LISTED, look, "tracker notify --list")),
        ("Alerts that wait for runs", _cut([one.sentence for one in status.waiting_alerts], _LISTED, look)),
        ("Muted", [*_cut(silences, _LISTED, look), *muted]),
        ("The judge, of the last 30 versions", [status.judge.sentence] if status.judge.sentence else []),
    )
    undelivered = sum(one.state != "dead" for one in status.messages)
    counts = [f"{counted(alive, 'watcher')} alive"]
    counts += [f"{counted(len(queue), 'profile')} on {'its' if len(queue) == 1 else 'their'} way"] if queue else []
    counts += [f"{len(status.spooled):,} queued by jobs"] if status.spooled else []
    counts += [f"{counted(undelivered, 'message')} to deliver"] if undelivered else []
    words = [f"{counted(count, noun)} {what}" for count, noun, what in problems]
    total = counted(sum(count for count, *_ in problems), "problem")
    start = f"{total}: {', '.join(words)}" if problems else "No problem"
    following = ["tracker watch --retry all"] if bad else []
    following += ["tracker notify --retry dead"] if any(one.state == "dead" for one in status.messages) else []
    following += ["tracker watch --once" if status.folders else "tracker watch --help"] if not alive else []
    # a database without runs has no findings either
    following += ["tracker findings --new"] if any("ingested" in one.profiles for one in status.folders) else []
    return Document(
        title=f"{status.database} at {_moment(now)}",
        headline=f"{start}; {', '.join(counts)}",
        tone="worse" if problems else "",
        blocks=tuple(Lines(title, tuple(lines)) for title, lines in sections),
        next_commands=tuple(following),
    )


def _problems(status: Status) -> list[tuple[int, str, str]]:
    """Say how many of what have which problem."""
    states = [one.state for one in status.watchers]
    missing = sum(one.is_missing for folder in status.folders for one in folder.expected)
    gone = states.count("killed") + states.count("lost") if "alive" not in states else 0
    found = (
        (sum(one.state == "quarantined" for one in status.profiles), "profile", "quarantined"),
        (sum(bool(folder.error) for folder in status.folders), "folder", "with an error"),
        (missing, "workload", "without its expected run"),
        (states.count("late"), "watcher", "late"),
        (gone, "watcher", "killed or lost, and none alive"),
        (sum(one.is_given_up for one in status.spooled), "queued profile", "given up"),
        (len(status.shut), "spool folder", "not readable"),
        (sum(one.state == "dead" for one in status.messages), "message", "given up"),
    )
    return [each for each in found if each[0]]


def _cut(lines: Sequence[str], most: int, look: Look, whole: str = "tracker status --format json") -> list[str]:
    shown = lines if look.details else lines[:most]
    more = len(lines) - len(shown)
    return [*shown, *([f"and {more:,} more: {whole}"] if more else [])]


def _watcher(one: WatcherStatus, now_ns: int) -> str:
    state = f"{one.state} since {_moment(one.started_ns)}"
    if one.state in ("killed", "lost"):
        why = "process is gone" if one.state == "killed" else "heartbeat expired"
        state = f"{one.state} ({why}), last heartbeat at {_moment(one.heartbeat_ns)}"
    elif one.ended_ns is not None:
        state = f"{one.state} at {_moment(one.ended_ns)}"
    parts = [state, "one round only" if one.every_ns is None else f"every {format_age(one.every_ns)}"]
    parts.append("no round yet" if one.round_ns is None else f"last round {_ago(one.round_ns, now_ns)}")
    if one.state == "late":
        parts.append(f"last heartbeat {_ago(one.heartbeat_ns, now_ns)}")
    if one.state in ("alive", "late") and one.job_ns is not None:
        parts.append(f"{one.job} for {format_age(now_ns - one.job_ns)}")
    error = "" if one.error_ns is None else f"; last error {_ago(one.error_ns, now_ns)}: {one.error}"
    return f"{one.host} pid {one.pid}: {', '.join(parts)}{error}"


def _folder(one: FolderStatus, now_ns: int) -> list[str]:
    """Return a line for a folder.

    Below, its error, files that no reader takes, and each workload that is expected there.
    """
    where = f" on {one.host}" if one.host else ", the same for all machines"
    held = ", ".join(
        f"{one.profiles[state]:,} {_WORDS.get(state, state)}" for state in _STATES if state in one.profiles
    )
    last = "" if one.arrived_ns is None else f"; last new run {_ago(one.arrived_ns, now_ns)}"
    lines = [f"{one.path}/{one.layout}{where}: {held or 'no profiles'}{last}; last scan {_ago(one.looked_ns, now_ns)}"]
    if one.error and one.error_ns is not None:
        lines.append(f"  ERROR {one.error} (since {_moment(one.error_ns)})")
    if one.not_taken:
        named = some_of([f"{path.removeprefix(f'{one.path}/')} ({why})" for path, why in one.not_taken], most=_NAMED)
        lines.append(f"  {counted(len(one.not_taken), 'file')} not recognised: {named}")
    for each in one.expected:
        run = f"run:{each.run_id} of {each.version}, " if each.run_id is not None else ""
        came = "no run yet" if each.last_ns is None else f"last run {run}{_ago(each.last_ns, now_ns)}"
        due = f"{'MISSING since' if each.is_missing else 'next expected by'} {_moment(each.due_ns)}"
        lines.append(f"  {each.workload or 'any workload'}: {came}, one every {format_age(each.every_ns)}: {due}")
    return lines


def _queued(one: ProfileStatus, now_ns: int) -> str:
    since = f"unchanged for {format_age(now_ns - one.changed_ns)}" if one.state == "waiting" else ""
    since = since or f"for {format_age(now_ns - one.state_ns)}"
    parts = [f"{_WORDS.get(one.state, one.state)} {since}", format_bytes(one.size_bytes)]
    parts += [f"tried {counted(one.attempts, 'time')}"] if one.attempts else []
    parts += [f"again at {_moment(one.next_try_ns)}"] if one.next_try_ns > now_ns else []
    reason = without_place(one.reason, one.path)
    return f"{one.path}: {', '.join(parts)}{f': {reason}' if reason else ''}"


def _spooled(one: SpooledStatus, now_ns: int) -> str:
    parts = [f"queued for {format_age(now_ns - one.queued_ns)}"]
    if one.is_given_up:
        parts = [f"given up, see {one.entry}"]
        parts += [] if one.kept_until_ns is None else [f"kept until {_moment(one.kept_until_ns)}"]
    parts += [f"tried {counted(one.attempts, 'time')}"] if one.attempts else []
    parts += [f"again at {_moment(one.next_try_ns)}"] if not one.is_given_up and one.next_try_ns > now_ns else []
    why = without_place(one.why, one.profile)
    return f"{one.profile or one.entry}: {', '.join(parts)}{f': {why}' if why else ''}"


def _message(one: MessageStatus, now_ns: int) -> str:
    state = "given up" if one.state == "dead" else one.state
    tried = f", tried {counted(one.attempts, 'time')}" if one.attempts else ""
    error = f": {one.last_error}" if one.last_error else ""
    return f"{one.id} to {one.channel}, {state} for {format_age(now_ns - one.created_ns)}{tried}: {one.title}{error}"


def _moment(ns: int) -> str:
    return f"{format_moment(ns)} UTC"


def _ago(ns: int, now_ns: int) -> str:
    return f"{format_age(now_ns - ns)} ago"


def list_json(status: Status, look: Look) -> dict[str, Any]:
    """Return all that the status says, as it is."""
    document: dict[str, Any] = plain(status)
    return document


VIEW = View(document, json=list_json, hides=("markdown",))
