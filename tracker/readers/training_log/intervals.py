"""From the step lines of a log to its intervals: each step once, with the time of a step in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.readers.training_log.blocks import blocks_of
from tracker.readers.training_log.columns import PackedColumn, pick
from tracker.readers.training_log.distribution import Pieces
from tracker.readers.training_log.grammar import LARGEST_STEP_S, RATE_UNITS, TOTAL, Grammar
from tracker.readers.training_log.left_out import (
    COUNTS,
    INTERRUPTED,
    Reasons,
    reasons_of,
    unlike_intervals,
    with_warm_up,
)
from tracker.readers.training_log.rounding import median_rounding, roundings_in
from tracker.readers.training_log.scanning import Scan
from tracker.readers.training_log.step_lines import ChosenLines, Places, choose_lines, stride_of_lines
from tracker.readers.training_log.step_times import Sizes, TimeSource
from tracker.readers.training_log.timers import place_timer

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Flags = NDArray[np.bool_]

_TOO_LONG: Final = 1.5
"""Steps take no longer than the time between their lines, but for what a mean and a clock of ms are off."""


_MOST_STEPS: Final = 1_000_000_000
"""No epoch or session has more steps; above it one of the numbers behind them is damage."""


class Intervals(Struct, frozen=True):
    """The intervals of a log in their order; columns of equal length, nan for what is not known.

    `last_step`: its number, of each; `stride`: how many steps it holds; `step_s`: mean time of one of them.
    `throughputs`: by unit. `reasons`: why an interval is left out, index into LEFT_OUT, COUNTS for one that counts.
    `lines`: which lines of the scan they are. `way`: how the time was found, in words where that needs to be said.
    `repeated`: lines that state a step again; `replaced`: intervals of an earlier start whose steps came again;
    `restarts`: how often the steps went back; `trainings`: how many began from the start. `rounding`, `data_rounding`,
    `rate_roundings` (by unit): how far the number of a usual interval may be from what is printed, as a part of it.
    """

    last_step: PackedColumn
    stride: I64
    step_s: PackedColumn
    data_s: PackedColumn
    throughputs: dict[str, PackedColumn]
    mfu: PackedColumn
    allocated: PackedColumn
    reserved: PackedColumn
    segments: NDArray[np.int32]
    reasons: Reasons
    lines: PackedColumn
    way: str = ""
    ranks: tuple[int, ...] = ()
    repeated: int = 0
    replaced: int = 0
    restarts: int = 0
    trainings: int = 1
    is_numbered: bool = True
    is_smoothed: bool = False
    scopes: dict[str, str] = field(default_factory=dict)
    rounding: float = 0.0
    rate_roundings: dict[str, float] = field(default_factory=dict)
    data_rounding: float = 0.0

    @property
    def counts(self) -> Flags:
        """Which intervals count in a median."""
        return np.asarray(self.reasons == COUNTS)


def intervals_of(scan: Scan, grammar: Grammar, sizes: Sizes) -> Intervals:
    """Return the intervals of a log; their times are nan where no line says one and nothing gives it."""
    if "mark" in scan.words and any(scan.words["mark"]):
        return _intervals_of_blocks(scan, sizes)
    chosen = choose_lines(scan, grammar)
    stride = stride_of_lines(chosen)
    flags = unlike_intervals(scan, grammar, chosen)
    source = TimeSource(scan, grammar, chosen, stride, sizes, flags[INTERRUPTED])
    step_s, way, is_smoothed, rounding = source.step_times()
    step_s = step_s.changed_by(_possible_times_in)
    if sizes.batch and scan.states("clock_ms") and _counts_samples(scan, chosen, step_s.values() * stride):
        chosen = replace(chosen, packed_steps=PackedColumn.of(chosen.steps // sizes.batch))
        stride = np.maximum(1, stride // sizes.batch)
    if scan.states("run_steps"):
        done = np.round(np.nan_to_num(source.column("run_steps"), nan=1.0))
        stride = np.clip(done, 1, _MOST_STEPS).astype(np.int64)
        chosen = chosen if chosen.is_numbered else replace(chosen, packed_steps=PackedColumn.of(np.cumsum(stride)))
    elif not chosen.is_numbered and scan.states("step_ms" if scan.states("interval_ms") else "step_s"):
        stride = _steps_by_time(source, step_s.values())
        chosen = replace(chosen, packed_steps=PackedColumn.of(np.cumsum(stride)))
    throughputs, scopes = _throughputs(scan, grammar, source, step_s)
    reasons = reasons_of(flags, step_s)
    places = _places_of_intervals(step_s, throughputs)
    usual_rounding = 0.0 if rounding is None else median_rounding(_at_places(rounding, places, len(step_s)))
    rate_roundings = _rate_roundings(scan, source, throughputs)
    lines, segments = chosen.packed_at.at(places), pick(chosen.segments, places)
    step_s = step_s.at(places)
    first_steady = grammar.first_steady if chosen.is_numbered else None
    return Intervals(
        last_step=chosen.packed_steps.at(places),
        stride=pick(stride, places),
        step_s=step_s,
        data_s=_waiting_for_data(scan, lines),
        throughputs={unit: values.at(places) for unit, values in throughputs.items()},
        mfu=_mfu_of(scan, lines),
        allocated=_bytes_of(scan, lines, "allocated_mib", "allocated_gib", "allocated_gb"),
        reserved=_bytes_of(scan, lines, "reserved_gib"),
        segments=segments,
        reasons=with_warm_up(pick(reasons, places), step_s, chosen.packed_steps.at(places), segments, first_steady),
        lines=lines,
        way=way,
        ranks=chosen.ranks,
        repeated=chosen.repeated,
        replaced=chosen.replaced,
        restarts=chosen.restarts,
        trainings=chosen.trainings,
        is_numbered=chosen.is_numbered,
        is_smoothed=is_smoothed,
        scopes=scopes,
        rounding=usual_rounding,
        rate_roundings=rate_roundings,
        data_rounding=median_rounding(source.roundings_of("data_s")),
    )


def _possible_times_in(step_s: F64) -> F64:
    """Return times of steps; nan for others: no step takes no time, or 833 days."""
    return np.where((step_s > 0) & (step_s <= LARGEST_STEP_S), step_s, np.nan)


def _at_places(roundings: Pieces, places: Places | range, count: int) -> Pieces:
    """Return what yields the roundings of some of so many lines."""
    if len(places) == count:
        return roundings
    return lambda: [np.concatenate([*roundings()])[places]]


def _places_of_intervals(step_s: PackedColumn, throughputs: Mapping[str, PackedColumn]) -> Places | range:
    """Return the places of the lines with a number: the first one of cumulative times has none, and is no interval."""
    is_interval = ~step_s.is_missing()
    for values in throughputs.values():
        if not is_interval.all():
            is_interval |= ~values.is_missing()
    if is_interval.all():
        return range(len(step_s))
    return np.flatnonzero(is_interval)


def _rate_roundings(scan: Scan, source: TimeSource, throughputs: Mapping[str, PackedColumn]) -> dict[str, float]:
    """Return how far throughputs may be from what is printed, as a part of each, by unit."""
    if scan.states("rate_rounding"):
        return dict.fromkeys(throughputs, median_rounding(source.packed_column("rate_rounding").pieces))
    quantities = {unit: name for name, unit in RATE_UNITS.items() if scan.states(name)}
    roundings = {}
    for unit, values in throughputs.items():
        quantity = quantities.get(unit, "throughput")
        roundings[unit] = median_rounding(roundings_in(scan.half_units, quantity, values))
    return roundings


def _steps_by_time(source: TimeSource, step_s: F64) -> I64:
    """Return how many steps each line is about that states the time of all of them and of one: 1 for any other."""
    spent = source.column("interval_s")
    spent = np.where(np.isnan(spent), source.column("interval_ms") / 1000, spent)
    steps = np.round(np.nan_to_num(spent / step_s, nan=1.0))
    return np.clip(steps, 1, _MOST_STEPS).astype(np.int64)


def _counts_samples(scan: Scan, chosen: ChosenLines, spent_s: F64) -> bool:
    """Whether the numbers of the lines count samples, as in some results of MLPerf.

    As steps they would take longer than the time between the lines.
    `spent_s`: how long each interval lasts if its number counts steps.
    """
    between_s = np.diff(chosen.pick(scan.column("clock_ms"))) / 1000
    is_known = (between_s > 0) & ~np.isnan(spent_s[1:])
    return bool(is_known.any()) and float(np.median(spent_s[1:][is_known] / between_s[is_known])) > _TOO_LONG


def _waiting_for_data(scan: Scan, lines: PackedColumn) -> PackedColumn:
    """Return how long a step of each interval waits for data, in s: as its line says it, or a timer behind the line."""
    timers = [timer for timer in scan.timers if timer.waits_for_data]
    if scan.states("data_s") or not timers or not len(lines):
        return scan.packed_column("data_s").at(lines)
    waiting = np.full(len(lines), np.nan)
    for timer in timers:
        interval = place_timer(timer, scan.positions.values(), scan.column("step"), lines.values())
        is_placed = interval >= 0
        waiting[interval[is_placed]] = timer.values[is_placed] / 1000
    return PackedColumn.of(waiting)


def _mfu_of(scan: Scan, lines: PackedColumn) -> PackedColumn:
    mfu = scan.packed_column("mfu").at(lines)
    return mfu.changed_by(lambda parts: np.where(parts < 0, np.nan, parts))  # nanoGPT: -100 until it is known


def _bytes_of(scan: Scan, lines: PackedColumn, *quantities: str) -> PackedColumn:
    """Return the memory of the first of some quantities that lines state, in bytes."""
    name = next((name for name in quantities if scan.states(name)), quantities[0])
    unit = 2.0**20 if name.endswith("_mib") else 2.0**30
    return scan.packed_column(name).at(lines).changed_by(lambda sizes: sizes * unit)


def _throughputs(
    scan: Scan, grammar: Grammar, source: TimeSource, step_s: PackedColumn
) -> tuple[dict[str, PackedColumn], dict[str, str]]:
    """Return the throughputs by unit, and whose each is."""
    rates: dict[str, PackedColumn] = {}
    scopes: dict[str, str] = {}
    for name, unit in RATE_UNITS.items():
        if name == "samples_s" and scan.states("mean_samples_s"):
            column = PackedColumn.of(source.samples_per_second())
        elif scan.states(name):
            column = source.packed_column(name)
        else:
            continue
        column = column.changed_by(_rates_in)
        if column.has_number():
            rates[unit] = column
            scopes[unit] = grammar.scopes.get(name, "")
    for name, quantity in (("tokens_s", "tokens"), ("words_s", "batch_words")):
        unit = RATE_UNITS[name]
        if unit in rates or not scan.states(quantity):
            continue
        amount = source.column(quantity)
        if quantity == "tokens":
            amount = np.diff(amount, prepend=np.nan) / source.stride
        times = step_s.values()
        column = PackedColumn.of(_rates_in(amount / np.where(times > 0, times, np.nan)))
        if column.has_number():
            rates[unit] = column
            scopes[unit] = grammar.scopes.get(name, "")
    if scan.states("throughput"):
        of_lines, scopes_of_lines = _throughputs_by_unit(scan, source.chosen)
        rates |= of_lines
        scopes |= scopes_of_lines
    return rates, scopes


def _rates_in(values: F64) -> F64:
    """Return throughputs; nan for 0, which is no measurement."""
    return np.where(values > 0, values, np.nan)


def _throughputs_by_unit(scan: Scan, chosen: ChosenLines) -> tuple[dict[str, PackedColumn], dict[str, str]]:
    """Return the throughputs of lines that name their unit, and whose each is, where all lines agree."""
    values = chosen.pick(scan.column("throughput"))
    units, scopes_of_lines = (_words_of(scan, name, chosen) for name in ("unit", "scope"))
    scopes = set(scopes_of_lines)
    scope = scopes.pop() if len(scopes) == 1 else ""
    rates = {}
    for unit in dict.fromkeys(units):
        is_of_unit = np.fromiter((other == unit for other in units), dtype=bool, count=len(units))
        if (~np.isnan(values[is_of_unit])).any():
            rates[unit] = PackedColumn.of(np.where(is_of_unit, values, np.nan))
    return rates, dict.fromkeys(rates, scope)


def _words_of(scan: Scan, name: str, chosen: ChosenLines) -> list[str]:
    words = scan.words.get(name, [""] * scan.count)
    return [words[place] for place in chosen.at]


def _intervals_of_blocks(scan: Scan, sizes: Sizes) -> Intervals:
    """Return the blocks between the lines `start` and `stop` of MLPerf as intervals."""
    blocks = blocks_of(scan, sizes.batch)
    has_samples = bool((~np.isnan(blocks.samples_s)).any())
    places = np.flatnonzero(~np.isnan(blocks.samples_s if has_samples else blocks.step_s))
    nothing = PackedColumn.of(np.full(len(places), np.nan))
    step_s, last = PackedColumn.of(blocks.step_s[places]), PackedColumn.of(blocks.last[places])
    segments = np.zeros(len(places), dtype=np.int32)
    reasons = np.full(len(places), COUNTS, dtype=np.int8)
    way = "the wall time of the blocks"
    if not has_samples:
        way += ", each of which stands for one step: no line says how many samples it has"
    return Intervals(
        last_step=last,
        stride=np.maximum(1, np.nan_to_num(blocks.steps[places], nan=1.0)).astype(np.int64),
        step_s=step_s,
        data_s=nothing,
        throughputs={"samples/s": PackedColumn.of(blocks.samples_s[places])} if has_samples else {},
        mfu=nothing,
        allocated=nothing,
        reserved=nothing,
        segments=segments,
        reasons=with_warm_up(reasons, step_s, last, segments, 0),
        lines=PackedColumn.of(blocks.lines[places]),
        way=way,
        scopes={"samples/s": TOTAL},
    )
