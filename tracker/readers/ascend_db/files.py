"""Which databases make up a capture, and the files that stand beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from tracker.errors import SourceError
from tracker.readers._ascend import prof_folders
from tracker.readers._ascend.files import KERNELS, OUTPUT, TRACE

_CAPTURE_FOLDER: Final = re.compile(r".*_ascend_(?:pt|ms)", re.IGNORECASE)
_CAPTURE: Final = re.compile(r"ascend_(?:pytorch|mindspore)_profiler(?:_(?P<rank>\d{1,9}))?\.db")
_RAW: Final = prof_folders.DATABASE
_ANALYSIS: Final = ("analysis.db", "communication_analyzer.db")
_INFO: Final = re.compile(r"profiler_info(?:_(?P<rank>\d{1,9}))?\.json")
_METADATA: Final = "profiler_metadata.json"


class CaptureFiles(Struct, frozen=True):
    """The files of one capture. `folder`: the capture's own (`*_ascend_pt`), by whose name host and rank may be told.

    `analysis`, `info`, `metadata`: None where they are missing.
    """

    database: Path
    folder: Path
    rank_in_name: int | None
    analysis: Path | None
    info: Path | None
    metadata: Path | None


def is_database_name(path: Path) -> bool:
    """True for the names that the profilers give their databases."""
    return _CAPTURE.fullmatch(path.name) is not None or _RAW.fullmatch(path.name) is not None


def is_capture_folder(path: Path) -> bool:
    """True for the folder of a capture that was exported as a database, and not as text too.

    A folder of any other name is one where a trace lies beside its databases: it repeats what they say.
    """
    output = path / OUTPUT if (path / OUTPUT).is_dir() else path
    is_named = output.name == OUTPUT or _CAPTURE_FOLDER.fullmatch(path.name) is not None or any(_infos(path))
    if is_named or (output / TRACE).is_file():
        return any(_databases(output, _CAPTURE)) and not (output / KERNELS).exists()
    return prof_folders.is_prof_name(path.name) and not prof_folders.has_text(path) and any(_databases(path, _RAW))


def files_of(path: Path) -> list[CaptureFiles]:
    """The captures of a folder or of a single database, in order of their names."""
    if path.is_file():
        return [_beside(path, path.parent, alone=len(list(_databases(path.parent, _CAPTURE))) < 2)]
    output = path / OUTPUT if (path / OUTPUT).is_dir() else path
    found = sorted(_databases(output, _CAPTURE)) or sorted(_databases(output, _RAW))
    if not found:
        remedy = "export it with export_type Db, or give the folder that holds ascend_pytorch_profiler_<rank>.db"
        raise SourceError(path, "", "holds no database of a profile", remedy=remedy)
    return [_beside(database, output, alone=len(found) == 1) for database in found]


def _beside(database: Path, output: Path, *, alone: bool) -> CaptureFiles:
    """`alone`: the folder holds one database, so that a file without a rank in its name belongs to it."""
    match = _CAPTURE.fullmatch(database.name)
    rank = int(match.group("rank")) if match and match.group("rank") else None
    folder = output.parent if output.name == OUTPUT else output
    infos = [info for place in dict.fromkeys((output, folder)) for info in _infos(place)]
    mine = [info for info, number in infos if number == rank] or [info for info, _ in infos if alone]
    places = [place / _METADATA for place in dict.fromkeys((output, folder))]
    return CaptureFiles(
        database=database,
        folder=folder,
        rank_in_name=rank,
        analysis=next((output / name for name in _ANALYSIS if alone and (output / name).is_file()), None),
        info=mine[0] if len(mine) == 1 else None,
        metadata=next((place for place in places if alone and place.is_file()), None),
    )


def _databases(folder: Path, name: re.Pattern[str]) -> Iterator[Path]:
    return (entry for entry in folder.iterdir() if name.fullmatch(entry.name) and entry.is_file())


def _infos(folder: Path) -> Iterator[tuple[Path, int | None]]:
    """profiler_info files with the rank in their names."""
    for entry in sorted(folder.iterdir()):
        match = _INFO.fullmatch(entry.name)
        if match:
            yield entry, int(match.group("rank")) if match.group("rank") else None
