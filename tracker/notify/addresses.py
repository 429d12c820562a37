"""The address of a channel, which is a secret: where it comes from, and how it is kept out of every text."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from tracker.config import Channel
from tracker.config.places import is_address, is_variable, user_path
from tracker.limits.files import read_small_text

_HIDDEN: Final = "***"
_SHORTEST: Final = 4
"""Shorter parts of an address are no secrets, and would be found everywhere."""

_KNOWN: Final = frozenset({"http", "https", "json", "jsons", "true", "false", "localhost"})


class BadAddress(Exception):
    """A channel cannot be used as it is set up; the text says why, and never the address."""


def address_of(channel: Channel, environ: Mapping[str, str]) -> str:
    """The address of a channel. Raises BadAddress."""
    if channel.url_env is not None:
        if not is_variable(channel.url_env):
            raise BadAddress("url_env is no name of a variable; set one to the address, and name it there")
        found = environ.get(channel.url_env, "").strip()
        if not found:
            raise BadAddress(f"the variable {channel.url_env} is not set; set it to the address")
        return found
    if channel.url_file is not None:
        if is_address(channel.url_file):
            raise BadAddress("url_file is no path; write the address into a file, and name it there")
        return _of_file(user_path(channel.url_file))
    return (channel.url or "").strip()


def _of_file(path: Path) -> str:
    try:
        text, state = read_small_text(path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BadAddress(f"{path} cannot be read ({why}); create it with the address, and chmod 600 it") from None
    found, mode = text.strip(), state.st_mode
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadAddress(f"{path} holds a secret, and others can read it; chmod 600 {path}")
    if not found or "\n" in found:
        raise BadAddress(f"{path}: expected one line, the address; correct the file")
    return found


def parts_of(address: str) -> tuple[str, ...]:
    """All of an address that must not be seen, the longest first: itself, its parts, and how they look when quoted."""
    scheme, _, rest = address.partition("://")
    if not rest:
        scheme, rest = "", address
    parts = {rest, *re.split(r"[/?&=@:#]+", rest), *re.split(r"[^A-Za-z0-9]+", rest)}
    every = {form for part in parts for form in (part, unquote(part), quote(unquote(part), safe=""))}
    found = {address, *every} - {scheme}
    hidden = [part for part in found if len(part) >= _SHORTEST and part.lower() not in _KNOWN]
    return tuple(sorted(hidden, key=lambda part: (-len(part), part)))


def scrubbed(text: str, parts: Iterable[str]) -> str:
    """`text` without any of these parts, however they are written.

    >>> scrubbed("POST /hook/T0kenABC failed", parts_of("feishu://t0kenabc"))
    'POST /hook/*** failed'
    """
    for part in parts:
        text = re.sub(re.escape(part), _HIDDEN, text, flags=re.IGNORECASE)
    return text
