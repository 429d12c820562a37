"""Files of a search that no reader takes: which of them to name, and why they are not taken."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from tracker.errors import SourceError
from tracker.readers._source import GZIP_MAGIC, UTF_16, open_source, read_head

_RAW: Final = re.compile(r"FRAMEWORK|PROF_.+")
_BESIDE: Final = re.compile(r"profiler_info(?:_\d+)?\.json|profiler_metadata\.json")
_ARCHIVES: Final = (b"PK\x03\x04", b"\xfd7zXZ", b"BZh", b"7z\xbc\xaf", b"\x28\xb5\x2f\xfd")
_SQLITE: Final = b"SQLite format 3\0"


class NotRecognised(Struct, frozen=True, order=True):
    """A file that no reader takes, and why in a few words."""

    path: str
    why: str


def why(path: Path) -> str:
    """Why no reader takes the file at `path`, in a few words."""
    try:
        if path.stat().st_size == 0:
            return "empty"
        head = read_head(path)
        with open_source(path) as file:
            first = file.read(len(GZIP_MAGIC))
    except (OSError, SourceError) as error:
        return error.problem if isinstance(error, SourceError) else (error.strerror or str(error))
    return _why(path, head, is_gzip=first == GZIP_MAGIC)


def _why(path: Path, head: bytes, *, is_gzip: bool) -> str:
    if head.startswith(UTF_16):
        return "UTF-16 text, save it as UTF-8"
    if head.startswith(_ARCHIVES) or head[257:262] == b"ustar":
        return "an archive, unpack it first"
    if head.startswith(_SQLITE):
        return "gzip of a database, unpack it first" if is_gzip else "a database of no known profiler"
    if path.suffix.lower() == ".gz" and not is_gzip:
        return "named .gz, but no gzip file"
    return "unknown content"


def to_name(passed: Iterable[Path], taken: Sequence[Path]) -> Iterator[NotRecognised]:
    """Those of the files `passed` that do not clearly belong to a profile that is `taken`.

    The raw data that a profiler collected lies beside what it exported, and so do the files that describe a capture.
    """
    homes = {path if path.is_dir() else path.parent for path in taken}
    for path in passed:
        raw = next((parent for parent in path.parents if _RAW.fullmatch(parent.name)), None)
        around = [path.parent, path.parent / "ASCEND_PROFILER_OUTPUT"] if _BESIDE.fullmatch(path.name) else []
        around += [] if raw is None else [raw.parent, raw.parent / "ASCEND_PROFILER_OUTPUT"]
        if not homes.intersection(around):
            yield NotRecognised(str(path), why(path))
