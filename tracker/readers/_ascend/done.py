"""Whether the parser of torch_npu or MindSpore is done with a capture: newer ones say so by a file, `analyse.done`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tracker.readers._ascend.files import CAPTURE_FOLDER, OUTPUT

_DONE: Final = "analyse.done"  # in the output folder; torch_npu 2.7 writes it last


def still_parsed(path: Path) -> str:
    """Why the capture folder `path` seems to be parsed still; '' where nothing says so.

    Older parsers write no mark, so it is only missed where the captures beside this one have it.
    """
    if not CAPTURE_FOLDER.fullmatch(path.name) or not (path / OUTPUT).is_dir() or _is_marked(path):
        return ""
    if any(_is_marked(other) for other in path.absolute().parent.iterdir() if CAPTURE_FOLDER.fullmatch(other.name)):
        return f"{path.name} has no {_DONE} yet, which the captures beside it have"
    return ""


def _is_marked(capture: Path) -> bool:
    return (capture / OUTPUT / _DONE).is_file()
