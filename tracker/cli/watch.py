"""`tracker watch`: from profiles in folders to runs, findings and messages, without anybody at a keyboard."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from tracker.cli import _options as options
from tracker.errors import EXIT_COULD_NOT_RUN
from tracker.units import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracker.config import Settings
    from tracker.results import Status
    from tracker.store import Store
    from tracker.watch import Event, Service


def watch(
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Do one whole round, say what was done, and end: for cron. Default: watch until a signal says to end.",
        ),
    ] = False,
    retry: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|all",
            help="Let this quarantined profile, those below this folder, or all be tried again, by this round with "
            "--once, else by the next one of whoever watches. Default: they are tried when their files change.",
            show_default=False,
        ),
    ] = None,
    db: options.Database = None,
) -> None:
    """Watch the folders of the settings file: ingest what is complete, judge it, send what is due.

    A profile is complete when it stood still for watch.settled and its profiler is done with it. One that cannot be
    read is quarantined, and the others go on. Several watchers on one database do each thing once; what one that was
    killed began, the next one finishes. SIGTERM and SIGINT end it, SIGHUP reads the settings again. Exit code 0: it
    ended, or the round is done; 2: it could not, or in the one round a job failed or a folder could not be looked into;
    130: a signal ended the round.

    \b
    Example:
      tracker watch
      tracker watch --once
      tracker watch --retry /profiles/gpt/v2.3
    """
    from tracker import config
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.watch import check

    settings = config.load(db)
    if retry is not None and not once:
        with _store.writing(settings) as store:
            count = _let_out(store, retry)
        emit(f"{count} tried again in the next round.  Next: tracker status")
        return
    check(settings)
    with _store.writing(settings, create=True) as store:
        if retry is not None:
            _let_out(store, retry)
        if once:
            _one_round(store, settings)
        else:
            _until_a_signal(store, settings, db)


def _let_out(store: Store, what: str) -> str:
    import time

    from tracker.units import counted
    from tracker.watch import retry

    return counted(len(retry(store, what, now_ns=time.time_ns())), "profile")


def _one_round(store: Store, settings: Settings) -> None:
    """A round whose results go to stdout, and what went wrong with the watching itself to stderr."""
    import time

    from tracker.cli._output import emit, tell
    from tracker.watch import EXIT_INTERRUPTED, Stopped, status

    done: list[Event] = []

    def say(event: Event) -> None:
        done.append(event)
        out = tell if event.what in ("failed", "folder", "warning", "watcher") else emit
        out(f"{event.what}: {printable(event.text)}")

    service = _service(store, settings, say, None)
    try:
        service.once()
    except Stopped:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    emit(_summary(done, status(store, now_ns=time.time_ns()), settings.watch.settled))
    if any(event.what == "folder" for event in done):
        raise typer.Exit(EXIT_COULD_NOT_RUN)


def _summary(done: Sequence[Event], now: Status, settled: str) -> str:
    """What the round did, what is left, and what to do next."""
    from tracker.units import counted

    counts = Counter(event.what for event in done)
    left = Counter(profile.state for profile in now.profiles)
    parts = [f"{counted(counts['ingested'], 'run')} ingested"]
    parts += [f"{counts['quarantined']} quarantined"] if counts["quarantined"] else []
    parts += [f"{counted(counts['folder'], 'folder')} with a problem"] if counts["folder"] else []
    parts += [f"{left['waiting']} waiting until they stood still for {settled}"] if left["waiting"] else []
    parts += [f"{left['ready']} put off"] if left["ready"] else []
    return f"{', '.join(parts)}.  Next: {'tracker findings --new' if counts['ingested'] else 'tracker status'}"


def _until_a_signal(store: Store, settings: Settings, db: str | None) -> None:
    from tracker.cli._output import tell

    def say(event: Event) -> None:
        import time

        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for line in event.text.splitlines():
            tell(f"{moment} {event.what}: {printable(line)}")

    _service(store, settings, say, db).run()


def _service(store: Store, settings: Settings, say: Callable[[Event], None], db: str | None) -> Service:
    import time

    from tracker import __version__, config
    from tracker.cli import _store
    from tracker.config import spools
    from tracker.watch import Service, Work, new_owner, this_host

    host = this_host()
    work = Work(
        store=store,
        settings=settings,
        owner=new_owner(host),
        host=host,
        say=say,
        now=time.time_ns,
        spools=lambda: spools.spools_of(settings),
        shut=lambda: spools.shut_spools_of(settings),
    )
    return Service(
        work=work,
        load=lambda: config.load(db),
        open_store=lambda settings: _store.opened(settings.database, create=False),
        version=__version__,
    )
