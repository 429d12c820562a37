"""What the folders below a watched one mean: `{workload}/{version}/*`, part by part."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

PLACES: Final = "{workload}, {branch}, {version}, {config.KEY}, {tag.KEY}"
_TOKEN: Final = re.compile(r"(\{[^{}]*\}|\*)")
_PLACE: Final = re.compile(r"workload|branch|version|(?:config|tag)\.[^\s{}]+")


class Part(Struct, frozen=True):
    """One level of folders: which names it takes, and what they say. `places`: `workload`, `config.batch`, ..."""

    pattern: re.Pattern[str]
    places: tuple[str, ...]

    def match(self, name: str) -> Mapping[str, str] | None:
        """What `name` says by place, None where it does not belong here. Hidden names never do.

        >>> parse("{version}_*")[0].match("v01_run2.json.gz")
        {'version': 'v01'}
        """
        found = None if name.startswith(".") else self.pattern.fullmatch(name)
        return None if found is None else dict(zip(self.places, found.groups(), strict=True))


def parse(text: str) -> tuple[Part, ...]:
    """The levels below a watched folder; what matches the last one is ingested by one call.

    ValueError says what is wrong.

    >>> [part.places for part in parse("{workload}/{version}/*")]
    [('workload',), ('version',), ()]
    """
    parts = text.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError("a part is empty, or no name; write it like {workload}/{version}/*")
    found = tuple(_part(part) for part in parts)
    places = [place for part in found for place in part.places]
    twice = next((place for place in places if places.count(place) > 1), None)
    if twice is not None:
        raise ValueError(f"{{{twice}}} stands there twice")
    return found


def _part(text: str) -> Part:
    if "**" in text:
        raise ValueError("** is not known: write one part for each level of folders")
    tokens = [token for token in _TOKEN.split(text) if token]
    places, pattern = [], ""
    for before, token in zip(["", *tokens], tokens, strict=False):
        if token == "*":
            pattern += ".*"
        elif _TOKEN.fullmatch(token):
            if before.startswith("{"):
                raise ValueError(f"{before} and {token} have nothing between them that could part them")
            if not _PLACE.fullmatch(token[1:-1]):
                raise ValueError(f"{token} must be one of {PLACES}")
            places.append(token[1:-1])
            pattern += "(.+?)"
        elif "{" in token or "}" in token:
            raise ValueError(f"{text!r} has a brace without its other one")
        else:
            pattern += re.escape(token)
    return Part(re.compile(pattern, re.DOTALL), tuple(places))
