"""Times of trace_view.json -> ns: `ts` is text of microseconds with three decimals, `dur` a number."""

from __future__ import annotations

from typing import Final

from tracker.units import us_to_ns

_MAX_NS: Final = 1 << 62
_DECIMALS: Final = 3
_EXACT_US: Final = 2.0**42


def time_ns(value: object) -> int:
    """The ns of `ts`; a ValueError says what is wrong with it.

    >>> time_ns("1736413971558972.912"), time_ns(7)
    (1736413971558972912, 7000)
    """
    if type(value) is str:
        whole, _, decimals = value.partition(".")
        is_usual = len(decimals) == _DECIMALS and whole.isdecimal() and decimals.isdecimal()
        ns = int(whole + decimals) if is_usual else _exact(value, "ts")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        ns = _exact(value, "ts")
    else:
        raise ValueError("ts is missing" if value is None else "ts is no number")
    if not -_MAX_NS < ns < _MAX_NS:
        raise ValueError("ts is beyond the range of 64-bit nanoseconds")
    return ns


def duration_ns(value: object) -> int:
    """The ns of `dur`, to the nearest; a ValueError says what is wrong with it.

    >>> duration_ns(53.7410625), duration_ns(0), duration_ns("1.5")
    (53741, 0, 1500)
    """
    if type(value) is float and 0 <= value < _EXACT_US:
        scaled = value * 1000.0
        nearest = round(scaled)
        # close to half a ns the product may be on the wrong side; only the digits decide
        if abs(abs(scaled - nearest) - 0.5) > 1e-4:
            return nearest
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise ValueError("dur is missing" if value is None else "dur is no number")
    ns = _exact(value, "dur")
    if not 0 <= ns < _MAX_NS:
        raise ValueError("dur is negative" if ns < 0 else "dur is beyond the range of 64-bit nanoseconds")
    return ns


def _exact(value: str | int | float, field: str) -> int:
    try:
        return us_to_ns(value)
    except ValueError:
        raise ValueError(f"{field} is {str(value)[:40]!r}, expected a number") from None
