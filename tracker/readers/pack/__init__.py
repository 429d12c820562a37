"""Packed profiles (`run.trk`): the rows that `tracker pack` made of profiles, with their labels.

A `.trk` is gzip over the line `tracker-pack` and records, each a big-endian uint32 of its length and so many bytes of
MessagePack: first a `Header` (see `schema`), then one `CaptureRecord` per capture, in the order of the header, then
nothing. Numbers lie in columns (see `columns`): all first bytes, then all second bytes, and so on, which compresses
well. The same profiles give the same bytes. Whatever is read is checked against what the database takes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker.readers._source import ReadOptions
from tracker.readers.pack.marks import MAGIC, NAME

if TYPE_CHECKING:
    from tracker.profile import Profile

__all__ = ["TITLE", "read", "sniff"]

TITLE: Final = "packed profiles, written by tracker pack"
NAMED: Final = re.compile(r".*\.trk")


def sniff(path: Path, head: bytes) -> bool:
    """True for content that starts with the line of a pack."""
    return head.startswith(MAGIC)


def read(path: Path, options: ReadOptions | None = None) -> Profile:
    """All captures in the pack at `path`, and in `packed` the profiles that they came from, in their order.

    A SourceError where the pack is damaged, larger than the limit, of another schema, or holds what cannot be.
    """
    from tracker.profile import Profile
    from tracker.readers.pack.reading import packed_in_file

    packed = packed_in_file(path, options or ReadOptions())
    captures = tuple(capture for one in packed for capture in one.profile.captures)
    warnings = tuple(warning for one in packed for warning in one.profile.warnings)
    return Profile(NAME, str(path), captures, warnings, packed)
