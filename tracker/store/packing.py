"""Packs many rows into one value: the calling contexts and the collective calls of a rank.

They are read only as a whole, and from step to step little of them changes: rows of them would take ten times the room.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Final

import numpy as np
from isal import isal_zlib
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I64
from tracker.store.failures import Damaged

CONTEXT_NUMBERS: Final = ("calls", "host_total_ns", "device_total_ns", "device_self_ns", "kernel_count")
_COMPRESSION_LEVEL: Final = 1
_CONTEXT: Final = ("node", "parent", "op_key_id")
_STEP: Final = ("step", *CONTEXT_NUMBERS)
CONTEXT_COLUMNS: Final = (*_CONTEXT, *_STEP)
_HEAD: Final = struct.Struct("<q")


def pack_numbers(lines: I64) -> bytes:
    """Return the lines of an array (lines, numbers) as bytes, of which most are 0: zlib takes these away.

    Each number becomes what it differs by from the one before (modulo 2**64, the sign in the lowest bit); the lowest
    bytes of a line stand together, then the next ones.

    >>> unpack_numbers(pack_numbers(np.array([[7, 9], [1, -3]])), 2).tolist()
    [[7, 9], [1, -3]]
    """
    differences = np.diff(lines, prepend=0)
    codes = ((differences << 1) ^ (differences >> 63)).astype("<i8", order="C")
    return codes.view(np.uint8).reshape(*lines.shape, 8).transpose(0, 2, 1).tobytes()


def unpack_numbers(content: bytes, lines: int) -> I64:
    """Return the `lines` that `pack_numbers` made these bytes of; ValueError where they cannot be."""
    by_byte = np.frombuffer(content, dtype=np.uint8).reshape(lines, 8, -1)
    codes = np.ascontiguousarray(by_byte.transpose(0, 2, 1)).view("<u8")[..., 0]
    differences = (codes >> np.uint64(1)).astype(np.int64) ^ -(codes & np.uint64(1)).astype(np.int64)
    return np.cumsum(differences, axis=1)


class Contexts(Struct, frozen=True, eq=False):
    """The contexts of a rank by node, each with its `node`, `parent` and `op_key_id`; and row by row what a step says
    of one, by context and step: the `place` of the context among them, the `step`, and `numbers`, one line for each
    of CONTEXT_NUMBERS, MISSING where the source does not say.
    """

    node: I64
    parent: I64
    op_key_id: I64
    place: I64
    step: I64
    numbers: I64


def pack_contexts(rows: Mapping[str, I64]) -> bytes:
    """Return zlib of `rows`, which are in any order and have the columns CONTEXT_COLUMNS.

    First the number of contexts, their nodes, parents, op keys and how many rows each has; then the steps and numbers
    of all rows.
    """
    order = np.lexsort([rows[name] for name in ("step", *reversed(_CONTEXT))])
    of_rows = np.stack([rows[name][order] for name in _CONTEXT])
    starts = np.flatnonzero(np.diff(of_rows, prepend=of_rows[:, :1] - 1).any(axis=0))
    contexts = np.vstack([of_rows[:, starts], np.diff(starts, append=len(order))])
    steps = np.stack([rows[name][order] for name in _STEP])
    # a tenth larger than what zlib itself makes of it, in a thirtieth of the time
    return isal_zlib.compress(
        _HEAD.pack(len(starts)) + pack_numbers(contexts) + pack_numbers(steps), _COMPRESSION_LEVEL
    )


def unpack_contexts(content: bytes) -> Contexts:
    """Return what was packed; ValueError where the bytes are damaged."""
    try:
        plain = zlib.decompress(content)
        (count,) = _HEAD.unpack_from(plain)
    except (zlib.error, struct.error) as error:
        raise ValueError("these bytes are no calling contexts") from error
    end = _HEAD.size + 8 * (len(_CONTEXT) + 1) * count
    node, parent, op_key_id, often = unpack_numbers(plain[_HEAD.size : end], len(_CONTEXT) + 1)
    step, *numbers = unpack_numbers(plain[end:], len(_STEP))
    place = np.repeat(np.arange(count), often)
    if len(place) != len(step):
        raise ValueError("contexts and their rows differ in number")
    return Contexts(node, parent, op_key_id, place, step, np.stack(numbers))


def damaged_contexts(run_id: int, rank: int) -> Damaged:
    """Return what is said of contexts that cannot be unpacked."""
    again = f"tracker runs delete {run_id} --purge --reason damaged, then ingest its files again"
    return Damaged(
        f"the calling contexts of run {run_id}, rank {rank}", f"restore the database from a copy, or {again}"
    )


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
        """Return these calls alone."""
        return Calls(*(getattr(self, name)[rows] for name in CALL_COLUMNS))


CALL_COLUMNS: Final = Calls.__struct_fields__


def pack_calls(columns: Mapping[str, I64]) -> bytes:
    """Return zlib of the columns of `Calls`, each as `pack_numbers` gives it."""
    return isal_zlib.compress(pack_numbers(np.stack([columns[name] for name in CALL_COLUMNS])), _COMPRESSION_LEVEL)


def unpack_calls(content: bytes) -> Calls:
    """Return what was packed; ValueError where the bytes are damaged."""
    try:
        plain = zlib.decompress(content)
    except zlib.error as error:
        raise ValueError("these bytes are no collective calls") from error
    return Calls(*unpack_numbers(plain, len(CALL_COLUMNS)))


def damaged_calls(run_id: int, rank: int) -> Damaged:
    """Return what is said of calls that cannot be unpacked."""
    again = f"tracker runs delete {run_id} --purge --reason damaged, then ingest its files again"
    return Damaged(
        f"the collective calls of run {run_id}, rank {rank}", f"restore the database from a copy, or {again}"
    )
