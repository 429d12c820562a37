"""The collective calls of one rank as one value: they are read only as a whole."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

import numpy as np
from isal import isal_zlib
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I64
from tracker.store.failures import Damaged
from tracker.store.numbers import bytes_of, numbers_of

_LEVEL: Final = 1


class Calls(Struct, frozen=True, eq=False):
    """The calls of a rank in order of their start, one place each in every column.

    `communication`: ordinal of the row; `group`: number of the run's group, -1 where the source names none; `step`;
    `start_ns`: from the start of the capture; `elapse_ns`; `exposed_ns`, `bytes`, `source_index`: or MISSING; `peer`:
    the global rank at the other end of a send or receive, -1 for none.
    """

    communication: I64
    group: I64
    step: I64
    start_ns: I64
    elapse_ns: I64
    exposed_ns: I64
    bytes: I64
    peer: I64
    source_index: I64

    def __len__(self) -> int:
        return len(self.start_ns)

    def taken(self, rows: I64 | NDArray[np.bool_]) -> Calls:
        """These calls alone."""
        return Calls(*(getattr(self, name)[rows] for name in COLUMNS))


COLUMNS: Final = Calls.__struct_fields__


def packed(columns: Mapping[str, I64]) -> bytes:
    """zlib of the columns of Calls, each as `numbers.bytes_of`."""
    return isal_zlib.compress(bytes_of(np.stack([columns[name] for name in COLUMNS])), _LEVEL)


def unpacked(content: bytes) -> Calls:
    """What was `packed`; ValueError where the bytes are damaged."""
    try:
        plain = zlib.decompress(content)
    except zlib.error as error:
        raise ValueError("these bytes are no collective calls") from error
    return Calls(*numbers_of(plain, len(COLUMNS)))


def damaged(run_id: int, rank: int) -> Damaged:
    """What is said of calls that cannot be unpacked."""
    again = f"tracker runs delete {run_id} --purge --reason damaged, then ingest its files again"
    return Damaged(
        f"the collective calls of run {run_id}, rank {rank}", f"restore the database from a copy, or {again}"
    )
