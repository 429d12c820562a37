"""The text that Paddle's `Profiler.summary()` prints: tables of sums, saved alone or inside of a log.

Sections: Device, Overview, Model, Distribution, Operator, Kernel, Memory Manipulation, UserDefined and Memory Summary,
each as far as it is there. One text is one capture; so are texts of one section each whose names say that they belong
together (`parts`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker.profile.words import PADDLE_SUMMARY
from tracker.readers._source import ReadOptions, SourceText
from tracker.readers._text import head_matches, lines_of, looks_like_text

if TYPE_CHECKING:
    from tracker.profile import Profile

__all__ = ["TITLE", "read", "sniff", "whole"]

TITLE: Final = "text of Paddle's Profiler.summary()"
NAME: Final = PADDLE_SUMMARY

HEADING: Final = re.compile(
    rb"^ *-{3,} *(?:Device|Overview|Model|Distribution|Operator|Kernel|Memory Manipulation|UserDefined|Memory)"
    rb" Summary(?: - [^\n]{0,40}?)? *-{3,}\s*$",
    re.MULTILINE,
)


def sniff(path: Path, head: bytes) -> bool:
    """True where a heading of such a table stands in the first MiB."""
    return looks_like_text(path, head) and head_matches(path, head, HEADING)


def whole(path: Path) -> Path:
    """The file that stands for the whole summary that the one at `path` is a part of."""
    from tracker.readers.paddle_summary.parts import parts_of

    return parts_of(path)[0]


def read(path: Path, options: ReadOptions | None = None) -> Profile:
    """The summary at `path`, with its other parts where it is one of several files.

    A SourceError names the line of a row that cannot be read, or says what is missing.
    """
    from tracker.profile import Profile
    from tracker.readers.paddle_summary.parts import parts_of
    from tracker.readers.paddle_summary.reading import capture_of
    from tracker.readers.paddle_summary.sections import Sections, sections_of

    options = options or ReadOptions()
    texts = [SourceText(part, options) for part in parts_of(path)]
    sections = Sections()
    for text in texts:
        sections.add(sections_of(lines_of(text), text.path, skip_bad_rows=options.skip_bad_rows))
    capture, warnings = capture_of(sections, texts)
    return Profile(NAME, str(path), (capture,), warnings)
