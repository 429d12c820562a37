"""What a rule is: one declaration of what it looks for, what that may give back, and what to change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from tracker.results import Number

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence

__all__ = ["BOUNDS", "AdviceRule", "Claim", "Number", "Remedy"]
Resource = Literal["work", "idle", "loading", "copies", "communication", "pipeline", "bubble", "rank", "none"]
Bound = Literal["exposed", "roofline", "precision", "calls", "what-if", "bytes", "none"]
Confidence = Literal["certain", "likely", "hint"]

BOUNDS: Final[Mapping[str, str]] = {
    "exposed": "the time in which nothing else ran",
    "roofline": "what the work takes longer than the larger of FLOPs by peak and bytes by bandwidth",
    "precision": "the time of the work, less that time by the quotient of the two peak rates",
    "calls": "the time of the calls on the host, as far as the device idles",
    "what-if": "the step as it is, less the step in a model without the imbalance",
    "bytes": "bytes of memory, no time",
    "none": "no time: what else is known",
}
"""Kind of bound -> how it is computed."""


class Remedy(Struct, frozen=True):
    """What to change. `on`: vendors (nvidia, amd, ascend, cpu) or frameworks (torch, paddle, mindspore) that it is for;
    empty: all.
    """

    text: str
    on: tuple[str, ...] = ()


class Claim(Struct, frozen=True, kw_only=True):
    """Time that a rule says may be won, per step.

    `resource`: of what. Of `work`, `cells`: number of a piece -> ns of it; of others `ns`, of the rank that loses most;
    `none`: no time. `rank`: whose rows these are; `place`: what tells it from other claims of the rule; `title`,
    `confidence`: where they differ from those of the rule. `is_always_shown`: also where it is no time.
    """

    resource: Resource
    place: str = ""
    rank: int | None = None
    cells: Mapping[int, float] = {}
    ns: float = 0.0
    numbers: tuple[Number, ...] = ()
    op: str = ""
    module: str = ""
    kernel: str = ""
    role: str = ""
    variable: str = ""
    title: str = ""
    confidence: Confidence | None = None
    is_always_shown: bool = False


class AdviceRule(Struct, frozen=True, kw_only=True):
    """`find` gives the claims of a run; `taken`: numbers of pieces that rules before it explain already.

    `fires`: the condition in words; `needs`: what the profile must hold; `takes`: whether its pieces are explained by
    it, so that none after it claims them. `sources`: where the condition and the remedies are from.
    """

    id: str
    title: str
    fires: str
    bound: Bound
    confidence: Confidence
    remedies: tuple[Remedy, ...]
    sources: tuple[str, ...]
    find: Callable[[Evidence, frozenset[int]], Iterable[Claim]]
    takes: bool = False

    def remedies_on(self, vendor: str, framework: str) -> tuple[str, ...]:
        """The remedies for a vendor and framework: those for the vendor, for the framework, for all."""
        fitting = [remedy for remedy in self.remedies if not remedy.on or {vendor, framework} & {*remedy.on}]
        order = sorted(fitting, key=lambda remedy: (vendor not in remedy.on, not remedy.on))
        return tuple(remedy.text for remedy in order)
