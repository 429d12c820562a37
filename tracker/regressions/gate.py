"""Exit codes of a version: JUDGEMENT, section 7."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from tracker.detect import DEFAULTS, KindCode, Thresholds, Verdict
from tracker.regressions.state import TrackState
from tracker.regressions.track import Track
from tracker.regressions.walk import VersionResult
from tracker.results.gates import GateResult

PASS: Final = 0
FAIL: Final = 1
NOT_COMPARABLE: Final = 3
UNDECIDED: Final = 4


def gate_of(
    track: Track,
    state: TrackState,
    result: VersionResult,
    *,
    every: bool = False,
    excused: Collection[tuple[int, int, str, int]] = (),
    comparable: bool = True,
    judgeable: bool = True,
    limits: Thresholds = DEFAULTS,
) -> GateResult:
    """Whether a version fails: `--fail-on new`, or `any` (`every`), when it is the newest.

    `excused`: keys of findings that people said expect or invalid to. `comparable`: whether it may be compared at all
    (else 3); `judgeable`: whether settings allow a judgement (else 4). A suspected slowdown of the step gives 4, and so
    does a step that has no verdict.
    """
    if not comparable:
        return GateResult(NOT_COMPARABLE, "not comparable", 0.0, 0.0)
    kind = track.series.kind
    found = [one for one in (state.open if every else result.found) if one.state == "open" and one.key not in excused]
    steps = np.flatnonzero(kind == KindCode.STEP)
    silenced = {key[0] for key in excused}
    rises = [rise_of_peak(result, row) for row in np.flatnonzero(kind == KindCode.PEAK).tolist() if row not in silenced]
    verdicts = result.judged.verdict[steps]
    return code_of(
        [one.sign for one in found if one.series in steps],
        net=sum(one.contribution for one in found if track.series.leaf[one.series]),
        peak=max(rises, default=0.0),
        suspect=bool((result.judged.suspect[steps] > 0).any()),
        decided=judgeable and len(steps) > 0 and not (verdicts == Verdict.TOO_FEW_RUNS).any(),
        limits=limits,
    )


def code_of(
    steps: Collection[int], *, net: float, peak: float, suspect: bool, decided: bool, limits: Thresholds = DEFAULTS
) -> GateResult:
    """The exit code of a version that may be compared, by the first rule that holds.

    `steps`: the sign of each finding of the step; `net`: change by the operators that were found; `peak`: rise of peak
    memory; `suspect`: whether the step may be slower; `decided`: whether it has a verdict.
    """
    if any(sign > 0 for sign in steps):
        return GateResult(FAIL, "step", net, peak)
    if peak >= limits.gate_peak:
        return GateResult(FAIL, "peak memory", net, peak)
    if not steps and net >= limits.gate_net:
        return GateResult(FAIL, "net of the operators", net, peak)
    if suspect or not decided:
        return GateResult(UNDECIDED, "suspect" if suspect else "runs", net, peak)
    return GateResult(PASS, "", net, peak)


def rise_of_peak(result: VersionResult, row: int) -> float:
    """How far the peak memory of a version is above its level and above the version before: the smaller rise."""
    now = result.evidence
    logs = now.window.logs[row]
    before = now.versions[now.looked_back]
    last = now.looked_back & (now.versions == (before[-1] if len(before) else -1))
    rises = [float(result.judged.change[row])]
    if last.any():
        rises.append(float(logs[now.new].mean() - logs[last].mean()))
    return float(np.nan_to_num(np.expm1(min(rises))))


__all__ = ["FAIL", "NOT_COMPARABLE", "PASS", "UNDECIDED", "GateResult", "code_of", "gate_of", "rise_of_peak"]
