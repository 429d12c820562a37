"""What the median of a log leaves out: what its framework is known to do, and nothing else.

Warm-up, the start of an epoch, an evaluation or a checkpoint inside the time of a step, and skipped steps.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracker.readers.training_log.columns import PackedColumn, are_alike
from tracker.readers.training_log.grammar import Grammar
from tracker.readers.training_log.scanning import Scan
from tracker.readers.training_log.step_lines import ChosenLines, first_of_segments

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Flags = NDArray[np.bool_]
Reasons = NDArray[np.int8]

WARM_UP: Final = "warm-up"
EPOCH_START: Final = "start of an epoch"
INTERRUPTED: Final = "evaluation or checkpoint"
SKIPPED: Final = "skipped steps"
LEFT_OUT: Final = (WARM_UP, EPOCH_START, INTERRUPTED, SKIPPED)
"""Why an interval is left out of the median, in the order in which the reasons are reported.

Of an interval with several reasons the start of an epoch counts before an evaluation, this before skipped steps, and
all of them before the warm-up, which is looked for among the others.
"""
COUNTS: Final = -1
"""The reason of an interval that is not left out."""

_ALIKE: Final = 0.10
"""Warm-up ends with an interval that is slower than the median of the rest by at most this part: caches and clocks that
still settle make less than this, compilation and the first allocations more.
"""
_LONGEST_WARM_UP: Final = 0.5
"""The largest part of the intervals that may be warm-up; a run that is slower in more of them has become faster."""
FEWEST: Final = 5
"""With fewer intervals their median says too little to call more of them warm-up than the first."""
_LONG: Final = 2000
"""Above so many intervals the warm-up does not move the median, which is then computed once, of every so many-th."""
_LEAST_LEFT: Final = 1 / 3
"""The smallest part of the intervals that has to stay where starts of epochs, evaluations or skips are left out: a
reason that leaves less is how the log always looks.
"""


def unlike_intervals(scan: Scan, grammar: Grammar, chosen: ChosenLines) -> dict[str, Flags]:
    """Return by reason which intervals the grammar knows to be unlike others."""
    count = len(chosen.packed_at)
    evaluated: Flags = np.broadcast_to(np.False_, (count,))
    skipped = is_epoch_start = evaluated
    if scan.states("evaluation") and count:
        evaluated = _has_evaluation(scan, chosen)
    if scan.states("validation_loss"):
        evaluated = evaluated | _has_new_value(chosen.pick(scan.column("validation_loss")))
    if scan.states("skipped"):
        skipped = np.concatenate([numbers > 0 for numbers in chosen.packed_column(scan, "skipped").pieces()])
    if scan.states("overflow"):
        skipped = skipped | ~chosen.packed_column(scan, "overflow").is_missing()
    if grammar.has_epoch_starts and (~np.isnan(chosen.epochs)).any():
        is_epoch_start = np.concatenate([[False], np.diff(chosen.epochs) > 0])
    if count and len(scan.positions) and len(scan.interrupts):
        evaluated = evaluated | _has_line_before(scan.interrupts, chosen.pick(scan.positions.values()))
    return {SKIPPED: skipped, INTERRUPTED: evaluated, EPOCH_START: is_epoch_start}


def _has_evaluation(scan: Scan, chosen: ChosenLines) -> Flags:
    """Which lines name an evaluation, or have a line before them that does and states its step again."""
    named = chosen.pick(np.cumsum(~scan.packed_column("evaluation").is_missing()))
    return np.asarray(np.diff(named, prepend=0) > 0)


def _has_new_value(values: F64) -> Flags:
    """Which lines state another value than the line before: a value that is printed on is no news."""
    before = np.concatenate([[np.nan], values[:-1]]) if len(values) else values
    return np.asarray(~np.isnan(values) & (values != before))


def _has_line_before(lines: I64, positions: I64) -> Flags:
    """Whether one of some other lines stands between a step line and the step line before it."""
    has_line = np.zeros(len(positions), dtype=bool)
    behind = np.searchsorted(positions, lines)
    is_inside = behind < len(positions)
    # a step line that begins with such a text stands between no others
    is_inside[is_inside] = positions[behind[is_inside]] != lines[is_inside]
    has_line[behind[is_inside]] = True
    return has_line


def reasons_of(flags: dict[str, Flags], step_s: PackedColumn) -> Reasons:
    """Return why intervals are left out, index into LEFT_OUT. A reason that would leave hardly anything is none."""
    reasons = np.full(len(step_s), COUNTS, dtype=np.int8)
    is_known = ~step_s.is_missing()
    if not is_known.any():
        is_known = np.ones(len(step_s), dtype=bool)  # a log may state a throughput alone
    for reason, is_flagged in flags.items():
        if is_flagged.any() and (~is_flagged & is_known).sum() >= max(1, _LEAST_LEFT * len(step_s)):
            reasons[is_flagged] = LEFT_OUT.index(reason)
    return reasons


def with_warm_up(
    reasons: Reasons,
    step_s: PackedColumn,
    last_steps: PackedColumn,
    segments: NDArray[np.int32],
    first_steady: int | None,
) -> Reasons:
    """Mark the warm-up behind each start. `first_steady`: the first step that may count; None where none is numbered.

    It is the first of two intervals or more. With 5 or more it is, at the first start, also those before the first
    steady step of the grammar, and all behind them that are slower than the median of the rest by more than 10 %. Where
    these are half of the intervals or more the run is uneven throughout, and the slower ones count.
    """
    marked = reasons.copy()
    warm_up = LEFT_OUT.index(WARM_UP)
    bounds = [0, len(segments)]
    if not are_alike(segments):
        bounds = [*np.flatnonzero(first_of_segments(segments)).tolist(), len(segments)]
    is_missing = step_s.is_missing()
    has_few = len(step_s) - int(is_missing.sum()) < FEWEST
    for begin, end in pairwise(bounds):
        # an evaluation in front of the first step is no reason to call compilation one
        is_evaluated = begin < end and marked[begin] == LEFT_OUT.index(INTERRUPTED) and not is_missing[begin]
        if is_evaluated:
            marked[begin] = COUNTS
        is_counted = marked[begin:end] == COUNTS
        is_timed = is_counted
        if is_missing[begin:end].any():
            is_timed = is_counted & ~is_missing[begin:end]
        many = int(is_timed.sum())
        if not many:
            # a throughput alone: only the first interval is known to be unlike the others
            if is_counted.sum() > 1:
                marked[begin + int(np.argmax(is_counted))] = warm_up
            continue
        if many < FEWEST:
            # a short segment behind others is little beside them
            if many > 1 or (begin and not has_few):
                behind = int(np.argmax(is_timed)) + 1
                marked[begin : begin + behind][is_counted[:behind]] = warm_up
            elif is_evaluated:
                marked[begin] = LEFT_OUT.index(INTERRUPTED)
            continue
        earliest = _earliest_end(last_steps, is_counted, first_steady if begin == 0 else None)
        marked[begin + _first_places(is_counted, earliest)] = warm_up
        # the first interval may state a throughput alone, as a difference of times needs a line before it
        timed_earliest = int((is_timed & (marked[begin:end] == warm_up)).sum())
        times = step_s.at(begin + np.flatnonzero(is_timed)) if many < len(step_s) else step_s
        marked[begin + _first_places(is_timed, _end_of_warm_up(times, timed_earliest))] = warm_up
    return marked


def _first_places(is_one: Flags, count: int) -> I64:
    """Return the first places at which something is so."""
    size = 2 * count
    while size < len(is_one) and is_one[:size].sum() < count:
        size *= 2
    return np.flatnonzero(is_one[:size])[:count]


def _earliest_end(last_steps: PackedColumn, is_counted: Flags, first_steady: int | None) -> int:
    """Return how many counted intervals warm up whatever their times: the first, and all before `first_steady`."""
    if first_steady is None:
        return 1
    places = _first_places(is_counted, first_steady + 1)
    first_steps = last_steps.first(int(places[-1]) + 1)[places]
    shift = 1 if first_steps[0] == 0 else 0  # steps that begin at 0 are one behind
    before = int(np.searchsorted(first_steps + shift, first_steady))
    return min(max(1, before), max(1, int(is_counted.sum()) - 1))


def _end_of_warm_up(times: PackedColumn, earliest: int) -> int:
    """Return how many of the first times are warm-up, at least `earliest`."""
    most = int(len(times) * _LONGEST_WARM_UP)
    if len(times) > _LONG:
        of_all = float(np.median(times.at(range(0, len(times), len(times) // _LONG)).values()))
        return _first_at_most(times, (1 + _ALIKE) * of_all, earliest, most)
    all_times = times.values()
    for end in range(earliest, most):
        if all_times[end] <= (1 + _ALIKE) * float(np.median(all_times[end:])):
            return end
    return earliest


def _first_at_most(times: PackedColumn, limit: float, earliest: int, most: int) -> int:
    """Return the first place from `earliest` on, and before `most`, of a time within a limit; else `earliest`."""
    begin = 0
    for some in times.pieces():
        places = begin + np.flatnonzero(some <= limit)
        places = places[(places >= earliest) & (places < most)]
        if len(places):
            return int(places[0])
        begin += len(some)
        if begin >= most:
            break
    return earliest
