"""Reading one file that holds one trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tracker.errors import SourceError
from tracker.readers._pause import collector_paused
from tracker.readers._source import ReadOptions, SourceText

if TYPE_CHECKING:
    from tracker.profile import Capture, Profile

CapturesOf = Callable[[SourceText, ReadOptions], "tuple[tuple[Capture, ...], tuple[str, ...]]"]
"""The captures in a text, none where it holds no events, and warnings."""


def profile_of_trace(name: str, path: Path, options: ReadOptions | None, captures_of: CapturesOf) -> Profile:
    """The trace at `path` as the reader `name` reads it; a SourceError where it has no captures."""
    from tracker.profile import Profile

    options = options or ReadOptions()
    with collector_paused():
        captures, warnings = captures_of(SourceText(path, options), options)
    if not captures:
        raise SourceError(path, "", "the trace holds no events of a profile", remedy="profile at least one step")
    return Profile(name, str(path), captures, warnings)
