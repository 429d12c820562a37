"""The calling contexts of one rank as one value: what all its steps say of them, packed.

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

from tracker.profile import I64
from tracker.store.failures import Damaged
from tracker.store.numbers import bytes_of, numbers_of

NUMBERS: Final = ("calls", "host_total_ns", "device_total_ns", "device_self_ns", "kernel_count")
_LEVEL: Final = 1
_CONTEXT: Final = ("node", "parent", "op_key_id")
_STEP: Final = ("step", *NUMBERS)
COLUMNS: Final = (*_CONTEXT, *_STEP)
_HEAD: Final = struct.Struct("<q")


class Contexts(Struct, frozen=True, eq=False):
    """The contexts of a rank by node, each with its `node`, `parent` and `op_key_id`; and row by row what a step says
    of one, by context and step: the `place` of the context among them, the `step`, and `numbers`, one line for each
    of NUMBERS, MISSING where the source does not say.
    """

    node: I64
    parent: I64
    op_key_id: I64
    place: I64
    step: I64
    numbers: I64


def packed(rows: Mapping[str, I64]) -> bytes:
    """`rows`, in any order, with the columns of a context, of a step and NUMBERS: zlib of the number of contexts, of
    their nodes, parents, op keys and how many rows each has, then of the steps and numbers of all rows.
    """
    order = np.lexsort([rows[name] for name in ("step", *reversed(_CONTEXT))])
    of_rows = np.stack([rows[name][order] for name in _CONTEXT])
    starts = np.flatnonzero(np.diff(of_rows, prepend=of_rows[:, :1] - 1).any(axis=0))
    contexts = np.vstack([of_rows[:, starts], np.diff(starts, append=len(order))])
    steps = np.stack([rows[name][order] for name in _STEP])
    # a tenth larger than what zlib itself makes of it, in a thirtieth of the time
    return isal_zlib.compress(_HEAD.pack(len(starts)) + bytes_of(contexts) + bytes_of(steps), _LEVEL)


def unpacked(content: bytes) -> Contexts:
    """What was `packed`; ValueError where the bytes are damaged."""
    try:
        plain = zlib.decompress(content)
        (count,) = _HEAD.unpack_from(plain)
    except (zlib.error, struct.error) as error:
        raise ValueError("these bytes are no calling contexts") from error
    end = _HEAD.size + 8 * (len(_CONTEXT) + 1) * count
    node, parent, op_key_id, often = numbers_of(plain[_HEAD.size : end], len(_CONTEXT) + 1)
    step, *numbers = numbers_of(plain[end:], len(_STEP))
    place = np.repeat(np.arange(count), often)
    if len(place) != len(step):
        raise ValueError("contexts and their rows differ in number")
    return Contexts(node, parent, op_key_id, place, step, np.stack(numbers))


def damaged(run_id: int, rank: int) -> Damaged:
    """What is said of contexts that cannot be unpacked."""
    again = f"tracker runs delete {run_id} --purge --reason damaged, then ingest its files again"
    return Damaged(
        f"the calling contexts of run {run_id}, rank {rank}", f"restore the database from a copy, or {again}"
    )
