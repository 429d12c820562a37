"""Database exports of Ascend profilers: PyTorch, MindSpore and msprof.

`ascend_pytorch_profiler_<rank>.db`, `ascend_mindspore_profiler_<rank>.db` and `msprof_<time>.db`, alone or in the
folder of their capture with `analysis.db` and `profiler_info_<rank>.json` beside them. One capture per rank. A kernel
was launched at the start of the call of CANN_API with its connection; its op is the one that put it into the queue.
AICORE_FREQ says at what clock kernels ran, where one was measured. In a folder `rankN_startA_stopB` of dynamic
profiling the steps are A to B of the run, as in text.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker.errors import SourceError
from tracker.readers._ascend.done import still_parsed
from tracker.readers._source import SQLITE_MAGIC, ReadOptions

if TYPE_CHECKING:
    from tracker.profile import Profile

__all__ = ["TITLE", "read", "sniff", "unfinished"]

TITLE: Final = "Ascend profiler database (PyTorch, MindSpore, msprof), .db or its folder"
NAME: Final = "ascend_db"
# STRING_IDS is the table of texts of every such database; TASK, or what a capture without a device has
_TABLES: Final = ("TASK", "CANN_API", "PYTORCH_API", "COMPUTE_TASK_INFO")


def sniff(path: Path, head: bytes) -> bool:
    """True for a database by its name, or by its tables; for a folder by the databases in it.

    A folder that has the kernels as text as well is left to the reader of the text.
    """
    from tracker.readers._sqlite import opened
    from tracker.readers.ascend_db.files import is_capture_folder, is_database_name

    if path.is_dir():
        return is_capture_folder(path)
    # a damaged file of this name is claimed too, so that the error can say what is wrong
    if is_database_name(path):
        return True
    if not head.startswith(SQLITE_MAGIC):
        return False
    try:
        with opened(path) as db:
            return db.has("STRING_IDS") and any(db.has(table) for table in _TABLES)
    except SourceError:
        return False


def read(path: Path, options: ReadOptions | None = None) -> Profile:
    """The captures at `path`; a SourceError names file and table where it is damaged or no profile."""
    from tracker.profile import Profile
    from tracker.readers.ascend_db.files import files_of
    from tracker.readers.ascend_db.reading import captures_of

    options = options or ReadOptions()
    read_all = [captures_of(files, options) for files in files_of(path)]
    captures = tuple(capture for found, _ in read_all for capture in found)
    if not captures:
        problem = "the database holds no work of a device (TASK has no rows)"
        raise SourceError(path, "table TASK", problem, remedy="profile at least one step with ProfilerActivity.NPU")
    warnings = tuple(dict.fromkeys(text for _, said in read_all for text in said))
    return Profile(NAME, str(path), captures, warnings)


def unfinished(path: Path) -> str:
    """Why the profiler is not done with the capture at `path`; '' where it is, as far as can be seen."""
    from tracker.readers import _sqlite
    from tracker.readers.ascend_db.files import files_of

    databases = (files.database for files in files_of(path))
    return still_parsed(path) or next(filter(None, map(_sqlite.unfinished, databases)), "")
