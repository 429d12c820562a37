"""Which profiles a job wrote into a folder: what is new or changed there since before it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracker.readers import Seen

FileStates = dict[str, tuple[int, ...]]
"""Path of a file -> what changes when it is written."""


def list_files(folder: Path) -> FileStates:
    """Return every file below a folder with its state; nothing where there is no such folder."""
    found: FileStates = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            try:
                state = os.stat(path)
            except OSError:  # deleted meanwhile
                continue
            found[path] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return found


def survey_written(folder: Path, before: FileStates, format: str | None) -> list[Seen]:
    """Return what readers say of the files and folders with something new or changed since `before`."""
    from tracker.readers import survey

    changed = [Path(path) for path, state in list_files(folder).items() if before.get(path) != state]
    around = {parent for path in changed for parent in (path, *path.parents)}
    return [look for look in survey(folder, format) if look.path in around] if changed else []


def list_profiles(looks: list[Seen]) -> list[Path]:
    """Return the profiles among what was surveyed, also those that cannot be read, each once."""
    return list(dict.fromkeys(look.path for look in looks if look.claims or look.problem))
