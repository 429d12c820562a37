"""What was judged, one check each, for the build systems that read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tracker.compare.gates import gate_of_diff
from tracker.errors import EXIT_FINDINGS, EXIT_NOT_COMPARABLE, EXIT_TOO_LITTLE_DATA
from tracker.regressions.gates import gate_of_findings, reason_of
from tracker.reports.cells import q_text, readable, values
from tracker.reports.commands import command, command_of, words_of
from tracker.reports.document import Check, Checks, Look
from tracker.reports.views import findings as view_of_findings
from tracker.results import Diff, Findings
from tracker.results.budgets import JudgedBudget
from tracker.results.verdicts import BUDGET, FAIL_ON, Gate, GatedRow, word_of_step
from tracker.units import format_diff, printable

_OUTCOMES: Final = {EXIT_NOT_COMPARABLE: "error", EXIT_TOO_LITTLE_DATA: "unsure"}
"""Exit code of a gate -> outcome of a step that was not judged."""
_OUTCOMES_OF_BUDGETS: Final = {"not met": "failed", "not judged": "unsure", "met": "passed"}
_SMALL: Final = 0.001
"""Part of the whole below which what is as it should be, or cannot be judged, is not worth a line."""


def of(result: Any, look: Look) -> Checks:
    """Return the checks of a diff or of findings, by `look.gate`; without one by whether anything regressed."""
    return OF[result.word](result, look)


def _checks_of_diff(diff: Diff, look: Look) -> Checks:
    gate = look.gate or gate_of_diff(diff)
    explanation = diff.explanation
    headline = ". ".join([explanation.headline, *explanation.remarks]).rstrip(".")
    where = words_of(("--workload", diff.options.workload), ("--config", diff.options.config))
    title = command_of(("tracker", "diff"), [diff.baseline.label, diff.candidate.label], where)
    if gate.word not in FAIL_ON:
        return _checks_without_change(title, headline, gate, diff.budgets)
    step = explanation.total_metric.replace("step_ns", "duration_ns")
    alone = []
    if not any(row.key[:2] == ("run", step) for row in gate.rows):  # the step was not judged
        outcome, why = _OUTCOMES.get(gate.code, "passed"), printable(gate.because)
        alone.append(Check("overall", "step", outcome, "NOT_COMPARABLE", why, "", None, "overall:step"))
    totals = (explanation.baseline_ns, explanation.candidate_ns)
    whole = max((value for value in totals if value is not None), default=None)
    return _checks(title, headline, gate, alone, _worth_a_line(gate, whole))


def _checks_of_findings(found: Findings, look: Look) -> Checks:
    gate = look.gate or gate_of_findings(found)
    title = command("tracker", "findings", *words_of(("--workload", found.options.workload)))
    headline = view_of_findings.document(found, look).headline
    if gate.word not in FAIL_ON:
        return _checks_without_change(title, headline, gate, found.budgets)
    return _checks(title, headline, gate, _tracks(found, gate), gate.rows)


def _checks(title: str, headline: str, gate: Gate, alone: Sequence[Check], rows: Sequence[GatedRow]) -> Checks:
    """Return the checks of a gate: those of what was not judged, `alone`, then one for each row."""
    failed, warned = map(_check, gate.of("failed")), map(_check, gate.of("suspect", "known"))
    return Checks(title, headline, gate, (*alone, *map(_check, rows)), tuple(failed), tuple(warned))


def _checks_without_change(title: str, headline: str, gate: Gate, budgets: Sequence[JudgedBudget]) -> Checks:
    """Return the checks of a gate that asks for no change: one of each budget, or of all that it looks at."""
    rows = []
    if gate.word == BUDGET:
        for one in budgets:
            where = " ".join(filter(None, (one.workload, one.configuration, one.device)))
            name = printable(f"{where}: {one.series} {one.limit}")
            sentence = printable(one.sentence)
            outcome = _OUTCOMES_OF_BUDGETS[one.verdict]
            rows.append(Check(BUDGET, name, outcome, one.verdict, sentence, printable(one.words), None, name))
    else:
        outcome, why = _OUTCOMES.get(gate.code, "passed"), printable(gate.because)
        rows.append(Check(gate.word, "all series", outcome, "", why, why, None, gate.word))
    return Checks(title, headline, gate, tuple(rows), tuple(row for row in rows if row.outcome == "failed"), ())


def _check(row: GatedRow) -> Check:
    """Return what was judged, with its numbers, its verdict and why, on one line."""
    name = printable(" ".join(filter(None, (readable(row.name), row.detail))))
    unit = "count" if row.unit == "per_second" else row.unit
    before, after, change = values(unit, row.baseline, row.candidate, row.delta)
    ratios = []
    if row.diff is not None:
        # a diff shows that of its two values, and judges without machine-wide drift; a finding shows what was judged
        judged = format_diff(row.diff)
        shown = judged
        if row.section != "finding" and row.baseline and row.candidate is not None:
            shown = format_diff(row.candidate / row.baseline - 1)
        ratios = [shown] if shown == judged else [shown, f"judged {judged}"]
    q = q_text(row.q)
    word = word_of_step(row.verdict, row.remark)
    verdict = ", ".join(filter(None, (word, *ratios[1:], f"q {q}" if q else "", row.remark)))
    sentence = printable(f"{name}: {before} -> {after} ({', '.join((change, *ratios[:1]))}); {verdict}")
    return Check(
        row.section, name, row.outcome, word, sentence, printable(row.words),
        row.candidate if row.unit == "ns" else None, f"{row.section}:{row.name}",
    )  # fmt: skip


def _worth_a_line(gate: Gate, whole_ns: float | None) -> list[GatedRow]:
    """Return what fails or may fail, numbers of the whole run, and of the rest what is at least 0.1 % of its kind, in
    the order of the result. `whole_ns`: the time that times are parts of.
    """

    def size(row: GatedRow) -> float:
        return max(row.baseline or 0.0, row.candidate or 0.0)

    bytes_ = sum(size(row) for row in gate.rows if row.unit == "bytes" and row.key[0] != "run")
    whole = {"ns": whole_ns or 0.0, "bytes": bytes_}
    return [
        row
        for row in gate.rows
        if row.outcome in ("failed", "suspect", "known")
        or row.key[0] == "run"
        or size(row) >= _SMALL * whole.get(row.unit, 0.0)
    ]


def _tracks(found: Findings, gate: Gate) -> list[Check]:
    """Return a check per track of which runs were judged."""
    checks = []
    for row in found.rows.lines:
        where = " ".join(filter(None, (row.workload, row.configuration, f"on {row.device}", row.version)))
        code, why = row.gate(gate.word)[0], reason_of(row, gate.word)
        fails = code == EXIT_FINDINGS and not gate.of("failed")
        outcome = "unsure" if code == EXIT_TOO_LITTLE_DATA else "failed" if fails else "passed"
        checks.append(
            Check(
                "line", printable(where), outcome, "REGRESSED", why, why, row.step_ns or row.e2e_ns,
                f"line:{where}",
            )
        )  # fmt: skip
    return checks


OF: Final[Mapping[str, Callable[[Any, Look], Checks]]] = {"diff": _checks_of_diff, "findings": _checks_of_findings}
"""Word of a result -> what makes its checks."""
