"""The single calls of a run, read again from the files that it was read from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tracker import readers, timeline
from tracker.columns import Columns
from tracker.errors import SourceError
from tracker.limits.touch import touch
from tracker.profile import Capture, Source
from tracker.readers import Found, ReadOptions
from tracker.timeline import WantedCalls


class StoredSource(Struct, frozen=True):
    """A file that a run was read from: `rank` is the lowest one that it holds."""

    rank: int
    format: str
    path: str
    digest: str


class StoredCapture(Struct, frozen=True):
    """A rank of a run, and the device that its capture names, None for none."""

    rank: int
    device_ordinal: int | None


class ReadCalls(Struct, frozen=True):
    """The calls of a run. `calls`: of each rank whose file could be read. `unread`: why others could not, by file."""

    calls: Mapping[int, Columns]
    unread: tuple[SourceError, ...] = ()


def read_calls(
    sources: Iterable[StoredSource],
    captures: Sequence[StoredCapture],
    wanted: Mapping[int, WantedCalls],
    options: ReadOptions,
    loader_names: Sequence[str] = (),
) -> ReadCalls:
    """Return the wanted calls of each rank of a run, from its files.

    A file that is gone or has another content than it had is not read, and neither is one of a format that has sums
    only. `captures`: all ranks of the run; `wanted`: what is wanted of those that are read.
    """
    # what passed at the ingest passes here: the content is the same
    lenient = replace(options, allow_partial=True, skip_bad_rows=True)
    calls: dict[int, Columns] = {}
    unread: list[SourceError] = []
    places: dict[Found, list[StoredSource]] = {}
    for source in sources:
        with touch(Path(source.path)):
            found = Found(readers.capture_of(Path(source.path)), source.format)
        places.setdefault(found, []).append(source)
    is_one_each = len(places) == len(captures)
    for found, own in places.items():
        first_rank = min(source.rank for source in own)
        if is_one_each and first_rank not in wanted:
            continue
        try:
            ranked = _rank_captures(_read_unchanged(found, own, lenient), first_rank, captures)
        except SourceError as error:
            unread.append(error)
            continue
        for rank, capture in ranked.items():
            if rank in wanted:
                calls[rank] = timeline.calls_of(capture, wanted[rank], loader_names)
    return ReadCalls(calls, tuple(unread))


def _read_unchanged(found: Found, stored: Sequence[StoredSource], options: ReadOptions) -> Sequence[Capture]:
    """Return the captures of a place; a SourceError where a file of it is not what it was, or has no single calls."""
    for source in stored:
        path = Path(source.path)
        with touch(path):
            is_there = path.exists()
        if not is_there:
            raise SourceError(path, "", "no such file any more", remedy="put the file back")
    profile = readers.read(found, options)
    read = {source.path: source for capture in profile.captures for source in capture.sources}
    changed = [source for source in stored if not _is_unchanged(source, read)]
    if changed:
        problem = "has another content than when it was ingested"
        raise SourceError(changed[0].path, "", problem, remedy="put the file back, or ingest the new one")
    if any(capture.events is None for capture in profile.captures):
        problem = f"is of {profile.format}, which has no single calls"
        raise SourceError(found.path, "", problem, remedy="record a trace")
    return profile.captures


def _is_unchanged(stored: StoredSource, read: Mapping[str, Source]) -> bool:
    today = read.get(stored.path)
    if today is None:
        return False
    if today.digest.hex() == stored.digest:
        return True
    older = readers.older_digests(tuple(read.values())).get(today.digest, ())
    return stored.digest in [digest.hex() for digest in older]


def _rank_captures(
    captures: Sequence[Capture], first_rank: int, stored: Sequence[StoredCapture]
) -> Mapping[int, Capture]:
    """Return the captures of a file by the rank that they have in the run.

    A capture whose file names no rank has the first one of the file, or is a further device of its process: these have
    ranks in the order of their devices.
    """
    ranks = {one.rank for one in stored}
    found: dict[int, Capture] = {}
    unnamed: list[Capture] = []
    for capture in captures:
        if len(captures) > 1 and capture.rank in ranks:
            found[capture.rank] = capture
        elif first_rank not in found and not unnamed:
            found[first_rank] = capture
        else:
            unnamed.append(capture)
    free = sorted(one.rank for one in stored if one.rank >= first_rank and one.rank not in found)
    devices = {one.rank: one.device_ordinal for one in stored}
    for capture in unnamed:
        alike = [rank for rank in free if devices[rank] == capture.device_ordinal] or free
        if not alike:
            raise SourceError(captures[0].sources[0].path, "", "has other ranks than it had", remedy="ingest it again")
        found[alike[0]] = capture
        free.remove(alike[0])
    return found
