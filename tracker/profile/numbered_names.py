"""Names of files that differ in numbers: of ranks, of repeats, of processes and times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{4,}")
"""An address in memory, which differs from run to run."""
NUMBER: Final = re.compile(r"\d+")
_RANK_WORD: Final = re.compile(r"(?:rank|tp|dp|pp|ep|cp|dcp|gpu|npu|device|card|worker|proc(?:ess)?)$", re.IGNORECASE)
_REPEAT_WORD: Final = re.compile(
    r"(?:run|repeat|rep|iter(?:ation)?|trial|try|seed|attempt|exp(?:eriment)?|sample|test|v(?:ersion)?)$", re.IGNORECASE
)
_OF_RANK: Final = re.compile(r"(?<![A-Za-z])rank[-_]?(?P<number>\d{1,6})(?!\d)", re.IGNORECASE)
_OF_PARALLELISM: Final = re.compile(r"(?<![A-Za-z])(?:[TDPEC]P|DCP)[-_]?(?P<number>\d{1,6})(?!\d)", re.IGNORECASE)
_PARALLEL: Final = re.compile(
    r"(?<![A-Za-z0-9])(?P<kind>[tdpec]p|dcp)[-_]?(?P<number>\d{1,6})(?![A-Za-z0-9])", re.IGNORECASE
)
_CAPTURE_FOLDER: Final = re.compile(r".*_ascend_(?:pt|ms)|PROF_\d+_\d+_\w+", re.IGNORECASE)
_PROCESS: Final = re.compile(
    r".+_(?P<process>\d+)(?:_\d{17}_ascend_(?:pt|ms)|\.\d+\.pt\.trace\.json(?:\.gz)?)", re.IGNORECASE
)
"""Names that torch_npu, MindSpore and the trace handler of PyTorch give: host, process, time."""
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


def parallel_numbers(name: str) -> dict[str, str]:
    """Return the number behind each kind of parallelism in a name: the index of a rank, or a size.

    >>> parallel_numbers("dp0_tp3_dcp1_rank3.json")
    {'dp': '0', 'tp': '3', 'dcp': '1'}
    """
    return {match["kind"].lower(): match["number"] for match in _PARALLEL.finditer(name)}


def has_indices(name: str) -> bool:
    """Return whether the numbers of parallelism in a name are indices of a rank: no size is 0, none has a rank.

    >>> [has_indices(name) for name in ("dp0_tp3.json", "tp1_pp2_rank5.json", "gpt_tp2_pp4.json", "rank0.json")]
    [True, True, False, False]
    """
    numbers = parallel_numbers(name).values()
    return any(int(number) == 0 for number in numbers) or (bool(numbers) and _OF_RANK.search(name) is not None)


def without_parallel_numbers(name: str) -> str:
    """Return a name without its numbers of parallelism.

    >>> without_parallel_numbers("dp0_tp3_bs8.json")
    '__bs8.json'
    """
    return _PARALLEL.sub("", name)


def names_but_for_one_number(name: str) -> list[str]:
    """Return a name without one of its numbers, for each of them that counts no repeats.

    >>> names_but_for_one_number("node_41.run2.json")
    ['node_#.run2.json']
    """
    names = []
    for match in NUMBER.finditer(name):
        before = name[: match.start()]
        if not _REPEAT_WORD.search(_BETWEEN.sub("", before)):
            names.append(f"{before}#{name[match.end() :]}")
    return names


@lru_cache(maxsize=1 << 15)
def place_of(path: str) -> str:
    """Return the folder of the capture that a file is a part of, else the file itself.

    >>> place_of("job/node_7_20260601_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json"), place_of("job/a.json")
    ('job/node_7_20260601_ascend_pt', 'job/a.json')
    """
    whole = Path(path)
    for folder in (whole, *whole.parents):
        if _CAPTURE_FOLDER.fullmatch(folder.name):
            return str(folder)
    return path


@lru_cache(maxsize=1 << 15)
def process_in_path(path: str) -> str:
    """Return the number of the process that a profiler wrote into the name of a capture; "" for another name.

    >>> process_in_path("job/node-7_4711_20260601093000123_ascend_pt"), process_in_path("node_41.1700.pt.trace.json")
    ('4711', '41')
    >>> process_in_path("job/rank_7/trace.json")
    ''
    """
    found = _PROCESS.fullmatch(Path(place_of(path)).name)
    return "" if found is None else found["process"]


def rank_in_path(path: str) -> int | None:
    """Return the rank that the name of a file states, or of its folder where that has no other name.

    One kind of parallelism alone states it as well; several do not.

    >>> [rank_in_path(name) for name in ("17-TP-3.json", "17-TP-3-DP-0.json", "a_rank5.json", "job/rank_2/a.json")]
    [3, None, 5, 2]
    """
    name, folder = Path(path).name, Path(path).parent.name
    for pattern in (_OF_RANK, _OF_PARALLELISM):
        found = list(pattern.finditer(name))
        if found:
            return int(found[0]["number"]) if len(found) == 1 else None
    of_folder = _OF_RANK.fullmatch(folder)
    return None if of_folder is None else int(of_folder["number"])
