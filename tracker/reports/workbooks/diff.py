"""The workbook of a diff, as the comparison tools of Ascend have it: summary rows in light blue with their kernels,
tasks or components below, DIFF, and red where worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from tracker.columns import Columns, objects
from tracker.reports.cells import OTHER_RUNS, cost, is_small
from tracker.reports.document import Look
from tracker.reports.rows import rows_of
from tracker.reports.text import shorten
from tracker.reports.views import bottleneck
from tracker.reports.workbook import SIDES, UNITS, Block, Book, Field, FieldsOf, Title, both, field
from tracker.reports.workbooks.summary import write_summary_of_diff
from tracker.results import (
    ADDED,
    BOTH,
    COMMUNICATION_KEY,
    OP_KEY,
    REMOVED,
    SECTIONS,
    UNMATCHED,
    Bottleneck,
    Contribution,
    Diff,
    Explanation,
)
from tracker.results.chosen_tables import cut_tree
from tracker.results.columns import AVERAGE, CALLS, LONGEST, MATCHED_COLUMNS, SHORTEST, TIME
from tracker.results.diff_rows import EnvironmentRow, OverallRow, TreeChange
from tracker.results.sections import SECTION
from tracker.results.verdicts import JudgedRow, word_of_step
from tracker.units import format_diff, format_numbers

if TYPE_CHECKING:
    from tracker.reports.view import View

_TITLES: Final = {"idle_ns": "Free (scheduling)", "idle_share": "Free, share of Step"}
"""Titles that the layout of this workbook fixes; everywhere else this is idle time."""
_SMALL_OF_STEP: Final = 0.001
"""A change of a part of a step below this share of the step is small, however large it is beside the part."""
_TASKS: Final = (
    "Tasks of one collective run on several planes (and links) at the same time: their rows sum up all of them, and do "
    "not add up to the time of the collective."
)
_LEVELS: Final = "Rows of each level (transport, link) state the same bytes: add up those of one level only."


def _name_of_cause(row: Contribution) -> str:
    """Return the words of a cause: of one that is a sum of several how many they are."""
    if row.kind == "others":
        return f"{row.count} other {row.name}"
    if row.kind == "alike":
        return f"{row.count} {row.name} alike"
    return OTHER_RUNS if row.kind == "earlier" else row.name


def write(book: Book, diff: Diff, view: View, look: Look) -> None:
    """Write what was found, then a sheet per chosen section with rows, Environment and Explanation."""
    write_summary_of_diff(book, diff)
    limit = look.rows(None)
    if diff.tree_table is not None:
        tree = diff.tree_table
        fields = [*_fields(diff, _TREE, tree), field("Path", "path", 60)]
        rows = rows_of(TreeChange, cut_tree(tree, limit))
        book.sheet("TreeCompare", fields, rows, tone=lambda row: "" if row.level else "main")
    sections = diff.chosen_sections(look.only)
    if "overall" in sections:
        _overall(book, diff)
    for section in (*_SHEETS, *(word for word in SECTIONS if word not in _SHEETS)):
        sheet = _sheet_of(section)
        if section not in sections or sheet is None:
            continue
        _write(book, diff, sheet, limit)
        if section == "input":
            _write(book, diff, _QUEUES, limit)
    texts = [field("Kind", "kind", 16), field("Key", "key", 36)]
    texts += [field(side, name, 48) for side, name in SIDES]
    if len(diff.tables["environment"]):
        book.sheet("Environment", texts, rows_of(EnvironmentRow, diff.tables["environment"]))
    book.blocks("Explanation", _explanation(diff))


def verdict(delta: float | None, diff: float | None, status: str | None = BOTH) -> tuple[str | None, bool]:
    """Return the word of DIFF Filter, and whether the candidate is worse: more time or memory, by no small change."""
    if status in (ADDED, REMOVED, UNMATCHED):
        return status, status == ADDED and bool(delta)
    if delta is None:
        return None, False
    if not delta or format_diff(diff) == "0.0 %":
        return "same", False
    if is_small(diff):
        return "small", False
    return ("worse", True) if delta > 0 else ("better", False)


def _sides(*columns: tuple[str, str]) -> list[Field]:
    """Return the fields of columns (header, name): all of the baseline, then all of the candidate."""
    pairs = [both(header, name) for header, name in columns]
    return [*chain(*zip(*pairs, strict=True))]


def _all_measures(table: str) -> list[Field]:
    """Return the numbers of a matched table: all of the baseline, then all of the candidate."""
    return _sides(*((one.header, one.name) for one in MATCHED_COLUMNS[table].all_measures))


def _spread() -> list[Field]:
    """Return calls, total, average and extremes: all of the baseline, then all of the candidate."""
    return _sides(*((one.header, one.name) for one in _SPREAD))


def _other_measures(table: str, *order: str) -> list[Field]:
    """Return the numbers of a matched table that are not in its spread, both sides of each; those in `order` first."""
    others = {one.name: one for one in MATCHED_COLUMNS[table].all_measures if one not in _SPREAD}
    fields: list[Field] = []
    for name in dict.fromkeys((*order, *others)):
        fields += both(others[name].header, name)
    return fields


def _diff_fields(delta: str) -> list[Field]:
    def word(row: Any) -> tuple[str | None, bool]:
        status = getattr(row, "status", BOTH)  # the queues of a data pipeline have none
        return verdict(getattr(row, delta), row.diff, status)

    return [field("Delta", delta), field("DIFF", "diff", 12), field("DIFF Filter", word, 13, "filter")]


def _known(number: float | None) -> float | None:
    # match keys are never NULL in the store: -1 and 0 stand for "the source does not say"
    return number if number is not None and number > 0 else None


def _yes_or_no(flag: float | None) -> str | None:
    if flag is None:
        return None
    return "yes" if flag else "no"


def _word(row: JudgedRow) -> tuple[str | None, bool]:
    return word_of_step(row.verdict, row.reason) or None, row.verdict in ("REGRESSED", "ADDED")


_VERDICT: Final = (
    field("Verdict", _word, 18, "filter"),
    field("Judged DIFF", "judged_diff", 10), field("q", "q", 10), field("Detectable DIFF", "detectable", 12),
    field("Reason", "reason", 40),
)  # fmt: skip
"""The columns of what was judged; none where nothing was."""
_SPREAD: Final = (CALLS, TIME, AVERAGE, LONGEST, SHORTEST)
_ROW: Final = field("Row", "row", 11)
_HOST_SELF: Final = (
    *both("Host Self Time", "host_self_ns"), field("Host Self Delta", "host_delta_ns"),
    field("Host Self DIFF", "host_diff", 10),
)  # fmt: skip
"""Where ops are judged by their time on the device."""


_OF_KERNEL: Final = (
    *both("Kernel Name", "kernel_name"), *both("Task ID", "task_id", "count"), *both("Task Type", "task_type"),
    *both("Kernel Input Shape", "kernel_shapes"), *both("Step", "step"), *both("Stream ID", "stream", "count"),
    *both("Start Time", "start_ns"),
)  # fmt: skip
"""What a single kernel says beside its time."""


class _Sheet(Struct, frozen=True):
    """The sheet of a section. `table`: of the diff. A table without rows has no sheet. `word`: what
    a row is called in the column Row, with the rows of each table of `below` that have the same `key` under it; `note`:
    the line over the header, where the table `note_of` has rows. {place} and {time} in headers: where ops are timed,
    and what their time is. `more`: columns that stand there where the table of this name has rows.
    """

    title: str
    table: str
    fields: Sequence[Field]
    word: str = ""
    key: tuple[str, ...] = ()
    below: Mapping[str, str] = {}
    note: str = ""
    note_of: str = ""
    more: Mapping[str, Sequence[Field]] = {}


_SHEETS: Final[Mapping[str, _Sheet]] = {
    "operator": _Sheet("OperatorCompare", "ops", (
        _ROW, field("Operator Name", "name", 40), field("Input Shape", "input_shapes", 36),
        field("Input Type", "input_types"), field("Kernel", "kernel", 40), field("Category", "category", 16),
        *_sides(("Calls", "calls"), ("{time}", "ns")), *_diff_fields("delta_ns"),
        field("Delta by Calls", "calls_delta_ns"), field("Delta by Time per Call", "per_call_delta_ns"),
        field("Baseline Operator Name", "baseline_name"), *both("Device Total Time", "device_total_ns"), *_HOST_SELF,
        *both("Host Total Time", "host_total_ns"), *both("Average of a Call", "average_ns"),
        *both("Shortest Call", "min_ns"), *both("Longest Call", "max_ns"),
        *both("Calls in All Steps and Ranks", "total_calls"),
    ), word="op", key=OP_KEY, below={"kernel": "op_details", "task": "op_kernels"}, more={"op_kernels": _OF_KERNEL}),
    "communication": _Sheet("CommunicationCompare", "communication", (
        _ROW, field("Communication OP Name", "kind", 24), field("Group Role", "group_role", 12),
        field("Group Size", lambda row: _known(row.group_size), 11, "count"), field("Data Type", "data_type", 14),
        field("Size Class (KiB)", lambda row: _known(row.size_class_bytes), kind="kb"), field("Task Name", "name", 28),
        field("Plane", "plane", 10), *_spread(), *_diff_fields("delta_ns"),
        *_other_measures("communication", "bytes", "exposed_ns", "exposed_wait_ns"),
        *both("Wait and Transit Split by", "split_by"),
    ), word="operator", key=COMMUNICATION_KEY, below={"task": "communication_details"}, note=_TASKS,
        note_of="communication_details"),
    "link": _Sheet("CommunicationLinkCompare", "communication_links", (
        field("Level", "level", 11), field("Communication OP Name", "kind", 24), field("Group Role", "group_role", 12),
        field("Group Size", "group_size", 11), field("Transport", "transport", 11),
        field("From Rank", "source_rank", 11), field("To Rank", "target_rank", 11), *both("Calls", "calls"),
        *both("Packets", "packets"), *both("Size", "bytes"), *both("Transit", "transit_ns"),
        field("Delta", "delta_ns"), field("DIFF", "diff", 10), field("Status", "status", 12),
        *both("Bandwidth (GB/s)", "bandwidth_gb_per_s"), *both("Large Packets", "large_packet_ratio"),
    ), note=_LEVELS, note_of="communication_links"),
    "memory": _Sheet("MemoryCompare", "memory", (
        _ROW, field("Operator Name", "name", 40), field("Input Shape", "input_shapes", 36),
        field("Input Type", "input_types"), field("Component", "component", 16), field("Allocator", "allocator", 28),
        *_sides(("Allocations", "calls"), ("Size", "bytes")), *_diff_fields("delta_bytes"),
        *both("Duration Held", "held_ns"), *both("Unreleased", "unreleased_bytes"), *both("Allocated At", "time_ns"),
        *both("Step", "step"), field("Baseline Released", lambda row: _yes_or_no(row.baseline_is_released)),
        field("Candidate Released", lambda row: _yes_or_no(row.candidate_is_released)),
        *both("Code", "code_line"),
    ), word="op", key=OP_KEY, below={"component": "memory_details", "allocation": "memory_blocks"}),
    "memory_peak": _Sheet("MemoryPeak", "memory_peak", (
        field("Component", "component", 16), field("Operator Name", "name", 40),
        field("Input Shape", "input_shapes", 36), field("Module", "module", 48), field("Allocator", "allocator", 28),
        *both("Blocks", "calls"), *both("Size", "bytes"), *_diff_fields("delta_bytes"),
        *both("Largest Block", "largest_bytes"), *both("Held Since", "first_ns"),
        *both("Held Since Step", "first_step"), field("Code", "code_line", 48), field("Call Stack", "call_stack", 60),
    )),
    "kernel": _Sheet("KernelCompare", "kernels", (
        field("Kernel", "name", 48), field("Kernel Type", "type", 22), field("Input Shape", "input_shapes"),
        field("Category", "category", 16), field("Core Type", "core_type", 16),
        field("Launched by Operator", "op", 32), field("Other Operators", "more_ops"), *_spread(),
        *_diff_fields("delta_ns"), *_other_measures("kernels"), field("Kernel Metrics", "why", 60),
    )),
    "kernel_type": _Sheet("KernelTypeCompare", "kernel_types", (
        field("Kernel Type", "type", 32), field("Core Type", "core_type", 18), *_spread(), *_diff_fields("delta_ns"),
        *_other_measures("kernel_types"),
    )),
    "metric": _Sheet("KernelMetricCompare", "kernel_metrics", (
        field("Kernel", "name", 48), field("Input Shape", "input_shapes"), field("Core Type", "core_type", 16),
        field("Metric", "metric", 26), field("Kind", "kind", 12), *both("Avg Duration", "average_ns"),
        *both("Mean", "mean"), field("Delta", "delta", kind="number"), field("DIFF", "diff", 10),
        field("Share of the Change", "share"), field("Moved With the Kernel", lambda row: _yes_or_no(row.moved), 12),
    )),
    "module": _Sheet("ModuleCompare", "modules", (
        field("Module", "module", 56), field("Phase", "phase", 14),
        *_all_measures("modules"), *_diff_fields("delta_ns"),
    )),
    "api": _Sheet("ApiCompare", "api", (
        field("API Name", "name", 40), field("Level", "level", 12),
        *_all_measures("api"), *_diff_fields("delta_ns"),
    )),
    "idle": _Sheet("IdleCompare", "idle", (
        field("Cause", "cause", 24), field("Place", "place", 56), *_all_measures("idle"),
        *_diff_fields("delta_ns"),
    )),
    "input": _Sheet("InputCompare", "input_operations", (
        field("Operation", "operation", 40), *both("Calls", "calls"), *both("Avg Duration", "average_ns"),
        *_diff_fields("delta_ns"), *both("Share", "share"), *both("Total Duration", "total_ns"),
    )),
    "argument": _Sheet("ArgumentCompare", "operator_arguments", (
        field("Operator", "operator", 32), field("Status", "status", 12), field("Differs", "changed", 24),
        field("Baseline", "baseline", 64), field("Candidate", "candidate", 64),
    )),
    "counter": _Sheet("CounterCompare", "counters", (
        field("Source", "source", 20), field("Name", "name", 40), field("Measurement", "attribute", 24),
        *both("Values", "calls"), *both("Mean", "mean"), field("Delta", "delta", kind="number"),
        field("DIFF", "diff", 10), *both("Min", "min"), *both("Max", "max"),
    )),
}  # fmt: skip
"""Section -> its sheet, in their order."""
_QUEUES: Final = _Sheet("InputQueueCompare", "input_queues", (
    field("Operation", "operation", 40), field("Interval", "interval", 10), field("Intervals", "intervals", 10),
    *both("Mean Size", "mean"), field("Delta", "delta", kind="number"), field("DIFF", "diff", 10),
    *both("Empty", "empty_share"), *both("Workers", "workers"), *both("Capacity", "capacity"),
    *both("CPU(%)", "cpu_percent"),
))  # fmt: skip
"""Behind the sheet of the operations of a data pipeline: the queues, each with its intervals of time below it."""


def _sheet_of(section: str) -> _Sheet | None:
    """Return the sheet of a section; None for one that is drawn in another way, or not in a diff.

    A table whose rows are those of a level as they are has a column for each part of its key.
    """
    if section in _SHEETS:
        return _SHEETS[section]
    table = SECTION[section].tables[0]
    columns = MATCHED_COLUMNS.get(table)
    if columns is None or not columns.level:
        return None
    keys = [field(name.replace("_", " ").title(), name) for name in columns.key]
    title = section.replace("_", " ").title().replace(" ", "")
    return _Sheet(f"{title}Compare", table, (*keys, *_all_measures(table), *_diff_fields("delta_ns")))


_TREE: Final = (
    field("Level", "level", 8, "count"), field("Kind", "kind", 10),
    field("Name", lambda row: "    " * row.level + row.name, 48), field("Input Shape", "input_shapes", 36),
    *_sides(("Calls", "calls"), ("{place} Time", "ns"), ("Share", "share")), *_diff_fields("delta_ns"),
    *both("Share of Step", "step_share"), *both("Operator Calls Below", "op_calls"),
    *both("{place} Self Time", "self_ns"), *both("Host Total Time", "host_total_ns"),
    *both("Device Total Time", "device_total_ns"),
)  # fmt: skip


def _fields(diff: Diff, fields: Sequence[Field], table: Columns) -> list[Field]:
    """Return the columns of a sheet of `table`: with the words of this diff, and verdicts where there are any."""
    on_host = diff.metric == "host_self_ns"
    place, time = ("Host", "Host Self Time") if on_host else ("Device", "Device Duration")
    listed = [*fields, *(_VERDICT if table.has("verdict") else ())]
    return [
        Field(one.header.format(place=place, time=time), one.kind, one.value, one.width)
        for one in listed
        if not (on_host and one in _HOST_SELF)
    ]


def _write(book: Book, diff: Diff, sheet: _Sheet, limit: int | None) -> None:
    table = diff.tables[sheet.table]
    if not len(table):
        return
    parts = [table.head(limit)]
    if sheet.word:
        parts = [_call_rows(table.head(limit), sheet.word)]
        parts += [_with_status(_call_rows(diff.tables[name], word)) for word, name in sheet.below.items()]
    own, *tables_below = _rows_of_tables(parts)
    rows_below: dict[tuple[object, ...], list[Struct]] = {}
    for row in chain(*tables_below):
        rows_below.setdefault(_key_of(row, sheet), []).append(row)
    rows: list[Struct] = []
    for row in own:
        rows.append(row)
        rows += rows_below.get(_key_of(row, sheet), ())
    above = [Title(sheet.note)] if sheet.note and len(diff.tables[sheet.note_of]) else []
    more = [one for name, fields in sheet.more.items() for one in fields if len(diff.tables[name])]
    fields = _fields(diff, [*sheet.fields, *more], table)

    def tone(row: Any) -> str:
        return "summary" if sheet.word and row.row == sheet.word else ""

    book.sheet(sheet.title, fields, rows, tone=tone, above=above)


def _call_rows(table: Columns, word: str) -> Columns:
    """Return a table with what its rows are called in the column Row."""
    return table.having(row=objects([word] * len(table)))


def _with_status(table: Columns) -> Columns:
    """Return a table with `status`, by which of its sides have a number."""
    unit = "ns" if "baseline_ns" in table else "bytes"
    before, after = (table.known(f"{side}_{unit}") for side in ("baseline", "candidate"))
    status = objects([REMOVED, ADDED, BOTH])[np.where(before == after, 2, after.astype(np.int64))]
    return table.having(status=status)


def _rows_of_tables(tables: Sequence[Columns]) -> list[list[Struct]]:
    """Return the rows of each table; all of them have the columns of all tables, None where their own lacks one."""
    names = dict.fromkeys(name for table in tables for name in table.arrays)
    found = []
    for table in tables:
        missing = {name: objects([None] * len(table)) for name in names if name not in table}
        found.append(rows_of(Struct, table.having(**missing)))
    return found


def _key_of(row: Struct, sheet: _Sheet) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in sheet.key)


_overall_field: Final = FieldsOf(OverallRow)


def _overall(book: Book, diff: Diff) -> None:
    rows = rows_of(OverallRow, diff.tables["overall"])
    of_baseline = {row.metric: row.baseline_value for row in rows}
    step_ns = of_baseline.get("step_ns") or of_baseline.get("e2e_ns")

    def word(row: OverallRow) -> tuple[str | None, bool]:
        return _overall_verdict(row, step_ns)

    fields = [
        _overall_field.field("Metric", _title, 48),
        _overall_field.field("Unit", lambda row: _shown_in(row)[1], 8),
        _overall_field.field("Baseline", lambda row: (_shown_in(row)[0], row.baseline_value), kind="ms"),
        field("Baseline Share of Step", "baseline_share"),
        field("Baseline Number", "baseline_calls"),
        _overall_field.field("Candidate", lambda row: (_shown_in(row)[0], row.candidate_value), kind="ms"),
        field("Candidate Share of Step", "candidate_share"),
        field("Candidate Number", "candidate_calls"),
        _overall_field.field("Delta", lambda row: (_shown_in(row)[0], row.delta), kind="ms"),
        field("DIFF", "diff", 12),
        _overall_field.field("DIFF Filter", word, 13, "filter"),
        field("Name", "metric", 28),
    ]
    titles = []
    for place, ((side, prefix), what) in enumerate(zip(SIDES, (diff.baseline, diff.candidate), strict=True)):
        titles.append(Title(shorten(f"{side} {what.label}: {what.device}", 44), prefix, 2 + 3 * place, 3))
    own = _fields(diff, fields, diff.tables["overall"])
    book.sheet("OverallMetrics", own, rows, tone=lambda row: "" if row.level else "main", above=titles, fixed=1)


def _shown_in(row: OverallRow) -> tuple[str, str]:
    """Return the kind of the numbers of a row, and the word of its unit."""
    return UNITS["count" if row.metric == "samples_per_second" else row.unit]


def _title(row: OverallRow) -> str:
    return f"{'    ' * (row.level or 0)}{_TITLES.get(row.metric) or row.title or row.metric}"


def _overall_verdict(row: OverallRow, step_ns: float | None) -> tuple[str | None, bool]:
    delta = cost(row)
    if delta is None:
        return ("same" if row.delta == 0 else None), False
    if row.unit == "ns" and delta and step_ns and abs(delta) < _SMALL_OF_STEP * step_ns:
        return "small", False
    return verdict(delta, row.diff)


_NOTES: Final = (
    "Numbers are per step: the median over steps, then over ranks, the geometric mean over the runs of a side.",
    "Medians do not add up: what they lack to a sum is its row Rest.",
    "Light blue rows sum up an operator; the rows below list its kernels, tasks or components.",
    "DIFF = (candidate - baseline) / baseline; empty without a baseline.",
    "DIFF Filter: worse, better, same (DIFF shows as 0.0 %), ADDED, REMOVED; red where the candidate needs more.",
    "DIFF Filter small, never red: a change below 1 %; in OverallMetrics also one of a time below 0.1 % of the step.",
    "Verdict: by one number per run, without machine-wide drift; q: false discovery rate.",
    "1 KiB = 1024 bytes, 1 MiB = 1024 KiB. An empty cell: the source does not say.",
)


class _BottleneckOfSide(Struct, frozen=True):
    """The bottleneck of a side, by the name of the side."""

    side: str
    row: Bottleneck


_bottleneck: Final = FieldsOf(_BottleneckOfSide)
_BOTTLENECK: Final = (
    _bottleneck.field("Side", lambda one: one.side), _bottleneck.field("Class", lambda one: one.row.bound),
    _bottleneck.field("Data Loading Share", lambda one: one.row.data_loading_share, kind="percent"),
    _bottleneck.field("Device Utilisation", lambda one: one.row.device_utilisation, kind="percent"),
    _bottleneck.field("Possible Gain Share", lambda one: one.row.possible_gain_share, kind="percent"),
    _bottleneck.field("Outside Steps Share", lambda one: one.row.outside_steps_share, kind="percent"),
    _bottleneck.field("Communication Share", lambda one: one.row.communication_share, kind="percent"),
    _bottleneck.field("Not Known", lambda one: "; ".join(one.row.missing)),
    _bottleneck.field("Thresholds", lambda one: bottleneck.spell_thresholds(one.row)),
)  # fmt: skip
_SIDE: Final = (
    *(field(name.capitalize(), name) for name in ("label", "workload", "version", "device", "configuration")),
    field("Timeline", "timeline"), field("Runs", "runs"), field("Ranks", "ranks"), field("Steps", "steps"),
    field("Chosen Steps", lambda side: format_numbers(side.chosen_steps) or "all"),
    field("Run Ids", lambda side: ", ".join(map(str, side.run_ids))),
)  # fmt: skip
_STEP_KIND: Final = (
    field("Steps of Kind", "kind"), *(field(f"{side} (ms)", f"{name}_ns", kind="ms") for side, name in SIDES),
    field("DIFF", "diff", kind="percent"), *(field(f"{side} Steps a Run", f"{name}_steps") for side, name in SIDES),
    field("Verdict", lambda row: _word(row)[0]),
)  # fmt: skip


class _PartOfChange(Struct, frozen=True):
    """A part of the change of the step, or all of it. `share`: of all of it."""

    title: str
    baseline_ns: float | None
    candidate_ns: float | None
    delta_ns: float | None
    share: float | None


class _ExplainedCause(Struct, frozen=True, kw_only=True):
    """What explains a part of the change, or what all causes add up to, which has no numbers of its own calls."""

    name: str
    delta_ns: float | None
    share: float | None = None
    why: str | None = None
    verdict: str | None = None
    baseline_ns: float | None = None
    candidate_ns: float | None = None
    baseline_calls: float | None = None
    candidate_calls: float | None = None
    input_shapes: str | None = None
    status: str | None = None
    calls_delta_ns: float | None = None
    per_call_delta_ns: float | None = None
    q: float | None = None
    stands_out: bool | None = None
    where: str | None = None


_PART: Final = (
    field("Part", "title"), *(field(f"{side} (ms)", f"{name}_ns", kind="ms") for side, name in SIDES),
    field("Delta (ms)", "delta_ns", kind="ms"), field("Share of the Change", "share"),
)  # fmt: skip
_CONTRIBUTION: Final = (
    field("Cause", "name"), field("Delta", "delta_ns"),
    field("Share of the Change", "share"), field("Why", "why"), field("Verdict", "verdict"),
    field("Baseline", "baseline_ns"), field("Candidate", "candidate_ns"), *both("Calls", "calls"),
    field("Input Shape", "input_shapes"),
)  # fmt: skip
_CAUSE: Final = (
    field("Operator Name", "name"), field("Input Shape", "input_shapes"), field("Status", "status"),
    field("Delta", "delta_ns"), field("Share of the Change", "share"), field("Delta by Calls", "calls_delta_ns"),
    field("Delta by Time per Call", "per_call_delta_ns"), *both("Calls", "calls"), field("Verdict", "verdict"),
    field("q", "q"), field("Stands Out", lambda row: _yes_or_no(row.stands_out)), field("Where", "where"),
    field("Kernel Metrics", "why"),
)  # fmt: skip
_RENAME: Final = (
    field("Removed", "removed"), field("Added", "added"), field("Under", "parent"), field("Removed", "removed_ns"),
    field("Added", "added_ns"),
)  # fmt: skip


def _notes(heading: str, lines: Sequence[str]) -> Block:
    return Block(heading, [field("Note", str)], lines)


def _explanation(diff: Diff) -> Iterator[Block]:
    """Yield the small tables of the sheet, in reading order."""
    explanation = diff.explanation
    yield Block(explanation.headline)
    if explanation.remarks:
        yield _notes("What limits this", explanation.remarks)
    if diff.judgement is not None:
        yield _notes("Verdicts", diff.judgement.sentences)
    if diff.notes:
        yield _notes("What makes the comparison doubtful", diff.notes)
    if diff.bottlenecks is not None:
        before, after = diff.bottlenecks
        of_sides = [_BottleneckOfSide("baseline", before), _BottleneckOfSide("candidate", after)]
        yield Block("Bottleneck", _BOTTLENECK, of_sides)
    yield Block("Sides", _SIDE, [diff.baseline, diff.candidate])
    if diff.step_kinds:
        yield Block("Steps of Each Kind", _STEP_KIND, diff.step_kinds)
    words = {"step_ns": "step time", "e2e_ns": "E2E time"}.get(explanation.total_metric, explanation.total_metric)
    whole = _ExplainedCause(
        name=f"total: {words}",
        delta_ns=explanation.delta_ns,
        verdict=explanation.verdict,
        baseline_ns=explanation.baseline_ns,
        candidate_ns=explanation.candidate_ns,
    )
    yield Block(f"Parts of the change of {words}", _PART, _list_parts(explanation, whole))
    contributions = [_name_contribution(row) for row in explanation.contributions]
    yield Block("What explains the change, each cause once", _CONTRIBUTION, [*contributions, whole])
    rest = _ExplainedCause(name=explanation.rest_title, delta_ns=explanation.rest_ns)
    others_ns = explanation.explained_ns - sum(cause.delta_ns for cause in explanation.causes)
    others = _ExplainedCause(name="all other operators", delta_ns=others_ns)
    yield Block("Operators, ranked by contribution", _CAUSE, [*explanation.causes, others, rest, whole])
    yield Block("By operator name", _CAUSE, explanation.rollup)
    if explanation.renames:
        yield Block("Replaced, renamed or fused", _RENAME, explanation.renames)
    yield _notes("How to read this workbook", _NOTES)


def _list_parts(explanation: Explanation, whole: _ExplainedCause) -> list[_PartOfChange]:
    """Return the parts of the change with their shares, and the whole."""
    whole_ns = whole.delta_ns
    parts = []
    for part in explanation.parts:
        share = part.delta_ns / whole_ns if whole_ns else None
        parts.append(_PartOfChange(part.title, part.baseline_ns, part.candidate_ns, part.delta_ns, share))
    share = 1.0 if whole_ns else None
    parts.append(_PartOfChange(whole.name, whole.baseline_ns, whole.candidate_ns, whole_ns, share))
    return parts


def _name_contribution(row: Contribution) -> _ExplainedCause:
    return _ExplainedCause(
        name=_name_of_cause(row) or row.kind,
        delta_ns=row.delta_ns,
        share=row.share,
        why=row.why,
        verdict=row.verdict,
        baseline_ns=row.baseline_ns,
        candidate_ns=row.candidate_ns,
        baseline_calls=row.baseline_calls,
        candidate_calls=row.candidate_calls,
        input_shapes=row.input_shapes,
    )
