"""What the changed series do to the step: parts that add up, their rank, and how severe it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pandas as pd

from tracker.detectors import rule
from tracker.detectors._arrays import F64

CANCELLING: Final = 0.3
CRITICAL_STEP_RATIO: Final = 0.05

Severity = Literal["critical", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Attribution:
    """The change of a total by its parts (JUDGEMENT 7), in the unit of the times; sum of `delta` + `rest` = `total`.

    `parts`: a row per series in input order: `delta`, `share` (of the total change; nan when gains and losses cancel or
    the total did not change), `rank` (0 first; ranked are the regressed ones by delta, then the others by size).
    `rest`: host, idle and overlap. `loss`, `gain`: sums of the positive and of the negative deltas. `cancelling`: the
    total moved by less than 30 % of all movement, so shares of it would mislead.
    """

    parts: pd.DataFrame
    total: float
    rest: float
    loss: float
    gain: float
    cancelling: bool


def attribute(before: F64, after: F64, total_before: float, total_after: float, verdicts: F64, t: F64) -> Attribution:
    """How the parts make up the change of the total. `before`, `after`: exclusive (self) time per step of each series,
    0 where a side does not have it; `verdicts`, `t` from the judgement; ties of delta go to the larger t, then to the
    earlier row.
    """
    delta = after - before
    total = float(total_after - total_before)
    movement = float(np.abs(delta).sum())
    cancelling = movement > 0 and abs(total) < CANCELLING * movement
    share = np.full(len(delta), np.nan) if cancelling or total == 0 else delta / total
    slower = np.isin(verdicts, [rule.REGRESSED, rule.ADDED])
    order = np.lexsort((np.arange(len(delta)), -np.nan_to_num(t), -np.abs(delta), -np.where(slower, delta, 0.0)))
    rank = np.empty(len(delta), dtype=np.int64)
    rank[order] = np.arange(len(delta))
    parts = pd.DataFrame({"delta": delta, "share": share, "rank": rank})
    loss, gain = float(delta[delta > 0].sum()), float(delta[delta < 0].sum())
    return Attribution(parts, total, total - float(delta.sum()), loss, gain, cancelling)


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
    return "warning" if regressed or contribution >= 0.01 - rule.ROUNDING else "info"
