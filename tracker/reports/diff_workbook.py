"""The workbook of a diff, as the comparison tools of Ascend have it: summary rows in light blue with their kernels,
tasks or components below, DIFF, and red where worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from tracker.reports.cells import is_small
from tracker.reports.look import Look
from tracker.reports.rows import Row, has, plain, pruned, records
from tracker.reports.tables import bottleneck_rows, chosen_sections
from tracker.reports.text import shorten
from tracker.reports.workbook import SIDES, Book, Field, Title, both, field
from tracker.results import ADDED, BOTH, COMMUNICATION_KEY, OP_KEY, REMOVED, UNMATCHED, Diff
from tracker.units import format_diff, format_numbers

if TYPE_CHECKING:
    from tracker.columns import Columns

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
_ROW: Final = field("Row", "text", "row", 11)
_TASKS: Final = (
    "Tasks of one collective run on several planes (and links) at the same time: their rows sum up all of them, and do "
    "not add up to the time of the collective."
)
_UNITS: Final = {"ms": "ms", "mb": "MiB", "count": "count", "percent": "%"}


def write(diff: Diff, look: Look) -> bytes:
    """The workbook of a diff: a sheet per chosen section, then Environment and Explanation."""
    book = Book(look.tell)
    writers = {
        "overall": _overall, "operator": _operators, "communication": _communication, "link": _links,
        "memory": _memory, "memory_peak": _memory_peak, "kernel": _kernels, "kernel_type": _kernel_types,
        "metric": _kernel_metrics, "module": _modules, "api": _api, "counter": _counters,
    }  # fmt: skip
    limit = look.rows(None)
    if diff.tree_table is not None:
        _tree(book, diff, diff.tree_table, limit)
    sections = chosen_sections(diff, look)
    for section, write_section in writers.items():
        if section in sections:
            write_section(book, diff, limit)
    _environment(book, diff)
    book.blocks("Explanation", _explanation(diff))
    return book.save()


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
    if not has(table, "verdict"):
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


def _write(
    book: Book, title: str, fields: Sequence[Field], table: Columns, limit: int | None, above: Sequence[Title] = ()
) -> None:
    rows = records(table.head(limit))
    book.sheet(title, fields, (("", row) for row in rows), len(rows), above=above)


def _nested(
    table: Columns, key: Sequence[str], limit: int | None, word: str, **details: Columns
) -> list[tuple[str, Row]]:
    """Every row of `table` as a summary, with the rows of each table of `details` that have the same key below it; the
    column `row` says which a row is: `word`, or the name of the table.
    """
    below: dict[tuple[Any, ...], list[Row]] = {}
    for name, rows in details.items():
        for row in records(rows):
            before, after = (row.get(f"{side}_ns", row.get(f"{side}_bytes")) for _, side in SIDES)
            status = BOTH if (before is None) == (after is None) else ADDED if before is None else REMOVED
            below.setdefault(tuple(row[part] for part in key), []).append({**row, "status": status, "row": name})
    nested: list[tuple[str, Row]] = []
    for row in records(table.head(limit)):
        nested.append(("summary", {**row, "row": word}))
        nested += [("", detail) for detail in below.get(tuple(row[part] for part in key), ())]
    return nested


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
        _ROW,
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
    rows = _nested(diff.tables["ops"], OP_KEY, limit, "op", kernel=diff.tables["op_details"])
    book.sheet("OperatorCompare", fields, rows, len(rows))


def _communication(book: Book, diff: Diff, limit: int | None) -> None:
    fields = [
        _ROW,
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
    tasks = diff.tables["communication_details"]
    rows = _nested(diff.tables["communication"], COMMUNICATION_KEY, limit, "operator", task=tasks)
    above = [Title(_TASKS)] if len(tasks) else []
    book.sheet("CommunicationCompare", fields, rows, len(rows), above=above)


def _known(value: float | None) -> float | None:
    # match keys are never NULL in the store: -1 and 0 stand for "the source does not say"
    return value if value is not None and value > 0 else None


def _memory(book: Book, diff: Diff, limit: int | None) -> None:
    """Below each op what it consists of: sums per component and allocator, then single blocks."""
    sums, blocks = diff.tables["memory_details"], diff.tables["memory_blocks"]
    rows = _nested(diff.tables["memory"], OP_KEY, limit, "op", component=sums, allocation=blocks)
    fields = [
        _ROW,
        field("Operator Name", "text", "name", 40),
        field("Input Shape", "text", "input_shapes", 36),
        field("Input Type", "text", "input_types"),
        field("Component", "text", "component", 16),
        field("Allocator", "text", "allocator", 28),
        *_blocks(("Allocations", "count", "calls"), ("Size (KiB)", "kb", "bytes")),
        *_diff_fields("delta_bytes", "kb"),
        *both("Duration Held (us)", "us", "held_ns"),
        *both("Unreleased (KiB)", "kb", "unreleased_bytes"),
        *both("Allocated At (us)", "us", "time_ns"),
        *both("Step", "count", "step"),
        *both("Released", "text", lambda row, side: _yes_or_no(row.get(f"{side}_is_released"))),
        *both("Code", "text", "code_line"),
        *_verdict_fields(diff.tables["memory"]),
    ]
    book.sheet("MemoryCompare", fields, rows, len(rows))


def _memory_peak(book: Book, diff: Diff, limit: int | None) -> None:
    """The sheet MemoryPeak: who held the memory when it was most; none where a side does not know."""
    table = diff.tables["memory_peak"]
    if not len(table):
        return
    fields = [
        field("Component", "text", "component", 16),
        field("Operator Name", "text", "name", 40),
        field("Input Shape", "text", "input_shapes", 36),
        field("Module", "text", "module", 48),
        field("Allocator", "text", "allocator", 28),
        *both("Blocks", "count", "calls"),
        *both("Size (KiB)", "kb", "bytes"),
        *_diff_fields("delta_bytes", "kb"),
        *both("Largest Block (KiB)", "kb", "largest_bytes"),
        *both("Held Since (us)", "us", "first_ns"),
        *both("Held Since Step", "count", "first_step"),
        field("Code", "text", "code_line", 48),
        field("Call Stack", "text", "call_stack", 60),
    ]
    rows = records(table.head(limit))
    book.sheet("MemoryPeak", fields, (("", row) for row in rows), len(rows))


def _yes_or_no(value: float | None) -> str | None:
    return None if value is None else "yes" if value else "no"


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


_LEVELS: Final = "Rows of each level (transport, link) state the same bytes: add up those of one level only."


def _kernel_metrics(book: Book, diff: Diff, limit: int | None) -> None:
    """KernelMetricCompare: the metrics of the kernels that changed most; no sheet where none were measured."""
    fields = [
        field("Kernel", "text", "name", 48),
        field("Input Shape", "text", "input_shapes"),
        field("Core Type", "text", "core_type", 16),
        field("Metric", "text", "metric", 26),
        field("Kind", "text", "kind", 12),
        *both("Avg Duration (us)", "us", "average_ns"),
        *both("Mean", "number", "mean"),
        field("Delta", "number", "delta"),
        field("DIFF", "percent", "diff", 10),
        field("Share of the Change", "percent", "share"),
        field("Moved With the Kernel", "text", lambda row: _yes_or_no(row["moved"]), 12),
    ]
    if len(diff.tables["kernel_metrics"]):
        _write(book, "KernelMetricCompare", fields, diff.tables["kernel_metrics"], limit)


def _links(book: Book, diff: Diff, limit: int | None) -> None:
    """CommunicationLinkCompare: all links of a transport together, and from rank to rank; no sheet without any."""
    fields = [
        field("Level", "text", "level", 11),
        field("Communication OP Name", "text", "kind", 24),
        field("Group Role", "text", "group_role", 12),
        field("Group Size", "count", "group_size", 11),
        field("Transport", "text", "transport", 11),
        field("From Rank", "count", "source_rank", 11),
        field("To Rank", "count", "target_rank", 11),
        *both("Calls", "count", "calls"),
        *both("Packets", "count", "packets"),
        *both("Size (KiB)", "kb", "bytes"),
        *both("Transit (us)", "us", "transit_ns"),
        field("Delta (us)", "us", "delta_ns"),
        field("DIFF", "percent", "diff", 10),
        field("Status", "text", "status", 12),
        *both("Bandwidth (GB/s)", "number", "bandwidth_gb_per_s"),
        *both("Large Packets", "percent", "large_packet_ratio"),
    ]
    if len(diff.tables["communication_links"]):
        _write(
            book, "CommunicationLinkCompare", fields, diff.tables["communication_links"], limit, above=[Title(_LEVELS)]
        )


def _counters(book: Book, diff: Diff, limit: int | None) -> None:
    """CounterCompare: what both profilers counted in tables of their own; no sheet where they counted nothing."""
    fields = [
        field("Source", "text", "source", 20),
        field("Name", "text", "name", 40),
        field("Measurement", "text", "attribute", 24),
        *both("Values", "count", "calls"),
        *both("Mean", "number", "mean"),
        field("Delta", "number", "delta"),
        field("DIFF", "percent", "diff", 10),
        *both("Min", "number", "min"),
        *both("Max", "number", "max"),
    ]
    if len(diff.tables["counters"]):
        _write(book, "CounterCompare", fields, diff.tables["counters"], limit)


_Block = tuple[str, Sequence[Field], Sequence[Row]]

_NOTES = (
    "Numbers are per step: the median over steps, then over ranks, the geometric mean over the runs of a side.",
    "Medians do not add up: what they lack to a sum is its row Rest.",
    "Light blue rows sum up an operator; the rows below list its kernels, tasks or components.",
    "DIFF = (candidate - baseline) / baseline; empty without a baseline.",
    "DIFF Filter: worse, better, same (DIFF shows as 0.0 %), ADDED, REMOVED; red where the candidate needs more.",
    "DIFF Filter small, never red: a change below 1 %; in OverallMetrics also one of a time below 0.1 % of E2E.",
    "Verdict: by one number per run, without machine-wide drift; q: false discovery rate.",
    "1 KiB = 1024 bytes, 1 MiB = 1024 KiB. An empty cell: the source does not say.",
)


def _explanation(diff: Diff) -> Iterator[_Block]:
    """The small tables of the sheet, in reading order."""
    explanation = diff.explanation
    yield explanation.headline, [], []
    if explanation.remarks:
        yield "What limits this", [field("Note", "text", "note")], [{"note": text} for text in explanation.remarks]
    if diff.judgement is not None:
        sentences = [{"note": sentence} for sentence in diff.judgement.sentences]
        yield "Verdicts", [field("Note", "text", "note")], sentences
    if diff.notes:
        yield "What makes the comparison doubtful", [field("Note", "text", "note")], [{"note": n} for n in diff.notes]
    if diff.bottlenecks is not None:
        yield "Bottleneck", _bottleneck_fields(), bottleneck_rows(diff)
    yield "Sides", _side_fields(), [plain(diff.baseline), plain(diff.candidate)]
    words = {"step_ns": "step time", "e2e_ns": "E2E time"}.get(explanation.total_metric, explanation.total_metric)
    total = f"total: {words}"
    whole = asdict(explanation) | {"title": total, "name": total}
    parts = [*(asdict(part) for part in explanation.parts), whole]
    yield f"Parts of the change of {words}", _part_fields(explanation.delta_ns), plain(parts)
    contributions = [
        plain(row) | ({"name": f"{row.count} other {row.name}"} if row.kind == "others" else {})
        for row in explanation.contributions
    ]
    yield "What explains the change, each cause once", _contribution_fields(), [*contributions, plain(whole)]
    rest = {"name": explanation.rest_title, "delta_ns": explanation.rest_ns}
    others = explanation.explained_ns - sum(cause.delta_ns for cause in explanation.causes)
    closing = [{"name": "all other operators", "delta_ns": others}, rest, whole]
    yield "Operators, ranked by contribution", _cause_fields(), [*plain(explanation.causes), *plain(closing)]
    yield "By operator name", _cause_fields(), [plain(cause) for cause in explanation.rollup]
    if explanation.renames:
        yield "Replaced, renamed or fused", _rename_fields(), [plain(rename) for rename in explanation.renames]
    yield "How to read this workbook", [field("Note", "text", "note")], [{"note": note} for note in _NOTES]


def _bottleneck_fields() -> list[Field]:
    texts = [field("Side", "text", "side"), field("Class", "text", "class")]
    shares = (
        "data_loading_share",
        "device_utilisation",
        "possible_gain_share",
        "outside_steps_share",
        "communication_share",
    )
    numbers = [field(name.replace("_", " ").title(), "percent", name) for name in shares]
    return [*texts, *numbers, field("Not Known", "text", "missing"), field("Thresholds", "text", "thresholds")]


def _side_fields() -> list[Field]:
    texts = [field(name.capitalize(), "text", name) for name in ("label", "workload", "version", "device")]
    texts += [field("Configuration", "text", "configuration"), field("Timeline", "text", "timeline")]
    runs = field("Run Ids", "text", lambda row: ", ".join(map(str, row["run_ids"])))
    counts = [field(name.capitalize(), "count", name) for name in ("runs", "ranks", "steps")]
    chosen = field("Chosen Steps", "text", lambda row: format_numbers(row.get("chosen_steps") or ()) or "all")
    return [*texts, *counts, chosen, runs]


def _part_fields(delta_ns: float | None) -> list[Field]:
    def share(row: Row) -> float | None:
        return row["delta_ns"] / delta_ns if delta_ns and row["delta_ns"] is not None else None

    return [
        field("Part", "text", "title"),
        field("Baseline (ms)", "ms", "baseline_ns"),
        field("Candidate (ms)", "ms", "candidate_ns"),
        field("Delta (ms)", "ms", "delta_ns"),
        field("Share of the Change", "percent", share),
    ]


def _contribution_fields() -> list[Field]:
    return [
        field("Cause", "text", lambda row: row["name"] or row["kind"]),
        field("Delta (us)", "us", "delta_ns"),
        field("Share of the Change", "percent", "share"),
        field("Why", "text", "why"),
        field("Verdict", "text", "verdict"),
        field("Baseline (us)", "us", "baseline_ns"),
        field("Candidate (us)", "us", "candidate_ns"),
        field("Baseline Calls", "count", "baseline_calls"),
        field("Candidate Calls", "count", "candidate_calls"),
        field("Input Shape", "text", "input_shapes"),
    ]


def _cause_fields() -> list[Field]:
    return [
        field("Operator Name", "text", "name"),
        field("Input Shape", "text", "input_shapes"),
        field("Status", "text", "status"),
        field("Delta (us)", "us", "delta_ns"),
        field("Share of the Change", "percent", "share"),
        field("Delta by Calls (us)", "us", "calls_delta_ns"),
        field("Delta by Time per Call (us)", "us", "per_call_delta_ns"),
        field("Baseline Calls", "count", "baseline_calls"),
        field("Candidate Calls", "count", "candidate_calls"),
        field("Verdict", "text", "verdict"),
        field("q", "number", "q"),
        field("Stands Out", "text", lambda row: _yes_or_no(row.get("stands_out"))),
        field("Where", "text", "where"),
        field("Kernel Metrics", "text", "why"),
    ]


def _rename_fields() -> list[Field]:
    return [
        field("Removed", "text", "removed"),
        field("Added", "text", "added"),
        field("Under", "text", "parent"),
        field("Removed (us)", "us", "removed_ns"),
        field("Added (us)", "us", "added_ns"),
    ]
