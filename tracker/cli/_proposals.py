"""The commands that an output proposes, for the database that the user named: a command without it would fail there, or
ask another database.
"""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import Any

from tracker.errors import StoreError
from tracker.units import printable

_MENTION = re.compile(r" (?:shows?|and|does)\b|\W*$|[),;:]")
"""What follows a command that a sentence only mentions: `tracker diff shows means`."""
_BARE = ("tracker diff", "tracker history")
"""Commands that need words of their own to be one to run."""


class _Named:
    """The database of this call, as the user named it; "" where he named none."""

    text = ""


def remember(text: str | None) -> str | None:
    """Take down what --db says, for the commands that are proposed; a callback of the option."""
    _Named.text = text or ""
    return text


def with_database(text: str) -> str:
    """`text` with --db in each command of tracker that takes it, as this call was given; without the password, where
    the address of the database has one.
    """
    if not _Named.text or "tracker " not in text:
        return text
    return _pattern().sub(lambda found: _named(found, _words()), text)


def _words() -> str:
    """The option as a shell takes it."""
    from tracker.store import urls

    shown = _Named.text
    try:
        url = urls.parse_url(shown)
        shown = urls.name_of(url) if urls.secrets_of(url) else shown
    except StoreError:
        shown = "URL"  # it may hold a password
    return f"--db {shlex.quote(printable(shown))}"


def _named(found: re.Match[str], words: str) -> str:
    before, line = found.string[: found.start()], found.string[found.end() :].split("\n", 1)[0]
    is_mention = found[0] in _BARE and bool(_MENTION.match(line))
    is_mention = is_mention or (before.endswith("(") and line.startswith(")"))
    return found[0] if is_mention or " --db " in line.split("tracker ", 1)[0] else f"{found[0]} {words}"


@cache
def _pattern() -> re.Pattern[str]:
    """Every command that takes --db, the longest names first."""
    from tracker.cli import app

    commands: list[tuple[str, Any]] = [(one.name or "", one.callback) for one in app.registered_commands]
    for group in app.registered_groups:
        below: Any = group.typer_instance
        commands += [(f"{group.name} {one.name or one.callback.__name__}", one.callback)
                     for one in below.registered_commands]  # fmt: skip
        commands += [(group.name or "", below.registered_callback.callback)] if below.registered_callback else []
    names = [name.replace(" ", r"\s+") for name, callback in commands if "db" in callback.__annotations__]
    words = "|".join(sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<![\w/.'-])tracker\s+(?:{words})(?![\w/-]|\.\w)(?! --help)")
