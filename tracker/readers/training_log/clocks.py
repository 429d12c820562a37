"""Times of the day and times since a start, as logs write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

from tracker.readers._times import MAX_NS
from tracker.units import NS_PER_S, NS_PER_US

# 2022-11-30 20:24:58,694   2025/01/02T03:04:05.123456   20250814 05:36:47
_CLOCK: Final = re.compile(rb"(?<!\d)(\d{4})[-/]?(\d\d)[-/]?(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[,.](\d{1,9}))?(?!\d)")
_DAYS: Final = re.compile(rb"(?:(\d+) days?, *)?(?:(?:(\d+):)?(\d+):)?(\d+(?:\.\d+)?)")
# 9h 30m 16s, as ms-swift writes it
_WITH_UNITS: Final = re.compile(rb"(?:(\d+)d *)?(?:(\d+)h *)?(?:(\d+)m *)?(?:(\d+(?:\.\d+)?)s)?")


class TimeOfDay(NamedTuple):
    """A time of the day: ns since 1970 as if it were UTC; `digits`: of its part of a second."""

    ns: int
    digits: int


def clock_in(line: bytes) -> TimeOfDay | None:
    """Return the most precise date and time in a line; None where there is none.

    >>> clock_in(b"[1970/01/01 00:00:02] ppcls INFO: x"), clock_in(b"INFO 1970-01-01 00:00:02,500 launch")
    (TimeOfDay(ns=2000000000, digits=0), TimeOfDay(ns=2500000000, digits=3))
    """
    best: TimeOfDay | None = None
    for *words, fraction in _CLOCK.findall(line):
        second_ns = _second_of(*words)
        if second_ns is None:
            continue
        ns = second_ns + int(fraction[:6].ljust(6, b"0")) * NS_PER_US
        if 0 <= ns <= MAX_NS and (best is None or len(fraction) > best.digits):
            best = TimeOfDay(ns, len(fraction))
    return best


@lru_cache(maxsize=1024)
def _second_of(*words: bytes) -> int | None:
    """Return a second in ns since 1970 by year, month, day, hour, minute and second; None for no date of a calendar."""
    try:
        year, month, day, hour, minute, second = map(int, words)
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp()) * NS_PER_S


class ClockFinder:
    """A collector of the clocks of lines that look alike, whose only clock stands at one place."""

    def __init__(self) -> None:
        self._place = -1

    def clock_in(self, line: bytes) -> TimeOfDay | None:
        """Return what `clock_in` returns; of a line with a clock where the line before had its only one, that one."""
        if self._place >= 0 and (match := _CLOCK.match(line, self._place)) is not None:
            *words, fraction = match.groups(b"")
            second_ns = _second_of(*words)
            if second_ns is not None and 0 <= second_ns <= MAX_NS:
                return TimeOfDay(second_ns + int(fraction[:6].ljust(6, b"0")) * NS_PER_US, len(fraction))
        matches = list(_CLOCK.finditer(line))
        self._place = matches[0].start() if len(matches) == 1 else -1
        return clock_in(line) if matches else None


def last_clock_in(text: bytes) -> TimeOfDay | None:
    """Return the last date and time in some lines; None where there is none."""
    matches = list(_CLOCK.finditer(text))
    return clock_in(matches[-1].group()) if matches else None


@lru_cache(maxsize=4096)
def seconds_of(text: bytes | None) -> float:
    """Return a time since a start in seconds; nan for none.

    >>> seconds_of(b"0:00:24.5"), seconds_of(b"3 days, 17:51:32"), seconds_of(b"1h 1m 5s"), seconds_of(None)
    (24.5, 323492.0, 3665.0, nan)
    """
    plain = (text or b"").strip()
    parts = plain.split(b":")
    if 2 <= len(parts) <= 3 and plain.replace(b":", b"").isdigit() and all(parts):
        # most clocks of bars, of which a log may have millions
        seconds = 0
        for part in parts:
            seconds = 60 * seconds + int(part)
        return float(seconds)
    match = _DAYS.fullmatch(plain) or _WITH_UNITS.fullmatch(plain)
    if match is None or not plain:
        return float("nan")
    days, hours, minutes = (int(part or 0) for part in match.groups()[:3])
    return ((days * 24 + hours) * 60 + minutes) * 60 + float(match[4] or 0)
