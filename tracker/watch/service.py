"""A watcher as a process: when its jobs run, how it ends, and how it lives through the loss of its database.

The scheduler only says what is due. The jobs run one after the other in the main thread, where a signal can break them
off: a transaction is undone, and the next watcher goes on with it.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from tracker import readers
from tracker.config import Settings
from tracker.errors import NewerStoreError, SourceError, StoreError, TrackerError, UsageError
from tracker.intake import parse_device
from tracker.store import Store, failures, inbox, watchers
from tracker.store.watchers import LEASE_LIFETIME_NS
from tracker.units import NS_PER_S, counted, format_age
from tracker.watch import alarms, rounds
from tracker.watch.failing import described, is_of_database, one_line
from tracker.watch.work import Event, Stopped, Work

if TYPE_CHECKING:
    from apscheduler.schedulers.background import BackgroundScheduler

EXIT_INTERRUPTED: Final = 130
"""Of a single round that a signal ended, as shells have it."""

GRACE_S: Final = 1.5
"""How long what is going on may take to end after a signal; then the process ends without it, as if it were killed."""

_BEAT_S: Final = LEASE_LIFETIME_NS / NS_PER_S / 6
_OF_A_ROUND: Final = ("scan", "ingest", "judge", "tell")
_STOP, _RELOAD = "stop", "reload"


def check(settings: Settings) -> None:
    """UsageError where there is nothing to watch, or an entry of a folder names what there is not."""
    if not settings.watch.folders and not settings.alerts.channels:
        remedy = f'name one in {settings.file}: [[watch.folders]] path = "/profiles"'
        raise UsageError("no folder is watched, and no channel of alerts is named", remedy=remedy)
    for folder in settings.watch.folders:
        if folder.format is not None:
            readers.load(folder.format)
        if folder.device is not None:
            parse_device(folder.device)


class Service(Struct):
    """A watcher. `load` reads the settings, `open_store` opens their database; both may raise a TrackerError.

    `version`: of the program.
    """

    work: Work
    load: Callable[[], Settings]
    open_store: Callable[[Settings], Store]
    version: str
    due: SimpleQueue[str] = field(default_factory=SimpleQueue)
    waiting: set[str] = field(default_factory=set)
    in_job: bool = False
    ended: threading.Event = field(default_factory=threading.Event)
    """Nothing more is done."""

    over: threading.Event = field(default_factory=threading.Event)
    """And that is on record."""

    code_when_forced: int = 0
    """The exit code where a signal has to end the process in the middle of something."""

    def once(self) -> None:
        """One round, on record like any watcher. Stopped where a signal ended it; a TrackerError where it could not."""
        self.code_when_forced = EXIT_INTERRUPTED
        with self._on_record(every_ns=None), self._interruptible():
            rounds.once(self.work)

    def run(self) -> None:
        """Watch until a signal says to end. NewerStoreError where a newer program has upgraded the database."""
        with self._on_record(every_ns=self.work.settings.watch.every_ns):
            work, every = self.work, format_age(self.work.settings.watch.every_ns)
            work.say(Event("watcher", f"watches {counted(len(work.places), 'folder')} every {every}, {work.store.url}"))
            work.store.close()
            scheduler = self._scheduler()
            try:
                self._schedule(scheduler)
                scheduler.start()
                self._loop(scheduler)
            except Stopped:
                pass
            finally:
                scheduler.shutdown(wait=False)
        self.work.say(Event("watcher", "ended"))

    def _loop(self, scheduler: BackgroundScheduler) -> None:
        while (name := self.due.get()) != _STOP:
            if name == _RELOAD:
                self._reload(scheduler)
                continue
            self.waiting.discard(name)
            self._do(name)

    def _do(self, name: str) -> None:
        """One job, with the database opened anew: it may have gone, or another one may stand in its place."""
        work = self.work
        try:
            with self.open_store(work.settings) as work.store, self._interruptible(), work.at(name):
                _run(work, name)
        except NewerStoreError:
            raise
        except Exception as error:  # noqa: BLE001 no job may end the others
            self._failed(name, error)
        else:
            if work.told.pop("database", None):
                work.say(Event("watcher", f"{work.store.url} is there again"))

    def _failed(self, name: str, error: Exception) -> None:
        work = self.work
        if is_of_database(error):
            if "database" not in work.told:  # once for each time that it is away, whatever it says each minute
                again = f"tried again every {format_age(work.settings.watch.every_ns)}"
                work.say_once("database", Event("failed", f"{one_line(error)}; {again}"))
        else:
            work.say(Event("failed", f"{name}: {described(error)}"))
        said = f"{name}: {one_line(error)}"
        self._if_there(lambda store: watchers.fail(store, work.owner, said, now_ns=work.now()))

    def _reload(self, scheduler: BackgroundScheduler) -> None:
        try:
            settings = self.load()
            check(settings)
        except (SourceError, UsageError) as error:
            self.work.say(Event("failed", f"the settings stay as they were: {one_line(error)}"))
            return
        if settings.database != self.work.settings.database:
            self.work.say(Event("failed", "another database counts only after a restart"))
            settings = replace(settings, database=self.work.settings.database)
        self.work.settings = settings
        scheduler.remove_all_jobs()
        self._schedule(scheduler)
        self._if_there(lambda store: watchers.look_every(store, self.work.owner, settings.watch.every_ns))
        self.work.say(Event("watcher", f"settings read again from {settings.file}"))

    def _scheduler(self) -> BackgroundScheduler:
        from apscheduler.executors.pool import ThreadPoolExecutor
        from apscheduler.schedulers.background import BackgroundScheduler

        defaults = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        # one thread, so that what is due at once becomes due in its order
        return BackgroundScheduler(
            timezone="UTC", job_defaults=defaults, executors={"default": ThreadPoolExecutor(max_workers=1)}
        )

    def _schedule(self, scheduler: BackgroundScheduler) -> None:
        """A round at once and then at its interval; what is due less often at its own."""
        every_s = self.work.settings.watch.every_ns / NS_PER_S
        scheduler.add_job(self._ask_for, "interval", _OF_A_ROUND, seconds=every_s, id="round")
        scheduler.add_job(self._ask_for, "interval", ["expire"], hours=1, id="expire")
        scheduler.add_job(self._ask_for, "cron", ["nightly"], hour=3, minute=0, id="nightly")
        self._ask_for(*_OF_A_ROUND, "expire", "nightly")

    def _ask_for(self, *names: str) -> None:
        """Let jobs run when those before them have; one that waits already does not wait twice."""
        for name in names:
            if name not in self.waiting:
                self.waiting.add(name)
                self.due.put(name)

    @contextmanager
    def _on_record(self, *, every_ns: int | None) -> Iterator[None]:
        """A watcher that others see, that says it lives, and that ends by a signal."""
        work, version = self.work, self.version
        watchers.begin(work.store, work.owner, work.host, os.getpid(), version, every_ns=every_ns, now_ns=work.now())
        _bury(work)
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()
        with _heard(work), self._signals():
            try:
                yield
            finally:
                self.ended.set()
                self._if_there(lambda store: watchers.end(store, work.owner, "ended", now_ns=work.now()))

    def _beat(self) -> None:
        while not self.ended.wait(_BEAT_S):
            try:
                self._if_there(self.beat)
            except Exception as error:  # noqa: BLE001 who is silent counts as dead
                with suppress(Exception):  # a log that cannot be written stops no heart
                    self.work.say(Event("failed", f"heartbeat: {described(error)}"))

    def beat(self, store: Store) -> None:
        """Say that this lives, what it is at, and, where that does not end, so; then its leases are held no longer.

        From a thread of its own: a job that hangs cannot say so itself.
        """
        work, now = self.work, self.work.now()
        every_ns = None if self.code_when_forced else work.settings.watch.every_ns
        doing = work.doing
        hangs = alarms.is_stuck(doing, every_ns, now)
        if watchers.beat(store, work.owner, now_ns=now, job=doing, renew=not hangs):
            work.say(Event("watcher", "was taken for dead by another one, and goes on"))
        if hangs:
            other = replace(work, store=store, owner=f"{work.owner}:heartbeat")
            rounds.tell(other, only=alarms.tell_of_stuck)

    def _if_there(self, note: Callable[[Store], object]) -> None:
        """Write down what is not worth an error where the database is not there: the next job says so."""
        with suppress(StoreError, *failures.CONNECTION_ERRORS), self.open_store(self.work.settings) as store:
            note(store)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        self.in_job = True
        try:
            yield
        finally:
            self.in_job = False

    @contextmanager
    def _signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda *_: self.due.put(_RELOAD))
        heard, told = socket.socketpair()
        told.setblocking(False)
        wakeup = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._enforce, args=[heard], name="end", daemon=True).start()
        try:
            yield
        finally:
            self.over.set()
            signal.set_wakeup_fd(wakeup)
            told.close()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, *_: Any) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # one is enough; what follows must come to its end
        self.due.put(_STOP)
        if self.in_job:
            raise Stopped

    def _enforce(self, heard: socket.socket) -> None:
        """End the process where a signal does not: Python acts on one only between two steps of its own.

        What it was reading is not to blame for that, which is said at once: there may be no time later.
        """
        ends = {int(signal.SIGTERM), int(signal.SIGINT)}
        while (numbers := heard.recv(16)) and not ends & set(numbers):
            pass
        if not numbers:
            return
        threading.Thread(target=self._break_off, name="break off", daemon=True).start()
        if not self.over.wait(GRACE_S):
            os._exit(self.code_when_forced)

    def _break_off(self) -> None:
        with suppress(TrackerError):
            self._if_there(lambda store: inbox.break_off(store, self.work.owner))


class _ToLog(logging.Handler):
    """Says what a library logs; not that its own cleaning up was broken off by a signal."""

    def __init__(self, work: Work) -> None:
        super().__init__(logging.WARNING)
        self.work = work

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is None or not isinstance(record.exc_info[1], Stopped):
            self.work.say(Event("failed", self.format(record)))


@contextmanager
def _heard(work: Work) -> Iterator[None]:
    """What the libraries of scheduler and database log comes into the log of the watcher."""
    handler = _ToLog(work)
    loggers = [logging.getLogger(name) for name in ("apscheduler", "sqlalchemy")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


def _run(work: Work, name: str) -> None:
    if name == "ingest":
        rounds.ingest(work, until_ns=work.now() + work.settings.watch.every_ns)
        return
    rounds.JOBS[name](work)
    if name == _OF_A_ROUND[-1]:
        watchers.end_round(work.store, work.owner, now_ns=work.now())


def _bury(work: Work) -> None:
    """Say of watchers of this machine whose process is gone that they are dead; their leases are free at once."""
    for other in watchers.watchers(work.store):
        is_ours = other.host == work.host and other.owner != work.owner and other.ended_ns is None
        if is_ours and not _lives(other.pid):
            watchers.end(work.store, other.owner, "killed", now_ns=work.now())
            work.say(Event("watcher", f"goes on for process {other.pid}, which was killed"))


def _lives(pid: int) -> bool:
    if pid == os.getpid():
        return False  # a number that was given again
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
