"""`tracker notify`: send what is due now, test the channels, list and retry what was not delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tracker.cli import _options as options
from tracker.errors import EXIT_COULD_NOT_RUN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.config import Channel, Settings


def notify(
    channels: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CHANNEL...]", help="With --test: only these channels of the settings file.", show_default=False
        ),
    ] = None,
    test: Annotated[
        bool, typer.Option("--test", help="Send a test message on each channel, and say how it went; no database.")
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="List what waits, what failed, what was given up, and what is muted.")
    ] = False,
    retry: Annotated[
        str | None,
        typer.Option(
            metavar="ID|dead",
            help="Try a message at once that failed or was given up, or all that were given up. Default: none.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the messages that would be made or sent now; change nothing.")
    ] = False,
    db: options.Database = None,
) -> None:
    """Tell people of findings, as [alerts] in the settings file says: one round, for cron; tracker watch does it by
    itself.

    What is new is made into messages, one per incident and channel, and what is due is sent. A message that cannot be
    delivered is tried again after 1, 5, 30, 120 and 120 minutes, and then given up.

    \b
    Example:
      tracker notify --test
      tracker notify --dry-run
      tracker notify
      tracker notify --retry dead
    """
    from tracker import config
    from tracker.errors import UsageError

    wishes = {"--test": test, "--list": listed, "--retry": retry is not None, "--dry-run": dry_run}
    if sum(wishes.values()) > 1:
        raise UsageError(f"{' and '.join(name for name, given in wishes.items() if given)} do not go together",
                         remedy="give one of them")  # fmt: skip
    if channels and not test:
        raise UsageError("channels are named with --test only", remedy="tracker notify --test CHANNEL")
    settings = config.load(db)
    if listed:
        _list(settings)
    elif retry is not None:
        _retry(settings, retry)
    elif test:
        _test(_chosen(settings, channels or ()))
    elif dry_run:
        _preview(settings)
    else:
        _round(settings)


def _chosen(settings: Settings, names: Sequence[str]) -> list[Channel]:
    """The channels of these names, or all."""
    from tracker.errors import UsageError

    known = {channel.name: channel for channel in settings.alerts.channels}
    if not known:
        raise UsageError(f"{settings.file} has no [[alerts.channels]]", remedy="add one: name, and url_env or url_file")
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise UsageError(f"there is no channel {unknown!r}", remedy=f"channels: {', '.join(known)}")
    return [known[name] for name in names or known]


def _test(channels: Sequence[Channel]) -> None:
    import os

    from tracker.cli._output import emit
    from tracker.notify.sending import Sender, send_within
    from tracker.results import Message
    from tracker.units import printable

    sender = Sender(os.environ)
    failed = 0
    for channel in channels:
        message = Message(
            event="test",
            key=f"test:{channel.name}",
            workload="",
            severity="info",
            title="a test message of tracker",
            lines=(f"Channel {channel.name} works. Nothing is to be done.",),
        )
        reason = send_within(sender, channel, message)
        failed += reason is not None
        look = "; look there: the service may take a message and not show it" if sender.to_look_at(channel) else ""
        emit(printable(f"{channel.name}: {f'failed: {reason}' if reason else f'delivered{look}'}"))
    if failed:
        raise typer.Exit(EXIT_COULD_NOT_RUN)


def _round(settings: Settings) -> None:
    import time

    from tracker import notify as room
    from tracker.cli import _store
    from tracker.cli._output import emit, tell
    from tracker.store import notifications
    from tracker.units import counted, printable

    _chosen(settings, ())
    now = time.time_ns()
    with _store.writing(settings) as store:
        made = room.enqueue(store, settings.alerts, now_ns=now)
        done = room.deliver(store, settings.alerts, now_ns=now)
        waiting = notifications.listed.columns(store)
    for number, channel, state, error in waiting.rows("id", "channel", "state", "last_error"):
        if error is not None:
            tell(printable(f"tracker: message {number} to {channel} ({state}): {error}"))
    emit(
        f"{counted(made, 'message')} made; {done.sent} sent, {done.failed} failed and tried again, {done.dead} given "
        f"up.  What waits: tracker notify --list"
    )


def _preview(settings: Settings) -> None:
    import time

    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.notify.enqueueing import preview
    from tracker.reports import render_message
    from tracker.units import counted

    _chosen(settings, ())
    with _store.reading(settings) as store:
        found = preview(store, settings.alerts, now_ns=time.time_ns())
    for channel, message in found:
        written = render_message(message)
        emit(f"to {channel}: {written.title}\n\n{written.body}\n\n", as_it_is=True)
    emit(f"{counted(len(found), 'message')} would go out.")


def _list(settings: Settings) -> None:
    import time

    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.cli._tables import Column, ListFormat, moment_of, render, text_of
    from tracker.store import notifications
    from tracker.units import counted

    with _store.reading(settings) as store:
        waiting = notifications.listed.columns(store)
        silences = notifications.silences_table(store, time.time_ns())
    messages = [
        Column("id", text_of("id"), right=True), Column("channel", text_of("channel")),
        Column("state", text_of("state")),
        Column("tries", text_of("attempts"), right=True), Column("made", moment_of("created_ns")),
        Column("next try", moment_of("next_try_ns")), Column("message", text_of("title")),
        Column("why", text_of("last_error")),
    ]  # fmt: skip
    muted = [
        Column("silence", text_of("silence_id"), right=True), Column("op", text_of("op")),
        Column("workload", text_of("workload")), Column("device", text_of("device")),
        Column("until", moment_of("until_ns")), Column("who", text_of("who")), Column("why", text_of("reason")),
    ]  # fmt: skip
    dead = int((waiting["state"] == "dead").sum())
    last = f"{counted(len(waiting) - dead, 'message')} on the way, {dead} given up."
    emit(render(waiting, messages, ListFormat.TEXT, name="messages", last_line=last))
    if len(silences):
        last = f"{counted(len(silences), 'silence')}; tracker unmute silence:N ends one."
        emit("\n" + render(silences, muted, ListFormat.TEXT, name="silences", last_line=last))


def _retry(settings: Settings, wanted: str) -> None:
    import time

    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.errors import UsageError
    from tracker.store import notifications
    from tracker.units import counted

    if wanted != "dead" and not (wanted.isascii() and wanted.isdigit() and len(wanted) <= 18):
        raise UsageError(f"--retry {wanted!r} is no message", remedy="give a number of tracker notify --list, or dead")
    number = None if wanted == "dead" else int(wanted)
    with _store.writing(settings) as store:
        count = store.transact(lambda connection: notifications.retry(connection, time.time_ns(), number))
    if number is not None and not count:
        raise UsageError(f"message {number} neither failed nor was given up", remedy="tracker notify --list")
    emit(f"{counted(count, 'message')} will be tried again.")
