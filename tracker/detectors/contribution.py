"""When gains and losses cancel, and how severe a finding is."""

from __future__ import annotations

from typing import Final, Literal

from tracker.detectors import rule

CANCELLING: Final = 0.3
"""A total that moved by less of all movement has no parts of it: shares would mislead (JUDGEMENT 7)."""

MATTERS: Final = 0.01
"""Part of the step from which a finding is more than a remark."""

CRITICAL_STEP_RATIO: Final = 0.05

Severity = Literal["critical", "warning", "info"]


def severity(step_ratio: float | None, step_verdict: str, contribution: float) -> Severity:
    """How loud a confirmed finding is (JUDGEMENT 8): critical when the step itself is REGRESSED by 5 % or more; warning
    when the finding alone makes the step 1 % slower or the step is REGRESSED at all; info otherwise.

    `step_ratio`: None where the step is not known. `contribution`: of the finding, signed fraction of the step.

    >>> severity(0.073, "REGRESSED", 0.02), severity(0.0, "UNCHANGED", 0.012), severity(None, "TOO_FEW_RUNS", 0.002)
    ('critical', 'warning', 'info')
    """
    regressed = step_verdict == rule.REGRESSED
    if regressed and step_ratio is not None and step_ratio >= CRITICAL_STEP_RATIO - rule.ROUNDING:
        return "critical"
    return "warning" if regressed or contribution >= MATTERS - rule.ROUNDING else "info"
