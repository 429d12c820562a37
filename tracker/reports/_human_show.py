"""The tables of one run for people, its header and its summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tracker.profile import UNLINKED_OP
from tracker.reports import _human_communication, _human_links, _human_memory, _human_metrics
from tracker.reports._human import (
    GRAIN,
    NAME,
    UNDER,
    WORDS,
    Column,
    Row,
    Table,
    cell,
    grain_cells,
    grain_columns,
    make,
    number,
    per_call,
    readable,
    share,
    top,
)
from tracker.reports.shared import records
from tracker.results import Shown
from tracker.units import (
    MISSING_TEXT,
    NS_PER_S,
    counted,
    steps_words,
)

if TYPE_CHECKING:
    import pandas as pd

_SPAN: Final = "E2E is the device's span: from the first start to the last end of its activity"
_RANKS_BESIDE: Final = 4  # more ranks than this are summed up as minimum, median, maximum
_HEADER_FACTS: Final = 12
_NS: Final = "ns"

BREAKDOWN: Final = (
    ("duration_ns", "duration", "ns"),
    ("e2e_ns", "E2E", "ns"),
    ("compute_ns", "  compute", "ns"),
    ("exposed_communication_ns", "  exposed communication", "ns"),
    ("exposed_copy_ns", "  exposed copy", "ns"),
    ("idle_ns", "  idle time", "ns"),
    ("communication_ns", "communication", "ns"),
    ("overlap_ns", "  overlapped by compute", "ns"),
    ("copy_ns", "copy", "ns"),
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


def header(shown: Shown) -> list[str]:
    """What the run is: a line each for identity, size, origin, and the facts that were recorded."""
    run = shown.run
    identity = f"run {run.get('run_id')}: {run.get('workload')} {run.get('version')} on {_device(run)}"
    if run.get("state", "active") != "active":
        identity += f"  [{run['state']}: {run.get('state_reason') or 'no reason given'}]"
    lines = [identity]
    if run.get("configuration"):
        lines.append(f"configuration: {run['configuration']}")
    lines.append(_size(run))
    if run.get("tags"):
        lines.append(f"tags: {run['tags']}")
    facts = [row for row in records(shown.facts) if row["kind"] == "fact"]
    named = ", ".join(f"{row['key']}={row['value']}" for row in facts[:_HEADER_FACTS])
    more = f", and {len(facts) - _HEADER_FACTS} more" if len(facts) > _HEADER_FACTS else ""
    notes = [f"Note: {note}" for note in shown.notes]
    return [*lines, *([f"facts: {named}{more}"] if facts else []), *_partial(shown), *notes]


def _device(run: Mapping[str, Any]) -> str:
    words = " ".join(str(run[name]) for name in ("vendor", "device") if run.get(name))
    return words or "an unknown device"


def _size(run: Mapping[str, Any]) -> str:
    expected = run.get("ranks_expected")
    ranks = f"{run.get('ranks')} of {expected}" if expected else str(run.get("ranks"))
    words = [f"ranks {ranks}", f"world size {run.get('world_size') or MISSING_TEXT}", f"steps {run.get('steps')}"]
    started = run.get("started_at_ns")
    if started is not None:
        words.append(f"started {datetime.fromtimestamp(started // NS_PER_S, UTC):%Y-%m-%d %H:%M:%S} UTC")
    return ", ".join([*words, f"format {run.get('format') or MISSING_TEXT}"])


def _partial(shown: Shown) -> list[str]:
    rows = [row for row in records(shown.overall) if row.get("quality", "ok") != "ok"]
    return [f"rank {number(row.get('rank'))} is {row['quality']}: {row.get('quality_reason')}" for row in rows]


def overall(shown: Shown, limit: int | None) -> Table:
    """Where the time went: a column per rank, or the spread over many ranks."""
    ranks = records(shown.overall)
    beside = len(ranks) <= _RANKS_BESIDE
    heads = (
        [f"rank {number(row.get('rank'))}" for row in ranks] if beside else ["minimum", "median", "maximum", "at rank"]
    )
    share_columns = [Column("share of E2E")] if beside else []
    columns = [Column("metric", **WORDS), *(Column(head) for head in heads), *share_columns]
    rows = []
    hidden = () if on_device(shown) else _DEVICE_ONLY
    for name, label, unit in BREAKDOWN:
        numbers = [row.get(name) for row in ranks]
        if name in hidden or (name in _OPTIONAL and all(value is None for value in numbers)):
            continue
        cells = [cell(value, unit, *numbers) for value in numbers] if beside else _spread(numbers, unit, ranks)
        shares = [mean_share(ranks, name)] if beside else []
        rows.append(("", [label, *cells, *shares]))
    timelines = ", ".join(dict.fromkeys(str(row.get("timeline")) for row in ranks))
    what = steps_words(shown.options.steps) if shown.options.steps else "whole capture"
    note = _SPAN if on_device(shown) else ""
    return make(f"Overall, {what} ({timelines} timeline, {counted(len(ranks), 'rank')})", columns, rows, note=note)


def on_device(shown: Shown) -> bool:
    """Whether the device timeline was measured on any rank; else the host timeline stands in."""
    return bool((shown.overall["timeline"] == "device").any())


def mean_share(ranks: list[Row], name: str) -> str:
    """The share of E2E over all ranks, as text; "" where a row has none."""
    known = [(row[name], row["e2e_ns"]) for row in ranks if row.get(name) is not None and row.get("e2e_ns")]
    if name not in OF_E2E or not known:
        return ""
    return share(sum(part for part, _ in known) / sum(whole for _, whole in known))


def _spread(numbers: list[Any], unit: str, rows: list[Row]) -> list[str]:
    """Minimum, median, maximum and the rank of the maximum."""
    known = sorted(value for value in numbers if value is not None)
    if not known:
        return [MISSING_TEXT] * 4
    middle = len(known) // 2
    median = known[middle] if len(known) % 2 else (known[middle - 1] + known[middle]) / 2
    place = rows[numbers.index(known[-1])]
    where = number(place.get("rank"))
    if "step" in place:
        where = f"rank {where} step {number(place['step'])}"
    return [cell(value, unit, known[-1]) for value in (known[0], median, known[-1])] + [where]


def steps(shown: Shown, limit: int | None) -> Table:
    """How steps differ: minimum, median and maximum over all steps and ranks.

    A row that is the mean of several steps knows the shortest and the longest of them at most.
    """
    rows = records(shown.steps)
    means = bool(rows) and all(row.get("steps", 1) > 1 for row in rows)
    columns = [Column("metric", **WORDS), Column("minimum"), Column("mean" if means else "median"), Column("maximum")]
    columns += [] if means else [Column("maximum at", left=True)]
    names = ("duration_ns", "e2e_ns", *OF_E2E, "samples_per_second")
    lines = []
    for name, label, unit in BREAKDOWN:
        numbers = [row.get(name) for row in rows]
        if name in names and any(numbers):
            cells = _mean_spread(name, unit, rows) if means else _spread(numbers, unit, rows)
            lines.append(("", [label.strip(), *cells]))
    several = f", means of {counted(sum(row['steps'] for row in rows), 'step')}" if means else ""
    return make(f"Steps ({counted(len(rows), 'row')} of rank and step{several})", columns, lines)


def _mean_spread(name: str, unit: str, rows: list[Row]) -> list[str]:
    """Minimum, mean and maximum where each row is the mean of several steps."""
    known = [(row[name], row["steps"]) for row in rows if row.get(name) is not None]
    mean = sum(value * count for value, count in known) / sum(count for _, count in known)
    ends: list[Any] = [None, None]
    if name == "duration_ns":
        shortest = [value for row in rows if (value := row.get("shortest_ns")) is not None]
        longest = [value for row in rows if (value := row.get("longest_ns")) is not None]
        ends = [min(shortest, default=None), max(longest, default=None)]
    return [cell(value, unit, mean, *ends) for value in (ends[0], mean, ends[1])]


def operators(shown: Shown, limit: int | None) -> Table:
    """Ops with the most time, summed over modules, phases and types; device times only where there is a device.

    `share`: of the self time of all ops. `average`, `minimum`, `maximum`: of a call, with what it calls.
    """
    found, own = summed(shown), self_time(shown)
    whole = found[own].sum()
    rows, more = top(found, limit)
    columns = [*grain_columns(rows), Column("operator", **NAME), Column("input shapes", **UNDER)]
    columns += [Column("calls"), Column("per step")]
    names: list[str] = []
    for place in ("device", "host") if on_device(shown) else ("host",):
        columns += [Column(f"{place} self"), Column(f"{place} total", drop=3 if names else 2)]
        names += [f"{place}_self_ns", f"{place}_total_ns"]
    columns += [Column("share"), Column("average", drop=1), Column("minimum", drop=4), Column("maximum", drop=4)]
    cells = []
    for row in rows:
        times = [row[name] for name in names]
        line = [readable(row["name"]), row["input_shapes"] or "", *_per_step(row)]
        line += [cell(time, "ns", *times) for time in times]
        line.append(share(row[own] / whole if row[own] is not None and whole else None))
        total = {**row, "total_ns": row[own.replace("self", "total")]}
        cells.append(("", [*grain_cells(row), *line, *per_call(total)]))
    return make("Operators", columns, cells, more=more)


def _per_step(row: Row) -> list[str]:
    return [number(row["calls"]), cell(row.get("per_step_ns"), "ns")]


def summed(shown: Shown, *keys: str) -> pd.DataFrame:
    """Times and calls of ops under `keys` (default: name and shapes, within the grain), most self time first."""
    frame = shown.ops
    grain = [name for name in GRAIN if name in frame.columns]
    names = list(keys) or [*grain, "name", "input_shapes"]
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


def self_time(shown: Shown) -> str:
    """The column that orders ops: device self time, or host self time without a device."""
    return "device_self_ns" if on_device(shown) else "host_self_ns"


def kernels(shown: Shown, limit: int | None) -> Table:
    """Kernels with the most time, and their share of all kernel time; with shapes where rows look alike without."""
    whole = shown.kernels["total_ns"].sum()
    rows, more = top(shown.kernels, limit)
    names, shapes = _told_apart(rows)
    unlinked = bool(rows) and bool((shown.kernels["op"] == UNLINKED_OP).all())
    columns = [*grain_columns(rows), Column("kernel", **NAME), *([] if unlinked else [Column("launched by", **UNDER)])]
    columns += [Column("input shapes", **UNDER)] if any(shapes) else []
    columns += [Column("category", left=True, drop=2), Column("calls")]
    columns += [Column(name) for name in ("per step", "total", "share")]
    columns += [Column(name, drop=1) for name in ("average", "minimum", "maximum")]
    cells = []
    for row, name, shape in zip(rows, names, shapes, strict=True):
        total = row["total_ns"]
        line = [name, *([] if unlinked else [readable(row["op"])]), *([shape] if any(shapes) else [])]
        line += [row["category"], *_per_step(row)]
        line += [cell(total, "ns"), share(total / whole if total is not None and whole else None)]
        cells.append(("", [*grain_cells(row), *line, *per_call(row)]))
    note = "Of none of them the capture has the launch, so no operator stands beside it." if unlinked else ""
    return make("Kernels", columns, cells, more=more, note=note)


def _told_apart(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Name and shapes of each kernel: shapes (else those of its op) where rows would look alike, the profiler's own
    name where they still do.
    """
    names = [readable(row["canonical_name"] or row["name"]) for row in rows]
    seen = [(*grain_cells(row), name, row["op"]) for row, name in zip(rows, names, strict=True)]
    alike = Counter(seen)
    shapes = [
        (row["input_shapes"] or row["op_input_shapes"] or "") if alike[key] > 1 else ""
        for row, key in zip(rows, seen, strict=True)
    ]
    still = Counter(zip(seen, shapes, strict=True))
    for at, row in enumerate(rows):
        if still[seen[at], shapes[at]] > 1:
            names[at] = readable(row["name"])
    return names, shapes


def kernel_types(shown: Shown, limit: int | None) -> Table:
    """Types of an NPU's kernels with the most time, and their share of the time of all types."""
    whole = shown.kernel_types["total_ns"].sum()
    rows, more = top(shown.kernel_types, limit)
    columns = [*grain_columns(rows), Column("kernel type", **NAME), Column("core type", left=True), Column("calls")]
    columns += [Column("total"), Column("share"), *(Column(name, drop=1) for name in ("average", "minimum", "maximum"))]
    cells = []
    for row in rows:
        total = row["total_ns"]
        line = [readable(row["type"]), readable(row["core_type"]), number(row["calls"]), cell(total, "ns")]
        line.append(share(total / whole if total is not None and whole else None))
        cells.append(("", [*grain_cells(row), *line, *per_call(row)]))
    return make("Kernel types", columns, cells, more=more)


def copies(shown: Shown, limit: int | None) -> Table:
    """Memory copies and memsets with the most time; with shapes where rows look alike without."""
    rows, more = top(shown.copies, limit)
    names, shapes = _told_apart(rows)
    columns = [*grain_columns(rows), Column("copy or memset", **NAME), Column("launched by", **UNDER)]
    columns += [Column("input shapes", **UNDER)] if any(shapes) else []
    columns += [Column("calls"), Column("total"), Column("bytes")]
    cells = []
    for row, name, shape in zip(rows, names, shapes, strict=True):
        sums = [number(row["calls"]), cell(row["total_ns"], "ns"), cell(row.get("bytes"), "bytes")]
        cells.append(("", [*grain_cells(row), name, readable(row["op"]), *([shape] if any(shapes) else []), *sums]))
    return make("Copies and memsets", columns, cells, more=more)


def modules(shown: Shown, limit: int | None) -> Table:
    """Modules with the most time."""
    rows, more = top(shown.modules, limit)
    columns = [*grain_columns(rows), Column("module", **NAME), Column("phase", left=True), Column("op calls", drop=1)]
    columns += [Column("per step"), Column("device self"), Column("host self")]
    cells = []
    for row in rows:
        times = [row["device_self_ns"], row["host_self_ns"]]
        line = [readable(row["module"]), readable(row["phase"]), *_per_step(row)]
        cells.append(("", [*grain_cells(row), *line, *(cell(time, "ns", *times) for time in times)]))
    return make("Modules", columns, cells, more=more)


def api(shown: Shown, limit: int | None) -> Table:
    """Host API calls with the most time."""
    rows, more = top(shown.api, limit)
    columns = [*grain_columns(rows), Column("API call", **NAME), Column("level", left=True), Column("calls")]
    columns += [Column(name) for name in ("per step", "total", "self")]
    columns += [Column(name, drop=1) for name in ("average", "minimum", "maximum")]
    cells = []
    for row in rows:
        times = [row["total_ns"], row["self_ns"]]
        line = [readable(row["name"]), readable(row["level"]), *_per_step(row)]
        line += [cell(time, "ns", *times) for time in times]
        cells.append(("", [*grain_cells(row), *line, *per_call(row)]))
    return make("Host API calls", columns, cells, more=more)


TABLES: Final[dict[str, tuple[Callable[[Shown, int | None], Table], ...]]] = {
    "overall": (overall, steps),
    "operator": (operators,),
    "kernel": (kernels, copies),
    "kernel_type": (kernel_types,),
    "metric": (_human_metrics.metrics,),
    "communication": (_human_communication.communication,),
    "link": (_human_links.links, _human_links.link_matrix, _human_links.packets),
    "memory": (_human_memory.memory,),
    "memory_peak": (_human_memory.peak,),
    "memory_block": (_human_memory.blocks,),
    "module": (modules,),
    "api": (api,),
    "counter": (_human_metrics.counters,),
}
"""Section -> its tables."""

SHORT: Final = TABLES | {
    "metric": (_human_metrics.busiest,),
    "link": (_human_links.links,),
    "counter": (_human_metrics.counter_overview,),
}
"""The same where the reader did not ask for the section."""
