"""Send what is due, each channel on its own: one that fails, or hangs, delays no other.

A message is claimed before it is sent, for a time: whoever dies with it loses it to the next. So it is sent at least
once, and by one sender at a time.
"""

from __future__ import annotations

import os
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import Connection

from tracker.config import Alerts, Channel
from tracker.notify.sending import Send, Sender
from tracker.reports._message import of_json
from tracker.results import Message
from tracker.store import Store, notifications
from tracker.store.dimensions import digest_of
from tracker.store.notifications import MOST_ATTEMPTS, Undelivered
from tracker.units import NS_PER_S

BACKOFF_NS: Final = tuple(minutes * 60 * NS_PER_S for minutes in (1, 5, 30, 120, 120))
"""From one try to the next, give or take a tenth."""

CLAIM_NS: Final = 10 * 60 * NS_PER_S
"""A claim ends so long after it was made: longer than any round lasts."""

_ROUND_S: Final = 60.0
"""A channel starts no other message in this round after so long; services allow few messages per minute."""

_HANGS_S: Final = 90.0
"""A message that takes longer is given up for this round."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """How a round went: messages `sent`, `failed` ones that will be tried again, and `dead` ones that will not."""

    sent: int = 0
    failed: int = 0
    dead: int = 0


def deliver(
    store: Store, alerts: Alerts, *, now_ns: int, environ: Mapping[str, str] = os.environ, send: Send | None = None
) -> Delivered:
    """Try every message that is due once. `send`: how, instead of with apprise.

    Messages of one channel go one after the other, on one incident in their order; channels go side by side. What a
    channel cannot take within a minute stays due.
    """
    round_ = _Round(store, {one.name: one for one in alerts.channels}, send or Sender(environ), now_ns)
    return round_.run()


class _Round:
    """One round of delivery. Threads send; only this one talks to the database."""

    def __init__(self, store: Store, channels: Mapping[str, Channel], send: Send, now_ns: int) -> None:
        self.store, self.channels, self.send, self.now_ns = store, channels, send, now_ns
        self.who = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self.done: queue.SimpleQueue[tuple[str, str | None]] = queue.SimpleQueue()
        self.sending: dict[str, Undelivered] = {}
        self.started = time.monotonic()
        self.stuck: dict[str, set[str]] = {}
        self.sent = self.failed = self.dead = 0

    def run(self) -> Delivered:
        self.dead += self.store.transact(partial(notifications.give_up, now_ns=self.now_ns))
        with self.store.connect() as connection:
            waiting = _due(notifications.undelivered(connection), self.now_ns)
        for channel in list(waiting):
            self._start_next(channel, waiting[channel])
        while self.sending:
            try:
                channel, reason = self.done.get(timeout=max(0.0, self.started + _HANGS_S - time.monotonic()))
            except queue.Empty:
                for message in self.sending.values():
                    self._failed(message, "it took too long")
                break
            self._finished(self.sending.pop(channel), reason)
            self._start_next(channel, waiting[channel])
        return Delivered(self.sent, self.failed, self.dead)

    def _start_next(self, channel: str, waiting: deque[Undelivered]) -> None:
        """Claim the next message of a channel and send it in a thread of its own."""
        while waiting and time.monotonic() - self.started < _ROUND_S:
            message = waiting.popleft()
            if message.incidents & self.stuck.get(channel, set()):
                continue  # what comes before it on the same incident did not arrive
            if not self.store.transact(partial(self._claim, number=message.id)):
                continue
            settings = self.channels.get(channel)
            if settings is None:
                self._failed(message, f"there is no channel {channel} in the settings")
            elif message.content is None:
                self._failed(message, "its text was forgotten")
            else:
                self.sending[channel] = message
                # a daemon: a service that never ends its answer must not keep the program
                threading.Thread(
                    target=self._send, args=(settings, of_json(message.content)), name=f"to {channel}", daemon=True
                ).start()
                return

    def _claim(self, connection: Connection, number: int) -> bool:
        return notifications.claim(connection, number, self.who, now_ns=self.now_ns, until_ns=self.now_ns + CLAIM_NS)

    def _send(self, channel: Channel, message: Message) -> None:
        try:
            reason = self.send(channel, message)
        except Exception as error:  # noqa: BLE001 its text may hold a secret; no channel may harm another
            reason = f"sending failed ({type(error).__name__})"
        self.done.put((channel.name, reason))

    def _finished(self, message: Undelivered, reason: str | None) -> None:
        if reason is not None:
            self._failed(message, reason)
            return
        self.store.transact(partial(notifications.mark_sent, number=message.id, now_ns=self.now_ns))
        self.sent += 1

    def _failed(self, message: Undelivered, reason: str) -> None:
        attempts = message.attempts + 1
        last = attempts >= MOST_ATTEMPTS
        next_ns = None if last else self.now_ns + backoff_ns(message.id, attempts)
        self.store.transact(
            partial(
                notifications.mark_failed, number=message.id, who=self.who, error=reason, now_ns=self.now_ns,
                next_ns=next_ns,
            )
        )  # fmt: skip
        if not last:
            self.stuck.setdefault(message.channel, set()).update(message.incidents)
        self.dead += last
        self.failed += not last


def backoff_ns(number: int, attempts: int) -> int:
    """How long a message waits after so many failed tries; messages that failed together do not come together."""
    pause = BACKOFF_NS[min(attempts, len(BACKOFF_NS)) - 1]
    part = int.from_bytes(digest_of((number, attempts))[:4]) / 2**32
    return int(pause * (0.9 + 0.2 * part))


def _due(messages: Iterable[Undelivered], now_ns: int) -> dict[str, deque[Undelivered]]:
    """Channel -> the messages that are due, the oldest first.

    A message waits for those before it on the same incident: nobody wants to read that something is over before it
    began.
    """
    found: dict[str, deque[Undelivered]] = {}
    before: dict[str, set[str]] = {}
    for message in messages:
        earlier = before.setdefault(message.channel, set())
        if message.is_due(now_ns) and not message.incidents & earlier:
            found.setdefault(message.channel, deque()).append(message)
        else:
            earlier |= message.incidents
    return found
