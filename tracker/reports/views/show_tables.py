"""The tables of one run by section, over its whole capture: the largest rows first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from tracker.columns import Columns
from tracker.compare.summaries import by_size, summed
from tracker.profile import UNLINKED_OP
from tracker.reports.cells import READABLE, UNSAID, cell, group_words, measured, number, per_call, readable, share
from tracker.reports.document import NAME, PLACE, UNDER, WORDS, Column, Curves, Table, Target, table
from tracker.reports.rows import Row, has, records, top
from tracker.reports.views.advice import efficiency_table
from tracker.reports.views.diff_tables import PARTS, PARTS_DROP, shapes, through
from tracker.results import LINK, PACKET, PIPE_TIME, TRANSPORT, Shown
from tracker.units import MISSING_TEXT, NS_PER_S, NS_PER_US, counted, format_bytes, format_ns, steps_words

GRAIN: Final = ("stage", "rank", "step")
_SPAN: Final = "E2E is the device's span: from the first start to the last end of its activity"
_RANKS_BESIDE: Final = 4  # more ranks than this are summed up as minimum, median, maximum
_KERNEL: Final = ("name", "canonical_name", "type", "core_type", "input_shapes")
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
    return "device" in shown.tables["overall"].listed("timeline")


def self_time(shown: Shown) -> str:
    """The column that orders ops: device self time, or host self time without a device."""
    return "device_self_ns" if on_device(shown) else "host_self_ns"


def overall(shown: Shown, limit: int | None) -> list[Table]:
    """Where the time went: a column per rank, or the spread over many ranks; then how steps differ."""
    ranks = records(shown.tables["overall"])
    spread = {row["metric"]: row for row in records(shown.tables["rank_summary"])}
    beside = len(ranks) <= _RANKS_BESIDE
    heads = [f"rank {number(row.get('rank'))}" for row in ranks] if beside else ["minimum", "median", "maximum", "at"]
    columns = [Column("metric", **WORDS), *map(Column, heads), Column("share of E2E")]
    hidden = () if on_device(shown) else _DEVICE_ONLY
    rows = []
    for name, label, unit in BREAKDOWN:
        numbers = [row.get(name) for row in ranks]
        if name in hidden or all(value is None for value in numbers):
            continue
        own = [cell(value, unit, *numbers) for value in numbers] if beside else _spread(spread.get(name), unit)
        part = (spread.get(name) or {}).get("share")
        rows.append(("", [label, *own, "" if part is None else share(part)]))
    timelines = ", ".join(dict.fromkeys(str(row.get("timeline")) for row in ranks))
    what = steps_words(shown.options.steps) if shown.options.steps else "whole capture"
    note = _SPAN if on_device(shown) else ""
    title = f"Overall, {what} ({timelines} timeline, {counted(len(ranks), 'rank')})"
    return [table(title, columns, rows, note=note), _steps(shown)]


def _spread(row: Row | None, unit: str) -> list[str]:
    """Minimum, median, maximum and where the maximum is."""
    if row is None:
        return [MISSING_TEXT] * 4
    ends = [cell(row[name], unit, row["maximum"]) for name in ("minimum", "median", "maximum")]
    places = [(name, row.get(f"maximum_{name}")) for name in ("rank", "step")]
    return [*ends, ", ".join(f"{name} {number(value)}" for name, value in places if value is not None)]


def _steps(shown: Shown) -> Table:
    """The spread over all steps and ranks. Where rows are means of several steps, only the shortest and the longest
    are known at most.
    """
    rows = records(shown.tables["step_summary"])
    steps = shown.tables["steps"]
    means = bool(rows) and all(row["median"] is None for row in rows)
    columns = [Column("metric", **WORDS), Column("minimum"), Column("mean" if means else "median"), Column("maximum")]
    columns += [] if means else [Column("maximum at", left=True)]
    named = {row["metric"]: row for row in rows}
    lines = []
    for name, label, unit in BREAKDOWN:
        row = named.get(name)
        if row is None or name not in ("duration_ns", "e2e_ns", *OF_E2E, "samples_per_second") or not row["mean"]:
            continue
        ends = [cell(row[of], unit, row["mean"], row["maximum"]) for of in ("minimum", "mean", "maximum")]
        lines.append(("", [label.strip(), *(ends if means else _spread(row, unit))]))
    several = f", means of {counted(sum(steps.listed('steps')), 'step')}" if means else ""
    return table(f"Steps ({counted(len(steps), 'row')} of rank and step{several})", columns, lines)


def operators(shown: Shown, limit: int | None) -> list[Table]:
    """Ops with the most time, summed over modules, phases and types; device times only where there is a device.

    `share`: of the self time of all ops. `average`, `minimum`, `maximum`: of a call, with what it calls.
    """
    own = self_time(shown)
    rows, more = top(ops_by(shown), limit)
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
        line += [*(cell(time, "ns", *times) for time in times), share(row["share"])]
        total = {**row, "total_ns": row[own.replace("self", "total")]}
        lines.append(("", [*_grain(row), *line, *per_call(total)]))
    links = tuple(history_of(shown, row["name"]) for row in rows)
    return [table("Operators", columns, lines, more=more, links=links)]


def history_of(shown: Shown, name: str, *options: tuple[str, str]) -> Target | None:
    """The history of what has this name in the workload of the run; none for stand-ins, and for files."""
    workload = shown.run.get("workload")
    if name in READABLE or workload in (None, *UNSAID):
        return None
    return Target("history", (("KEY", name), *options, ("--workload", workload)))


def ops_by(shown: Shown, *keys: str) -> Columns:
    """Times, calls and share of ops under `keys` (default: name and shapes, within the grain), most self time first.

    A sum of nothing but missing values is missing; where self times are, totals say which op is the largest.
    """
    ops = shown.tables["ops"]
    names = list(keys) or [*(name for name in GRAIN if name in ops), "name", "input_shapes"]
    numbers = dict.fromkeys(
        ("calls", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns", "share"), "sum"
    )
    found = summed(ops, names, numbers | {"min_ns": "min", "max_ns": "max", "per_step_ns": "max"})
    own = self_time(shown)
    sizes = list(dict.fromkeys((own, own.replace("self", "total"), "host_self_ns", "host_total_ns")))
    return by_size(found, sizes, names)


def kernels(shown: Shown, limit: int | None) -> list[Table]:
    """Kernels, then copies and memsets, with the most time; with shapes where rows look alike without."""
    found = []
    for title, name, first in (("Kernels", "kernels", "kernel"), ("Copies and memsets", "copies", "copy or memset")):
        every = shown.tables[name]
        own, more = top(every, limit)
        names, by_shape = _told_apart(own)
        is_copy = name == "copies"
        unlinked = not is_copy and bool(own) and {*every.listed("op")} == {UNLINKED_OP}
        columns = [*_grain_columns(own), Column(first, **NAME)]
        columns += [] if unlinked else [Column("launched by", **UNDER)]
        columns += [Column("input shapes", **UNDER), Column("category", left=True, drop=2), Column("calls")]
        columns += [Column("per step"), Column("total"), Column("share"), *([Column("bytes")] if is_copy else [])]
        columns += [Column(of, drop=1) for of in ("average", "minimum", "maximum")]
        lines = []
        for row, text, shape in zip(own, names, by_shape, strict=True):
            line = [text, *([] if unlinked else [readable(row["op"])]), shape, row["category"], number(row["calls"])]
            line += [cell(row.get("per_step_ns"), "ns"), cell(row["total_ns"], "ns"), share(row["share"])]
            line += [cell(row.get("bytes"), "bytes")] if is_copy else []
            lines.append(("", [*_grain(row), *line, *per_call(row)]))
        note = "No launch of them is in the capture, so no operator stands beside them." if unlinked else ""
        links = tuple(history_of(shown, row["name"], ("--kind", "kernel")) for row in own)
        found.append(table(title, columns, lines, more=more, note=note, links=links))
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
    rows, more = top(shown.tables["kernel_types"], limit)
    columns = [*_grain_columns(rows), Column("kernel type", **NAME), Column("core type", left=True), Column("calls")]
    columns += [Column("total"), Column("share"), *(Column(name, drop=1) for name in ("average", "minimum", "maximum"))]
    lines = []
    for row in rows:
        line = [readable(row["type"]), readable(row["core_type"]), number(row["calls"]), cell(row["total_ns"], "ns")]
        lines.append(("", [*_grain(row), *line, share(row["share"]), *per_call(row)]))
    return [table("Kernel types", columns, lines, more=more)]


def metrics(shown: Shown, limit: int | None) -> list[Table]:
    """For the kernels with most time, what their calls were busy with: the pipes that worked longest; then all metrics,
    of each kernel those that are nothing but zeros last.
    """
    pipes: dict[tuple[str, ...], list[Row]] = {}
    for row in records(shown.tables["kernel_pipes"]):
        pipes.setdefault((*_grain(row), *(str(row[name]) for name in _KERNEL)), []).append(row)
    shown_pipes = list(pipes.values())[:limit]
    lines, below = [], []
    for own in shown_pipes:
        line = [readable(own[0]["canonical_name"] or own[0]["name"]), shapes(own[0]), number(own[0]["calls"])]
        lines.append(("", [*_grain(own[0]), *line, cell(own[0]["core_time_ns"], "ns")]))
        below.append(
            ", ".join(
                f"{row['metric'].partition('(')[0].removesuffix('_time')} "
                + (format_ns(row["mean"] * NS_PER_US) if row["kind"] == PIPE_TIME else measured(row["mean"]))
                for row in own
                if row["metric"]
            )
        )
    first = [*_grain_columns(next(iter(pipes.values()), [])), Column("kernel", **NAME)]
    first.append(Column("input shapes", **UNDER))
    columns = [*first, Column("calls"), Column("core time")]
    busiest = table("Kernel metrics, means of a call", columns, lines, more=len(pipes) - len(lines))
    rows = records(shown.tables["kernel_metrics"])
    place: dict[tuple[str, ...], int] = {}
    for row in rows:
        place.setdefault((*_grain(row), *(str(row[name]) for name in _KERNEL)), len(place))
    rows.sort(key=lambda row: (place[(*_grain(row), *(str(row[name]) for name in _KERNEL))], _is_zero(row)))
    kept = rows if limit is None else rows[:limit]
    columns = [*first, Column("metric", **NAME), *map(Column, ("calls", "mean", "minimum", "maximum"))]
    lines = []
    for row in kept:
        line = [readable(row["canonical_name"] or row["name"]), shapes(row), row["metric"], number(row["calls"])]
        lines.append(("", [*_grain(row), *line, *(measured(row[name]) for name in ("mean", "min", "max"))]))
    found = table("Kernel metrics", columns, lines, more=len(rows) - len(kept))
    return [replace(busiest, below=tuple(below)), found]


def _is_zero(row: Row) -> bool:
    return not (row["mean"] or row["min"] or row["max"])


def communication(shown: Shown, limit: int | None) -> list[Table]:
    """Collectives with the most time; of the parts of it those that the source tells apart."""
    rows, more = top(shown.tables["communication"], limit)
    parts = [name for name in PARTS if has(shown.tables["communication"], name)]
    is_split = has(shown.tables["communication"], "split_by")
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
    found, every = [], records(shown.tables["link_totals"])
    transport = Column("transport", left=True)
    for level, title, heads in (
        (TRANSPORT, "Communication links", [transport, Column("group", **WORDS)]),
        (LINK, "Links between ranks", [Column("from rank"), Column("to rank"), transport]),
        (PACKET, "Packets", [transport, Column("packet size"), Column("packets")]),
    ):
        own = [row for row in every if row["level"] == level]
        if level == PACKET:
            own.sort(key=lambda row: -(row["bytes"] or 0))
        rows = own if limit is None else own[:limit]
        columns = [*_grain_columns(rows), *heads, Column("bytes"), Column("transit"), Column("GB/s")]
        columns += [Column("large packets")] if level == TRANSPORT else []
        lines = []
        for row in rows:
            ends = [number(row["source_rank"]), number(row["target_rank"])]
            first = {
                TRANSPORT: [row["transport"], group_words(row)],
                LINK: [*ends, row["transport"]],
                PACKET: [row["transport"], format_bytes(row["packet_bytes"]), number(row["packets"])],
            }[level]
            speed = row["bandwidth_gb_per_s"]
            line = [*first, format_bytes(row["bytes"]), format_ns(row["transit_ns"])]
            line.append(MISSING_TEXT if speed is None else f"{speed:,.2f}")
            line += [share(row["large_packet_ratio"])] if level == TRANSPORT else []
            lines.append(("", [*_grain(row), *line]))
        found.append(table(title, columns, lines, more=len(own) - len(rows)))
    return found


def memory(shown: Shown, limit: int | None) -> list[Table]:
    """Ops that allocate most."""
    rows, more = top(shown.tables["memory"], limit)
    columns = [*_grain_columns(rows), Column("operator", **NAME), Column("input shapes", **UNDER)]
    columns += [Column("allocator", **UNDER), Column("component", left=True), Column("allocations"), Column("bytes")]
    columns += [Column("unreleased"), Column("held", drop=1)]
    lines = []
    for row in rows:
        sizes = [row["bytes"], row["unreleased_bytes"]]
        line = [readable(row["op"]), shapes(row), through(row), row["component"] or MISSING_TEXT]
        line += [number(row["calls"]), *(cell(size, "bytes", *sizes) for size in sizes), cell(row["held_ns"], "ns")]
        lines.append(("", [*_grain(row), *line]))
    return [table("Memory allocated by operators", columns, lines, more=more, chart=_curve(shown))]


def _curve(shown: Shown) -> Curves | None:
    """The course of memory, of the rank and the component that held most."""
    found: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for row in records(shown.tables["memory_curve"]):
        if row["allocated_bytes"] is not None:
            point = (row["time_ns"] / NS_PER_S, row["allocated_bytes"])
            found.setdefault((row["rank"], row["component"]), []).append(point)
    if not found:
        return None
    rank, component = max(found, key=lambda key: max(size for _, size in found[key]))
    return Curves("bytes", ((f"rank {number(rank)}, {component}", tuple(found[rank, component])),))


def memory_peak(shown: Shown, limit: int | None) -> list[Table]:
    """Who held the memory when it was most, of the rank with the highest peak; with a line per component."""
    totals = records(shown.tables["memory_peak_totals"])
    sizes: Counter[int] = Counter()
    for row in totals:
        sizes[row["rank"]] += row["bytes"] or 0
    rank = max(sizes, key=lambda one: (sizes[one], -one), default=None)
    peaks = {row["component"]: row for row in totals if row["rank"] == rank}
    order = list(peaks)
    own = [row for row in records(shown.tables["memory_peak"]) if row["rank"] == rank]
    own.sort(key=lambda row: (order.index(row["component"]), -(row["bytes"] or 0)))
    rows = own if limit is None else own[:limit]
    several = len(peaks) > 1
    columns = [Column("operator", **NAME), Column("input shapes", **UNDER), Column("module", **UNDER)]
    columns += [Column("allocator", **UNDER), *([Column("component", left=True)] if several else [])]
    columns += [Column("blocks", drop=1), Column("bytes"), Column("share"), Column("since", drop=2)]
    columns.append(Column("code", **PLACE))
    lines = []
    for row in rows:
        line = [readable(row["op"]), shapes(row), row["module"] or "", through(row), *[row["component"]] * several]
        line += [number(row["calls"]), cell(row["bytes"], "bytes"), share(row["share"])]
        lines.append(("", [*line, _since(row["first_ns"], row["first_step"]), row["code_line"] or ""]))
    for component, peak in peaks.items() if rows else ():
        line = [f"= peak of {component}", "", "", "", *[component] * several, "", cell(peak["bytes"], "bytes")]
        lines.append(("sum", [*line, "", "", ""]))
    first = next(iter(peaks.values()), None)
    when = f" (rank {number(rank)}, {_since(first['peak_ns'], first['peak_step'])})" if first and rows else ""
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
    every = sorted(records(shown.tables["memory_blocks"]), key=lambda row: -(row["bytes"] or 0))
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
    rows, more = top(shown.tables["modules"], limit)
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
    rows, more = top(shown.tables["api"], limit)
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
    rows, more = top(shown.tables["counter_summary"], limit)
    columns = [*_grain_columns(rows), Column("source", left=True), Column("measurement", **NAME), Column("number")]
    columns += [Column("mean"), Column("smallest"), Column("largest"), Column("largest of", **NAME)]
    lines = []
    for row in rows:
        line = [row["source"], row["attribute"], number(row["names"])]
        line += [*(measured(row[name]) for name in ("mean", "min", "max")), readable(row["max_name"])]
        lines.append(("", [*_grain(row), *line]))
    overview = table("Counters of the profiler", columns, lines, more=more)
    every = sorted(records(shown.tables["counters"]), key=_is_zero)
    kept = every if limit is None else every[:limit]
    columns = [*_grain_columns(kept), Column("source", left=True), Column("name", **NAME)]
    columns += [Column("measurement", **NAME), *(Column(name) for name in ("values", "mean", "minimum", "maximum"))]
    lines = []
    for row in kept:
        line = [row["source"], readable(row["name"]), row["attribute"], number(row["calls"])]
        lines.append(("", [*_grain(row), *line, *(measured(row[name]) for name in ("mean", "min", "max"))]))
    return [overview, table("All counters", columns, lines, more=len(every) - len(kept))]


SECTIONS: Final[Mapping[str, Callable[[Shown, int | None], list[Table]]]] = {
    "overall": overall, "operator": operators, "kernel": kernels, "kernel_type": kernel_types, "metric": metrics,
    "communication": communication, "link": links, "memory": memory, "memory_peak": memory_peak,
    "memory_block": memory_blocks, "module": modules, "api": api, "counter": counters,
    "efficiency": lambda shown, limit: [efficiency_table(shown.tables.get("efficiency"), limit)],
}  # fmt: skip
"""Section -> its tables."""
