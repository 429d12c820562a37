"""`tracker notify`: send pending notifications, test channels, list and retry messages."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tracker import api, config
from tracker.api.arguments import opened
from tracker.cli.options import Database
from tracker.cli.output import Column, emit, emit_list, next_lines, note
from tracker.errors import EXIT_COULD_NOT_RUN, UsageError
from tracker.results.options import Option
from tracker.units import counted, format_moment, printable

if TYPE_CHECKING:
    from tracker.config import Channel, Settings
    from tracker.results.waiting import WaitingAlert


_MESSAGES: Final = (
    Column("id", right=True), Column("channel"), Column("state"), Column("tries", "attempts", right=True),
    Column("made", "created_ns", format_moment), Column("next try", "next_try_ns", format_moment),
    Column("message", "title"), Column("why", "last_error"),
)  # fmt: skip
_SILENCES: Final = (
    Column("silence", "silence_id", right=True), Column("op"), Column("workload"), Column("device"),
    Column("until", "until_ns", format_moment), Column("who"), Column("why", "reason"),
)  # fmt: skip


def notify(
    channels: Annotated[
        list[str] | None, Option("With --test: only these channels.", "CHANNEL...", positional=True)
    ] = None,
    test: Annotated[bool, Option("Send a test message on each channel; no database is needed.")] = False,
    listed: Annotated[bool, Option("List pending, failed and given up messages, and mutes.", name="--list")] = False,
    retry: Annotated[
        str | None,
        Option("Retry a message that failed or was given up, or all given up ones (dead). Default: none.", "ID|dead"),
    ] = None,
    dry_run: Annotated[bool, Option("Print the messages that would be sent now, and change nothing.")] = False,
    db: Database = None,
) -> None:
    """Send pending notifications by [alerts] of the settings file, in one round; tracker watch does it by itself.

    There is one message per incident and channel. One that cannot be delivered is retried after 1, 5, 30, 120 and 120
    minutes, and then given up.

    \b
    Example:
      tracker notify --test
      tracker notify --dry-run
      tracker notify
      tracker notify --retry dead
    """
    wishes = {"--test": test, "--list": listed, "--retry": retry is not None, "--dry-run": dry_run}
    if sum(wishes.values()) > 1:
        raise UsageError(f"choose one of {', '.join(name for name, given in wishes.items() if given)}")
    if channels and not test:
        raise UsageError("channels need --test", remedy="tracker notify --test CHANNEL")
    settings = config.load(db)
    if listed:
        _list(settings)
    elif retry is not None:
        _retry(settings, retry)
    elif test:
        _test(_channels(settings, channels or ()), settings)
    elif dry_run:
        _preview(settings)
    else:
        _round(settings)


def _channels(settings: Settings, names: Sequence[str] = ()) -> list[Channel]:
    """The channels of these names, or all."""
    known = {channel.name: channel for channel in settings.alerts.channels}
    if not known:
        raise UsageError(f"{settings.file} has no [[alerts.channels]]", remedy="add one: name, and url_env or url_file")
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise UsageError(f"there is no channel {unknown!r}", remedy=f"channels: {', '.join(known)}")
    return [known[name] for name in names or known]


def _test(channels: Sequence[Channel], settings: Settings) -> None:
    import os

    from tracker.notify.linking import example_of
    from tracker.notify.sending_process import SendingProcesses
    from tracker.results import Message

    example = example_of(settings.page, settings.repository)
    failed = 0
    with SendingProcesses(os.environ) as send:
        for channel in channels:
            message = Message(
                event="test", key=f"test:{channel.name}", workload="", severity="info",
                title="test message of tracker",
                lines=(f"Channel {channel.name} works. No action is needed.", *example.lines), url=example.url,
            )  # fmt: skip
            reason = send(channel, message)
            failed += reason is not None
            look = "; check there: the service may accept a message and not show it" if send.to_look_at(channel) else ""
            emit(printable(f"{channel.name}: {f'failed: {reason}' if reason else f'delivered{look}'}"))
    for sentence in example.sentences:
        emit(printable(sentence))
    if failed:
        raise typer.Exit(EXIT_COULD_NOT_RUN)


def _round(settings: Settings) -> None:
    from tracker.store import notifications

    _channels(settings)
    with opened(settings) as store:
        made, done = api.send_notifications(store=store)
        waiting = notifications.listed(store)
    for number, channel, state, error in waiting.rows("id", "channel", "state", "last_error"):
        if error is not None:
            note(f"tracker: message {number} to {channel} ({state}): {error}")
    emit(
        f"{counted(made, 'message')} made; {done.sent} sent, {done.failed} failed (retried later), {done.dead} given "
        f"up.{next_lines('tracker notify --list')}"
    )


def _preview(settings: Settings) -> None:
    from tracker.compare.commits import Repository
    from tracker.notify.enqueueing import list_waiting, preview
    from tracker.notify.linking import Linker
    from tracker.reports.message import write

    _channels(settings)
    with opened(settings, read_only=True) as store, store.reading():
        found = preview(store, settings.alerts, now_ns=time.time_ns())
        waiting = list_waiting(store, settings.alerts, now_ns=time.time_ns())
        linker = Linker(settings.page, store.repository)
    for channel, message in found:
        written = write(linker.link(message))
        emit(f"to {channel}: {written.title}\n\n{written.body}\n\n", as_it_is=True)
    emit(f"{counted(len(found), 'message')} would be sent.")
    if problem := Repository(settings.repository).problem:
        note(f"note: {problem}")
    _emit_waiting(waiting)


def _emit_waiting(waiting: Sequence[WaitingAlert]) -> None:
    """Print which incidents wait for further runs of their version."""
    for one in waiting:
        emit(printable(one.sentence))


def _list(settings: Settings) -> None:
    from tracker.notify.enqueueing import list_waiting
    from tracker.schema.column_names import STATE
    from tracker.store import notifications

    with opened(settings, read_only=True) as store, store.reading():
        messages = notifications.listed(store)
        silences = notifications.silences_table(store, time.time_ns())
        waiting = list_waiting(store, settings.alerts, now_ns=time.time_ns())
    dead = int((messages[STATE] == "dead").sum())
    last = f"{counted(len(messages) - dead, 'message')} pending, {dead} given up."
    emit_list(messages, _MESSAGES, "text", name="messages", last_line=last)
    _emit_waiting(waiting)
    if len(silences):
        last = f"{counted(len(silences), 'silence')}; tracker unmute silence:N ends one."
        emit("")
        emit_list(silences, _SILENCES, "text", name="silences", last_line=last)


def _retry(settings: Settings, wanted: str) -> None:
    from tracker.store import notifications

    if wanted != "dead" and not (wanted.isascii() and wanted.isdigit() and len(wanted) <= 18):
        raise UsageError(f"--retry {wanted!r} is not a message", remedy="give an id of tracker notify --list, or dead")
    number = None if wanted == "dead" else int(wanted)
    with opened(settings) as store:
        count = store.transact(lambda connection: notifications.retry(connection, time.time_ns(), number))
    if number is not None and not count:
        raise UsageError(f"message {number} is not failed or given up", remedy="tracker notify --list shows them")
    emit(f"{counted(count, 'message')} will be retried.")
