"""What goes wrong in watching itself: profiles in quarantine, runs that do not come, watchers that died."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from tracker import intake
from tracker.errors import without_place
from tracker.notify import Alarm
from tracker.notify import alarm as alarm_people
from tracker.notify.enqueueing import Remember
from tracker.store import inbox, watchers
from tracker.store.dimensions import digest_of
from tracker.store.inbox import Entry
from tracker.store.watchers import Expectation, LastRun, Watcher
from tracker.units import NS_PER_HOUR, NS_PER_MINUTE, counted, format_age, format_moment
from tracker.watch.failing import each
from tracker.watch.work import Event, Work

DEAD_AFTER_NS: Final = 10 * NS_PER_MINUTE
"""A watcher that was silent for so long, and for five of its rounds, is dead."""

STUCK_AFTER_NS: Final = NS_PER_HOUR
"""A watcher that has been at one job, or one profile, for so long, and for five of its rounds, hangs."""

_NAMED: Final = 10
"""So many profiles are named in an alarm; more are counted."""


def raise_alarms(work: Work) -> None:
    """Make messages of everything that was not told of yet.

    What nobody is to hear now (there is no channel, or a silence) stays untold. The message, and that it was told, are
    written at once or not at all. What fails keeps none of the others from being told.
    """
    kinds = (_tell_of_quarantined, _tell_of_given_up, _tell_of_shut, _tell_of_missing, _tell_of_dead, tell_of_stuck)
    each(work, (partial(tell, work) for tell in kinds))


def missing(expected: Sequence[Expectation], now_ns: int) -> list[Expectation]:
    """Where a run should have come and did not."""
    return [one for one in expected if one.is_late(now_ns)]


def is_dead(watcher: Watcher, now_ns: int) -> bool:
    """Whether a watcher ended without a word."""
    silent = now_ns - watcher.heartbeat_ns
    return watcher.ended_ns is None and silent > max(DEAD_AFTER_NS, 5 * (watcher.every_ns or 0))


def is_stuck(doing: tuple[str, int] | None, every_ns: int | None, now_ns: int) -> bool:
    """Whether what is `doing` since a moment takes longer than anything should."""
    return doing is not None and now_ns - doing[1] > max(STUCK_AFTER_NS, 5 * (every_ns or 0))


def _tell_of_quarantined(work: Work) -> None:
    """One alarm for all of a folder and workload: a bad day brings many bad profiles, and one message."""
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in inbox.entries(work.store, open_only=True):
        if entry.state == "quarantined" and not entry.told:
            groups.setdefault((entry.host, entry.folder, entry.workload), []).append(entry)
    for (host, folder, workload), entries in groups.items():
        key = digest_of((host, *(part for entry in entries for part in (entry.path, entry.content.hex())))).hex()
        more = [f"and {len(entries) - _NAMED:,} more"] if len(entries) > _NAMED else []
        alarm = Alarm(
            key=key,
            kind="quarantined",
            workload=workload,
            title=f"{counted(len(entries), 'profile')} in {folder} cannot be read",
            lines=(
                *(f"{entry.path}: {without_place(entry.reason, entry.path)}" for entry in entries[:_NAMED]),
                *more,
                "They are tried again when their files change, or after: tracker watch --retry all",
            ),
        )
        _alarm(work, alarm, partial(inbox.tell, quarantined=entries))


def _tell_of_given_up(work: Work) -> None:
    """What was tried too often in a spool; an entry that stays there is told of once, since its key stays too."""
    for one in (one for place in work.spools() for one in intake.waiting(place, work.touch) if one.given_up):
        alarm = Alarm(
            key=f"spool:{digest_of((str(one.entry),)).hex()}",
            kind="quarantined",
            workload="",
            title="a profile that a job queued cannot be read",
            lines=(
                f"{one.profile or one.entry}: {without_place(one.why, one.profile)}",
                f"It was tried {counted(one.attempts, 'time')}, and lies in {one.entry} now.",
            ),
        )
        _alarm(work, alarm)


def _tell_of_shut(work: Work) -> None:
    """What jobs of other users queued where this one may not take it."""
    problems = [(str(place), problem) for place, problem in work.shut()]
    problems += [
        (one.profile or str(one.entry), one.why)
        for place in work.spools()
        for one in intake.waiting(place, work.touch)
        if one.is_barred
    ]
    for place, problem in problems:
        work.say_once(f"shut:{place}", Event("folder", f"{place}: {problem}"))
        alarm = Alarm(
            key=f"shut:{digest_of((work.host, place, problem)).hex()}",
            kind="quarantined",
            workload="",
            title=f"{work.host} cannot take what jobs queued",
            lines=(f"{place}: {problem}", "How jobs of several users share a queue: docs/operate.md"),
        )
        _alarm(work, alarm)


def _tell_of_missing(work: Work) -> None:
    now = work.now()
    late = [one for one in missing(watchers.expectations(work.store, now_ns=now), now) if one.told_ns != one.since_ns]
    last = watchers.last_runs(work.store) if late else {}
    for one in late:
        alarm = _alarm_of_missing(one, last.get(one.workload))
        work.say_once(alarm.key, Event("missing", f"{alarm.title}; {alarm.lines[0]}"))
        _alarm(work, alarm, partial(watchers.tell_gap, expected=one))


def _alarm_of_missing(one: Expectation, last: LastRun | None) -> Alarm:
    what = f"run of {one.workload}" if one.workload else "run"
    if one.last_ns is None:
        known = f"there never was one since the watch began at {format_moment(one.first_seen_ns)} UTC"
    elif last is not None:
        known = f"the last one, run:{last.run_id} of {last.version}, came at {format_moment(one.last_ns)} UTC"
    else:
        known = f"the last one came at {format_moment(one.last_ns)} UTC"
    where = f"{one.folder} on {one.host}" if one.host else one.folder
    return Alarm(
        key=f"{digest_of((one.host, one.folder, one.workload)).hex()}:{one.since_ns}",
        kind="missing_runs",
        workload=one.workload,
        title=f"no {what} for {format_age(one.every_ns)}",
        lines=(
            known,
            f"One was expected in {where} by {format_moment(one.since_ns + one.every_ns)} UTC.",
            "What waits there, and why: tracker status",
        ),
    )


def _tell_of_dead(work: Work) -> None:
    now = work.now()
    for watcher in watchers.watchers(work.store):
        if watcher.owner != work.owner and is_dead(watcher, now):
            if not watchers.end(work.store, watcher.owner, "lost", now_ns=now, heartbeat_ns=watcher.heartbeat_ns):
                continue  # it was heard of just now
            last = f"last heard of at {format_moment(watcher.heartbeat_ns)} UTC"
            work.say(Event("watcher", f"{watcher.host} pid {watcher.pid} is gone, {last}"))
    for watcher in watchers.watchers(work.store):
        if watcher.outcome != "lost" or watcher.told:
            continue
        alarm = Alarm(
            key=f"{watcher.owner}:{watcher.heartbeat_ns}",
            kind="watcher",
            workload="",
            title=f"the watcher on {watcher.host} is gone",
            lines=(
                f"Process {watcher.pid} was last heard of at {format_moment(watcher.heartbeat_ns)} UTC.",
                *([f"Its last error: {watcher.error}"] if watcher.error else []),
                "Start it again there: tracker watch. Who watches now: tracker status",
            ),
        )
        _alarm(work, alarm, partial(watchers.tell, watcher=watcher))


def tell_of_stuck(work: Work) -> None:
    """Make a message of each watcher that lives and does not move, once for each thing that it is at."""
    now = work.now()
    for watcher in watchers.watchers(work.store):
        doing = watcher.doing
        if doing is None or watcher.ended_ns is not None or not is_stuck(doing, watcher.every_ns, now):
            continue
        what, since_ns = doing
        age = format_age(now - since_ns)
        work.say_once(f"stuck:{watcher.owner}", Event("watcher", f"{watcher.host} pid {watcher.pid} hangs: {what}"))
        alarm = Alarm(
            key=f"stuck:{watcher.owner}:{since_ns}",
            kind="watcher",
            workload="",
            title=f"the watcher on {watcher.host} hangs",
            lines=(
                f"Process {watcher.pid} has been at one thing for {age}: {what}",
                "Its other work waits. To end it and go on: stop that process, and start tracker watch again",
                "What it does now: tracker status",
            ),
        )
        _alarm(work, alarm)


def _alarm(work: Work, alarm: Alarm, then: Remember | None = None) -> None:
    alarm_people(work.store, work.settings.alerts, alarm, now_ns=work.now(), then=then)
