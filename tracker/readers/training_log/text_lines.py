"""The text of a log in pieces that end with a line, and where its lines begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tracker.readers._source import SourceText
from tracker.readers._text import ANSI

MAX_LINE_BYTES: Final = 1 << 20
LINE_ENDS: Final = (b"\n", b"\r")
_BACKSPACES: Final = re.compile(rb"\x08+")
_PREFIX_BYTES: Final = 120
"""Of the start of a line so much is looked at for the rank and the host that a launcher writes in front of it."""


class LineCounts:
    """A collector of what was passed over while lines were put together."""

    def __init__(self) -> None:
        self.skipped_lines = 0
        self.unfinished = b""


def whole_lines(text: SourceText, counts: LineCounts) -> Iterator[bytes]:
    """Yield the content in pieces that end with a line; a line that is too long is left out.

    A last line without an end is no whole line: `counts.unfinished`.
    """
    rest = b""
    is_skipping = False
    for block in text:
        content = block
        if is_skipping:
            end = _first_end(content)
            if end < 0:
                continue
            content, is_skipping = content[end:], False
        content = rest + content
        cut = content.rfind(b"\n") + 1
        cut = max(cut, content.rfind(b"\r", cut) + 1)
        whole, rest = content[:cut], content[cut:]
        if len(rest) > MAX_LINE_BYTES:
            counts.skipped_lines += 1
            rest, is_skipping = b"", True
        if whole:
            yield whole
    counts.unfinished = rest


def without_colours(content: bytes) -> bytes:
    """Return text without what colours it on a terminal."""
    return ANSI.sub(b"", content) if b"\x1b" in content else content


def without_backspaces(content: bytes) -> bytes:
    """Return text in which what was written over by backspaces is a line of its own."""
    return _BACKSPACES.sub(b"\r", content) if b"\b" in content else content


def _first_end(content: bytes) -> int:
    ends = [place for end in LINE_ENDS if (place := content.find(end)) >= 0]
    return min(ends) if ends else -1


def prefix_of(content: bytes, at: int) -> bytes:
    """Return the first of the line around a place."""
    start = line_start(content, at)
    return content[start : start + _PREFIX_BYTES]


def line_start(content: bytes, at: int) -> int:
    """Return where the line around a place begins."""
    start = content.rfind(b"\n", 0, at) + 1
    return max(start, content.rfind(b"\r", start, at) + 1)


def line_around(content: bytes, at: int) -> tuple[int, int]:
    """Return where the line around a place begins and ends."""
    return line_start(content, at), line_end(content, at)


def line_end(content: bytes, at: int) -> int:
    """Return where the line around a place ends."""
    end = content.find(b"\n", at, at + MAX_LINE_BYTES)
    if end < 0:
        end = len(content)
    end_of_bar = content.find(b"\r", at, min(end, at + MAX_LINE_BYTES))
    return end if end_of_bar < 0 else end_of_bar
