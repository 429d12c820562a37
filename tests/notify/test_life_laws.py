"""Laws of messages: whatever happens, in whatever order, with whatever failures, these hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from unittest.mock import patch

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from tests.notify.made import DAY, HOUR, MINUTE, NOW, Box, alerts, recorded
from tests.regressions.found import made_finding
from tracker import notify
from tracker.config import Rule
from tracker.notify import composing, enqueueing, seen
from tracker.notify.routes import SEVERITIES, Subject
from tracker.notify.seen import LIVE, Incident, Seen
from tracker.results import Message
from tracker.store import notifications, open_store

CHANNELS = ("sound", "flaky")
SETTINGS = alerts(
    Rule(channels=CHANNELS, severity="info"),
    Rule(channels=("late",), severity="info", when="grouped"),
    Rule(channels=("late",), severity="critical", when="at once"),
    channels=(*CHANNELS, "late"),
)
WITHOUT_REMINDERS = replace(SETTINGS, repeat="5000w")
STATES = ("persisting", "acknowledged", "muted", "recovered", "vanished", "expected", "invalid")
OPEN = {"new", "persisting", "acknowledged"}
"""What a finding can leave; a mute ends by itself."""


@dataclass
class Made:
    """A finding whose life is a game: what happened to it, and where it stands."""

    number: int
    incident: int
    state: str = "new"
    before: str = "new"
    muted_until: int | None = None

    def unmute(self) -> None:
        self.state, self.muted_until = self.before, None

    def seen(self) -> Seen:
        name = f"{self.number}"
        over = self.state in {"recovered", "vanished"}
        return Seen(
            row=made_finding(self.number, f"op{name}", incident_id=self.incident, state=self.state),
            group=("op", name),
            is_top=True,
            is_silent=self.state == "muted",
            began=f"{name}.began",
            ended=f"{name}.{self.state}" if over else None,
        )  # fmt: skip


@dataclass
class World:
    """What `seen.read` would read, and the messages made of it, without a profile."""

    findings: list[Made] = field(default_factory=list)

    def read(self, *_) -> list[Incident]:
        keys = sorted({one.incident for one in self.findings})
        return [
            Incident(f"1.1.1.{key}.regression", f"1.{key}.regression", True,
                     tuple(one.seen() for one in self.findings if one.incident == key),
            ) for key in keys
        ]  # fmt: skip


class PlainComposer(composing.Composer):
    """Messages without numbers: only their life is looked at. An incident of two findings is more severe."""

    def subject(self, key):
        count = sum(one.is_open for one in self.incidents[key].findings)
        return Subject("gpt", "cpu", SEVERITIES[min(1 + count, 2)], "regression", ["op"])

    def is_part_of_another(self, key):
        return False

    def held_back(self, key):
        return ""

    def message(self, keys, wish):
        severity = max((self.subject(key).severity for key in keys), key=SEVERITIES.index)
        return Message(event=wish.event, key=wish.key, workload="gpt", title=" ".join(keys), severity=severity)


class Life(RuleBasedStateMachine):
    """Findings come, are muted, end; time goes by; watchers look; channels fail, and senders are killed."""

    def __init__(self):
        super().__init__()
        self.store = open_store("sqlite://")
        self.world, self.box, self.now = World(), Box(), NOW
        self.patches = [
            patch.object(seen, "read", self.world.read),
            patch.object(enqueueing, "Composer", PlainComposer),
        ]
        for one in self.patches:
            one.start()

    def teardown(self):
        self.settle()
        for one in self.patches:
            one.stop()
        self.store.close()

    @initialize()
    def start(self):
        notify.enqueue(self.store, SETTINGS, now_ns=self.now)

    @rule(incident=st.integers(1, 3))
    def confirm(self, incident):
        if len(self.world.findings) < 8:
            self.world.findings.append(Made(len(self.world.findings) + 1, incident))

    @precondition(lambda self: self.world.findings)
    @rule(place=st.integers(0, 7), state=st.sampled_from(STATES))
    def change(self, place, state):
        found = self.world.findings[place % len(self.world.findings)]
        if found.state not in OPEN:
            return
        if state == "muted":
            found.before = found.state
        found.state = state
        found.muted_until = self.now + DAY if state == "muted" else None

    @rule(pause=st.sampled_from([MINUTE, 5 * MINUTE, HOUR, 7 * HOUR, DAY, 8 * DAY]))
    def wait(self, pause):
        self.now += pause
        for found in self.world.findings:
            if found.muted_until is not None and found.muted_until <= self.now:
                found.unmute()

    @rule(broken=st.booleans())
    def fail(self, broken):
        self.box.broken = {"flaky"} if broken else set()

    @rule()
    def look(self):
        notify.enqueue(self.store, SETTINGS, now_ns=self.now)
        before = {record.id: record for record in recorded(self.store)}
        notify.deliver(self.store, SETTINGS, now_ns=self.now, send=self.box)
        own = [one for one in before.values() if one.channel == "sound" and one.settled_ns is None]
        if any((one.claimed_until_ns or 0) > self.now or one.attempts for one in own):
            return  # somebody else has one, and what follows on the same incident waits for it
        after = {record.id: record.state for record in recorded(self.store)}
        due = [one.id for one in own if one.state == "pending" and one.next_try_ns <= self.now]
        assert all(after[number] == "sent" for number in due), "a failing channel delays no other"

    @rule()
    def look_twice_changes_nothing(self):
        notify.enqueue(self.store, SETTINGS, now_ns=self.now)
        assert notify.enqueue(self.store, SETTINGS, now_ns=self.now) == 0

    @rule()
    def killed_with_claims(self):
        """A sender claims all that is due, and is never seen again."""

        def claim(connection):
            for one in notifications.undelivered(connection):
                notifications.claim(connection, one.id, "dead", now_ns=self.now, until_ns=self.now + 10 * MINUTE)

        self.store.transact(claim)

    @invariant()
    def no_key_is_there_twice(self):
        keys = Counter((record.key, record.channel) for record in recorded(self.store))
        assert not [key for key, count in keys.items() if count > 1]

    @invariant()
    def no_event_is_told_twice(self):
        for channel in (*CHANNELS, "late"):
            told = Counter(
                event for record in recorded(self.store)
                if record.channel == channel and record.state in notifications.TOLD for event in record.covers
            )  # fmt: skip
            assert not [event for event, count in told.items() if count > 1]

    @invariant()
    def nobody_tries_more_than_six_times(self):
        assert all(record.attempts <= notifications.MOST_ATTEMPTS for record in recorded(self.store))

    def settle(self):
        """In the end everything is delivered, given up or unwanted, and what is live was told."""
        for found in self.world.findings:
            if found.state == "muted":
                found.unmute()
        quiet = 0
        for _ in range(100):  # a channel that is down takes six days for each message, one after the other
            self.now += DAY
            made = notify.enqueue(self.store, WITHOUT_REMINDERS, now_ns=self.now)
            notify.deliver(self.store, WITHOUT_REMINDERS, now_ns=self.now, send=self.box)
            records = recorded(self.store)
            is_settled = {record.state for record in records} <= {"sent", "dead", "skipped"}
            quiet = quiet + 1 if is_settled and not made else 0
            if quiet == 2:
                break
        assert quiet == 2, "there is always more to tell"
        told = {event for one in records if one.channel == "sound" and one.state == "sent" for event in one.covers}
        live = {found.seen().began for found in self.world.findings if found.state in LIVE}
        assert live <= told


TestLife = Life.TestCase
