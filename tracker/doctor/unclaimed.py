"""Files that no reader takes but that look like profiles: told by their names and sizes, counted per kind."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from tracker import readers
from tracker.doctor.findings import Unclaimed
from tracker.limits.touch import touch

_EXAMPLES: Final = 3
_LARGE_BYTES: Final = 1 << 16
"""Tables and JSON below this are rather settings than profiles."""


class _Kind(Struct, frozen=True):
    """`pattern`: of the whole name. `least_bytes`: smaller files of this name are passed over."""

    pattern: re.Pattern[str]
    title: str
    remedy: str
    least_bytes: int = 0


def _kind(pattern: str, title: str, remedy: str, least_bytes: int = 0) -> _Kind:
    return _Kind(re.compile(pattern, re.IGNORECASE), title, remedy, least_bytes)


_FOLDERS: Final = (
    _kind(
        r"FRAMEWORK",
        "raw folder of torch_npu",
        "parse the *_ascend_pt folder above it with torch_npu.profiler.profiler.analyse",
    ),
)
_FILES: Final = (
    _kind(r".*\.(?:nsys-rep|qdrep)", "report of Nsight Systems", "nothing to do: its export beside it is read"),
    _kind(r".*\.ncu-rep", "report of Nsight Compute", "profile whole steps with nsys or the framework's profiler"),
    _kind(
        r".*\.(?:pftrace|perfetto-trace|etl|xplane\.pb|rpd)",
        "trace of another profiler",
        "export it as a Chrome trace of PyTorch, or profile with a supported profiler",
    ),
    _kind(r".*\.(?:zip|tar|tgz|tar\.\w+|7z|zst|xz|bz2)", "archive", "unpack it first; only .gz is read as it is"),
    _kind(
        r".*\.json(?:\.gz)?", "large JSON", "see which profiler wrote it; --input-format NAME forces one", _LARGE_BYTES
    ),
    _kind(
        r".*\.(?:db|sqlite3?)",
        "large database",
        "see which profiler wrote it; --input-format NAME forces one",
        _LARGE_BYTES,
    ),
    _kind(r".*\.csv", "large CSV", "see which profiler wrote it; --input-format NAME forces one", _LARGE_BYTES),
    _kind(r".*\.gz", "large gzip file", "see what it holds", _LARGE_BYTES),
)
_EMPTY: Final = _kind(r".*\.(?:json(?:\.gz)?|csv|db|sqlite3?|log|txt)", "empty file", "export the profile again")
_MISNAMED: Final = _kind(r".*", "file named like a profile", "see its note; export or copy it again")
_NAMED: Final = _kind(r".*", "file that was named", "no reader knows it; --input-format NAME forces one")


def gather(
    paths: Iterable[Path], named: Iterable[Path], misnamed: Collection[Path] = ()
) -> tuple[tuple[Unclaimed, ...], int]:
    """The unclaimed files `paths` that look like profiles, per kind in the order of the table; number of the others.

    `named`: what the user named itself counts whatever it looks like, as `misnamed` does, whose names say it.
    A raw folder counts once, with all it holds.
    """
    asked, others = set(named), 0
    found: dict[_Kind, dict[Path, int]] = {}
    for path in paths:
        size = path.stat().st_size
        home = next((parent for parent in reversed(path.parents) if _match(_FOLDERS, parent.name, 0)), None)
        kind = _refused(path) or _kind_of(path, size) if home is None else _match(_FOLDERS, home.name, 0)
        if path in misnamed and home is None:
            kind = _MISNAMED
        elif kind is None and path in asked:
            kind = _NAMED
        if kind is None:
            others += 1
            continue
        of_kind = found.setdefault(kind, {})
        of_kind[home or path] = of_kind.get(home or path, 0) + size
    known = [_MISNAMED, *_FOLDERS, *_FILES, _EMPTY, _NAMED]
    refused = [kind for kind in found if kind not in known]
    order = [_MISNAMED, *_FOLDERS, *refused, *_FILES, _EMPTY, _NAMED]
    return tuple(_summary(kind, found[kind]) for kind in order if kind in found), others


def _refused(path: Path) -> _Kind | None:
    """Return the kind of a file of another tool that is known and not read."""
    with touch(path):
        refused = readers.refused_kind(path)
    return None if refused is None else _kind(r".*", refused.title, refused.instead)


def _kind_of(path: Path, size: int) -> _Kind | None:
    if not size:
        return _match((_EMPTY,), path.name, size)
    return _match(_FILES, path.name, size)


def _match(kinds: Iterable[_Kind], name: str, size: int) -> _Kind | None:
    kind = next((kind for kind in kinds if kind.pattern.fullmatch(name)), None)
    return kind if kind is not None and size >= kind.least_bytes else None


def _summary(kind: _Kind, found: Mapping[Path, int]) -> Unclaimed:
    examples = tuple(str(path) for path in list(found)[:_EXAMPLES])
    return Unclaimed(kind.title, kind.remedy, len(found), sum(found.values()), examples)
