"""Which captures are one: the same process, start and events, whatever file holds them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.profile import Capture, Rows
from tracker.profile.same_job import Collectives, count_collectives

if TYPE_CHECKING:
    from tracker.intake.pieces import Piece

_DIGEST_BYTES: Final = 32
_COUNTED: Final = {"op": "calls", "kernel": "calls", "api": "calls", "communication": "calls", "memory": "calls"}
_TIMED: Final = {"op": "host_total_ns", "kernel": "total_ns", "api": "total_ns", "communication": "total_ns"}


class Fingerprint(Struct, frozen=True):
    """What tells a capture from all others, whatever file holds it.

    `process`: who ran and when it began. `steps`: number, start and duration of each. `sums`: how many events of each
    kind there are, how long they took together, and what they are called. A capture without an absolute start has no
    process. `collectives`: how often the ranks exchanged what, which is equal in all ranks of one job.
    """

    process: tuple[str, ...] = ()
    steps: tuple[tuple[int, int, int | None], ...] = ()
    sums: tuple[int, ...] = ()
    collectives: Collectives = ()

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
    return Fingerprint(tuple(map(str, place)), tuple(steps), tuple(sums), count_collectives(rows))


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
    for file in sorted(files, key=lambda file: (-_number_of_steps(file), file[0].place)):
        for place, kept in enumerate(left):
            if why := _how_it_repeats(file, kept):
                note = f"{file[0].place} is {why} {kept[0].place}: it counts once"
                left[place] = [replace(kept[0], warnings=(*kept[0].warnings, note)), *kept[1:]]
                break
        else:
            left.append(list(file))
    return left


def _number_of_steps(file: Sequence[Piece]) -> int:
    return sum(len(piece.fingerprint.steps) for piece in file)


def _how_it_repeats(file: Sequence[Piece], other: Sequence[Piece]) -> str:
    """Say how the captures of `file` are all in `other`; "" where they are not, or are to be filed elsewhere."""
    if len(file) != len(other) or _filed_as(file[0]) != _filed_as(other[0]):
        return ""
    if {source.digest for source in file[0].capture.sources} == {source.digest for source in other[0].capture.sources}:
        return ""  # the very same file: one that came twice, which the store takes once
    pairs = [(one.fingerprint, two.fingerprint) for one, two in zip(file, other, strict=True)]
    if all(one.process and one == two for one, two in pairs):
        return "the same capture as"
    if all(one.begins(two) for one, two in pairs):
        return "the beginning of"
    return ""


def _filed_as(piece: Piece) -> tuple[object, ...]:
    """Return what decides the labels of a piece, so that copies with other labels are refused later and not dropped."""
    said = piece.told
    return said.version, said.workload, dict(said.configuration), dict(piece.capture.labels), piece.capture.device
