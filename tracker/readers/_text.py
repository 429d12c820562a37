"""Line-oriented text files: logs and printed tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tracker.errors import SourceError
from tracker.readers._source import BOM, SourceText, read_head

SNIFF_BYTES: Final = 1 << 20
MAX_LINE_BYTES: Final = 1 << 20

# CSI sequences (colours, cursor) of terminals
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ANSI: Final = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_NO_TEXT: Final = (b"SQLite format 3", b"PK\x03\x04", b"\x7fELF")
# [rank7]: and [default0]: of torchrun, [1,0]<stdout>: of mpirun --tag-output, `0: ` of srun --label
_PREFIX: Final = re.compile(
    r"\[(?:rank|default) ?(\d{1,6})\](?:: ?| )|\[\d{1,6},(\d{1,6})\]<std(?:out|err)>:?|(\d{1,6}): ", re.IGNORECASE
)
_PREFIX_BYTES: Final = re.compile(
    rb"^(?:\[(?:rank|default) ?\d{1,6}\](?:: ?| )|\[\d{1,6},\d{1,6}\]<std(?:out|err)>:?|\d{1,6}: )",
    re.IGNORECASE | re.MULTILINE,
)
_NEW_LINE: Final = re.compile(rb"\r+\n?|\n")
_TRACE: Final = re.compile(
    rb'"(?:traceEvents|schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds|displayTimeUnit)"\s*:'
)
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"')


def looks_like_text(path: Path, head: bytes) -> bool:
    """Whether a file may be a log: no folder, nothing binary at the start, no trace in JSON.

    A log may begin with anything that a program prints: a dict, a line of JSON, a list.
    """
    if path.is_dir() or head.startswith(_NO_TEXT) or b"\0" in head[:512]:
        return False
    return not is_json_trace(head)


def is_json_trace(head: bytes) -> bool:
    """Whether a file begins as a trace in JSON does."""
    return begins_json(head) and _TRACE.search(head) is not None


def head_matches(path: Path, head: bytes, pattern: re.Pattern[bytes]) -> bool:
    """Whether `pattern` occurs in the first MiB of the content; a log says much before its first number.

    Colours and the prefixes of ranks are left out before. In JSON, what is only a part of a string does not count,
    unless the file has an object of JSON in each line.
    """
    return _matches(head, pattern) or (len(head) >= 4096 and _matches(read_head(path, SNIFF_BYTES), pattern))


def lines_of(text: SourceText) -> Iterator[str]:
    """The lines of a file without their ends, the colours of terminals and the prefixes of ranks; reads the whole file.

    A lone carriage return ends a line as well: progress bars write over their line.
    """
    return (line for _, line in ranked_lines_of(text))


def ranked_lines_of(text: SourceText) -> Iterator[tuple[int | None, str]]:
    """The lines as `lines_of` gives them, each with the rank that its prefix names, None without a prefix."""
    rest = b""
    for block in text:
        content = rest + block
        held = content.endswith(b"\r")  # its \n may be in the next block
        *whole, rest = _NEW_LINE.split(content[:-1] if held else content)
        rest += b"\r" if held else b""
        if len(rest) > MAX_LINE_BYTES:
            problem = f"a line is longer than {MAX_LINE_BYTES} bytes"
            raise SourceError(text.path, f"byte {text.bytes_read}", problem, remedy="this is no log")
        for line in whole:
            yield _plain(line)
    for line in _NEW_LINE.split(rest):
        yield _plain(line)


def _plain(line: bytes) -> tuple[int | None, str]:
    """A line and the rank of its prefix.

    >>> _plain(b"\\x1b[32m[rank3]: step 1\\x1b[0m"), _plain(b"[1,0]<stdout>:step 1"), _plain(b"a")
    ((3, 'step 1'), (0, 'step 1'), (None, 'a'))
    """
    plain = line.decode("utf-8", "replace").removeprefix("\ufeff")
    if "\x1b" in plain:
        plain = _ANSI.sub("", plain)
    match = _PREFIX.match(plain)
    if match is None:
        return None, plain
    return int(next(group for group in match.groups() if group is not None)), plain[match.end() :]


def rank_of_prefix(line: bytes) -> int | None:
    """Return the rank that the prefix of a line names, None without a prefix.

    >>> rank_of_prefix(b"[rank3]: step 1"), rank_of_prefix(b"step 1")
    (3, None)
    """
    match = _PREFIX.match(line.decode("latin-1"))
    return None if match is None else int(next(group for group in match.groups() if group is not None))


def plain_text(content: bytes) -> bytes:
    """Return text without colours and the prefixes of ranks, with line feeds as its only line ends."""
    plain = content.removeprefix(BOM)
    if b"\x1b" in plain:
        plain = ANSI.sub(b"", plain)
    return _PREFIX_BYTES.sub(b"", plain.replace(b"\r", b"\n"))


def searchable(plain: bytes) -> bytes:
    """Return the part of a plain text in which a line may stand: in JSON, what is only a part of a string does not
    count, unless the file has an object of JSON in each line.
    """
    if not begins_json(plain) or _has_json_lines(plain):
        return plain
    return _STRING.sub(b'""', plain)


def _matches(content: bytes, pattern: re.Pattern[bytes]) -> bool:
    return pattern.search(searchable(plain_text(content))) is not None


def begins_json(content: bytes) -> bool:
    """Whether the content begins as JSON does: an object with a name in double quotes, a list of objects."""
    return re.match(rb'\{\s*["}]|\[\s*[\{\["]', content.removeprefix(BOM).lstrip()) is not None


def _has_json_lines(content: bytes) -> bool:
    """Whether the first two lines are an object of JSON each, as some loggers write one line per message."""
    lines = [line.strip() for line in content.split(b"\n") if line.strip()][:2]
    return len(lines) == 2 and all(line.startswith(b"{") and line.endswith(b"}") for line in lines)
