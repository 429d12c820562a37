"""Names of files that differ in numbers: of ranks, of repeats, of processes and times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

NUMBER: Final = re.compile(r"\d+")
_RANK_WORD: Final = re.compile(r"(?:rank|tp|dp|pp|ep|cp|gpu|npu|device|card|worker|proc(?:ess)?)$", re.IGNORECASE)
_REPEAT_WORD: Final = re.compile(
    r"(?:run|repeat|rep|iter(?:ation)?|trial|try|seed|attempt|exp(?:eriment)?|sample|test|v(?:ersion)?)$", re.IGNORECASE
)
_OF_PARALLELISM: Final = re.compile(r"(?<![A-Za-z])(?P<word>[TDPEC]P)[-_]?(?P<number>\d{1,6})(?!\d)", re.IGNORECASE)
_BETWEEN: Final = re.compile(r"[\W_]*$")


class Differing(Struct, frozen=True):
    """How names that are alike but for numbers differ: of each number that differs its values, and the word before."""

    columns: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]

    @property
    def is_of_repeats(self) -> bool:
        """Whether the one number that differs counts repeats: run0, run1."""
        return len(self.words) == 1 and _REPEAT_WORD.search(self.words[0]) is not None

    @property
    def is_of_ranks(self) -> bool:
        """Whether the one number that differs is that of a rank: TP-0, TP-1."""
        return len(self.words) == 1 and _RANK_WORD.search(self.words[0]) is not None


def skeleton_of(name: str) -> str:
    """Return a name with `#` for each number.

    >>> skeleton_of("17.25-TP-0.json")
    '#.#-TP-#.json'
    """
    return NUMBER.sub("#", name)


def differing_numbers(names: Sequence[str]) -> Differing:
    """Return how names of one skeleton differ.

    >>> differing_numbers(["17-TP-0.json", "17-TP-1.json"])
    Differing(columns=(('0', '1'),), words=('17-TP',))
    """
    columns, words = [], []
    for matches in zip(*(NUMBER.finditer(name) for name in names), strict=True):
        values = tuple(match.group() for match in matches)
        if len(set(values)) > 1:
            columns.append(values)
            words.append(_BETWEEN.sub("", names[0][: matches[0].start()]))
    return Differing(tuple(columns), tuple(words))


def rank_by_parallelism(name: str) -> int | None:
    """Return the rank that a name states by one kind of parallelism alone; several do not say it.

    >>> rank_by_parallelism("17-TP-3.trace.json"), rank_by_parallelism("17-TP-3-DP-0.trace.json")
    (3, None)
    """
    found = list(_OF_PARALLELISM.finditer(name))
    return int(found[0]["number"]) if len(found) == 1 else None
