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
_MAIN: Final = 0.5
"""Part of what a rank is late by, from which on a part of its time is the cause."""
LOADING_PART: Final = "its data loading"
COMPUTE_PART: Final = "its compute"
COPIES_PART: Final = "its exposed copies"
IDLE_PART: Final = "its time in which nothing runs"
PARTS_OF_RANK: Final = (LOADING_PART, COMPUTE_PART, COPIES_PART, IDLE_PART)
"""Parts of the time of a rank that can make it late, as a sentence on that rank calls them."""
_CAUSES: Final = (
    ("data_loading_ns", LOADING_PART, "it waits for its data"),
    ("compute_ns", COMPUTE_PART, "its compute takes longer"),
    ("exposed_copy_ns", COPIES_PART, "its copies take longer"),
    ("idle_ns", IDLE_PART, "nothing runs on it for longer"),
)
"""A time of RankTimes, the part that it is, and why a rank is late where that is longer."""


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


class LateCause(Struct, frozen=True):
    """Why a rank is late. `words`: a clause; `part`: of its time, one of PARTS_OF_RANK; both "" where no part explains
    half of it; `more_ns`: by how much the part is longer than that of the others.
    """

    words: str = ""
    part: str = ""
    more_ns: float = 0.0


class LateRank(Struct, frozen=True):
    """A rank that the others wait for. `ns`: how far it comes behind the next one."""

    rank: int
    ns: float
    cause: LateCause


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
    ranks_of_stage: dict[int | None, list[RankTimes]] = {}
    for times in ranks:
        if times.own_ns is not None and times.step_ns:
            ranks_of_stage.setdefault(times.stage, []).append(times)
    stages = []
    for number in sorted(ranks_of_stage, key=lambda stage: -1 if stage is None else stage):
        own = ranks_of_stage[number]
        step_ns = median(times.step_ns or 0.0 for times in own)
        own_ns = median(times.own_ns or 0.0 for times in own)
        bubbles = [times.bubble_ns for times in own if times.bubble_ns is not None]
        bubble_ns = median(bubbles) if bubbles else None
        stages.append(_StageTimes(number, step_ns, own_ns, bubble_ns))
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
    return LateRank(rank, late_ns, explain_rank(ranks, rank, late_ns))


def explain_rank(ranks: Sequence[RankTimes], rank: int, late_ns: float) -> LateCause:
    """Return why a rank is late: the part of its time that is longest beside the median of the others."""
    causes = []
    for name, part, words in _CAUSES:
        time_of_rank = {times.rank: getattr(times, name) for times in ranks}
        own_ns = time_of_rank.pop(rank)
        others = [ns for ns in time_of_rank.values() if ns is not None]
        if others and own_ns is not None:
            causes.append(LateCause(words, part, own_ns - median(others)))
    main = max(causes, key=lambda cause: cause.more_ns, default=LateCause())
    return main if main.more_ns >= _MAIN * late_ns else LateCause()


def find_late_loss(ranks: Sequence[RankTimes]) -> Loss | None:
    """Return what the others lose to a rank that comes late: see `find_late_rank`."""
    late = find_late_rank(ranks)
    if late is None:
        return None
    step_ns = median(times.step_ns for times in ranks if times.step_ns)
    cause = f": {late.cause.words}" if late.cause.words else ""
    return make_loss("late rank", late.ns, step_ns, f"rank {late.rank} comes late by {{ns}}{cause}")
