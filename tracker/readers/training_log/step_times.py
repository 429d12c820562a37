"""How long a step took in each interval, from whatever the lines of a log state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.readers.training_log.columns import PackedColumn, are_alike, blank
from tracker.readers.training_log.distribution import Pieces
from tracker.readers.training_log.grammar import PER_DEVICE, Grammar
from tracker.readers.training_log.rounding import median_rounding, rounding_of, roundings_in
from tracker.readers.training_log.scanning import Scan
from tracker.readers.training_log.step_lines import ChosenLines

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Flags = NDArray[np.bool_]
Roundings = Pieces
"""Yields how far numbers may be from what is printed, as a part of each: a column that a large log must not keep."""

_GAP: Final = 3.0
"""Intervals that are so many times as long as usual have lines missing in them: one line may be lost by a writer, two
in a row were left out of the log.
"""
_LEAST_BAR_S: Final = 100.0
"""A progress bar counts whole seconds: over a shorter time a difference of them is known less well than to 1 %, and the
rate that the bar prints says more.
"""
_FIRST_LINES: Final = 3
"""A first line at most so many strides behind step 0 is about all steps before it: a writer may lose one or two lines,
while a log that begins later is the end of another one, or of a resumed job.
"""
_LINES_BEHIND: Final = 3
"""So many means tell whether their sum begins again: one alone may be slow by chance, and more may hold a next start.
"""
_MOST_DIGITS: Final = 6
"""Digits of a second that logs print at most."""
_COARSE: Final = 0.005
"""A time that is known better needs no other number of its line."""
_FINER: Final = 0.25
"""A number that takes the place of the time of a line is known so much better, at least."""
_FEW_ROUNDINGS: Final = 1.5
"""Two numbers of one time are no farther apart than both were rounded."""
_DIGITS_LOOKED_AT: Final = 1000
"""So many times since a start show how finely a log writes them."""


class Sizes(Struct, frozen=True):
    """What turns a throughput into the time of a step: samples of a step of the job, tokens of a sample, devices."""

    batch: int | None = None
    sequence_length: int | None = None
    devices: int | None = None


class StepTimes(NamedTuple):
    """Times of a step in s, how they were found where that needs a word, and whether neighbours share a mean.

    `rounding`: yields how far each may be from what the log printed, as a part of it; None where nothing was rounded.
    """

    step_s: PackedColumn
    way: str = ""
    is_smoothed: bool = False
    rounding: Roundings | None = None


class TimeSource:
    """The lines of a log as a source of step times. `is_interrupted`: intervals with an evaluation in them."""

    def __init__(
        self, scan: Scan, grammar: Grammar, chosen: ChosenLines, stride: I64, sizes: Sizes, is_interrupted: Flags
    ) -> None:
        self.scan, self.grammar, self.chosen = scan, grammar, chosen
        self.stride, self.sizes, self.is_interrupted = stride, sizes, is_interrupted

    @cached_property
    def is_start(self) -> Flags:
        """Which lines are the first ones of their segment."""
        return self.chosen.begins_segment

    def column(self, quantity: str) -> F64:
        """Return a quantity of the chosen lines."""
        return self.chosen.pick(self.scan.column(quantity))

    def packed_column(self, quantity: str) -> PackedColumn:
        """Return a quantity of the chosen lines."""
        return self.chosen.packed_column(self.scan, quantity)

    def roundings_of(self, quantity: str) -> Roundings:
        """Return what yields how far a quantity of the chosen lines may be from what is printed, as a part of each."""
        return roundings_in(self.scan.half_units, quantity, self.packed_column(quantity))

    def rounding_of(self, quantity: str) -> F64:
        """Return the same of all lines at once."""
        return rounding_of(self.scan.half_units, quantity, self.column(quantity))

    def step_times(self) -> StepTimes:
        """Return the time of a step of each interval, from the quantity that states it best, and knows it best where
        several do.
        """
        stated = self._stated_times()
        if stated.rounding is None or median_rounding(stated.rounding) < _COARSE:
            return stated
        step_s, rounding_of_each = stated.step_s.values(), np.concatenate([*stated.rounding()])
        for other, rounding in self._times_of_rates():
            with np.errstate(invalid="ignore"):
                away = np.abs(other.step_s.values() / step_s - 1)
                # a rate of something else, or over other steps, is none of this time
                is_same = bool((away <= _FEW_ROUNDINGS * rounding_of_each)[~np.isnan(away)].all())
            is_finer = median_rounding(rounding) <= _FINER * median_rounding(stated.rounding)
            if is_same and is_finer and other.step_s.is_missing().sum() <= np.isnan(step_s).sum():
                return other._replace(rounding=rounding)
        return stated

    def _stated_times(self) -> StepTimes:
        """Return the time of a step of each interval, from the quantity that states it best."""
        states = self.scan.states
        if states("step_ms"):
            step_s = self.packed_column("step_ms").changed_by(lambda step_ms: step_ms / 1000)
            return StepTimes(step_s, rounding=self.roundings_of("step_ms"))
        if states("mean_s"):
            step_s = self._from_running_means()
            way = "differences of the mean of all steps since the start"
            # the mean of all is known as it is printed, also where the difference of two is not
            return StepTimes(step_s, way, is_smoothed=True, rounding=self.roundings_of("mean_s"))
        if self.grammar.has_bars and states("elapsed_clock"):
            return self._from_progress_bar()
        if states("step_s"):
            return StepTimes(self.packed_column("step_s"), rounding=self.roundings_of("step_s"))
        if states("interval_s"):
            step_s = PackedColumn.of(self.column("interval_s") / self.stride)
            return StepTimes(step_s, rounding=self.roundings_of("interval_s"))
        for name, scale in (("elapsed_ms", 0.001), ("elapsed_s", 1.0), ("elapsed_clock", 1.0)):
            if states(name):
                return self._from_elapsed(name, scale)
        if states("run_s"):
            return self._from_whole_run()
        if states("wall_s") or states("rate"):
            return self._from_wall()
        return self._from_throughput()

    def samples_per_second(self) -> F64:
        """Return the samples per second of each interval; nan where no line states it."""
        samples = self.column("samples_s")
        if not self.scan.states("mean_samples_s"):
            return samples
        # the mean of all steps behind the second one: the time that these took, by steps
        means = self.column("mean_samples_s")
        behind = np.maximum(self.chosen.steps - 2, 0).astype(np.float64)
        spent = np.where(means > 0, behind / np.where(means > 0, means, 1.0), np.nan)
        steps_between = np.diff(behind, prepend=0.0)
        spent_between = np.diff(np.nan_to_num(spent), prepend=0.0)
        is_known = (steps_between > 0) & (spent_between > 0) & (means > 0)
        is_known[1:] &= ~self.is_start[1:]
        return np.where(is_known, steps_between / np.where(is_known, spent_between, 1.0), np.nan)

    def _times_of_rates(self) -> Iterator[tuple[StepTimes, Roundings]]:
        """Yield the times of a step behind the rates of the lines, as far as the size of a step is known."""
        if self.scan.states("rate"):
            yield StepTimes(self.packed_column("rate").changed_by(_inverse_of)), self.roundings_of("rate")
        by_batch = self._from_batch()
        if by_batch.rounding is not None:
            yield by_batch, by_batch.rounding

    def _from_elapsed(self, name: str, scale: float = 1.0) -> StepTimes:
        """Return differences of a time since the start; nan at a start, and where the time begins again.

        Where a difference is known too coarsely, it is that over several intervals.
        """
        elapsed, stride = self.packed_column(name).computed(lambda numbers: numbers * scale), self.stride
        spent = np.diff(elapsed, prepend=np.nan)
        spent[self.is_start] = np.nan
        if len(elapsed) and self.chosen.packed_steps.first(1)[0] <= _FIRST_LINES * stride[0]:
            # near the start of the run the first line is about all steps before it
            spent[0] = elapsed[0]
            first_stride = np.maximum(1, self.chosen.packed_steps.first(1))
            if first_stride[0] != stride[0]:
                stride = np.concatenate([first_stride, stride[1:]])
        spent[spent < 0] = np.nan
        error_s = np.broadcast_to(2 * self._resolution_of(elapsed), (len(spent),))
        if self.scan.states("error_s"):
            readings = self.column("error_s")
            error_s = readings + np.concatenate([[0.0], readings[:-1]])
        times = share_coarse_times(spent, stride, error_s, self.grammar.joins, self._shares_with_none)
        if times.rounding is None:
            half_units = {name: scale * self.scan.half_units.get(name, np.inf)}
            step_s = times.step_s
            times = times._replace(rounding=lambda: [self._rounding_by_stride(half_units, name, step_s)])
        return times

    def _rounding_by_stride(self, half_units: Mapping[str, float], quantity: str, step_s: PackedColumn) -> F64:
        """Return how far the times of intervals may be from what is printed, as a part of each."""
        return rounding_of(half_units, quantity, step_s.values() * self.stride)

    @property
    def _shares_with_none(self) -> Flags:
        """Which intervals share their time with no neighbour: what they hold is not that of other steps."""
        if are_alike(self.stride):
            return self.is_interrupted
        usual = float(np.median(self.stride)) if len(self.stride) else 1.0
        return np.asarray(self.is_interrupted | (self.stride > _GAP * usual))

    def _resolution_of(self, elapsed: F64) -> float:
        """Return half a unit of the last digit in which a log writes a time since the start."""
        if not self.grammar.resolution_s:
            return 0.0
        known = elapsed[np.flatnonzero(~np.isnan(elapsed))[:_DIGITS_LOOKED_AT]]
        for digits in range(_MOST_DIGITS):
            if (np.abs(known - np.round(known, digits)) < 1e-9 * np.maximum(1.0, np.abs(known))).all():
                return min(self.grammar.resolution_s, 0.5 * 10.0**-digits)
        return min(self.grammar.resolution_s, 0.5 * 10.0**-_MOST_DIGITS)

    def _from_running_means(self) -> PackedColumn:
        """Return the times of the intervals behind the mean of all steps since the start of a program."""
        means, steps = self.column("mean_s"), self.chosen.steps
        is_start = self.is_start.copy()
        # where lines are missing, the program may have been started again
        usual = int(np.median(self.stride)) if len(self.stride) else 1
        for place in np.flatnonzero((self.stride > usual) & ~is_start).tolist():
            is_start[place] = _begins_again(means, steps, is_start, place, usual)
        stride = np.where(is_start, np.minimum(self.stride, usual), self.stride)
        steps_done = _steps_done(steps, is_start, stride)
        total = means * steps_done
        spent = np.diff(total, prepend=0.0)
        spent[is_start] = total[is_start]
        error_s = 2 * self.grammar.resolution_s * steps_done.astype(np.float64)
        times = share_coarse_times(np.where(spent > 0, spent, np.nan), stride, error_s, self.grammar.joins)
        return times.step_s

    def _from_progress_bar(self) -> StepTimes:
        """Return the times behind a bar of tqdm: differences of its clock, or of a short run the rate it prints."""
        elapsed = self.column("elapsed_clock")
        # the rate of a resumed bar is of all steps that it jumped over, too
        begins_late = len(elapsed) > 0 and self.chosen.steps[0] > _FIRST_LINES * self.stride[0]
        if len(elapsed) and (begins_late or np.nanmax(elapsed) - np.nanmin(elapsed) >= _LEAST_BAR_S):
            times = self._from_elapsed("elapsed_clock")
            return times._replace(way="the clock of a progress bar, which counts whole seconds", is_smoothed=True)
        by_rate = _first_known(self.column("step_s"), _inverse_of(self.column("rate")))
        return StepTimes(
            PackedColumn.of(by_rate), "the rate of a progress bar", is_smoothed=True,
            rounding=lambda: [_first_known(self.rounding_of("step_s"), self.rounding_of("rate"))],
        )  # fmt: skip

    def _from_whole_run(self) -> StepTimes:
        """Return the time of each session by the steps that it did."""
        step_s = self.column("run_s") / self.column("run_steps")
        way = "the time of the whole session, evaluation and saving included"
        return StepTimes(PackedColumn.of(step_s), way, rounding=lambda: [self.column("step_rounding")])

    def _from_wall(self) -> StepTimes:
        """Return the times behind a clock of whole seconds where it is fine enough, else those of the rates."""
        wall = self.column("wall_s")
        spent = np.diff(wall, prepend=np.nan)
        spent[self.is_start | (spent < 0)] = np.nan
        known = spent[~np.isnan(spent)]
        by_words = self.column("batch_words") * _inverse_of(self.column("words_s"))
        by_rates = _first_known(by_words, _inverse_of(self.column("rate")))
        is_fine = len(known) > 0 and 2 * self._resolution_of(wall) <= self.grammar.joins * float(np.median(known))
        if not is_fine:
            return StepTimes(PackedColumn.of(by_rates), rounding=lambda: [self._rounding_of_rates()])
        # where lines are missing the rate is that of the last steps only, but the clock would count a pause
        usual = float(np.median(self.stride))
        by_clock = np.where(self.stride > _GAP * usual, np.nan, spent / self.stride)
        of_clock = rounding_of(self.scan.half_units, "wall_s", spent)
        return StepTimes(
            PackedColumn.of(np.where(np.isnan(by_clock) & ~self.is_start, by_rates, by_clock)),
            rounding=lambda: [np.where(np.isnan(by_clock), self._rounding_of_rates(), of_clock)],
        )

    def _rounding_of_rates(self) -> F64:
        return _first_known(self.rounding_of("words_s"), self.rounding_of("rate"))

    def _from_throughput(self) -> StepTimes:
        """Return the times behind a throughput, where the size of a step is known; else those of the line clocks."""
        by_batch = self._from_batch()
        if by_batch.rounding is not None:
            return by_batch
        by_clock = self._from_line_clocks()
        return by_clock if by_clock.step_s.has_number() else by_batch

    def _from_batch(self) -> StepTimes:
        """Return the times behind a throughput and the size of a step; nan without a rounding where one is missing."""
        batch = _first_known(self.column("batch"), np.full(len(self.stride), float(self.sizes.batch or np.nan)))
        step_s = np.full(len(self.stride), np.nan)
        rounding: Roundings | None = None
        if self.scan.states("samples_s") or self.scan.states("mean_samples_s"):
            step_s = batch * _inverse_of(self.samples_per_second())
            rounding = self.roundings_of("samples_s")
        elif self.scan.states("tokens_s") and self.sizes.sequence_length:
            is_of_device = self.grammar.scopes.get("tokens_s") == PER_DEVICE
            devices = self.sizes.devices if is_of_device else 1
            if devices:
                step_s = batch * self.sizes.sequence_length * _inverse_of(self.column("tokens_s") * devices)
                rounding = self.roundings_of("tokens_s")
        if np.isnan(step_s).all():
            return StepTimes(PackedColumn.of(step_s))
        return StepTimes(PackedColumn.of(step_s), "the batch by the throughput", rounding=rounding)

    def _from_line_clocks(self) -> StepTimes:
        """Return the differences of the times of the day in front of the lines; nan where the grammar takes none."""
        scan = self.scan
        if not self.grammar.takes_clock or len(scan.clocks) != scan.count:
            return StepTimes(PackedColumn.of(np.full(len(self.stride), np.nan)))
        clock_s = self.chosen.pick(scan.clocks.values()) / 1e9
        spent = np.diff(clock_s, prepend=np.nan)
        spent[self.is_start | (spent < 0)] = np.nan
        error_s = np.broadcast_to(10.0**-scan.clock_digits, (len(spent),))
        times = share_coarse_times(spent, self.stride, error_s, self.grammar.joins, self._shares_with_none)
        if times.rounding is None:
            half_units = {"clock": 0.5 * 10.0**-scan.clock_digits}
            step_s = times.step_s
            times = times._replace(rounding=lambda: [self._rounding_by_stride(half_units, "clock", step_s)])
        way = "the times of the lines"
        if times.is_smoothed:
            way += f", {_SHARED}"
        return times._replace(way=way)


_SHARED: Final = "so rounded that neighbouring intervals share a mean"


def share_coarse_times(spent: F64, stride: I64, error_s: F64, joins: float, is_alone: Flags | None = None) -> StepTimes:
    """Return the time of a step of each interval, from the time spent in it, which is known to within `error_s`.

    Intervals in which the error is more than the part `joins` get the mean of as many neighbours as it takes;
    `is_alone`: which share with no neighbour.
    """
    is_known = ~np.isnan(spent) & (stride > 0)
    step_s = np.full(len(spent), np.nan)
    np.divide(spent, stride, out=step_s, where=is_known)
    divisors = np.maximum(spent, 1e-12)
    is_coarse = error_s > joins * divisors
    if not (is_coarse & is_known).any():
        return StepTimes(PackedColumn.of(step_s))
    rounding = np.full(len(spent), np.nan)
    np.divide(error_s / 2, divisors, out=rounding, where=is_known)
    del divisors, is_coarse
    ends_group = ~is_known if is_alone is None else ~is_known | is_alone
    shares = False
    start, group_s, group_steps = 0, 0.0, 0
    last_mean = last_rounding = np.nan
    # one by one these are quicker than those of an array
    ends, seconds, steps, errors_s = ends_group.data, spent.data, stride.data, error_s.data
    for place in range(len(spent) + 1):
        if place < len(spent) and not ends[place]:
            group_s, group_steps = group_s + seconds[place], group_steps + steps[place]
            if errors_s[place] > joins * group_s:
                continue
            last_mean, last_rounding = group_s / group_steps, errors_s[place] / 2 / group_s
            step_s[start : place + 1], rounding[start : place + 1] = last_mean, last_rounding
            shares |= place > start
        elif place > start:
            # too short for a group of its own: as the one before, where there is one; the end of a log may go on
            if np.isnan(last_mean) and group_s > 0 and place < len(spent):
                last_mean, last_rounding = group_s / group_steps, errors_s[place - 1] / 2 / group_s
            step_s[start:place], rounding[start:place] = last_mean, last_rounding
            shares |= place > start + 1
        start, group_s, group_steps = place + 1, 0.0, 0
    way = f"differences of times since the start, {_SHARED}" if shares else ""
    return StepTimes(PackedColumn.of(blank(step_s, ~(step_s > 0))), way, shares, lambda: [rounding])


def _steps_done(steps: I64, is_start: Flags, stride: I64) -> I64:
    """Return how many steps each mean is of: those since the last start."""
    first = np.maximum.accumulate(np.where(is_start, np.arange(len(steps)), 0))
    return np.asarray(steps - steps[first] + stride[first])


def _begins_again(means: F64, steps: I64, is_start: Flags, place: int, usual: int) -> bool:
    """Whether a mean of all steps begins again at a place: whether the times behind it are then nearer to the mean."""
    begun = np.flatnonzero(is_start[:place])
    first = int(begun[-1]) if len(begun) else 0
    end = min(place + _LINES_BEHIND, len(means))
    distances = []
    for origin in (steps[first] - usual, steps[place] - usual):
        total = means[:end] * (steps[:end] - origin)
        spent = np.diff(total)[place - 1 :] / np.diff(steps[:end])[place - 1 :]
        if origin == steps[place] - usual:
            spent[0] = means[place]
        distances.append(float(np.abs(spent / means[place] - 1).max()))
    return distances[1] < distances[0]


def _inverse_of(rates: F64) -> F64:
    """Return 1 / rate; nan for a rate of 0 or less, which is no measurement."""
    is_rate = rates > 0
    return np.where(is_rate, 1 / np.where(is_rate, rates, 1.0), np.nan)


def _first_known(*columns: F64) -> F64:
    """Return of each row the first value that is known."""
    merged = columns[0]
    for column in columns[1:]:
        merged = np.where(np.isnan(merged), column, merged)
    return merged
