"""What runs of one ingest say against each other: told before there is a database, where there is none yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tracker.errors import UsageError
from tracker.intake.pieces import Piece

if TYPE_CHECKING:
    from tracker.store import RunRecord


def refuse_copies(runs: Iterable[tuple[RunRecord, Sequence[Piece]]]) -> None:
    """UsageError where a file and its copy come in as runs of two versions or workloads, or only some of the files of a
    capture are copies.
    """
    first: dict[bytes, tuple[RunRecord, str]] = {}
    same: dict[bytes, tuple[RunRecord, str]] = {}
    for record, pieces in runs:
        for piece in pieces:
            if piece.capture.identity:
                other, path = same.setdefault(piece.capture.identity, (record, piece.place))
                if _label(other) != _label(record):
                    raise _two_labels(f"{path} and {piece.place} hold the same capture", other, record)
            copies = [source for source in piece.capture.sources if source.digest in first]
            for source in copies:
                other, path = first[source.digest]
                if _label(other) != _label(record):
                    raise _two_labels(f"{path} and {source.path} are the same file", other, record)
            if 0 < len(copies) < len(piece.capture.sources):
                raise UsageError(
                    f"{first[copies[0].digest][1]} and {copies[0].path} are the same file, of captures that differ in "
                    "other files",
                    remedy="leave one of the captures out",
                )
        for piece in pieces:
            for source in piece.capture.sources:
                first.setdefault(source.digest, (record, source.path))


def _two_labels(what: str, one: RunRecord, other: RunRecord) -> UsageError:
    first, second = (f"version {run.version!r} of workload {run.workload!r}" for run in (one, other))
    return UsageError(
        f"{what}, and come in as {first} and as {second}", remedy="leave one of them out, or label both alike"
    )


def _label(record: RunRecord) -> tuple[str, str]:
    """Version and workload as they are stored."""
    return _stored(record.version), _stored(record.workload)


def _stored(text: str) -> str:
    from tracker.store.bulk import clean  # not before other processes read: it brings the database's libraries

    return clean(text)


def refuse_commits(runs: Iterable[tuple[RunRecord, Sequence[Piece]]]) -> None:
    """UsageError where two runs say that one version is one commit and another; a copy says nothing."""
    first: dict[tuple[str, str], tuple[str, str]] = {}
    seen: set[bytes] = set()
    for record, pieces in runs:
        digests = {source.digest for piece in pieces for source in piece.capture.sources}
        is_copy = bool(digests) and digests <= seen
        seen |= digests
        if record.commit is None or is_copy:
            continue
        commit, place = first.setdefault(_label(record), (record.commit, pieces[0].place))
        if _stored(commit) != _stored(record.commit):
            raise UsageError(
                f"version {record.version!r} of workload {record.workload!r} is commit {commit} for {place}, "
                f"{record.commit} for {pieces[0].place}",
                remedy="give --commit or another --version, or correct what lies beside the files",
            )
