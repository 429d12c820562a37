"""Stacks that `export_stacks` of PyTorch's and torch_npu's profilers writes for flame graphs.

A line is a stack of Python, the outermost frame first, and the time of one operator that was called there, without the
operators inside, in whole us: `train.py(9): main;train.py(4): step 12`. The file has no steps and no names of
operators: the frames are read as operators of the host, each with the frames that it calls. It does not say whether
its times are of the host or of the device; a word of its name does (cpu, cuda, npu, xpu), which keeps both apart.

The number of a line in a frame is left out, so that an edit above it changes nothing; functions of one name in a file
are counted in their order (`forward (model.py) #2`). `--by op` shows the tree, and draws it. One file beside the trace
of its job is another source of the run of the trace, as a summary is: `tracker show` of that run names it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker.readers._source import ReadOptions, read_head
from tracker.readers._text import SNIFF_BYTES, looks_like_text

if TYPE_CHECKING:
    from tracker.profile import Profile

__all__ = ["TITLE", "read", "sniff"]

TITLE: Final = "stacks of export_stacks, as for flame graphs"
NAME: Final = "torch_stacks"
_LINE: Final = re.compile(rb"[^;\s][^;]*(?:;[^;]+)* \d+\s*")
_FRAME: Final = re.compile(rb"\.py\(\d+\):[ _]")
_LEAST_HEAD: Final = 4096


def sniff(path: Path, head: bytes) -> bool:
    """True where most lines at the start are such stacks, the first one with a frame of Python."""
    if not looks_like_text(path, head):
        return False
    if b"\n" not in head and len(head) >= _LEAST_HEAD - 1:
        head = read_head(path, SNIFF_BYTES)
    *lines, last = head.split(b"\n")
    # the last line of a head may be cut, that of a small file is whole
    whole = [line for line in (lines or [last]) if line.strip()]
    stacks = [line for line in whole if _LINE.fullmatch(line)]
    # a damaged line is named when it is read
    is_mostly_stacks = 2 * len(stacks) > len(whole)
    return is_mostly_stacks and stacks[0] == whole[0] and _FRAME.search(whole[0]) is not None


def read(path: Path, options: ReadOptions | None = None) -> Profile:
    """The stacks in the file at `path`; a SourceError names the line that is none."""
    from tracker.profile import Profile
    from tracker.readers.torch_stacks.reading import capture_of

    capture, warnings = capture_of(path, options or ReadOptions())
    return Profile(NAME, str(path), (capture,), warnings)
