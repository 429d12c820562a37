"""Which step lines of a log count: of one process, each step once, of a later start rather than an earlier one."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.readers.training_log.columns import PackedColumn, pick
from tracker.readers.training_log.grammar import Grammar
from tracker.readers.training_log.scanning import Scan

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Flags = NDArray[np.bool_]
Places = NDArray[np.integer[Any]]

_LARGEST_STEP: Final = 2.0**52
"""Above it a double does not hold every whole number; what is larger is damage and no number of a step."""
_LONGEST_PAUSE_NS: Final = 600e9
"""Between the epochs of one program pass minutes at most; a new start of a job takes longer to be queued and loaded."""
_NEIGHBOURS: Final = 16
"""How many lines behind a line that another process wrote late may stand: buffers of pipes hold a few lines."""
_FEWEST_JUMPS: Final = 8
"""Fewer steps back are restarts of a job; two processes that write into one log step back all the time."""
_STILL_NEW: Final = 0.9
"""Two processes reach the last step together, so near the end of the log; epochs counted again reach it in the first.
"""
_MANY_LINES: Final = 0.5
"""Ranks that report the same steps have about as many lines, also where a job is killed while they write."""
_TOTAL_STEPS: Final = re.compile(rb"Total optimization steps *= *(\d{1,3}(?:,\d{3})+|\d{1,12})")
_TIMES_STATED: Final = 1.5
"""How often a step is stated on average, at least, where two processes write into one log."""

_STRIDES_LOOKED_AT: Final = 10_000
"""So many lines show how many steps lie between two of them."""


class ChosenLines(Struct, frozen=True):
    """The lines of a scan that count, in their order; columns of equal length.

    `packed_at`: their places in the scan. `packed_steps`: number of the step. `epochs`: nan where the line names none.
    `segments`: 0 up to the first restart, and so on. `repeated`: lines left out since they state a step again.
    `replaced`: lines left out since a later start did their step again. `restarts`: how often the steps went back.
    `trainings`: how many began from their first step. `ranks`: that the lines name. `is_numbered`: whether the log
    numbers its steps.
    """

    packed_at: PackedColumn
    packed_steps: PackedColumn
    epochs: F64
    segments: NDArray[np.int32]
    repeated: int
    replaced: int
    restarts: int
    trainings: int
    ranks: tuple[int, ...]
    is_numbered: bool

    @property
    def at(self) -> Places:
        """The places of the lines in the scan."""
        return self.packed_at.values()

    @property
    def steps(self) -> I64:
        """The number of the step of each line."""
        return self.packed_steps.values()

    def pick(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return what a column of the scan has of these lines."""
        return column if len(column) == len(self.packed_at) else pick(column, self.at)

    def packed_column(self, scan: Scan, quantity: str) -> PackedColumn:
        """Return a quantity of these lines."""
        return scan.packed_column(quantity).at(self.packed_at)

    @property
    def begins_segment(self) -> Flags:
        """Which lines are the first ones of their segment."""
        return first_of_segments(self.segments)


def first_of_segments(segments: NDArray[np.int32]) -> Flags:
    """Return which rows are the first ones of their segment."""
    is_first = np.ones(len(segments), dtype=bool)
    np.not_equal(segments[1:], segments[:-1], out=is_first[1:])
    return is_first


def choose_lines(scan: Scan, grammar: Grammar) -> ChosenLines:
    """Return the lines that count: of one rank, each step once, of a later start rather than of an earlier one."""
    of_one_run = _lines_of_one_run(scan, grammar)
    if of_one_run is not None:
        return of_one_run
    ranks_of_lines = scan.ranks.values()
    ranks = tuple(int(rank) for rank in np.unique(ranks_of_lines) if rank >= 0)
    at: Places = np.arange(scan.count, dtype=np.int32)
    if ranks:
        if grammar.epoch_lines is not None or grammar.clock_is_of_epoch:
            ranks_of_lines = _carry_ranks_on(ranks_of_lines)
        ranks = _ranks_in_order(ranks_of_lines, ranks)
        at = at[ranks_of_lines == ranks[0]]
    if grammar.has_bars:
        at = _bars_of_training(scan, at)
    if grammar.epoch_lines is not None:
        at, numbers, epochs = _ends_of_epochs(scan, at)
        is_numbered = True
    else:
        numbers, epochs, is_numbered = _number_steps(scan, at)
    if grammar.counts_in_epochs and np.isnan(epochs).all():
        clocks = pick(scan.clocks.values(), at) if len(scan.clocks) else np.full(len(at), np.nan)
        numbers = _count_through_unnamed_epochs(numbers, clocks)
    is_numbered_line = (numbers < _LARGEST_STEP) & (numbers > -_LARGEST_STEP)  # nan is none either
    if not is_numbered_line.all():
        numbered = np.flatnonzero(is_numbered_line)
        at, epochs, numbers = pick(at, numbered), pick(epochs, numbered), pick(numbers, numbered)
    steps: I64 = numbers.astype(np.int64)
    del numbers, is_numbered_line
    repeated = 0
    if not (steps[1:] > steps[:-1]).all():
        once = _places_stated_once(steps)
        repeated = len(at) - len(once)
        at, steps, epochs = pick(at, once), pick(steps, once), pick(epochs, once)
    begins = steps[1:] < steps[:-1]
    if len(scan.starts):
        starts_before = np.searchsorted(scan.starts, pick(scan.positions.values(), at))
        begins |= np.diff(starts_before) > 0
    segments = np.broadcast_to(np.int32(0), (len(at),))
    if begins.any():
        segments = np.concatenate([[0], np.cumsum(begins)]).astype(np.int32)
    places, replaced, restarts, trainings = _places_done_last(steps, segments)
    return ChosenLines(
        packed_at=PackedColumn.of(pick(at, places)),
        packed_steps=PackedColumn.of(pick(steps, places)),
        epochs=pick(epochs, places),
        segments=pick(segments, places),
        repeated=repeated,
        replaced=replaced,
        restarts=restarts,
        trainings=trainings,
        ranks=ranks,
        is_numbered=is_numbered,
    )


def _lines_of_one_run(scan: Scan, grammar: Grammar) -> ChosenLines | None:
    """Return all lines where each has a step above the one before, as in most logs; None where one has not."""
    if not scan.count or not scan.states("step") or len(scan.ranks) or len(scan.starts):
        return None
    if grammar.has_bars or grammar.epoch_lines is not None:
        return None
    packed_steps = PackedColumn(np.int64)
    before = -int(_LARGEST_STEP)
    for numbers in scan.packed_column("step").pieces():
        if not (np.abs(numbers) < _LARGEST_STEP).all():
            return None
        steps = numbers.astype(np.int64)
        if (np.diff(steps, prepend=before) <= 0).any():
            return None
        packed_steps.extend(steps)
        before = int(steps[-1])
    return ChosenLines(
        packed_at=PackedColumn.of_places(scan.count),
        packed_steps=packed_steps,
        epochs=scan.column("epoch"),
        segments=np.broadcast_to(np.int32(0), (scan.count,)),
        repeated=0,
        replaced=0,
        restarts=0,
        trainings=1,
        ranks=(),
        is_numbered=True,
    )


def _carry_ranks_on(ranks_of_lines: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the ranks of lines of which those without one are of the rank before: a launcher writes it in front of a
    line, and not in front of each bar that is drawn over another one.
    """
    places = np.maximum.accumulate(np.where(ranks_of_lines >= 0, np.arange(len(ranks_of_lines)), 0))
    return np.asarray(ranks_of_lines[places])


def _ranks_in_order(ranks_of_lines: NDArray[np.int32], ranks: tuple[int, ...]) -> tuple[int, ...]:
    """Return the ranks, the one that counts first: the first one that does not print far fewer lines than another.

    Each rank prints the same steps, or one rank alone does, which need not be the first: others may say a word.
    """
    lines = {rank: int((ranks_of_lines == rank).sum()) for rank in ranks}
    first = next(rank for rank in ranks if lines[rank] >= _MANY_LINES * max(lines.values()))
    return (first, *(rank for rank in ranks if rank != first))


def _bars_of_training(scan: Scan, at: Places) -> Places:
    """Return the places of the progress bar of the training: others are of evaluations, predictions and loading."""
    totals, elapsed = pick(scan.column("total"), at), pick(scan.column("elapsed_clock"), at)
    known = np.unique(totals[~np.isnan(totals)])
    if len(known) < 2:
        return at
    total: float | None = steps_of_run(scan)
    if total is None or total not in known:
        total = _total_beside(scan, at, totals)
    if total is None:
        total = max(known.tolist(), key=lambda one: float(np.nanmax(elapsed[totals == one], initial=0.0)))
    return np.asarray(at[totals == total])


def _ends_of_epochs(scan: Scan, at: Places) -> tuple[Places, F64, F64]:
    """Return the places of the lines that end an epoch, the numbers of their steps, and their epochs.

    Behind the line that names an epoch stands the bar of the training, often drawn twice at its end, the second time
    when all is done; bars with another number of steps, and those in front of any epoch, are of evaluations.
    """
    epochs, sizes = pick(scan.column("epoch"), at), pick(scan.column("epoch_steps"), at)
    is_epoch = ~np.isnan(epochs)
    # which of the lines with an epoch each bar stands behind
    epoch_of_line = np.cumsum(is_epoch) - 1
    bars = np.flatnonzero(~is_epoch & (epoch_of_line >= 0) & ~np.isnan(sizes))
    epoch_of_bar = epoch_of_line[bars]
    is_first = np.diff(epoch_of_bar, prepend=-1) != 0
    size_of_epoch = sizes[bars[is_first]][np.cumsum(is_first) - 1]
    is_of_training = sizes[bars] == size_of_epoch
    bars, epoch_of_bar = bars[is_of_training], epoch_of_bar[is_of_training]
    is_last = np.diff(epoch_of_bar, append=-1) != 0
    places = bars[is_last]
    numbers_of_epochs = epochs[is_epoch][epoch_of_bar[is_last]]
    return at[places], numbers_of_epochs * sizes[places], numbers_of_epochs


def steps_of_run(scan: Scan) -> int | None:
    """Return how many steps the training will have by the text in front of its first step line; None for no word."""
    stated = _TOTAL_STEPS.findall(scan.head or scan.tail)
    return int(stated[-1].replace(b",", b"")) if stated else None


def _total_beside(scan: Scan, at: Places, totals: F64) -> float | None:
    """Return the length of the bar behind which most lines with a loss stand; None where no such line is."""
    if not len(scan.beside_bar) or len(scan.positions) != scan.count:
        return None
    before = np.searchsorted(pick(scan.positions.values(), at), scan.beside_bar) - 1
    beside = totals[before[before >= 0]]
    lengths, counts = np.unique(beside[~np.isnan(beside)], return_counts=True)
    return float(lengths[np.argmax(counts)]) if len(lengths) else None


def _number_steps(scan: Scan, at: Places) -> tuple[F64, F64, bool]:
    """Return the number of the step of each line, counted through over the epochs, and its epoch.

    The last value says whether the log numbers its steps at all.
    """
    steps, within, epochs = (pick(scan.column(name), at) for name in ("step", "step_in_epoch", "epoch"))
    if (~np.isnan(within)).any() and np.isnan(steps).all():
        sizes = pick(scan.column("epoch_steps"), at)
        first_epoch = 0.0 if (epochs == 0).any() else 1.0
        if not np.isnan(sizes).any() and not np.isnan(epochs).any():
            return (epochs - first_epoch) * sizes + within, epochs, True
        return _count_through_epochs(within, epochs), epochs, True
    if np.isnan(steps).all():
        return np.arange(1.0, len(at) + 1), epochs, False
    if (~np.isnan(epochs)).any() and _begins_again_in_epochs(steps, epochs):
        return _count_through_epochs(steps, epochs), epochs, True
    return steps, epochs, True


def _begins_again_in_epochs(steps: F64, epochs: F64) -> bool:
    """Whether the steps go back wherever an epoch begins, so that they count in the epoch."""
    begins = np.diff(epochs) > 0
    return bool(begins.any()) and bool((np.diff(steps)[begins] <= 0).all())


def _count_through_epochs(within: F64, epochs: F64) -> F64:
    """Return steps that are counted in each epoch behind the last steps of the epochs before, as far as lines say."""
    named = np.nan_to_num(epochs, nan=0.0)
    from_zero = 1.0 if (within == 0).any() else 0.0
    names, of_line = np.unique(named, return_inverse=True)
    largest = np.full(len(names), -np.inf)
    np.maximum.at(largest, of_line, np.nan_to_num(within, nan=-np.inf))
    sizes = np.where(np.isfinite(largest), largest + from_zero, 0.0)
    offsets = np.concatenate([[0.0], np.cumsum(sizes)[:-1]])
    return np.asarray(within + offsets[of_line])


def _count_through_unnamed_epochs(steps: F64, clocks: F64) -> F64:
    """Return steps counted through where they go back without a long pause: then an epoch begins."""
    counted = steps.copy()
    offset = 0.0
    for at in range(1, len(steps)):
        if steps[at] < steps[at - 1]:
            pause_ns = clocks[at] - clocks[at - 1]
            is_epoch = np.isnan(pause_ns) or pause_ns <= _LONGEST_PAUSE_NS
            from_zero = 1.0 if steps[at] == 0 else 0.0
            offset = float(counted[at - 1]) + from_zero if is_epoch else 0.0
        counted[at] += offset
    return counted


def _places_stated_once(steps: I64) -> I64:
    """Return the places of the lines that state a step first, where processes or loggers state it again."""
    places = np.arange(len(steps), dtype=np.int64)
    if len(steps) < 2:
        return places
    # the first of several lines stands where the step ended; a bar that is drawn again later waits for the next one
    is_again = np.diff(steps, prepend=steps[0] - 1) == 0
    if is_again.any():
        places = places[~is_again]
    numbers = steps[places]
    if _has_two_writers(numbers):
        is_new = np.diff(np.maximum.accumulate(numbers), prepend=numbers[0] - 1) > 0
        return places[is_new]
    is_late = _late_lines(numbers)
    return places[~is_late] if is_late.any() else places


def _has_two_writers(numbers: I64) -> bool:
    """Whether processes that do not name their rank write into one log: the steps go back and forth to its end."""
    jumps = int((np.diff(numbers) < 0).sum())
    if jumps < _FEWEST_JUMPS or len(numbers) < _TIMES_STATED * len(np.unique(numbers)):
        return False
    # steps that are counted in each epoch go back too, but reach no new step behind the first epoch
    last_new = int(np.argmax(numbers == numbers.max()))
    return last_new >= _STILL_NEW * len(numbers)


def _late_lines(numbers: I64) -> Flags:
    """Which lines state a step that is over, while the lines behind go on: another process wrote them late."""
    late = np.zeros(len(numbers), dtype=bool)
    for at in (np.flatnonzero(np.diff(numbers) < 0) + 1).tolist():
        goes_on = at + 1 < len(numbers) and numbers[at + 1] > numbers[at - 1]
        if goes_on and numbers[at] in numbers[max(0, at - _NEIGHBOURS) : at]:
            late[at] = True
    return late


def _places_done_last(steps: I64, segments: NDArray[np.int32]) -> tuple[Places, int, int, int]:
    """Leave out what a later start did again, and all before a start from the first step.

    Returns the places that stay, how many were done again, how often the steps went back, and how many trainings
    began. The steps of a segment rise, and so do those that stay: what is done again is always their end.
    """
    count = len(steps)
    if not count or segments[-1] == 0:
        return np.arange(count, dtype=np.int32), 0, 0, 1
    bounds = [*np.flatnonzero(first_of_segments(segments)).tolist(), count]
    replaced, restarts, trainings = 0, 0, 1
    ranges: list[tuple[int, int]] = [(bounds[0], bounds[1])]
    for begin, end in pairwise(bounds[1:]):
        first = steps[begin]
        done_again = 0
        while ranges and steps[ranges[-1][0]] >= first:
            start, stop = ranges.pop()
            done_again += stop - start
        if not ranges:
            trainings += 1
        else:
            restarts += 1
            start, stop = ranges[-1]
            cut = start + int(np.searchsorted(steps[start:stop], first))
            ranges[-1] = (start, cut)
            replaced += done_again + stop - cut
        ranges.append((begin, end))
    places = np.concatenate([np.arange(start, stop, dtype=np.int64) for start, stop in ranges])
    return places, replaced, restarts, trainings


def _even_stride(chosen: ChosenLines) -> int | None:
    """Return how many steps each line stands for where all stand for as many, those of the first one too; else None."""
    first, second = chosen.packed_steps.first(2)
    stride = int(second - first)
    if stride < 1 or first < stride or chosen.segments.any():
        return None
    before = first - stride
    for steps in chosen.packed_steps.pieces():
        if (np.diff(steps, prepend=before) != stride).any():
            return None
        before = steps[-1]
    return stride


def stride_of_lines(chosen: ChosenLines) -> I64:
    """Return how many steps each line stands for: since the line before, at a start as many as usual, and no more than
    its number.
    """
    count = len(chosen.packed_steps)
    if not chosen.is_numbered or count < 2:
        return np.ones(count, dtype=np.int64)
    even = _even_stride(chosen)
    if even is not None:
        return np.broadcast_to(np.int64(even), (count,))
    steps = chosen.steps
    difference = np.diff(steps, prepend=steps[0])
    is_start = chosen.begins_segment
    inside = difference[:_STRIDES_LOOKED_AT][~is_start[:_STRIDES_LOOKED_AT]]
    usual = int(np.median(inside)) if len(inside) else 1
    at_start = np.clip(steps, 1, max(usual, 1))
    stride = np.where(is_start | (difference <= 0), at_start, difference)
    if (stride == stride[0]).all():
        return np.broadcast_to(stride[0], (len(steps),))
    return np.asarray(stride)
