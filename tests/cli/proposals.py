"""Finds the commands that an output proposes, so that a test can run them in the state that proposed them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from html import unescape
from itertools import takewhile

from tracker.cli.commands import COMMANDS

_START = re.compile(
    rf"(?<![\w/.'-])tracker (?:{'|'.join(name for group in COMMANDS.values() for name in group)})(?![\w/.])"
)
_END = re.compile(r'  | \| |::|"(?= \w+=|>)|\n|\)|; | && |\. |, |$|: |\.$')
_STOP = re.compile(r"(?<![.])[.,;:]$")
_PROSE = frozenset(
    (
        "lists",
        "list",
        "adds",
        "makes",
        "shows",
        "brings",
        "and",
        "or",
        "then",
        "ends",
        "says",
        "reads",
        "know",
        "knows",
        "without",
        "is",
        "alone",
        "tries",
        "names",
        "once",
        "takes",
        "from",
        "does",
        "holds",
        "if",
        "finds",
        "before",
        "where",
        "has",
    )
)
"""Words that no command line holds, behind a command that a sentence names."""

FILLED = {
    "WORKLOAD": "gpt",
    "VERSION": "v9",
    "MODEL": "H100",
    "LABEL": "v1",
    "PATH": "profile.pt.trace.json.gz",
    "...": "a reason",
}
"""What a user puts in for the words in capitals."""


def proposed(text: str, filled: Mapping[str, str] = FILLED) -> list[list[str]]:
    """The words behind `tracker` of each command that stands in `text`."""
    text, found = unescape(text), []  # as Markdown shows it
    for start in _START.finditer(text):
        rest = text[start.start() :]
        line, *more = rest[: _outside_quotes(rest)].split(" · ")
        own: list[str] = []
        for word in _split(_STOP.sub("", line))[1:]:
            if own and word in _PROSE:
                break
            own.append(filled.get(word, word))
        # `tracker diff v1 v2 --details · --by module`: each of these options, in place of the last one
        others = list(takewhile(lambda part: part.startswith("-"), more))
        base = own[:-1] if others and own[-1].startswith("-") else own
        for words in (own, *([*base, *_split(_STOP.sub("", part))] for part in others)):
            # these two alone are a mention: "tracker history and findings show medians"
            if words not in ([], ["diff"], ["history"], *found):
                found.append(words)
    return found


def _split(line: str) -> list[str]:
    """The words of a shell; behind a command in a sentence, an apostrophe may open what nothing closes."""
    while True:
        try:
            return shlex.split(line)
        except ValueError:
            line = line.rpartition(" ")[0]


_APOSTROPHE = """'"'"'"""
"""How a shell is given one between quotes."""


def _outside_quotes(text: str) -> int:
    """Where the command ends: at the first end that stands in no quotes."""
    for end in _END.finditer(text):
        if text[: end.start()].replace(_APOSTROPHE, "-----").count("'") % 2 == 0:
            return end.start()
    return len(text)
