"""Rows of tables that are one per step and thing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from tracker.profile import I64, each_once


class Slots(Struct, frozen=True):
    """One slot per pair of step and code that occurs, ordered by step, then code."""

    step: I64
    code: I64
    _ids: I64
    _code_count: int
    _steps: I64

    def __len__(self) -> int:
        return len(self.step)

    def at(self, step: I64, code: I64) -> I64:
        """The slot of each pair; the pair must have one."""
        return np.searchsorted(self._ids, np.searchsorted(self._steps, step) * self._code_count + code)

    def summed(self, slot: I64, values: I64) -> I64:
        """Sum of `values` per slot, exact."""
        total = np.zeros(len(self), dtype=np.int64)
        np.add.at(total, slot, values)
        return total

    def counted(self, slot: I64) -> I64:
        """How often each slot occurs."""
        return np.bincount(slot, minlength=len(self)).astype(np.int64)


def slots_of(pairs: Sequence[tuple[I64, I64]], code_count: int) -> Slots:
    """The slots of all given (step, code) pairs; codes are below `code_count`."""
    steps = each_once(np.concatenate([step for step, _ in pairs]))
    ids = each_once(np.concatenate([np.searchsorted(steps, step) * code_count + code for step, code in pairs]))
    return Slots(steps[ids // code_count], ids % code_count, ids, code_count, steps)
