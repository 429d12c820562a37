"""What a rule is: one declaration of what it looks for, what that may give back, and what to change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from tracker.results import Number

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence, WorkPiece

__all__ = ["BOUNDS", "AdviceRule", "Claim", "Number", "Remedy", "share_of"]
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
_VENDORS: Final = frozenset(("nvidia", "amd", "ascend", "cpu"))
_FRAMEWORKS: Final = frozenset(("torch", "paddle", "mindspore"))


class Remedy(Struct, frozen=True):
    """What to change. `on`: what it is for, empty: all. Of the vendors (nvidia, amd, ascend, cpu) that it names one
    must be that of the device (of an unknown one both nvidia and amd), of the frameworks (torch, paddle, mindspore)
    that of the run, and of other words one must be part of the place of the advice: `conv` of K16, `dp` of N1.
    """

    text: str
    on: tuple[str, ...] = ()

    def fits(self, vendor: str, framework: str, place: str) -> bool:
        """Whether it is for such advice."""
        named = frozenset(self.on)
        parts = named - _VENDORS - _FRAMEWORKS
        return (
            (named >= {*([vendor] if vendor else ("nvidia", "amd"))} or not named & _VENDORS)
            and (framework in named or not named & _FRAMEWORKS)
            and (not parts or any(part in place for part in parts))
        )


class Claim(Struct, frozen=True, kw_only=True):
    """Time that a rule says may be won, per step.

    `resource`: of what. Of `work`, `cells`: number of a piece -> ns of it; of others `ns`, of the rank that loses most;
    `none`: no time. `rank`: whose rows these are; `place`: what tells it from other claims of the rule; `title`,
    `confidence`: where they differ from those of the rule.
    """

    resource: Resource = "work"
    place: str = ""
    rank: int | None = None
    cells: Mapping[int, float] = {}
    ns: float = 0.0
    numbers: tuple[Number, ...] = ()
    role: str = ""
    variable: str = ""
    title: str = ""
    confidence: Confidence | None = None


def share_of(pieces: Sequence[WorkPiece], share: float = 1.0) -> dict[int, float]:
    """Number of each piece -> this share of its time, for `Claim.cells`."""
    return {piece.at: share * piece.ns for piece in pieces}


class AdviceRule(Struct, frozen=True, kw_only=True):
    """`in_run` gives the claims of a run, or `in_rank` those of a studied rank, from its pieces of work that no rule
    before it explains, copies aside; their rank is that one.

    `fires`: the condition in words; `takes`: whether its pieces are explained by it, so that none after it gets them;
    `on_devices`: whether it says nothing of a timeline of the host. `sources`: where condition and remedies are from.
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

    def remedies_on(self, vendor: str, framework: str, place: str) -> tuple[str, ...]:
        """The remedies that fit: those for the vendor, for the framework, for all."""
        fitting = [remedy for remedy in self.remedies if remedy.fits(vendor, framework, place)]
        order = sorted(fitting, key=lambda remedy: (vendor not in remedy.on, not remedy.on))
        return tuple(remedy.text for remedy in order)
