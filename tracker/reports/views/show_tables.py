"""The tables of one run by section: its largest rows, over its whole capture, with what they cost per step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import Columns
from tracker.profile import (
    LOG_COUNTERS,
    UNLINKED_OP,
    label_idle,
)
from tracker.reports import cells
from tracker.reports.cells import ColumnsOf, cell, col, measured, number, of, per_call, readable, share, together
from tracker.reports.document import (
    NAME,
    UNDER,
    WORDS,
    Column,
    Curves,
    Group,
    Table,
    Target,
    group,
)  # fmt: skip
from tracker.reports.rows import rows_of, table_of, unit_of
from tracker.reports.views import input_pipeline, operator_arguments, sections
from tracker.reports.views.advice import efficiency_table
from tracker.reports.views.sections import CODE, COLLECTIVE, MODULE, OPERATOR, SHAPES, grain_of, series_of
from tracker.results import GRAINS, LINK, PACKET, PIPE_TIME, TRANSPORT, Shown
from tracker.results.columns import MATCHED_COLUMNS
from tracker.results.run_summary import (
    PARTS_OF_STEP,
    RANKS_BESIDE,
    KernelPipes,
    MemoryCourse,
    find_highest_peak,
    find_memory_course,
    group_pipes,
    has_device,
    order_counters,
    order_metrics,
    self_time_column,
    sum_operators,
)
from tracker.results.sections import SECTION
from tracker.results.shown_rows import (
    AllocatedRow,
    BlockRow,
    CaptureRow,
    CollectiveRow,
    CounterRow,
    CounterSummaryRow,
    IdleRow,
    KernelPipeRow,
    KernelRow,
    LinkTotalRow,
    MetricRow,
    OperatorRow,
    PeakOwnerRow,
    QueueRow,
    RankSummaryRow,
    SplitRow,
    StepSummaryRow,
)
from tracker.units import (
    MISSING_TEXT,
    NS_PER_S,
    NS_PER_US,
    SAMPLES,
    counted,
    format_bytes,
    format_ns,
    format_numbers,
    steps_words,
    time_unit,
)  # fmt: skip

SplitKind = TypeVar("SplitKind", bound=SplitRow)
_SPAN: Final = "E2E is the device's span: from the first start to the last end of its activity"
_BREAKDOWN: Final = {
    "duration_ns": "duration", "e2e_ns": "E2E", "compute_ns": "  compute",
    "exposed_communication_ns": "  exposed communication", "exposed_copy_ns": "  exposed copies",
    "idle_ns": "  idle", "host_idle_ns": "    with nothing launched",
    "communication_ns": "communication", "overlap_ns": "  overlapped by compute", "copy_ns": "copies",
    "kernel_total_ns": "kernel time, summed", "unlinked_kernel_total_ns": "  without a launch",
    "kernel_count": "kernels", "data_loading_ns": "data loading", "data_loading_idle_ns": "  while the device idles",
    "bubble_ns": "pipeline bubble", "preparing_ns": "preparing", "samples_per_second": SAMPLES,
    "peak_allocated_bytes": "peak allocated", "peak_reserved_bytes": "peak reserved",
}  # fmt: skip
"""Row of the overall table -> its words."""
_DEVICE_ONLY: Final = ("kernel_total_ns", "unlinked_kernel_total_ns", "kernel_count", "copy_ns", "exposed_copy_ns")
_CALLS: Final = col("calls")
_PER_STEP: Final = col("per step", "per_step_ns")
_TOTAL: Final = col("total", "total_ns")
_SHARE: Final = col("share")
_COMPONENT: Final = col("component")
_BYTES: Final = col("bytes")
_OP: Final = replace(OPERATOR, cell=of("op"))


def is_log(shown: Shown) -> bool:
    """Return whether a log was read, which has no operators."""
    return shown.run.get("format") == LOG_COUNTERS


def name_number(shown: Shown, name: str, words: Mapping[str, str]) -> str:
    """Return the words of a number of the step; a throughput is named by what the source counts."""
    if name == "samples_per_second" and shown.run.get("throughput"):
        return str(shown.run["throughput"])
    return words[name]


def calls_of(
    shown: Shown, kind: str, query: Callable[[SplitKind], Sequence[tuple[str, str | None]]]
) -> Callable[[SplitKind], Target | None]:
    """Return where the single calls of a row are listed; nowhere of files, which no page is of. `query`: the options
    that say of what the calls are.
    """
    run_id, chosen = shown.run.get("run_id"), shown.options
    same = [("--rank", str(rank)) for rank in chosen.ranks]
    if chosen.steps:
        same.append(("--step", format_numbers(chosen.steps)))

    def link(row: SplitKind) -> Target | None:
        if run_id is None:
            return None
        named = [(name, value) for name, value in query(row) if value]
        of_row = []
        if row.rank is not None:
            of_row.append(("--rank", str(row.rank)))
        if row.step is not None:
            of_row.append(("--step", str(row.step)))
        kept = [pair for pair in same if pair[0] not in dict(of_row)]
        return Target("calls", (("RUN", str(run_id)), *named, ("--calls-of", kind), *of_row, *kept))

    return link


def _exactly(name: str | None) -> str:
    """Return the pattern that only this name fits."""
    return re.sub(r"([*?[])", r"[\1]", name or "")


def _over_all(shown: Shown) -> str:
    """Return what the sums of a table go over, as the end of its title: a column `per step` may stand beside them."""
    steps, ranks = shown.run.get("steps") or 0, shown.run.get("ranks") or 1
    if "step" in shown.options.grains:
        return ""
    parts = [f"all {ranks} ranks"] if ranks > 1 and "rank" not in shown.options.grains else []
    if shown.options.steps:
        parts.insert(0, steps_words(shown.options.steps))
    elif steps > 1:
        parts.insert(0, f"all {steps:,} steps")
    return f", {' and '.join(parts)}" if parts else ""


def _table(
    title: str, columns: Sequence[Column], rows: Columns | Sequence[SplitRow], limit: int | None, **parts: Any
) -> Table:
    """Return the first rows; where the table is split by rank or step, a first column names them."""
    of = [Column("of", grain_of, left=True)] if _is_split(rows) else []
    return table_of(title, [*of, *columns], rows, limit, **parts)


def _is_split(rows: Columns | Sequence[SplitRow]) -> bool:
    if isinstance(rows, Columns):
        return len(rows) > 0 and any(name in rows for name in GRAINS)
    return any(row.rank is not None or row.step is not None for row in rows)


def overall(shown: Shown, limit: int | None) -> list[Table]:
    """Return where the time went: a column per rank, or the spread over many ranks; then how steps differ."""
    overall = shown.tables["overall"]
    ranks = rows_of(CaptureRow, overall)
    spread = {row.metric: row for row in rows_of(RankSummaryRow, shown.tables["rank_summary"])}
    beside = len(ranks) <= RANKS_BESIDE
    heads = [f"rank {number(row.rank)}" for row in ranks] if beside else ["minimum", "median", "maximum", "at"]

    def numbers(name: str) -> list[str]:
        if not beside:
            return _spread(name, spread.get(name))
        values = [getattr(row, name, None) for row in ranks]
        return [cell(value, unit_of(name), *values) for value in values]

    def part(name: str) -> str:
        of_whole = spread[name].share if name in spread else None
        return "" if of_whole is None else share(of_whole)

    of_steps = {row.metric: row for row in rows_of(StepSummaryRow, shown.tables["step_summary"])}

    def per_step(name: str) -> str:
        row = of_steps.get(name)
        if row is None:
            return MISSING_TEXT
        # where rows are means of several steps, no median is known
        value = row.mean if row.median is None else row.median
        return cell(value, unit_of(name), value)

    hidden = () if has_device(shown) else _DEVICE_ONLY
    rows = [name for name in _BREAKDOWN if name not in hidden and overall.has(name)]
    timelines = ", ".join(dict.fromkeys(str(row.timeline) for row in ranks))
    what = steps_words(shown.options.steps) if shown.options.steps else "whole capture"
    has_steps = len(shown.tables["steps"]) > 1
    if has_steps:
        over = steps_words(shown.options.steps) if shown.options.steps else "the whole capture"
        what = f"per step and over {over}"
    title = f"Overall, {what} ({timelines} timeline, {counted(len(ranks), 'rank')})"
    columns = [
        Column("metric", lambda name: name_number(shown, name, _BREAKDOWN), **WORDS),
        *([Column("per step", per_step)] if has_steps else []),
        group(map(Column, heads), numbers), Column("share", part),
    ]  # fmt: skip
    return [table_of(title, columns, rows, note=_SPAN if has_device(shown) else ""), _steps(shown)]


def _spread(name: str, row: RankSummaryRow | StepSummaryRow | None) -> list[str]:
    """Return minimum, median, maximum and where the maximum is."""
    if row is None:
        return [MISSING_TEXT] * 4
    ends = [cell(end, unit_of(name), row.maximum) for end in (row.minimum, row.median, row.maximum)]
    places = [f"rank {number(row.maximum_rank)}"] if row.maximum_rank is not None else []
    if isinstance(row, StepSummaryRow) and row.maximum_step is not None:
        places.append(f"step {number(row.maximum_step)}")
    return [*ends, ", ".join(places)]


def _steps(shown: Shown) -> Table:
    """Return the spread over all steps and ranks. Where rows are means of several steps, at most the shortest and the
    longest one are known.
    """
    summary = {row.metric: row for row in rows_of(StepSummaryRow, shown.tables["step_summary"])}
    steps = shown.tables["steps"]
    means = bool(summary) and all(row.median is None for row in summary.values())

    def numbers(name: str) -> list[str]:
        row = summary[name]
        if not means:
            return _spread(name, row)
        return [cell(end, unit_of(name), row.mean, row.maximum) for end in (row.minimum, row.mean, row.maximum)]

    names = ("duration_ns", "e2e_ns", *PARTS_OF_STEP, "samples_per_second")
    rows = [name for name in names if name in summary and summary[name].mean]
    heads = [Column("minimum"), Column("mean" if means else "median"), Column("maximum")]
    heads += [] if means else [Column("maximum at", left=True)]
    several = f", means of {counted(sum(steps.listed('steps')), 'step')}" if means else ""
    title = f"Steps ({counted(len(steps), 'row')} of rank and step{several})"
    words = Column("metric", lambda name: name_number(shown, name, _BREAKDOWN).strip(), **WORDS)
    return table_of(title, [words, group(heads, numbers)], rows)


def operators(shown: Shown, limit: int | None) -> list[Table]:
    """Return operators with the most time, summed over modules, phases and types; device times where there is a device.

    `share`: of the self time of all ops. `average`, `minimum`, `maximum`: of a call, with what it calls.
    """
    times: dict[str, Column] = {}
    for place in ("device", "host") if has_device(shown) else ("host",):
        total = Column(f"{place} total", drop=3 if times else 2)
        times |= {f"{place}_self_ns": Column(f"{place} self"), f"{place}_total_ns": total}
    single_calls = calls_of(shown, "operator", _query_of_operator)
    columns = [OPERATOR, SHAPES, replace(_CALLS, link=single_calls), _PER_STEP, together("ns", times), _SHARE]
    columns.append(per_call(self_time_column(shown).replace("self", "total"), 1, 4, 4))
    links = series_of(shown.run.get("workload"), _name_of_operator)
    title = f"Operators{_over_all(shown)}"
    return [_table(title, columns, sum_operators(shown), limit, kind=OperatorRow, links=links)]


def _query_of_operator(row: OperatorRow) -> list[tuple[str, str | None]]:
    return [("--calls", row.name), ("--shapes", row.input_shapes)]


def _name_of_operator(row: OperatorRow) -> str:
    return row.name


def kernels(shown: Shown, limit: int | None) -> list[Table]:
    """Return kernels, then copies and memsets, with the most time; with shapes where rows look alike without.

    The number per step is that of all rows of a kernel, and stands in the first of them.
    """
    single_calls = calls_of(shown, "kernel", _query_of_kernel)
    found = []
    for title, name, first in (("Kernels", "kernels", "kernel"), ("Copies and memsets", "copies", "copy or memset")):
        every, is_copy = shown.tables[name], name == "copies"
        own = _distinguish(rows_of(KernelRow, every.head(limit)))
        unlinked = not is_copy and bool(own) and {*every.listed("op")} == {UNLINKED_OP}
        launched_by = [] if unlinked else [_kernel.text("launched by", lambda row: readable(row.row.op), **UNDER)]
        columns = [
            _kernel.text(first, lambda row: row.name, **NAME), *launched_by,
            _kernel.text("input shapes", lambda row: row.input_shapes, **UNDER),
            _kernel.text("category", lambda row: row.row.category, drop=2),
            *map(_of_kernel, (replace(_CALLS, link=single_calls),)),
            _kernel.number("per step", lambda row: format_ns(row.row.per_step_ns) if row.is_first else ""),
            *map(_of_kernel, [_TOTAL, _SHARE, *([_BYTES] if is_copy else []), per_call("total_ns", 1, 1, 1)]),
        ]  # fmt: skip
        if _is_split(every):
            columns.insert(0, _kernel.text("of", lambda row: grain_of(row.row)))
        note = "No launch of them is in the capture, so no operator stands beside them." if unlinked else ""
        links = series_of(shown.run.get("workload"), _name_of_kernel, ("--kind", "kernel"))
        found.append(
            table_of(
                f"{title}{_over_all(shown)}", columns, own, None, more=len(every) - len(own), note=note, links=links
            )
        )
    return found


class _ShownKernel(Struct, frozen=True):
    """A kernel with the name and the shapes to show. `is_first`: it is the first row of its kernel."""

    row: KernelRow
    name: str
    input_shapes: str
    is_first: bool


_kernel: Final = ColumnsOf(_ShownKernel)


def _of_kernel(column: Column) -> Column:
    """Return the column of a row of `kernels` as that of a kernel with its name."""
    link = column.link
    if isinstance(column, Group):
        cells_of = column.cells
        return replace(column, cells=lambda shown: cells_of(shown.row))
    cell_of = column.cell
    of_row = None if link is None else lambda shown: link(shown.row)
    return replace(column, cell=lambda shown: cell_of(shown.row), link=of_row)


def _query_of_kernel(row: KernelRow) -> list[tuple[str, str | None]]:
    return [("--calls", row.name), ("--op", _exactly(row.op)), ("--shapes", row.input_shapes)]


def _name_of_kernel(shown: _ShownKernel) -> str:
    return shown.row.name


def _distinguish(rows: Sequence[KernelRow]) -> list[_ShownKernel]:
    """Return each kernel with the name and the shapes to show.

    Shapes (else those of its operator) where rows would look alike, the profiler's own name where they still do.
    """
    places: dict[tuple[str | None, ...], int] = {}
    first_rows = set()
    for place, row in enumerate(rows):
        series = (grain_of(row), row.canonical_name, row.input_shapes, row.category)
        if series not in places:
            first_rows.add(place)
        places.setdefault(series, place)
    names = [readable(row.canonical_name or row.name) for row in rows]
    keys = [(grain_of(row), name, row.op) for row, name in zip(rows, names, strict=True)]
    alike = Counter(keys)
    shapes = []
    for row, key in zip(rows, keys, strict=True):
        shapes.append((row.input_shapes or row.op_input_shapes or "") if alike[key] > 1 else "")
    still_alike = Counter(zip(keys, shapes, strict=True))
    found = []
    for place, row in enumerate(rows):
        is_alone = still_alike[keys[place], shapes[place]] == 1
        name = names[place] if is_alone else readable(row.name)
        found.append(_ShownKernel(row, name, shapes[place], place in first_rows))
    return found


def metrics(shown: Shown, limit: int | None) -> list[Table]:
    """Return, for the kernels with most time, the pipes that worked longest in their calls; then all metrics, of each
    kernel those that are nothing but zeros last.
    """

    def pipe(row: KernelPipeRow) -> str:
        value = format_ns((row.mean or 0.0) * NS_PER_US) if row.kind == PIPE_TIME else measured(row.mean)
        return f"{(row.metric or '').partition('(')[0].removesuffix('_time')} {value}"

    def below(pipes: KernelPipes) -> str:
        return ", ".join(pipe(own) for own in pipes.rows if own.metric)

    kernels = group_pipes(shown)
    of_kernel = ColumnsOf(KernelPipes)
    columns = [
        of_kernel.text("kernel", lambda pipes: readable(pipes.first.canonical_name or pipes.first.name), **NAME),
        of_kernel.text("input shapes", lambda pipes: cells.blank(pipes.first.input_shapes), **UNDER),
        of_kernel.number("calls", lambda pipes: number(pipes.first.calls)),
    ]
    # torch.profiler states occupancy of a kernel and no time of its cores
    if any(pipes.first.core_time_ns for pipes in kernels):
        columns.append(of_kernel.number("core time", lambda pipes: format_ns(pipes.first.core_time_ns)))
    if _is_split(shown.tables["kernel_pipes"]):
        columns.insert(0, of_kernel.text("of", lambda pipes: grain_of(pipes.first)))
    busiest = table_of("Kernel metrics, means of a call", columns, kernels, limit, below=below)
    metric = ColumnsOf(MetricRow)
    columns = [
        metric.text("kernel", lambda row: readable(row.canonical_name or row.name), **NAME), SHAPES,
        metric.text("metric", lambda row: readable(row.metric), **NAME), _CALLS,
        cells.measures("mean", "minimum", "maximum"),
    ]  # fmt: skip
    return [busiest, _table("Kernel metrics", columns, order_metrics(shown), limit)]


def communication(shown: Shown, limit: int | None) -> list[Table]:
    """Return collectives with the most time; of the parts of it those that the source tells apart."""
    rows = shown.tables["communication"]
    times = {"total_ns": Column("total"), "exposed_ns": Column("exposed")}
    parts = sections.collective_parts(rows.listed("split_by"))
    times |= {name: column for name, column in parts.items() if rows.has(name)}
    single_calls = calls_of(shown, "collective", _query_of_collective)
    columns = [
        *COLLECTIVE, replace(_CALLS, link=single_calls), replace(_BYTES, drop=4), replace(_PER_STEP, drop=7),
        together("ns", times),
        *[Column("split by", of("split_by"), drop=6)] * rows.has("split_by"), per_call("total_ns", 5, 5, 5),
    ]  # fmt: skip
    return [_table(f"Communication{_over_all(shown)}", columns, rows, limit, kind=CollectiveRow)]


def _query_of_collective(row: CollectiveRow) -> list[tuple[str, str | None]]:
    return [("--calls", row.kind), ("--group", _exactly(row.group_role))]


def links(shown: Shown, limit: int | None) -> list[Table]:
    """Return what links moved and how fast: per transport and group, from rank to rank, and by size of packet."""
    found, every = [], rows_of(LinkTotalRow, shown.tables["link_totals"])
    link = ColumnsOf(LinkTotalRow)
    transport = link.text("transport", lambda row: readable(row.transport))
    moved = [
        _BYTES, link.number("transit", lambda row: format_ns(row.transit_ns)),
        link.number("GB/s", lambda row: cells.rate(row.bandwidth_gb_per_s)),
    ]  # fmt: skip
    for level, title, columns in (
        (TRANSPORT, "Communication links", [
            transport, link.text("group", lambda row: cells.group_words(row.group_role, row.group_size), **WORDS),
            *moved, link.number("large packets", lambda row: share(row.large_packet_ratio)),
        ]),
        (LINK, "Links between ranks", [
            link.number("from rank", lambda row: number(row.source_rank)),
            link.number("to rank", lambda row: number(row.target_rank)), transport, *moved,
        ]),
        (PACKET, "Packets", [
            transport, link.number("packet size", lambda row: format_bytes(row.packet_bytes)),
            link.number("packets", lambda row: number(row.packets)), *moved,
        ]),
    ):  # fmt: skip
        own = [row for row in every if row.level == level]
        if level == PACKET:
            own.sort(key=lambda row: -(row.bytes or 0))
        found.append(_table(title, columns, own, limit))
    return found


def memory(shown: Shown, limit: int | None) -> list[Table]:
    """Return operators that allocate most."""

    def allocator(row: AllocatedRow) -> str:
        return sections.through(row.op, row.allocator, row.more_allocators)

    allocated = ColumnsOf(AllocatedRow)
    sizes = {"bytes": Column("bytes"), "unreleased_bytes": Column("unreleased")}
    columns = [
        _OP, SHAPES, allocated.text("allocator", allocator, **UNDER), _COMPONENT, Column("allocations", _CALLS.cell),
        together("bytes", sizes), col("held", "held_ns", drop=1),
    ]  # fmt: skip
    title = "Memory allocated by operators, whole capture"
    return [_table(title, columns, shown.tables["memory"], limit, kind=AllocatedRow)]


def memory_over_time(shown: Shown, limit: int | None) -> Iterator[Table]:
    """Yield the curve of memory with its numbers, of the rank and the component that held most."""
    course = find_memory_course(shown)
    if course is None:
        return
    text = cells.form("bytes", [size for _, size in course.points])
    last = course.points[-1][0] * NS_PER_S
    columns = [
        Column("after", lambda point: format_ns(point[0] * NS_PER_S, time_unit(last))),
        Column("allocated", lambda point: text(point[1])),
    ]
    title = f"Memory over time, {_name_course(course)}"
    curve = Curves("bytes", ((_name_course(course), course.points),))
    yield table_of(title, columns, course.points, limit, section="memory", chart=curve)


def _name_course(course: MemoryCourse) -> str:
    return f"rank {number(course.rank)}, {course.component}"


def memory_peak(shown: Shown, limit: int | None) -> list[Table]:
    """Return who held the memory when it was most, of the rank with the highest peak; with a line per component."""
    peak = find_highest_peak(shown)
    peaks, own, rank = peak.totals, peak.owners, peak.rank
    several = len(peaks) > 1
    owner = ColumnsOf(PeakOwnerRow)
    columns = [
        _OP, SHAPES, MODULE, owner.text("allocator", lambda row: sections.through(row.op, row.allocator), **UNDER),
        *[_COMPONENT] * several, Column("blocks", _CALLS.cell, drop=1), _BYTES, _SHARE,
        owner.number("since", lambda row: _since(row.first_ns, row.first_step), drop=2), CODE,
    ]  # fmt: skip
    first = next(iter(peaks.values()), None)
    when = f" (rank {number(rank)}, {_since(first.peak_ns, first.peak_step)})" if first and own else ""
    note = f"The rank with the highest peak of {peak.ranks}." if peak.ranks > 1 and own else ""
    found = table_of(f"Memory at the peak, by owner{when}", columns, own, limit, note=note)
    sums = [
        [f"= peak of {component}", "", "", "", *[component] * several, "", cell(row.bytes, "bytes")]
        for component, row in peaks.items()
    ]
    return [sections.with_sums(found, sums)]


def _since(time_ns: int | None, step: int | None) -> str:
    """Return a moment: its time from the start of the capture, and its step."""
    if time_ns is None:
        return ""
    where = f", step {number(step)}" if step is not None and step >= 0 else ""
    return f"{cell(time_ns, 'ns')}{where}"


def memory_blocks(shown: Shown, limit: int | None) -> list[Table]:
    """Return the largest single allocations."""

    def held(row: BlockRow) -> str:
        return "not released" if row.is_released == 0 else cell(row.held_ns, "ns")

    rows = sorted(rows_of(BlockRow, shown.tables["memory_blocks"]), key=lambda row: -(row.bytes or 0))
    block = ColumnsOf(BlockRow)
    columns = [
        _OP, SHAPES, MODULE, col("rank", drop=1), replace(_COMPONENT, drop=2), _BYTES,
        block.number("at", lambda row: _since(row.time_ns, row.step)), block.number("held", held), CODE,
    ]  # fmt: skip
    return [table_of("Largest single allocations", columns, rows, limit)]


def counters(shown: Shown, limit: int | None) -> list[Table]:
    """Return a line per table and measurement of the profiler: over how many things, its mean where it is of one, and
    where it is largest; then every number, those that never were anything but zero last.
    """
    summary, counter = ColumnsOf(CounterSummaryRow), ColumnsOf(CounterRow)
    columns = [
        summary.text("source", lambda row: readable(row.source)),
        summary.text("measurement", lambda row: readable(row.attribute), **NAME),
        summary.number("number", lambda row: number(row.names), drop=1),
        cells.measures("mean", "smallest", "largest"),
        summary.text("largest of", lambda row: readable(row.max_name), **NAME),
    ]
    title = f"Counters of the {'log' if is_log(shown) else 'profiler'}"
    overview = _table(title, columns, shown.tables["counter_summary"], limit, kind=CounterSummaryRow)
    columns = [
        counter.text("source", lambda row: readable(row.source)),
        counter.text("name", lambda row: readable(row.name), **NAME),
        counter.text("measurement", lambda row: readable(row.attribute), **NAME),
        counter.number("values", lambda row: number(row.calls), drop=1),
        cells.measures("mean", "minimum", "maximum"),
    ]
    return [overview, _table("All counters", columns, order_counters(shown), limit)]


def argument_tables(shown: Shown, limit: int | None) -> list[Table]:
    """Return with which arguments operators were called."""
    return operator_arguments.tables_of_run(shown.tables, limit, _table)


def input_tables(shown: Shown, limit: int | None) -> list[Table]:
    """Return the operations of the data pipeline, and the queues behind them."""
    return input_pipeline.tables_of_run(shown.tables, limit, _table)


def idle(shown: Shown, limit: int | None) -> list[Table]:
    """Return why the device does nothing, and how far ahead of it the host launches."""
    single_gaps = calls_of(shown, "idle", _query_of_idle)
    why = [*sections.WHY_IDLE, col("gaps", link=single_gaps), _PER_STEP, col("total", "ns"), _SHARE]
    ahead = [
        col("stream"), col("kernels"),
        together("ns", {"mean_lead_ns": Column("mean lead"), "max_lead_ns": Column("largest")}),
        col("launched while the device is busy", "queued_share"),
    ]  # fmt: skip
    queues = sorted(rows_of(QueueRow, shown.tables["queues"]), key=lambda row: -row.kernels)
    return [
        _table(f"Idle time of the device{_over_all(shown)}", why, shown.tables["idle"], limit, kind=IdleRow),
        table_of("Launches ahead of the device", ahead, queues, limit),
    ]


def _query_of_idle(row: IdleRow) -> list[tuple[str, str | None]]:
    return [("--calls", label_idle(row.cause, row.place or ""))]


def _simple(title: str, name: str, *columns: Column) -> Callable[[Shown, int | None], list[Table]]:
    """Return what makes a section of one table, whose columns are always the same."""
    return lambda shown, limit: [
        _table(f"{title}{_over_all(shown)}", columns, shown.tables[name], limit, kind=SplitRow)
    ]


_DRAWN_SECTIONS: Final[Mapping[str, Callable[[Shown, int | None], list[Table]]]] = {
    "overall": overall, "operator": operators, "kernel": kernels, "metric": metrics, "communication": communication,
    "link": links, "memory": memory, "memory_peak": memory_peak, "memory_block": memory_blocks, "counter": counters,
    "input": input_tables, "argument": argument_tables,
    "kernel_type": _simple(
        "Kernel types", "kernel_types", col("kernel type", "type", **NAME),
        col("core type", "core_type"), _CALLS, _TOTAL, _SHARE, per_call("total_ns", 1, 1, 1),
    ),
    "module": _simple(
        "Modules", "modules", col("module", **NAME), col("phase"),
        Column("op calls", _CALLS.cell, drop=1), _PER_STEP,
        together("ns", {"device_self_ns": Column("device self"), "host_self_ns": Column("host self")}),
    ),
    "idle": idle,
    "api": _simple(
        "Host API calls", "api", col("API call", "name", **NAME), col("level"),
        _CALLS, _PER_STEP, together("ns", {"total_ns": Column("total"), "self_ns": Column("self")}),
        per_call("total_ns", 1, 1, 1),
    ),
    "efficiency": lambda shown, limit: [efficiency_table(shown.tables.get("efficiency"), limit)],
}  # fmt: skip
"""Section -> its tables, of those that are drawn in their own way."""


def tables_of_section(word: str, shown: Shown, limit: int | None) -> list[Table]:
    """Return the tables of a section; one that is not drawn in its own way has a column for each part of its key, the
    calls, the time and its share.
    """
    if word in _DRAWN_SECTIONS:
        return _DRAWN_SECTIONS[word](shown, limit)
    section = SECTION[word]
    table = section.tables[0]
    keys = [col(name.replace("_", " "), name) for name in MATCHED_COLUMNS[table].key]
    return _simple(section.title_of_run, table, *keys, _CALLS, _TOTAL, _SHARE)(shown, limit)
