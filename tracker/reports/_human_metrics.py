"""Tables for people of what profilers measure beside times: kernel metrics, links, counters; of a run and of a diff."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from tracker.lazy import pd
from tracker.reports._human import (
    NAME,
    UNDER,
    Column,
    Row,
    Table,
    make,
    number,
    readable,
    share,
    tone,
    top,
)
from tracker.reports.shared import records
from tracker.results import CORE_TIME, PIPE_TIME, RATIO, REPEATED_COUNTERS, Diff, Shown
from tracker.units import MISSING_TEXT, NS_PER_US, format_diff, format_ns

_GRAIN: Final = ("rank", "step")
_KERNEL: Final = ("name", "canonical_name", "type", "core_type", "input_shapes")
_BUSIEST: Final = 3


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


def _zeros_last(frame: pd.DataFrame, part: pd.Series) -> pd.DataFrame:
    """`frame` in its order, but for rows of zeros: these come last in each `part` (a number per row)."""
    is_zero = (frame["mean"] == 0) & (frame["max"].fillna(0) == 0) & (frame["min"].fillna(0) == 0)
    place = pd.DataFrame({"part": part, "zero": is_zero.astype(bool)}).sort_values(["part", "zero"], kind="stable")
    return frame.loc[place.index]


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
    """All metrics of the kernels with most time; of each kernel those that are nothing but zeros last."""
    grain = [name for name in _GRAIN if name in shown.kernel_metrics]
    kernel = shown.kernel_metrics.groupby([*grain, *_KERNEL], sort=False, dropna=False).ngroup()
    rows, more = top(_zeros_last(shown.kernel_metrics, kernel), limit)
    columns = [*_grain_columns(shown.kernel_metrics), Column("kernel", **NAME), Column("input shapes", **UNDER)]
    columns += [Column("metric", **NAME), *(Column(name) for name in ("calls", "mean", "minimum", "maximum"))]
    cells = []
    for row in rows:
        line = [readable(row["canonical_name"] or row["name"]), row["input_shapes"] or "", row["metric"]]
        line += [number(row["calls"]), *(figure(row[name]) for name in ("mean", "min", "max"))]
        cells.append(("", [*_grain_cells(row), *line]))
    return make("Kernel metrics", columns, cells, more=more)


def counter_overview(shown: Shown, limit: int | None) -> Table:
    """A line per table and measurement of the profiler: over how many things, its mean where it is of one,
    and where it is largest.
    """
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
        mean = largest["mean"] if len(group) == 1 else None  # a mean over things of several names says nothing
        line = [largest["source"], largest["attribute"], number(len(group)), figure(mean)]
        line += [figure(float(group["min"].min())), figure(largest["max"]), readable(largest["name"])]
        rows.append(("", [*_grain_cells(largest), *line]))
    listed = rows if limit is None else rows[:limit]
    beside = f" Other sections are made of {', '.join(repeated)}." if repeated else ""
    note = f"All {number(len(frame))} numbers: --only counter.{beside}" if len(frame) else ""
    return make("Counters of the profiler", columns, listed, more=len(rows) - len(listed), note=note)


def counters(shown: Shown, limit: int | None) -> Table:
    """Every number of the profiler's own tables, those that never were anything but zero last."""
    rows, more = top(_zeros_last(shown.counters, pd.Series(0, index=shown.counters.index)), limit)
    columns = [*_grain_columns(shown.counters), Column("source", left=True), Column("name", **NAME)]
    columns += [Column("measurement", **NAME), *(Column(name) for name in ("values", "mean", "minimum", "maximum"))]
    cells = []
    for row in rows:
        line = [row["source"], readable(row["name"]), row["attribute"], number(row["calls"])]
        cells.append(("", [*_grain_cells(row), *line, *(figure(row[name]) for name in ("mean", "min", "max"))]))
    return make("Counters of the profiler", columns, cells, more=more)


def diff_metrics(diff: Diff, limit: int | None) -> Table:
    """Kernel metrics of both sides, those of the kernel that changed most first."""
    rows, more = top(diff.tables["kernel_metrics"], limit)
    columns = [Column("kernel", **NAME), Column("input shapes", **UNDER), Column("metric", **NAME)]
    columns += [Column(name) for name in ("baseline", "candidate", "DIFF", "of the change", "moved")]
    cells = []
    for row in rows:
        line = [readable(row["name"]), row["input_shapes"] or "", row["metric"]]
        line += [figure(row["baseline_mean"]), figure(row["candidate_mean"]), format_diff(row["diff"])]
        moved = {True: "yes", False: "no"}.get(row["moved"], MISSING_TEXT)
        cells.append((tone(row, row["delta"]) if row["moved"] else "", [*line, share(row["share"]), moved]))
    return make("Kernel metrics, means of a call", columns, cells, more=more)


def diff_counters(diff: Diff, limit: int | None) -> Table:
    """What both profilers counted, by relative change."""
    rows, more = top(diff.tables["counters"], limit)
    columns = [Column("source", left=True), Column("name", **NAME), Column("measurement", **NAME)]
    columns += [Column(name) for name in ("baseline", "candidate", "DIFF")]
    cells = []
    for row in rows:
        line = [row["source"], readable(row["name"]), row["attribute"]]
        line += [figure(row["baseline_mean"]), figure(row["candidate_mean"]), format_diff(row["diff"])]
        cells.append(("", line))
    return make("Counters of the profilers, by relative change", columns, cells, more=more)
