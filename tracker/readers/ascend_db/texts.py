"""The texts of a database of Ascend profilers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tracker.profile import I32, I64, Strings
from tracker.readers._sqlite import Database

_NOTHING: Final = frozenset(("N/A", "NULL"))


class Texts:
    """Ids of STRING_IDS -> codes of `Strings`; `N/A` and what has no id are the empty text."""

    def __init__(self, db: Database, strings: Strings) -> None:
        self.strings = strings
        self._texts = db.words("STRING_IDS")

    def text(self, number: int) -> str:
        """The text with this id."""
        text = self._texts.get(number, "")
        return "" if text in _NOTHING else text

    def codes(self, ids: I64, spell: Callable[[str], str] = str) -> I32:
        """The code of each text as `spell` writes it; each distinct one is spelled once, the empty text too."""
        distinct, back = np.unique(ids, return_inverse=True)
        said = [self._texts.get(number, "N/A") for number in distinct.tolist()]
        codes = [0 if text in _NOTHING else self.strings.code(spell(text)) for text in said]
        return np.array(codes, dtype=np.int32)[back]

    def ids_of(self, wanted: Callable[[str], bool]) -> I64:
        """The ids of the texts that are wanted."""
        return np.array([i for i, text in self._texts.items() if wanted(text)], dtype=np.int64)
