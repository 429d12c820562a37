"""The overall table: where a step goes on each side, as a tree of metrics; work outside all steps, and slow steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.columns import Columns
from tracker.compare import match
from tracker.compare.collectives import roles_by_size
from tracker.compare.overall_rows import (
    Metric,
    Sum,
    Sums,
    category_metrics,
    category_sums,
    component_peaks,
    group_metrics,
    group_splits,
    group_sums,
    is_split,
    peak_metrics,
    with_absent,
    without_other_splits,
)
from tracker.detect.slow_steps import SLOW_FACTOR
from tracker.profile.odd_runs import find_odd_runs
from tracker.results.run_summary import PARTS_OF_STEP
from tracker.schema.column_names import (
    BASELINE_VALUE,
    CANDIDATE_VALUE,
    COMPUTE_NS,
    DURATION_NS,
    EARLIER_NS,
    IDLE_NS,
    IDLE_SHARE,
    KIND,
    MARKER_NS,
    METRIC,
    OUTSIDE_STEPS_KERNEL_TOTAL_NS,
    RANK,
    REST_NS,
    RUN_ID,
    SAMPLES_PER_SECOND,
    SETTINGS,
    SLOW_STEPS,
    STAGE,
    START_NS,
    STEP,
    STEP_NS,
    STEPS,
    TIMELINE,
    WHOLE_NS,
)
from tracker.schema.series import UNPROFILED, UNPROFILED_STEP, key_of_run
from tracker.store import queries
from tracker.store.samples.statistics import mean_over_steps, over_ranks, over_runs, over_steps, without_filling
from tracker.units import counted, format_ns, name_throughput

if TYPE_CHECKING:
    from tracker.columns import F64
    from tracker.compare.side import LoadedSide
    from tracker.results.diff import Runs


_KERNELS: Final = ("kernel_total_ns",)
_ALL_WORK: Final = ("compute_total_ns", "communication_total_ns", "copy_total_ns")
_WORTH_SAYING: Final = 0.01
"""Share of the work of the device: a kernel or two at the edges of a capture are no matter."""

LEAST_EARLIER: Final = 0.001
"""Part of the step below which what had changed before is a part of the rest."""
_MATTERS: Final = 0.01
"""Share of the step by which the mean step is longer."""

ROUNDING: Final = 1e-9
"""Part of a time below which a rest is none of medians."""
_PEAKS: Final = ("peak_allocated_bytes", "peak_reserved_bytes")
_NOTHING: Final = Sum(None)
_TIMES: Final = (
    Metric(UNPROFILED_STEP, "Step time without a profiler (timer log)"),
    Metric("step_ns", "Step time"),
    Metric("mean_step_ns", "Mean step", 1),
    Metric("marker_ns", "Marker of the step on the host", 1),
    Metric("slow_steps", "Slow steps (above 1.2 times the median)", 1, unit="count"),
    Metric("e2e_ns", "E2E"),
    Metric("compute_ns", "Computing", 1, in_step=True),
)
_EXPOSED: Final = Metric("exposed_communication_ns", "Exposed communication", 1, in_step=True)
_REST: Final = (
    Metric("exposed_copy_ns", "Exposed copies (memcpy, SDMA)", 1, in_step=True),
    Metric("idle_ns", "Idle time", 1, in_step=True),
    Metric("host_idle_ns", "Idle, with nothing launched", 2, in_step=True),
    Metric("rest_ns", "Rest (of medians)", 1, in_step=True),
    Metric("earlier_ns", "Parts of other runs", 1, in_step=True),
    Metric("idle_share", "Idle share of the step", 1, unit="ratio"),
    Metric("communication_ns", "Communication, overlapped or not", in_step=True),
    Metric("overlap_ns", "Communication overlapped with computing", 1, in_step=True),
    Metric("copy_ns", "Copies, overlapped or not", in_step=True),
    Metric("operator_ns", "Operator time (sum of compute kernels)"),
    Metric("operator_cube_ns", "Operator time of cube work", 1),
    Metric("operator_vector_ns", "Operator time of vector work", 1),
    Metric("communication_total_ns", "Communication kernels (sum)"),
    Metric("kernel_total_ns", "Kernel time (sum)"),
    Metric("kernel_count", "Kernels", unit="count"),
    Metric("unlinked_kernel_total_ns", "Kernel time without a launch in the capture", 1),
    Metric("outside_steps_kernel_total_ns", "Kernel time outside all steps, per rank", 1),
    Metric("data_loading_ns", "Data loading"),
    Metric("data_loading_idle_ns", "Data loading while the device idles", 1),
    Metric("bubble_ns", "Pipeline bubble"),
    Metric("preparing_ns", "Preparing"),
)
_DEVICE_ONLY: Final = {
    "communication_total_ns",
    "kernel_total_ns",
    "kernel_count",
    "unlinked_kernel_total_ns",
    "outside_steps_kernel_total_ns",
}


def kernel_time_outside_steps(side: LoadedSide) -> dict[int, float]:
    """Return for each run the kernel time of no step, in ns, as the mean over its ranks.

    Of the ranks that state both the whole and all their steps; a run without any is left out.
    """
    return {run_id: outside for run_id, (outside, _) in _time_outside_steps(side, _KERNELS).items()}


def note_on_outside_work(side: LoadedSide) -> tuple[str, ...]:
    """Return a sentence where a part of the work of the device was launched outside all steps, of the run with most."""
    if not side.has_markers or side.is_part:
        return ()
    times = {}
    for run_id, (outside, whole) in _time_outside_steps(side, _ALL_WORK).items():
        if outside > _WORTH_SAYING * whole:
            times[run_id] = outside
    if not times:
        return ()
    run_id = max(times, key=lambda number: (times[number], -number))
    of_run = f" of run:{run_id}" if len(side.run_ids) > 1 else ""
    return (
        f"{format_ns(times[run_id])} of device work{of_run} was launched outside all steps: it is in no table of "
        "steps, and counts as a part of a step only while it runs in one.",
    )


def note_on_steps_without_time(side: LoadedSide) -> tuple[str, ...]:
    """Return a sentence where the device worked on earlier steps until a step, which launched no kernel, was over."""
    has_marker = side.steps.known(MARKER_NS)
    count = int((has_marker & ~side.steps.known(DURATION_NS)).sum())
    if not count:
        return ()
    return (
        f"{counted(count, 'step')} launched no kernel while the device worked on earlier ones: no time of their own.",
    )


def _time_outside_steps(side: LoadedSide, columns: Sequence[str]) -> dict[int, tuple[float, float]]:
    """Return for each run what of the sum of `columns` is in no step, and the sum: means over ranks, in ns."""
    inside: dict[tuple[int, int], list[tuple[int | None, int]]] = {}
    for run_id, rank, steps, *values in side.steps.rows(RUN_ID, RANK, STEPS, *columns):
        inside.setdefault((run_id, rank), []).append((_sum(values), steps))
    ranks: dict[int, list[tuple[int, int, int]]] = {}
    for run_id, rank, *values in side.captures.rows(RUN_ID, RANK, *columns):
        own, whole = inside.get((run_id, rank)), _sum(values)
        if not own or whole is None:
            continue
        in_steps = [None if ns is None else ns * steps for ns, steps in own]
        known = [ns for ns in in_steps if ns is not None]
        if len(known) < len(in_steps):
            continue
        # the mean of many steps is rounded to whole ns: what that leaves over is nothing outside
        rounding = sum(steps for _, steps in own if steps > 1)
        ranks.setdefault(run_id, []).append((whole - sum(known), whole, rounding))
    found = {}
    for run_id, rows in ranks.items():
        outside, whole, rounding = (sum(column) for column in zip(*rows, strict=True))
        found[run_id] = (0.0 if abs(outside) <= rounding else outside / len(rows), whole / len(rows))
    return found


def _sum(values: Sequence[int | None]) -> int | None:
    """Return the sum, None where any value is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


class StepsOfRuns(Struct, frozen=True, eq=False):
    """Of each run of a side: the number of slow steps of the rank with most, the mean step (without a first one that
    holds the filling of the queue) and the step; nan where no step has a time.
    """

    slow_steps: F64
    mean_ns: F64
    step_ns: F64


def measure_steps_of_runs(side: LoadedSide) -> StepsOfRuns:
    """Return the step, the mean step and the number of slow steps of each run, in the order of `side.run_ids`."""
    run, rank = (side.steps.integers(name) for name in (RUN_ID, RANK))
    durations, weights = side.steps.reals(DURATION_NS), side.steps.reals(STEPS)
    starts, markers = side.steps.reals(START_NS), side.steps.reals(MARKER_NS)
    found = np.full((3, len(side.run_ids)), np.nan)
    for at, run_id in enumerate(side.run_ids):
        ranks = {number: stage for own, number, stage in side.captures.rows(RUN_ID, RANK, STAGE) if own == run_id}
        of_ranks = []
        for number in ranks:
            own = np.flatnonzero((run == run_id) & (rank == number) & ~np.isnan(durations))
            own = own[np.argsort(starts[own], kind="stable")]
            times, weight = durations[own][None, :], weights[own]
            if len(own) and times.any():
                lasting = without_filling(times[0], markers[own])[None, :]
                step, mean = over_steps(times, weight)[0], mean_over_steps(lasting, weight)[0]
                is_slow = times[0] / step > SLOW_FACTOR
                of_ranks.append((float(weight[is_slow].sum()), float(mean), float(step)))
            else:
                of_ranks.append((np.nan,) * 3)
        table = np.array(of_ranks).reshape(-1, 3).T
        stages = np.array(list(ranks.values()), dtype=np.int64)
        if not np.isnan(table[2]).all():
            found[:, at] = [np.nanmax(table[0]), *over_ranks(table[1:], stages)]
    return StepsOfRuns(*found)


def find_costly_runs(side: LoadedSide) -> list[int]:
    """Return the runs of which slow steps make the mean step longer than the step by at least 1 %."""
    steps = measure_steps_of_runs(side)
    cost = steps.mean_ns - steps.step_ns
    is_costly = (steps.slow_steps > 0) & (cost >= _MATTERS * steps.step_ns)
    return [run_id for run_id, costs in zip(side.run_ids, is_costly.tolist(), strict=True) if costs]


def compare_overall(baseline: LoadedSide, candidate: LoadedSide, rows_of: LoadedSide | None = None) -> Columns:
    """Return the `overall` rows of a Diff; rows that neither side has are left out.

    `rows_of`: the baseline with the runs that its rows are of, where some are of others than the step.
    """
    sides = (baseline, candidate)
    peaks = [component_peaks(side) for side in sides]
    steps = with_one_step(sides, numbers_of_rows(baseline, rows_of), dict(step_numbers(candidate)))
    if EARLIER_NS in steps[0]:
        steps[1][EARLIER_NS] = 0.0
    numbers = [{**of_step, **of_side} for of_step, of_side in zip(steps, peaks, strict=True)]
    if has_other_units(baseline, candidate):
        for of_side in numbers:
            of_side.pop(SAMPLES_PER_SECOND, None)
    split = [is_split(side) for side in sides]
    kernels = [category_sums(side, by_rules=other is True) for side, other in zip(sides, reversed(split), strict=True)]
    named = list(zip(sides, roles_by_size(*sides), strict=True))
    groups = with_absent([group_sums(side, step_numbers(side).get(_EXPOSED.name), roles) for side, roles in named])
    groups = without_other_splits(groups, [group_splits(side, roles) for side, roles in named])
    found = [{**of_kernels, **of_groups} for of_kernels, of_groups in zip(kernels, groups, strict=True)]
    host = "device" not in (baseline.side.timeline, candidate.side.timeline)
    metrics = [
        *_TIMES,
        *category_metrics(kernels),
        _EXPOSED,
        *group_metrics(groups),
        *(metric for metric in _REST if not (host and metric.name in _DEVICE_ONLY)),
        _throughput(sides),
        *peak_metrics(key for of_side in peaks for key in of_side),
    ]
    rows = [_make_row(metric, numbers, found) for metric in metrics]
    values = {row.metric: row.values for row in rows}
    idle = {name for name in (REST_NS, EARLIER_NS, SLOW_STEPS) if not any(values[name])}
    # what says the same as the step is no row of its own
    idle |= {name for name in ("mean_step_ns", "marker_ns", UNPROFILED_STEP) if values[name] == values[STEP_NS]}
    known = [row for row in rows if row.values != (None, None) and row.metric not in idle]
    table = match.make_table(_Row, known)
    before, after = table[BASELINE_VALUE], table[CANDIDATE_VALUE]
    is_remainder = np.isin(table[METRIC], (REST_NS, EARLIER_NS))
    diff = np.where(is_remainder, np.nan, match.relative_change(before, after))
    return match.finish_table("overall", table.having(delta=after - before, diff=diff))


def step_numbers(side: LoadedSide) -> dict[str, float]:
    """Return each number of the breakdown, by its name; peaks: the largest of a run.

    Each is of the ranks that report it.

    `step_ns` is the step (without markers the span of the capture), `whole_ns` what its parts add up to, `rest_ns` what
    the medians of the parts lack to sum to it. Keys are left out where the source does not say.
    """
    found = {name: _over_runs(values) for name, values in run_numbers(side).items()}
    if found.get(WHOLE_NS) and IDLE_NS in found:
        found[IDLE_SHARE] = found[IDLE_NS] / found[WHOLE_NS]
    if SLOW_STEPS in found:  # no time: a run without any counts
        found[SLOW_STEPS] = fmean(run_numbers(side)[SLOW_STEPS])
    if {WHOLE_NS, COMPUTE_NS, IDLE_NS} <= found.keys():
        rest = fsum([found[WHOLE_NS], *(-found[name] for name in PARTS_OF_STEP if name in found)])
        found[REST_NS] = rest if abs(rest) > ROUNDING * found[WHOLE_NS] else 0.0
    return found


def with_one_step(
    sides: Sequence[LoadedSide], before: dict[str, float], after: dict[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the numbers of two sides; where one has a log alone and the other one a trace beside its log, the step of
    both is that of their logs: a step under a profiler is no measure of one without it.
    """
    traced = [has_trace(side) for side in sides]
    if UNPROFILED_STEP not in before or UNPROFILED_STEP not in after or all(traced) or not any(traced):
        return before, after
    without = ("mean_step_ns", "slow_steps", "e2e_ns")
    kept = [{name: number for name, number in own.items() if name not in without} for own in (before, after)]
    return kept[0] | {STEP_NS: kept[0][UNPROFILED_STEP]}, kept[1] | {STEP_NS: kept[1][UNPROFILED_STEP]}


def numbers_of_rows(baseline: LoadedSide, rows_of: LoadedSide | None) -> dict[str, float]:
    """Return `step_numbers` of a baseline, each number of the runs that its own verdict rests on.

    `rows_of`: as in `compare_overall`. `earlier_ns`: by how much the parts of the step were longer in the runs of the
    step than in their own, so that parts, rest and `earlier_ns` sum up to the step; less than 0.1 % of the step is a
    part of the rest.
    """
    found = step_numbers(baseline)
    if rows_of is None or rows_of.own_runs is None:
        return found
    numbers = {**found, **{name: _over_runs(own) for name, own in _own_numbers(rows_of).items() if name in found}}
    if numbers.get(WHOLE_NS) and IDLE_NS in numbers:
        numbers[IDLE_SHARE] = numbers[IDLE_NS] / numbers[WHOLE_NS]
    earlier = fsum(found[name] - numbers[name] for name in PARTS_OF_STEP if name in found)
    if abs(earlier) > LEAST_EARLIER * found.get(WHOLE_NS, 0.0):
        numbers[EARLIER_NS] = earlier
    elif REST_NS in numbers:
        numbers[REST_NS] += earlier
    return numbers


def _over_runs(values: Sequence[float]) -> float:
    return float(over_runs(np.array([values]))[0])


def _own_numbers(side: LoadedSide) -> dict[str, list[float]]:
    """Return the numbers that runs of their own are compared for, of each of these runs; without slow steps, whose
    number is no series.
    """
    assert side.own_runs is not None
    found = {}
    for name, values in side.remember("numbers by run", lambda: _numbers_by_run(side)).items():
        own = side.own_runs.of_number(name)
        if own is None:
            continue
        is_own = np.isin(side.run_ids, sorted(own)) & ~np.isnan(values)
        if is_own.any():
            found[name] = values[is_own].tolist()
    return found


def run_numbers(side: LoadedSide) -> dict[str, list[float]]:
    """Return the same for each run by itself, of the runs that report it."""

    def known() -> dict[str, list[float]]:
        every = {name: values[~np.isnan(values)].tolist() for name, values in _numbers_by_run(side).items()}
        return {name: values for name, values in every.items() if values}

    return side.remember("run numbers", known)


class OddRun(Struct, frozen=True):
    """A run of a side that stands alone and counts in no number: `change`: its step against the `others`, a ratio."""

    run_id: int
    change: float
    others: int


def find_odd_run(side: LoadedSide, metric: str) -> OddRun | None:
    """Return the run that stands alone by a number of a side, which leaves it out; None for none."""
    numbers = _numbers_by_run(side).get(metric)
    if numbers is None:
        return None
    values = np.where(numbers > 0, numbers, np.nan)
    odd = find_odd_runs(np.log(values)[None, :])[0]
    if not odd.any():
        return None
    (place,) = np.flatnonzero(odd).tolist()
    usual = float(over_runs(values[None, ~odd])[0])
    return OddRun(side.run_ids[place], float(values[place]) / usual - 1.0, int((~np.isnan(values[~odd])).sum()))


def overall_of_runs(baseline: LoadedSide, candidate: LoadedSide, rows_of: LoadedSide | None = None) -> dict[str, Runs]:
    """Return the numbers of single runs, of the metrics that both sides have. `rows_of`: as in `compare_overall`."""
    before, after = run_numbers(baseline), run_numbers(candidate)
    if rows_of is not None and rows_of.own_runs is not None:
        own = _own_numbers(rows_of)
        before = {name: own.get(name, values) for name, values in before.items()}
    other_units = has_other_units(baseline, candidate)
    shared = [name for name in before if name in after and not (other_units and name == SAMPLES_PER_SECOND)]
    return {name: (tuple(before[name]), tuple(after[name])) for name in shared}


def names_of_throughput(side: LoadedSide) -> set[str]:
    """Return what the captures of a side count as throughput, with its scope where they say it: `tokens/s per rank`."""
    names = set()
    for text in set(side.captures.listed(SETTINGS)):
        settings = queries.settings_of(text)
        unit = settings.get("throughput_unit")
        if unit:
            names.add(name_throughput(unit, settings.get("throughput_scope", "")))
    return names


def has_other_units(baseline: LoadedSide, candidate: LoadedSide) -> bool:
    """Return whether the two sides count their throughput in other things: images of one are no tokens of the other,
    and what a rank makes is not what the job makes.
    """
    before, after = names_of_throughput(baseline), names_of_throughput(candidate)
    return before != after and bool(before) and bool(after)


def _throughput(sides: Sequence[LoadedSide]) -> Metric:
    """Return the metric of the throughput, by its name where all sides state the same one: what one side does not say
    is not known to be what the other one counts.
    """
    stated = [names_of_throughput(side) for side in sides]
    name = name_throughput("", "")
    if len(stated[0]) == 1 and all(names == stated[0] for names in stated):
        (name,) = stated[0]
    return Metric("samples_per_second", name, unit="count")


def _numbers_by_run(side: LoadedSide) -> dict[str, F64]:
    """Return each number of each run, in the order of `side.run_ids`; nan where a run does not report it."""
    others = (RUN_ID, RANK, STEP, START_NS, TIMELINE, STEPS, KIND, *_PEAKS)
    names = [name for name in side.steps.arrays if name not in others]
    numbers = match.reduce_steps(side, names)
    steps = measure_steps_of_runs(side)
    numbers |= {"step_ns": numbers.pop(DURATION_NS), "mean_step_ns": steps.mean_ns, "slow_steps": steps.slow_steps}
    rates = numbers[SAMPLES_PER_SECOND]
    numbers[SAMPLES_PER_SECOND] = np.where(np.isnan(rates), _rates_of_captures(side), rates)
    numbers |= _peaks(side)
    if side.chosen_steps is None and side.ranks is None:
        log_alone = np.array(_log_alone(side), dtype=bool)
        if not log_alone.all():
            # steps under a profiler and without one have no mean
            numbers = {name: np.where(log_alone, np.nan, values) for name, values in numbers.items()}
        numbers[UNPROFILED_STEP] = _steps_without_profiler(side)
    if side.chosen_steps is None and not side.step_kind:
        outside = kernel_time_outside_steps(side)
        numbers[OUTSIDE_STEPS_KERNEL_TOTAL_NS] = np.array([outside.get(run_id, np.nan) for run_id in side.run_ids])
    return numbers


def _ways_of_steps(side: LoadedSide) -> dict[int, dict[str, float]]:
    """Return the step of each run by each of series.WAYS in which it was measured, in ns; of logs there are no rows."""
    step = key_of_run("step")
    found: dict[int, dict[str, float]] = {run_id: {} for run_id in side.run_ids}
    columns = ("run_id", "name", "part", "step_kind", "per_step")
    for run_id, name, part, step_kind, per_step in side.query_with(queries.run_level).rows(*columns):
        if name in (step.name, key_of_run("e2e").name) and not step_kind:
            of_run = found[run_id]
            of_run[part] = per_step if name == step.name else of_run.get(part, per_step)
    return found


def _log_alone(side: LoadedSide) -> list[bool]:
    """Return of each run whether a log without a profiler is all that it is known by."""
    ways = _ways_of_steps(side)
    return [set(ways[run_id]) == {UNPROFILED} for run_id in side.run_ids]


def has_trace(side: LoadedSide) -> bool:
    """Return whether some run of a side is known by more than a log without a profiler."""
    return not all(_log_alone(side))


def _steps_without_profiler(side: LoadedSide) -> F64:
    """Return the step of each run by a log that was made without a profiler; nan: none."""
    ways = _ways_of_steps(side)
    return np.array([ways[run_id].get(UNPROFILED, np.nan) for run_id in side.run_ids])


def _rates_of_captures(side: LoadedSide) -> F64:
    """Samples per second of each run, as its captures state it, not of chosen steps."""
    found = np.full(len(side.run_ids), np.nan)
    for at, run_id in enumerate(side.run_ids if side.chosen_steps is None else ()):
        own = side.captures.taken(side.captures.integers(RUN_ID) == run_id)
        (found[at],) = over_ranks(own.reals(SAMPLES_PER_SECOND)[None, :], own.integers(STAGE))
    return found


def _peaks(side: LoadedSide) -> dict[str, F64]:
    """Return the largest memory of the ranks of each run, nan for unknown."""
    table = side.captures if side.chosen_steps is None else side.steps
    place = {run_id: at for at, run_id in enumerate(side.run_ids)}
    run = np.array([place[run_id] for run_id in table.listed(RUN_ID)], dtype=np.int64)
    found = {name: np.full(len(side.run_ids), np.nan) for name in _PEAKS}
    for name, values in found.items():
        np.fmax.at(values, run, table.reals(name))
    return found


class _Row(Struct, frozen=True):
    """An `OverallRow` without its change."""

    metric: str
    title: str
    level: int
    unit: str
    baseline_value: float | None
    candidate_value: float | None
    baseline_share: float | None
    candidate_share: float | None
    baseline_calls: float | None
    candidate_calls: float | None

    @property
    def values(self) -> tuple[float | None, float | None]:
        """Its number on both sides."""
        return self.baseline_value, self.candidate_value


def _make_row(metric: Metric, numbers: Sequence[Mapping[str, float]], found: Sequence[Sums]) -> _Row:
    """Return the row of a metric. `numbers`: those of the steps of each side; `found`: what other tables sum up to."""
    values, shares, calls = [], [], []
    for of_steps, summed in zip(numbers, found, strict=True):
        of_row = summed.get(metric.name, _NOTHING)
        value, whole = of_steps.get(metric.name, of_row.ns), of_steps.get(WHOLE_NS)
        values.append(value)
        shares.append(value / whole if metric.in_step and value is not None and whole else None)
        calls.append(of_row.calls)
    return _Row(metric.name, metric.title, metric.level, metric.unit, *values, *shares, *calls)
