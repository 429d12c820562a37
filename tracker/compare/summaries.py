"""Sums, shares and spreads of the tables of one run, so that no reader has to add up rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

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
from tracker.table import AddUp, add_up_rows, is_among, number_distinct_rows, sort_largest_first
from tracker.units import NS_PER_US

if TYPE_CHECKING:
    from tracker.columns import F64

PARTS: Final = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")
"""What the time of a rank or a step consists of."""
_METRICS: Final = tuple(name for name in Breakdown.__struct_fields__ if name != "timeline")
_KERNEL: Final = ("name", "canonical_name", "type", "core_type", "input_shapes")
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
    sums = overall.reals("whole_ns")
    whole = np.where(sums != 0, sums, np.nan)
    return overall.having(**{name.replace("_ns", "_share"): overall.reals(name) / whole for name in PARTS})


def of_ranks(overall: Columns) -> Columns:
    """Return `rank_summary`: how the numbers of the whole capture differ between ranks, and the share of each part in
    what the parts of all ranks add up to.
    """
    whole = overall.reals("whole_ns")
    rows = []
    for metric in (name for name in _METRICS if name in overall):
        numbers = overall.reals(metric)
        row = _spread(metric, numbers, np.ones(len(numbers)), overall)
        both = ~np.isnan(numbers) & (whole > 0)
        if row and metric in PARTS and both.any():
            row["share"] = float(numbers[both].sum() / whole[both].sum())
        rows += [row] if row else []
    return _table("rank_summary", rows)


def of_steps(steps: Columns) -> Columns:
    """Return `step_summary`: how steps differ.

    Of rows that are means of several steps only the mean is known, and of the duration the extremes that the source
    names.
    """
    weights = steps.reals("steps")
    are_means = bool((weights > 1).any())
    rows = []
    for metric in (name for name in _METRICS if name in steps):
        row = _spread(metric, steps.reals(metric), weights, steps)
        if row and are_means:
            row |= dict.fromkeys(("minimum", "median", "maximum", "maximum_rank", "maximum_step"))
            if metric == "duration_ns":
                ends = steps.reals("shortest_ns"), steps.reals("longest_ns")
                row["minimum"], row["maximum"] = (_extreme(*pair) for pair in zip((np.min, np.max), ends, strict=True))
        rows += [row] if row else []
    return _table("step_summary", rows)


def _extreme(how: Callable[[F64], Any], numbers: F64) -> float | None:
    return None if not len(numbers) or np.isnan(numbers).any() else float(how(numbers))


def _spread(metric: str, numbers: F64, weights: F64, table: Columns) -> dict[str, Any]:
    """Return a row of a summary; none where no row of `table` states the metric."""
    there = ~np.isnan(numbers)
    if not there.any():
        return {}
    largest = int(np.nanargmax(numbers))
    unit = "ns" if metric.endswith("_ns") else "bytes" if metric.endswith("_bytes") else "count"
    row = {
        "metric": metric, "unit": unit, "rows": int(there.sum()),
        "minimum": float(np.nanmin(numbers)), "median": float(median(numbers[there])),
        "mean": float(np.average(numbers[there], weights=weights[there])), "maximum": float(numbers[largest]),
        "maximum_rank": table.listed("rank")[largest],
    }  # fmt: skip
    return row | ({"maximum_step": table.listed("step")[largest]} if "step" in table else {})


def _table(name: str, rows: Sequence[Mapping[str, Any]], grains: Sequence[str] = ()) -> Columns:
    return Columns.of_rows(rows, [*grains, *SHOWN_COLUMNS[name]])


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
    ratio = links.reals("large_packet_ratio")
    size = links.reals("bytes")
    large = links.having(_large=ratio * size, _stated=np.where(np.isnan(ratio), np.nan, size))
    parts = []
    for level, key in _LINKS.items():
        own = large.taken(large["level"] == level)
        numbers: dict[str, AddUp] = {"packets": "sum", "bytes": "sum", "transit_ns": "sum"}
        numbers |= {"_large": "known", "_stated": "known"}
        sums = sort_largest_first(add_up_rows(own, [*grains, "level", *key], numbers), ["transit_ns"], [*grains, *key])
        missing = {
            name: _missing(links[name], len(sums))
            for name in ("transport", "group_role", "group_size", "source_rank", "target_rank", "packet_bytes")
            if name not in key
        }
        parts.append(sums.having(**missing))
    names = [*grains, *SHOWN_COLUMNS["link_totals"]]
    whole = Columns.stacked([part.only([*parts[0].arrays]) for part in parts])
    transit, stated = whole.reals("transit_ns"), whole.reals("_stated")
    return whole.having(
        bandwidth_gb_per_s=whole.reals("bytes") / np.where(transit > 0, transit, np.nan),
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
    own = counters.taken(~is_among(counters["source"], REPEATED_COUNTERS))
    grains = grains_of(own)
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    key = [*grains, "source", "attribute"]
    for at, row in zip(own.rows(*key), own.rows("name", "mean", "min", "max"), strict=True):
        groups.setdefault(at, []).append(row)
    rows = []
    for at, things in groups.items():
        low = min((least for _, _, least, _ in things if least is not None), default=None)
        name, mean, _, high = min(things, key=lambda row: (row[3] is None, -(row[3] or 0.0), row[0]))
        if low or high:
            numbers = {"names": len(things), "mean": mean if len(things) == 1 else None, "min": low, "max": high}
            rows.append({**dict(zip(key, at, strict=True)), **numbers, "max_name": name})
    return _table("counter_summary", rows, grains)


def of_metrics(metrics: Columns) -> Columns:
    """Return `kernel_pipes`: for each kernel the time of its core and the pipes that worked longest, the largest ratios
    where no time of a pipe was measured; a row without a metric where neither was.
    """
    grains = grains_of(metrics)
    key = [*grains, *_KERNEL]
    kernels: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for at, row in zip(metrics.rows(*key), metrics.rows("calls", "kind", "metric", "mean"), strict=True):
        kernels.setdefault(at, []).append(row)
    rows = []
    for at, measured in kernels.items():
        core = max((mean for _, kind, _, mean in measured if kind == CORE_TIME and mean), default=None)
        core_ns = None if core is None else core * NS_PER_US
        kernel = {**dict(zip(key, at, strict=True)), "calls": measured[0][0], "core_time_ns": core_ns}
        busy: list[tuple[Any, ...]] = list(_busy(measured)) or [(None, None, None)]
        rows += [
            {**kernel, "place": place, "kind": kind, "metric": metric, "mean": mean}
            for place, (kind, metric, mean) in enumerate(busy, 1)
        ]
    return _table("kernel_pipes", rows, grains)


def _busy(measured: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, str, float]]:
    for wanted in (PIPE_TIME, RATIO):
        found = [(kind, metric, mean) for _, kind, metric, mean in measured if kind == wanted and mean]
        if found:
            yield from sorted(found, key=lambda row: (-row[2], row[1]))[:_BUSIEST]
            return
