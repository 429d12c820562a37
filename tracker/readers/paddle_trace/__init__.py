"""Paddle profiler traces: `*.paddle_trace.json`, plain or gzip, as `Profiler.export` writes them since Paddle 2.3.

An object with `traceEvents`, `span_index` and `ExtraInfo`, written by one process. One capture per device in use.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker.readers._source import ReadOptions, first_character, read_head
from tracker.readers._trace import profile_of_trace

if TYPE_CHECKING:
    from tracker.profile import Profile

__all__ = ["TITLE", "read", "sniff"]

TITLE: Final = "Paddle profiler trace, .paddle_trace.json"
NAME: Final = "paddle_trace"
NAMED: Final = re.compile(r".*\.paddle_trace\.json(?:\.gz)?")
TRACES: Final = re.compile(".*")
_SNIFF_BYTES: Final = 1 << 18

# span_indx: the spelling of schema 1.0.0; threads are named `7271(Python)` and `7271(C++)`
_OWN: Final = re.compile(rb'"span_inde?x"|"tid"\s*:\s*"\d+\((?:Python|C\+\+)\)"')
_EVENTS: Final = re.compile(rb'"traceEvents"\s*:')


def sniff(path: Path, head: bytes) -> bool:
    """True for a Paddle trace, told by its own top-level key or its thread names; in 256 KiB where `head` is short."""
    if path.is_dir() or first_character(head) != b"{":
        return False
    if _OWN.search(head) and _EVENTS.search(head):
        return True
    if not _EVENTS.search(head) and b'"deviceProperties"' not in head:
        return False
    more = read_head(path, _SNIFF_BYTES)
    return bool(_OWN.search(more) and _EVENTS.search(more))


def read(path: Path, options: ReadOptions | None = None) -> Profile:
    """The trace at `path`; a SourceError names the byte where it is no trace, damaged, or impossible."""
    from tracker.readers.paddle_trace.reading import captures_of

    return profile_of_trace(NAME, path, options, captures_of)
