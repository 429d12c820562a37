"""The database of a command: opened as the settings name it, and named by --db in the commands that an output proposes.

A proposed command without the --db of this call would fail, or read another database.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from tracker.api.arguments import LastOpened, opened, reading_for
from tracker.errors import StoreError
from tracker.profile.branches import main_of
from tracker.units import printable

if TYPE_CHECKING:
    from tracker.results.options import Reading
    from tracker.store import Store

Chosen = TypeVar("Chosen", bound="Reading")

_MENTION = re.compile(r" (?:shows?|and|does)\b|\W*$|[),;:]")
"""What follows a command that a sentence only mentions: `tracker diff shows means`."""
_BARE = ("tracker diff", "tracker history")
"""Commands that cannot run without an argument, or that texts mention by name."""


class _Named:
    """The database of this call, as the user named it; "" without --db."""

    text = ""


@contextmanager
def compared(db: str | None, references: Sequence[str], chosen: Chosen) -> Iterator[tuple[Store | None, Chosen]]:
    """The database that a comparison of `references` needs, and its options, with what the settings say and the bar."""
    from msgspec.structs import replace

    from tracker import config
    from tracker.cli.output import progress

    settings = config.load(db)
    with progress() as report, reading_for(None, references, settings) as store:
        yield store, replace(chosen, max_bytes=settings.max_bytes, loaders=settings.loaders, on_progress=report)


def run_reference(text: str) -> str:
    """Return `text` as the reference of a run: `run:41` for 41."""
    return f"run:{text}" if text.isascii() and text.isdigit() else text


def only_workload(database: str) -> str | None:
    """The workload of a database that has just one, whatever its branches; None where there is no database yet, or it
    is refused later.
    """
    from tracker.store import queries
    from tracker.store.failures import names_damage

    try:
        with opened(database, read_only=True) as store:
            known = set(map(main_of, queries.versions(store).listed("workload")))
    except StoreError as error:
        if names_damage(error):  # it is damaged: to ask for a workload would send its user astray
            raise
        return None
    return str(known.pop()) if len(known) == 1 else None


def damage_behind(error: Exception) -> StoreError | None:
    """What to say of an error that nobody foresaw where a database of this call is damaged; None where none is.

    One that cannot be opened for another reason, as one that is not made yet, says nothing of the error.
    """
    from tracker.store.failures import explain_damage, names_damage

    for name in LastOpened.names:
        try:
            with opened(name, read_only=True) as store:
                damage = explain_damage(store.connect, store.url, error)
        except StoreError as refused:
            damage = refused if names_damage(refused) else None
        if damage is not None:
            return damage
    return None


def remember(text: str | None) -> None:
    """Keep what --db says, for the commands that an output proposes."""
    _Named.text = text or ""
    LastOpened.names = LastOpened.names if text else ()


def be_patient(seconds: int | None) -> None:
    """Have this command wait so long for others that write its database, None: as usual, and say that it does."""
    from tracker.cli.output import note
    from tracker.store.waiting import Patience

    Patience.say = note
    Patience.seconds = Patience.usual_s if seconds is None else seconds


def with_database(text: str, written: Callable[[str], str] = str) -> str:
    """`text` with the --db of this call in each command of tracker that takes it, without the password of a URL.
    `written`: how the format of `text` writes what is foreign.
    """
    if not _Named.text or "tracker " not in text:
        return text
    from tracker.store import urls

    shown = _Named.text
    try:
        url = urls.parse_url(shown)
        shown = urls.name_of(url) if urls.secrets_of(url) else shown
    except StoreError:
        shown = "URL"  # it may hold a password
    option = written(f"--db {shlex.quote(printable(shown))}")

    def named(found: re.Match[str]) -> str:
        before, line = found.string[: found.start()], found.string[found.end() :].split("\n", 1)[0]
        is_mention = found[0] in _BARE and bool(_MENTION.match(line))
        is_mention = is_mention or (before.endswith("(") and line.startswith(")"))
        is_mention = is_mention or (before.endswith("by ") and "\n" in found[0])  # an event by tracker, then a note
        return found[0] if is_mention or " --db " in line.split("tracker ", 1)[0] else f"{found[0]} {option}"

    return _commands().sub(named, text)


@cache
def _commands() -> re.Pattern[str]:
    """Every command that takes --db, the longest names first."""
    from tracker.cli import COMMANDS, SUBCOMMANDS, WITHOUT_DATABASE

    names = [name for group in COMMANDS.values() for name in group]
    names += [f"{group} {name}" for group, below in SUBCOMMANDS.items() for name in below]
    known = [name.replace(" ", r"\s+") for name in names if name not in WITHOUT_DATABASE]
    words = "|".join(sorted(known, key=len, reverse=True))
    return re.compile(rf"(?<![\w/.'-])tracker\s+(?:{words})(?![\w/-]|\.\w)(?! --help)")
