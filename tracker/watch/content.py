"""Whether a profile stands still: the names, sizes and times of all its files, as one look finds them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Final

from msgspec import Struct

from tracker.errors import SourceError
from tracker.hooks.sidecar import SIDECAR, sidecar_of
from tracker.limits.files import MOST_FILES, is_real_file, is_real_folder
from tracker.readers import PARTIAL, is_sidecar
from tracker.units import NS_PER_HOUR

BELIEVED_AGE_NS: Final = NS_PER_HOUR
"""What a file system calls older than this is old, however wrong its clock is."""

_WATCH_LESS: Final = "watch the folder of the profiles, without links that lead out of it"


class Content(Struct, frozen=True):
    """What a profile consists of. `digest`: of the names, sizes and times of its files, and whether they can be read.

    `touched_ns`: when anything was last done to a file or folder of it, `written_ns`: when its newest file was
    written; both by the clock of the file system.
    """

    digest: bytes
    size_bytes: int
    written_ns: int
    touched_ns: int

    def still_since_ns(self, now_ns: int) -> int:
        """Since when it stands still, on the first look at it: now, unless the file system says that it is old.

        A time that can be set (of the file) counts for nothing, nor does one that lies in the future.
        """
        return self.touched_ns if self.touched_ns <= now_ns - BELIEVED_AGE_NS else now_ns


def content_of(path: Path) -> Content | None:
    """The content of the profile at `path`, None where there is no file (any more).

    Takes in files that are still being written (PARTIAL) and the sidecar, but not hidden files. As an ingest, it
    follows no links to folders inside the profile. An OSError where a folder of it cannot be looked into.
    """
    digest = blake2b(digest_size=16)
    size, written, touched, files = 0, 0, 0, 0
    for count, (place, name) in enumerate(_all_of(path)):
        if count > MOST_FILES:
            raise SourceError(path, "", f"holds more than {MOST_FILES:,} files and folders", remedy=_WATCH_LESS)
        try:
            state = os.stat(place)
        except OSError:  # it went away, or is a link that leads nowhere
            continue
        touched = max(touched, state.st_mtime_ns, state.st_ctime_ns)
        if not is_real_file(state):
            continue
        files += not (name.endswith(PARTIAL) or is_sidecar(Path(place)))
        size += state.st_size
        written = max(written, state.st_mtime_ns)
        readable = os.access(place, os.R_OK)
        digest.update(f"{name}\0{state.st_size}\0{state.st_mtime_ns}\0{readable}\0".encode("utf-8", "surrogateescape"))
    return Content(digest.digest(), size, written, touched) if files else None


def _raise(error: OSError) -> None:
    """A folder that nobody may look into may hold anything; one that went away meanwhile holds nothing."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _is_folder(place: str) -> bool:
    """Whether it is a folder that may hold files of a profile; not one that the kernel makes up."""
    try:
        return is_real_folder(os.stat(place))
    except OSError:
        return True


def _all_of(path: Path) -> Iterator[tuple[str, str]]:
    """Each file and folder of the profile at `path`, with its name in it, in order."""
    yield str(path), "."
    if not os.path.isdir(path):
        yield sidecar_of(str(path)), SIDECAR
        return
    for parent, folders, files in os.walk(path, onerror=_raise):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and _is_folder(os.path.join(parent, name))
        )
        for name in [*folders, *sorted(files)]:
            if not name.startswith("."):
                place = os.path.join(parent, name)
                yield place, os.path.relpath(place, path)
