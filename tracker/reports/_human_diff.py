"""The tables of a diff for people, and the explanation that adds up."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import asdict, replace

from tracker.reports import _human_communication, _human_links, _human_memory, _human_metrics, _human_verdicts
from tracker.reports._empty import explained
from tracker.reports._human import (
    NAME,
    PLACE,
    UNDER,
    WORDS,
    Column,
    Row,
    Table,
    Unit,
    calls_cell,
    level,
    make,
    metric_words,
    number,
    pair,
    readable,
    share,
    side_cells,
    side_columns,
    signed,
    tone,
    top,
    values,
    verdict_columns,
)
from tracker.reports.shared import asked, command, command_of, records
from tracker.results import BOTH, TOP_LEVEL, Cause, Diff, Explanation
from tracker.units import MISSING_TEXT, NS_PER_US, format_diff, format_ns, format_numbers, some_of, time_unit

if TYPE_CHECKING:
    from tracker.columns import Columns

NOTE: Final = (
    "Numbers are per step: the median over steps, then over ranks, the geometric mean over the runs of a side; "
    "op times are {metric}."
)

SPAN: Final = "E2E is the device's span: from the first start to the last end of its activity, not the step's time."

_TELLING: Final = 10.0
"""Part / change of the total up to which a quotient is told."""


def note(diff: Diff) -> str:
    """How the numbers were made; "" where there are none."""
    if diff.is_refused:
        return ""
    on_device = "device" in (diff.baseline.timeline, diff.candidate.timeline)
    return NOTE.format(metric=metric_words(diff)) + (f" {SPAN}" if on_device else "")


def environment(diff: Diff, limit: int | None) -> Table:
    """What else differs between the two sides: read this before the numbers."""
    rows, more = top(diff.tables["environment"], limit)
    columns = [
        Column("kind", left=True),
        Column("key", **NAME),
        Column("baseline", **NAME),
        Column("candidate", **NAME),
    ]
    cells = [("", [readable(row[name]) for name in ("kind", "key", "baseline", "candidate")]) for row in rows]
    note = "" if rows else "nothing that was recorded differs"
    return make("What else changed", columns, cells, more=more, note=note)


def overall(diff: Diff, limit: int | None) -> Table:
    """Where the time of a step went, on both sides; what is zero on both is left out."""
    columns = [Column("metric", **WORDS), Column("baseline"), Column("candidate"), Column("change"), Column("DIFF")]
    columns.append(Column("share of E2E", drop=1))
    table = diff.tables["overall"]
    shown = [row for row in records(table) if not row["baseline_value"] == row["candidate_value"] == 0]
    counted = any(row[name] is not None for row in shown for name in ("baseline_calls", "candidate_calls"))
    columns += [*([Column("calls", drop=2)] if counted else []), *verdict_columns(table)]
    rows = []
    for row in shown:
        # a rate is no quotient of equal units: no per cent
        unit = "count" if row["metric"] == "samples_per_second" else row["unit"]
        cells = [*values(unit, row["baseline_value"], row["candidate_value"], row["delta"])]
        label = "  " * int(row["level"] or 0) + str(row["title"] or row["metric"])
        cells += (format_diff(row["diff"]), pair(share(row["baseline_share"]), share(row["candidate_share"])))
        calls = (calls_cell(row["baseline_calls"], row["candidate_calls"]),) if counted else ()
        rows.append((_overall_tone(row), [label, *cells, *calls, *_human_verdicts.cells(table, row)]))
    return make("Overall, per step", columns, rows)


def _overall_tone(row: Row) -> str:
    # more overlap and more samples are good news; a count or a correction is neither good nor bad
    flip = row["metric"] in ("overlap_ns", "samples_per_second")
    if (row["unit"] == "count" and not flip) or row["metric"] == "groups_at_once_ns":
        return ""
    return tone(row, -row["delta"] if flip and row["delta"] else row["delta"])


def operators(diff: Diff, limit: int | None) -> Table:
    """Ops by contribution to the change, as far as a side says how long they took."""
    ops = diff.tables["ops"]
    rows, more = top(ops.taken(ops.known("baseline_ns") | ops.known("candidate_ns")), limit)
    columns = [Column("operator", **NAME), Column("input shapes", **UNDER), *side_columns(), *verdict_columns(ops)]
    cells = []
    for row in rows:
        line = [_op_name(row), _shapes(row), *side_cells(row), *_human_verdicts.cells(ops, row)]
        cells.append((tone(row, row["delta_ns"]), line))
    table = make(f"Operators by change of {metric_words(diff)}", columns, cells, more=more)
    below = tuple(map(_human_verdicts.still_open, rows))
    table = replace(table, below=below, note=_human_verdicts.too_small(rows))
    chosen = filters(diff)
    return replace(table, lead=f"Only what {chosen} lets through; Why counts all operators.") if chosen else table


def filters(diff: Diff) -> str:
    """The filters that leave operators out of the tables, as on the command line; empty without any."""
    chosen = diff.options
    words = [("--op", chosen.op), ("--module", chosen.module)]
    if chosen.minimum_ns is not None:
        words.append(("--min-us", f"{chosen.minimum_ns / NS_PER_US:g}"))
    return command(*(part for name, value in words if value for part in (name, value)))


def _op_name(row: Row) -> str:
    before = row.get("baseline_name")
    name = readable(row["name"])
    return f"{before} => {name}" if before and before != row["name"] else name


def _shapes(row: Row) -> str:
    return str(row["input_shapes"] or "")


def kernels(diff: Diff, limit: int | None) -> Table:
    """Kernels by change of their total time; with the type that an NPU's profiler names where it is not the name, and
    with their own shapes where that profiler knows them."""
    found = diff.tables["kernels"]
    rows, more = top(found, limit)
    types = ["" if row["type"] == row["name"] else str(row["type"] or "") for row in rows]
    has_types, has_shapes = any(types), any(map(_shapes, rows))
    columns = [Column("kernel", **NAME), *([Column("type", **UNDER)] if has_types else [])]
    columns += [Column("input shapes", **UNDER)] if has_shapes else []
    columns += [Column("launched by", **UNDER), Column("category", left=True, drop=2)]
    cells = []
    for row, kernel_type in zip(rows, types, strict=True):
        line = [readable(row["name"]), *([kernel_type] if has_types else []), *([_shapes(row)] if has_shapes else [])]
        others = f" and {number(row['more_ops'])} more" if row["more_ops"] else ""
        line += [f"{readable(row['op'])}{others}", str(row["category"] or MISSING_TEXT), *side_cells(row)]
        line += _human_verdicts.cells(found, row)
        cells.append((tone(row, row["delta_ns"]), line))
    columns += [*side_columns(), *verdict_columns(found)]
    table = make("Kernels by change of total time", columns, cells, more=more)
    below = (filter(None, (str(row["why"] or ""), _human_verdicts.still_open(row))) for row in rows)
    told = tuple("; ".join(each) for each in below)
    return replace(table, below=told, note=_human_verdicts.too_small(rows))


def kernel_types(diff: Diff, limit: int | None) -> Table:
    """Kernel types of an NPU by change of their total time; without rows for GPUs."""
    keys = {"type": Column("kernel type", **NAME), "core_type": Column("core type", left=True, drop=2)}
    return _compared("Kernel types by change of total time", keys, diff.tables["kernel_types"], limit)


def modules(diff: Diff, limit: int | None) -> Table:
    """Modules by change of the time of their ops."""
    keys = {"module": Column("module", **NAME), "phase": Column("phase", left=True)}
    return _compared(f"Modules by change of {metric_words(diff)}", keys, diff.tables["modules"], limit)


def api(diff: Diff, limit: int | None) -> Table:
    """Host API calls by change of their total time."""
    keys = {"name": Column("API call", **NAME), "level": Column("level", left=True, drop=2)}
    return _compared("Host API calls by change of total time", keys, diff.tables["api"], limit)


def _compared(title: str, keys: Mapping[str, Column], table: Columns, limit: int | None, unit: str = "ns") -> Table:
    """Rows by change: a column for each of `keys`, both sides, and the verdicts where there are any."""
    rows, more = top(table, limit)
    columns = [*keys.values(), *side_columns(calls="allocations" if unit == "bytes" else "calls")]
    cells = []
    for row in rows:
        line = [_shapes(row) if name == "input_shapes" else readable(row[name]) for name in keys]
        line += [*side_cells(row, of=unit, unit=unit), *_human_verdicts.cells(table, row)]
        cells.append((tone(row, row[f"delta_{unit}"]), line))
    return make(title, [*columns, *verdict_columns(table)], cells, more=more)


TABLES: Final[Mapping[str, Callable[[Diff, int | None], Table]]] = {
    "overall": overall,
    "operator": operators,
    "kernel": kernels,
    "kernel_type": kernel_types,
    "metric": _human_metrics.diff_metrics,
    "communication": _human_communication.diff_communication,
    "link": _human_links.diff_links,
    "memory": _human_memory.diff_memory,
    "memory_peak": _human_memory.diff_peak,
    "memory_block": _human_memory.diff_blocks,
    "module": modules,
    "api": api,
    "counter": _human_metrics.diff_counters,
}
"""Section -> its table."""


def tables(diff: Diff, section: str, limit: int | None, only: Sequence[str]) -> list[Table]:
    """The tables of a section, as far as they have rows or the reader asked for the section."""
    if section == "memory_peak" and section not in only and not _human_memory.peak_changed(diff):
        return []
    found = [TABLES[section](diff, limit)]
    if section == "link" and section in only:
        found.append(_human_links.diff_link_matrix(diff, limit))
    found = [explained(table, section, diff.options) for table in found if table.rows or section in only]
    parts = [_human_communication.diff_parts(diff, limit)] if section == "communication" else []
    return found + [table for table in parts if table.rows]


def total_words(explanation: Explanation) -> str:
    """The total that is explained, in words."""
    return {"step_ns": "step time", "e2e_ns": "E2E time"}.get(explanation.total_metric, explanation.total_metric)


def parts(explanation: Explanation) -> Table:
    """The change of the total, split so that the parts sum to it; all in one unit."""
    total = (explanation.baseline_ns, explanation.candidate_ns, explanation.delta_ns)
    unit = time_unit(*total, *(part.delta_ns for part in explanation.parts))
    columns = [
        Column("part", **WORDS),
        Column("baseline"),
        Column("candidate"),
        Column("change"),
        Column("of the change"),
    ]
    rows = []
    for part in explanation.parts:
        numbers = [format_ns(part.baseline_ns, unit), format_ns(part.candidate_ns, unit), _change(part.delta_ns, unit)]
        rows.append(("", [part.title or part.name, *numbers, _of(part.delta_ns, explanation.delta_ns)]))
    ends = [format_ns(total[0], unit), format_ns(total[1], unit), _change(total[2], unit)]
    rows.append(("strong", [f"= {total_words(explanation)}", *ends, _of(total[2], total[2])]))
    return make(f"Why: the parts of the change of {total_words(explanation)}", columns, rows)


def _change(value: float | None, unit: Unit) -> str:
    return signed(format_ns(value, unit), value)


def _of(value: float | None, total: float | None) -> str:
    return MISSING_TEXT if value is None or not total else _share_of_change(value / total)


def _share_of_change(quotient: float | None) -> str:
    """In per cent; none where the total hardly changed beside its parts, so that a quotient says nothing.

    >>> _share_of_change(1.5), _share_of_change(-5323.4)
    ('150.0 %', '-')
    """
    return MISSING_TEXT if quotient is None or abs(quotient) > _TELLING else share(quotient)


def causes(explanation: Explanation, limit: int | None, *, by_name: bool = False) -> Table:
    """Ops by contribution, split into more calls and slower calls; with the others and the rest they sum to the
    total."""
    ranked = explanation.rollup if by_name else explanation.causes
    listed = ranked if limit is None else ranked[:limit]
    unit = time_unit(explanation.delta_ns, explanation.rest_ns, *(cause.delta_ns for cause in listed))
    columns = [Column("operator", **NAME)] if by_name else [Column("operator", **NAME), Column("input shapes", **UNDER)]
    columns += [
        Column("change"),
        Column("of the\nchange"),
        Column("by calls", drop=1),
        Column("by time\nper call", drop=1),
    ]
    told = _told_of(listed)
    columns += [
        Column("calls", drop=3),
        *([Column(told, left=True, drop=2 if told == "verdict" else 4)] if told else []),
    ]
    columns = level([*columns, Column("where", **PLACE)])
    rows = [(_cause_tone(cause), _cause_cells(cause, unit, by_name, told)) for cause in listed]

    def closing(label: str, value: float | None, tone: str = "sum") -> tuple[str, list[str]]:
        cells = [label] if by_name else [label, ""]
        cells += [_change(value, unit), _of(value, explanation.delta_ns)]
        return tone, cells + [""] * (len(columns) - len(cells))

    others = explanation.explained_ns - sum(cause.delta_ns for cause in listed)
    if len(listed) < len(ranked) or abs(others) >= 1:
        rows.append(closing("all other operators", others))
    rows.append(closing("rest", explanation.rest_ns))
    rows.append(closing(f"= {total_words(explanation)}", explanation.delta_ns, "strong"))
    title = "Why: by operator name" if by_name else "Why: operators, ranked by contribution"
    below = tuple(cause.why for cause in listed) + ("",) * (len(rows) - len(listed))
    return replace(make(title, columns, rows, note=_about(explanation)), below=below)


def _told_of(causes: Sequence[Cause]) -> str:
    """What the runs say of causes: their verdict, or whether they stand out of the runs; "" for neither."""
    if any(cause.verdict is not None for cause in causes):
        return "verdict"
    return "stands out" if any(cause.stands_out is not None for cause in causes) else ""


def _cause_tone(cause: Cause) -> str:
    if cause.verdict is not None:
        return _human_verdicts.TONES.get(cause.verdict, "")
    return "worse" if cause.delta_ns > 0 else "better" if cause.delta_ns < 0 else ""


def _cause_cells(cause: Cause, unit: Unit, by_name: bool, told: str) -> list[str]:
    status = "" if cause.status == BOTH else f" {cause.status}"
    keys = [f"{readable(cause.name)}{status}"] if by_name else [f"{readable(cause.name)}{status}", cause.input_shapes]
    split = [_change(cause.calls_delta_ns, unit), _change(cause.per_call_delta_ns, unit)]
    calls = calls_cell(cause.baseline_calls, cause.candidate_calls)
    said = [_human_verdicts.word(asdict(cause)) if told == "verdict" else _stands_out(cause)] if told else []
    return [*keys, _change(cause.delta_ns, unit), _share_of_change(cause.share), *split, calls, *said, cause.where]


def _stands_out(cause: Cause) -> str:
    return "" if cause.stands_out is None else "yes" if cause.stands_out else "no"


def _about(explanation: Explanation) -> str:
    """What the rest is, and what the total hides."""
    told = ""
    if explanation.rest_ns and "(" in explanation.rest_title:
        told = f"{explanation.rest_title.replace('(', 'is ', 1).removesuffix(')')}."
    if not explanation.cancelling:
        return told.capitalize()
    loss, gain = format_ns(explanation.gross_loss_ns), format_ns(abs(explanation.gross_gain_ns))
    return f"Changes cancel each other: operators lost {loss} and gained {gain}. {told.capitalize()}".strip()


def renames(explanation: Explanation) -> list[str]:
    """A sentence per replacement: what went, what came, and the net."""
    lines = []
    for rename in explanation.renames:
        unit = time_unit(rename.removed_ns, rename.added_ns)
        times = f"{format_ns(rename.removed_ns, unit)} -> {format_ns(rename.added_ns, unit)}"
        diff = format_diff(rename.added_ns / rename.removed_ns - 1.0) if rename.removed_ns else ""
        said = ", ".join(filter(None, (times, diff)))
        names = " => ".join(some_of(names.split(" + "), " + ") for names in (rename.removed, rename.added))
        under = f" under {rename.parent}" if rename.parent != TOP_LEVEL else ""
        lines.append(f"{'Replaced' if rename.is_worse else 'Renamed or fused'}{under}: {names} ({said})")
    return lines


def hint(diff: Diff) -> str:
    """The command that gives all details."""
    sides = (diff.baseline.label, diff.candidate.label)
    if diff.is_refused:
        return f"All the same: {command_of(('tracker', 'diff'), sides, (*_asked(diff), '--force'))}"
    words = (*_asked(diff), "--format", "xlsx", "-o", "diff.xlsx")
    return f"Details: {command_of(('tracker', 'diff'), sides, words)}"


def _asked(diff: Diff) -> list[str]:
    """The options of the question, as on the command line."""
    chosen = diff.options
    return asked(
        chosen,
        ("--only", ",".join(chosen.only) or None),
        ("--by", chosen.tree or None),
        ("--depth", chosen.depth),
        ("--baseline-step", format_numbers(chosen.baseline_steps) or None),
        ("--candidate-step", format_numbers(chosen.candidate_steps) or None),
        ("--match", None if chosen.match == "shape" else chosen.match),
        ("--max-kernels", chosen.max_kernels),
        *(("--config", f"{key}={value}") for key, value in chosen.config.items()),
        ("--op-map", json.dumps(dict(chosen.op_map)) if chosen.op_map else None),
    ) + ["--force"] * (chosen.force and not diff.is_refused)


def explanation(diff: Diff, limit: int | None, only: Sequence[str] = ()) -> list[Table]:
    """The tables that say why: the parts, then sums by op name where they say more than the causes, then the causes.

    The parts alone where `only` leaves out the operators.
    """
    if diff.is_refused:
        return []
    explanation, chosen = diff.explanation, filters(diff)
    lead = f"Why counts all operators; {chosen} chooses rows of the other tables only." if chosen else ""
    tables = [replace(parts(explanation), lead=lead)]
    if only and "operator" not in only:
        return tables
    # sums by name say more than the single causes only where a name has several shapes; then they must be seen first
    single = {(cause.name, cause.delta_ns) for cause in explanation.causes}
    if any((cause.name, cause.delta_ns) not in single for cause in explanation.rollup):
        tables.append(causes(explanation, limit, by_name=True))
    if explanation.causes:
        tables.append(causes(explanation, limit))
    return tables
