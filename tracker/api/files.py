"""Files that functions and commands write: whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from tracker.errors import SourceError


def check_file(path: Path) -> None:
    """Raise SourceError where `path` cannot be written, before any long work starts."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            return
        folder = path.resolve().parent
        if not folder.is_dir():
            raise unwritable(path, f"there is no folder {folder}")
        if path.is_dir():
            raise unwritable(path, "it is a folder")
        if not os.access(folder, os.W_OK):
            raise unwritable(path, "the folder is not writable")
    except RuntimeError as error:
        raise unwritable(path, "its links form a loop") from error
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from error


def write_file(path: Path, content: str | bytes | Iterable[bytes]) -> None:
    """Write `path` whole: into a neighbour first, then renamed, so that a failure leaves what was there.

    A link stays a link: what it points to is written, with the permissions that it had. What is no regular file (a
    pipe, a device) is written in place.
    """
    from tracker.hooks import spool

    data = content.encode() if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                file.writelines((data,) if isinstance(data, bytes) else data)
            return
        target = path.resolve()
        try:
            mode = target.stat().st_mode & 0o777
        except FileNotFoundError:
            spool.write(str(target), data, 0o666, whatever_umask=False)
        else:
            spool.write(str(target), data, mode, whatever_umask=True)
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, reason: str | Exception) -> SourceError:
    """Return the error for a file that cannot be written, by what the system or this program says of it."""
    text = reason if isinstance(reason, str) else getattr(reason, "strerror", None) or str(reason)
    is_full = text in (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
    remedy = "make room there, or name another file" if is_full else "give -o a file in a folder that you may write to"
    return SourceError(path, "", f"cannot be written ({text})", remedy=remedy)
