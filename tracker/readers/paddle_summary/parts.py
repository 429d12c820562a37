"""The sections of one summary that were saved in files of their own: 01_DeviceSummary.txt, 02_ModelSummary.txt, ..."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tracker.errors import SourceError
from tracker.readers._source import ReadOptions, SourceText
from tracker.readers._text import lines_of
from tracker.readers.paddle_summary.sections import sections_of

_TITLE: Final = "Device|Overview|Model|Distribution|Operator|Kernel|Memory ?Manipulation|User ?Defined|Memory"
_NAME: Final = re.compile(
    rf"(?:\d{{1,3}}[ _.-]*)?(?P<before>.*?)[ _.-]*(?:{_TITLE})[ _.-]*Summary(?P<behind>.*)", re.IGNORECASE
)
_MOST_BYTES: Final = 1 << 20
"""A larger file is no single table."""


def parts_of(path: Path) -> tuple[Path, ...]:
    """The files of the summary that the file at `path` is a part of, ordered by name; `path` alone where it is none.

    Files of one folder are one summary where their names differ only in the title of a section and a number in front,
    no section stands in two of them, and those that count the steps count the same.
    """
    name = _NAME.fullmatch(path.name)
    if name is None or not path.is_file():
        return (path,)
    beside = [other for other in path.parent.iterdir() if _is_part(other, name)]
    return tuple(sorted(beside)) if len(beside) > 1 and _is_one(beside) else (path,)


def _is_part(path: Path, name: re.Match[str]) -> bool:
    other = _NAME.fullmatch(path.name)
    return other is not None and other.groups() == name.groups() and path.is_file()


def _is_one(paths: list[Path]) -> bool:
    found: list[str] = []
    counts: set[int] = set()
    for path in paths:
        try:
            if path.stat().st_size > _MOST_BYTES:
                return False
            sections = sections_of(lines_of(SourceText(path, ReadOptions())), path, skip_bad_rows=True)
        except (SourceError, OSError):
            return False
        found += sections.found
        counts |= sections.step_counts()
    return len(found) == len(set(found)) and len(counts) <= 1
