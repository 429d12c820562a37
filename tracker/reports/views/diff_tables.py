"""The tables of a diff by section: what changed, both sides, the change, and the verdict where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tracker.detect import DEFAULTS
from tracker.reports import cells
from tracker.reports.cells import diff_text, number, pair, readable, share, tone, values
from tracker.reports.commands import command
from tracker.reports.document import NAME, PLACE, UNDER, WORDS, Column, Curves, Strip, Table, Target, table
from tracker.reports.rows import Row, has, records, top
from tracker.results import BOTH, Diff
from tracker.results.verdicts import REASONS, STILL
from tracker.units import MISSING_TEXT, NS_PER_US, format_diff, format_ns

if TYPE_CHECKING:
    import pandas as pd

    from tracker.columns import Columns

SIDES: Final = ("baseline", "candidate")
_DRAWN: Final = 30
"""Rows whose runs are drawn."""
PARTS: Final = {"transit_ns": "transit", "wait_ns": "wait", "synchronization_ns": "sync", "idle_ns": "idle"}
"""Parts of the time of a collective that profilers, or all ranks of a group, tell apart."""
PARTS_DROP: Final = {"transit_ns": 2, "wait_ns": 1, "synchronization_ns": 3, "idle_ns": 1}
"""Where there is no room: how long a collective stood still says more than how long it worked."""


def side_columns(calls: str = "calls") -> list[Column]:
    """The columns that every comparison ends with; without `calls` none for them."""
    counts = [Column(calls, drop=1)] if calls else []
    return [*counts, Column("baseline"), Column("candidate"), Column("change"), Column("change %")]


def side_cells(row: Row, of: str = "ns") -> list[str]:
    """The cells under `side_columns`: calls, both values, change, relative change."""
    calls = cells.calls(row.get("baseline_calls"), row.get("candidate_calls"))
    numbers = values(of, row.get(f"baseline_{of}"), row.get(f"candidate_{of}"), row.get(f"delta_{of}"))
    return [calls, *numbers, diff_text(row)]


def verdict_columns(rows: Columns | pd.DataFrame) -> list[Column]:
    """The columns over `verdict_cells`; none where nothing of the rows was judged."""
    if not has(rows, "verdict"):
        return []
    return [Column("verdict", left=True), Column("judged", drop=2), Column("q", drop=3)]


def verdict_cells(judged: Sequence[Column], row: Row) -> list[str]:
    """The cells of a row under `judged`, its `verdict_columns`."""
    if not judged:
        return []
    return [cells.verdict_word(row), cells.judged_text(row), cells.q_text(row.get("q"))]


def through(row: Row) -> str:
    """The helper that allocated, where it is not the op itself."""
    own, others = row.get("allocator"), row.get("more_allocators")
    more = f" and {number(others)} more" if others else ""
    return "" if not own or (own == row.get("op", row.get("name")) and not more) else f"{own}{more}"


def shapes(row: Row) -> str:
    """The input shapes of a row, "" for none."""
    return str(row["input_shapes"] or "")


def metric_words(diff: Diff) -> str:
    """What the times of ops are, in words."""
    return "host self time" if diff.metric == "host_self_ns" else "device self time"


def filters(diff: Diff) -> str:
    """The filters that leave operators out of the tables, as on the command line; empty without any."""
    chosen = diff.options
    words = [("--op", chosen.op), ("--module", chosen.module)]
    if chosen.minimum_ns is not None:
        words.append(("--min-us", f"{chosen.minimum_ns / NS_PER_US:g}"))
    return command(*(part for name, value in words if value for part in (name, value)))


def _compared(
    title: str,
    keys: Mapping[str, Column],
    rows: Columns,
    limit: int | None,
    *,
    of: str = "ns",
    calls: str = "calls",
    extra: Mapping[Column, Callable[[Row], str]] | None = None,
) -> Table:
    """Rows by change: a column for each of `keys` (a column of `rows`, or of what `_KEYS` makes of a row), both sides,
    `extra` columns, and the verdicts where there are any.
    """
    listed, more = top(rows, limit)
    extra = extra or {}
    judged = verdict_columns(rows)
    columns = [*keys.values(), *side_columns(calls), *extra, *judged]
    lines = []
    for row in listed:
        line = [_KEYS[name](row) if name in _KEYS else readable(row[name]) for name in keys]
        line += side_cells(row, of)[not calls :]
        line += [text(row) for text in extra.values()]
        lines.append((tone(row, row[f"delta_{of}"]), [*line, *verdict_cells(judged, row)]))
    return table(title, columns, lines, more=more)


def _linked(diff: Diff, made: Table, rows: Columns, name: str, kind: str) -> Table:
    """`made` with the history of each row: of the series of this kind that its column `name` names."""
    names = rows.listed(name)[: len(made.rows)]
    if (
        kind == "module" and diff.candidate.workload not in cells.UNSAID
    ):  # its path may be a number, as a key that of a series
        workload = ("--workload", diff.candidate.workload)
        return replace(made, links=tuple(Target("history", (("--module", str(one)), workload)) for one in names))
    return replace(made, links=tuple(history_of(diff, str(one), ("--kind", kind)) for one in names))


_KEYS: Final[Mapping[str, Callable[[Row], str]]] = {
    "group": cells.group_words,
    "through": through,
    "input_shapes": shapes,
    "module_of": lambda row: row["module"] or "",
    "place": lambda row: number(row["place"]),
}
"""Cells that are made of several columns of a row, or of a text that may be missing."""


def overall(diff: Diff, limit: int | None) -> list[Table]:
    """Where the time of a step went, on both sides; what is zero on both is left out."""
    rows = diff.tables["overall"]
    shown = [row for row in records(rows) if not row["baseline_value"] == row["candidate_value"] == 0]
    counted = any(row[name] is not None for row in shown for name in ("baseline_calls", "candidate_calls"))
    columns = [Column("metric", **WORDS), *side_columns(""), Column("share of E2E", drop=1)]
    judged = verdict_columns(rows)
    columns += [*([Column("calls", drop=2)] if counted else []), *judged]
    lines = []
    for row in shown:
        # a rate is no quotient of equal units: no per cent
        unit = "count" if row["metric"] == "samples_per_second" else row["unit"]
        line = ["  " * int(row["level"] or 0) + str(row["title"] or row["metric"])]
        line += [*values(unit, row["baseline_value"], row["candidate_value"], row["delta"]), format_diff(row["diff"])]
        line.append(pair(share(row["baseline_share"]), share(row["candidate_share"])))
        line += [cells.calls(row["baseline_calls"], row["candidate_calls"])] if counted else []
        lines.append((_overall_tone(row), [*line, *verdict_cells(judged, row)]))
    links = tuple(history_of_run(diff, row["metric"]) for row in shown)
    return [table("Overall, per step", columns, lines, links=links)]


def history_of(diff: Diff, name: str, *options: tuple[str, str]) -> Target | None:
    """The history of what has this name in the workload of the candidate; none for stand-ins, and for files."""
    if name in cells.READABLE or diff.candidate.workload in cells.UNSAID:
        return None
    return Target("history", (("KEY", name), *options, ("--workload", diff.candidate.workload)))


SERIES_OF_RUN: Final[Mapping[str, str]] = {
    "step_ns": "step", "e2e_ns": "e2e", "compute_ns": "compute", "idle_ns": "idle time",
    "exposed_communication_ns": "exposed communication", "data_loading_ns": "data loading",
    "peak_allocated_bytes": "peak memory",
}  # fmt: skip
"""Row of the overall table -> the series of whole runs that follows it."""


def history_of_run(diff: Diff, metric: str) -> Target | None:
    """The history of a number of whole runs; None for one that no series follows."""
    return history_of(diff, SERIES_OF_RUN[metric], ("--kind", "run")) if metric in SERIES_OF_RUN else None


def _overall_tone(row: Row) -> str:
    # more overlap and more samples are good news; a count or a correction is neither good nor bad
    flip = row["metric"] in ("overlap_ns", "samples_per_second")
    if (row["unit"] == "count" and not flip) or row["metric"] == "groups_at_once_ns":
        return ""
    return tone(row, -row["delta"] if flip and row["delta"] else row["delta"])


def operators(diff: Diff, limit: int | None) -> list[Table]:
    """Ops by change of their own time, with that of the host beside the device's; then what carries the change, with
    the place in the code.
    """
    ops = diff.tables["ops"]
    rows, more = top(ops.taken(ops.known("baseline_ns") | ops.known("candidate_ns")), limit)
    on_device = diff.metric == "device_self_ns" and has(ops, "host_delta_ns")
    columns = [Column("operator", **NAME), Column("input shapes", **UNDER), *side_columns()]
    columns += [Column("host change", drop=4)] if on_device else []
    judged, lines = verdict_columns(ops), []
    for row in rows:
        before, name = row.get("baseline_name"), readable(row["name"])
        line = [f"{before} => {name}" if before and before != row["name"] else name, shapes(row), *side_cells(row)]
        line += [cells.change(row["host_delta_ns"])] if on_device else []
        lines.append((tone(row, row["delta_ns"]), [*line, *verdict_cells(judged, row)]))
    chosen = filters(diff)
    lead = f"Only what {chosen} lets through; what explains the change counts all operators." if chosen else ""
    found = table(
        f"Operators by change of {metric_words(diff)}", [*columns, *judged], lines, more=more, lead=lead,
        below=tuple(map(_still_open, rows)), note=_too_small(rows), strips=_strips(diff, rows),
        links=tuple(history_of(diff, row["name"]) for row in rows),
    )  # fmt: skip
    causes = _causes(diff, limit)
    return [found, causes] if causes.rows else [found]


def _strips(diff: Diff, rows: Sequence[Row]) -> tuple[Strip | None, ...]:
    """The runs of the first operators; none without repeats."""
    if not diff.samples.has_repeats:
        return ()
    found = diff.samples.of_op((row["name"], shapes(row)) for row in rows[:_DRAWN])
    return (*found, *[None] * (len(rows) - len(found)))


def _still_open(row: Row) -> str:
    """What an older finding of the row says; "" for nothing."""
    reason = str(row.get("reason") or "")
    return reason if reason.startswith(STILL) else ""


def _too_small(rows: Sequence[Row]) -> str:
    """Why rows are BELOW_LIMIT that have a clear change and a small q; "" where none is."""
    found = any(row.get("verdict") == "BELOW_LIMIT" and row.get("reason") == REASONS["CONTRIBUTION"] for row in rows)
    least = f"{DEFAULTS.floor * 100:g} %"
    return f"BELOW_LIMIT: significant, but too small a part of the step, usually below {least}." if found else ""


def _causes(diff: Diff, limit: int | None) -> Table:
    """The ops with the largest changes: by their calls, by the time of each, and where they are in the code."""
    found = diff.explanation
    causes = found.causes if limit is None else found.causes[:limit]
    stands_out = any(cause.stands_out is not None for cause in causes)
    columns = [Column("operator", **NAME), Column("input shapes", **UNDER), Column("change"), Column("of change")]
    columns += [Column("by calls", drop=1), Column("by time per call", drop=1)]
    columns += [Column("stands out", left=True, drop=4)] if stands_out else []
    columns.append(Column("where", **PLACE))
    lines = []
    for cause in causes:
        status = "" if cause.status == BOTH else f" {cause.status}"
        line = [f"{readable(cause.name)}{status}", cause.input_shapes, cells.change(cause.delta_ns)]
        line += [share(cause.share), cells.change(cause.calls_delta_ns), cells.change(cause.per_call_delta_ns)]
        line += [{None: "", True: "yes", False: "no"}[cause.stands_out]] if stands_out else []
        colour = "worse" if cause.delta_ns > 0 else "better"
        lines.append((cells.TONES.get(cause.verdict, "") if cause.verdict else colour, [*line, cause.where]))
    note = ""
    if found.cancelling:
        loss, gain = format_ns(found.gross_loss_ns), format_ns(abs(found.gross_gain_ns))
        note = f"Changes cancel each other: operators lost {loss} and gained {gain}."
    links, below = tuple(history_of(diff, cause.name) for cause in causes), tuple(cause.why for cause in causes)
    return table("Operators by contribution, and where they are", columns, lines, below=below, note=note, links=links)


def kernels(diff: Diff, limit: int | None) -> list[Table]:
    """Kernels by change of their total time; with the type that an NPU's profiler names where it is not the name, and
    with their own shapes where that profiler knows them.
    """
    found = diff.tables["kernels"]
    rows, more = top(found, limit)
    types = ["" if row["type"] == row["name"] else str(row["type"] or "") for row in rows]
    columns = [Column("kernel", **NAME), Column("type", **UNDER), Column("input shapes", **UNDER)]
    columns += [Column("launched by", **UNDER), Column("category", left=True, drop=2)]
    judged, lines = verdict_columns(found), []
    for row, kernel_type in zip(rows, types, strict=True):
        others = f" and {number(row['more_ops'])} more" if row["more_ops"] else ""
        line = [readable(row["name"]), kernel_type, shapes(row), f"{readable(row['op'])}{others}"]
        line += [str(row["category"] or MISSING_TEXT), *side_cells(row), *verdict_cells(judged, row)]
        lines.append((tone(row, row["delta_ns"]), line))
    columns += [*side_columns(), *judged]
    below = tuple("; ".join(filter(None, (str(row["why"] or ""), _still_open(row)))) for row in rows)
    links, note = tuple(history_of(diff, row["name"], ("--kind", "kernel")) for row in rows), _too_small(rows)
    return [table("Kernels by change of total time", columns, lines, more=more, note=note, below=below, links=links)]


def kernel_types(diff: Diff, limit: int | None) -> list[Table]:
    """Kernel types of an NPU by change of their total time; without rows for GPUs."""
    keys = {"type": Column("kernel type", **NAME), "core_type": Column("core type", left=True, drop=2)}
    return [_compared("Kernel types by change of total time", keys, diff.tables["kernel_types"], limit)]


def metrics(diff: Diff, limit: int | None) -> list[Table]:
    """Kernel metrics of both sides, those of the kernel that changed most first."""
    rows, more = top(diff.tables["kernel_metrics"], limit)
    columns = [Column("kernel", **NAME), Column("input shapes", **UNDER), Column("metric", **NAME)]
    columns += [Column(name) for name in ("baseline", "candidate", "change %", "of change", "moved")]
    lines = []
    for row in rows:
        line = [readable(row["name"]), shapes(row), row["metric"]]
        line += [cells.measured(row[f"{side}_mean"]) for side in SIDES]
        moved = {True: "yes", False: "no"}.get(row["moved"], MISSING_TEXT)
        line += [format_diff(row["diff"]), share(row["share"]), moved]
        lines.append((tone(row, row["delta"]) if row["moved"] else "", line))
    return [table("Kernel metrics, means of a call", columns, lines, more=more)]


def _span(row: Row, name: str) -> str:
    before, after, _ = values("ns", row[f"baseline_{name}"], row[f"candidate_{name}"], None)
    return pair(before, after)


def communication(diff: Diff, limit: int | None) -> list[Table]:
    """Collectives by change of their total time; then the parts of that time, as far as they are known."""
    rows = diff.tables["communication"]
    keys = {"kind": Column("communication", **NAME), "group": Column("group", **UNDER)}
    exposed = {Column("exposed", drop=2): lambda row: _span(row, "exposed_ns")}
    whole = _compared("Communication by change of total time", keys, rows, limit, extra=exposed)
    found = [_linked(diff, whole, rows, "kind", "communication")]
    parts = [name for name in PARTS if any(has(rows, f"{side}_{name}") for side in SIDES)]
    if not parts:
        return found
    listed, more = top(rows, limit)
    columns = [*keys.values(), *(Column(PARTS[name], drop=PARTS_DROP[name]) for name in parts)]
    columns.append(Column("split by", drop=4))
    lines = []
    for row in listed:
        by = pair(*(row[f"{side}_split_by"] or MISSING_TEXT for side in SIDES))
        lines.append(("", [readable(row["kind"]), cells.group_words(row), *(_span(row, name) for name in parts), by]))
    return [*found, table("Communication: the parts of its time", columns, lines, more=more)]


def links(diff: Diff, limit: int | None) -> list[Table]:
    """A line per collective and transport: what all links together moved, and how fast; then from rank to rank."""
    rows = diff.tables["communication_links"]
    whole = rows.taken(~rows.known("source_rank"))
    ends = rows.taken(rows.known("source_rank"))
    keys = [Column("communication", **NAME), Column("group", **UNDER), Column("transport", left=True)]
    timed = [Column("baseline"), Column("candidate"), Column("change", drop=1), Column("change %")]
    timed.append(Column("GB/s", drop=2))

    def line(row: Row, *between: str) -> tuple[str, list[str]]:
        speeds = pair(*(_speed(row[f"{side}_bandwidth_gb_per_s"]) for side in SIDES))
        times = values("ns", row["baseline_transit_ns"], row["candidate_transit_ns"], row["delta_ns"])
        own = [readable(row["kind"]), cells.group_words(row), row["transport"], *between, *times, diff_text(row)]
        return tone(row, row["delta_ns"]), [*own, speeds]

    lines, (listed, more) = [], top(whole, limit)
    for row in listed:
        sizes = pair(*values("bytes", row["baseline_bytes"], row["candidate_bytes"], None)[:2])
        packets = pair(*(share(row[f"{side}_large_packet_ratio"]) for side in SIDES))
        colour, own = line(row, sizes)
        lines.append((colour, [*own, packets]))
    columns = [*keys, Column("bytes", drop=4), *timed, Column("large packets", drop=3)]
    found = [table("Links by change of transit time", columns, lines, more=more)]
    if len(ends):
        listed, more = top(ends, limit)
        lines = [line(row, number(row["source_rank"]), number(row["target_rank"])) for row in listed]
        columns = [*keys, Column("from rank"), Column("to rank"), *timed]
        found.append(table("Links between ranks by change of transit time", columns, lines, more=more))
    return found


def _speed(value: float | None) -> str:
    return MISSING_TEXT if value is None else f"{value:,.2f}"


def memory(diff: Diff, limit: int | None) -> list[Table]:
    """Ops by change of the bytes that they allocate."""
    keys = {"name": Column("operator", **NAME), "input_shapes": Column("input shapes", **UNDER)}
    keys["through"] = Column("allocator", **UNDER)
    rows = diff.tables["memory"]
    found = _compared("Memory allocated by operators", keys, rows, limit, of="bytes", calls="allocations")
    found = _linked(diff, found, rows, "name", "memory")
    curves = tuple(zip((diff.baseline.label, diff.candidate.label), diff.samples.curves, strict=False))
    return [replace(found, chart=Curves("bytes", curves) if any(points for _, points in curves) else None)]


def memory_peak(diff: Diff, limit: int | None) -> list[Table]:
    """Who held the memory when it was most, on both sides, by change; with the sum of each component."""
    every = records(diff.tables["memory_peak"])
    keys = {"name": Column("operator", **NAME), "input_shapes": Column("input shapes", **UNDER)}
    keys |= {"module_of": Column("module", **UNDER), "through": Column("allocator", **UNDER)}
    keys["component"] = Column("component", left=True, drop=0 if len({row["component"] for row in every}) > 1 else 9)
    code = {Column("code", **PLACE): lambda row: row["code_line"] or ""}
    rows = diff.tables["memory_peak"]
    found = _compared("Memory at the peak, by owner", keys, rows, limit, of="bytes", calls="blocks", extra=code)
    sums = []
    for component in sorted({row["component"] for row in every}) if found.rows else ():
        own = [row for row in every if row["component"] == component]
        peaks: list[float | None] = []
        for side in SIDES:
            sizes = [row[f"{side}_bytes"] for row in own if row["status"] == BOTH or row[f"{side}_bytes"] is not None]
            peaks.append(None if not sizes or None in sizes else sum(sizes))
        before, after = peaks
        delta = None if before is None or after is None else after - before
        change = format_diff(None if delta is None or not before else delta / before)
        line = [f"= peak of {component}", "", "", "", component, "", *values("bytes", before, after, delta), change]
        sums.append((*line, *[""] * (len(found.columns) - len(line))))
    return [replace(found, rows=(*found.rows, *sums), tones=(*found.tones, *["sum"] * len(sums)))]


def peak_changed(diff: Diff) -> bool:
    """Whether what is held at the peak changed by more than two runs of one program differ in."""
    rows = records(diff.tables["memory_peak"])
    before = sum(row["baseline_bytes"] or 0 for row in rows)
    return any(row["delta_bytes"] and before and not cells.is_small(row["delta_bytes"] / before) for row in rows)


def memory_blocks(diff: Diff, limit: int | None) -> list[Table]:
    """The largest single allocations of both sides, the largest of an op beside the largest of it."""

    def held(row: Row) -> str:
        texts = []
        for side in SIDES:
            is_kept = row[f"{side}_is_released"] == 0
            own = "not released" if is_kept else cells.cell(row[f"{side}_held_ns"], "ns")
            texts.append(MISSING_TEXT if row[f"{side}_bytes"] is None else own)
        return pair(*texts)

    keys = {"name": Column("operator", **NAME), "input_shapes": Column("input shapes", **UNDER)}
    keys |= {"through": Column("allocator", **UNDER), "place": Column("place", drop=1)}
    code = {
        Column("held"): held,
        Column("code", **PLACE): lambda row: str(row["candidate_code_line"] or row["baseline_code_line"] or ""),
    }
    rows = diff.tables["memory_blocks"]
    return [_compared("Largest single allocations", keys, rows, limit, of="bytes", calls="", extra=code)]


def modules(diff: Diff, limit: int | None) -> list[Table]:
    """Modules by change of the time of their ops."""
    keys = {"module": Column("module", **NAME), "phase": Column("phase", left=True)}
    rows = diff.tables["modules"]
    made = _compared(f"Modules by change of {metric_words(diff)}", keys, rows, limit)
    return [_linked(diff, made, rows, "module", "module")]


def api(diff: Diff, limit: int | None) -> list[Table]:
    """Host API calls by change of their total time."""
    keys = {"name": Column("API call", **NAME), "level": Column("level", left=True, drop=2)}
    made = _compared("Host API calls by change of total time", keys, diff.tables["api"], limit)
    return [_linked(diff, made, diff.tables["api"], "name", "api")]


def counters(diff: Diff, limit: int | None) -> list[Table]:
    """What both profilers counted, by relative change."""
    rows, more = top(diff.tables["counters"], limit)
    columns = [Column("source", left=True), Column("name", **NAME), Column("measurement", **NAME)]
    columns += [Column("baseline"), Column("candidate"), Column("change %")]
    lines = []
    for row in rows:
        line = [row["source"], readable(row["name"]), row["attribute"]]
        lines.append(("", [*line, *(cells.measured(row[f"{side}_mean"]) for side in SIDES), format_diff(row["diff"])]))
    return [table("Counters of the profilers, by relative change", columns, lines, more=more)]


SECTIONS: Final[Mapping[str, Callable[[Diff, int | None], list[Table]]]] = {
    "overall": overall, "operator": operators, "kernel": kernels, "kernel_type": kernel_types, "metric": metrics,
    "communication": communication, "link": links, "memory": memory, "memory_peak": memory_peak,
    "memory_block": memory_blocks, "module": modules, "api": api, "counter": counters,
    "efficiency": lambda diff, limit: [table("Efficiency, which is of one run: tracker show", [], [])],
}  # fmt: skip
"""Section -> its tables."""
