"""The tables of one run by section, over its whole capture: the largest rows first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from tracker.lazy import pd
from tracker.profile import UNLINKED_OP
from tracker.reports.cells import cell, group_words, measured, number, per_call, readable, share
from tracker.reports.document import NAME, PLACE, UNDER, WORDS, Column, Table, table
from tracker.reports.rows import Row, has, listed, records, top
from tracker.reports.views.diff_tables import PARTS, PARTS_DROP, shapes, through
from tracker.results import CORE_TIME, PIPE_TIME, RATIO, REPEATED_COUNTERS, Shown
from tracker.units import MISSING_TEXT, NS_PER_US, counted, format_bytes, format_ns, steps_words

if TYPE_CHECKING:
    pass

GRAIN: Final = ("stage", "rank", "step")
_SPAN: Final = "E2E is the device's span: from the first start to the last end of its activity"
_RANKS_BESIDE: Final = 4  # more ranks than this are summed up as minimum, median, maximum
_BUSIEST: Final = 3
BREAKDOWN: Final = (
    ("duration_ns", "duration", "ns"),
    ("e2e_ns", "E2E", "ns"),
    ("compute_ns", "  compute", "ns"),
    ("exposed_communication_ns", "  exposed communication", "ns"),
    ("exposed_copy_ns", "  exposed copies", "ns"),
    ("idle_ns", "  idle", "ns"),
    ("communication_ns", "communication", "ns"),
    ("overlap_ns", "  overlapped by compute", "ns"),
    ("copy_ns", "copies", "ns"),
    ("kernel_total_ns", "kernel time, summed", "ns"),
    ("unlinked_kernel_total_ns", "  without a launch", "ns"),
    ("kernel_count", "kernels", "count"),
    ("data_loading_ns", "data loading", "ns"),
    ("data_loading_idle_ns", "  while the device idles", "ns"),
    ("bubble_ns", "pipeline bubble", "ns"),
    ("preparing_ns", "preparing", "ns"),
    ("samples_per_second", "samples per second", "count"),
    ("peak_allocated_bytes", "peak allocated", "bytes"),
    ("peak_reserved_bytes", "peak reserved", "bytes"),
)
_OPTIONAL: Final = ("data_loading_ns", "data_loading_idle_ns", "bubble_ns", "preparing_ns", "samples_per_second")
_DEVICE_ONLY: Final = ("kernel_total_ns", "unlinked_kernel_total_ns", "kernel_count", "copy_ns", "exposed_copy_ns")
OF_E2E: Final = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")


def _grain(row: Row) -> list[str]:
    """The cell that says of which stage, rank or step a row is; none where rows are not kept apart by these."""
    words = ", ".join(f"{name} {number(row[name])}" for name in GRAIN if name in row)
    return [words] if words else []


def _grain_columns(rows: Sequence[Row]) -> list[Column]:
    return [Column("of", left=True)] if rows and _grain(rows[0]) else []


def on_device(shown: Shown) -> bool:
    """Whether the device timeline was measured on any rank; else the host timeline stands in."""
    return "device" in listed(shown.overall, "timeline")


def self_time(shown: Shown) -> str:
    """The column that orders ops: device self time, or host self time without a device."""
    return "device_self_ns" if on_device(shown) else "host_self_ns"


def mean_share(ranks: list[Row], name: str) -> str:
    """The share of E2E over all ranks, as text; "" where a row has none."""
    known = [(row[name], row["e2e_ns"]) for row in ranks if row.get(name) is not None and row.get("e2e_ns")]
    if name not in OF_E2E or not known:
        return ""
    return share(sum(part for part, _ in known) / sum(whole for _, whole in known))


def overall(shown: Shown, limit: int | None) -> list[Table]:
    """Where the time went: a column per rank, or the spread over many ranks; then how steps differ."""
    ranks = records(shown.overall)
    beside = len(ranks) <= _RANKS_BESIDE
    heads = [f"rank {number(row.get('rank'))}" for row in ranks] if beside else ["minimum", "median", "maximum", "at"]
    columns = [Column("metric", **WORDS), *map(Column, heads), *([Column("share of E2E")] if beside else [])]
    hidden = () if on_device(shown) else _DEVICE_ONLY
    rows = []
    for name, label, unit in BREAKDOWN:
        numbers = [row.get(name) for row in ranks]
        if name in hidden or (name in _OPTIONAL and all(value is None for value in numbers)):
            continue
        own = [cell(value, unit, *numbers) for value in numbers] if beside else _spread(numbers, unit, ranks)
        rows.append(("", [label, *own, *([mean_share(ranks, name)] if beside else [])]))
    timelines = ", ".join(dict.fromkeys(str(row.get("timeline")) for row in ranks))
    what = steps_words(shown.options.steps) if shown.options.steps else "whole capture"
    note = _SPAN if on_device(shown) else ""
    title = f"Overall, {what} ({timelines} timeline, {counted(len(ranks), 'rank')})"
    return [table(title, columns, rows, note=note), _steps(shown)]


def _spread(numbers: list[Any], unit: str, rows: list[Row]) -> list[str]:
    """Minimum, median, maximum and where the maximum is."""
    known = sorted(value for value in numbers if value is not None)
    if not known:
        return [MISSING_TEXT] * 4
    middle = len(known) // 2
    median = known[middle] if len(known) % 2 else (known[middle - 1] + known[middle]) / 2
    place = rows[numbers.index(known[-1])]
    where = ", ".join(f"{name} {number(place[name])}" for name in ("rank", "step") if name in place)
    return [cell(value, unit, known[-1]) for value in (known[0], median, known[-1])] + [where]


def _steps(shown: Shown) -> Table:
    """Minimum, median and maximum over all steps and ranks. A row that is the mean of several steps knows the shortest
    and the longest of them at most.
    """
    rows = records(shown.steps)
    means = bool(rows) and all(row.get("steps", 1) > 1 for row in rows)
    columns = [Column("metric", **WORDS), Column("minimum"), Column("mean" if means else "median"), Column("maximum")]
    columns += [] if means else [Column("maximum at", left=True)]
    lines = []
    for name, label, unit in BREAKDOWN:
        numbers = [row.get(name) for row in rows]
        if name not in ("duration_ns", "e2e_ns", *OF_E2E, "samples_per_second") or not any(numbers):
            continue
        if means:
            known = [(row[name], row["steps"]) for row in rows if row.get(name) is not None]
            mean = sum(value * count for value, count in known) / sum(count for _, count in known)
            ends: list[float | None] = [None, None]
            if name == "duration_ns":
                ends = [
                    pick((value for row in rows if (value := row.get(of)) is not None), default=None)
                    for pick, of in ((min, "shortest_ns"), (max, "longest_ns"))
                ]
            own = [cell(value, unit, mean, *ends) for value in (ends[0], mean, ends[1])]
        else:
            own = _spread(numbers, unit, rows)
        lines.append(("", [label.strip(), *own]))
    several = f", means of {counted(sum(row['steps'] for row in rows), 'step')}" if means else ""
    return table(f"Steps ({counted(len(rows), 'row')} of rank and step{several})", columns, lines)


def operators(shown: Shown, limit: int | None) -> list[Table]:
    """Ops with the most time, summed over modules, phases and types; device times only where there is a device.

    `share`: of the self time of all ops. `average`, `minimum`, `maximum`: of a call, with what it calls.
    """
    found, own = summed(shown), self_time(shown)
    whole = found[own].sum()
    rows, more = top(found, limit)
    columns = [*_grain_columns(rows), Column("operator", **NAME), Column("input shapes", **UNDER)]
    columns += [Column("calls"), Column("per step")]
    names: list[str] = []
    for place in ("device", "host") if on_device(shown) else ("host",):
        columns += [Column(f"{place} self"), Column(f"{place} total", drop=3 if names else 2)]
        names += [f"{place}_self_ns", f"{place}_total_ns"]
    columns += [Column("share"), Column("average", drop=1), Column("minimum", drop=4), Column("maximum", drop=4)]
    lines = []
    for row in rows:
        times = [row[name] for name in names]
        line = [readable(row["name"]), shapes(row), number(row["calls"]), cell(row.get("per_step_ns"), "ns")]
        line += [cell(time, "ns", *times) for time in times]
        line.append(share(row[own] / whole if row[own] is not None and whole else None))
        total = {**row, "total_ns": row[own.replace("self", "total")]}
        lines.append(("", [*_grain(row), *line, *per_call(total)]))
    return [table("Operators", columns, lines, more=more)]


def summed(shown: Shown, *keys: str) -> pd.DataFrame:
    """Times and calls of ops under `keys` (default: name and shapes, within the grain), most self time first."""
    frame = shown.ops
    names = list(keys) or [*(name for name in GRAIN if name in frame.columns), "name", "input_shapes"]
    sums = ["calls", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns"]
    if not len(frame):
        return frame[[*names, *sums, "min_ns", "max_ns", "per_step_ns"]]
    # a sum of nothing but missing values is missing; where self times are, totals say which op is the largest
    grouped = frame.groupby(names, dropna=False, sort=False)
    found = grouped[sums].sum(min_count=1)
    found = found.assign(
        min_ns=grouped["min_ns"].min(), max_ns=grouped["max_ns"].max(), per_step_ns=grouped["per_step_ns"].first()
    ).reset_index()
    own = self_time(shown)
    sizes = list(dict.fromkeys((own, own.replace("self", "total"), "host_self_ns", "host_total_ns")))
    return found.sort_values([*sizes, *names], ascending=[False] * len(sizes) + [True] * len(names), kind="stable")


def kernels(shown: Shown, limit: int | None) -> list[Table]:
    """Kernels, then copies and memsets, with the most time; with shapes where rows look alike without."""
    found = []
    for title, rows, first in (
        ("Kernels", shown.kernels, "kernel"),
        ("Copies and memsets", shown.copies, "copy or memset"),
    ):
        whole = sum(row["total_ns"] or 0 for row in records(rows))
        own, more = top(rows, limit)
        names, by_shape = _told_apart(own)
        unlinked = first == "kernel" and bool(own) and set(listed(rows, "op")) == {UNLINKED_OP}
        columns = [*_grain_columns(own), Column(first, **NAME)]
        columns += [] if unlinked else [Column("launched by", **UNDER)]
        columns += [Column("input shapes", **UNDER), Column("category", left=True, drop=2), Column("calls")]
        columns += [Column("per step"), Column("total"), Column("share")]
        columns += [Column("bytes")] if first != "kernel" else []
        columns += [Column(name, drop=1) for name in ("average", "minimum", "maximum")]
        lines = []
        for row, name, shape in zip(own, names, by_shape, strict=True):
            line = [name, *([] if unlinked else [readable(row["op"])]), shape, row["category"], number(row["calls"])]
            part = row["total_ns"] / whole if row["total_ns"] is not None and whole else None
            line += [cell(row.get("per_step_ns"), "ns"), cell(row["total_ns"], "ns"), share(part)]
            line += [cell(row.get("bytes"), "bytes")] if first != "kernel" else []
            lines.append(("", [*_grain(row), *line, *per_call(row)]))
        note = "No launch of them is in the capture, so no operator stands beside them." if unlinked else ""
        found.append(table(title, columns, lines, more=more, note=note))
    return found


def _told_apart(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Name and shapes of each kernel: shapes (else those of its op) where rows would look alike, the profiler's own
    name where they still do.
    """
    names = [readable(row["canonical_name"] or row["name"]) for row in rows]
    keys = [(*_grain(row), name, row["op"]) for row, name in zip(rows, names, strict=True)]
    alike = Counter(keys)
    by_shape = [
        (row["input_shapes"] or row["op_input_shapes"] or "") if alike[key] > 1 else ""
        for row, key in zip(rows, keys, strict=True)
    ]
    still = Counter(zip(keys, by_shape, strict=True))
    for at, row in enumerate(rows):
        if still[keys[at], by_shape[at]] > 1:
            names[at] = readable(row["name"])
    return names, by_shape


def kernel_types(shown: Shown, limit: int | None) -> list[Table]:
    """Types of an NPU's kernels with the most time, and their share of the time of all types."""
    rows, more = top(shown.kernel_types, limit)
    whole = sum(value or 0 for value in listed(shown.kernel_types, "total_ns"))
    columns = [*_grain_columns(rows), Column("kernel type", **NAME), Column("core type", left=True), Column("calls")]
    columns += [Column("total"), Column("share"), *(Column(name, drop=1) for name in ("average", "minimum", "maximum"))]
    lines = []
    for row in rows:
        total = row["total_ns"]
        line = [readable(row["type"]), readable(row["core_type"]), number(row["calls"]), cell(total, "ns")]
        line.append(share(total / whole if total is not None and whole else None))
        lines.append(("", [*_grain(row), *line, *per_call(row)]))
    return [table("Kernel types", columns, lines, more=more)]


def _zeros_last(frame: pd.DataFrame, part: pd.Series) -> pd.DataFrame:
    """`frame` in its order, but for rows of zeros: these come last in each `part` (a number per row)."""
    is_zero = (frame["mean"] == 0) & (frame["max"].fillna(0) == 0) & (frame["min"].fillna(0) == 0)
    place = pd.DataFrame({"part": part, "zero": is_zero.astype(bool)}).sort_values(["part", "zero"], kind="stable")
    return frame.loc[place.index]


def metrics(shown: Shown, limit: int | None) -> list[Table]:
    """For the kernels with most time, what their calls were busy with: the pipes that worked longest; then all metrics,
    of each kernel those that are nothing but zeros last.
    """
    frame = shown.kernel_metrics
    grain = [name for name in GRAIN if name in frame.columns]
    key = [*grain, "name", "canonical_name", "type", "core_type", "input_shapes"]
    by_kernel = [records(rows) for _, rows in frame.groupby(key, sort=False)]
    listed_kernels = by_kernel if limit is None else by_kernel[:limit]
    first = [*map(Column, grain), Column("kernel", **NAME), Column("input shapes", **UNDER)]
    lines, below = [], []
    for own in listed_kernels:
        row = own[0]
        core = max((time for one in own if one["kind"] == CORE_TIME and (time := one["mean"])), default=None)
        line = [readable(row["canonical_name"] or row["name"]), shapes(row), number(row["calls"])]
        line.append(MISSING_TEXT if core is None else format_ns(core * NS_PER_US))
        lines.append(("", [*(number(row[name]) for name in grain), *line]))
        below.append(", ".join(_busy(own)))
    busiest = table("Kernel metrics, means of a call", [*first, Column("calls"), Column("core time")], lines,
                    more=len(by_kernel) - len(listed_kernels))  # fmt: skip
    part = frame.groupby(key, sort=False, dropna=False).ngroup()
    rows, more = top(_zeros_last(frame, part), limit)
    columns = [*first, Column("metric", **NAME), *map(Column, ("calls", "mean", "minimum", "maximum"))]
    lines = []
    for row in rows:
        line = [readable(row["canonical_name"] or row["name"]), shapes(row), row["metric"], number(row["calls"])]
        line += [measured(row[name]) for name in ("mean", "min", "max")]
        lines.append(("", [*(number(row[name]) for name in grain), *line]))
    return [replace(busiest, below=tuple(below)), table("Kernel metrics", columns, lines, more=more)]


def _busy(rows: Sequence[Row]) -> list[str]:
    """The longest times of pipes; where none were measured, the largest ratios."""
    for kind, text in ((PIPE_TIME, lambda value: format_ns(value * NS_PER_US)), (RATIO, measured)):
        known = sorted((row for row in rows if row["kind"] == kind and row["mean"]),
                       key=lambda row: (-row["mean"], row["metric"]))  # fmt: skip
        if known:
            return [
                f"{row['metric'].partition('(')[0].removesuffix('_time')} {text(row['mean'])}"
                for row in known[:_BUSIEST]
            ]
    return []


def communication(shown: Shown, limit: int | None) -> list[Table]:
    """Collectives with the most time; of the parts of it those that the source tells apart."""
    rows, more = top(shown.communication, limit)
    parts = [name for name in PARTS if has(shown.communication, name)]
    is_split = has(shown.communication, "split_by")
    columns = [*_grain_columns(rows), Column("communication", **NAME), Column("group", **UNDER), Column("calls")]
    columns += [Column("bytes", drop=4), Column("per step", drop=7), Column("total"), Column("exposed")]
    columns += [Column(PARTS[name], drop=PARTS_DROP[name]) for name in parts]
    columns += [Column("split by", drop=6)] * is_split
    columns += [Column(name, drop=5) for name in ("average", "minimum", "maximum")]
    lines = []
    for row in rows:
        times = [row[name] for name in ("total_ns", "exposed_ns", *parts)]
        line = [readable(row["kind"]), group_words(row), number(row["calls"]), cell(row["bytes"], "bytes")]
        line += [cell(row.get("per_step_ns"), "ns"), *(cell(time, "ns", *times) for time in times)]
        line += [row["split_by"] or MISSING_TEXT] * is_split
        lines.append(("", [*_grain(row), *line, *per_call(row)]))
    return [table("Communication", columns, lines, more=more)]


def links(shown: Shown, limit: int | None) -> list[Table]:
    """Per transport and group what all links together moved and how fast; from rank to rank; by size of packet."""
    frame = shown.communication_links
    grain = [name for name in GRAIN if name in frame.columns]
    found = []
    for title, rows, key in (
        (
            "Communication links",
            frame[frame["source_rank"].isna() & frame["packet_bytes"].isna()],
            ["transport", "group_role", "group_size"],
        ),
        ("Links between ranks", frame[frame["source_rank"].notna()], ["source_rank", "target_rank", "transport"]),
        ("Packets", frame[frame["packet_bytes"].notna()], ["transport", "packet_bytes"]),
    ):
        weight = rows["bytes"].where(rows["large_packet_ratio"].notna()).astype("Float64")
        sums = rows.assign(_large=rows["large_packet_ratio"] * weight, _weight=weight)
        names = ["bytes", "transit_ns", "packets", "_large", "_weight"]
        sums = sums.groupby([*grain, *key], dropna=False, sort=False)[names].sum(min_count=1).reset_index()
        by = "bytes" if title == "Packets" else "transit_ns"
        order = sums.sort_values([by, *grain, *key], ascending=[False, *[True] * len([*grain, *key])], kind="stable")
        own, more = top(order, limit)
        transport = Column("transport", left=True)
        heads = {
            "Communication links": [transport, Column("group", **WORDS)],
            "Links between ranks": [Column("from rank"), Column("to rank"), transport],
            "Packets": [transport, Column("packet size"), Column("packets")],
        }[title]
        columns = [*_grain_columns(own), *heads, Column("bytes"), Column("transit"), Column("GB/s")]
        columns += [Column("large packets")] if title == "Communication links" else []
        lines = []
        for row in own:
            speed = row["bytes"] / row["transit_ns"] if row["bytes"] is not None and row["transit_ns"] else None
            first = {
                "Communication links": [row["transport"], group_words({"group_role": "", "group_size": 0} | row)],
                "Links between ranks": [number(row.get(of)) for of in ("source_rank", "target_rank")]
                + [row["transport"]],
                "Packets": [row["transport"], format_bytes(row.get("packet_bytes")), number(row["packets"])],
            }[title]
            line = [*first, format_bytes(row["bytes"]), format_ns(row["transit_ns"])]
            line.append(MISSING_TEXT if speed is None else f"{speed:,.2f}")
            if title == "Communication links":
                line.append(share(row["_large"] / row["_weight"] if row["_weight"] else None))
            lines.append(("", [*_grain(row), *line]))
        found.append(table(title, columns, lines, more=more))
    return found


def memory(shown: Shown, limit: int | None) -> list[Table]:
    """Ops that allocate most."""
    rows, more = top(shown.memory, limit)
    columns = [*_grain_columns(rows), Column("operator", **NAME), Column("input shapes", **UNDER)]
    columns += [Column("allocator", **UNDER), Column("component", left=True), Column("allocations"), Column("bytes")]
    columns += [Column("unreleased"), Column("held", drop=1)]
    lines = []
    for row in rows:
        sizes = [row["bytes"], row["unreleased_bytes"]]
        line = [readable(row["op"]), shapes(row), through(row), row["component"] or MISSING_TEXT]
        line += [number(row["calls"]), *(cell(size, "bytes", *sizes) for size in sizes), cell(row["held_ns"], "ns")]
        lines.append(("", [*_grain(row), *line]))
    return [table("Memory allocated by operators", columns, lines, more=more)]


def memory_peak(shown: Shown, limit: int | None) -> list[Table]:
    """Who held the memory when it was most, of the rank with the highest peak; with a line per component."""
    every = records(shown.memory_peak)
    sizes: Counter[Any] = Counter()
    for row in every:
        sizes[row["rank"]] += row["bytes"] or 0
    rank = max(sizes, key=lambda one: (sizes[one], -(one or 0)), default=None)
    own = [row for row in every if row["rank"] == rank]
    totals: dict[str, int] = {}
    for row in own:
        totals[row["component"]] = totals.get(row["component"], 0) + (row["bytes"] or 0)
    own.sort(key=lambda row: (-totals[row["component"]], row["component"], -(row["bytes"] or 0)))
    rows = own if limit is None else own[:limit]
    several = len(totals) > 1
    columns = [Column("operator", **NAME), Column("input shapes", **UNDER), Column("module", **UNDER)]
    columns += [Column("allocator", **UNDER), *([Column("component", left=True)] if several else [])]
    columns += [Column("blocks", drop=1), Column("bytes"), Column("share"), Column("since", drop=2)]
    columns.append(Column("code", **PLACE))
    lines = []
    for row in rows:
        whole = totals[row["component"]]
        line = [readable(row["op"]), shapes(row), row["module"] or "", through(row), *[row["component"]] * several]
        part = row["bytes"] / whole if row["bytes"] is not None and whole else None
        line += [number(row["calls"]), cell(row["bytes"], "bytes"), share(part)]
        lines.append(("", [*line, _since(row["first_ns"], row["first_step"]), row["code_line"] or ""]))
    for component in totals if rows else ():
        unknown = any(row["bytes"] is None for row in own if row["component"] == component)
        line = [f"= peak of {component}", "", "", "", *[component] * several, ""]
        size = cell(None if unknown else totals[component], "bytes")
        lines.append(("sum", [*line, size, "", "", ""]))
    when = f" (rank {number(rank)}, {_since(own[0]['peak_ns'], own[0]['peak_step'])})" if own else ""
    note = f"The rank with the highest peak of {len(sizes)}." if len(sizes) > 1 and rows else ""
    return [table(f"Memory at the peak, by owner{when}", columns, lines, more=len(own) - len(rows), note=note)]


def _since(time_ns: int | None, step: int | None) -> str:
    """A moment: its time from the start of the capture, and its step."""
    if time_ns is None:
        return ""
    where = f", step {number(step)}" if step is not None and step >= 0 else ""
    return f"{cell(time_ns, 'ns')}{where}"


def memory_blocks(shown: Shown, limit: int | None) -> list[Table]:
    """The largest single allocations."""
    every = sorted(records(shown.memory_blocks), key=lambda row: -(row["bytes"] or 0))
    rows = every if limit is None else every[:limit]
    columns = [Column("operator", **NAME), Column("input shapes", **UNDER), Column("module", **UNDER)]
    columns += [Column("rank", drop=1), Column("component", left=True, drop=2), Column("bytes"), Column("at")]
    columns += [Column("held"), Column("code", **PLACE)]
    lines = []
    for row in rows:
        held = "not released" if row["is_released"] == 0 else cell(row["held_ns"], "ns")
        line = [readable(row["op"]), shapes(row), row["module"] or "", number(row["rank"]), row["component"]]
        line += [cell(row["bytes"], "bytes"), _since(row["time_ns"], row["step"]), held]
        lines.append(("", [*line, row["code_line"] or ""]))
    return [table("Largest single allocations", columns, lines, more=len(every) - len(rows))]


def modules(shown: Shown, limit: int | None) -> list[Table]:
    """Modules with the most time."""
    rows, more = top(shown.modules, limit)
    columns = [*_grain_columns(rows), Column("module", **NAME), Column("phase", left=True), Column("op calls", drop=1)]
    columns += [Column("per step"), Column("device self"), Column("host self")]
    lines = []
    for row in rows:
        times = [row["device_self_ns"], row["host_self_ns"]]
        line = [readable(row["module"]), readable(row["phase"]), number(row["calls"])]
        line += [cell(row.get("per_step_ns"), "ns"), *(cell(time, "ns", *times) for time in times)]
        lines.append(("", [*_grain(row), *line]))
    return [table("Modules", columns, lines, more=more)]


def api(shown: Shown, limit: int | None) -> list[Table]:
    """Host API calls with the most time."""
    rows, more = top(shown.api, limit)
    columns = [*_grain_columns(rows), Column("API call", **NAME), Column("level", left=True), Column("calls")]
    columns += [Column(name) for name in ("per step", "total", "self")]
    columns += [Column(name, drop=1) for name in ("average", "minimum", "maximum")]
    lines = []
    for row in rows:
        times = [row["total_ns"], row["self_ns"]]
        line = [readable(row["name"]), readable(row["level"]), number(row["calls"]), cell(row.get("per_step_ns"), "ns")]
        lines.append(("", [*_grain(row), *line, *(cell(time, "ns", *times) for time in times), *per_call(row)]))
    return [table("Host API calls", columns, lines, more=more)]


def counters(shown: Shown, limit: int | None) -> list[Table]:
    """A line per table and measurement of the profiler: over how many things, its mean where it is of one, and where
    it is largest; then every number, those that never were anything but zero last.
    """
    frame = shown.counters
    grain = [name for name in GRAIN if name in frame.columns]
    repeated = sorted(set(frame["source"]) & set(REPEATED_COUNTERS))
    columns = [*map(Column, grain), Column("source", left=True), Column("measurement", **NAME), Column("number")]
    columns += [Column("mean"), Column("smallest"), Column("largest"), Column("largest of", **NAME)]
    lines = []
    for _, group in frame[~frame["source"].isin(repeated)].groupby([*grain, "source", "attribute"], sort=False):
        largest = records(group.sort_values(["max", "name"], ascending=[False, True]).head(1))[0]
        if not largest["max"] and not group["min"].min():
            continue  # nothing but zeros
        mean = largest["mean"] if len(group) == 1 else None  # a mean over things of several names says nothing
        line = [largest["source"], largest["attribute"], number(len(group)), measured(mean)]
        line += [measured(float(group["min"].min())), measured(largest["max"]), readable(largest["name"])]
        lines.append(("", [*(number(largest[name]) for name in grain), *line]))
    kept = lines if limit is None else lines[:limit]
    note = f"Other sections are made of {', '.join(repeated)}." if repeated else ""
    overview = table("Counters of the profiler", columns, kept, more=len(lines) - len(kept), note=note)
    rows, more = top(_zeros_last(frame, pd.Series(0, index=frame.index)), limit)
    columns = [*map(Column, grain), Column("source", left=True), Column("name", **NAME), Column("measurement", **NAME)]
    columns += [Column(name) for name in ("values", "mean", "minimum", "maximum")]
    lines = []
    for row in rows:
        line = [row["source"], readable(row["name"]), row["attribute"], number(row["calls"])]
        line += [measured(row[name]) for name in ("mean", "min", "max")]
        lines.append(("", [*(number(row[name]) for name in grain), *line]))
    return [overview, table("All counters", columns, lines, more=more)]


SECTIONS: Final[Mapping[str, Callable[[Shown, int | None], list[Table]]]] = {
    "overall": overall, "operator": operators, "kernel": kernels, "kernel_type": kernel_types, "metric": metrics,
    "communication": communication, "link": links, "memory": memory, "memory_peak": memory_peak,
    "memory_block": memory_blocks, "module": modules, "api": api, "counter": counters,
}  # fmt: skip
"""Section -> its tables."""
