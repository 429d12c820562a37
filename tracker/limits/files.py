"""Which files are opened at all: regular files on a file system that holds files. The one door to foreign files.

To open a pipe waits for its other end, to open a device can rewind a tape, and /proc/kmsg, which calls itself a regular
file, is waited at for the kernel's next message. A folder can hold a link to any of them.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

MOST_FILES: Final = 200_000
"""In one folder that is a profile, or is looked through for some: a link to / leads to all of a machine."""

SMALL_BYTES: Final = 1 << 20
"""Of a file that a person wrote."""

_PSEUDO: Final = frozenset(
    {
        "autofs", "binder", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs",
        "efivarfs", "fusectl", "mqueue", "nsfs", "pipefs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs",
        "smackfs", "sockfs", "sysfs", "tracefs",
    }
)  # fmt: skip
"""File systems that the kernel makes up: /proc, /sys, /dev and what is mounted into them."""

_MOUNTS: Final = "/proc/self/mountinfo"
_known: dict[int, bool] = {}


def is_made_up(device: int) -> bool:
    """Return whether the kernel makes up the file system with this number (`st_dev`); False where nobody can tell."""
    if device not in _known:
        _known.update(_read_mounts())
        _known.setdefault(device, False)
    return _known[device]


def _read_mounts() -> dict[int, bool]:
    """Return which of the mounted file systems are made up; none where the system has no such list."""
    try:
        lines = Path(_MOUNTS).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        # 36 35 98:0 /root /mount rw,noatime master:1 - ext4 /dev/root rw
        before, _, behind = line.partition(" - ")
        number = before.split()[2:3]
        kind = behind.split()[:1]
        if number and kind:
            major, _, minor = number[0].partition(":")
            found[os.makedev(int(major), int(minor))] = kind[0] in _PSEUDO
    return found


def is_real_file(state: os.stat_result) -> bool:
    """Return whether it is a regular file of a file system that holds files."""
    return stat.S_ISREG(state.st_mode) and not is_made_up(state.st_dev)


def is_real_folder(state: os.stat_result) -> bool:
    """Return whether it is a folder of a file system that holds files."""
    return stat.S_ISDIR(state.st_mode) and not is_made_up(state.st_dev)


def beside(path: Path, suffix: str) -> Path | None:
    """Return the file whose name is that of `path` with `suffix` behind it; None where none can be looked at.

    A name that a file system takes may be too long for it with the suffix.
    """
    neighbour = Path(f"{path}{suffix}")
    try:
        return neighbour if neighbour.is_file() else None
    except OSError:
        return None


def read_small_text(path: str | os.PathLike[str]) -> tuple[str, os.stat_result]:
    """Return the text of a file that a person wrote, and its state: settings, an address, a token.

    An OSError as of `open_regular`, with EFBIG where it is larger than SMALL_BYTES; a UnicodeDecodeError where it is no
    UTF-8.
    """
    with open_regular(path) as file:
        content = file.read(SMALL_BYTES + 1)
        state = os.fstat(file.fileno())
    if len(content) > SMALL_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {SMALL_BYTES >> 20} MB", os.fspath(path))
    return content.decode("utf-8"), state


def identify_file(path: str | os.PathLike[str]) -> tuple[int, int] | str:
    """Return what all names of one file or folder have in common: its device and inode; the absolute path where nothing
    is there, as behind a link to itself, or a file system numbers no files.
    """
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return os.path.abspath(path)
    return (state.st_dev, state.st_ino) if state.st_ino else os.path.abspath(path)


def same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether both paths lead to one file or folder, by any links."""
    return identify_file(one) == identify_file(other)


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Return the file at `path`, a link followed, opened for reading only.

    An OSError with EPERM for anything that is no real file, which is not opened; any other one where it cannot be.
    """
    if not is_real_file(os.stat(path)):
        raise PermissionError(errno.EPERM, "Not a file", os.fspath(path))
    # another one may put a pipe in its place meanwhile, which would be waited at
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not is_real_file(os.fstat(handle)):
            raise PermissionError(errno.EPERM, "Not a file", os.fspath(path))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise
