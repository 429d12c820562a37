"""From the step lines of a log to its intervals: each step once, with the time of a step in it.

What is not like the rest (warm-up, the start of an epoch, an evaluation, skipped steps) is marked, so that a median
leaves it out; nothing else is.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.readers.training_log.grammar import PER_DEVICE, Grammar
from tracker.readers.training_log.scanning import Scan

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Flags = NDArray[np.bool_]

WARM_UP: Final = "warm-up"
EPOCH_START: Final = "start of an epoch"
INTERRUPTED: Final = "evaluation or checkpoint"
SKIPPED: Final = "skipped steps"
LEFT_OUT: Final = (WARM_UP, EPOCH_START, INTERRUPTED, SKIPPED)
"""Why an interval is left out of the median, in the order in which one reason counts before the next."""

_ALIKE: Final = 0.10
"""Warm-up ends with an interval that is slower than the median of the rest by at most this part."""
_LONGEST_WARM_UP: Final = 0.5
"""The largest part of the intervals that may be warm-up."""
_FEWEST: Final = 5
"""With fewer intervals nothing is left out as warm-up."""
_LONG: Final = 2000
_KEPT: Final = 1 / 3
"""The smallest part of the intervals that has to stay where starts of epochs, evaluations or skips are left out."""
_GAP: Final = 3.0
"""Intervals that are so many times as long as usual have lines missing in them."""
_SECONDS: Final = 20.0
_LARGEST_STEP: Final = 2.0**52
_LARGEST_S: Final = 7.2e7
_PAUSE_NS: Final = 600e9


class Sizes(Struct, frozen=True):
    """What turns a throughput into the time of a step: samples of a step of the job, tokens of a sample, devices."""

    batch: int | None = None
    sequence_length: int | None = None
    devices: int | None = None


class Intervals(Struct, frozen=True):
    """The intervals of a log in their order; columns of equal length, nan for what is not known.

    `last`: number of the last step of each; `stride`: how many steps it holds; `step_s`: mean time of one of them.
    `throughputs`: by unit. `reasons`: index into LEFT_OUT, -1 for an interval that counts. `lines`: which lines of the
    scan they are. `way`: how the time was found, in words where that needs to be said.
    `repeated`: lines that state a step again; `replaced`: intervals of an earlier start whose steps came again;
    `restarts`: how often the steps went back; `trainings`: how many began from the start.
    """

    last: I64
    stride: I64
    step_s: F64
    data_s: F64
    throughputs: dict[str, F64]
    mfu: F64
    allocated: F64
    reserved: F64
    segments: I64
    reasons: I64
    lines: I64
    way: str = ""
    ranks: tuple[int, ...] = ()
    repeated: int = 0
    replaced: int = 0
    restarts: int = 0
    trainings: int = 1
    is_numbered: bool = True
    is_smoothed: bool = False
    scopes: dict[str, str] = field(default_factory=dict)

    @property
    def counts(self) -> Flags:
        """Which intervals count in a median."""
        return self.reasons < 0


class _Chosen(Struct):
    """Lines of a scan that state a new step each: `at` their places, `steps`, `epochs`, `segments`."""

    at: I64
    steps: I64
    epochs: F64
    segments: I64
    repeated: int
    replaced: int
    restarts: int
    trainings: int
    ranks: tuple[int, ...]
    is_numbered: bool


def intervals_of(scan: Scan, grammar: Grammar, sizes: Sizes) -> Intervals:
    """Return the intervals of a log; their times are nan where no line says one and nothing gives it."""
    if "mark" in scan.words and any(scan.words["mark"]):
        return _blocks(scan, sizes)
    chosen = _choose_lines(scan, grammar)
    stride = _strides(chosen)
    flags = _interruptions(scan, grammar, chosen)
    step_s, way, is_smoothed = _step_times(scan, grammar, chosen, stride, sizes, flags[INTERRUPTED])
    throughputs, scopes = _throughputs(scan, grammar, chosen, step_s * stride)
    at = chosen.at
    nothing = np.broadcast_to(np.float64(np.nan), (len(at),))
    mfu = pick(scan.column("mfu"), at)
    if scan.states("mfu"):
        mfu = np.where(mfu < 0, np.nan, mfu)  # nanoGPT: -100 until it is known
    allocated = reserved = nothing
    for name, scale in (("allocated_mib", 2.0**20), ("allocated_gib", 2.0**30), ("allocated_gb", 2.0**30)):
        if scan.states(name):
            allocated = pick(scan.column(name), at) * scale
    if scan.states("reserved_gib"):
        reserved = pick(scan.column("reserved_gib"), at) * 2.0**30
    # no step takes no time, or 833 days
    step_s = np.where((step_s > 0) & (step_s <= _LARGEST_S), step_s, np.nan)
    reasons = _reasons(flags, step_s)
    found = Intervals(
        last=chosen.steps,
        stride=stride,
        step_s=step_s,
        data_s=pick(scan.column("data_s"), at),
        throughputs=throughputs,
        mfu=mfu,
        allocated=allocated,
        reserved=reserved,
        segments=chosen.segments,
        reasons=reasons,
        lines=at,
        way=way,
        ranks=chosen.ranks,
        repeated=chosen.repeated,
        replaced=chosen.replaced,
        restarts=chosen.restarts,
        trainings=chosen.trainings,
        is_numbered=chosen.is_numbered,
        is_smoothed=is_smoothed,
        scopes=scopes,
    )
    # a line without a number, such as the first one of cumulative times, is no interval
    known = ~np.isnan(found.step_s)
    for values in throughputs.values():
        known |= ~np.isnan(values)
    return with_warm_up(taken(found, np.flatnonzero(known)), grammar.first_steady)


def pick(column: NDArray[Any], at: I64) -> NDArray[Any]:
    """Return a column at some places; of one that is nan throughout a column that takes no memory."""
    if column.strides == (0,) and column.dtype.kind == "f":
        return np.broadcast_to(column.dtype.type(np.nan), (len(at),))
    if len(at) == len(column):
        return column  # places are in order, so that these are all
    return column[at]


def taken(found: Intervals, at: I64) -> Intervals:
    """Return the intervals at these places."""
    columns = {
        name: pick(getattr(found, name), at)
        for name in ("last", "stride", "step_s", "data_s", "mfu", "allocated", "reserved", "segments", "reasons",
                     "lines")
    }  # fmt: skip
    return replace(found, throughputs={unit: pick(values, at) for unit, values in found.throughputs.items()}, **columns)


def _choose_lines(scan: Scan, grammar: Grammar) -> _Chosen:
    """Return the lines that count: of one rank, each step once, of a later start rather than of an earlier one."""
    ranks = tuple(int(rank) for rank in np.unique(scan.ranks) if rank >= 0)
    at = np.arange(scan.count, dtype=np.int64)
    if ranks:
        # each rank prints the same steps, or one rank alone prints them
        at = at[scan.ranks == ranks[0]]
    if grammar.has_bars:
        at = _bars_of_training(scan, at)
    stated, epochs, is_numbered = _numbered(scan, at)
    if grammar.counts_in_epochs and np.isnan(epochs).all():
        stated = _counted_without_epochs(stated, scan.clocks[at] if len(scan.clocks) else np.full(len(at), np.nan))
    keeps = np.abs(stated) < _LARGEST_STEP  # nan and what damage made of a number are none
    at, epochs = at[keeps], epochs[keeps]
    numbers: I64 = stated[keeps].astype(np.int64)
    repeated = 0
    if len(at) > 1:
        # of lines that follow each other and state one step the last one counts
        again = np.append(np.diff(numbers) == 0, False)
        repeated += int(again.sum())
        at, numbers, epochs = at[~again], numbers[~again], epochs[~again]
        late = _late_lines(numbers)
        repeated += int(late.sum())
        at, numbers, epochs = at[~late], numbers[~late], epochs[~late]
    begins = np.diff(numbers) < 0
    if len(scan.starts):
        # how many starts stand in front of each line
        begins |= np.diff(np.searchsorted(scan.starts, scan.positions[at])) > 0
    segments = np.concatenate([[0], np.cumsum(begins)]).astype(np.int64)[: len(at)]
    return _without_replaced(_Chosen(at, numbers, epochs, segments, repeated, 0, 0, 1, ranks, is_numbered))


def _bars_of_training(scan: Scan, at: I64) -> I64:
    """Return the places of the progress bar that runs longest: others are of evaluations and of loading."""
    totals, elapsed = pick(scan.column("total"), at), pick(scan.column("elapsed_clock"), at)
    known = np.unique(totals[~np.isnan(totals)])
    if len(known) < 2:
        return at
    longest = max(known.tolist(), key=lambda total: float(np.nanmax(elapsed[totals == total], initial=0.0)))
    return np.asarray(at[totals == longest])


def _numbered(scan: Scan, at: I64) -> tuple[F64, F64, bool]:
    """Return the number of the step of each line, counted through over the epochs, and its epoch.

    The last value says whether the log numbers its steps at all.
    """
    steps, within, epochs = (pick(scan.column(name), at) for name in ("step", "step_in_epoch", "epoch"))
    if (~np.isnan(within)).any() and np.isnan(steps).all():
        sizes = pick(scan.column("epoch_steps"), at)
        first = 0.0 if (epochs == 0).any() else 1.0
        if not np.isnan(sizes).any() and not np.isnan(epochs).any():
            return (epochs - first) * sizes + within, epochs, True
        return _counted_through(within, epochs), epochs, True
    if np.isnan(steps).all():
        return np.arange(1.0, len(at) + 1), epochs, False
    if (~np.isnan(epochs)).any() and _begins_again_in_epochs(steps, epochs):
        return _counted_through(steps, epochs), epochs, True
    return steps, epochs, True


def _begins_again_in_epochs(steps: F64, epochs: F64) -> bool:
    """Whether the steps go back wherever an epoch begins, so that they count in the epoch."""
    begins = np.diff(epochs) > 0
    return bool(begins.any()) and bool((np.diff(steps)[begins] <= 0).all())


def _counted_through(within: F64, epochs: F64) -> F64:
    """Return steps that are counted in each epoch behind the last steps of the epochs before, as far as lines say."""
    known = np.nan_to_num(epochs, nan=0.0)
    from_zero = 1.0 if (within == 0).any() else 0.0
    offsets = {}
    total = 0.0
    for epoch in np.unique(known):
        offsets[float(epoch)] = total
        largest = within[known == epoch]
        total += float(np.nanmax(largest)) + from_zero if not np.isnan(largest).all() else 0.0
    return np.asarray(within + np.array([offsets[float(epoch)] for epoch in known]))


def _counted_without_epochs(steps: F64, clocks: F64) -> F64:
    """Return steps counted through where they go back without a pause: then an epoch begins.

    A pause of 10 minutes tells a new training.
    """
    found = steps.copy()
    offset = 0.0
    for at in range(1, len(steps)):
        if steps[at] < steps[at - 1]:
            pause = clocks[at] - clocks[at - 1]
            is_epoch = np.isnan(pause) or pause <= _PAUSE_NS
            offset = float(found[at - 1]) + (1.0 if steps[at] == 0 else 0.0) if is_epoch else 0.0
        found[at] += offset
    return found


def _late_lines(numbers: I64) -> Flags:
    """Which lines state a step that is over, while the lines behind go on: another process wrote them late."""
    late = np.zeros(len(numbers), dtype=bool)
    for at in (np.flatnonzero(np.diff(numbers) < 0) + 1).tolist():
        before = numbers[at - 1]
        if at + 1 < len(numbers) and numbers[at + 1] > before and numbers[at] in numbers[max(0, at - 16) : at]:
            late[at] = True
    return late


def _without_replaced(chosen: _Chosen) -> _Chosen:
    """Leave out what a later start did again, and all before a start from the first step."""
    keeps = np.ones(len(chosen.at), dtype=bool)
    count = int(chosen.segments[-1]) if len(chosen.at) else 0
    for segment in range(1, count + 1):
        of_segment = chosen.segments == segment
        if not of_segment.any():
            continue
        first = chosen.steps[of_segment][0]
        earlier = chosen.segments < segment
        if first <= chosen.steps[earlier & keeps].min(initial=np.iinfo(np.int64).max):
            chosen.trainings += 1
            keeps &= ~earlier
        else:
            chosen.restarts += 1
            again = earlier & keeps & (chosen.steps >= first)
            chosen.replaced += int(again.sum())
            keeps &= ~again
    for name in ("at", "steps", "epochs", "segments"):
        setattr(chosen, name, getattr(chosen, name)[keeps])
    return chosen


def _strides(chosen: _Chosen) -> I64:
    """Return how many steps each line stands for: since the line before, at a start as many as usual, and no more than
    its number.
    """
    steps = chosen.steps
    if not chosen.is_numbered or len(steps) < 2:
        return np.ones(len(steps), dtype=np.int64)
    difference = np.diff(steps, prepend=steps[0])
    is_start = np.diff(chosen.segments, prepend=-1) != 0
    inside = difference[~is_start]
    usual = int(np.median(inside)) if len(inside) else 1
    at_start = np.clip(steps, 1, max(usual, 1))
    return np.where(is_start | (difference <= 0), at_start, difference).astype(np.int64)


class _StepTimes(NamedTuple):
    """Times of a step in s, how they were found where that needs a word, and whether neighbours share a mean."""

    step_s: F64
    way: str = ""
    is_smoothed: bool = False


def _step_times(
    scan: Scan, grammar: Grammar, chosen: _Chosen, stride: I64, sizes: Sizes, is_interrupted: Flags
) -> _StepTimes:
    """Return the time of a step of each interval."""
    at = chosen.at
    if scan.states("step_ms"):
        return _StepTimes(pick(scan.column("step_ms"), at) / 1000)
    if scan.states("mean_s"):
        found = _from_running_means(scan, grammar, chosen, stride)
        return _StepTimes(found, "differences of the mean of all steps since the start", True)
    if grammar.has_bars and scan.states("elapsed_clock"):
        return _from_progress_bar(scan, grammar, chosen, stride, is_interrupted)
    if scan.states("step_s"):
        return _StepTimes(pick(scan.column("step_s"), at))
    if scan.states("interval_s"):
        return _StepTimes(pick(scan.column("interval_s"), at) / stride)
    for name, scale in (("elapsed_ms", 0.001), ("elapsed_s", 1.0), ("elapsed_clock", 1.0)):
        if scan.states(name):
            elapsed = pick(scan.column(name), at) * scale
            return _from_elapsed(elapsed, chosen, stride, grammar, is_interrupted)
    if scan.states("wall_s") or scan.states("rate"):
        return _StepTimes(_from_wall(scan, grammar, chosen, stride))
    return _from_throughput(scan, grammar, chosen, stride, sizes, is_interrupted)


def _from_elapsed(elapsed: F64, chosen: _Chosen, stride: I64, grammar: Grammar, is_interrupted: Flags) -> _StepTimes:
    """Return differences of a time since the start; nan at a start, and where the time begins again.

    Where a difference is known too coarsely, it is that over several intervals.
    """
    spent = np.diff(elapsed, prepend=np.nan)
    spent[np.diff(chosen.segments, prepend=-1) != 0] = np.nan
    if len(elapsed) and chosen.steps[0] <= 3 * stride[0]:
        spent[0] = elapsed[0]
        stride = np.concatenate([np.maximum(1, chosen.steps[:1]), stride[1:]])
    spent[spent < 0] = np.nan
    return _smoothed(spent, stride, np.full(len(spent), 2 * grammar.resolution_s), grammar.joins, is_interrupted)


def _smoothed(spent: F64, stride: I64, error_s: F64, joins: float, is_alone: Flags | None = None) -> _StepTimes:
    """Return the time of a step of each interval, from the time spent in it, which is known to within `error_s`.

    Intervals in which the error is more than the part `joins` get the mean of as many neighbours as it takes;
    `is_alone`: which share with no neighbour.
    """
    known = ~np.isnan(spent) & (stride > 0)
    found = np.full(len(spent), np.nan)
    found[known] = spent[known] / stride[known]
    if not known.any() or not (error_s[known] > joins * np.maximum(spent[known], 1e-12)).any():
        return _StepTimes(found)
    ends = ~known if is_alone is None else ~known | is_alone
    is_joined = False
    start = 0
    total_s, steps = 0.0, 0
    last = np.nan
    for place in range(len(spent) + 1):
        if place < len(spent) and not ends[place]:
            total_s, steps = total_s + float(spent[place]), steps + int(stride[place])
            if error_s[place] > joins * total_s:
                continue
            last = total_s / steps
            found[start : place + 1] = last
            is_joined |= place > start
        elif place > start:
            # too short for a window of its own: as the one before
            found[start:place] = last
        start, total_s, steps = place + 1, 0.0, 0
    way = "differences of rounded times, so that neighbouring intervals share a mean" if is_joined else ""
    return _StepTimes(np.where(found > 0, found, np.nan), way, is_joined)


def _from_running_means(scan: Scan, grammar: Grammar, chosen: _Chosen, stride: I64) -> F64:
    """Return the times of the intervals behind the mean of all steps since the start of a program."""
    means = pick(scan.column("mean_s"), chosen.at)
    is_start = np.diff(chosen.segments, prepend=-1) != 0
    # where lines are missing, the program may have been started again
    usual = int(np.median(stride)) if len(stride) else 1
    for place in np.flatnonzero((stride > usual) & ~is_start).tolist():
        is_start[place] = _begins_again(means, chosen.steps, is_start, place, usual)
    stride = np.where(is_start, np.minimum(stride, usual), stride)
    total = means * _steps_done(chosen.steps, is_start, stride)
    spent = np.diff(total, prepend=0.0)
    spent[is_start] = total[is_start]
    error_s = 2 * grammar.resolution_s * _steps_done(chosen.steps, is_start, stride).astype(np.float64)
    return _smoothed(np.where(spent > 0, spent, np.nan), stride, error_s, grammar.joins).step_s


def _steps_done(steps: I64, is_start: Flags, stride: I64) -> I64:
    """Return how many steps each mean is of: those since the last start."""
    first = np.maximum.accumulate(np.where(is_start, np.arange(len(steps)), 0))
    return np.asarray(steps - steps[first] + stride[first])


def _begins_again(means: F64, steps: I64, is_start: Flags, place: int, usual: int) -> bool:
    """Whether a mean of all steps begins again at a place: whether the times behind it are then nearer to the mean."""
    begun = np.flatnonzero(is_start[:place])
    first = int(begun[-1]) if len(begun) else 0
    end = min(place + 3, len(means))
    distances = []
    for origin in (steps[first] - usual, steps[place] - usual):
        total = means[:end] * (steps[:end] - origin)
        spent = np.diff(total)[place - 1 :] / np.diff(steps[:end])[place - 1 :]
        if origin == steps[place] - usual:
            spent[0] = means[place]
        distances.append(float(np.abs(spent / means[place] - 1).max()))
    return distances[1] < distances[0]


def _from_progress_bar(scan: Scan, grammar: Grammar, chosen: _Chosen, stride: I64, is_interrupted: Flags) -> _StepTimes:
    """Return the times behind a bar of tqdm: differences of its clock, or of a short run the rate that it prints."""
    elapsed = pick(scan.column("elapsed_clock"), chosen.at)
    if len(elapsed) and np.nanmax(elapsed) - np.nanmin(elapsed) >= 5 * _SECONDS:
        found = _from_elapsed(elapsed, chosen, stride, grammar, is_interrupted)
        return found._replace(way="the clock of a progress bar, which counts whole seconds", is_smoothed=True)
    rate = pick(scan.column("rate"), chosen.at)
    step_s = pick(scan.column("step_s"), chosen.at)
    return _StepTimes(_first_known(step_s, 1 / np.where(rate > 0, rate, np.nan)), "the rate of a progress bar", True)


def _from_wall(scan: Scan, grammar: Grammar, chosen: _Chosen, stride: I64) -> F64:
    """Return the times behind a clock of whole seconds where it is fine enough, else those of the rates."""
    at = chosen.at
    wall = pick(scan.column("wall_s"), at)
    is_start = np.diff(chosen.segments, prepend=-1) != 0
    spent = np.diff(wall, prepend=np.nan)
    spent[is_start | (spent < 0)] = np.nan
    known = spent[~np.isnan(spent)]
    usual = float(np.median(stride))
    is_fine = len(known) > 0 and 2 * grammar.resolution_s <= grammar.joins * float(np.median(known))
    rate = pick(scan.column("rate"), at)
    words = pick(scan.column("batch_words"), at) / pick(scan.column("words_s"), at)
    from_rates = _first_known(np.where(np.isfinite(words), words, np.nan), 1 / np.where(rate > 0, rate, np.nan))
    if not is_fine:
        return from_rates
    # lines are missing in it: the rate is that of the last ones
    whole = np.where(stride > _GAP * usual, np.nan, spent / stride)
    return np.where(np.isnan(whole) & ~is_start, from_rates, whole)


def _from_throughput(
    scan: Scan, grammar: Grammar, chosen: _Chosen, stride: I64, sizes: Sizes, is_interrupted: Flags
) -> _StepTimes:
    """Return the times behind a throughput, where the size of a step is known; else those of the clock of the lines."""
    at = chosen.at
    batch = _first_known(pick(scan.column("batch"), at), np.full(len(at), float(sizes.batch or np.nan)))
    samples, tokens = pick(scan.column("samples_s"), at), pick(scan.column("tokens_s"), at)
    found = np.full(len(at), np.nan)
    if scan.states("samples_s"):
        found = batch / np.where(samples > 0, samples, np.nan)
    elif scan.states("tokens_s") and sizes.sequence_length:
        is_of_device = grammar.scopes.get("tokens_s") == PER_DEVICE
        devices = sizes.devices if is_of_device else 1
        if devices:
            found = batch * sizes.sequence_length / np.where(tokens > 0, tokens * devices, np.nan)
    if not np.isnan(found).all():
        return _StepTimes(found, "the batch by the throughput")
    if grammar.takes_clock and len(scan.clocks) == scan.count:
        clock_s = scan.clocks[at] / 1e9
        resolution = 0.5 * 10.0**-scan.clock_digits
        spent = np.diff(clock_s, prepend=np.nan)
        spent[np.diff(chosen.segments, prepend=-1) != 0] = np.nan
        error_s = np.full(len(at), 2 * resolution)
        times = _smoothed(np.where(spent >= 0, spent, np.nan), stride, error_s, grammar.joins, is_interrupted)
        if not np.isnan(times.step_s).all():
            return times._replace(way="the times of the lines")
    return _StepTimes(found)


def _throughputs(scan: Scan, grammar: Grammar, chosen: _Chosen, spent_s: F64) -> tuple[dict[str, F64], dict[str, str]]:
    """Return the throughputs by unit, and whose each is. spent_s: how long each interval lasts."""
    found: dict[str, F64] = {}
    scopes: dict[str, str] = {}
    units = {"tokens_s": "tokens/s", "samples_s": "samples/s", "words_s": "words/s", "tflops": "TFLOP/s"}
    for name, unit in units.items():
        if not scan.states(name):
            continue
        values = pick(scan.column(name), chosen.at)
        found[unit] = np.where(values > 0, values, np.nan)  # 0 is no measurement
        scopes[unit] = grammar.scopes.get(name, "")
    if scan.states("tokens"):
        tokens = pick(scan.column("tokens"), chosen.at)
        rates = np.diff(tokens, prepend=np.nan) / np.where(spent_s > 0, spent_s, np.nan)
        if (rates > 0).any():
            found["tokens/s"] = np.where(rates > 0, rates, np.nan)
            scopes["tokens/s"] = grammar.scopes.get("tokens_s", "")
    if scan.states("throughput"):
        values = pick(scan.column("throughput"), chosen.at)
        units_of = [scan.words["unit"][place] for place in chosen.at.tolist()]
        scopes_of = {scan.words["scope"][place] for place in chosen.at.tolist()}
        for unit in dict.fromkeys(units_of):
            is_of_unit = np.array([other == unit for other in units_of])
            if (~np.isnan(values[is_of_unit])).any():
                found[unit] = np.where(is_of_unit, values, np.nan)
                scopes[unit] = scopes_of.copy().pop() if len(scopes_of) == 1 else ""
    return found, scopes


def _interruptions(scan: Scan, grammar: Grammar, chosen: _Chosen) -> dict[str, Flags]:
    """Return by reason which intervals the grammar knows to be unlike others."""
    at = chosen.at
    flags = {
        SKIPPED: pick(scan.column("skipped"), at) > 0,
        INTERRUPTED: ~np.isnan(pick(scan.column("evaluation"), at)),
        EPOCH_START: np.zeros(len(at), dtype=bool),
    }
    if len(scan.interrupts) and len(at):
        positions = scan.positions[at]
        before = np.concatenate([[-1], positions[:-1]])
        between = np.searchsorted(scan.interrupts, positions) - np.searchsorted(scan.interrupts, before, side="right")
        flags[INTERRUPTED] = flags[INTERRUPTED] | (between > 0)
    if grammar.has_epoch_starts and (~np.isnan(chosen.epochs)).any():
        flags[EPOCH_START][1:] = np.diff(chosen.epochs) > 0
    return flags


def _reasons(flags: dict[str, Flags], step_s: F64) -> I64:
    """Return why intervals are left out, index into LEFT_OUT, -1 for none. A reason that would leave hardly anything
    is none.
    """
    reasons = np.full(len(step_s), -1, dtype=np.int64)
    # a log may state a throughput alone
    is_known = np.ones(len(step_s), dtype=bool) if np.isnan(step_s).all() else ~np.isnan(step_s)
    for reason, is_flagged in flags.items():
        free = ~is_flagged & is_known
        if is_flagged.any() and free.sum() >= max(1, _KEPT * len(step_s)):
            reasons[is_flagged] = LEFT_OUT.index(reason)
    return reasons


def with_warm_up(found: Intervals, first_steady: int) -> Intervals:
    """Mark the warm-up behind each start: the first interval, those before `first_steady`, and all that are slower than
    the median of the rest by more than 10 %, but at most half of them.
    """
    reasons = found.reasons.copy()
    for segment in np.unique(found.segments).tolist():
        places = np.flatnonzero((found.segments == segment) & (reasons < 0) & ~np.isnan(found.step_s))
        if not len(places):
            places = np.flatnonzero((found.segments == segment) & (reasons < 0))
            if len(places) >= _FEWEST:
                reasons[places[0]] = LEFT_OUT.index(WARM_UP)
            continue
        if len(places) < _FEWEST:
            continue
        times, last = found.step_s[places], found.last[places]
        most = int(len(places) * _LONGEST_WARM_UP)
        is_first = segment == found.segments[0]
        # steps that begin at 0 are one behind
        shift = 1 if last[0] == 0 else 0
        end = 1
        if is_first and found.is_numbered:
            end = max(end, int(np.searchsorted(last + shift, first_steady)))
        end = min(end, max(1, len(places) - 1))
        # of a long run the warm-up does not move the median
        fixed = float(np.median(times)) if len(times) > _LONG else None
        while end < most and times[end] > (1 + _ALIKE) * (fixed or float(np.median(times[end:]))):
            end += 1
        if end >= most and end > 1:
            # no end of a warm-up: the run is uneven throughout
            floor = 1
            if is_first and found.is_numbered:
                floor = max(1, int(np.searchsorted(last + shift, first_steady)))
            end = min(floor, max(1, len(places) - 1))
        reasons[places[:end]] = LEFT_OUT.index(WARM_UP)
    return replace(found, reasons=reasons)


def _blocks(scan: Scan, sizes: Sizes) -> Intervals:
    """Return the blocks between the lines `start` and `stop` of MLPerf as intervals."""
    clocks, counts = scan.column("clock_ms"), scan.column("step")
    rows: list[tuple[int, float, float, int]] = []
    begun: int | None = None
    done = 0.0
    for place, mark in enumerate(scan.words["mark"]):
        if mark == "start":
            begun = place
        elif begun is not None:
            spent = (clocks[place] - clocks[begun]) / 1000
            # some count the samples of the block, others all samples until now
            counted, at_start = counts[place], counts[begun]
            samples = counted if counted == at_start or np.isnan(at_start) else counted - at_start
            done += 0.0 if np.isnan(samples) else float(samples)
            # a block may be shorter than a batch: each is a row with a number of its own
            number = max(round(done / (sizes.batch or 1)), rows[-1][0] + 1 if rows else 0)
            rows.append((number, samples, spent, place))
            begun = None
    last, samples_of, spent_of, places = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    samples_of = np.where(samples_of > 0, samples_of, np.nan)
    rates = samples_of / np.where(spent_of > 0, spent_of, np.nan)
    steps = samples_of / (sizes.batch or np.nan)
    nothing = np.full(len(rates), np.nan)
    found = Intervals(
        last=last.astype(np.int64),
        stride=np.maximum(1, np.nan_to_num(steps, nan=1.0)).astype(np.int64),
        step_s=spent_of / steps,
        data_s=nothing,
        throughputs={"samples/s": rates},
        mfu=nothing,
        allocated=nothing,
        reserved=nothing,
        segments=np.zeros(len(rates), dtype=np.int64),
        reasons=np.full(len(rates), -1, dtype=np.int64),
        lines=places.astype(np.int64),
        way="the wall time of the blocks",
        scopes={"samples/s": "total"},
    )
    return with_warm_up(taken(found, np.flatnonzero(~np.isnan(rates))), 0)


def _first_known(*columns: F64) -> F64:
    found = columns[0]
    for column in columns[1:]:
        found = np.where(np.isnan(found), column, found)
    return found
