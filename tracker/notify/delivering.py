"""Send what is due, each channel on its own: one that fails, or hangs, delays no other.

A message is claimed before it is sent, for a time. The claim of a sender that died ends at once on the same machine,
else when the time is over. So a message is sent at least once, and by one sender at a time.

A sender is called HOST/PROCESSES/PID/START/TOKEN. PROCESSES: the boot and the process namespace, in which alone a PID
means something; START: when the process began, in ticks since the boot, since PIDs come again. Where the system tells
neither (no /proc), a claim lasts until it ends by itself.
"""

from __future__ import annotations

import os
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from tracker.config import Alerts, Channel, PageRoles
from tracker.hooks import spool
from tracker.notify.linking import Linker
from tracker.notify.sending import Send
from tracker.notify.sending_process import SendingProcesses
from tracker.reports.message import of_json
from tracker.results import Message
from tracker.store import Store, notifications
from tracker.store.dimensions import digest_of
from tracker.store.notifications import MOST_ATTEMPTS, Undelivered
from tracker.units import NS_PER_MINUTE, NS_PER_S

BACKOFF_NS: Final = tuple(minutes * NS_PER_MINUTE for minutes in (1, 5, 30, 120, 120))
"""From one try to the next, give or take a tenth."""

CLAIM_NS: Final = 10 * NS_PER_MINUTE
"""A claim ends so long after it was made: longer than anybody waits for a message."""

_ROUND_S: Final = 60.0
"""A channel starts no other message in this round after so long; services allow few messages per minute."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """How a round went: messages `sent`, `failed` ones that will be tried again, and `dead` ones that will not.

    `problems`: channel -> why its last message could not be delivered, without secrets.
    """

    sent: int = 0
    failed: int = 0
    dead: int = 0
    problems: Mapping[str, str] = field(default_factory=dict, compare=False)


def deliver(
    store: Store,
    alerts: Alerts,
    *,
    now_ns: int,
    page: PageRoles = PageRoles(),  # noqa: B008 it cannot be changed
    environ: Mapping[str, str] = os.environ,
    send: Send | None = None,
) -> Delivered:
    """Try every message that is due once. `page`: where its links lead; `send`: how, instead of with apprise.

    Messages of one channel go one after the other, on one incident in their order; channels go side by side. What a
    channel cannot take within a minute stays due. A message takes as long as `send` does: with apprise, at most
    `sending_process.MESSAGE_S`.
    """
    channels = {one.name: one for one in alerts.channels}
    linker = Linker(page, store.repository)
    with SendingProcesses(environ) as processes:
        return _Round(store, channels, send or processes, linker, now_ns).run()


class _Round:
    """One round of delivery. Threads send; only this one talks to the database."""

    def __init__(self, store: Store, channels: Mapping[str, Channel], send: Send, linker: Linker, now_ns: int) -> None:
        self.store, self.channels, self.send, self.linker = store, channels, send, linker
        self.began_ns = now_ns
        self.who = new_claimant()
        self.done: queue.SimpleQueue[tuple[Undelivered, str | None]] = queue.SimpleQueue()
        self.sending: set[str] = set()
        self.started = time.monotonic()
        self.stuck: dict[str, set[str]] = {}
        self.sent = self.failed = self.dead = 0
        self.problems: dict[str, str] = {}

    @property
    def now_ns(self) -> int:
        """The time, in whole seconds since the round began: a message may take its time."""
        return self.began_ns + int(time.monotonic() - self.started) * NS_PER_S

    def run(self) -> Delivered:
        self.store.transact(partial(notifications.release_claims, is_dead=is_dead, now_ns=self.now_ns))
        self.dead += self.store.transact(partial(notifications.give_up, now_ns=self.now_ns))
        with self.store.connect() as connection:
            waiting = due(notifications.undelivered(connection), self.now_ns)
        for channel in list(waiting):
            self._start_next(channel, waiting[channel])
        while self.sending:
            message, reason = self.done.get()
            self.sending.remove(message.channel)
            if reason is None:
                self.store.transact(partial(notifications.mark_sent, number=message.id, now_ns=self.now_ns))
                self.sent += 1
            else:
                self._failed(message, reason)
            self._start_next(message.channel, waiting[message.channel])
        return Delivered(self.sent, self.failed, self.dead, self.problems)

    def _start_next(self, channel: str, waiting: deque[Undelivered]) -> None:
        """Claim the next message of a channel and send it in a thread of its own."""
        while waiting and time.monotonic() - self.started < _ROUND_S:
            message = waiting.popleft()
            if message.incidents & self.stuck.get(channel, set()):
                continue  # what comes before it on the same incident did not arrive
            until_ns = self.now_ns + CLAIM_NS
            claim = partial(notifications.claim, who=self.who, now_ns=self.now_ns, until_ns=until_ns)
            if not self.store.transact(partial(claim, number=message.id)):
                continue
            settings = self.channels.get(channel)
            if settings is None:
                self._failed(message, f"there is no channel {channel} in the settings")
            elif (text := self._readable(message)) is not None:
                self.sending.add(channel)
                # a daemon: Ctrl-C ends the program at once
                threading.Thread(
                    target=self._send, args=(settings, message, text), name=f"to {channel}", daemon=True
                ).start()
                return

    def _readable(self, message: Undelivered) -> Message | None:
        """What a message says; None: it cannot be told, now or ever, and is given up."""
        try:
            if message.content is None:
                raise ValueError("its text was forgotten")
            return of_json(message.content)
        except ValueError as error:
            self._failed(message, str(error), for_good=True)
            return None

    def _send(self, channel: Channel, message: Undelivered, text: Message) -> None:
        try:
            reason = self.send(channel, self.linker.link(text))
        except Exception as error:  # noqa: BLE001 its text may hold a secret; no channel may harm another
            reason = f"sending failed ({type(error).__name__})"
        self.done.put((message, reason))

    def _failed(self, message: Undelivered, reason: str, *, for_good: bool = False) -> None:
        attempts = message.attempts + 1
        last = for_good or attempts >= MOST_ATTEMPTS
        next_ns = None if last else self.now_ns + backoff_ns(message.id, attempts)
        ours = self.store.transact(
            partial(
                notifications.mark_failed, number=message.id, who=self.who, error=reason, now_ns=self.now_ns,
                next_ns=next_ns,
            )
        )  # fmt: skip
        if not (ours and last):
            self.stuck.setdefault(message.channel, set()).update(message.incidents)
        if not ours:  # somebody else is sending it by now, and will say what became of it
            return
        self.problems[message.channel] = reason
        self.dead += last
        self.failed += not last


def expire(store: Store, *, now_ns: int, keep_ns: int) -> int:
    """Forget messages and silences that were settled longer ago than `keep_ns`; how many.

    That an incident was told stays known, without the text of it.
    """
    return store.transact(partial(notifications.forget, before_ns=now_ns - keep_ns))


def backoff_ns(number: int, attempts: int) -> int:
    """How long a message waits after so many failed tries; messages that failed together do not come together."""
    pause = BACKOFF_NS[min(attempts, len(BACKOFF_NS)) - 1]
    part = int.from_bytes(digest_of((number, attempts))[:4]) / 2**32
    return int(pause * (0.9 + 0.2 * part))


def due(messages: Iterable[Undelivered], now_ns: int) -> dict[str, deque[Undelivered]]:
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


def new_claimant() -> str:
    """A name that nobody else has."""
    token = uuid.uuid4().hex[:12]
    return "/".join((spool.host_name(), _processes(), str(os.getpid()), _start(os.getpid()), token))


def is_dead(claimant: str) -> bool:
    """Whether the process of this name has ended for sure; False for those of other machines, and where unknown."""
    host, processes, pid, start, _ = parts if len(parts := claimant.split("/")) == 5 else ("",) * 5
    if not (processes and start) or (host, processes) != (spool.host_name(), _processes()):
        return False
    now = _start(int(pid))
    if now:
        return now != start
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:  # another user's, whose processes are hidden from us
        return False
    return _is_zombie(int(pid))


def _processes() -> str:
    """The boot and the namespace of our processes, '' where the system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}.{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _start(pid: int) -> str:
    """When a process began; '' where there is none that we see, or only its remains."""
    fields = _stat(pid)
    return fields[19] if fields and not _is_zombie(pid) else ""


def _is_zombie(pid: int) -> bool:
    return _stat(pid)[:1] in (["Z"], ["X"])


def _stat(pid: int) -> list[str]:
    """The fields from the state on; the name of the program before them, in brackets, may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
