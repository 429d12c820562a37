"""Whether a diff fails a build."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from tracker.compare.operators import own_time_of
from tracker.compare.verdicts import FIELD_OF, part_of_collective
from tracker.detect import DEFAULTS
from tracker.errors import EXIT_FINDINGS, EXIT_NOT_COMPARABLE, EXIT_OK, EXIT_TOO_LITTLE_DATA
from tracker.regressions.gates import WHY
from tracker.regressions.sides import MEAN_STEP
from tracker.results import ADDED, REMOVED, Cause, Diff
from tracker.results.options import check_words
from tracker.results.verdicts import (
    EXCUSED,
    FAIL_ON,
    INCOMPARABLE,
    NEVER_JUDGED,
    STILL,
    Gate,
    GatedRow,
    GateResult,
    Key,
    Outcome,
)
from tracker.units import format_diff

Row = Mapping[str, Any]

_TABLES: Final = {
    "overall": "overall", "operator": "ops", "kernel": "kernels", "communication": "communication", "memory": "memory",
    "module": "modules", "api": "api",
}  # fmt: skip
"""Section -> the table of a Diff whose rows are judged."""
_SAME_SIZE: Final = 1.0 + DEFAULTS.ratio
_STEP: Final[Key] = ("run", "duration_ns", "", "", "")
_MEAN_STEP_NS: Final = "mean_step_ns"
_E2E: Final[Key] = ("run", "e2e_ns", "", "", "")
_REPLACED: Final = "replaced, for no net loss"
_WHY: Final = WHY | {"runs": "the step has no verdict: too few runs, or other settings"}


def gate_of_diff(diff: Diff, word: str = "new") -> Gate:
    """Return whether a diff fails, whatever sections and filters it was asked for.

    Exit codes: 1 where the step or the mean step got slower, peak memory rose by `gate_peak`, or (no finding of the
    step) the net of the operators found is at least `gate_net`; else 4 where the step is a suspect, has no verdict, or
    became slower with the machine for good; else 0. 3 where the sides are never judged, however many runs there are.
    `any` counts what began with older versions and is open, too. Rows tell what of it fails, of the sections and
    filters asked for.
    """
    check_words("gate", (word,), FAIL_ON)
    judgement = diff.judgement
    if judgement is None or not judgement.judged:
        never = judgement is None or judgement.refusal in (INCOMPARABLE, NEVER_JUDGED)
        because = "nothing was judged" if judgement is None else judgement.sentences[0].rstrip(".")
        return Gate(word, EXIT_NOT_COMPARABLE if never else EXIT_TOO_LITTLE_DATA, because)
    result = diff.gates.get(word, GateResult(EXIT_TOO_LITTLE_DATA, "runs", 0.0, 0.0))
    peak, net = format_diff(result.peak), format_diff(result.net)
    because = _WHY[result.cause].format(peak=peak, net=net, host=result.host)
    if result.code == EXIT_OK:
        because = "nothing fails" + (f"; operators net {net} of the step" if result.net else "")
    return Gate(word, result.code, because, tuple(_judged(diff, result, word)))


def _judged(diff: Diff, result: GateResult, word: str) -> list[GatedRow]:
    """Return all that was judged, with its outcome."""
    found: list[GatedRow] = []
    renamed = {name for rename in diff.explanation.renames if not rename.is_worse for name in rename.names}
    for section, table_name in _TABLES.items():
        if diff.options.only and section not in diff.options.only:
            continue
        table = diff.tables[table_name]
        rows = [dict(zip(table.arrays, row, strict=True)) for row in table.rows(*table.arrays)]
        if section == "operator" and not diff.options.module:
            metric = own_time_of(diff.candidate)
            found += [
                _of_name(cause, metric, renamed, result)
                for cause in diff.explanation.findings
                if _is_asked(cause, diff)
            ]
        sizes = _sizes(rows)
        found += [_row(row, section, diff, renamed, sizes, result, word) for row in rows if row["verdict"] is not None]
    # where there are steps, the time of the whole capture says the same again
    steps = any(row.key == _STEP for row in found)
    return [row for row in found if not (steps and row.key == _E2E)]


def _is_asked(cause: Cause, diff: Diff) -> bool:
    return cause.kind == "name" and (diff.options.op is None or fnmatchcase(cause.name, diff.options.op))


def _of_name(cause: Cause, metric: str, renamed: set[str], result: GateResult) -> GatedRow:
    """Return all shapes of an op together."""
    verdict, times = cause.verdict or "", (cause.baseline_ns, cause.candidate_ns)
    key = ("op_name", metric, cause.name, "", "")
    why = _REPLACED if cause.name in renamed else ""
    outcome, remark = _outcome(verdict, key, why, result, is_worse=cause.delta_ns > 0)
    return GatedRow("operator", cause.name, "", verdict, outcome, "ns", *times, _ratio(*times), cause.q, remark, key)


def _ratio(before: float | None, after: float | None) -> float | None:
    return None if not before or after is None else after / before - 1


def _row(
    row: Row, section: str, diff: Diff, renamed: set[str], sizes: Mapping[str, tuple[float, float]], result: GateResult,
    word: str,
) -> GatedRow:  # fmt: skip
    key, detail = _key(row, section, diff)
    unit = str(row.get("unit") or ("bytes" if section == "memory" else "ns"))
    of = {"overall": "value", "memory": "bytes"}.get(section, "ns")
    name = str(row.get("title") or row.get("kind") or row.get("module") or row.get("name") or row.get("phase"))
    if unit == "count" and row.get("metric") == "samples_per_second":
        unit = "per_second"
    verdict, reason = str(row["verdict"]), str(row["reason"] or "")
    why = EXCUSED if reason == EXCUSED else _no_news(row, section, renamed, sizes)
    outcome, remark = _outcome(verdict, key, why, result, is_worse=_is_worse(row, unit))
    if reason.startswith(STILL) and outcome == "passed":
        fails = word == "any" and result.code == EXIT_FINDINGS and _is_cause(key, result.cause)
        outcome = "failed" if fails else "known"
    return GatedRow(
        section, name, detail, verdict, outcome, unit, row[f"baseline_{of}"], row[f"candidate_{of}"],
        row["judged_diff"], row["q"], remark or reason, key,
    )  # fmt: skip


def _key(row: Row, section: str, diff: Diff) -> tuple[Key, str]:
    """Return the series of a row, and what tells it from others of its name."""
    shapes = str(row.get("input_shapes") or "")
    if section == "overall":
        metric = str(row["metric"])
        return ("run", FIELD_OF.get(metric, metric), "", "", ""), ""
    if section == "communication":
        part = part_of_collective(row["group_role"], row["size_class_bytes"])
        return ("communication", "total_ns", row["kind"], "", part), part
    if section == "module":
        return ("module", own_time_of(diff.candidate), row["module"], "", row["phase"]), row["phase"]
    if section == "api":
        return ("api", "self_ns", row["name"], "", row["level"]), row["level"]
    if section == "operator":
        kind = "op_name" if diff.options.match == "name" else "op"
        return (kind, own_time_of(diff.candidate), row["name"], shapes, ""), shapes
    return (section, {"memory": "bytes"}.get(section, "total_ns"), row["name"], shapes, ""), shapes


def _is_worse(row: Row, unit: str) -> bool:
    """Return which way a change goes, where the verdict does not say."""
    if row.get("status") in (ADDED, REMOVED):
        return bool(row["status"] == ADDED)
    diff = row["judged_diff"]
    if diff is None:
        return (row.get("candidate_calls") or 0.0) > (row.get("baseline_calls") or 0.0)
    return bool(diff < 0) if unit == "per_second" else bool(diff > 0)


def _outcome(verdict: str, key: Key, why: str, result: GateResult, *, is_worse: bool) -> tuple[Outcome, str]:
    """Return what becomes of a verdict at the gate, and why; `why`: a reason for which it is no news."""
    if verdict == "SUSPECT" and is_worse and not why:
        return "suspect", ""
    is_peak = key[0] == "run" and key[1] == "peak_allocated_bytes"
    if is_peak and result.cause == "peak memory":
        return "failed", ""
    if verdict in ("REGRESSED", "ADDED"):
        if why:
            return "passed", why
        if result.code == EXIT_FINDINGS and (is_peak or _is_cause(key, result.cause)):
            return "failed", ""
        if key[1].endswith("bytes"):
            return "passed", f"peak memory {format_diff(result.peak)}, which the limit (gate_peak) is for"
        if result.code == EXIT_FINDINGS:
            return "passed", f"the gate fails by the {result.cause}"
        return "passed", f"operators net {format_diff(result.net)} of the step, below the limit (gate_net)"
    return ("unsure" if verdict in ("INCONCLUSIVE", "TOO_FEW_RUNS") else "passed"), why


def _is_cause(key: Key, cause: str) -> bool:
    """Return whether a series is what a gate failed by, or explains it."""
    is_run, is_bytes = key[0] == "run", key[1].endswith("bytes")
    if cause == "peak memory":
        return is_bytes
    if cause == MEAN_STEP and is_run:
        return key[1] == _MEAN_STEP_NS
    return not is_bytes and (cause == "step" or not is_run)


def _sizes(rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """Of every name of which some rows came and some went: the sum of all its rows on either side."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("name") is not None and "input_shapes" in row:
            by_name.setdefault(str(row["name"]), []).append(row)
    of = "bytes" if rows and "baseline_bytes" in rows[0] and "baseline_ns" not in rows[0] else "ns"
    return {
        name: (sum(row[f"baseline_{of}"] or 0.0 for row in own), sum(row[f"candidate_{of}"] or 0.0 for row in own))
        for name, own in by_name.items()
        if {ADDED, REMOVED} <= {row["status"] for row in own}
    }


def _no_news(row: Row, section: str, renamed: set[str], sizes: Mapping[str, tuple[float, float]]) -> str:
    """Return why something that came is none; "" where it is, or was there before."""
    if section == "operator" and row["name"] in renamed:
        return _REPLACED
    if row.get("status") != ADDED:
        return ""
    if section in ("memory", "kernel") and (row["name"] in renamed or row.get("op") in renamed):
        return _REPLACED
    before, after = sizes.get(str(row.get("name")), (0.0, math.inf))
    return "other shapes of what is no larger in all" if after <= _SAME_SIZE * before else ""
