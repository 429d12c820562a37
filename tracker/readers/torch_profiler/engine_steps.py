"""The steps of an inference engine or a loop of the user's own, whose annotations mark each of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from tracker.profile import I64, Strings, each_once
from tracker.readers._growing import Array

_MARKS: Final = {
    # execute_context_0(0)_generation_16(16), execute_new_1_cached_0: vLLM
    "execute": re.compile(r"execute_\w.*"),
    # step[DECODE bs=16]: SGLang
    "step[": re.compile(r"step\[.*\]"),
    "step": re.compile(r"(?:train(?:ing)?[_ ])?step[ _#:]*(?P<number>\d{1,9})", re.IGNORECASE),
    "iteration": re.compile(r"iter(?:ation)?(?:[ _#:]*(?P<number>\d{1,9}))?", re.IGNORECASE),
    "batch": re.compile(r"batch[ _#:]*(?P<number>\d{1,9})", re.IGNORECASE),
}
_FEWEST: Final = 2


def steps_of_engine(ops: Mapping[str, Array], strings: Strings) -> tuple[I64, I64, str] | None:
    """Return the rows of `ops` that mark a step, the number of each step, and the name of the first.

    They are the annotations of one kind on one thread, the kind that is marked first in time, where there are several
    of them and none overlaps another. None where there are no such.
    """
    annotations = np.flatnonzero(ops["is_annotation"])
    codes = ops["name"][annotations]
    kinds = {code: _kind_of(strings[code]) for code in each_once(codes).tolist()}
    candidates = []
    for kind in _MARKS:
        of_kind = annotations[np.isin(codes, [code for code, own in kinds.items() if own == kind])]
        for thread in each_once(ops["thread"][of_kind]).tolist():
            rows = of_kind[ops["thread"][of_kind] == thread]
            rows = rows[np.argsort(ops["start_ns"][rows], kind="stable")]
            if len(rows) >= _FEWEST and (ops["start_ns"][rows[1:]] >= ops["end_ns"][rows[:-1]]).all():
                candidates.append((int(ops["start_ns"][rows[0]]), -len(rows), kind, rows))
    if not candidates:
        return None
    _, _, kind, rows = min(candidates, key=lambda candidate: candidate[:3])
    names = [strings[code] for code in ops["name"][rows].tolist()]
    return rows, _numbers(kind, names), names[0]


def _kind_of(name: str) -> str:
    return next((kind for kind, pattern in _MARKS.items() if pattern.fullmatch(name)), "")


def _numbers(kind: str, names: list[str]) -> I64:
    """Return the numbers in the names where they rise, else the place of each."""
    matches = [_MARKS[kind].fullmatch(name) for name in names]
    texts = [match["number"] if match and "number" in match.groupdict() else None for match in matches]
    numbers = np.arange(len(names), dtype=np.int64)
    if None not in texts:
        stated = np.array([int(text) for text in texts if text is not None], dtype=np.int64)
        if (np.diff(stated) > 0).all():
            return stated
    return numbers
