"""Budgets of the settings file: a number that each version must keep, whatever the versions before it did."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

_LIMIT: Final = re.compile(r"([0-9][0-9,_]*(?:\.[0-9]+)?) *([^0-9.,_].*)?")
_UNITS: Final = {
    "ns": ("ns", 1.0), "us": ("ns", 1e3), "ms": ("ns", 1e6), "s": ("ns", 1e9),
    "B": ("bytes", 1.0), "KB": ("bytes", 1e3), "MB": ("bytes", 1e6), "GB": ("bytes", 1e9), "TB": ("bytes", 1e12),
    "KiB": ("bytes", 2.0**10), "MiB": ("bytes", 2.0**20), "GiB": ("bytes", 2.0**30), "TiB": ("bytes", 2.0**40),
    "%": ("ratio", 0.01), "": ("ratio", 1.0),
}  # fmt: skip
"""Unit of a limit -> the unit in which a series is kept, and how many of that it is."""
MFU: Final = "mfu"
_SHORT: Final = {MFU: MFU, "peak": "peak memory", "throughput": "throughput"}
"""A word of the settings, in small letters -> the series that it stands for."""
_UNIT_OF_SERIES: Final = {
    MFU: "ratio", "peak memory": "bytes", "throughput": "per_second", "imbalance": "ratio", "rank spread": "ratio",
}  # fmt: skip
"""Series -> its unit; all others are times."""
_EXAMPLES: Final = {
    "ns": "a time such as 120 ms", "bytes": "a size such as 60 GB or 56 GiB",
    "ratio": "a ratio such as 0.45 or 45 %", "per_second": "a rate such as 300 samples/s",
}  # fmt: skip


class Limit(Struct, frozen=True):
    """A limit: `value` in the unit in which series are kept (ns, bytes, ratio, per_second), and `word`, the unit in
    which the user wrote it; one of that unit is `scale` of the kept one.
    """

    value: float
    unit: str
    scale: float = 1.0
    word: str = ""

    def words_of(self, value: float) -> str:
        """Write a value in the unit of the limit, so that both can be compared, with five digits.

        >>> parse_limit("120 ms").words_of(123_456_789.0), parse_limit("60 GB").words_of(6e10)
        ('123.46 ms', '60 GB')
        >>> parse_limit("45 %").words_of(0.4121), parse_limit("1000 tokens/s").words_of(2_345_678.0)
        ('41.21 %', '2,345,678 tokens/s')
        """
        own = value / self.scale
        digits = max(0, 4 - math.floor(math.log10(abs(own)))) if own else 0
        text = f"{own:,.{digits}f}"
        number = text.rstrip("0").rstrip(".") if "." in text else text
        return f"{number} {self.word}".rstrip()


def parse_limit(text: str | float) -> Limit:
    """Return what a limit says; ValueError where it is none.

    >>> parse_limit("120 ms").value, parse_limit("1,200 tokens/s per rank").word, parse_limit(0.45).unit
    (120000000.0, 'tokens/s per rank', 'ratio')
    """
    found = _LIMIT.fullmatch(f"{text:.15f}" if isinstance(text, float) else str(text).strip())
    if found is None:
        raise ValueError("is no number")
    value, word = float(re.sub("[,_]", "", found[1])), found[2] or ""
    if not 0 < value < math.inf:
        raise ValueError("is not above 0")
    if "/s" in word:
        return Limit(value, "per_second", word=word)
    if word not in _UNITS:
        raise ValueError(f"has the unit {word!r}")
    unit, scale = _UNITS[word]
    return Limit(value * scale, unit, scale, word)


class Budget(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A number that each version must keep. Patterns are globs, without regard to case.

    `series`: mfu, peak, throughput, another series of a whole run such as step, or an operator. Exactly one of
    `at_most` and `at_least`.
    """

    series: str
    workload: str = "*"
    device: str = "*"
    at_most: str | float | None = None
    at_least: str | float | None = None

    @property
    def name(self) -> str:
        """The name of the series."""
        return _SHORT.get(self.series.lower(), self.series)

    @property
    def limit(self) -> Limit:
        """The limit, in the unit of its series."""
        found = parse_limit(self._stated)
        if not found.word and self._unit == "per_second":
            return Limit(found.value, self._unit)
        return found

    @property
    def words(self) -> str:
        """The limit in words.

        >>> Budget(series="step", at_most="120 ms").words, Budget(series="mfu", at_least=0.45).words
        ('at most 120 ms', 'at least 0.45')
        """
        return f"{'at most' if self.at_least is None else 'at least'} {self.limit.words_of(self.limit.value)}"

    @property
    def _stated(self) -> str | float:
        stated = self.at_most if self.at_least is None else self.at_least
        assert stated is not None
        return stated

    @property
    def _unit(self) -> str:
        return _UNIT_OF_SERIES.get(self.name, "ns")

    def list_problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with it: an entry, and the problem."""
        if not self.series.strip():
            yield "series", "is '', expected mfu, peak, throughput, step, another series of a run, or an operator"
            return
        if (self.at_most is None) == (self.at_least is None):
            said = "none" if self.at_most is None else "both"
            yield "at_most", f"has {said} of at_most and at_least, expected one"
            return
        name = "at_most" if self.at_least is None else "at_least"
        expected = f"expected {_EXAMPLES[self._unit]}"
        try:
            limit = self.limit
        except ValueError as error:
            yield name, f"is {self._stated!r}, which {error}, {expected}"
            return
        if limit.unit != self._unit:
            yield name, f"is {self._stated!r}, {expected} for {self.series}"
        elif self.name == MFU and limit.value > 1:
            yield name, f"is {self._stated!r}, expected a share above 0, at most 1"
