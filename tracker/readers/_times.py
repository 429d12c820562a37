"""Microseconds of a trace -> int64 ns, exact to the last digit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from tracker.profile import I64
from tracker.units import NS_PER_US, us_to_ns

EXACT_FLOAT_US: Final = 2.0**42
"""Below this a double is less than 0.25 ns away from the decimal text it was read from."""

MAX_NS: Final = 1 << 62
MAX_US: Final = MAX_NS // NS_PER_US

MAX_OF_ONE: Final = 1 << 56
"""Times (833 days, in ns) and bytes (64 PiB) of one record; sums of many then fit 64 bits."""

_PLAIN: Final = re.compile(rb'"?(-?)(\d+)(?:\.(\d{0,3}))?"?')


def numbers_to_ns(values: Sequence[object]) -> I64 | None:
    """The ns of JSON numbers of microseconds; None where a double may have lost what the text says.

    A double below 2**42 is split into its whole part, exact, and its fraction, which is then within 0.25 ns of the
    text's: if the fraction lies within 0.25 ns of a whole ns, that ns is the text's value rounded to the nearest. All
    else (long fractions, absolute times with decimals, times as text, no number at all) is left to `text_to_ns`.

    >>> numbers_to_ns([7, 1428625731608.106]).tolist(), numbers_to_ns([1736413971558972.912])
    ([7000, 1428625731608106], None)
    """
    if not values:
        return np.zeros(0, dtype=np.int64)
    numbers = np.array(values)
    if numbers.dtype.kind == "i":
        whole_us: I64 = numbers.astype(np.int64)
        return None if whole_us.max() > MAX_US or whole_us.min() < -MAX_US else whole_us * NS_PER_US
    if numbers.dtype.kind != "f" or not np.abs(numbers).max() < EXACT_FLOAT_US:
        return None
    whole = np.floor(numbers)
    fraction_ns = (numbers - whole) * NS_PER_US
    nearest = np.rint(fraction_ns)
    if np.abs(fraction_ns - nearest).max() > 0.25:
        return None
    exact: I64 = whole.astype(np.int64) * NS_PER_US + nearest.astype(np.int64)
    return exact


def text_to_ns(text: bytes) -> int:
    """The ns of one JSON number or string of microseconds; ValueError for anything else or beyond int64.

    >>> text_to_ns(b"1736413971558972.912"), text_to_ns(b'"0.5"'), text_to_ns(b"-1")
    (1736413971558972912, 500, -1000)
    """
    plain = _PLAIN.fullmatch(text)
    if plain and len(text) <= 24:
        sign, whole, fraction = plain.groups()
        value = int(whole) * NS_PER_US + int((fraction or b"").ljust(3, b"0"))
        if value < MAX_NS:
            return -value if sign else value
    if not text or text == b"null":
        raise ValueError("is missing")
    shown = text[:40].decode("ascii", "replace")
    try:
        magnitude = abs(float(text.strip(b'"')))
    except ValueError:
        raise ValueError(f"is {shown}, expected a number") from None
    if not magnitude < MAX_US:
        raise ValueError(f"is {shown}, beyond the range of 64-bit nanoseconds")
    return us_to_ns(text.strip(b'"'))
