"""Which NVTX ranges are the steps of a process: those of the one counter that has most numbers (`step 0`, `step 1`).

| ranges of the counter | what becomes of them |
|---|---|
| a bare number inside another range | no step: layers are numbered, too |
| a counter whose ranges lie inside those of another one that has as many | no step, but a part of one |
| inside a range called warm-up, where others lie outside | left out, said |
| inside another range of the counter | left out, said |
| numbers that begin again, as in each epoch | each range is a step, numbered on in order of time, said |
| a number that comes again in one epoch | the longest is the step, said |
| still open when the capture ended | left out where other steps are left, said |
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I64, MISSING, Markers
from tracker.readers._nvtx import RangeName, is_warm_up
from tracker.readers._sqlite import picked
from tracker.readers.nsys_sqlite.tables import Arrays
from tracker.units import counted

Flags = NDArray[np.bool_]

_OUTSIDE: Final = 2
"""So many ranges outside of a warm-up repeat: those inside of it are no steps then."""


class Ranges(Struct, frozen=True):
    """All ranges on host threads. `names[said[i]]` is what the name of range i says.

    `columns`: `start_ns`, `end_ns` (MISSING: still open when the capture ended), `thread`, `process`, `said`,
    `sequence` (of PyTorch's autograd, or -1), `crosses` (ends on another thread than it began).
    """

    columns: Arrays
    names: tuple[RangeName, ...]

    def of_process(self, process: int, last_ns: int) -> Ranges:
        """Return the ranges of one process; those still open end at `last_ns`, and `is_open` says which they are."""
        mine = picked(self.columns, self.columns["process"] == process)
        is_open = mine["end_ns"] == MISSING
        mine["end_ns"] = np.where(is_open, np.maximum(last_ns, mine["start_ns"]), mine["end_ns"])
        mine["is_open"] = is_open
        return Ranges(mine, self.names)


class StepRanges(Struct, frozen=True):
    """The steps that the ranges of a process count. `is_step`: which ranges belong to the counter, and are no
    operators therefore; `warnings`: what was left out.
    """

    is_step: Flags
    markers: Markers
    warnings: tuple[str, ...] = ()


def markers_of(process_ranges: Ranges) -> StepRanges:
    """Return the steps that the ranges of one process count; none where no name of a range is a number."""
    table = process_ranges.columns
    stated = np.array([MISSING if one.step is None else one.step for one in process_ranges.names], dtype=np.int64)
    step = stated[table["said"]] if len(table["said"]) else np.zeros(0, dtype=np.int64)
    rows = _main_counter(process_ranges, step)
    is_step = np.zeros(len(step), dtype=bool)
    is_step[rows] = True
    if not len(rows):
        return StepRanges(is_step, _marker_table(table, step[:0], rows))
    warnings: list[str] = []
    closed = rows[~table["is_open"][rows]]
    # one that was never closed lies around all that began later
    kept = closed if len(closed) else rows
    if len(kept) < len(rows):
        count = counted(len(rows) - len(kept), "step marker")
        warnings.append(f"{count} left out: still open when the capture ended")
    timed = _leave_out_warm_up(process_ranges, kept)
    if len(timed) < len(kept):
        warnings.append(f"{counted(len(kept) - len(timed), 'step marker')} left out: inside of a warm-up range")
    outer = timed[~_lies_inside(table, timed, timed)]
    if len(outer) < len(timed):
        warnings.append(f"{counted(len(timed) - len(outer), 'step marker')} left out: inside of another one")
    steps, numbers, sentences = _number_steps(table, step, outer)
    return StepRanges(is_step, _marker_table(table, numbers, steps), (*warnings, *sentences))


def _main_counter(process_ranges: Ranges, step: I64) -> I64:
    """Return the rows of the counter that has most numbers; none where nothing is counted.

    Words go before bare numbers, which count as steps only where they never come again.
    """
    table = process_ranges.columns
    families: dict[str, list[int]] = {}
    for row in np.flatnonzero(step != MISSING).tolist():
        families.setdefault(process_ranges.names[int(table["said"][row])].family, []).append(row)
    bare = families.get("", [])
    if bare and (len(families) > 1 or len(set(step[bare].tolist())) < len(bare)):
        del families[""]
    elif bare:
        every = np.arange(len(step))
        if _lies_inside(table, np.array(bare), every).any():
            return np.zeros(0, dtype=np.int64)
    rows_of = {family: np.array(rows, dtype=np.int64) for family, rows in families.items()}
    outermost = {family: rows for family, rows in rows_of.items() if not _is_part_of_another(table, family, rows_of)}
    if not outermost:
        return np.zeros(0, dtype=np.int64)
    best = max(outermost, key=lambda family: (len(set(step[outermost[family]].tolist())), family))
    return outermost[best]


def _is_part_of_another(table: Arrays, family: str, rows_of: dict[str, I64]) -> bool:
    """Return whether all ranges of a counter lie inside those of another one that has as many."""
    own = rows_of[family]
    for other, rows in rows_of.items():
        is_longer = _total_ns(table, rows) > _total_ns(table, own)
        if other != family and len(rows) >= len(own) and is_longer and _lies_inside(table, own, rows).all():
            return True
    return False


def _total_ns(table: Arrays, rows: I64) -> int:
    return int((table["end_ns"][rows] - table["start_ns"][rows]).sum())


def _leave_out_warm_up(process_ranges: Ranges, rows: I64) -> I64:
    """Return the rows without those inside of a range called warm-up, where others repeat outside of it."""
    table = process_ranges.columns
    is_warming = np.array([is_warm_up(one.name) for one in process_ranges.names], dtype=bool)[table["said"]]
    inside = _lies_inside(table, rows, np.flatnonzero(is_warming))
    return rows[~inside] if int((~inside).sum()) >= _OUTSIDE else rows


def _lies_inside(table: Arrays, rows: I64, others: I64) -> Flags:
    """Return which of these ranges lie inside of one of the others that runs on the same thread.

    Of equal ranges the later row is the inner one.
    """
    found = np.zeros(len(rows), dtype=bool)
    for thread in np.unique(table["thread"][rows]).tolist():
        place = np.flatnonzero(table["thread"][rows] == thread)
        around = others[table["thread"][others] == thread]
        every = np.concatenate([around, np.setdiff1d(rows[place], around)])
        is_around = np.isin(every, around)
        order = np.lexsort((every, -table["end_ns"][every], table["start_ns"][every]))
        # an outer range comes before its inner ones; the longest one before a row is around it, or none is
        reach_ns = np.where(is_around[order], table["end_ns"][every[order]], np.iinfo(np.int64).min)
        before_ns = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(reach_ns)[:-1]])
        inner = every[order][before_ns >= table["end_ns"][every[order]]]
        found[place] = np.isin(rows[place], inner)
    return found


def _number_steps(table: Arrays, step: I64, rows: I64) -> tuple[I64, I64, list[str]]:
    """Return the rows that are steps in order of time, their numbers, and sentences about numbers that come again."""
    on_main = rows[table["thread"][rows] == _main_thread(table, rows)]
    on_main = on_main[np.lexsort((on_main, table["start_ns"][on_main]))]
    begins_again = np.diff(step[on_main], prepend=step[on_main[0]]) < 0
    epoch = np.cumsum(begins_again)
    if not begins_again.any() or len(set(step[on_main].tolist())) == len(on_main):
        # without epochs a number is one step, on whatever thread it was marked
        kept = _longest_of_each(table, rows, [step[rows]])
        return kept, step[kept], _sentences_on_repeats(len(rows) - len(kept))
    kept = _longest_of_each(table, on_main, [step[on_main], epoch])
    numbers = int(step[kept[0]]) + np.arange(len(kept), dtype=np.int64)
    epochs = int(epoch[-1]) + 1
    said = f"the numbers of the step markers begin again, in {epochs} rounds: {len(kept)} steps, numbered in order"
    return kept, numbers, [said, *_sentences_on_repeats(len(rows) - len(kept))]


def _sentences_on_repeats(count: int) -> list[str]:
    return [f"{count} step markers whose number comes again were left out, the longest kept"] if count else []


def _main_thread(table: Arrays, rows: I64) -> int:
    """Return the thread with most of these ranges; of equal ones that with the longest together."""
    threads, place = np.unique(table["thread"][rows], return_inverse=True)
    length_ns = table["end_ns"][rows] - table["start_ns"][rows]
    order = np.lexsort((np.bincount(place, weights=length_ns), np.bincount(place)))
    return int(threads[order[-1]])


def _longest_of_each(table: Arrays, rows: I64, keys: list[Any]) -> I64:
    """Return of the rows with equal keys the longest one, in order of time."""
    length_ns = table["end_ns"][rows] - table["start_ns"][rows]
    order = np.lexsort((table["start_ns"][rows], -length_ns, *keys))
    changes = np.zeros(len(rows), dtype=bool)
    changes[:1] = True
    for key in keys:
        changes[1:] |= np.diff(key[order]) != 0
    kept = rows[order[changes]]
    return kept[np.argsort(table["start_ns"][kept], kind="stable")]


def _marker_table(table: Arrays, step: I64, rows: I64) -> Markers:
    return Markers(table["start_ns"][rows], table["end_ns"][rows], step, np.zeros(len(rows), dtype=np.int32))
