"""Sends messages in a process of its own for each channel, which is killed where a message takes too long.

A service may answer byte by byte and never end, and a plugin may wait for what never comes. Nothing ends a thread.
"""

from __future__ import annotations

import pickle
import signal
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from tracker.config import Channel
from tracker.limits.processes import Helper, answer_each
from tracker.notify.addresses import BadAddress, address_of
from tracker.notify.sending import Sender
from tracker.results import Message

MESSAGE_S: Final = 90.0
"""A message that takes longer failed, and its process is killed."""

TOO_LONG: Final = "it took too long"

_GRACE_S: Final = 5
"""After its time, a process whose parent was killed ends itself."""


class SendingProcesses:
    """Sends messages, those of a channel one after the other in its process; use it in a `with` statement.

    Channels may be used side by side, each by one thread at a time. seconds: what a message may take.
    """

    def __init__(self, environ: Mapping[str, str], seconds: float = MESSAGE_S) -> None:
        self._environ = environ
        self._seconds = seconds
        self._helpers: dict[str, Helper] = {}
        self._to_look_at: set[str] = set()

    def __call__(self, channel: Channel, message: Message) -> str | None:
        """Send `message`; why it failed, without secrets, or None."""
        try:
            address = address_of(channel, self._environ)
        except BadAddress as problem:
            return str(problem)
        # through a pipe: the arguments of a process can be read by all users
        ready = Channel(name=channel.name, url=address, form=channel.form)
        try:
            if channel.name not in self._helpers:
                self._helpers[channel.name] = Helper(__name__)
            reason, is_to_look_at = self._helpers[channel.name].ask((ready, message, self._seconds), self._seconds)
        except TimeoutError:
            self._end(channel.name)
            return TOO_LONG
        except (EOFError, OSError, pickle.UnpicklingError):
            self._end(channel.name)
            return "the process that sends it ended"
        if is_to_look_at:
            self._to_look_at.add(channel.name)
        return None if reason is None else str(reason)

    def to_look_at(self, channel: Channel) -> bool:
        """Return whether the service may say that it took a message, and not show it."""
        return channel.name in self._to_look_at

    def _end(self, name: str) -> None:
        helper = self._helpers.pop(name, None)
        if helper is not None:
            helper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for name in list(self._helpers):
            self._end(name)


def main() -> None:
    """Send the messages that the other process hands over."""
    sender = Sender({})

    def send(question: tuple[Channel, Message, float]) -> tuple[str | None, bool]:
        channel, message, seconds = question
        signal.alarm(round(seconds) + _GRACE_S)
        reason = sender(channel, message)
        signal.alarm(0)
        return reason, sender.to_look_at(channel)

    answer_each(send)
