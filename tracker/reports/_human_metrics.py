"""Tables for people of what profilers measure beside times: kernel metrics, links, counters; of a run and of a diff."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import pandas as pd

from tracker.reports._human import (
    NAME,
    UNDER,
    WORDS,
    Column,
    Row,
    Table,
    group_words,
    make,
    number,
    pair,
    readable,
    share,
    tone,
    top,
    values,
)
from tracker.reports._shared import records
from tracker.results import BOTH, CORE_TIME, PIPE_TIME, RATIO, REPEATED_COUNTERS, Diff, Shown
from tracker.units import MISSING_TEXT, NS_PER_US, format_bytes, format_diff, format_ns, size_unit

_GRAIN: Final = ("rank", "step")
_KERNEL: Final = ("name", "canonical_name", "type", "core_type", "input_shapes")
_BUSIEST: Final = 3
_ENDS: Final = ("source_rank", "target_rank")


def figure(value: float | None) -> str:
    """A measurement in its own unit, with four digits that count.

    >>> figure(0.06691), figure(10868.0), figure(1800.25), figure(1e-5), figure(None)
    ('0.06691', '10,868', '1,800', '1e-05', '-')
    """
    if value is None:
        return MISSING_TEXT
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def _grain_columns(frame: pd.DataFrame) -> list[Column]:
    return [Column(name) for name in _GRAIN if name in frame.columns]


def _grain_cells(row: Row) -> list[str]:
    return [number(row[name]) for name in _GRAIN if name in row]


def busiest(shown: Shown, limit: int | None) -> Table:
    """For the kernels with most time, what their calls were busy with: the pipes that worked longest."""
    grain = [name for name in _GRAIN if name in shown.kernel_metrics]
    kernels = [(key, records(rows)) for key, rows in shown.kernel_metrics.groupby([*grain, *_KERNEL], sort=False)]
    listed = kernels if limit is None else kernels[:limit]
    columns = [*_grain_columns(shown.kernel_metrics), Column("kernel", **NAME), Column("input shapes", **UNDER)]
    columns += [Column("calls"), Column("core time")]
    rows, below = [], []
    for _, metrics in listed:
        first = metrics[0]
        core = max((time for row in metrics if row["kind"] == CORE_TIME and (time := row["mean"])), default=None)
        name = readable(first["canonical_name"] or first["name"])
        line = [name, first["input_shapes"] or "", number(first["calls"]), MISSING_TEXT if core is None else _us(core)]
        rows.append(("", [*_grain_cells(first), *line]))
        below.append(", ".join(_busy(metrics)))
    table = make("Kernel metrics, means of a call", columns, rows, more=len(kernels) - len(listed))
    return replace(table, below=tuple(below))


def _busy(metrics: Sequence[Row]) -> Iterator[str]:
    """The longest times of pipes; where none were measured, the largest ratios."""
    for kind, form in ((PIPE_TIME, _us), (RATIO, figure)):
        known = [row for row in metrics if row["kind"] == kind and row["mean"]]
        known.sort(key=lambda row: (-row["mean"], row["metric"]))
        for row in known[:_BUSIEST]:
            yield f"{row['metric'].partition('(')[0].removesuffix('_time')} {form(row['mean'])}"
        if known:
            return


def _us(value: float) -> str:
    return format_ns(value * NS_PER_US)


def metrics(shown: Shown, limit: int | None) -> Table:
    """All metrics of the kernels with most time."""
    rows, more = top(shown.kernel_metrics, limit)
    columns = [*_grain_columns(shown.kernel_metrics), Column("kernel", **NAME), Column("input shapes", **UNDER)]
    columns += [Column("metric", **NAME), *(Column(name) for name in ("calls", "mean", "minimum", "maximum"))]
    cells = []
    for row in rows:
        line = [readable(row["canonical_name"] or row["name"]), row["input_shapes"] or "", row["metric"]]
        line += [number(row["calls"]), *(figure(row[name]) for name in ("mean", "min", "max"))]
        cells.append(("", [*_grain_cells(row), *line]))
    return make("Kernel metrics", columns, cells, more=more)


def links(shown: Shown, limit: int | None) -> Table:
    """A line per transport and group: what all links together moved, how fast, in how large packets."""
    frame = shown.communication_links
    whole = frame[frame["source_rank"].isna() & frame["packet_bytes"].isna()]
    groups = _summed(whole, ["transport", "group_role", "group_size"])
    listed = groups if limit is None else groups[:limit]
    columns = [*_grain_columns(whole), Column("transport", left=True), Column("group", **WORDS), *_LINK_NUMBERS]
    rows = [("", [*_grain_cells(row), row["transport"], _group(row), *_link_numbers(row)]) for row in listed]
    return make("Communication links", columns, rows, more=len(groups) - len(listed))


_LINK_NUMBERS: Final = (Column("bytes"), Column("transit"), Column("GB/s"), Column("large packets"))


def _link_numbers(row: Row) -> list[str]:
    size, transit = row["bytes"], row["transit_ns"]
    speed = size / transit if size is not None and transit else None
    return [format_bytes(size), format_ns(transit), _speed(speed), share(row["large_packet_ratio"])]


def _speed(value: float | None) -> str:
    return MISSING_TEXT if value is None else f"{value:,.2f}"


def _group(row: Row) -> str:
    return group_words({"data_type": "", "size_class_bytes": None, **row})


def _summed(frame: pd.DataFrame, key: list[str]) -> list[Row]:
    """Sums of `frame` per `key` (within the grain), the largest transit first; large packets weighted by bytes."""
    key = [*(name for name in _GRAIN if name in frame.columns), *key]
    told = frame["bytes"].where(frame["large_packet_ratio"].notna()).astype("Float64")
    frame = frame.assign(_large=frame["large_packet_ratio"] * told, _told=told)
    sums = frame.groupby(key, dropna=False, sort=False)[["bytes", "transit_ns", "_large", "_told"]].sum(min_count=1)
    sums["large_packet_ratio"] = sums["_large"] / sums["_told"].where(sums["_told"] > 0)
    order = sums.reset_index().sort_values(["transit_ns", *key], ascending=[False, *[True] * len(key)], kind="stable")
    return records(order)


def link_matrix(shown: Shown, limit: int | None) -> Table:
    """From which rank to which: bytes and bandwidth of every single link."""
    frame = shown.communication_links
    rows = _summed(frame[frame["source_rank"].notna()], ["source_rank", "target_rank", "transport"])
    listed = rows if limit is None else rows[:limit]
    columns = [*_grain_columns(frame), Column("from rank"), Column("to rank"), Column("transport", left=True)]
    cells = []
    for row in listed:
        ends = [*_grain_cells(row), *(number(row[name]) for name in _ENDS), row["transport"]]
        cells.append(("", [*ends, *_link_numbers(row)[:3]]))
    return make("Links between ranks", [*columns, *_LINK_NUMBERS[:3]], cells, more=len(rows) - len(listed))


def packets(shown: Shown, limit: int | None) -> Table:
    """How large the packets were that each transport carried."""
    frame = shown.communication_links
    counted_packets = frame[frame["packet_bytes"].notna()]
    grain = [name for name in _GRAIN if name in frame.columns]
    key = [*grain, "transport", "packet_bytes"]
    sums = counted_packets.groupby(key, sort=False)[["packets", "bytes", "transit_ns"]].sum(min_count=1).reset_index()
    rows, more = top(sums.sort_values(["bytes", *key], ascending=[False, *[True] * len(key)]), limit)
    columns = [*_grain_columns(frame), Column("transport", left=True), Column("packet size"), Column("packets")]
    cells = []
    for row in rows:
        line = [row["transport"], format_bytes(row["packet_bytes"]), number(row["packets"])]
        cells.append(("", [*_grain_cells(row), *line, *_link_numbers({**row, "large_packet_ratio": None})[:3]]))
    return make("Packets", [*columns, *_LINK_NUMBERS[:3]], cells, more=more)


def counter_overview(shown: Shown, limit: int | None) -> Table:
    """A line per table and measurement of the profiler: over how many things, the mean, and where it is largest."""
    frame = shown.counters
    columns = [*_grain_columns(frame), Column("source", left=True), Column("measurement", **NAME), Column("of")]
    columns += [Column("mean"), Column("smallest"), Column("largest"), Column("largest of", **NAME)]
    key = [*(name for name in _GRAIN if name in frame.columns), "source", "attribute"]
    rows = []
    repeated = sorted(set(frame["source"]) & set(REPEATED_COUNTERS))
    for _, group in frame[~frame["source"].isin(repeated)].groupby(key, sort=False):
        largest = records(group.sort_values(["max", "name"], ascending=[False, True]).head(1))[0]
        if not largest["max"] and not group["min"].min():
            continue  # nothing but zeros
        mean = (group["mean"] * group["calls"]).sum() / group["calls"].sum()
        line = [largest["source"], largest["attribute"], number(len(group)), figure(float(mean))]
        line += [figure(float(group["min"].min())), figure(largest["max"]), readable(largest["name"])]
        rows.append(("", [*_grain_cells(largest), *line]))
    listed = rows if limit is None else rows[:limit]
    beside = f" Other sections are made of {', '.join(repeated)}." if repeated else ""
    note = f"All {number(len(frame))} numbers: --only counter.{beside}" if len(frame) else ""
    return make("Counters of the profiler", columns, listed, more=len(rows) - len(listed), note=note)


def counters(shown: Shown, limit: int | None) -> Table:
    """Every number of the profiler's own tables."""
    rows, more = top(shown.counters, limit)
    columns = [*_grain_columns(shown.counters), Column("source", left=True), Column("name", **NAME)]
    columns += [Column("measurement", **NAME), *(Column(name) for name in ("values", "mean", "minimum", "maximum"))]
    cells = []
    for row in rows:
        line = [row["source"], readable(row["name"]), row["attribute"], number(row["calls"])]
        cells.append(("", [*_grain_cells(row), *line, *(figure(row[name]) for name in ("mean", "min", "max"))]))
    return make("Counters of the profiler", columns, cells, more=more)


def diff_metrics(diff: Diff, limit: int | None) -> Table:
    """Kernel metrics of both sides, those of the kernel that changed most first."""
    rows, more = top(diff.kernel_metrics, limit)
    columns = [Column("kernel", **NAME), Column("input shapes", **UNDER), Column("metric", **NAME)]
    columns += [Column(name) for name in ("baseline", "candidate", "DIFF", "of the change", "moved")]
    cells = []
    for row in rows:
        line = [readable(row["name"]), row["input_shapes"] or "", row["metric"]]
        line += [figure(row["baseline_mean"]), figure(row["candidate_mean"]), format_diff(row["diff"])]
        moved = {True: "yes", False: "no"}.get(row["moved"], MISSING_TEXT)
        cells.append((tone(row, row["delta"]) if row["moved"] else "", [*line, share(row["share"]), moved]))
    return make("Kernel metrics, means of a call", columns, cells, more=more)


def diff_links(diff: Diff, limit: int | None) -> Table:
    """A line per collective and transport: what all links together moved on both sides, and how fast."""
    frame = diff.communication_links
    rows, more = top(frame[frame["source_rank"].isna()], limit)
    columns = [Column("communication", **NAME), Column("group", **UNDER), Column("transport", left=True)]
    columns += [Column("bytes", drop=2), *(Column(name) for name in _COMPARED), Column("large packets", drop=1)]
    cells = []
    for row in rows:
        line = [readable(row["kind"]), _group(row), row["transport"], _sizes(row)]
        packets = pair(*(share(row[f"{side}_large_packet_ratio"]) for side in ("baseline", "candidate")))
        cells.append((tone(row, row["delta_ns"]), [*line, *_transit(row), _speeds(row), packets]))
    return make("Links by change of transit time", columns, cells, more=more)


def diff_link_matrix(diff: Diff, limit: int | None) -> Table:
    """From which rank to which, for each collective: transit time and bandwidth of every single link."""
    frame = diff.communication_links
    rows, more = top(frame[frame["source_rank"].notna()], limit)
    columns = [Column("communication", **NAME), Column("group", **UNDER), Column("transport", left=True)]
    columns += [Column("from rank"), Column("to rank"), *(Column(name) for name in _COMPARED)]
    cells = []
    for row in rows:
        line = [readable(row["kind"]), _group(row), row["transport"], *(number(row[name]) for name in _ENDS)]
        cells.append((tone(row, row["delta_ns"]), [*line, *_transit(row), _speeds(row)]))
    return make("Links between ranks by change of transit time", columns, cells, more=more)


_COMPARED: Final = ("baseline", "candidate", "change", "DIFF", "GB/s")


def _transit(row: Row) -> list[str]:
    cells = values("ns", row["baseline_transit_ns"], row["candidate_transit_ns"], row["delta_ns"])
    return [*cells, row["status"] if row["status"] != BOTH else format_diff(row["diff"])]


def _speeds(row: Row) -> str:
    return pair(*(_speed(row[f"{side}_bandwidth_gb_per_s"]) for side in ("baseline", "candidate")))


def _sizes(row: Row) -> str:
    before, after = row["baseline_bytes"], row["candidate_bytes"]
    unit = size_unit(before, after)
    return pair(format_bytes(before, unit), format_bytes(after, unit))


def diff_counters(diff: Diff, limit: int | None) -> Table:
    """What both profilers counted, by relative change."""
    rows, more = top(diff.counters, limit)
    columns = [Column("source", left=True), Column("name", **NAME), Column("measurement", **NAME)]
    columns += [Column(name) for name in ("baseline", "candidate", "DIFF")]
    cells = []
    for row in rows:
        line = [row["source"], readable(row["name"]), row["attribute"]]
        line += [figure(row["baseline_mean"]), figure(row["candidate_mean"]), format_diff(row["diff"])]
        cells.append(("", line))
    return make("Counters of the profilers, by relative change", columns, cells, more=more)
