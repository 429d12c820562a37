"""What the median of a log leaves out: what its framework is known to do, and nothing else.

Warm-up, the start of an epoch, an evaluation or a checkpoint inside the time of a step, and skipped steps.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracker.readers.training_log.columns import PackedColumn, pick
from tracker.readers.training_log.grammar import Grammar
from tracker.readers.training_log.scanning import Scan
from tracker.readers.training_log.step_lines import ChosenLines, Places, first_of_segments

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
    at = chosen.at
    evaluated = _has_evaluation(scan, at)
    if scan.states("validation_loss"):
        evaluated |= _has_new_value(pick(scan.column("validation_loss"), at))
    skipped = np.zeros(len(at), dtype=bool)
    if scan.states("skipped"):
        skipped |= pick(scan.column("skipped"), at) > 0
    if scan.states("overflow"):
        skipped |= ~np.isnan(pick(scan.column("overflow"), at))
    is_epoch_start = np.zeros(len(at), dtype=bool)
    if grammar.has_epoch_starts and (~np.isnan(chosen.epochs)).any():
        is_epoch_start[1:] = np.diff(chosen.epochs) > 0
    if len(at) and len(scan.positions) and len(scan.interrupts):
        evaluated |= _has_line_before(scan.interrupts, pick(scan.positions.values(), at))
    return {SKIPPED: skipped, INTERRUPTED: evaluated, EPOCH_START: is_epoch_start}


def _has_evaluation(scan: Scan, at: Places) -> Flags:
    """Which lines name an evaluation, or have a line before them that does and states its step again."""
    if not scan.states("evaluation") or not len(at):
        return np.zeros(len(at), dtype=bool)
    named = np.cumsum(~np.isnan(scan.column("evaluation")))[at]
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


def reasons_of(flags: dict[str, Flags], step_s: F64) -> Reasons:
    """Return why intervals are left out, index into LEFT_OUT. A reason that would leave hardly anything is none."""
    reasons = np.full(len(step_s), COUNTS, dtype=np.int8)
    is_known = ~np.isnan(step_s)
    if not is_known.any():
        is_known = np.ones(len(step_s), dtype=bool)  # a log may state a throughput alone
    for reason, is_flagged in flags.items():
        stays = ~is_flagged & is_known
        if is_flagged.any() and stays.sum() >= max(1, _LEAST_LEFT * len(step_s)):
            reasons[is_flagged] = LEFT_OUT.index(reason)
    return reasons


def with_warm_up(
    reasons: Reasons, step_s: F64, last_steps: PackedColumn, segments: NDArray[np.int32], first_steady: int | None
) -> Reasons:
    """Mark the warm-up behind each start. `first_steady`: the first step that may count; None where none is numbered.

    It is the first of two intervals or more. With 5 or more it is, at the first start, also those before the first
    steady step of the grammar, and all behind them that are slower than the median of the rest by more than 10 %. Where
    these are half of the intervals or more the run is uneven throughout, and the slower ones count.
    """
    marked = reasons.copy()
    warm_up = LEFT_OUT.index(WARM_UP)
    bounds = [*np.flatnonzero(first_of_segments(segments)).tolist(), len(segments)]
    has_few = int((~np.isnan(step_s)).sum()) < FEWEST
    for begin, end in pairwise(bounds):
        # an evaluation in front of the first step is no reason to call compilation one
        is_evaluated = begin < end and marked[begin] == LEFT_OUT.index(INTERRUPTED) and not np.isnan(step_s[begin])
        if is_evaluated:
            marked[begin] = COUNTS
        is_counted = marked[begin:end] == COUNTS
        is_timed = is_counted & ~np.isnan(step_s[begin:end])
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
        times = step_s[begin:end]
        if many < len(times):
            times = times[is_timed]
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


def _end_of_warm_up(times: F64, earliest: int) -> int:
    """Return how many of the first times are warm-up, at least `earliest`."""
    most = int(len(times) * _LONGEST_WARM_UP)
    of_all = float(np.median(times[:: len(times) // _LONG])) if len(times) > _LONG else None
    end = earliest
    while end < most:
        usual = of_all if of_all is not None else float(np.median(times[end:]))
        if times[end] <= (1 + _ALIKE) * usual:
            return end
        end += 1
    return earliest
