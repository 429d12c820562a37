"""The command that comes next: an ingest of exactly what can be read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tracker.intake import IngestOptions, Piece
from tracker.profile import UNKNOWN_DEVICE, Capture
from tracker.units import is_plain

VERSION: Final = "VERSION"
WORKLOAD: Final = "WORKLOAD"
DEVICE: Final = "MODEL"
"""What stands in the command for what only the user knows."""
_REPEAT: Final = re.compile(r"(run|rep|repeat|trial|attempt)[-_ ]?\d+", re.IGNORECASE)
"""Names of folders that count the runs of one version."""


def words(
    paths: Sequence[Path],
    readable: Sequence[Path],
    broken: Sequence[Path],
    captures: Sequence[Capture],
    options: IngestOptions,
) -> tuple[str, ...]:
    """The words of `tracker ingest` for what is readable below `paths`; () where nothing is.

    One bad file would keep all others out, so a folder that holds one is not named, but what is sound in it. Version
    and workload are left out where all files state them, since each then comes in under its own; else placeholders.
    """
    if not captures:
        return ()
    # a device that is given overrides what files name, so it is only asked for where none names one
    nameless = all(capture.device.model == UNKNOWN_DEVICE.model for capture in captures)
    given = {
        "--version": _label(captures, "version", VERSION),
        "--workload": _label(captures, "workload", WORKLOAD),
        "--device": options.device or (DEVICE if nameless else None),
        "--format": options.format,
        "--flow-category": options.flow_category,
    }
    switches = ["--allow-partial"] if options.allow_partial else []
    # a relative name that begins with - would be taken for an option
    sound = [_named(place) for path in paths for place in _sound(path, readable, broken)]
    return (
        "tracker",
        "ingest",
        *dict.fromkeys(sound),
        *(word for name, value in given.items() if value for word in (name, value)),
        *switches,
    )


def _named(place: Path) -> str:
    return f"./{place}" if str(place).startswith("-") else str(place)


def per_folder(
    paths: Sequence[Path],
    readable: Sequence[Path],
    broken: Sequence[Path],
    groups: Sequence[Sequence[Piece]],
    captures: Sequence[Capture],
    options: IngestOptions,
) -> tuple[tuple[str, ...], ...]:
    """A command for each folder of a version, where folders side by side hold runs of their own: the folder's name is
    proposed as the version. () where one command takes all.

    The folders are `paths`, or where one is named those in it. A run over two of them, files that state their version,
    and folders that count the runs of one version need one command.
    """
    folders = [path for path in paths if path.is_dir()]
    if len(folders) == len(paths) == 1:
        depth = len(paths[0].parts)
        folders = sorted({Path(*found.parts[: depth + 1]) for found in readable if len(found.parts) > depth + 1})
    elif len(folders) < len(paths):
        return ()
    own = {folder: [found for found in readable if folder in found.parents] for folder in folders}
    if len(folders) < 2 or not all(own.values()) or sum(map(len, own.values())) != len(set(readable)):
        return ()
    if len({folder.name for folder in folders}) < len(folders) or _label(captures, "version", VERSION) is None:
        return ()
    if all(_REPEAT.fullmatch(folder.name) for folder in folders):
        return ()
    homes = {path: folder for folder, found in own.items() for path in map(str, found)}
    if any(len({homes.get(piece.path) for piece in group}) > 1 for group in groups):
        return ()
    found = []
    for folder in folders:
        line = words([folder], own[folder], broken, captures, options)
        found.append(tuple(folder.name if word == VERSION and name_can_be(folder.name) else word for word in line))
    return tuple(found)


def name_can_be(label: str) -> bool:
    """Whether a version can be called so, and a command line can name it."""
    return bool(label) and is_plain(label) and not label.startswith(("-", ".")) and label not in ("latest", "pinned")


def _label(captures: Sequence[Capture], name: str, placeholder: str) -> str | None:
    return None if all(capture.labels.get(name) for capture in captures) else placeholder


def _sound(path: Path, readable: Sequence[Path], broken: Sequence[Path]) -> Iterator[Path]:
    """The fewest places at or below `path` that hold everything readable there and nothing broken."""
    inside = [found for found in readable if found == path or path in found.parents]
    if not inside:
        return
    if not any(bad == path or path in bad.parents for bad in broken):
        yield path
        return
    depth = len(path.parts)
    for child in dict.fromkeys(Path(*found.parts[: depth + 1]) for found in inside):
        if child != path:
            yield from _sound(child, readable, broken)
