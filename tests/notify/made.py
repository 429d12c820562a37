"""What tests of messages share: settings, a place where messages arrive, and lines of runs that get slower."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from tests.regressions.made import runs
from tracker import notify
from tracker.config import Alerts, Channel, Rule
from tracker.regressions.judgement import tracks_of, update
from tracker.results import Message
from tracker.store import notifications, queries
from tracker.store import runs as edits

MINUTE = 60 * 10**9
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NOW = 1_800_000_000 * 10**9
"""A Friday, 08:00 UTC; runs of `tests.regressions.made` are older."""


def alerts(*rules: Rule, channels=("team",), **more) -> Alerts:
    """Settings with these channels; without rules, the first channel hears of every regression."""
    found = rules or (Rule(channels=channels[:1], severity="info"),)
    return Alerts(channels=tuple(Channel(name=name, url_env=name) for name in channels), rules=found, **more)


@dataclass
class Box:
    """Where messages arrive. `broken`: channels that refuse everything."""

    arrived: list[tuple[str, Message]] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, channel, message):
        if channel.name in self.broken:
            return "it answered 500"
        with self.lock:
            self.arrived.append((channel.name, message))
        return None

    def take(self) -> list[str]:
        """Channel and event of what arrived since the last time."""
        found = [f"{channel} {message.event}" for channel, message in self.arrived]
        self.arrived.clear()
        return found


@dataclass
class Team:
    """A database with its settings, and a clock that only this moves."""

    store: object
    alerts: Alerts
    box: Box = field(default_factory=Box)
    now_ns: int = NOW

    def look(self) -> None:
        """One look of a watcher."""
        notify.enqueue(self.store, self.alerts, now_ns=self.now_ns)
        notify.deliver(self.store, self.alerts, now_ns=self.now_ns, send=self.box)

    def round(self, after: int = 0) -> list[str]:
        """One look some time later: what arrived, as `Box.take` says it."""
        self.now_ns += after
        self.look()
        return self.box.take()

    def rounds(self, after: int = 0) -> list[str]:
        """A round, and one when what is grouped is due."""
        return self.round(after) + self.round(2 * MINUTE)

    def states(self) -> list[str]:
        """Event and state of every message, without marks and what nobody was to hear."""
        return [
            f"{record.event} {record.state}"
            for record in recorded(self.store)
            if record.event not in {"start", "passed"}
        ]


def recorded(store):
    with store.connect() as connection:
        return notifications.records(connection)


def slower(store, version="v2", factor=1.5, start=3, count=3, op="op07", **more):
    """`count` runs of a version in which `op` takes `factor` times its 1 ms of a step of 40 ms."""
    runs(store, version, {op: factor}, start=start, count=count, **more)
    update(store, tracks_of(store))


def same(store, version, start, count=3, **more):
    """Runs in which nothing is slower."""
    runs(store, version, start=start, count=count, **more)
    update(store, tracks_of(store))


def again(store, changed):
    """Somebody excludes the runs of v2; three others replace them, in which ops take so many times as long."""
    edits.exclude_all(store, queries.run_ids_of_version(store, "v2"), "another job on the node")
    runs(store, "v2", changed, start=6)
    update(store, tracks_of(store))


def text_of_database(path: Path) -> bytes:
    """All bytes of a SQLite database and its log."""
    return b"".join(Path(f"{path}{end}").read_bytes() for end in ("", "-wal") if Path(f"{path}{end}").exists())
