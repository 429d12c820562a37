"""What the verdicts let the answer of a diff claim: of the total, and which operators it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracker.compare.answer import how, signed
from tracker.detectors import rule
from tracker.results import Cause
from tracker.units import format_diff

if TYPE_CHECKING:
    import pandas as pd

    from tracker.compare.verdicts import Judged

_NAMED: Final = 3
_GROUPS: Final = (
    (rule.REGRESSED, "REGRESSED"), (rule.ADDED, "ADDED"), (rule.SUSPECT, "suspects"), (rule.IMPROVED, "IMPROVED"),
    (rule.REMOVED, "REMOVED"),
)  # fmt: skip
"""Verdict and the word in front of its operators, in the order of the answer."""


@dataclass(frozen=True, slots=True)
class Claim:
    """`phrase`: between candidate and baseline. `because`: what follows the size of the change, with its `; `.

    `changed`: whether the total is a finding or a suspicion. `found_ns`: the sum of what the named operators changed.
    `nobody`: operators were judged, and none is a finding.
    """

    phrase: str
    because: str
    changed: bool
    found_ns: float
    nobody: bool


def claim(judged: Judged, total_metric: str, findings: Sequence[Cause]) -> Claim | None:
    """What may be said where the sides were judged, None where they were not, or the total was not."""
    row = judged.of_total(total_metric)
    if row is None:
        return None
    phrase, remark = _of_total(row, judged)
    named = [text for word, title in _GROUPS if (text := _group(title, [c for c in findings if c.verdict == word]))]
    changed = row["verdict"] in (rule.REGRESSED, rule.IMPROVED, rule.SUSPECT)
    because = "".join(f"; {text}" for text in (remark, *named) if text)
    nobody = judged.of_ops and not named
    return Claim(phrase, because, changed, sum(cause.delta_ns for cause in findings), nobody)


def _of_total(row: pd.Series, judged: Judged) -> tuple[str, str]:
    """The phrase for the verdict of the total, and a remark."""
    verdict, slower = row["verdict"], row["diff"] > 0
    direction = "slower" if slower else "faster"
    if verdict in (rule.REGRESSED, rule.IMPROVED):
        return f"is {direction} than", ""
    if verdict == rule.SUSPECT:
        return f"may be {direction} than", "a suspicion, which the next runs confirm or clear"
    if verdict == rule.UNCLEAR:
        return f"may be {direction} than", "its runs differ too much to be sure"
    if verdict == rule.UNCHANGED:
        if "machine drift" in str(row["reason"]):
            return f"ran {direction} than", _drift(row["diff"], judged)
        return "is as fast as", ""
    return "cannot be told from", "its runs differ too much for so few"


def _drift(diff: float, judged: Judged) -> str:
    """Why a total that changed by more than its limit is no finding: what all operators share of it, and the rest."""
    shared, limit = judged.judgement.shared, judged.step_ratio
    if shared is None or limit is None:
        return "machine drift"
    rest = (1.0 + diff) / (1.0 + shared) - 1.0
    together = f"{format_diff(shared)} is machine drift, which all operators share"
    if rest * diff <= 0:
        return f"{together}, and no less than the whole change"
    least = f"the {limit * 100:g} % that make a finding"
    if abs(rest) < limit:
        return f"{together}, and the rest, {format_diff(rest)}, is below {least}"
    return f"{together}; the rest, {format_diff(rest)}, is above {least}, but its runs differ too much to be sure"


def _group(title: str, causes: Sequence[Cause]) -> str:
    if not causes:
        return ""
    shown = ", ".join(f"{cause.name} {signed(cause.delta_ns)}{_how(cause)}" for cause in causes[:_NAMED])
    more = f" and {len(causes) - _NAMED} more" if len(causes) > _NAMED else ""
    return f"{title}: {shown}{more}"


def _how(cause: Cause) -> str:
    return "" if cause.verdict in (rule.ADDED, rule.REMOVED) else how(cause)
