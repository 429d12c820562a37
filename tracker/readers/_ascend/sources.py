"""The files of one capture as sources: which of them are known again wherever they lie."""

from __future__ import annotations

from collections.abc import Sequence, Set
from pathlib import PurePath

from msgspec.structs import replace

from tracker.profile import Source
from tracker.readers._digest import tie_digests


def sources_of(files: Sequence[Source], main: Set[str]) -> tuple[Source, ...]:
    """`files` of one capture; what lies beside its main files is told from equal files of other captures.

    All ranks and captures of a job write one and the same profiler_metadata.json, and empty tables are equal too: the
    digest of such a file covers a main file as well. `main`: names of files that are a capture alone; where a capture
    has none of them the largest file is its main one.
    """
    if not files:
        return ()
    alone = {file.path for file in files if PurePath(file.path).name in main}
    alone = alone or {max(files, key=lambda file: file.bytes).path}
    first = next(file for file in files if file.path in alone)
    return tuple(file if file.path in alone else _beside(file, first) for file in files)


def _beside(file: Source, main: Source) -> Source:
    return replace(file, digest=tie_digests(file.digest, main.digest))
