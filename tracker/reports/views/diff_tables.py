"""The tables of a diff by section: what changed, both sides, the change, and the verdict where there is one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from tracker.detect import DEFAULTS
from tracker.reports import cells
from tracker.reports.cells import col, diff_text, number, of, pair, readable, share, tone, values
from tracker.reports.commands import command
from tracker.reports.document import NAME, PLACE, UNDER, WORDS, Column, Curves, Strip, Table, Target, group, table
from tracker.reports.plot import drawn_as_plot
from tracker.reports.rows import Row, records, table_of, unit_of
from tracker.reports.views import input_pipeline, operator_arguments, sections
from tracker.reports.views.sections import COLLECTIVE, OPERATOR, SHAPES, SIDES, collective_parts, series_of
from tracker.results import BOTH, Cause, Diff
from tracker.results.columns import CALLS, MATCHED_COLUMNS, Measure
from tracker.results.sections import SECTION
from tracker.results.verdicts import CHANGED, EXCUSED, REASONS, STILL
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


def _calls(row: Row) -> str:
    return cells.calls(row["baseline_calls"], row["candidate_calls"])


def sides(calls: str = "calls", of: str = "ns") -> list[Column]:
    """Return the columns that every comparison ends with: calls (unless ""), both values, change, relative change."""
    names = (f"baseline_{of}", f"candidate_{of}", f"delta_{of}")
    numbers = group(_HEADS, lambda row: [*values(of, *(row[name] for name in names)), diff_text(row)])
    return [*([Column(calls, _calls, drop=1)] if calls else []), numbers]


def verdicts(rows: Columns) -> list[Column]:
    """Return the columns of the verdict, of the change that it rests on and of q; none where no row was judged."""
    if not rows.has("verdict"):
        return []
    heads = (Column("verdict", left=True), Column("judged", drop=2), Column("q", drop=3))
    return [group(heads, lambda row: [cells.verdict_word(row), cells.judged_text(row), cells.q_text(row.get("q"))])]


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

    def both_sides(row: Row) -> str:
        before, after = (row[f"{side}_{measure.name}"] for side in SIDES)
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
    if rows.has("verdict"):
        reasons = rows.listed("reason") if "reason" in rows else repeat(None)
        parts["findings"] = sum(map(is_finding, rows.listed("verdict"), reasons))
    return table_of(title, columns, rows, limit, tone=lambda row: tone(row, row[f"delta_{of}"]), **parts)


def is_finding(verdict: str | None, reason: str | None) -> bool:
    """Return whether a row changed by its verdict, and no user excused it."""
    return verdict in CHANGED and verdict != "SUSPECT" and reason != EXCUSED


def _series(diff: Diff, name: str, kind: str) -> Callable[[Row], Target | None]:
    """Return what finds the history of the series of this kind that the column `name` of a row names."""
    return series_of(diff.candidate.workload, name, ("--kind", kind))


def overall(diff: Diff, limit: int | None) -> list[Table]:
    """Return where the time of a step went, on both sides; what is zero on both is left out."""
    rows = diff.tables["overall"]
    shown = [row for row in records(rows) if not row["baseline_value"] == row["candidate_value"] == 0]
    counted = any(row[name] is not None for row in shown for name in ("baseline_calls", "candidate_calls"))

    def numbers(row: Row) -> list[str]:
        # a rate is no quotient of equal units: no per cent
        unit = "count" if row["metric"] == "samples_per_second" else row["unit"]
        return [*values(unit, row["baseline_value"], row["candidate_value"], row["delta"]), format_diff(row["diff"])]

    def shares(row: Row) -> str:
        return pair(*(share(row[f"{side}_share"]) for side in SIDES))

    columns = [
        Column("metric", lambda row: "  " * int(row["level"] or 0) + str(row["title"] or row["metric"]), **WORDS),
        group(_HEADS, numbers), Column("share of step", shares, drop=1),
        *[Column("calls", _calls, drop=2)] * counted, *verdicts(rows),
    ]  # fmt: skip
    return [
        table_of(
            SECTION["overall"].title, columns, shown, tone=lambda row: tone(row, cells.cost(row)),
            links=lambda row: history_of_run(diff, row["metric"]),
        )
    ]  # fmt: skip


def history_of_run(diff: Diff, metric: str) -> Target | None:
    """Return the history of a number of whole runs; None for one that no series follows."""
    return sections.history_of(diff.candidate.workload, sections.SERIES_OF_RUN.get(metric), ("--kind", "run"))


def operators(diff: Diff, limit: int | None) -> list[Table]:
    """Return operators by change of their own time, with that of the host beside the device's; then what carries the
    change, with the place in the code.
    """

    def name_of(row: Row) -> str:
        before, own = row.get("baseline_name"), readable(row["name"])
        return f"{before} => {own}" if before and before != row["name"] else own

    ops = diff.tables["ops"]
    rows = ops.taken(ops.known("baseline_ns") | ops.known("candidate_ns"))
    host = col("host change", "host_delta_ns", cells.change, drop=4)
    on_device = diff.metric == "device_self_ns" and ops.has("host_delta_ns")
    found = _compared(
        SECTION["operator"].title.format(time=metric_words(diff)), [Column("operator", name_of, **NAME), SHAPES],
        rows, limit,
        *([host] if on_device else []), below=_still_open, links=series_of(diff.candidate.workload, "name"),
        lead=_lead(diff, rows),
    )  # fmt: skip
    strips: tuple[Strip | None, ...] = ()
    if diff.samples.has_repeats:
        first = rows.head(min(_DRAWN, len(found.rows))).rows("name", "input_shapes")
        drawn = diff.samples.of_op((name, cells.blank(shapes)) for name, shapes in first)
        strips = (*drawn, *[None] * (len(found.rows) - len(drawn)))
    found = replace(found, note=_too_small(rows.head(limit)), strips=strips)
    causes = _causes(diff, limit)
    return [found, causes] if causes.rows else [found]


def _lead(diff: Diff, rows: Columns) -> str:
    """Return what the rows of the operators are, where a reader may take them for something else."""
    found = []
    if chosen := filters(diff):
        found.append(f"Only what {chosen} lets through; what explains the change counts all operators.")
    if diff.options.match == "shape" and len({*rows.listed("name")}) < len(rows):
        found.append("A row for all shapes of an operator, as history follows it: --match name.")
    return " ".join(found)


def _still_open(row: Row) -> str:
    """Return what an older finding says of the row; "" for nothing."""
    reason = str(row.get("reason") or "")
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
        Column("of change", lambda cause: share(cause.share)),
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

    def launched_by(row: Row) -> str:
        return readable(row["op"]) + (f" and {number(row['more_ops'])} more" if row["more_ops"] else "")

    def below(row: Row) -> str:
        return "; ".join(filter(None, (str(row["why"] or ""), _still_open(row))))

    keys = [
        col("kernel", "name", **NAME),
        Column("type", lambda row: "" if row["type"] == row["name"] else str(row["type"] or ""), **UNDER), SHAPES,
        Column("launched by", launched_by, **UNDER),
        Column("category", lambda row: str(row["category"] or MISSING_TEXT), left=True, drop=2),
    ]  # fmt: skip
    links = _series(diff, "name", "kernel")
    extra = _measures_with_words("kernels")
    found = _compared(SECTION["kernel"].title, keys, rows, limit, *extra, below=below, links=links)
    return [replace(found, note=_too_small(rows.head(limit)))]


def metrics(diff: Diff, limit: int | None) -> list[Table]:
    """Return kernel metrics of both sides, those of the kernel that changed most first."""
    moved = {True: "yes", False: "no"}
    columns = [
        col("kernel", "name", **NAME), SHAPES, col("metric", **NAME), *_MEANS,
        col("of change", "share"), Column("moved", lambda row: moved.get(row["moved"], MISSING_TEXT), drop=1),
    ]  # fmt: skip
    rows = diff.tables["kernel_metrics"]

    def colour(row: Row) -> str:
        return tone(row, row["delta"]) if row["moved"] else ""

    return [table_of(SECTION["metric"].title, columns, rows, limit, tone=colour)]


def _colour(row: Row) -> str:
    return tone(row, row["delta_ns"])


def _span(name: str) -> Callable[[Row], str]:
    """Return what writes a time of both sides."""
    return lambda row: pair(*values("ns", row[f"baseline_{name}"], row[f"candidate_{name}"], None)[:2])


def communication(diff: Diff, limit: int | None) -> list[Table]:
    """Return collectives by change of their total time; then the parts of that time, as far as they are known."""
    rows = diff.tables["communication"]
    exposed, links = Column("exposed", _span("exposed_ns"), drop=2), _series(diff, "kind", "communication")
    extra = (exposed, *_measures_with_words("communication"))
    found = [_compared(SECTION["communication"].title, COLLECTIVE, rows, limit, *extra, links=links)]
    columns_of = collective_parts([*rows.listed("baseline_split_by"), *rows.listed("candidate_split_by")])
    parts = [name for name in columns_of if any(rows.has(f"{side}_{name}") for side in SIDES)]
    if not parts:
        return found
    columns = [*COLLECTIVE, *(replace(columns_of[name], cell=_span(name)) for name in parts)]

    def split_by(row: Row) -> str:
        return pair(*(row[f"{side}_split_by"] or MISSING_TEXT for side in SIDES))

    columns.append(Column("split by", split_by, drop=4))
    return [*found, table_of("Communication: the parts of its time", columns, rows, limit)]


def links(diff: Diff, limit: int | None) -> list[Table]:
    """Return a line per collective and transport: what all links moved together, and how fast; then per two ranks."""
    rows = diff.tables["communication_links"]
    whole, ends = rows.taken(~rows.known("source_rank")), rows.taken(rows.known("source_rank"))

    def times(row: Row) -> list[str]:
        numbers = values("ns", row["baseline_transit_ns"], row["candidate_transit_ns"], row["delta_ns"])
        return [*numbers, diff_text(row)]

    def both(name: str, form: Callable[[float | None], str]) -> Callable[[Row], str]:
        return lambda row: pair(*(form(row[f"{side}_{name}"]) for side in SIDES))

    def sizes(row: Row) -> str:
        return pair(*values("bytes", row["baseline_bytes"], row["candidate_bytes"], None)[:2])

    keys = [*COLLECTIVE, col("transport", drop=1)]
    heads = (*map(Column, SIDES), Column("change", drop=1), Column("change %"))
    timed: list[Column] = [group(heads, times), Column("GB/s", both("bandwidth_gb_per_s", cells.rate), drop=2)]
    large = Column("large packets", both("large_packet_ratio", share), drop=3)
    columns = [*keys, Column("bytes", sizes, drop=4), *timed, large]
    found = [table_of(SECTION["link"].title, columns, whole, limit, tone=_colour)]
    if len(ends):
        ranks = [col("from rank", "source_rank"), col("to rank", "target_rank")]
        title = "Links between ranks by change of transit time"
        found.append(table_of(title, [*keys, *ranks, *timed], ends, limit, tone=_colour))
    return found


def memory(diff: Diff, limit: int | None) -> list[Table]:
    """Return operators by change of the bytes that they allocate."""
    return [
        _compared(
            SECTION["memory"].title, [OPERATOR, SHAPES, sections.ALLOCATOR], diff.tables["memory"], limit,
            of="bytes", calls="allocations", links=_series(diff, "name", "memory"),
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
    every = records(rows)
    components = sorted({row["component"] for row in every})
    keys = [OPERATOR, SHAPES, sections.MODULE, sections.ALLOCATOR]
    keys.append(col("component", drop=0 if len(components) > 1 else 9))
    found = _compared(SECTION["memory_peak"].title, keys, rows, limit, sections.CODE, of="bytes", calls="blocks")
    sums = []
    is_filtered = bool(diff.options.op or diff.options.module)
    for component in components:
        own = [row for row in every if row["component"] == component]
        peaks: list[float | None] = []
        for side in SIDES:
            sizes = [row[f"{side}_bytes"] for row in own if row["status"] == BOTH or row[f"{side}_bytes"] is not None]
            peaks.append(None if not sizes or None in sizes else sum(sizes))
        before, after = peaks
        delta = None if before is None or after is None else after - before
        change = format_diff(None if delta is None or not before else delta / before)
        what = "these at the peak" if is_filtered else "peak"
        sums.append(
            [f"= {what} of {component}", "", "", "", component, "", *values("bytes", before, after, delta), change]
        )
    return [sections.with_sums(found, sums)]


def memory_blocks(diff: Diff, limit: int | None) -> list[Table]:
    """Return the largest single allocations of both sides, the largest of an operator beside its largest."""

    def held(row: Row) -> str:
        texts = []
        for side in SIDES:
            is_kept = row[f"{side}_is_released"] == 0
            own = "not released" if is_kept else cells.cell(row[f"{side}_held_ns"], "ns")
            texts.append(MISSING_TEXT if row[f"{side}_bytes"] is None else own)
        return pair(*texts)

    def code(row: Row) -> str:
        return str(row["candidate_code_line"] or row["baseline_code_line"] or "")

    keys = [OPERATOR, SHAPES, sections.ALLOCATOR, Column("place", of("place", number), drop=1)]
    extra = (Column("held", held, drop=2), replace(sections.CODE, cell=code))
    rows = diff.tables["memory_blocks"]
    return [_compared(SECTION["memory_block"].title, keys, rows, limit, *extra, of="bytes", calls="")]


def modules(diff: Diff, limit: int | None) -> list[Table]:
    """Return modules by change of the time of their operators."""

    def link(row: Row) -> Target | None:
        if diff.candidate.workload in cells.UNSAID:
            return None
        if not row["module"]:
            return None  # what runs in no module has no series of its own
        # its path may be a number, as a key that of a series
        return Target("history", (("--module", str(row["module"])), ("--workload", diff.candidate.workload)))

    keys = [col("module", **NAME), col("phase")]
    title = SECTION["module"].title.format(time=metric_words(diff))
    extra = _measures_with_words("modules")
    return [_compared(title, keys, diff.tables["modules"], limit, *extra, links=link)]


def _by_change(word: str, *keys: Column, kind: str = "") -> Callable[[Diff, int | None], list[Table]]:
    """Return what makes the section `word` of one table by change, whose columns are always the same.

    `kind`: of its series.
    """
    section = SECTION[word]

    def made(diff: Diff, limit: int | None) -> list[Table]:
        links = _series(diff, "name", kind) if kind else ()
        table = section.tables[0]
        calls = "calls" if CALLS in MATCHED_COLUMNS[table].measures else ""
        extra = _measures_with_words(table)
        return [_compared(section.title, keys, diff.tables[table], limit, *extra, calls=calls, links=links)]

    return made


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
        kind="api",
    ),
    "idle": _idle,
    "kernel_type": _by_change(
        "kernel_type", col("kernel type", "type", **NAME),
        col("core type", "core_type", drop=2),
    ),
    "counter": lambda diff, limit: [
        table_of(SECTION["counter"].title, _COUNTER, diff.tables["counters"], limit)
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
