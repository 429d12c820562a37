"""What the verdicts let the answer of a diff claim: of the total, and which operators it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from tracker.compare.answer import PARTS, how, signed
from tracker.detectors import rule
from tracker.results import Cause, Rename
from tracker.results.verdicts import TOO_NOISY
from tracker.units import format_diff, some_of

if TYPE_CHECKING:
    from tracker.compare.verdicts import Judged, Row

_NAMED: Final = 3
_GROUPS: Final = (
    (rule.REGRESSED, "REGRESSED"), (rule.ADDED, "ADDED"), (rule.SUSPECT, "suspects"), (rule.IMPROVED, "IMPROVED"),
    (rule.REMOVED, "REMOVED"),
)  # fmt: skip
"""Verdict and the word in front of its operators, in the order of the answer."""


class Claim(Struct, frozen=True):
    """`phrase`: between candidate and baseline. `because`: what follows the size of the change, with its `; `.

    `changed`: whether the total is a finding or a suspicion. `found_ns`: the sum of what the named operators changed.
    `nobody`: operators were judged, and none is a finding. `parts`: metric -> verdict, of the parts of a step beside
    the operators that are findings or suspicions; empty where the total is unchanged, and there is nothing to explain.
    """

    phrase: str
    because: str
    changed: bool
    found_ns: float
    nobody: bool
    parts: Mapping[str, str] = field(default_factory=dict)


def claim(judged: Judged, total_metric: str, findings: Sequence[Cause], renames: Sequence[Rename] = ()) -> Claim | None:
    """What may be said where the sides were judged, None where they were not, or the total was not. `renames`: what was
    replaced, which is named as one.
    """
    row = judged.of_total(total_metric)
    if row is None:
        return None
    phrase, remark = _of_total(row, judged)
    replaced = {name for rename in renames for name in rename.names}
    alone = [cause for cause in findings if cause.name not in replaced]
    groups = (_group(title, [cause for cause in alone if cause.verdict == word], judged) for word, title in _GROUPS)
    named = [text for text in (_replaced(renames), *groups) if text]
    changed = row["verdict"] in rule.CHANGED
    because = "".join(f"; {text}" for text in (remark, *named) if text)
    nobody = judged.of_ops and not named
    moved = row["verdict"] not in rule.CALM or remark != ""
    rows = {metric: part for metric in PARTS if moved and (part := judged.of_total(metric)) is not None}
    parts = {metric: str(part["verdict"]) for metric, part in rows.items() if part["verdict"] in dict(_GROUPS)}
    return Claim(phrase, because, changed, sum(cause.delta_ns for cause in findings), nobody, parts)


def _of_total(row: Row, judged: Judged) -> tuple[str, str]:
    """The phrase for the verdict of the total, and a remark."""
    direction = "slower" if row["diff"] > 0 else "faster"
    is_so, may_be, ran = f"is {direction} than", f"may be {direction} than", f"ran {direction} than"
    phrases = {
        rule.REGRESSED: (is_so, ""),
        rule.IMPROVED: (is_so, ""),
        rule.SUSPECT: (may_be, "a suspicion, which the next runs confirm or clear"),
        rule.INCONCLUSIVE: (may_be, "its runs differ too much to be sure"),
        rule.UNCHANGED: ("is as fast as", ""),
        rule.BELOW_LIMIT: (ran, "less than what counts"),
    }
    if row["verdict"] == rule.DRIFT:
        return ran, _drift(row["diff"], judged)
    if row["reason"] == TOO_NOISY:
        return "cannot be told from", "its runs differ too much"
    return phrases.get(row["verdict"], ("cannot be told from", "its runs are too few"))


def _drift(diff: float, judged: Judged) -> str:
    """Why a total that changed by more than its limit is no finding: what all operators share of it, and the rest.

    `diff`: as judged, from medians over the steps; the means that the answer shows may differ by some per cent.
    """
    shared, limit = judged.judgement.shared, judged.step_ratio
    if shared is None or limit is None:
        return "machine drift"
    rest = (1.0 + diff) / (1.0 + shared) - 1.0
    together = f"judged {format_diff(diff)}, of which {format_diff(shared)} is machine drift that all operators share"
    if rest * diff <= 0:
        return f"{together}: no less than the whole change"
    least = f"the {limit * 100:g} % that make a finding"
    if abs(rest) < limit:
        return f"{together}; the rest, {format_diff(rest)}, is below {least}"
    return f"{together}; the rest, {format_diff(rest)}, is above {least}, but its runs differ too much to be sure"


def _replaced(renames: Sequence[Rename]) -> str:
    """What replaced what, of which the net is a finding."""
    found = [rename for rename in renames if rename.verdict in (rule.REGRESSED, rule.IMPROVED)]
    told = [
        f"{some_of(one.removed.split(' + '), ' + ', 2)} => {some_of(one.added.split(' + '), ' + ', 2)} "
        f"{signed(one.added_ns - one.removed_ns)}"
        for one in found
    ]
    return f"replaced: {some_of(told)}" if told else ""


def _group(title: str, causes: Sequence[Cause], judged: Judged) -> str:
    if not causes:
        return ""
    shown = ", ".join(f"{cause.name} {signed(cause.delta_ns)}{_how(cause, judged)}" for cause in causes[:_NAMED])
    more = f" and {len(causes) - _NAMED} more" if len(causes) > _NAMED else ""
    return f"{title}: {shown}{more}"


def _how(cause: Cause, judged: Judged) -> str:
    """In brackets: more or slower calls, or why what takes longer is called faster (or the other way round)."""
    if cause.verdict in (rule.ADDED, rule.REMOVED):
        return ""
    row = judged.of_op(cause.name, cause.input_shapes) if cause.kind == "op" else judged.of_name(cause.name)
    shared = judged.judgement.shared
    if row is None or shared is None or row["diff"] * cause.delta_ns >= 0 or shared * cause.delta_ns <= 0:
        return how(cause)
    return f" ({format_diff(row['diff'])} beside the {format_diff(shared)} that all operators share)"
