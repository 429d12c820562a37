"""Source files -> `Profile`. One reader per format; a reader knows its format and no database.

A reader is a module (or folder) of this package, named in `NAMES`, that exports `TITLE`, `sniff(path, head) -> bool`
and `read(path, options) -> Profile`. `sniff` sees the first 4 KiB of the content (decompressed), nothing for a
folder. Modules load on use. Names that start with `_` are no readers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from tracker.errors import SourceError, UsageError
from tracker.readers._source import ReadOptions, read_head

if TYPE_CHECKING:
    from tracker.profile import Profile

__all__ = ["NAMES", "Found", "ReadOptions", "Reader", "claim", "find", "load", "read"]

NAMES: Final[tuple[str, ...]] = ("ascend_db", "ascend_text", "torch_profiler")


class Reader(Protocol):
    """What every reader module exports."""

    TITLE: str

    def sniff(self, path: Path, head: bytes) -> bool:
        """True where `path` is surely this reader's format."""
        ...

    def read(self, path: Path, options: ReadOptions) -> Profile:
        """The whole of `path`; a SourceError where it cannot be read."""
        ...


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """A file or folder and the one reader that claims it."""

    path: Path
    format: str


def load(name: str) -> Reader:
    """The reader called `name`; a UsageError lists the names for any other word."""
    if name not in NAMES:
        raise UsageError(f"no format '{name}'", remedy=f"known formats: {', '.join(NAMES)}")
    return cast(Reader, import_module(f"{__name__}.{name}"))


def claim(path: Path | str, format: str | None = None) -> str:
    """The one reader that claims `path`; `format` decides without looking. None or two are a SourceError."""
    path = _existing(path)
    if format is not None:
        load(format)
        return format
    claims = _claims(path, NAMES)
    if len(claims) == 1:
        return claims[0]
    if claims:
        raise SourceError(path, "", f"could be {' or '.join(claims)}", remedy="say which with --format")
    if path.is_file() and path.stat().st_size == 0:
        raise SourceError(path, "", "the file is empty", remedy="export the profile again")
    kind = "folder" if path.is_dir() else "file"
    raise SourceError(path, "", f"no reader knows this {kind}", remedy=_known_formats())


def find(path: Path | str, format: str | None = None) -> list[Found]:
    """All profiles at or below `path`, ordered by path; a SourceError where there is none.

    A file must be claimed. In a folder, what no reader claims is passed over, and a claimed folder is not looked into.
    """
    path = _existing(path)
    if format is not None:
        load(format)
    if path.is_file():
        return [Found(path, claim(path, format))]
    found = sorted(_walk(path, NAMES if format is None else (format,)))
    if not found:
        raise SourceError(path, "", "no profile in this folder", remedy=_known_formats())
    return found


def read(found: Found, options: ReadOptions | None = None) -> Profile:
    """What `found` holds, by its reader."""
    return load(found.format).read(found.path, options or ReadOptions())


def _existing(path: Path | str) -> Path:
    path = Path(path)
    if not path.exists():
        raise SourceError(path, "", "no such file or folder", remedy="check the path")
    return path


def _claims(path: Path, names: tuple[str, ...]) -> list[str]:
    head = read_head(path) if path.is_file() else b""
    return [name for name in names if load(name).sniff(path, head)]


def _walk(folder: Path, names: tuple[str, ...]) -> Iterator[Found]:
    for parent, folders, files in os.walk(folder):
        here = Path(parent)
        claims = _claims(here, names)
        if claims:
            folders.clear()
            yield Found(here, _only(here, claims))
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in files:
            path = here / name
            if name.startswith(".") or not path.is_file():
                continue
            if claims := _claims(path, names):
                yield Found(path, _only(path, claims))


def _only(path: Path, claims: list[str]) -> str:
    if len(claims) > 1:
        raise SourceError(path, "", f"could be {' or '.join(claims)}", remedy="say which with --format")
    return claims[0]


def _known_formats() -> str:
    known = "; ".join(f"{name}: {load(name).TITLE}" for name in NAMES)
    return f"known formats ({known}); --format NAME reads it as one of them"
