"""`tracker watch` and `tracker status`: from profiles in folders to runs, findings and messages, unattended."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from tracker import config, reports
from tracker.api.arguments import opened
from tracker.cli.options import Database, JsonFormat
from tracker.cli.output import emit, next_lines, note, screen
from tracker.cli.report_options import Color
from tracker.config import spools
from tracker.errors import EXIT_COULD_NOT_RUN
from tracker.results.options import Option
from tracker.units import NS_PER_S, counted, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracker.config import Settings
    from tracker.store import Store
    from tracker.watch import Event, Service


def watch(
    once: Annotated[bool, Option("Do one round and exit, for cron. Default: watch until a signal.")] = False,
    retry: Annotated[
        str | None,
        Option(
            "Retry a quarantined profile, those below a folder, or all: with --once now, else in the watcher's next "
            "round. Default: retry when files change.",
            "PATH|all",
        ),
    ] = None,
    db: Database = None,
) -> None:
    """Watch the folders of the settings file: ingest complete profiles, judge them, send alerts.

    A profile is complete when it has not changed for watch.settled and its profiler has finished. One that cannot be
    read is quarantined, and the others go on. Several watchers may share a database. SIGTERM and SIGINT end it, SIGHUP
    reloads the settings. Exit code 0: ended, or the round is done; 2: error, or a failure in the round; 130: a signal
    ended the round.

    \b
    Example:
      tracker watch
      tracker watch --once
      tracker watch --retry /profiles/gpt/v2.3
    """
    from tracker import watch as room

    settings = config.load(db)
    if retry is not None and not once:
        with opened(settings) as store:
            count = len(room.retry(store, retry, now_ns=time.time_ns()))
        emit(f"{counted(count, 'profile')} retried in the next round.{next_lines('tracker status')}")
        return
    room.check(settings)
    with opened(settings, create=True) as store:
        if retry is not None:
            room.retry(store, retry, now_ns=time.time_ns())
        if once:
            _one_round(store, settings)
            return

        def log(event: Event) -> None:
            moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            for line in event.text.splitlines():
                note(f"{moment} {event.what}: {line}")

        _service(store, settings, log, db).run()


def _one_round(store: Store, settings: Settings) -> None:
    """A round whose results go to stdout, and problems of the watching itself to stderr."""
    from tracker.watch import EXIT_INTERRUPTED, Stopped, status

    done: list[Event] = []

    def log(event: Event) -> None:
        done.append(event)
        out = note if event.what in ("failed", "folder", "warning", "watcher") else emit
        out(f"{event.what}: {printable(event.text)}")

    try:
        _service(store, settings, log, None).once()
    except Stopped:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    counts = Counter(event.what for event in done)
    left = Counter(profile.state for profile in status(store, now_ns=time.time_ns()).profiles)
    parts = [f"{counted(counts['ingested'], 'run')} ingested"]
    parts += [f"{counts['quarantined']} quarantined"] if counts["quarantined"] else []
    parts += [f"{counted(counts['folder'], 'folder')} with a problem"] if counts["folder"] else []
    parts += [f"{left['waiting']} waiting until unchanged for {settings.watch.settled}"] if left["waiting"] else []
    parts += [f"{left['ready']} deferred"] if left["ready"] else []
    emit(f"{', '.join(parts)}.{next_lines('tracker findings --new' if counts['ingested'] else 'tracker status')}")
    if counts["folder"]:
        raise typer.Exit(EXIT_COULD_NOT_RUN)


def _service(store: Store, settings: Settings, log: Callable[[Event], None], db: str | None) -> Service:
    from tracker import __version__
    from tracker.intake import Toucher
    from tracker.watch import Service, Work, new_owner, this_host

    host = this_host()
    work = Work(
        store=store,
        settings=settings,
        owner=new_owner(host),
        host=host,
        say=log,
        now=time.time_ns,
        spools=lambda: spools.spools_of(settings),
        shut=lambda: spools.shut_spools_of(settings),
        touch=Toucher(settings.watch.limit_ns / NS_PER_S),
    )
    return Service(
        work=work,
        load=lambda: config.load(db),
        open_store=opened,
        version=__version__,
    )


def status(format: JsonFormat = "text", color: Color = "auto", db: Database = None) -> None:
    """Show watchers, folders, waiting profiles, failures and missing runs.

    A watcher is late when its last heartbeat or round is too old. Nothing is changed. Exit code 2 without a database.

    \b
    Example:
      tracker status
      tracker status --format json
    """
    from tracker import watch

    settings = config.load(db)
    with opened(settings, read_only=True) as store:
        places, shut = spools.spools_of(settings), spools.shut_spools_of(settings)
        found = watch.status(store, now_ns=time.time_ns(), spools=places, shut=shut, alerts=settings.alerts)
    emit(str(reports.render(found, format, **screen(color))), as_it_is=format == "json", is_rendered=True)
