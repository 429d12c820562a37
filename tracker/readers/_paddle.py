"""What the writings of Paddle have in common: times as text with a unit, devices by their product names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from tracker.profile import Device
from tracker.readers._times import MAX_OF_ONE
from tracker.units import NS_PER_MS, NS_PER_S, NS_PER_US

NS_PER_UNIT: Final[Mapping[str, int]] = {"s": NS_PER_S, "ms": NS_PER_MS, "us": NS_PER_US, "ns": 1}
UTILIZATION: Final = "Utilization (%)"
"""`source` and `attribute` of the counters that tell how busy the processors were, in traces and summaries alike."""

_NUMBER: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_WITH_UNIT: Final = re.compile(r"(?P<number>-?\d{1,15}(?:\.\d{1,15})?) ?(?P<unit>s|ms|us|ns)")


def to_ns(number: str, unit: str) -> int:
    """A decimal number of `unit` (s, ms, us, ns) in ns, exact; half a ns rounds to even. ValueError for no number, and
    for one of more than 833 days, whose sums 64 bits could not hold.

    >>> to_ns("169.41", "ms"), to_ns("0.00103", "s")
    (169410000, 1030000)
    """
    if not _NUMBER.fullmatch(number):
        raise ValueError(f"{number!r} is not a number")
    ns = int((Decimal(number) * NS_PER_UNIT[unit]).to_integral_value())
    if abs(ns) > MAX_OF_ONE:
        raise ValueError(f"{number} {unit} is beyond the range of times")
    return ns


def text_to_ns(text: str) -> int:
    """A time that names its unit, in ns; ValueError for anything else.

    >>> text_to_ns("39782.176 us"), text_to_ns("1.5 ms")
    (39782176, 1500000)
    """
    match = _WITH_UNIT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a number with its unit")
    return to_ns(match["number"], match["unit"])


def gpu(name: str) -> Device:
    """The hardware model behind the product name of a GPU.

    >>> gpu("NVIDIA A100-SXM4-40GB"), gpu("Tesla V100-SXM2-32GB")
    (Device(vendor='NVIDIA', model='A100-SXM4-40GB'), Device(vendor='NVIDIA', model='Tesla V100-SXM2-32GB'))
    """
    return Device("NVIDIA", name.removeprefix("NVIDIA ").strip())
