"""The sheet Explanation: the answer, both sides, the parts and the causes of the change, and how to read the
workbook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import asdict

from tracker.reports import _human_bottleneck
from tracker.reports._human_diff import total_words
from tracker.reports._workbook import Field, Row, field
from tracker.reports.shared import plain
from tracker.results import Cause, Diff
from tracker.units import format_numbers

Block = tuple[str, Sequence[Field], Sequence[Row]]

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


def blocks(diff: Diff) -> Iterator[Block]:
    """The small tables of the sheet, in reading order."""
    explanation = diff.explanation
    yield explanation.headline, [], []
    if diff.judgement is not None:
        sentences = [{"note": sentence} for sentence in diff.judgement.sentences]
        yield "Verdicts", [field("Note", "text", "note")], sentences
    if diff.notes:
        yield "What makes the comparison doubtful", [field("Note", "text", "note")], [{"note": n} for n in diff.notes]
    if diff.bottlenecks is not None:
        yield "Bottleneck", _bottleneck_fields(), _human_bottleneck.sides(diff)
    yield "Sides", _side_fields(), [plain(diff.baseline), plain(diff.candidate)]
    total = f"total: {total_words(explanation)}"
    whole = asdict(explanation) | {"title": total, "name": total}
    parts = [*(asdict(part) for part in explanation.parts), whole]
    yield f"Parts of the change of {total_words(explanation)}", _part_fields(explanation.delta_ns), plain(parts)
    rest = {"name": explanation.rest_title, "delta_ns": explanation.rest_ns}
    others = explanation.explained_ns - sum(cause.delta_ns for cause in explanation.causes)
    closing = [{"name": "all other operators", "delta_ns": others}, rest, whole]
    yield "Operators, ranked by contribution", _cause_fields(), [*_causes(explanation.causes), *plain(closing)]
    yield "By operator name", _cause_fields(), _causes(explanation.rollup)
    if explanation.renames:
        yield "Replaced, renamed or fused", _rename_fields(), [plain(rename) for rename in explanation.renames]
    yield "How to read this workbook", [field("Note", "text", "note")], [{"note": note} for note in _NOTES]


def _causes(causes: Sequence[Cause]) -> list[Row]:
    return [plain(cause) for cause in causes]


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
        field("Stands Out", "text", _stands_out),
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


def _stands_out(row: Row) -> str | None:
    told = row.get("stands_out")
    return None if told is None else "yes" if told else "no"
