"""What a rule is: one declaration of what it looks for, what that may give back, and what to change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from tracker.advice.platform import Platform, Remedy
from tracker.profile import IdleCause
from tracker.results import Number

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence
    from tracker.advice.pieces import WorkPiece

__all__ = ["BOUNDS", "AdviceRule", "Claim", "Number", "Remedy", "find_rank_with_most", "share_of"]
Resource = Literal[
    "work", "idle", "loading", "copies", "communication", "waiting", "pipeline", "bubble", "rank", "none"
]
Bound = Literal["exposed", "roofline", "sequence", "precision", "calls", "what-if", "bytes", "none"]
Confidence = Literal["certain", "likely", "hint"]

LEAST_SHARE: Final = 0.01
"""Of the step: advice below it is not shown unless asked for. msprof-analyze takes 1 %, TraceLens 0.5 %."""
BOUNDS: Final[Mapping[str, str]] = {
    "exposed": "the time in which nothing else ran",
    "roofline": "what the work takes longer than the larger of FLOPs by peak and bytes by bandwidth",
    "sequence": "the time of the kernels, less that of the longest of each sequence",
    "precision": "the time of the work, less that time by the quotient of the two peak rates",
    "calls": "the time of the calls on the host, as far as the device idles",
    "what-if": "the step as it is, less the step in a model without the imbalance",
    "bytes": "bytes of memory, no time",
    "none": "no time: what else is known",
}
"""Kind of bound -> how it is computed."""


class Claim(Struct, frozen=True, kw_only=True):
    """Time that a rule says may be won, per step.

    `resource`: of what. Of `work`, `cells`: number of a piece -> ns of it; of others `ns`, of the rank that loses most;
    `none`: no time. `role`, `kind`: of communication, the role of its groups and the kind of its collectives. `causes`:
    of idle time those that it is of, where the source says why the device idles. `rank`: whose rows these are; `place`:
    what tells it from other claims of the rule; `title`, `confidence`: where they differ from those of the rule.
    `whole_ns`: what it is a part of, where that is not the step of the run. `late_rank`, `late_ns`: of waiting, for
    whom and for how long: what that rank itself could save is the same time. `marks`: what holds of it, for the
    conditions of remedies.
    """

    resource: Resource = "work"
    place: str = ""
    rank: int | None = None
    cells: Mapping[int, float] = {}
    ns: float = 0.0
    numbers: tuple[Number, ...] = ()
    role: str = ""
    kind: str = ""
    variable: str = ""
    title: str = ""
    confidence: Confidence | None = None
    causes: tuple[IdleCause, ...] = ()
    whole_ns: float | None = None
    late_rank: int | None = None
    late_ns: float = 0.0
    marks: tuple[str, ...] = ()


def find_rank_with_most(times: Mapping[int, float]) -> tuple[int, float]:
    """Return the rank that has most, of equal ones the first, and what it has; 0 and 0.0 where there is none.

    >>> find_rank_with_most({0: 3.0, 1: 7.0, 2: 7.0})
    (1, 7.0)
    """
    rank = min(times, key=lambda one: (-times[one], one), default=0)
    return rank, times.get(rank, 0.0)


def share_of(pieces: Sequence[WorkPiece], share: float = 1.0) -> dict[int, float]:
    """Number of each piece -> this share of its time, for `Claim.cells`."""
    return {piece.at: share * piece.ns for piece in pieces}


class AdviceRule(Struct, frozen=True, kw_only=True):
    """`in_run` gives the claims of a run, or `in_rank` those of a studied rank, from its pieces of work that no rule
    before it explains, copies aside; their rank is that one.

    `fires`: the condition in words; `takes`: whether its pieces are explained by it, so that none after it gets them;
    `on_devices`: whether it says nothing of a timeline of the host. `sources`: where condition and remedies are from.
    `shown_from`: of the step, what a claim must win to be shown where not all is asked for; a claim itself grows from
    0, so that no limit hides most of a step. `is_general`: whether any rule that claims the same work says more.
    `is_computation`: whether the pieces of a claim are one computation, whose place in the code is one, too.

    A claim for which no remedy fits is no advice.
    """

    id: str
    title: str
    fires: str
    bound: Bound
    confidence: Confidence
    remedies: tuple[Remedy, ...]
    sources: tuple[str, ...]
    in_run: Callable[[Evidence], Iterable[Claim]] | None = None
    in_rank: Callable[[Evidence, int, Sequence[WorkPiece]], Iterable[Claim]] | None = None
    takes: bool = False
    on_devices: bool = False
    shown_from: float = LEAST_SHARE
    is_general: bool = False
    is_computation: bool = False

    def remedies_on(self, platform: Platform, place: str, marks: Sequence[str] = ()) -> tuple[str, ...]:
        """The remedies that fit: those for the vendor, for the framework, for all."""
        fitting = [remedy for remedy in self.remedies if remedy.fits(platform, place, marks)]
        fitting = [remedy for remedy in fitting if not remedy.is_last] or fitting
        order = sorted(fitting, key=lambda remedy: (platform.vendor not in remedy.on, not remedy.on))
        return tuple(remedy.text for remedy in order)
