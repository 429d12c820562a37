"""The command that comes next: an ingest of exactly what can be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tracker.intake import IngestOptions
from tracker.profile import UNKNOWN_DEVICE, Capture

VERSION: Final = "VERSION"
WORKLOAD: Final = "WORKLOAD"
DEVICE: Final = "MODEL"
"""What stands in the command for what only the user knows."""


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
    sound = [str(place) for path in paths for place in _sound(path, readable, broken)]
    return (
        "tracker",
        "ingest",
        *dict.fromkeys(sound),
        *(word for name, value in given.items() if value for word in (name, value)),
        *switches,
    )


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
