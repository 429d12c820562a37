"""info.json, start_info and end_info of a device: who ran, on what, and by which clock.

Only what stands on an allow-list is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from tracker.readers._ascend.chips import UNKNOWN, chip_of, device_entry, rated_clock
from tracker.readers._facts import short_word, told_number
from tracker.readers._times import MAX_US
from tracker.units import NS_PER_US

# what makes one chip slower than another of the same family; aiv_num 0: cube and vector share a core, as on 910A
_DEVICE_FACTS: Final = ("ai_core_num", "aiv_num", "ai_cpu_core_num", "aic_frequency", "aiv_frequency")
_FACTS: Final = ("platform_version", "hwtype", "cpuNums")
DATE_NS: Final = 10**18
"""Times above this are dates (after 2001); those of a clock that starts with the machine are not."""


class Clock(Struct, frozen=True):
    """The clock of the machine (CLOCK_MONOTONIC_RAW) while the capture ran, and the date of its start.

    `to_utc_ns`: what to add to its times. `ends_ns`: None where the capture did not end properly.
    """

    starts_ns: int
    ends_ns: int | None
    to_utc_ns: int

    def covers(self, first_ns: int, last_ns: int) -> bool:
        """True where both times are of this clock and within the capture, so that they can be dated for certain."""
        return self.starts_ns <= first_ns and (self.ends_ns is None or last_ns <= self.ends_ns)


class Info(Struct, frozen=True):
    """What stands beside the exported files of one device. `rank`, `clock`, and for which clock its cores are rated:
    None where not said.
    """

    rank: int | None = None
    chip: str = UNKNOWN
    host: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    rated_mhz: int | None = None
    clock: Clock | None = None


def info_of(files: Mapping[str, Mapping[str, Any]], device: int | None) -> Info:
    """`files`: the content of info.json, start_info and end_info; those that are missing are left out."""
    info = files.get("info.json", {})
    rank = told_number(info.get("rank_id"))
    host = info.get("hostname")
    return Info(
        rank=rank,
        chip=chip_of(info),
        host=short_word(host),
        facts=_facts(info, device),
        rated_mhz=rated_clock(info, device),
        clock=_clock(files.get("start_info", {}), files.get("end_info", {})),
    )


def _facts(info: Mapping[str, Any], device: int | None) -> dict[str, str]:
    entry = device_entry(info, device)
    facts = {name: short_word(entry.get(name)) for name in _DEVICE_FACTS}
    facts |= {name: short_word(info.get(name)) for name in _FACTS}
    return {name: text for name, text in facts.items() if text}


def _clock(start: Mapping[str, Any], end: Mapping[str, Any]) -> Clock | None:
    """collectionTimeBegin is the date in us at which the clock of the machine stood at clockMonotonicRaw, in ns."""
    began, date_us = told_number(start.get("clockMonotonicRaw")), told_number(start.get("collectionTimeBegin"))
    if not began or not date_us or date_us > MAX_US:
        return None
    return Clock(began, told_number(end.get("clockMonotonicRaw")) or None, date_us * NS_PER_US - began)
