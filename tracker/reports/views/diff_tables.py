"""The tables of a diff by section: what changed, both sides, the change, and the verdict where there is one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from tracker.detect import DEFAULTS
from tracker.reports import cells
from tracker.reports.cells import (
    ColumnsOf,
    col,
    diff_text,
    group_words,
    number,
    of,
    pair,
    readable,
    share,
    tone,
    values,
)
from tracker.reports.commands import command
from tracker.reports.document import NAME, PLACE, UNDER, WORDS, Column, Curves, Strip, Table, Target, group, table
from tracker.reports.plot import drawn_as_plot
from tracker.reports.rows import rows_of, table_of, unit_of
from tracker.reports.views import input_pipeline, operator_arguments, sections
from tracker.reports.views.sections import (
    COLLECTIVE,
    OPERATOR,
    SHAPES,
    SIDES,
    RowKind,
    collective_parts,
    series_of,
)
from tracker.results import BOTH, Cause, Diff
from tracker.results.columns import CALLS, MATCHED_COLUMNS, Measure
from tracker.results.diff_rows import (
    AllocatedChange,
    ApiChange,
    CollectiveChange,
    CounterChange,
    KernelChange,
    KernelMetricRow,
    LinkChange,
    MatchedRow,
    MemoryBlockRow,
    MemoryPeakRow,
    ModuleChange,
    OperatorChange,
    OverallRow,
    TreeChange,
)
from tracker.results.sections import SECTION
from tracker.results.verdicts import CHANGED, EXCUSED, REASONS, STILL, JudgedRow
from tracker.units import MISSING_TEXT, NS_PER_US, format_diff, format_ns

if TYPE_CHECKING:
    from tracker.columns import Columns

_MOMENTS: Final = 40
"""Rows of a curve of memory, about."""
_DRAWN: Final = 30
"""Rows whose runs are drawn."""
_MEANS: Final = (
    *(Column(side, of(f"{side}_mean", cells.measured)) for side in SIDES), col("change %", "diff"),
)  # fmt: skip
_HEADS: Final = (*map(Column, SIDES), Column("change"), Column("change %"))


_OfSeries = OverallRow | OperatorChange | MatchedRow | AllocatedChange | TreeChange
"""Rows that end with VERDICT_COLUMNS."""


def _calls(row: _OfSeries) -> str:
    return cells.calls(row.baseline_calls, row.candidate_calls)


def sides(calls: str = "calls", of: str = "ns") -> list[Column]:
    """Return the columns that every comparison ends with: calls (unless ""), both values, change, relative change.

    `of`: the unit of the values, which their columns end with.
    """

    def numbers(row: Any) -> list[str]:
        before, after, delta = (getattr(row, f"{name}_{of}") for name in (*SIDES, "delta"))
        return [*values(of, before, after, delta), diff_text(row.diff, row.status)]

    return [*([Column(calls, _calls, drop=1)] if calls else []), group(_HEADS, numbers)]


def verdicts(rows: Columns, status: Callable[[Any], str] = lambda row: row.status) -> list[Column]:
    """Return the columns of the verdict, of the change that it rests on and of q; none where no row was judged.

    `status`: which side has a row.
    """
    if not rows.has("verdict"):
        return []

    def cells_of(row: _OfSeries) -> list[str]:
        word = cells.verdict_word(row.verdict, status(row), row.reason)
        return [word, cells.judged_text(row.diff, row.judged_diff), cells.q_text(row.q)]

    return [group((Column("verdict", left=True), Column("judged", drop=2), Column("q", drop=3)), cells_of)]


def metric_words(diff: Diff) -> str:
    """Return what the times of operators are, in words."""
    return "host self time" if diff.metric == "host_self_ns" else "device self time"


def filters(diff: Diff) -> str:
    """Return the filters that leave operators out of the tables, as on the command line; empty without any."""
    chosen = diff.options
    words = [("--op", chosen.op), ("--module", chosen.module)]
    if chosen.minimum_ns is not None:
        words.append(("--min-us", f"{chosen.minimum_ns / NS_PER_US:g}"))
    return command(*(part for name, value in words if value for part in (name, value)))


def _measures_with_words(table: str) -> list[Column]:
    """Return a column for each number of a table that has one of its own in text: that of both sides."""
    return [_column_of(measure) for measure in MATCHED_COLUMNS[table].all_measures if measure.word]


def _column_of(measure: Measure) -> Column:
    unit = unit_of(measure.name)

    def both_sides(row: Any) -> str:
        before, after = (getattr(row, f"{side}_{measure.name}") for side in SIDES)
        if unit == "count":
            return cells.calls(before, after)
        return pair(*values(unit, before, after, None)[:2])

    return Column(measure.word, both_sides)


def _compared(
    title: str, keys: Sequence[Column], rows: Columns, limit: int | None, *extra: Column, of: str = "ns",
    calls: str = "calls", **parts: Any,
) -> Table:  # fmt: skip
    """Return rows by change: their keys, both sides, `extra` columns, and verdicts where there are any."""
    columns = [*keys, *sides(calls, of), *extra, *verdicts(rows)]
    has_verdicts = rows.has("verdict")
    if has_verdicts:
        reasons = rows.listed("reason") if "reason" in rows else repeat(None)
        parts["findings"] = sum(map(is_finding, rows.listed("verdict"), reasons))

    def colour(row: Any) -> str:
        return tone(getattr(row, f"delta_{of}"), row.diff, row.status, row.verdict if has_verdicts else None)

    return table_of(title, columns, rows, limit, tone=colour, **parts)


def is_finding(verdict: str | None, reason: str | None) -> bool:
    """Return whether a row changed by its verdict, and no user excused it."""
    return verdict in CHANGED and verdict != "SUSPECT" and reason != EXCUSED


def _series(diff: Diff, name: Callable[[RowKind], str], kind: str) -> Callable[[RowKind], Target | None]:
    """Return what finds the history of the series of this kind that a row is about. `name`: what it calls that."""
    return series_of(diff.candidate.workload, name, ("--kind", kind))


def overall(diff: Diff, limit: int | None) -> list[Table]:
    """Return where the time of a step went, on both sides; what is zero on both is left out."""
    rows = diff.tables["overall"]
    shown = [row for row in rows_of(OverallRow, rows) if not row.baseline_value == row.candidate_value == 0]
    counted = any(row.baseline_calls is not None or row.candidate_calls is not None for row in shown)

    def title(row: OverallRow) -> str:
        return "  " * (row.level or 0) + (row.title or row.metric)

    def numbers(row: OverallRow) -> list[str]:
        # a rate is no quotient of equal units: no per cent
        unit = "count" if row.metric == "samples_per_second" else row.unit
        return [*values(unit, row.baseline_value, row.candidate_value, row.delta), format_diff(row.diff)]

    def shares(row: OverallRow) -> str:
        return pair(share(row.baseline_share), share(row.candidate_share))

    def colour(row: OverallRow) -> str:
        return tone(cells.cost(row), row.diff, verdict=row.verdict)

    number_of = ColumnsOf(OverallRow)
    columns = [number_of.text("metric", title, **WORDS), group(_HEADS, numbers)]
    columns.append(number_of.number("share of step", shares, drop=1))
    if counted:
        columns.append(number_of.number("calls", _calls, drop=2))
    columns += verdicts(rows, status=lambda row: BOTH)
    return [
        table_of(
            SECTION["overall"].title, columns, shown, tone=colour, links=lambda row: history_of_run(diff, row.metric),
        )
    ]  # fmt: skip


def history_of_run(diff: Diff, metric: str) -> Target | None:
    """Return the history of a number of whole runs; None for one that no series follows."""
    return sections.history_of(diff.candidate.workload, sections.SERIES_OF_RUN.get(metric), ("--kind", "run"))


def operators(diff: Diff, limit: int | None) -> list[Table]:
    """Return operators by change of their own time, with that of the host beside the device's; then what carries the
    change, with the place in the code.
    """

    def name_of(row: OperatorChange) -> str:
        before, own = row.baseline_name, readable(row.name)
        return f"{before} => {own}" if before and before != row.name else own

    ops = diff.tables["ops"]
    rows = ops.taken(ops.known("baseline_ns") | ops.known("candidate_ns"))
    host = col("host change", "host_delta_ns", cells.change, drop=4)
    on_device = diff.metric == "device_self_ns" and ops.has("host_delta_ns")
    found = _compared(
        SECTION["operator"].title.format(time=metric_words(diff)),
        [ColumnsOf(OperatorChange).text("operator", name_of, **NAME), SHAPES],
        rows, limit,
        *([host] if on_device else []), below=_still_open, lead=_lead(diff, rows), kind=OperatorChange,
        links=series_of(diff.candidate.workload, name_of_operator),
    )  # fmt: skip
    strips: tuple[Strip | None, ...] = ()
    if diff.samples.has_repeats:
        first = rows.head(min(_DRAWN, len(found.rows))).rows("name", "input_shapes")
        drawn = diff.samples.of_op((name, cells.blank(shapes)) for name, shapes in first)
        strips = (*drawn, *[None] * (len(found.rows) - len(drawn)))
    found = replace(found, note=_too_small(rows.head(limit)), strips=strips)
    causes = _causes(diff, limit)
    return [found, causes] if causes.rows else [found]


def name_of_operator(row: OperatorChange | AllocatedChange) -> str:
    """Return what the series of an operator is called."""
    return row.name


def _lead(diff: Diff, rows: Columns) -> str:
    """Return what the rows of the operators are, where a reader may take them for something else."""
    found = []
    if chosen := filters(diff):
        found.append(f"Only what {chosen} lets through; what explains the change counts all operators.")
    if diff.options.match == "shape" and len({*rows.listed("name")}) < len(rows):
        found.append("A row for all shapes of an operator, as history follows it: --match name.")
    return " ".join(found)


def _still_open(row: JudgedRow) -> str:
    """Return what an older finding says of the row; "" for nothing."""
    reason = row.reason or ""
    return reason if reason.startswith(STILL) else ""


def _too_small(rows: Columns) -> str:
    """Say why rows are BELOW_LIMIT that have a clear change and a small q; "" where none is."""
    found = "verdict" in rows and ("BELOW_LIMIT", REASONS["CONTRIBUTION"]) in rows.rows("verdict", "reason")
    least = cells.percent(DEFAULTS.floor)
    return f"BELOW_LIMIT: significant, but too small a part of the step, usually below {least}." if found else ""


def _causes(diff: Diff, limit: int | None) -> Table:
    """Return the operators with the largest changes: by calls, by the time of each, and where they are in the code."""
    found = diff.explanation

    def name(cause: Cause) -> str:
        return readable(cause.name) + ("" if cause.status == BOTH else f" {cause.status}")

    def colour(cause: Cause) -> str:
        return cells.TONES.get(cause.verdict, "") if cause.verdict else "worse" if cause.delta_ns > 0 else "better"

    columns = [
        Column("operator", name, **NAME), Column("input shapes", lambda cause: cause.input_shapes, **UNDER),
        Column("change", lambda cause: cells.change(cause.delta_ns)),
        Column("of change", lambda cause: share(cells.leave_out_multiples(cause.share))),
        Column("by calls", lambda cause: cells.change(cause.calls_delta_ns), drop=1),
        Column("by time per call", lambda cause: cells.change(cause.per_call_delta_ns), drop=1),
    ]  # fmt: skip
    if any(cause.stands_out is not None for cause in found.causes[:limit]):
        words = {None: "", True: "yes", False: "no"}
        columns.append(Column("stands out", lambda cause: words[cause.stands_out], left=True, drop=4))
    columns.append(Column("where", lambda cause: cause.where, **PLACE))
    note = ""
    if found.cancelling:
        loss, gain = format_ns(found.gross_loss_ns), format_ns(abs(found.gross_gain_ns))
        note = f"Changes cancel each other: operators lost {loss} and gained {gain}."
    return table_of(
        "Operators by contribution, and where they are", columns, found.causes, limit, tone=colour, more=0, note=note,
        below=lambda cause: cause.why, links=lambda cause: sections.history_of(diff.candidate.workload, cause.name),
    )  # fmt: skip


def kernels(diff: Diff, limit: int | None) -> list[Table]:
    """Return kernels by change of their total time, with the type that an NPU's profiler names where it is not the
    name, and with their own shapes where that profiler states them.
    """
    rows = diff.tables["kernels"]

    def launched_by(row: KernelChange) -> str:
        return readable(row.op) + (f" and {number(row.more_ops)} more" if row.more_ops else "")

    def below(row: KernelChange) -> str:
        return "; ".join(filter(None, (row.why, _still_open(row))))

    kernel = ColumnsOf(KernelChange)
    keys = [
        kernel.text("kernel", lambda row: readable(row.name), **NAME),
        kernel.text("type", lambda row: "" if row.type == row.name else row.type or "", **UNDER), SHAPES,
        kernel.text("launched by", launched_by, **UNDER),
        kernel.text("category", lambda row: row.category or MISSING_TEXT, drop=2),
    ]  # fmt: skip
    links = _series(diff, _name_of_kernel, "kernel")
    extra = _measures_with_words("kernels")
    found = _compared(SECTION["kernel"].title, keys, rows, limit, *extra, kind=KernelChange, below=below, links=links)
    return [replace(found, note=_too_small(rows.head(limit)))]


def _name_of_kernel(row: KernelChange) -> str:
    return row.name


def metrics(diff: Diff, limit: int | None) -> list[Table]:
    """Return kernel metrics of both sides, those of the kernel that changed most first."""
    metric = ColumnsOf(KernelMetricRow)
    columns = [
        metric.text("kernel", lambda row: readable(row.name), **NAME), SHAPES,
        metric.text("metric", lambda row: readable(row.metric), **NAME), *_MEANS,
        metric.number("of change", lambda row: share(row.share)), metric.number("moved", _moved, drop=1),
    ]  # fmt: skip

    def colour(row: KernelMetricRow) -> str:
        return tone(row.delta, row.diff) if row.moved else ""

    rows = diff.tables["kernel_metrics"]
    return [table_of(SECTION["metric"].title, columns, rows, limit, kind=KernelMetricRow, tone=colour)]


def _moved(row: KernelMetricRow) -> str:
    if row.moved is None:
        return MISSING_TEXT
    return "yes" if row.moved else "no"


def _span(name: str) -> Callable[[Any], str]:
    """Return what writes a time of both sides. `name`: of its columns, behind `baseline_` and `candidate_`."""

    def cell(row: Any) -> str:
        before, after = (getattr(row, f"{side}_{name}") for side in SIDES)
        return pair(*values("ns", before, after, None)[:2])

    return cell


def communication(diff: Diff, limit: int | None) -> list[Table]:
    """Return collectives by change of their total time; then the parts of that time, as far as they are known."""
    rows = diff.tables["communication"]
    exposed, links = Column("exposed", _span("exposed_ns"), drop=2), _series(diff, _kind_of_collective, "communication")
    extra = (exposed, *_measures_with_words("communication"))
    found = [
        _compared(SECTION["communication"].title, COLLECTIVE, rows, limit, *extra, links=links, kind=CollectiveChange)
    ]
    columns_of = collective_parts([*rows.listed("baseline_split_by"), *rows.listed("candidate_split_by")])
    parts = [name for name in columns_of if any(rows.has(f"{side}_{name}") for side in SIDES)]
    if not parts:
        return found
    columns = [*COLLECTIVE, *(replace(columns_of[name], cell=_span(name)) for name in parts)]

    def split_by(row: CollectiveChange) -> str:
        return pair(row.baseline_split_by or MISSING_TEXT, row.candidate_split_by or MISSING_TEXT)

    columns.append(Column("split by", split_by, drop=4))
    return [*found, table_of("Communication: the parts of its time", columns, rows, limit, kind=CollectiveChange)]


def _kind_of_collective(row: CollectiveChange) -> str:
    return row.kind


def links(diff: Diff, limit: int | None) -> list[Table]:
    """Return a line per collective and transport: what all links moved together, and how fast; then per two ranks."""
    rows = diff.tables["communication_links"]
    whole, ends = rows.taken(~rows.known("source_rank")), rows.taken(rows.known("source_rank"))

    def times(row: LinkChange) -> list[str]:
        numbers = values("ns", row.baseline_transit_ns, row.candidate_transit_ns, row.delta_ns)
        return [*numbers, diff_text(row.diff, row.status)]

    def rates(row: LinkChange) -> str:
        return pair(cells.rate(row.baseline_bandwidth_gb_per_s), cells.rate(row.candidate_bandwidth_gb_per_s))

    def large_packets(row: LinkChange) -> str:
        return pair(share(row.baseline_large_packet_ratio), share(row.candidate_large_packet_ratio))

    def sizes(row: LinkChange) -> str:
        return pair(*values("bytes", row.baseline_bytes, row.candidate_bytes, None)[:2])

    def colour(row: LinkChange) -> str:
        return tone(row.delta_ns, row.diff, row.status)

    link = ColumnsOf(LinkChange)
    keys = [
        link.text("communication", lambda row: readable(row.kind), **NAME),
        link.text("group", lambda row: group_words(row.group_role, row.group_size), **UNDER),
        link.text("transport", lambda row: readable(row.transport), drop=1),
    ]
    heads = (*map(Column, SIDES), Column("change", drop=1), Column("change %"))
    timed: list[Column] = [group(heads, times), link.number("GB/s", rates, drop=2)]
    large = link.number("large packets", large_packets, drop=3)
    columns = [*keys, link.number("bytes", sizes, drop=4), *timed, large]
    found = [table_of(SECTION["link"].title, columns, whole, limit, kind=LinkChange, tone=colour)]
    if len(ends):
        ranks = [
            link.number("from rank", lambda row: number(row.source_rank)),
            link.number("to rank", lambda row: number(row.target_rank)),
        ]
        title = "Links between ranks by change of transit time"
        found.append(table_of(title, [*keys, *ranks, *timed], ends, limit, kind=LinkChange, tone=colour))
    return found


def memory(diff: Diff, limit: int | None) -> list[Table]:
    """Return operators by change of the bytes that they allocate."""
    allocated = ColumnsOf(AllocatedChange)
    allocator = allocated.text(
        "allocator", lambda row: sections.through(row.name, row.allocator, row.more_allocators), **UNDER
    )
    return [
        _compared(
            SECTION["memory"].title, [OPERATOR, SHAPES, allocator], diff.tables["memory"], limit,
            of="bytes", calls="allocations", kind=AllocatedChange, links=_series(diff, name_of_operator, "memory"),
        )
    ]  # fmt: skip


def memory_over_time(diff: Diff) -> Iterator[Table]:
    """Yield the curves of memory with their numbers: their peaks, and moments between."""
    sides = (diff.baseline.label, diff.candidate.label)
    chart = Curves("bytes", tuple(zip(sides, diff.samples.curves, strict=False)))
    drawn = drawn_as_plot(chart)
    if drawn is None:
        return
    labels = [label for label, points in chart.curves if points]
    peaks = {max(range(len(own)), key=lambda at: own[at] or 0.0) for own in (one.values for one in drawn.series)}
    distance = math.ceil(len(drawn.names) / _MOMENTS)
    chosen = sorted({*range(0, len(drawn.names), distance), *peaks})
    # no side has a value before its first one
    chosen = [at for at in chosen if any(one.values[at] is not None for one in drawn.series)]
    text = cells.form("bytes", [value for one in drawn.series for value in one.values])
    rows = [[drawn.names[at], *(text(one.values[at]) for one in drawn.series)] for at in chosen]
    columns = [Column("moment", **WORDS), *map(Column, labels)]
    yield table("Memory over time", columns, [("", row) for row in rows], section="memory", is_first=False, chart=chart)


def memory_peak(diff: Diff, limit: int | None) -> list[Table]:
    """Return who held the memory when it was most, on both sides, by change; with the sum of each component."""
    rows = diff.tables["memory_peak"]
    every = rows_of(MemoryPeakRow, rows)
    components = sorted({row.component for row in every})
    owner = ColumnsOf(MemoryPeakRow)
    keys = [
        OPERATOR, SHAPES, sections.MODULE,
        owner.text("allocator", lambda row: sections.through(row.name, row.allocator), **UNDER),
        owner.text("component", lambda row: readable(row.component), drop=0 if len(components) > 1 else 9),
    ]  # fmt: skip
    found = _compared(
        SECTION["memory_peak"].title, keys, rows, limit, sections.CODE, of="bytes", calls="blocks", kind=MemoryPeakRow
    )
    sums = []
    is_filtered = bool(diff.options.op or diff.options.module)
    for component in components:
        own = [row for row in every if row.component == component]
        before = _add_up([row.baseline_bytes for row in own if row.status == BOTH or row.baseline_bytes is not None])
        after = _add_up([row.candidate_bytes for row in own if row.status == BOTH or row.candidate_bytes is not None])
        delta = None if before is None or after is None else after - before
        change = format_diff(None if delta is None or not before else delta / before)
        what = "these at the peak" if is_filtered else "peak"
        sums.append(
            [f"= {what} of {component}", "", "", "", component, "", *values("bytes", before, after, delta), change]
        )
    return [sections.with_sums(found, sums)]


def _add_up(sizes: Sequence[float | None]) -> float | None:
    """Return the sum of sizes; None where one of them is not known, and of none at all."""
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def memory_blocks(diff: Diff, limit: int | None) -> list[Table]:
    """Return the largest single allocations of both sides, the largest of an operator beside its largest."""

    def held(row: MemoryBlockRow) -> str:
        before = _time_held(row.baseline_bytes, row.baseline_is_released, row.baseline_held_ns)
        return pair(before, _time_held(row.candidate_bytes, row.candidate_is_released, row.candidate_held_ns))

    def code(row: MemoryBlockRow) -> str:
        return row.candidate_code_line or row.baseline_code_line or ""

    block = ColumnsOf(MemoryBlockRow)
    keys = [
        OPERATOR, SHAPES, block.text("allocator", lambda row: sections.through(row.name, row.allocator), **UNDER),
        block.number("place", lambda row: number(row.place), drop=1),
    ]  # fmt: skip
    extra = (block.number("held", held, drop=2), replace(sections.CODE, cell=code))
    rows = diff.tables["memory_blocks"]
    title = SECTION["memory_block"].title
    return [_compared(title, keys, rows, limit, *extra, of="bytes", calls="", kind=MemoryBlockRow)]


def _time_held(size: float | None, is_released: float | None, held_ns: float | None) -> str:
    """Return how long an allocation of a side was held; `size`: None where the side has none."""
    if size is None:
        return MISSING_TEXT
    return "not released" if is_released == 0 else cells.cell(held_ns, "ns")


def modules(diff: Diff, limit: int | None) -> list[Table]:
    """Return modules by change of the time of their operators."""

    def link(row: ModuleChange) -> Target | None:
        if diff.candidate.workload in cells.UNSAID:
            return None
        if not row.module:
            return None  # what runs in no module has no series of its own
        # its path may be a number, as a key that of a series
        return Target("history", (("--module", row.module), ("--workload", diff.candidate.workload)))

    module = ColumnsOf(ModuleChange)
    keys = [
        module.text("module", lambda row: readable(row.module), **NAME),
        module.text("phase", lambda row: readable(row.phase)),
    ]
    title = SECTION["module"].title.format(time=metric_words(diff))
    extra = _measures_with_words("modules")
    return [_compared(title, keys, diff.tables["modules"], limit, *extra, links=link, kind=ModuleChange)]


def _by_change(
    word: str, *keys: Column, links: Callable[[Diff], Callable[[Any], Target | None]] | None = None
) -> Callable[[Diff, int | None], list[Table]]:
    """Return what makes the section `word` of one table by change, whose columns are always the same.

    `links`: what finds the history of a row in a diff.
    """
    section = SECTION[word]

    def made(diff: Diff, limit: int | None) -> list[Table]:
        table = section.tables[0]
        calls = "calls" if CALLS in MATCHED_COLUMNS[table].measures else ""
        extra = _measures_with_words(table)
        of_rows = links(diff) if links is not None else ()
        return [_compared(section.title, keys, diff.tables[table], limit, *extra, calls=calls, links=of_rows)]

    return made


def _name_of_call(row: ApiChange) -> str:
    return row.name


def _idle(diff: Diff, limit: int | None) -> list[Table]:
    rows, extra = diff.tables["idle"], _measures_with_words("idle")
    return [_compared(SECTION["idle"].title, sections.WHY_IDLE, rows, limit, *extra, calls="")]


_COUNTER: Final = (
    col("source"), col("name", **NAME), col("measurement", "attribute", **NAME), *_MEANS,
)  # fmt: skip
_DRAWN_SECTIONS: Final[Mapping[str, Callable[[Diff, int | None], list[Table]]]] = {
    "overall": overall, "operator": operators, "kernel": kernels, "metric": metrics, "communication": communication,
    "link": links, "memory": memory, "memory_peak": memory_peak, "memory_block": memory_blocks, "module": modules,
    "api": _by_change(
        "api", col("API call", "name", **NAME), col("level", drop=2),
        links=lambda diff: _series(diff, _name_of_call, "api"),
    ),
    "idle": _idle,
    "kernel_type": _by_change(
        "kernel_type", col("kernel type", "type", **NAME),
        col("core type", "core_type", drop=2),
    ),
    "counter": lambda diff, limit: [
        table_of(SECTION["counter"].title, _COUNTER, diff.tables["counters"], limit, kind=CounterChange)
    ],
    "input": lambda diff, limit: input_pipeline.tables_of_diff(diff.tables, limit),
    "argument": lambda diff, limit: operator_arguments.tables_of_diff(diff.tables, limit),
    "efficiency": lambda diff, limit: [table_of(SECTION["efficiency"].title, [], [])],
}  # fmt: skip
"""Section -> its tables, of those that are drawn in their own way."""


def tables_of_section(word: str, diff: Diff, limit: int | None) -> list[Table]:
    """Return the tables of a section; one that is not drawn in its own way has a column for each part of its key."""
    if word in _DRAWN_SECTIONS:
        return _DRAWN_SECTIONS[word](diff, limit)
    key = MATCHED_COLUMNS[SECTION[word].tables[0]].key
    return _by_change(word, *(col(name.replace("_", " "), name) for name in key))(diff, limit)
