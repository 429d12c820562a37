"""Sums, shares and spreads of the tables of one run, so that no reader has to add up rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import Column, Columns, objects
from tracker.profile import Breakdown, median
from tracker.results import (
    CORE_TIME,
    GRAINS,
    LINK,
    PACKET,
    PIPE_TIME,
    RATIO,
    REPEATED_COUNTERS,
    SHOWN_COLUMNS,
    TRANSPORT,
)
from tracker.results.run_summary import PARTS_OF_STEP
from tracker.results.shown_rows import CounterSummaryRow, KernelPipeRow, RankSummaryRow, StepSummaryRow
from tracker.schema.column_names import (
    BYTES,
    DURATION_NS,
    LARGE_PACKET_RATIO,
    LEVEL,
    LONGEST_NS,
    PACKETS,
    RANK,
    SHORTEST_NS,
    SOURCE,
    STEP,
    STEPS,
    TRANSIT_NS,
    WHOLE_NS,
)
from tracker.table import AddUp, add_up_rows, is_among, number_distinct_rows, sort_largest_first
from tracker.units import NS_PER_US

if TYPE_CHECKING:
    from tracker.columns import F64

_METRICS: Final = tuple(name for name in Breakdown.__struct_fields__ if name != "timeline")
_BUSIEST: Final = 3
_LINKS: Final = {
    TRANSPORT: ("transport", "group_role", "group_size"),
    LINK: ("transport", "source_rank", "target_rank"),
    PACKET: ("transport", "packet_bytes"),
}
"""Level of links -> what its totals are made by."""


def grains_of(table: Columns) -> list[str]:
    """Return the columns that say of which rank and step a row is."""
    return [name for name in GRAINS if name in table]


def with_share(table: Columns, value: str, by: Sequence[str] = ()) -> Columns:
    """Return `table` with `share`: of `value` in the sum of the rows that are equal in `by`, of all rows without;
    missing where the value is, or where the sum is 0.
    """
    if not len(table):
        return table.having(share=np.zeros(0))
    place = number_distinct_rows([table[name] for name in by])[0] if by else np.zeros(len(table), dtype=np.int64)
    numbers = table.reals(value)
    sums = np.bincount(place, np.nan_to_num(numbers))[place]
    return table.having(share=numbers / np.where(sums != 0, sums, np.nan))


def with_shares(overall: Columns) -> Columns:
    """Add the share of each part in what the parts of a rank add up to."""
    sums = overall.reals(WHOLE_NS)
    whole = np.where(sums != 0, sums, np.nan)
    return overall.having(**{name.replace("_ns", "_share"): overall.reals(name) / whole for name in PARTS_OF_STEP})


def of_ranks(overall: Columns) -> Columns:
    """Return `rank_summary`: how the numbers of the whole capture differ between ranks, and the share of each part in
    what the parts of all ranks add up to.
    """
    whole, ranks = overall.reals(WHOLE_NS), overall.listed(RANK)
    rows = []
    for metric in (name for name in _METRICS if name in overall):
        numbers = overall.reals(metric)
        spread = _measure_spread(numbers, np.ones(len(numbers)))
        if spread is None:
            continue
        share = None
        both = ~np.isnan(numbers) & (whole > 0)
        if metric in PARTS_OF_STEP and both.any():
            share = float(numbers[both].sum() / whole[both].sum())
        rows.append(
            RankSummaryRow(
                metric=metric,
                unit=_unit_of(metric),
                rows=spread.rows,
                minimum=spread.minimum,
                median=spread.median,
                mean=spread.mean,
                maximum=spread.maximum,
                maximum_rank=ranks[spread.largest],
                share=share,
            )
        )
    return Columns.of_structs(RankSummaryRow, rows)


def of_steps(steps: Columns) -> Columns:
    """Return `step_summary`: how steps differ.

    Of rows that are means of several steps only the mean is known, and of the duration the extremes that the source
    names.
    """
    weights = steps.reals(STEPS)
    are_means = bool((weights > 1).any())
    ranks, numbers_of_steps = steps.listed(RANK), steps.listed(STEP)
    rows = []
    for metric in (name for name in _METRICS if name in steps):
        spread = _measure_spread(steps.reals(metric), weights)
        if spread is None:
            continue
        row = StepSummaryRow(
            metric=metric,
            unit=_unit_of(metric),
            rows=spread.rows,
            minimum=spread.minimum,
            median=spread.median,
            mean=spread.mean,
            maximum=spread.maximum,
            maximum_rank=ranks[spread.largest],
            maximum_step=numbers_of_steps[spread.largest],
        )
        if are_means:
            row = replace(row, minimum=None, median=None, maximum=None, maximum_rank=None, maximum_step=None)
        if are_means and metric == DURATION_NS:
            shortest, longest = (
                _extreme(np.min, steps.reals(SHORTEST_NS)),
                _extreme(np.max, steps.reals(LONGEST_NS)),
            )
            row = replace(row, minimum=shortest, maximum=longest)
        rows.append(row)
    return Columns.of_structs(StepSummaryRow, rows)


def _extreme(how: Callable[[F64], Any], numbers: F64) -> float | None:
    return None if not len(numbers) or np.isnan(numbers).any() else float(how(numbers))


class _Spread(Struct, frozen=True):
    """How numbers differ. `rows`: how many are known; `largest`: the place of the largest."""

    rows: int
    minimum: float
    median: float
    mean: float
    maximum: float
    largest: int


def _measure_spread(numbers: F64, weights: F64) -> _Spread | None:
    """Return how numbers differ, None where none is known. `weights`: of the mean."""
    there = ~np.isnan(numbers)
    if not there.any():
        return None
    largest = int(np.nanargmax(numbers))
    return _Spread(
        rows=int(there.sum()),
        minimum=float(np.nanmin(numbers)),
        median=float(median(numbers[there])),
        mean=float(np.average(numbers[there], weights=weights[there])),
        maximum=float(numbers[largest]),
        largest=largest,
    )


def _unit_of(metric: str) -> str:
    if metric.endswith("_ns"):
        return "ns"
    return "bytes" if metric.endswith("_bytes") else "count"


def _list_grains(table: Columns, grains: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """Return the rank and the step of each row of a table, None where rows of several are one."""
    lacking = [None] * len(table)
    rank, step = (table.listed(name) if name in grains else lacking for name in GRAINS)
    return list(zip(rank, step, strict=True))


def _with_grains(name: str, kind: type[Struct], rows: Sequence[Struct], grains: Sequence[str]) -> Columns:
    """Return a summary with the columns of these grains alone."""
    return Columns.of_structs(kind, rows).only([*grains, *SHOWN_COLUMNS[name]])


def of_peaks(owners: Columns) -> Columns:
    """Return `memory_peak_totals`: what each component of a rank held at its peak, the largest first."""
    when = ["rank", "component", "peak_ns", "peak_step"]
    return sort_largest_first(add_up_rows(owners, when, {"bytes": "sum"}), ["bytes"], when[:2]).only(
        SHOWN_COLUMNS["memory_peak_totals"]
    )


def of_links(links: Columns) -> Columns:
    """Return `link_totals`: what all collectives together moved, per transport and group, from rank to rank, and by the
    size of the packets; within a level the longest transit first.
    """
    grains = grains_of(links)
    ratio = links.reals(LARGE_PACKET_RATIO)
    size = links.reals(BYTES)
    large = links.having(_large=ratio * size, _stated=np.where(np.isnan(ratio), np.nan, size))
    parts = []
    for level, key in _LINKS.items():
        own = large.taken(large[LEVEL] == level)
        numbers: dict[str, AddUp] = {PACKETS: "sum", BYTES: "sum", TRANSIT_NS: "sum"}
        numbers |= {"_large": "known", "_stated": "known"}
        sums = sort_largest_first(add_up_rows(own, [*grains, "level", *key], numbers), [TRANSIT_NS], [*grains, *key])
        missing = {
            name: _missing(links[name], len(sums))
            for name in ("transport", "group_role", "group_size", "source_rank", "target_rank", "packet_bytes")
            if name not in key
        }
        parts.append(sums.having(**missing))
    names = [*grains, *SHOWN_COLUMNS["link_totals"]]
    whole = Columns.stacked([part.only([*parts[0].arrays]) for part in parts])
    transit, stated = whole.reals(TRANSIT_NS), whole.reals("_stated")
    return whole.having(
        bandwidth_gb_per_s=whole.reals(BYTES) / np.where(transit > 0, transit, np.nan),
        large_packet_ratio=whole.reals("_large") / np.where(stated > 0, stated, np.nan),
    ).only(names)


def _missing(column: Any, count: int) -> Any:
    """So many missing values of the kind of `column`."""
    if isinstance(column, Column):
        return Column(np.zeros(count, column.values.dtype), np.ones(count, dtype=bool))
    return objects([None] * count) if column.dtype == object else np.full(count, np.nan)


def of_counters(counters: Columns) -> Columns:
    """Return `counter_summary`: per table and measurement of a profiler its extremes over all things that it counts,
    and of which the largest is; without what is never anything but 0, and without REPEATED_COUNTERS.
    """
    own = counters.taken(~is_among(counters[SOURCE], REPEATED_COUNTERS))
    grains = grains_of(own)
    groups: dict[tuple[int | None, int | None, str, str], list[_Counted]] = {}
    for grain, thing in zip(_list_grains(own, grains), own.structs(_Counted), strict=True):
        groups.setdefault((*grain, thing.source, thing.attribute), []).append(thing)
    rows = []
    for (rank, step, source, attribute), things in groups.items():
        low = min((thing.min for thing in things if thing.min is not None), default=None)
        largest = min(things, key=lambda thing: (thing.max is None, -(thing.max or 0.0), thing.name))
        if low or largest.max:
            rows.append(
                CounterSummaryRow(
                    rank=rank,
                    step=step,
                    source=source,
                    attribute=attribute,
                    names=len(things),
                    mean=largest.mean if len(things) == 1 else None,
                    min=low,
                    max=largest.max,
                    max_name=largest.name,
                )
            )
    return _with_grains("counter_summary", CounterSummaryRow, rows, grains)


class _Counted(Struct, frozen=True):
    """What a profiler counted of one thing: a row of `counters`."""

    source: str
    attribute: str
    name: str
    mean: float | None
    min: float | None
    max: float | None


def of_metrics(metrics: Columns) -> Columns:
    """Return `kernel_pipes`: for each kernel the time of its core and the pipes that worked longest, the largest ratios
    where no time of a pipe was measured; a row without a metric where neither was.
    """
    grains = grains_of(metrics)
    kernels: dict[tuple[int | None, int | None, str, str, str, str, str], list[_Measured]] = {}
    for grain, row in zip(_list_grains(metrics, grains), metrics.structs(_Measured), strict=True):
        key = (*grain, row.name, row.canonical_name, row.type, row.core_type, row.input_shapes)
        kernels.setdefault(key, []).append(row)
    rows = []
    for (rank, step, *_), measured in kernels.items():
        core_times = [row.mean * NS_PER_US for row in measured if row.kind == CORE_TIME and row.mean]
        busy = [(row.kind, row.metric, row.mean) for row in _list_busy(measured)]
        kernel = measured[0]
        for place, (kind, metric, mean) in enumerate(busy or [(None, None, None)], 1):
            rows.append(
                KernelPipeRow(
                    rank=rank,
                    step=step,
                    name=kernel.name,
                    canonical_name=kernel.canonical_name,
                    type=kernel.type,
                    core_type=kernel.core_type,
                    input_shapes=kernel.input_shapes,
                    calls=kernel.calls,
                    core_time_ns=max(core_times, default=None),
                    place=place,
                    kind=kind,
                    metric=metric,
                    mean=mean,
                )
            )
    return _with_grains("kernel_pipes", KernelPipeRow, rows, grains)


class _Measured(Struct, frozen=True):
    """A measurement of a kernel: a row of `kernel_metrics`."""

    name: str
    canonical_name: str
    type: str
    core_type: str
    input_shapes: str
    calls: int
    kind: str
    metric: str
    mean: float | None


def _list_busy(measured: Sequence[_Measured]) -> list[_Measured]:
    """Return the pipes of a kernel that worked longest, the largest ratios where no time of a pipe was measured."""
    for wanted in (PIPE_TIME, RATIO):
        found = [row for row in measured if row.kind == wanted and row.mean]
        if found:
            found.sort(key=lambda row: (-(row.mean or 0.0), row.metric))
            return found[:_BUSIEST]
    return []
