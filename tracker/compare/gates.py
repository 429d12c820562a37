"""Whether a diff fails a build, and what becomes of each row that was judged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tracker.columns import objects
from tracker.compare.own_runs import list_keys
from tracker.detect import DEFAULTS
from tracker.errors import EXIT_FINDINGS, EXIT_NOT_COMPARABLE, EXIT_OK, EXIT_TOO_LITTLE_DATA
from tracker.regressions.gates import WHY
from tracker.regressions.sides import MEAN_STEP
from tracker.results import ADDED, REMOVED, Cause, Diff
from tracker.results.options import check_words
from tracker.results.sections import SECTION
from tracker.results.verdicts import (
    EXCUSED,
    FAIL_ON,
    INCOMPARABLE,
    NEVER_JUDGED,
    STILL,
    Gate,
    GatedRow,
    GateResult,
    Outcome,
)
from tracker.schema.column_names import INPUT_SHAPES, METRIC, SAMPLES_PER_SECOND
from tracker.schema.series import KIND_OF_TABLE, RUN, SeriesKey, key_of_run, metric_of_number, own_time_of
from tracker.units import format_diff

if TYPE_CHECKING:
    from tracker.columns import Columns

_OVERALL: Final = "overall"
_TABLES: Final = {
    word: section.tables[0]
    for word, section in SECTION.items()
    if section.tables[0] == _OVERALL or section.tables[0] in KIND_OF_TABLE
}
"""Section -> the table of a Diff whose rows are judged."""
_NUMBER_SUFFIXES: Final = {_OVERALL: "value", "memory": "bytes"}
"""Section -> what its columns of both sides end with behind `baseline_` and `candidate_`, where they are no times.

But for the overall section, whose rows have one each, that is the unit of the numbers, too.
"""
_TIME_SUFFIX: Final = "ns"
_SAME_SIZE: Final = 1.0 + DEFAULTS.ratio
_PEAK: Final = key_of_run("peak memory").metric
_PEAK_CAUSE: Final = "peak memory"
_REPLACED: Final = "replaced, for no net loss"
_OTHER_SHAPES: Final = "other shapes of what is no larger in all"
_WHY: Final = WHY | {"runs": "the step has no verdict: too few runs, or other settings"}


def _key_of_run_metric(metric: str) -> SeriesKey:
    """Return the key of a number of a whole run at a gate: it has a metric alone."""
    return SeriesKey(RUN, metric, "")


_STEP: Final = _key_of_run_metric(key_of_run("step").metric)
_E2E: Final = _key_of_run_metric(key_of_run("e2e").metric)
_MEAN_STEP_METRIC: Final = key_of_run(MEAN_STEP).metric


def gate_of_diff(diff: Diff, word: str = "new") -> Gate:
    """Return whether a diff fails, whatever sections and filters were chosen.

    Exit codes: 1 where the step or the mean step got slower, peak memory rose by `gate_peak`, or (no finding of the
    step) the net of the operators found is at least `gate_net`; else 4 where the step is a suspect, has no verdict, or
    became slower with the machine for good; else 0. 3 where the sides are never judged, however many runs there are.
    `any` counts what began with older versions and is open, too. The rows are those of the chosen sections and
    filters, each with what becomes of it.
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
    return Gate(word, result.code, because, tuple(_Gating.of_diff(diff, result, word).list_rows()))


class _Gating(Struct, frozen=True):
    """What the rows of a diff are gated by.

    `result`: how the gate ends; `word`: of FAIL_ON; `own_time`: the time that operators are judged by;
    `replaced_names`: operators that went or came in a replacement that is no loss.
    """

    diff: Diff
    result: GateResult
    word: str
    own_time: str
    replaced_names: frozenset[str]

    @classmethod
    def of_diff(cls, diff: Diff, result: GateResult, word: str) -> _Gating:
        """Return what the rows of `diff` are gated by."""
        names: set[str] = set()
        for rename in diff.explanation.renames:
            if not rename.is_worse:
                names.update(rename.names)
        return cls(diff, result, word, own_time_of(diff.candidate.timeline), frozenset(names))

    def list_rows(self) -> list[GatedRow]:
        """Return all that was judged, of the sections that were chosen."""
        gated: list[GatedRow] = []
        for section, table_name in _TABLES.items():
            if self.diff.options.only and section not in self.diff.options.only:
                continue
            if section == "operator":
                gated += self._gate_operator_names()
            gated += self._gate_table(section, table_name)
        has_step = any(row.key == _STEP for row in gated)
        if has_step:
            # the time of the whole capture says the same again
            gated = [row for row in gated if row.key != _E2E]
        return gated

    def _gate_operator_names(self) -> list[GatedRow]:
        """Return the findings of operators, all shapes of a name together."""
        options = self.diff.options
        if options.module:
            return []
        gated = []
        for cause in self.diff.explanation.findings:
            is_chosen = options.op is None or fnmatchcase(cause.name, options.op)
            if cause.kind == "name" and is_chosen:
                gated.append(self._gate_operator_name(cause))
        return gated

    def _gate_operator_name(self, cause: Cause) -> GatedRow:
        verdict = cause.verdict or ""
        key = SeriesKey("op_name", self.own_time, cause.name)
        why = _REPLACED if cause.name in self.replaced_names else ""
        outcome, remark = self._decide_outcome(verdict, key, why, is_worse=cause.delta_ns > 0)
        before, after = cause.baseline_ns, cause.candidate_ns
        change = after / before - 1 if before and after is not None else None
        return GatedRow("operator", cause.name, "", verdict, outcome, "ns", before, after, change, cause.q, remark, key)

    def _gate_table(self, section: str, table_name: str) -> list[GatedRow]:
        table = self.diff.tables[table_name]
        rows = _list_judged_rows(table, _NUMBER_SUFFIXES.get(section, _TIME_SUFFIX))
        if table_name == _OVERALL:
            keys = [_key_of_run_metric(metric_of_number(metric)) for metric in table.listed(METRIC)]
        else:
            by_name = self.diff.options.match == "name"
            keys = list_keys(table_name, table, self.own_time, by_name=by_name)
        sizes = _sum_names_on_both_sides(rows) if INPUT_SHAPES in table else {}
        gated = []
        for row, key in zip(rows, keys, strict=True):
            if row.verdict is not None:
                gated.append(self._gate_row(row, row.verdict, key, section, sizes))
        return gated

    def _gate_row(
        self, row: _JudgedRow, verdict: str, key: SeriesKey, section: str, sizes: Mapping[str, tuple[float, float]]
    ) -> GatedRow:
        name, unit = key.name, _NUMBER_SUFFIXES.get(section, _TIME_SUFFIX)
        if section == _OVERALL:
            name, unit = row.title or "", row.unit or ""
        if unit == "count" and key.metric == SAMPLES_PER_SECOND:
            unit = "per_second"
        reason = row.reason or ""
        why = EXCUSED if reason == EXCUSED else self._why_no_news(row, section, sizes)
        outcome, remark = self._decide_outcome(verdict, key, why, is_worse=_is_worse(row, unit))
        if reason.startswith(STILL) and outcome == "passed":
            # what an older version brought fails `any` alone
            fails = self.word == "any" and self.result.code == EXIT_FINDINGS and _is_cause(key, self.result.cause)
            outcome = "failed" if fails else "known"
        return GatedRow(
            section=section,
            name=name,
            detail=key.input_shapes or key.part,
            verdict=verdict,
            outcome=outcome,
            unit=unit,
            baseline=row.baseline,
            candidate=row.candidate,
            diff=row.judged_diff,
            q=row.q,
            remark=remark or reason,
            key=key,
        )

    def _why_no_news(self, row: _JudgedRow, section: str, sizes: Mapping[str, tuple[float, float]]) -> str:
        """Return why a row that came is no news; "" where it is, or was there before."""
        if section == "operator" and row.name in self.replaced_names:
            return _REPLACED
        if row.status != ADDED:
            return ""
        if section in ("memory", "kernel") and {row.name, row.op} & self.replaced_names:
            return _REPLACED
        before, after = sizes.get(row.name or "", (0.0, math.inf))
        return _OTHER_SHAPES if after <= _SAME_SIZE * before else ""

    def _decide_outcome(self, verdict: str, key: SeriesKey, why: str, *, is_worse: bool) -> tuple[Outcome, str]:
        """Return what becomes of a verdict at the gate, and why; `why`: a reason for which it is no news."""
        result = self.result
        if verdict == "SUSPECT" and is_worse and not why:
            return "suspect", ""
        is_peak = key.kind == RUN and key.metric == _PEAK
        if is_peak and result.cause == _PEAK_CAUSE:
            # the limit gate_peak is one of the number, whatever its verdict
            return "failed", ""
        if verdict not in ("REGRESSED", "ADDED"):
            is_unsure = verdict in ("INCONCLUSIVE", "TOO_FEW_RUNS")
            return ("unsure" if is_unsure else "passed"), why
        if why:
            return "passed", why
        if result.cause in ("alike", "host"):
            return "unsure", ""
        is_failing = result.code == EXIT_FINDINGS
        if is_failing and (is_peak or _is_cause(key, result.cause)):
            return "failed", ""
        if key.metric.endswith("bytes"):
            return "passed", f"peak memory {format_diff(result.peak)}, which the limit (gate_peak) is for"
        if is_failing:
            return "passed", f"the gate fails by the {result.cause}"
        return "passed", f"operators net {format_diff(result.net)} of the step, below the limit (gate_net)"


class _JudgedRow(Struct, frozen=True):
    """A row of a table of a Diff that ends with VERDICT_COLUMNS. `baseline`, `candidate`: its number on either side.

    None for what is missing, and for a column that the table does not have.
    """

    name: str | None
    title: str | None
    unit: str | None
    status: str | None
    op: str | None
    verdict: str | None
    reason: str | None
    judged_diff: float | None
    q: float | None
    baseline: float | None
    candidate: float | None
    baseline_calls: float | None
    candidate_calls: float | None


def _list_judged_rows(table: Columns, suffix: str) -> list[_JudgedRow]:
    """Return the rows of a table. `suffix`: what the columns with its number end with."""
    named = table.renamed({f"baseline_{suffix}": "baseline", f"candidate_{suffix}": "candidate"})
    nothing = objects([None] * len(table))
    lacking = {name: nothing for name in _JudgedRow.__struct_fields__ if name not in named}
    return list(named.having(**lacking).structs(_JudgedRow))


def _is_worse(row: _JudgedRow, unit: str) -> bool:
    """Return whether a change is one for the worse, where the verdict does not say it."""
    if row.status in (ADDED, REMOVED):
        return row.status == ADDED
    if row.judged_diff is None:
        return (row.candidate_calls or 0.0) > (row.baseline_calls or 0.0)
    if unit == "per_second":
        return row.judged_diff < 0
    return row.judged_diff > 0


def _is_cause(key: SeriesKey, cause: str) -> bool:
    """Return whether a series is what a gate failed by, or explains it."""
    is_run, is_size = key.kind == RUN, key.metric.endswith("bytes")
    if cause == _PEAK_CAUSE:
        return is_size
    if cause == MEAN_STEP and is_run:
        return key.metric == _MEAN_STEP_METRIC
    return not is_size and (cause == "step" or not is_run)


def _sum_names_on_both_sides(rows: Sequence[_JudgedRow]) -> dict[str, tuple[float, float]]:
    """Return the sum of all rows on either side, for every name with rows that came and rows that went."""
    rows_of_name: dict[str, list[_JudgedRow]] = {}
    for row in rows:
        if row.name is not None:
            rows_of_name.setdefault(row.name, []).append(row)
    sums = {}
    for name, of_name in rows_of_name.items():
        if {ADDED, REMOVED} <= {row.status for row in of_name}:
            before = sum(row.baseline or 0.0 for row in of_name)
            after = sum(row.candidate or 0.0 for row in of_name)
            sums[name] = (before, after)
    return sums
