"""The advice of several runs together, what is new since others, and what of it is about a finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isclose
from statistics import median, median_low
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from tracker.advice import stored
from tracker.advice.judging import RunAdvice, order_of_items, severity
from tracker.results import Accounts, Advice, Loss
from tracker.results.advice import GONE, GROWN, NEW
from tracker.results.findings import ListedFinding
from tracker.store.samples.statistics import over_runs

if TYPE_CHECKING:
    from tracker.store import Store

_GREW: Final = 1.5
"""Times what a piece of advice could win before, from which on it is more than noise."""
_MOST: Final = 2
_FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "data loading": ("input",), "idle time": ("host", "input"), "exposed communication": ("communication", "pipeline"),
    "communication": ("communication",), "exposed copy": ("input",), "peak memory": ("memory",), "memory": ("memory",),
}  # fmt: skip
"""Series of whole runs, or kind of series, that are no operator -> the families of rules that are about them."""


def merged(found: Sequence[RunAdvice]) -> RunAdvice:
    """The advice of repeats: each piece as the run has it that has the median gain, and the number of runs with it; of
    an even number the smaller of the two in the middle. What fewer than half of the runs have is not shown.
    """
    if len(found) == 1:
        return found[0]
    if not found:
        return RunAdvice(step_ns=0.0)
    groups: dict[tuple[str, str], list[Advice]] = {}
    for run in found:
        for item in run.items:
            groups.setdefault((item.rule, item.place), []).append(item)
    # the step of the version as a diff has it; of a run without one nothing is known
    steps = np.array([[run.step_ns for run in found]])
    step = float(over_runs(steps)[0]) if steps.all() else median(run.step_ns for run in found)
    items = [_median(own, step, steps[0].tolist(), is_common=2 * len(own) >= len(found)) for own in groups.values()]
    items.sort(key=order_of_items)
    return replace(
        found[-1], step_ns=step, items=tuple(items), together_ns=median(run.together_ns for run in found),
        missing=tuple(dict.fromkeys(sentence for run in found for sentence in run.missing)),
        notes=found[-1].notes, loss=_choose_common_loss(found), accounts=_choose_middle_accounts(found, step),
    )  # fmt: skip


def _choose_common_loss(runs: Sequence[RunAdvice]) -> Loss | None:
    """Return the median loss of the kind that is the largest of most runs; None where most have no loss."""
    losses = [run.loss for run in runs if run.loss is not None]
    if not losses or 2 * len(losses) < len(runs):
        return None
    kinds = [loss.kind for loss in losses]
    most_common = max(dict.fromkeys(kinds), key=kinds.count)
    alike = sorted((loss for loss in losses if loss.kind == most_common), key=lambda loss: loss.ns)
    return alike[(len(alike) - 1) // 2]


def _choose_middle_accounts(runs: Sequence[RunAdvice], step_ns: float) -> Accounts | None:
    """Return how the step of the version adds up, by the shares of the run of which advice can win the median."""
    accounts = sorted((run.accounts for run in runs if run.accounts is not None), key=lambda one: one.won_ns)
    if not accounts:
        return None
    middle = accounts[(len(accounts) - 1) // 2]
    scale = step_ns / middle.step_ns if middle.step_ns else 1.0
    return Accounts(
        step_ns=middle.step_ns * scale, won_ns=middle.won_ns * scale, work_ns=middle.work_ns * scale,
        unexplained_ns=middle.unexplained_ns * scale,
    )  # fmt: skip


def _median(items: Sequence[Advice], step_ns: float, steps_ns: Sequence[float], *, is_common: bool) -> Advice:
    """Return the piece of the run with the median gain: its numbers are those of one run, and agree with each other.

    `step_ns`: of the version; `steps_ns`: of its runs.
    """
    gains = [item.gain_ns for item in items if item.gain_ns is not None]
    if not gains or not step_ns:
        return replace(items[-1], runs=len(items), is_shown=is_common and items[-1].is_shown)
    gain_ns = median_low(gains)
    middle = next(item for item in items if item.gain_ns == gain_ns)
    # a part of another step than that of the run, such as that of the log beside its trace, keeps its own share
    share = gain_ns / step_ns
    if middle.gain_share and not any(isclose(gain_ns / middle.gain_share, own_ns) for own_ns in steps_ns):
        share = middle.gain_share
    return replace(
        middle, gain_share=share, severity=severity(share), runs=len(items), is_shown=is_common and middle.is_shown
    )


def compared(after: Sequence[Advice], before: Sequence[Advice]) -> tuple[Advice, ...]:
    """What is new, grown by half or gone, with its status; what is in both alike is left out."""
    was = {(item.rule, item.place): item for item in before}
    found = []
    for item in after:
        old = was.pop((item.rule, item.place), None)
        if old is None:
            found.append(replace(item, status=NEW))
        elif item.is_shown and (item.gain_ns or 0.0) > _GREW * (old.gain_ns or 0.0) > 0:
            found.append(replace(item, status=GROWN, baseline_gain_ns=old.gain_ns))
        elif old.is_shown and (old.gain_ns or 0.0) > _GREW * (item.gain_ns or 0.0) and not item.is_shown:
            found.append(replace(old, status=GONE))
    return (*found, *(replace(item, status=GONE) for item in was.values()))


def on_findings(
    store: Store, findings: Sequence[ListedFinding], before: Sequence[int], after: Sequence[int]
) -> tuple[Advice, ...]:
    """What could undo regressions: advice that is new or grown with the runs `after`, and shares rows with the
    `findings`, the most shared time first, at most two pieces. Nothing where none does: a general remedy would be no
    answer.
    """
    kept = stored.of_runs(store, [*before, *after])
    sides = [merged([kept[run_id] for run_id in runs if run_id in kept]).items for runs in (before, after)]
    shared = [
        (max(_shared_ns(item, finding) for finding in findings), item)
        for item in compared(sides[1], sides[0])
        if item.status != GONE and item.is_shown
    ] if findings else []  # fmt: skip
    chosen = sorted(((ns, item) for ns, item in shared if ns > 0), key=lambda pair: -pair[0])
    return tuple(item for _, item in chosen[:_MOST])


def _shared_ns(item: Advice, finding: ListedFinding) -> float:
    """How much time of a finding advice is about; 1 where it is about its bytes."""
    kind, name = finding.kind, finding.name
    if kind == "run" and name == "step":
        return item.gain_ns or 0.0
    families = _FAMILIES.get(name if kind == "run" else kind, ())
    if families:
        return (item.gain_ns or 1.0) if item.family in families else 0.0
    own = [claim.ns for claim in item.claims if claim.op and claim.op in name]
    return sum(own) if kind in ("op", "op_name", "kernel") else 0.0
