"""The commands that an output proposes, with the --db of this call.

A proposed command without it would fail, or read another database.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from functools import cache

from tracker.api.arguments import LastOpened
from tracker.cli.commands import COMMANDS, SUBCOMMANDS, WITHOUT_DATABASE
from tracker.errors import StoreError
from tracker.units import printable

_MENTION = re.compile(r" (?:shows?|and|does)\b|\W*$|[),;:]")
"""What follows a command that a sentence only mentions: `tracker diff shows means`."""
_BARE = ("tracker diff", "tracker history")
"""Commands that cannot run without an argument, or that texts mention by name."""


class _Named:
    """The database of this call, as the user named it; "" without --db."""

    text = ""


def remember(text: str | None) -> None:
    """Keep what --db says, for the commands that an output proposes."""
    _Named.text = text or ""
    LastOpened.names = LastOpened.names if text else ()


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
    names = [name for group in COMMANDS.values() for name in group]
    names += [f"{group} {name}" for group, below in SUBCOMMANDS.items() for name in below]
    known = [name.replace(" ", r"\s+") for name in names if name not in WITHOUT_DATABASE]
    words = "|".join(sorted(known, key=len, reverse=True))
    return re.compile(rf"(?<![\w/.'-])tracker\s+(?:{words})(?![\w/-]|\.\w)(?! --help)")
