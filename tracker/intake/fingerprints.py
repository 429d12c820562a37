"""What tells a capture from all others, whatever file holds it: its process, its start and its events."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct

from tracker.profile import Capture, Rows

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
