"""What the verdicts let the answer of a diff claim: of the total, and which operators it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from tracker.compare.answer import PARTS, how, signed
from tracker.results import Cause, Rename
from tracker.units import format_diff, some_of

if TYPE_CHECKING:
    from tracker.compare.verdicts import Judged, Row

_NAMED: Final = 3
_GROUPS: Final = {
    "REGRESSED": "REGRESSED", "ADDED": "ADDED", "SUSPECT": "suspects", "IMPROVED": "IMPROVED", "REMOVED": "REMOVED",
}  # fmt: skip
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
    groups = (
        _group(title, [cause for cause in alone if cause.verdict == word], judged) for word, title in _GROUPS.items()
    )
    named = [text for text in (_replaced(renames), *groups) if text]
    changed = row["verdict"] in _GROUPS
    because = "".join(f"; {text}" for text in (remark, *named) if text)
    nobody = judged.of_ops and not named and row["verdict"] != "TOO_FEW_RUNS"
    moved = row["verdict"] != "UNCHANGED" and phrase != "cannot be told from"
    rows = {metric: part for metric in PARTS if moved and (part := judged.of_total(metric)) is not None}
    parts = {metric: str(part["verdict"]) for metric, part in rows.items() if part["verdict"] in _GROUPS}
    return Claim(phrase, because, changed, sum(cause.delta_ns for cause in findings), nobody, parts)


def _of_total(row: Row, judged: Judged) -> tuple[str, str]:
    """The phrase for the verdict of the total, and a remark."""
    direction = "slower" if row["change"] > 0 else "faster"
    is_so, may_be, ran = f"is {direction} than", f"may be {direction} than", f"ran {direction} than"
    phrases = {
        "REGRESSED": (is_so, ""),
        "IMPROVED": (is_so, ""),
        "SUSPECT": (may_be, "a suspect, which the next runs confirm or clear"),
        "UNCHANGED": ("is as fast as", ""),
        "BELOW_LIMIT": (ran, "less than the limit"),
        "TOO_FEW_RUNS": ("cannot be told from", "its runs are too few"),
    }
    if row["verdict"] == "DRIFT":
        return ran, _drift(row["change"], judged)
    if row["verdict"] == "INCONCLUSIVE":
        small = judged.step_ratio is not None and abs(row["change"]) < judged.step_ratio
        return ("cannot be told from" if small else may_be), "its runs differ too much to be sure"
    return phrases[row["verdict"]]


def _drift(change: float, judged: Judged) -> str:
    """Why a total that changed by more than its limit is no finding: the machine-wide drift in it, and the rest.

    `change`: against the runs that it was judged against; those of the baseline may be others.
    """
    shared, limit = judged.judgement.shared, judged.step_ratio
    if shared is None or limit is None:
        return "machine-wide drift"
    rest = (1.0 + change) / (1.0 + shared) - 1.0
    together = f"judged {format_diff(change)}, of which {format_diff(shared)} is machine-wide drift"
    if rest * change <= 0:
        return f"{together}: no less than the whole change"
    least = f"the {limit * 100:g} % that make a finding"
    if abs(rest) < limit:
        return f"{together}; the rest, {format_diff(rest)}, is below {least}"
    return f"{together}; the rest, {format_diff(rest)}, is above {least}, but its runs differ too much to be sure"


def _replaced(renames: Sequence[Rename]) -> str:
    """What replaced what at a loss."""
    texts = [
        f"{some_of(one.removed.split(' + '), ' + ', 2)} => {some_of(one.added.split(' + '), ' + ', 2)} "
        f"{signed(one.added_ns - one.removed_ns)}"
        for one in renames
        if one.is_worse
    ]
    return f"replaced: {some_of(texts)}" if texts else ""


def _group(title: str, causes: Sequence[Cause], judged: Judged) -> str:
    if not causes:
        return ""
    shown = ", ".join(f"{cause.name} {signed(cause.delta_ns)}{_how(cause, judged)}" for cause in causes[:_NAMED])
    more = f" and {len(causes) - _NAMED} more" if len(causes) > _NAMED else ""
    return f"{title}: {shown}{more}"


def _how(cause: Cause, judged: Judged) -> str:
    """In brackets: more or slower calls, or why what takes longer is called faster (or the other way round)."""
    if cause.verdict in ("ADDED", "REMOVED"):
        return ""
    row = judged.of_op(cause.name, cause.input_shapes) if cause.kind == "op" else judged.of_name(cause.name)
    shared = judged.judgement.shared
    if row is None or shared is None or row["judged_change"] * cause.delta_ns >= 0 or shared * cause.delta_ns <= 0:
        return how(cause)
    return f" ({format_diff(row['judged_change'])} without the machine-wide drift of {format_diff(shared)})"
