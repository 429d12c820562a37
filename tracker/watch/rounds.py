"""The jobs of a watcher, each a plain function, and all of them as one round.

Whatever happens in between (the process is killed, a lease is lost), a job does no harm when it is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from tracker import notify
from tracker.errors import NewerStoreError, StoreError, TrackerError
from tracker.regressions import judgement
from tracker.store import failures, inbox, pruning, watchers
from tracker.units import NS_PER_DAY, NS_PER_HOUR, counted, some_of
from tracker.watch.alarms import raise_alarms
from tracker.watch.failing import described, each, is_of_database, one_line
from tracker.watch.scan import scan
from tracker.watch.take import take, take_spooled
from tracker.watch.work import Event, Work

_ROUNDS_NS: Final = NS_PER_DAY
"""How long single rounds that ended well stay on record."""

_NIGHT_NS: Final = 20 * NS_PER_HOUR
"""A night's work is not done again before; so it may come a little earlier than the day before."""


def ingest(work: Work, *, until_ns: int | None = None) -> None:
    """Ingest what is ready, and what jobs left in the spool; begin no further profile after `until_ns`."""
    each(work, [partial(take, work, until_ns=until_ns), partial(take_spooled, work, until_ns=until_ns)])


def judge(work: Work) -> None:
    """Judge the tracks of the runs that came.

    Needs no lease: each track is locked while it is judged, and one that is up to date costs a look.
    """
    runs, work.to_judge = work.to_judge, None  # should this fail, everything is looked at the next time
    track_keys = [*judgement.tracks_of(work.store, runs), *judgement.tracks_that_waited(work.store)]
    count = judgement.update(work.store, track_keys)
    work.to_judge = set()
    if count:
        work.say(Event("judged", counted(count, "version")))


def tell(work: Work, *, only: Callable[[Work], None] | None = None) -> None:
    """Make messages of what is new, and send what is due; nothing where the settings name nobody to tell.

    What fails of it keeps nothing else from being sent. `only`: make messages of no more than this does.
    """
    alerts = work.settings.alerts
    with work.lease("tell") as ours:
        if not ours:
            return
        steps = [only or raise_alarms]
        if alerts.channels:
            steps += [_deliver] if only else [_enqueue, _deliver]
        each(work, (partial(step, work) for step in steps))


def _enqueue(work: Work) -> None:
    notify.enqueue(work.store, work.settings.alerts, now_ns=work.now())


def _deliver(work: Work) -> None:
    settings = work.settings
    done = notify.deliver(work.store, settings.alerts, now_ns=work.now(), page=settings.page, send=work.send)
    parts = {"sent": done.sent, "failed, tried again later": done.failed, "given up": done.dead}
    if any(parts.values()):
        words = [f"{count:,} {word}" for word, count in parts.items() if count]
        why = "".join(f"; {channel}: {reason}" for channel, reason in sorted(done.problems.items()))
        work.say(Event("alerted", f"messages: {', '.join(words)}{why}"))


def expire(work: Work, *, always: bool = False) -> None:
    """Forget what is gone or sent for longer than `watch.keep`; once an hour, unless `always`."""
    now, keep_ns = work.now(), work.settings.watch.keep_ns
    with work.lease("expire", undone_since_ns=None if always else now - NS_PER_HOUR) as ours:
        if not ours:
            return
        before_ns = max(0, now - keep_ns)
        gone = inbox.expire(work.store, before_ns=before_ns)
        watchers.expire(work.store, before_ns=before_ns, rounds_before_ns=now - _ROUNDS_NS)
        sent = notify.expire(work.store, now_ns=now, keep_ns=min(now, keep_ns))
        parts = [counted(count, noun) for count, noun in ((gone, "profile"), (sent, "message")) if count]
        if parts:
            work.say(Event("expired", f"{' and '.join(parts)}, gone for longer than {work.settings.watch.keep}"))


def nightly(work: Work) -> None:
    """Judge whatever is out of date, as `tracker versions judge` does, and prune as the settings say; once a night."""
    now, rule = work.now(), work.settings.prune
    with work.lease("nightly", undone_since_ns=now - _NIGHT_NS) as ours:
        if not ours:
            return
        if count := judgement.update(work.store, judgement.tracks_of(work.store)):
            work.say(Event("judged", f"{counted(count, 'version')}, out of date before"))
        if rule is None:
            return
        policy = pruning.Policy(max(0, now - rule.older_than_ns), rule.keep_versions)
        runs, rows = pruning.prune_all(work.store, policy, now_ns=now)
        if runs:
            work.say(Event("pruned", f"{counted(rows, 'row')} of details of {counted(len(runs), 'run')}"))
        branches = pruning.forget_old_branches(work.store, policy)
        if branches:
            work.say(Event("pruned", f"forgotten, with all their runs: {some_of(branches)}"))


def once(work: Work) -> None:
    """One whole round. What fails keeps no other job from its work; it is said, and at the end a TrackerError.

    Only a database that fails two jobs one after the other ends it: it is away, and each look at it may take a minute;
    and one that a newer program has upgraded, with its NewerStoreError.
    """
    failed: list[tuple[str, Exception]] = []
    away = False
    for name in ("scan", "ingest", "judge", "nightly", "tell", "expire"):
        try:
            with work.at(name):
                ONCE.get(name, JOBS[name])(work)
        except NewerStoreError:
            raise
        except Exception as error:  # noqa: BLE001 no job may end the others
            failed.append((name, error))
            work.say(Event("failed", f"{name}: {described(error)}"))
            if away and is_of_database(error):
                break
            away = is_of_database(error)
        else:
            away = False
    if not failed:
        watchers.end_round(work.store, work.owner, now_ns=work.now())
        return
    with suppress(StoreError, *failures.CONNECTION_ERRORS):
        said = f"{failed[-1][0]}: {one_line(failed[-1][1])}"
        watchers.fail(work.store, work.owner, said, now_ns=work.now())
    names = ", ".join(name for name, _ in failed)
    problem = f"of the round {counted(len(failed), 'job')} failed: {names}"
    raise TrackerError(problem, remedy="what went wrong stands above; tracker watch --once tries it again") from failed[
        0
    ][1]


JOBS: Final[Mapping[str, Callable[[Work], None]]] = {
    "scan": scan,
    "ingest": ingest,
    "judge": judge,
    "tell": tell,
    "expire": expire,
    "nightly": nightly,
}
"""In the order of a round."""

ONCE: Final[Mapping[str, Callable[[Work], None]]] = {
    "scan": partial(scan, always=True),
    "expire": partial(expire, always=True),
}
"""What is not left to another watcher that did it a moment ago."""
