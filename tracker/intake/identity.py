"""Which captures are one: the same process, start and events, whatever file holds them."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.profile import Capture, Rows

if TYPE_CHECKING:
    from tracker.intake.pieces import Piece

_DIGEST_BYTES: Final = 32
_COUNTED: Final = {"op": "calls", "kernel": "calls", "api": "calls", "communication": "calls", "memory": "calls"}
_TIMED: Final = {"op": "host_total_ns", "kernel": "total_ns", "api": "total_ns", "communication": "total_ns"}


class Fingerprint(Struct, frozen=True):
    """What tells a capture from all others, whatever file holds it.

    `process`: who ran and when it began. `steps`: number, start and duration of each. `sums`: how many events of each
    kind there are, how long they took together, and what they are called. A capture without an absolute start has no
    process.
    """

    process: tuple[str, ...] = ()
    steps: tuple[tuple[int, int, int | None], ...] = ()
    sums: tuple[int, ...] = ()

    @property
    def begin(self) -> Hashable:
        """What is equal in a capture and its beginning: the process, and the first step or else the sums."""
        return self.process, self.steps[:1] or self.sums

    def digest(self) -> bytes:
        """Return what stands for all of it; b"" where the process is not known."""
        if not self.process:
            return b""
        content = msgspec.msgpack.encode((self.process, self.steps, self.sums))
        return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()

    def begins(self, other: Fingerprint) -> bool:
        """Whether this is the first part of `other`: of the same process, and its steps are the first of those."""
        if not self.process or self.process != other.process:
            return False
        return 0 < len(self.steps) < len(other.steps) and other.steps[: len(self.steps)] == self.steps


def fingerprint_of(capture: Capture, format: str) -> Fingerprint:
    """Return the fingerprint of a capture with rows."""
    rows = capture.rows
    if rows is None or capture.started_at_ns is None:
        return Fingerprint()
    place = (format, capture.host, capture.rank, capture.device_ordinal, capture.started_at_ns)
    sums = []
    for columns in (_COUNTED, _TIMED):
        for table, column in columns.items():
            values = np.asarray(rows.tables.get(table, {}).get(column, ()), dtype=np.int64)
            sums.append(int(values.sum(dtype=np.uint64)))
    sums.append(_number_of_names(rows))
    # the marker of a step is what the file says; its window depends on what else the file holds
    steps = []
    for row in rows.steps:
        lasting_ns = row.breakdown.duration_ns if row.marker_ns is None else row.marker_ns
        steps.append((row.step, row.start_ns, lasting_ns))
    return Fingerprint(tuple(map(str, place)), tuple(steps), tuple(sums))


def _number_of_names(rows: Rows) -> int:
    """Return a number that stands for the names of all operators and kernels, as the source wrote them."""
    names = sorted({*rows.tables.get("op_key", {}).get("name", ()), *rows.tables.get("kernel_key", {}).get("name", ())})
    content = msgspec.msgpack.encode([name.encode("utf-8", "surrogatepass") for name in names])
    return int.from_bytes(hashlib.blake2b(content, digest_size=7).digest(), "big")


def leave_out_copies(files: Sequence[list[Piece]]) -> list[list[Piece]]:
    """Return the files that are left when each capture counts once; the first piece of a file that stays says so.

    A file is left out where another one of the same labels holds the same captures (exported again, saved with other
    ends of lines), or the same and more (it was copied while it was still written).
    """
    left: list[list[Piece]] = []
    notes: dict[int, list[str]] = {}
    # thousands of files are never compared with each other: only captures with the same first step can be one
    alike: dict[Hashable, list[int]] = {}
    same: dict[Hashable, int] = {}
    for file in sorted(files, key=lambda file: (-_number_of_steps(file), file[0].place)):
        fingerprints = tuple(piece.fingerprint for piece in file)
        if not all(fingerprint.process for fingerprint in fingerprints):
            left.append(list(file))
            continue
        key = (_filed_as(file[0]), tuple(fingerprint.begin for fingerprint in fingerprints))
        whole = _find_whole(file, ((place, left[place]) for place in alike.get(key, ())))
        place = same.get((key, fingerprints)) if whole is None else whole
        if place is not None and _digests_of(file) != _digests_of(left[place]):
            how = "the beginning of" if whole is not None else "the same capture as"
            notes.setdefault(place, []).append(f"{file[0].place} is {how} {left[place][0].place}: it counts once")
            continue
        # the very same file, one that came twice, the store takes once
        if place is None:
            same[key, fingerprints] = len(left)
            alike.setdefault(key, []).append(len(left))
        left.append(list(file))
    for place, said in notes.items():
        first = left[place][0]
        left[place][0] = replace(first, warnings=(*first.warnings, *said))
    return left


def _number_of_steps(file: Sequence[Piece]) -> int:
    return sum(len(piece.fingerprint.steps) for piece in file)


def _find_whole(file: Sequence[Piece], others: Iterable[tuple[int, Sequence[Piece]]]) -> int | None:
    """Return the place of the first of the files, the longest first, that a file is the beginning of; None for none."""
    for place, other in others:
        if _number_of_steps(other) <= _number_of_steps(file):
            return None
        if _is_beginning_of(file, other):
            return place
    return None


def _is_beginning_of(file: Sequence[Piece], other: Sequence[Piece]) -> bool:
    pairs = zip(file, other, strict=True)
    return all(one.fingerprint.begins(two.fingerprint) for one, two in pairs)


def _digests_of(file: Sequence[Piece]) -> set[bytes]:
    return {source.digest for source in file[0].capture.sources}


def _filed_as(piece: Piece) -> Hashable:
    """Return what decides the labels of a piece, so that copies with other labels are refused later and not dropped."""
    said = piece.told
    configuration, labels = sorted(said.configuration.items()), sorted(piece.capture.labels.items())
    return said.version, said.workload, tuple(configuration), tuple(labels), piece.capture.device
