"""Line-oriented text files: logs and printed tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tracker.errors import SourceError
from tracker.readers._source import SourceText, read_head

SNIFF_BYTES: Final = 1 << 20
MAX_LINE_BYTES: Final = 1 << 20

# CSI sequences (colours, cursor) of terminals
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_NO_TEXT: Final = (b"SQLite format 3", b"PK\x03\x04", b"\x7fELF")


def looks_like_text(path: Path, head: bytes) -> bool:
    """Whether a file may be a log: no folder, nothing binary at the start, no JSON object."""
    return not path.is_dir() and not head.startswith(_NO_TEXT) and b"\0" not in head[:512] and head.lstrip()[:1] != b"{"


def head_matches(path: Path, head: bytes, pattern: re.Pattern[bytes]) -> bool:
    """Whether `pattern` occurs in the first MiB of the content; a log says much before its first number."""
    return bool(pattern.search(head) or (len(head) >= 4096 and pattern.search(read_head(path, SNIFF_BYTES))))


def lines_of(text: SourceText) -> Iterator[str]:
    """The lines of a file without their ends and without the colours of terminals; reads the whole file.

    A lone carriage return ends a line as well: progress bars write over their line.
    """
    rest = b""
    for block in text:
        *whole, rest = (rest + block).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            problem = f"a line is longer than {MAX_LINE_BYTES} bytes"
            raise SourceError(text.path, f"byte {text.bytes_read}", problem, remedy="this is no log")
        for line in whole:
            yield from _split(line)
    yield from _split(rest)


def _split(line: bytes) -> Iterator[str]:
    plain = _ANSI.sub("", line.decode("utf-8", "replace"))
    yield from plain.rstrip("\r").split("\r")
