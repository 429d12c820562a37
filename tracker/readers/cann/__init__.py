"""Text exports of CANN msprof: PROF_* folders, whatever framework ran; one capture per device.

`PROF_*/mindstudio_profiler_output` of CANN 8, `PROF_*/device_*/{timeline,summary}` of CANN 7 and before, or one of the
main files alone. Kernels are those of op_summary, without it those of the timeline. A PROF_* folder inside a capture of
a framework's profiler belongs to that capture. info.json has the clock for which the cores are rated, the track
`AI Core Freq` that at which kernels ran, where one was measured.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker.errors import SourceError
from tracker.readers._ascend import prof_folders
from tracker.readers._pause import collector_paused
from tracker.readers._source import ReadOptions, may_be_events, read_head, suffix_of

if TYPE_CHECKING:
    from tracker.profile import Profile

__all__ = ["TITLE", "read", "sniff", "unfinished"]

TITLE: Final = "CANN msprof export as text (PROF_* folder, mindstudio_profiler_output, msprof_*.json, op_summary_*.csv)"
NAME: Final = "cann"
_SNIFF_BYTES: Final = 1 << 18
NAMED: Final = re.compile(r"msprof(?!_tx)\w*\.json(?:\.gz)?", re.IGNORECASE)
_PROCESS: Final = re.compile(rb'"name"\s*:\s*"(?:Ascend Hardware|CANN|Overlap Analysis|HCCL|Communication|AscendCL)"')
# as the titles are read: in any order, case and spelling of _ascend/spellings.py
_HEADER: Final = re.compile(
    rb"(?=[^\r\n]*\bOp ?Name\b)(?=[^\r\n]*\b(?:Task ?)?Start ?Time\b)(?=[^\r\n]*\b(?:Task ?)?Duration\b)", re.IGNORECASE
)


def sniff(path: Path, head: bytes) -> bool:
    """True for the folder of a capture, exported as text or not at all; for a file by its header or its processes."""
    if path.is_dir():
        return _is_output(path) or _is_capture(path)
    if suffix_of(path) == ".csv":
        return _HEADER.match(head) is not None
    if not NAMED.fullmatch(path.name) or not may_be_events(head):
        return False
    return _PROCESS.search(read_head(path, _SNIFF_BYTES)) is not None


def read(path: Path, options: ReadOptions | None = None) -> Profile:
    """The captures at `path`; a SourceError names the file and place where it cannot be read."""
    from tracker.readers.cann.reading import profile_of

    if _is_unparsed(path):
        problem = "the capture was never parsed, it holds only raw data"
        raise SourceError(path, "", problem, remedy=_how_to_parse(path))
    with collector_paused():
        return profile_of(NAME, path, options or ReadOptions())


def unfinished(path: Path) -> str:
    """Why the profiler is not done with the capture at `path`; '' where it is, as far as can be seen."""
    return f"{path.name} is not parsed yet; {_how_to_parse(path)}" if _is_unparsed(path) else ""


def _is_unparsed(path: Path) -> bool:
    return path.is_dir() and not _is_output(path) and not _is_exported(path)


def _how_to_parse(path: Path) -> str:
    return f"parse it: msprof --export=on --output={path.resolve()}"


def _is_output(folder: Path) -> bool:
    return folder.name == prof_folders.OUTPUT and prof_folders.has_work(folder)


def _is_capture(folder: Path) -> bool:
    """True for the folder of a capture or of one of its devices; one that is only a database is another reader's."""
    if _is_exported(folder):
        return True
    is_raw = prof_folders.is_prof_name(folder.name) and prof_folders.is_raw(folder)
    return is_raw and not prof_folders.has_database(folder)


def _is_exported(folder: Path) -> bool:
    if prof_folders.device_in_name(folder.name) is not None:
        return any(prof_folders.has_work(place) for place in prof_folders.old_text_folders(folder))
    return prof_folders.has_text(folder)
