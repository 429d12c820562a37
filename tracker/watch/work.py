"""What all jobs of a watcher work with: database, settings, clock, and whom to tell what was done."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, ParamSpec, TypeVar

from msgspec import Struct, field

from tracker.config import Folder, Settings
from tracker.hooks import spool
from tracker.intake import Toucher
from tracker.limits.deadline import LOOK_S
from tracker.notify.sending import Send
from tracker.store import Store, watchers
from tracker.units import NS_PER_MINUTE, NS_PER_S
from tracker.watch.find import root_of

P = ParamSpec("P")
Answer = TypeVar("Answer")

What = Literal[
    "found", "ingested", "unchanged", "quarantined", "passed over", "put off", "warning", "missing", "judged",
    "alerted", "pruned", "expired", "folder", "watcher", "failed",
]  # fmt: skip


MOST_SAID: Final = 1000
"""So many things are remembered of which something was said; of one that is forgotten, it is said again."""


LEFT_OUT_NS: Final = 15 * NS_PER_MINUTE
"""For how long a path that did not answer is not touched again: each look at one takes its whole time."""


class Stopped(BaseException):
    """The watcher was asked to end, in the middle of something."""


class Event(Struct, frozen=True):
    """One thing that was done, or went wrong."""

    what: What
    text: str


class Place(Struct, frozen=True):
    """A watched folder of the settings: where it is, and whose (`host`; '' where all machines see the same one)."""

    folder: Folder
    root: Path
    host: str


class Work(Struct):
    """One watcher's. `owner`: unlike any other's. `now`: ns since 1970 UTC. `send`: how, instead of with apprise.

    `spools`: where jobs queue what they could not deliver; `shut`: where they may, but we cannot take it, with why.
    """

    store: Store
    settings: Settings
    owner: str
    host: str
    say: Callable[[Event], None]
    now: Callable[[], int]
    send: Send | None = None
    spools: Callable[[], Sequence[Path]] = tuple
    shut: Callable[[], Sequence[tuple[Path, str]]] = tuple
    touch: Toucher | None = None
    """Touches what lies in the folders in another process; None: this one does it itself."""

    told: dict[str, str] = field(default_factory=dict)
    """The last problem that was said of a thing, so that it is not said every minute."""

    to_judge: set[int] | None = None
    """Runs that came since the last judgement; None: whatever is out of date, since nobody knows who died before us."""

    doing: tuple[str, int] | None = None
    """What it is at right now, a job or a profile, and since when; None: nothing."""

    broken_off: set[int] = field(default_factory=set)
    """Profiles (inbox.id) that we began with and did not come to an end with, though we live."""

    late: dict[Path, tuple[str, int]] = field(default_factory=dict)
    """Paths that did not answer in time -> what was said, and when."""

    def note_late(self, path: Path, problem: str) -> None:
        """Leave a path that did not answer out of the looks of the next LEFT_OUT_NS."""
        self.late[path] = (problem, self.now())

    def late_paths(self) -> dict[Path, str]:
        """Return the paths that are left out now, with what is said of them; the others are looked at again."""
        now = self.now()
        self.late = {path: one for path, one in self.late.items() if one[1] <= now < one[1] + LEFT_OUT_NS}
        return {path: problem for path, (problem, _) in self.late.items()}

    def touching(self, path: Path, function: Callable[P, Answer], *args: P.args, **named: P.kwargs) -> Answer:
        """Return what `function` says of the file or folder at `path`; SourceError where it does not end in time."""
        if self.touch is None:
            return function(*args, **named)
        limit_s = self.settings.watch.limit_ns / NS_PER_S
        return self.touch.call(path, min(LOOK_S, limit_s), function, *args, **named)

    @property
    def places(self) -> list[Place]:
        """The folders that are watched."""
        found = []
        for folder in self.settings.watch.folders:
            root = root_of(folder, self.settings.file)
            found.append(Place(folder, root, "" if folder.shared else self.host))
        return found

    @contextmanager
    def at(self, what: str) -> Iterator[None]:
        """Be at `what` within this block, for whoever looks whether this still moves."""
        before, self.doing = self.doing, (what, self.now())
        try:
            yield
        finally:
            self.doing = None if before is None else (before[0], self.now())

    @contextmanager
    def lease(self, name: str, *, undone_since_ns: int | None = None) -> Iterator[bool]:
        """Whether the work `name` is ours within this block; done when the block ends well."""
        if not watchers.take_lease(self.store, name, self.owner, now_ns=self.now(), undone_since_ns=undone_since_ns):
            yield False
            return
        try:
            yield True
        except BaseException:
            watchers.release_lease(self.store, name, self.owner)
            raise
        watchers.release_lease(self.store, name, self.owner, done_ns=self.now())

    def say_once(self, about: str, event: Event) -> None:
        """Say something of a thing, unless it was the last that was said of it."""
        known = self.told.pop(about, None)
        self.told[about] = event.text  # the last one in the order
        if len(self.told) > MOST_SAID:
            del self.told[next(iter(self.told))]
        if known != event.text:
            self.say(event)


def this_host() -> str:
    """The name of this machine."""
    return spool.host_name()


def new_owner(host: str) -> str:
    """A name for this process as a watcher that no other one has, even after a restart."""
    return f"{host}:{os.getpid()}:{secrets.token_hex(4)}"
