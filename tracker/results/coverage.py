"""What was judged of what was expected: a screen without findings says of how many series."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

LEAST_SEEN: Final = 0.9
"""The share of the series below which it stands above a report how many were judged, and why others were not."""


class CountedSeries(Struct, frozen=True):
    """How many series were judged of how many that were expected, None where that is not known; and both in words."""

    judged: int | None = None
    expected: int | None = None
    words: str = ""


class Coverage(Struct, frozen=True):
    """How many series of a version were judged, and why others were not. Expected are those that its runs have, or the
    runs that it is compared with.

    `judged`: they have a verdict; `few_runs`: more runs are needed; `settings`: recorded otherwise; `lost`: they rest
    on records that were lost; `other_work`: the inputs have another size; `other_host`: too few runs before are of the
    same host; `throttled`: a clock was held down in the runs of one side. `small`: they cost too little of the step for
    a verdict, and are not expected.
    """

    judged: int = 0
    few_runs: int = 0
    settings: int = 0
    lost: int = 0
    other_work: int = 0
    other_host: int = 0
    small: int = 0
    # the last one: what was stored before has no such number
    throttled: int = 0

    @property
    def expected(self) -> int:
        """All but those that are too small to matter."""
        of_hosts = self.other_host + self.throttled
        return self.judged + self.few_runs + self.settings + self.lost + self.other_work + of_hosts

    @property
    def counted(self) -> CountedSeries:
        """How many were judged, with the reasons of the others in words."""
        return CountedSeries(self.judged, self.expected, self.words)

    @property
    def share(self) -> float:
        """The part of the expected series that was judged; 0 where none was expected."""
        return self.judged / self.expected if self.expected else 0.0

    @property
    def is_low(self) -> bool:
        """Whether so much was not judged that a reader must see it first."""
        return self.judged < LEAST_SEEN * self.expected

    @property
    def count(self) -> str:
        """How many series were judged, in words.

        >>> Coverage(judged=412, few_runs=18).count
        'judged 412 of 430 series'
        """
        return f"judged {self.judged:,} of {self.expected:,} series"

    @property
    def words(self) -> str:
        """The whole of it in words.

        >>> Coverage(judged=412, few_runs=12, settings=6).words
        'judged 412 of 430 series; 12 need more runs, 6 were recorded otherwise'
        >>> Coverage(judged=1).words, Coverage(few_runs=1).words
        ('judged 1 of 1 series', 'judged 0 of 1 series; 1 needs more runs')
        >>> Coverage(judged=2, other_host=2).words
        'judged 2 of 4 series; 2 may have changed by their host alone'
        """
        reasons = (
            (self.few_runs, "needs more runs", "need more runs"),
            (self.settings, "was recorded otherwise", "were recorded otherwise"),
            (self.lost, "rests on lost records", "rest on lost records"),
            (self.other_work, "is of inputs of another size", "are of inputs of another size"),
            (self.other_host, "may have changed by its host alone", "may have changed by their host alone"),
            (self.throttled, "may have changed by throttling alone", "may have changed by throttling alone"),
        )
        words = [f"{count:,} {one if count == 1 else many}" for count, one, many in reasons if count]
        why = f"; {', '.join(words)}" if words else ""
        return f"{self.count}{why}"

    @property
    def numbers(self) -> str:
        """All numbers in a text, as a database keeps them.

        >>> Coverage.of_numbers(Coverage(judged=3, few_runs=1).numbers).words
        'judged 3 of 4 series; 1 needs more runs'
        """
        return " ".join(str(getattr(self, name)) for name in self.__struct_fields__)

    @classmethod
    def of_numbers(cls, numbers: str | None) -> Coverage | None:
        """Return what `numbers` stands for; None where it is not known, of what was judged by an earlier program."""
        return cls(*map(int, numbers.split())) if numbers else None

    def add(self, other: Coverage) -> Coverage:
        """Return both together, as of two kinds of steps."""
        return Coverage(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))
