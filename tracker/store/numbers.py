"""Lines of whole numbers as few bytes: what packed columns are made of.

Each number as what it differs by from the one before (modulo 2**64, the sign in the lowest bit): the lowest bytes of a
line together, then the next ones. Most are 0, which zlib takes away.
"""

from __future__ import annotations

import numpy as np

from tracker.profile import I64


def bytes_of(lines: I64) -> bytes:
    """The lines of an array (lines, numbers) as bytes.

    >>> numbers_of(bytes_of(np.array([[7, 9], [1, -3]])), 2).tolist()
    [[7, 9], [1, -3]]
    """
    differences = np.diff(lines, prepend=0)
    codes = ((differences << 1) ^ (differences >> 63)).astype("<i8", order="C")
    return codes.view(np.uint8).reshape(*lines.shape, 8).transpose(0, 2, 1).tobytes()


def numbers_of(content: bytes, lines: int) -> I64:
    """The `lines` whose `bytes_of` these are; ValueError where they cannot be."""
    by_byte = np.frombuffer(content, dtype=np.uint8).reshape(lines, 8, -1)
    codes = np.ascontiguousarray(by_byte.transpose(0, 2, 1)).view("<u8")[..., 0]
    differences = (codes >> np.uint64(1)).astype(np.int64) ^ -(codes & np.uint64(1)).astype(np.int64)
    return np.cumsum(differences, axis=1)
