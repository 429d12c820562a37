"""Whom a remedy is for: the device, the framework and its version, the format of the run, and what holds of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

_VENDORS: Final = frozenset(("nvidia", "amd", "ascend", "cpu"))
_FRAMEWORKS: Final = frozenset(("torch", "paddle", "mindspore"))


class Platform(Struct, frozen=True):
    """Whom remedies are for. `vendor`: nvidia, amd, ascend, cpu, or "" of an unknown one; `framework`: torch, paddle,
    mindspore, or "" of an unknown one; `version`: of the framework, (2, 6), or () where the profile does not say;
    `source`: the format of the run; `traits`: what holds of it, see `tracker.advice.traits`.
    """

    vendor: str = ""
    framework: str = "torch"
    version: tuple[int, ...] = ()
    source: str = ""
    traits: tuple[str, ...] = ()


class Remedy(Struct, frozen=True):
    """What to change. `on`: what it is for, empty: all. Of the vendors (nvidia, amd, ascend, cpu) that it names one
    must be that of the device (of an unknown one both nvidia and amd), of the frameworks (torch, paddle, mindspore)
    that of the run, and of other words one must be part of the place of the advice: `conv` of K16, `dp` of N1.
    `kinds`: the place ends with one of these collectives as well. `since`, `until`: the versions of the framework
    that it is for, the last one not: (2, 0). Where the version is not known, it is taken for a new one. `sources`: the
    format of the run begins with one of these. `needs`, `unless`: traits of the run or marks of the claim, of which all
    must hold, or none. `is_last`: for where no other remedy of the rule fits.
    """

    text: str
    on: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    since: tuple[int, ...] = ()
    until: tuple[int, ...] = ()
    sources: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    is_last: bool = False

    def fits(self, platform: Platform, place: str, marks: Sequence[str] = ()) -> bool:
        """Whether it is for such advice."""
        named = frozenset(self.on)
        parts = named - _VENDORS - _FRAMEWORKS
        vendors = {platform.vendor} if platform.vendor else {"nvidia", "amd"}
        holds = {*platform.traits, *marks}
        return (
            (named >= vendors or not named & _VENDORS)
            and (platform.framework in named or not named & _FRAMEWORKS)
            and (not parts or any(part in place for part in parts))
            and (not self.kinds or place.rpartition(" ")[2] in self.kinds)
            and (not self.sources or platform.source.startswith(self.sources))
            and holds.issuperset(self.needs)
            and holds.isdisjoint(self.unless)
            and self._is_of_version(platform.version)
        )

    def _is_of_version(self, version: tuple[int, ...]) -> bool:
        if not version:
            return not self.until
        return version >= self.since and (not self.until or version < self.until)
