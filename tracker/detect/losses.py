"""The time of a step that a job is known to lose: between its stages, to a rank that comes late, to waiting.

`tracker cluster` and the advice name the same losses in the same words, so both make them here, of medians over steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Final

from msgspec import Struct

from tracker.results import Loss
from tracker.units import format_ns

LEAST_SHARE: Final = 0.05
"""Of the step: a loss that is smaller is no headline."""
_UNEQUAL: Final = 1.05
"""Own time of the longest stage by that of another, from which on the stages are of unequal length."""
_LATE: Final = 0.02
"""Part of the step by which a rank comes behind the others, from which on that is more than chance."""
_LATE_OF_WAITING: Final = 0.5
"""Part of the longest waiting that one rank alone must explain to be named."""
_CAUSES: Final = (
    ("data_loading_ns", "its data loading", "it waits for its data"),
    ("compute_ns", "its compute", "its compute takes longer"),
    ("exposed_copy_ns", "its exposed copies", "its copies take longer"),
    ("idle_ns", "its time in which nothing runs", "nothing runs on it for longer"),
)
"""Part of the time of a rank -> what it is called, and why the rank is late where the part is longer."""


class RankTimes(Struct, frozen=True, kw_only=True):
    """Times of a rank per step in ns, each the median over its steps; None where it is not known.

    `own_ns`: the step less exposed communication; `wait_ns`: exposed waiting for other ranks; `bubble_ns`: what of it
    is for other stages; `idle_ns`: without the idle time in data loading.
    """

    rank: int
    stage: int | None = None
    step_ns: float | None = None
    own_ns: float | None = None
    wait_ns: float | None = None
    bubble_ns: float | None = None
    compute_ns: float | None = None
    exposed_copy_ns: float | None = None
    data_loading_ns: float | None = None
    idle_ns: float | None = None


class LateRank(Struct, frozen=True, kw_only=True):
    """A rank that the others wait for. `ns`: how far it comes behind the next one; `cause`, `part`: why, and the part
    of its time that is longer, "" where none is half of it; `more_ns`: by how much.
    """

    rank: int
    ns: float
    cause: str = ""
    part: str = ""
    more_ns: float = 0.0


def choose_largest(losses: Iterable[Loss | None]) -> Loss | None:
    """Return the largest loss that is worth a headline; of equal ones the first."""
    known = [loss for loss in losses if loss is not None and loss.share >= LEAST_SHARE]
    return max(known, key=lambda loss: loss.ns, default=None)


def make_loss(kind: str, ns: float | None, step_ns: float | None, words: str) -> Loss | None:
    """Return a loss, None where nothing is lost. `words`: a sentence with `{ns}`, which time and share fill."""
    if not ns or not step_ns or ns < 0:
        return None
    share = ns / step_ns
    # names in the words may hold brackets of their own
    stated = words.replace("{ns}", f"{format_ns(ns)} ({100 * share:.1f} %)")
    return Loss(kind=kind, ns=ns, share=share, words=stated)


class _StageTimes(Struct, frozen=True):
    """The medians over the ranks of a stage; `number`: None where the captures name no stages; `bubble_ns`: None where
    no rank knows its waiting for other stages.
    """

    number: int | None
    step_ns: float
    own_ns: float
    bubble_ns: float | None

    @property
    def waits(self) -> str:
        """Say that it waits."""
        return "the captured ranks wait" if self.number is None else f"stage {self.number} waits"


def find_stage_loss(ranks: Iterable[RankTimes]) -> Loss | None:
    """Return what the stages of a pipeline lose: the longest waiting of a stage for the others, with the time of the
    longest one where that is of another length; without known waiting what the longest takes more than equal stages
    would. None where the stages are alike and none is known to wait.
    """
    stages = _times_of_stages(ranks)
    if not stages:
        return None
    longest = max(stages, key=lambda stage: stage.own_ns)
    waiting = max(stages, key=lambda stage: stage.bubble_ns or 0.0)
    other = waiting if waiting.bubble_ns else min(stages, key=lambda stage: stage.own_ns)
    is_unequal = other.own_ns > 0 and longest.own_ns >= _UNEQUAL * other.own_ns
    if waiting.bubble_ns:
        words = f"{waiting.waits} {{ns}} for other stages of the pipeline"
        if is_unequal:
            words = f"{_compare_stages(longest, waiting)}: {waiting.waits} {{ns}}"
        return make_loss("stages", waiting.bubble_ns, waiting.step_ns, words)
    if not is_unequal or all(stage.bubble_ns is not None for stage in stages):
        return None
    more_ns = longest.own_ns - fmean(stage.own_ns for stage in stages)
    words = f"{_compare_stages(longest, other)}: {{ns}} more than with equal stages"
    return make_loss("stages", more_ns, longest.step_ns, words)


def _times_of_stages(ranks: Iterable[RankTimes]) -> list[_StageTimes]:
    found: dict[int, list[RankTimes]] = {}
    for times in ranks:
        if times.own_ns is not None and times.step_ns:
            found.setdefault(-1 if times.stage is None else times.stage, []).append(times)
    stages = []
    for number, own in sorted(found.items()):
        bubbles = [times.bubble_ns for times in own if times.bubble_ns is not None]
        stages.append(
            _StageTimes(
                None if number < 0 else number,
                median(times.step_ns or 0.0 for times in own),
                median(times.own_ns or 0.0 for times in own),
                median(bubbles) if bubbles else None,
            )
        )
    return stages


def _compare_stages(longest: _StageTimes, other: _StageTimes) -> str:
    """Return the own times of two stages; two of one unit name it once."""
    first, second = format_ns(longest.own_ns), format_ns(other.own_ns)
    unit = first.rpartition(" ")[2]
    return f"stage {longest.number} takes {first}, stage {other.number} {second.removesuffix(f' {unit}')}"


def find_late_rank(ranks: Sequence[RankTimes]) -> LateRank | None:
    """Return the rank that waits least, where that explains half of the longest waiting and 2 % of the step; None
    where the waiting of any rank is not known, and of a pipeline, whose stages wait for each other in any case.

    Where not all ranks of a group are captured, another one may be the last: the caller knows.
    """
    if len(ranks) < 2 or len({times.stage for times in ranks}) > 1:
        return None
    waits = [(times.wait_ns, times.rank) for times in ranks if times.wait_ns is not None]
    steps = [times.step_ns for times in ranks if times.step_ns]
    if len(waits) < len(ranks) or not steps:
        return None
    waits.sort()
    late_ns = waits[1][0] - waits[0][0]
    if late_ns < max(_LATE_OF_WAITING * waits[-1][0], _LATE * median(steps)) or late_ns <= 0:
        return None
    rank = waits[0][1]
    cause, part, more_ns = explain_rank(ranks, rank, late_ns)
    return LateRank(rank=rank, ns=late_ns, cause=cause, part=part, more_ns=more_ns)


def explain_rank(ranks: Sequence[RankTimes], rank: int, late_ns: float) -> tuple[str, str, float]:
    """Return why a rank is late, the part of its time, and by how much it is longer than that of the others in the
    median; empty where no part explains half of `late_ns`.
    """
    found: list[tuple[float, str, str]] = []
    for name, part, cause in _CAUSES:
        own = {times.rank: getattr(times, name) for times in ranks}
        others = [ns for one, ns in own.items() if one != rank and ns is not None]
        if others and own[rank] is not None:
            found.append((own[rank] - median(others), part, cause))
    more_ns, part, cause = max(found, key=lambda one: one[0], default=(0.0, "", ""))
    return (cause, part, more_ns) if more_ns >= late_ns / 2 else ("", "", 0.0)


def find_late_loss(ranks: Sequence[RankTimes]) -> Loss | None:
    """Return what the others lose to a rank that comes late: see `find_late_rank`."""
    late = find_late_rank(ranks)
    if late is None:
        return None
    step_ns = median(times.step_ns for times in ranks if times.step_ns)
    cause = f": {late.cause}" if late.cause else ""
    return make_loss("late rank", late.ns, step_ns, f"rank {late.rank} comes late by {{ns}}{cause}")
