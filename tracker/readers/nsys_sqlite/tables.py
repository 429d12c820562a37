"""The tables of an export as columns, whatever its version calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracker.profile import I32, I64, Strings
from tracker.readers._sqlite import Database

Arrays = dict[str, NDArray[Any]]

_PROCESS_BITS: Final = 24
"""The exporter packs ids: the thread in the low 24 bits, the process above it, the machine above that."""

_THREAD_MASK: Final = (1 << _PROCESS_BITS) - 1


def process_of(global_ids: I64) -> I64:
    """The process of each globalTid or globalPid, told from processes of other machines.

    >>> process_of(np.array([281477459738772, 281477459738624])).tolist()
    [16777364, 16777364]
    """
    processes: I64 = global_ids >> _PROCESS_BITS
    return processes


def pid_of(process: int) -> int:
    """The number by which the operating system knows a process.

    >>> pid_of(16777364)
    148
    """
    return process & _THREAD_MASK


def machine_of(process: int) -> int:
    """The machine of a process, of a report of several machines.

    >>> machine_of(16777364)
    1
    """
    return process >> _PROCESS_BITS


def tid_of(global_tid: int) -> int:
    """The number by which the operating system knows a thread.

    >>> tid_of(281477459738772)
    148
    """
    return global_tid & _THREAD_MASK


class Names:
    """Ids of StringIds -> codes of `Strings`; what has no id is the empty text."""

    def __init__(self, db: Database, strings: Strings) -> None:
        self.strings = strings
        self._texts = db.words("StringIds")

    def text(self, number: int) -> str:
        """The text with this id."""
        return self._texts.get(number, "")

    def codes(self, ids: I64, spell: Callable[[str], str] = str) -> I32:
        """The code of each text as `spell` writes it; each distinct one is spelled once."""
        distinct, back = np.unique(ids, return_inverse=True)
        said = [self._texts.get(number, "") for number in distinct.tolist()]
        return np.array([self.strings.code(spell(text)) if text else 0 for text in said], dtype=np.int32)[back]


def joined(parts: Sequence[Mapping[str, NDArray[Any]]]) -> Arrays:
    """The rows of all parts, one part after the other; all have the same columns."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
