"""What was judged, for build systems: which rows are worth a line, and how they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracker.reports._human import readable, values
from tracker.reports._human_verdicts import q_text
from tracker.reports.shared import Style, command, command_of
from tracker.results import Diff, Findings
from tracker.results.gates import Gate, GatedRow
from tracker.units import format_diff, printable

_SMALL: Final = 0.001
"""Part of the whole below which what is as it should be, or cannot be told, is not worth a line."""

_UNITS: Final = {"per_second": "count"}


def gate_of(result: Diff | Findings, style: Style) -> Gate:
    """The gate that the result was measured by; without one, whether anything regressed."""
    from tracker.compare.gates import gate_of_diff
    from tracker.regressions.gates import gate_of_findings

    if style.gate is not None:
        return style.gate
    return gate_of_diff(result) if isinstance(result, Diff) else gate_of_findings(result)


def title(result: Diff | Findings) -> str:
    """The command that asks for it."""
    workload = result.options.workload
    where = ["--workload", workload] if workload else []
    if isinstance(result, Diff):
        where += [word for key, value in result.options.config.items() for word in ("--config", f"{key}={value}")]
        return command_of(("tracker", "diff"), [result.baseline.label, result.candidate.label], where)

    return command("tracker", "findings", *where)


def name(row: GatedRow) -> str:
    """What was judged, with its shapes or the like; on one line."""
    return printable(" ".join(filter(None, (readable(row.name), row.detail))))


def sentence(row: GatedRow) -> str:
    """What was measured, what was said of it, and why; on one line."""
    before, after, change = values(_UNITS.get(row.unit, row.unit), row.baseline, row.candidate, row.delta)
    q = q_text(row.q)
    said = ", ".join(filter(None, (row.verdict, *_ratios(row)[1:], f"q {q}" if q else "", row.remark)))
    moved = ", ".join((change, *_ratios(row)[:1]))
    return printable(f"{name(row)}: {before} -> {after} ({moved}); {said}")


def _ratios(row: GatedRow) -> list[str]:
    """The DIFF that all reports show, and the one that was judged where that is another; nothing where there is none.

    A diff shows that of its two values, and judges without what all operators share; a finding shows what was judged.
    """
    if row.diff is None:
        return []
    judged = format_diff(row.diff)
    if row.section == "finding" or not row.baseline or row.candidate is None:
        return [judged]
    shown = format_diff(row.candidate / row.baseline - 1)
    return [shown] if shown == judged else [shown, f"judged {judged}"]


def worth_a_line(gate: Gate, whole_ns: float | None) -> list[GatedRow]:
    """What fails or may fail, numbers of the whole run, and of the rest what is at least 0.1 % of its kind; in the
    order of the result. `whole_ns`: the time that times are parts of.
    """
    bytes_ = sum(_size(row) for row in gate.rows if row.unit == "bytes" and row.key[0] != "run")
    whole = {"ns": whole_ns or 0.0, "bytes": bytes_}
    return [
        row
        for row in gate.rows
        if row.outcome in ("failed", "suspect", "known")
        or row.key[0] == "run"
        or _size(row) >= _SMALL * whole.get(row.unit, 0.0)
    ]


def _size(row: GatedRow) -> float:
    return max(row.baseline or 0.0, row.candidate or 0.0)


def whole_ns(result: Diff | Findings) -> float | None:
    """The larger step of both sides of a diff; None for findings."""
    if not isinstance(result, Diff):
        return None
    known: Sequence[float] = [
        value for value in (result.explanation.baseline_ns, result.explanation.candidate_ns) if value is not None
    ]
    return max(known, default=None)
