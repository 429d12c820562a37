"""The workbook: summary rows in light blue with their kernels, tasks or components below, DIFF, and red where worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tracker.reports import (
    _explanation_sheet,
    _history_sheets,
    _human_verdicts,
    _log_sheets,
    _matrix_sheet,
    _show_sheets,
    _xlsx_memory,
    _xlsx_metrics,
    tables_xlsx,
)
from tracker.reports._layout import shorten
from tracker.reports._workbook import SIDES, Book, Field, Row, Title, both, field
from tracker.reports.shared import Style, chosen_sections, is_small, pruned, records
from tracker.results import (
    ADDED,
    BOTH,
    COMMUNICATION_KEY,
    EXPLAIN_COLUMNS,
    OP_KEY,
    REMOVED,
    UNMATCHED,
    Calibration,
    Diff,
    ExplainedFinding,
    Findings,
    History,
    Log,
    Matrix,
    Shown,
)
from tracker.units import format_diff

if TYPE_CHECKING:
    from tracker.columns import Columns

TITLE = "Excel workbook with all details"
SUFFIX = ".xlsx"
BINARY = True

_KINDS: Final = {"ns": "ms", "bytes": "mb", "count": "count", "ratio": "percent"}
_SPREAD: Final = (
    ("Calls", "count", "calls"),
    ("Total Duration (us)", "us", "ns"),
    ("Avg Duration (us)", "us", "average_ns"),
    ("Max Duration (us)", "us", "max_ns"),
    ("Min Duration (us)", "us", "min_ns"),
)
_TITLES: Final = {"idle_ns": "Free (scheduling)", "idle_share": "Free, share of E2E"}
"""Titles that the layout of this workbook fixes; everywhere else this is idle time."""
_SMALL_OF_E2E: Final = 0.001
"""A change of a part of a step below this share of E2E is small, however large it is beside the part."""
_DIFF_WIDTH: Final = 12
_TASKS: Final = (
    "Tasks of one collective run on several planes (and links) at the same time: their rows sum up all of them, and do "
    "not add up to the time of the collective."
)
_UNITS: Final = {"ms": "ms", "mb": "MiB", "count": "count", "percent": "%"}


def diff(diff: Diff, style: Style) -> bytes:
    """The workbook of a diff: a sheet per chosen section, then Environment and Explanation."""
    book = Book(style.tell)
    writers = {
        "overall": _overall, "operator": _operators, "kernel": _kernels, "communication": _communication,
        "memory": _memory, "memory_peak": _memory_peak, "kernel_type": _kernel_types, "module": _modules, "api": _api,
        "metric": _xlsx_metrics.kernel_metrics, "link": _xlsx_metrics.communication_links,
        "counter": _xlsx_metrics.counters,
    }  # fmt: skip
    limit = style.rows(None)
    first = ("overall", "operator", "communication", "link", "memory", "memory_peak", "kernel", "kernel_type", "metric")
    if diff.tree_table is not None:
        _tree(book, diff, diff.tree_table, limit)
    sections = chosen_sections(diff, style)
    for section in (*first, "module", "api", "counter"):
        if section in sections:
            writers[section](book, diff, limit)
    _environment(book, diff)
    book.blocks("Explanation", _explanation_sheet.blocks(diff))
    return book.save()


def show(shown: Shown, style: Style) -> bytes:
    """The workbook of one run: a plain sheet per table."""
    return _show_sheets.write(shown, style)


def log(log: Log, style: Style) -> bytes:
    """The workbook of an optimisation log: the table as people read it, then its cells and columns as rows."""
    return _log_sheets.write(log, style)


def history(history: History, style: Style) -> bytes:
    """The workbook of series over versions: a sheet with a chart per series, then points, runs and environment."""
    return _history_sheets.write(history, style)


def findings(found: Findings, style: Style) -> bytes:
    """The workbook of incidents with their findings."""
    return tables_xlsx.write({name.capitalize(): rows for name, rows in found.tables.items()}, style.tell)


def explained(found: ExplainedFinding, style: Style) -> bytes:
    """The workbook of one finding."""
    from tracker.lazy import pd

    tables = {"Finding": pd.DataFrame([found.finding], dtype=object)}
    tables |= {name.capitalize(): getattr(found, name) for name in EXPLAIN_COLUMNS}
    return tables_xlsx.write(tables, style.tell)


def matrix(matrix: Matrix, style: Style) -> bytes:
    """The workbook of three or more sides: the matrix with a scale of colours, and the sides."""
    return _matrix_sheet.write(matrix, style)


def calibration(calibration: Calibration, style: Style) -> bytes:
    """The workbook of a calibration: a sheet per table."""
    titles = {"ratios": "False verdicts", "proposals": "Proposals", "power": "Smallest change found",
              "suspects": "Suspects", "series": "Noisy series"}  # fmt: skip
    return tables_xlsx.write({title: getattr(calibration, name) for name, title in titles.items()}, style.tell)


def verdict(row: Row, delta: float | None) -> tuple[str | None, bool]:
    """The word of DIFF Filter and whether the candidate is worse: more time or memory, and not by a small change."""
    status = row.get("status", BOTH)
    if status in (ADDED, REMOVED, UNMATCHED):
        return str(status), status == ADDED and bool(delta)
    if delta is None:
        return None, False
    if not delta or format_diff(row.get("diff")) == "0.0 %":
        return "same", False
    if is_small(row.get("diff")):
        return "small", False
    return ("worse", True) if delta > 0 else ("better", False)


def _diff_fields(delta: str, kind: str) -> list[Field]:
    unit = {"us": "us", "kb": "KiB", "ms": "ms"}[kind]
    return [
        field(f"Delta ({unit})", kind, delta),
        field("DIFF", "percent", "diff", _DIFF_WIDTH),
        field("DIFF Filter", "filter", lambda row: verdict(row, row.get(delta)), 13),
    ]


def _verdict_fields(table: Columns) -> list[Field]:
    """The columns of what was judged, none where nothing was."""
    if not _human_verdicts.judged(table):
        return []
    return [
        field("Verdict", "filter", lambda row: (row.get("verdict"), row.get("verdict") in ("REGRESSED", "ADDED")), 18),
        field("Judged DIFF", "percent", "judged_diff", 10),
        field("q", "number", "q", 10),
        field("Detectable DIFF", "percent", "detectable", 12),
        field("Reason", "text", "reason", 40),
    ]


def _blocks(*columns: tuple[str, str, str]) -> list[Field]:
    """(header, kind, name) of each column: all of the baseline, then all of the candidate."""
    return [
        field(f"{side} {header}", kind, f"{prefix}_{name}") for side, prefix in SIDES for header, kind, name in columns
    ]


def _write(book: Book, title: str, fields: Sequence[Field], table: Columns, limit: int | None) -> None:
    rows = records(table.head(limit))
    book.sheet(title, fields, (("", row) for row in rows), len(rows))


def _nested(table: Columns, details: Columns, key: Sequence[str], limit: int | None) -> list[tuple[str, Row]]:
    """Every row of `table` as a summary, with the rows of `details` that have the same key below it."""
    below: dict[tuple[Any, ...], list[Row]] = {}
    for row in records(details):
        below.setdefault(tuple(row[name] for name in key), []).append(row)
    nested: list[tuple[str, Row]] = []
    for row in records(table.head(limit)):
        nested.append(("summary", row))
        nested += [("", _as_detail(detail)) for detail in below.get(tuple(row[name] for name in key), ())]
    return nested


def _as_detail(row: Row) -> Row:
    of = "bytes" if "delta_bytes" in row else "ns"
    before, after = row[f"baseline_{of}"], row[f"candidate_{of}"]
    status = BOTH if (before is None) == (after is None) else ADDED if before is None else REMOVED
    return {**row, "status": status, "detail": True}


def _level(summary: str, detail: str) -> Field:
    return field("Row", "text", lambda row: detail if row.get("detail") else summary, 11)


def _title(row: Mapping[str, Any]) -> str:
    return _TITLES.get(str(row["metric"])) or str(row["title"] or row["metric"])


def _overall(book: Book, diff: Diff, limit: int | None) -> None:
    def take(name: str) -> Any:
        return lambda row: (_kind(row), row[name])

    e2e = next((row["baseline_value"] for row in records(diff.tables["overall"]) if row["metric"] == "e2e_ns"), None)
    fields = [
        field("Metric", "text", lambda row: "    " * int(row["level"] or 0) + _title(row), 48),
        field("Unit", "text", lambda row: _UNITS[_kind(row)], 8),
    ]
    titles = []
    for (side, prefix), what in zip(SIDES, (diff.baseline, diff.candidate), strict=True):
        titles.append(Title(shorten(f"{side} {what.label}: {what.device}", 44), prefix, len(fields), 3))
        fields += [
            field(side, "ms", take(f"{prefix}_value")),
            field(f"{side} Share of E2E", "percent", f"{prefix}_share"),
            field(f"{side} Number", "count", f"{prefix}_calls"),
        ]
    fields += [
        field("Delta", "ms", take("delta")),
        field("DIFF", "percent", "diff", _DIFF_WIDTH),
        field("DIFF Filter", "filter", lambda row: _overall_verdict(row, e2e), 13),
        field("Name", "text", "metric", 28),
        *_verdict_fields(diff.tables["overall"]),
    ]
    rows = [("" if row["level"] else "main", row) for row in records(diff.tables["overall"])]
    book.sheet("OverallMetrics", fields, rows, len(rows), above=titles, fixed=1)


def _kind(row: Row) -> str:
    return "count" if row["metric"] == "samples_per_second" else _KINDS[row["unit"]]


def _overall_verdict(row: Row, e2e_ns: float | None) -> tuple[str | None, bool]:
    delta = row["delta"]
    # more overlap and more samples are good news; a count or a correction is neither good nor bad
    if row["metric"] in ("overlap_ns", "samples_per_second") and delta is not None:
        delta = -delta
    elif row["unit"] == "count" or row["metric"] == "groups_at_once_ns":
        return ("same" if delta == 0 else None), False
    if row["unit"] == "ns" and delta and e2e_ns and abs(delta) < _SMALL_OF_E2E * e2e_ns:
        return "small", False
    return verdict(row, delta)


def _operators(book: Book, diff: Diff, limit: int | None) -> None:
    on_host = diff.metric == "host_self_ns"
    duration = "Host Self Time (us)" if on_host else "Device Duration (us)"
    host_self = [  # where ops are judged by their time on the device
        *both("Host Self Time (us)", "us", "host_self_ns"),
        field("Host Self Delta (us)", "us", "host_delta_ns"),
        field("Host Self DIFF", "percent", "host_diff", 10),
    ]
    fields = [
        _level("op", "kernel"),
        field("Operator Name", "text", "name", 40),
        field("Input Shape", "text", "input_shapes", 36),
        field("Input Type", "text", "input_types"),
        field("Kernel", "text", "kernel", 40),
        field("Category", "text", "category", 16),
        *_blocks(("Calls", "count", "calls"), (duration, "us", "ns")),
        *_diff_fields("delta_ns", "us"),
        field("Delta by Calls (us)", "us", "calls_delta_ns"),
        field("Delta by Time per Call (us)", "us", "per_call_delta_ns"),
        field("Baseline Operator Name", "text", "baseline_name"),
        *both("Device Total Time (us)", "us", "device_total_ns"),
        *([] if on_host else host_self),
        *both("Host Total Time (us)", "us", "host_total_ns"),
        *both("Average of a Call (us)", "us", "average_ns"),
        *both("Shortest Call (us)", "us", "min_ns"),
        *both("Longest Call (us)", "us", "max_ns"),
        *both("Calls in All Steps and Ranks", "count", "total_calls"),
        *_verdict_fields(diff.tables["ops"]),
    ]
    rows = _nested(diff.tables["ops"], diff.tables["op_details"], OP_KEY, limit)
    book.sheet("OperatorCompare", fields, rows, len(rows))


def _communication(book: Book, diff: Diff, limit: int | None) -> None:
    fields = [
        _level("operator", "task"),
        field("Communication OP Name", "text", "kind", 24),
        field("Group Role", "text", "group_role", 12),
        field("Group Size", "count", lambda row: _known(row["group_size"]), 11),
        field("Data Type", "text", "data_type", 14),
        field("Size Class (KiB)", "kb", lambda row: _known(row["size_class_bytes"])),
        field("Task Name", "text", "name", 28),
        field("Plane", "text", "plane", 10),
        *_blocks(*_SPREAD),
        *_diff_fields("delta_ns", "us"),
        *both("Payload (KiB)", "kb", "bytes"),
        *both("Exposed (us)", "us", "exposed_ns"),
        *both("Exposed Wait (us)", "us", "exposed_wait_ns"),
        *both("Wait (us)", "us", "wait_ns"),
        *both("Transit (us)", "us", "transit_ns"),
        *both("Synchronization, of Wait (us)", "us", "synchronization_ns"),
        *both("Idle (us)", "us", "idle_ns"),
        *both("Wait and Transit Split by", "text", "split_by"),
        *_verdict_fields(diff.tables["communication"]),
    ]
    rows = _nested(diff.tables["communication"], diff.tables["communication_details"], COMMUNICATION_KEY, limit)
    above = [Title(_TASKS)] if len(diff.tables["communication_details"]) else []
    book.sheet("CommunicationCompare", fields, rows, len(rows), above=above)


def _known(value: float | None) -> float | None:
    # match keys are never NULL in the store: -1 and 0 stand for "the source does not say"
    return value if value is not None and value > 0 else None


def _memory(book: Book, diff: Diff, limit: int | None) -> None:
    rows = _xlsx_memory.nested(diff, _as_detail, limit)
    _xlsx_memory.compare(book, diff, rows, _diff_fields("delta_bytes", "kb"), _verdict_fields(diff.tables["memory"]))


def _memory_peak(book: Book, diff: Diff, limit: int | None) -> None:
    _xlsx_memory.peak(book, diff, limit, _diff_fields("delta_bytes", "kb"))


def _kernels(book: Book, diff: Diff, limit: int | None) -> None:
    fields = [
        field("Kernel", "text", "name", 48),
        field("Kernel Type", "text", "type", 22),
        field("Input Shape", "text", "input_shapes"),
        field("Category", "text", "category", 16),
        field("Core Type", "text", "core_type", 16),
        field("Launched by Operator", "text", "op", 32),
        field("Other Operators", "count", "more_ops"),
        *_blocks(*_SPREAD),
        *_diff_fields("delta_ns", "us"),
        field("Kernel Metrics", "text", "why", 60),
        *_verdict_fields(diff.tables["kernels"]),
    ]
    _write(book, "KernelCompare", fields, diff.tables["kernels"], limit)


def _kernel_types(book: Book, diff: Diff, limit: int | None) -> None:
    if not len(diff.tables["kernel_types"]):  # no NPU on either side
        return
    fields = [
        field("Kernel Type", "text", "type", 32),
        field("Core Type", "text", "core_type", 18),
        *_blocks(*_SPREAD),
        *_diff_fields("delta_ns", "us"),
    ]
    _write(book, "KernelTypeCompare", fields, diff.tables["kernel_types"], limit)


def _modules(book: Book, diff: Diff, limit: int | None) -> None:
    time = "Host Self Time (us)" if diff.metric == "host_self_ns" else "Device Self Time (us)"
    fields = [
        field("Module", "text", "module", 56),
        field("Phase", "text", "phase", 14),
        *_blocks(("Operator Calls", "count", "calls"), (time, "us", "ns")),
        *_diff_fields("delta_ns", "us"),
        *_verdict_fields(diff.tables["modules"]),
    ]
    _write(book, "ModuleCompare", fields, diff.tables["modules"], limit)


def _api(book: Book, diff: Diff, limit: int | None) -> None:
    times = [("Calls", "count", "calls"), ("Total Duration (us)", "us", "ns")]
    times += [("Self Time (us)", "us", "self_ns"), ("Avg Duration (us)", "us", "average_ns")]
    fields = [
        field("API Name", "text", "name", 40),
        field("Level", "text", "level", 12),
        *_blocks(*times),
        *_diff_fields("delta_ns", "us"),
        *_verdict_fields(diff.tables["api"]),
    ]
    _write(book, "ApiCompare", fields, diff.tables["api"], limit)


def _tree(book: Book, diff: Diff, tree: Columns, limit: int | None) -> None:
    place = "Host" if diff.metric == "host_self_ns" else "Device"
    fields = [
        field("Level", "count", "level", 8),
        field("Kind", "text", "kind", 10),
        field("Name", "text", lambda row: "    " * row["level"] + row["name"], 48),
        field("Input Shape", "text", "input_shapes", 36),
        *_blocks(("Calls", "count", "calls"), (f"{place} Time (us)", "us", "ns"), ("Share", "percent", "share")),
        *_diff_fields("delta_ns", "us"),
        *both("Share of Step", "percent", "step_share"),
        *both("Operator Calls Below", "count", "op_calls"),
        *both(f"{place} Self Time (us)", "us", "self_ns"),
        *both("Host Total Time (us)", "us", "host_total_ns"),
        *both("Device Total Time (us)", "us", "device_total_ns"),
        *_verdict_fields(tree),
        field("Path", "text", "path", 60),
    ]
    rows = records(pruned(tree, limit))
    book.sheet("TreeCompare", fields, (("" if row["level"] else "main", row) for row in rows), len(rows))


def _environment(book: Book, diff: Diff) -> None:
    fields = [
        field("Kind", "text", "kind", 16),
        field("Key", "text", "key", 36),
        field("Baseline", "text", "baseline", 48),
        field("Candidate", "text", "candidate", 48),
    ]
    _write(book, "Environment", fields, diff.tables["environment"], None)
