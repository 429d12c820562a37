"""Exports of NVIDIA Nsight Systems: `nsys export --type sqlite`, schemas of 2019 to 2026.

One capture per process and device that worked, so that one file can hold several ranks. A process that marks no step
where another one does, or that runs other kernels on the device of another one, is left out, and a note names it. A
report that was not exported (`.nsys-rep`, `.qdrep`) is refused with the command that exports it. NVTX ranges name steps
(`step 12`), phases and modules. Numbers that begin again, as in each epoch, are counted on. Where no range counts the
steps, they are ranges called `train_step` or the like that come twice or more, or iterations found by their kernels:
the same ones in the same order from the first kernel of the capture to the last, or with an optimizer at the end of
each. A note says which; else the capture is one step.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker.errors import SourceError
from tracker.limits.files import beside
from tracker.readers._pause import collector_paused
from tracker.readers._source import SQLITE_MAGIC, ReadOptions

if TYPE_CHECKING:
    from tracker.profile import Profile

__all__ = ["RANGES", "TITLE", "instead", "read", "sniff", "unfinished"]

TITLE: Final = "Nsight Systems export, .sqlite (of a .nsys-rep: nsys export --type sqlite)"
NAME: Final = "nsys_sqlite"
RANGES: Final = "NVTX range"
_EXPORT: Final = ".sqlite"
_REPORTS: Final = (".nsys-rep", ".qdrep")
_STRINGS: Final = "StringIds"
_TABLES: Final = ("META_DATA_EXPORT", "EXPORT_META_DATA", "NVTX_EVENTS", "TARGET_INFO_SYSTEM_ENV", "OSRT_API")
_ACTIVITY: Final = "CUPTI_ACTIVITY_KIND_"


def sniff(path: Path, head: bytes) -> bool:
    """True for an export, told by its tables, and for a report without its export beside it."""
    from tracker.readers._sqlite import opened

    if path.is_dir():
        return False
    if path.suffix.lower() in _REPORTS:
        return _export_beside(path) is None
    if not head.startswith(SQLITE_MAGIC):
        return False
    try:
        with opened(path) as db:
            own = any(table in _TABLES or table.startswith(_ACTIVITY) for table in db.tables)
            return own and db.has(_STRINGS)
    except SourceError:
        # a damaged file of this name is claimed too, so that the error can say what is wrong
        return path.suffix.lower() == ".sqlite"


def unfinished(path: Path) -> str:
    """Why the exporter is not done with the file at `path`; '' where it is, as far as can be seen."""
    from tracker.readers import _sqlite

    return _sqlite.unfinished(path)


def instead(path: Path) -> Path | None:
    """The export beside a report; None for any other file."""
    return _export_beside(path) if path.suffix.lower() in _REPORTS else None


def read(path: Path, options: ReadOptions | None = None) -> Profile:
    """The captures in the export at `path`; a SourceError where it is damaged, no export, or holds no work at all."""
    from tracker.profile import Profile
    from tracker.readers.nsys_sqlite.reading import captures_of

    if path.suffix.lower() in _REPORTS:
        if (export := instead(path)) is not None:
            raise SourceError(path, "", "only nsys itself can read its reports", remedy=f"give {export}, its export")
        command = f"nsys export --type sqlite --output {path.stem}{_EXPORT} {path.name}"
        raise SourceError(path, "", "only nsys itself can read its reports", remedy=f"export it: {command}")
    with collector_paused():
        captures, warnings = captures_of(path, options or ReadOptions())
    return Profile(NAME, str(path), captures, warnings)


def _export_beside(report: Path) -> Path | None:
    return beside(report.with_suffix(""), _EXPORT)
