"""Text that `nsys stats` and `nsys profile --stats=true` print: sums per kernel, copy, API function and NVTX range.

Three styles: of 2019 (`CUDA Kernel Statistics (nanoseconds)`), of 2021 (`CUDA Kernel Statistics:`) and since
(`** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):`). Other output around the tables does no harm. The text holds
sums of the whole capture, no steps.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker.readers._source import ReadOptions, suffix_of
from tracker.readers._text import head_matches, looks_like_text

if TYPE_CHECKING:
    from tracker.profile import Profile

__all__ = ["TITLE", "read", "sniff"]

TITLE: Final = "text of nsys stats, any version"
NAME: Final = "nsys_stats"
_SUFFIXES: Final = (".txt", ".log", ".out", ".err", "")
_OWN: Final = re.compile(
    rb"^ ?\*\* [^\n]{1,80} \(\w{4,40}\):\s*$"
    rb"|^(?:CUDA (?:API|Kernel)|NVTX Push-Pop Range|Operating System Runtime API) Statistics(?: \(nanoseconds\)|:)\s*$",
    re.MULTILINE,
)


def sniff(path: Path, head: bytes) -> bool:
    """True for text with the title of such a table, in its first MiB: a training log may stand in front."""
    if not looks_like_text(path, head):
        return False
    is_text = suffix_of(path) in _SUFFIXES
    return head_matches(path, head if is_text else head[:4095], _OWN)


def read(path: Path, options: ReadOptions | None = None) -> Profile:
    """The one capture in the text at `path`; a SourceError names the line where a table is damaged or comes again."""
    from tracker.profile import Profile
    from tracker.readers.nsys_stats.reading import capture_of

    capture, warnings = capture_of(path, options or ReadOptions())
    return Profile(NAME, str(path), (capture,), warnings)
