"""What makes most of a change of the step, in one clause behind the sentence on it.

Every screen that says how much slower a version is says by this module why: a diff from its causes, an incident from
its findings, the board from the numbers of the newest version. Each number of a clause is that of a row of the same
result. Where no row has half of the change, nothing is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from tracker.results.diff import REPLACED_BY
from tracker.results.replaced_names import replaced_name, split_names
from tracker.units import format_ns

__all__ = ["LeadingCause"]

VERDICTS_WITH_CAUSE: Final = ("REGRESSED", "IMPROVED", "SUSPECT", "TOO_FEW_RUNS", None)
"""Verdicts of a step of which a sentence says what made most of its change; None: it was not judged. What may be noise
or drift, or is below the limit of a finding, has no cause.
"""
_LEAST_SHARE: Final = 0.5
"""Part of the change of the step that a cause has at least."""
_MOST_SHARE: Final = 2.0
"""More than so many times the change of the step, and other changes take most of the cause back: they say as much."""
_LONGEST_NAME: Final = 60
_LONGEST_LABEL: Final = 18
"""Characters of a name, and of the name in a label; those of kernels have thousands."""

DATA_LOADING: Final = "data loading"
"""The cause of idle time, and the series of a run, that says how long the step waits for its data."""
IDLE_TIME: Final = "idle time"
"""The series of a run that says how long nothing runs."""

_WORDS_OF_WHY: Final[Mapping[str, tuple[str, str]]] = {
    "slower": ("", " is slower"),
    "faster": ("", " is faster"),
    "slower per call": ("", " is slower per call"),
    "faster per call": ("", " is faster per call"),
    "more calls": ("more calls of ", ""),
    "fewer calls": ("fewer calls of ", ""),
    "more calls of new shapes": ("more calls of ", " with new shapes"),
    "new shapes": ("new shapes of ", ""),
    "shapes gone": ("fewer shapes of ", ""),
    "new": ("", " is new"),
    "new operator": ("", " is new"),
    "gone": ("", " is gone"),
    "operator gone": ("", " is gone"),
    "gradual slowdown": ("", " slows down gradually"),
}
"""What a row says of an operator or kernel -> what stands in a clause before its name, and behind it."""


class LeadingCause(Struct, frozen=True):
    """What may be most of a change of the step.

    - words: what happened
    - label: the same in as few words as a column of a board has room for
    - delta_ns: per step, above 0 for longer
    - of_what: what most of it is, "" where that is not known
    - is_duration: the number belongs to the words, as in "idles for 2 ms more"; else it follows in brackets
    - series: the series of whole runs that it is, "" for none
    """

    words: str
    label: str
    delta_ns: float
    of_what: str = ""
    is_duration: bool = False
    series: str = ""

    @property
    def clause(self) -> str:
        """What happened, and by how much.

        >>> LeadingCause("aten::mm is slower per call", "mm", 3_080_000.0).clause
        'aten::mm is slower per call (+3.08 ms)'
        >>> LeadingCause("no operator runs for", "idle", 30_480_000.0, is_duration=True).clause
        'no operator runs for 30.48 ms more'
        """
        change = _format_change(self.delta_ns)
        mostly = f", mostly {self.of_what}" if self.of_what else ""
        if self.is_duration:
            return f"{self.words} {format_ns(abs(self.delta_ns))} more{mostly}"
        return f"{self.words} ({change}){mostly}"

    @property
    def short(self) -> str:
        """The label with the number.

        >>> LeadingCause("no operator runs for", "idle", 30_480_000.0, is_duration=True).short
        'idle +30.48 ms'
        """
        return f"{self.label} {_format_change(self.delta_ns)}"


class Row(Protocol):
    """A row that may be the cause of a change of the step."""

    @property
    def delta_ns(self) -> float:
        """By how much it changed, per step."""


Candidate = TypeVar("Candidate", bound=Row)


def find_largest(rows: Iterable[Candidate], delta_ns: float | None) -> Candidate | None:
    """Return the row that went furthest the way of a change of the step; None where none has half of it."""
    if not delta_ns:
        return None
    largest = max(rows, key=lambda row: row.delta_ns / delta_ns, default=None)
    return largest if largest is not None and largest.delta_ns / delta_ns >= _LEAST_SHARE else None


def choose_leading(rows: Iterable[Candidate], delta_ns: float | None) -> Candidate | None:
    """Return the row that makes most of a change of the step of `delta_ns`; None where none has half of it, and where
    the largest is taken back by others for the most part.

    >>> copies = LeadingCause("more calls of aten::copy_", "copy_", 2e6)
    >>> idle = LeadingCause("no operator runs for", "idle", 6e6)
    >>> choose_leading([copies, idle], 8e6).label, choose_leading([copies], 8e6), choose_leading([idle], 1e6)
    ('idle', None, None)
    """
    largest = find_largest(rows, delta_ns)
    if largest is None or not delta_ns or largest.delta_ns / delta_ns > _MOST_SHARE:
        return None
    return largest


def cause_of_idle_time(delta_ns: float, *, is_on_device: bool, main_cause: str = "") -> LeadingCause:
    """Return idle time as a cause. `is_on_device`: of a device, and not of the host between its operators;
    `main_cause`: what at least half of its change is known to be, "" for nothing.

    >>> cause_of_idle_time(2e6, is_on_device=True, main_cause="host: no operator").clause
    'the device idles for 2.00 ms more, mostly host: no operator'
    >>> cause_of_idle_time(-2e6, is_on_device=False).clause
    'less time without an operator (-2.00 ms)'
    """
    if main_cause == DATA_LOADING:
        return cause_of_data_loading(delta_ns, is_on_device=is_on_device)
    if delta_ns < 0:
        words = "less idle time of the device" if is_on_device else "less time without an operator"
        return LeadingCause(words, "idle", delta_ns, main_cause, series=IDLE_TIME)
    words = "the device idles for" if is_on_device else "no operator runs for"
    return LeadingCause(words, "idle", delta_ns, main_cause, is_duration=True, series=IDLE_TIME)


def cause_of_data_loading(delta_ns: float, *, is_on_device: bool) -> LeadingCause:
    """Return waiting for data as a cause.

    >>> cause_of_data_loading(32.4e6, is_on_device=True).clause, cause_of_data_loading(-1e6, is_on_device=False).short
    ('the device waits for data (+32.40 ms)', 'waits for data -1.00 ms')
    """
    if delta_ns < 0:
        return LeadingCause("less waiting for data", "waits for data", delta_ns)
    who = "the device" if is_on_device else "the step"
    return LeadingCause(f"{who} waits for data", "waits for data", delta_ns)


def cause_of_part(title: str, delta_ns: float, of_what: str = "") -> LeadingCause:
    """Return a part of the step that is no operator, such as exposed communication, as a cause. `of_what`: what most of
    it is, "" where that is not known.

    >>> cause_of_part("Exposed communication", 2e6).clause, cause_of_part("AI CPU", 1e6).label
    ('exposed communication (+2.00 ms)', 'AI CPU')
    """
    is_word = title[1:2].islower()
    words = f"{title[:1].lower()}{title[1:]}" if is_word else title
    return LeadingCause(words, words, delta_ns, of_what, series=words)


def cause_of_operator(name: str, why: str, delta_ns: float) -> LeadingCause:
    """Return an operator, kernel or replacement as a cause. `why`: what its row says of it.

    >>> cause_of_operator("aten::copy_", "more calls", 850_000.0).clause
    'more calls of aten::copy_ (+850.00 us)'
    >>> cause_of_operator("aten::gelu -> aten::mul, aten::pow", "replaced", 21.65e6).clause
    'aten::gelu -> mul, pow (+21.65 ms)'
    """
    named = _shorten(replaced_name(name) if REPLACED_BY in name else name, _LONGEST_NAME)
    label = _shorten(_label_of(name), _LONGEST_LABEL)
    if not why or why.startswith(("replace", "renamed")):
        return LeadingCause(named, label, delta_ns)
    before, behind = _WORDS_OF_WHY.get(why, ("", f", {why}"))
    return LeadingCause(f"{before}{named}{behind}", label, delta_ns)


def _label_of(name: str) -> str:
    """Return a name without its namespace and arguments; of what replaced what the first of each side.

    >>> _label_of("aten::gelu, aten::mm -> aten::mul, aten::pow"), _label_of("aten::copy_")
    ('gelu -> mul', 'copy_')
    >>> _label_of("void at::native::elementwise_kernel<4, Add>(int, Add)")
    'elementwise_kernel'
    """
    sides = [split_names(side)[0] for side in name.split(REPLACED_BY)]
    return REPLACED_BY.join(re.split("[<(]", side, maxsplit=1)[0].rpartition("::")[2] or side for side in sides)


def _shorten(name: str, longest: int) -> str:
    """Return a name with its middle left out where it is long: names differ at both ends."""
    if len(name) <= longest:
        return name
    half = (longest - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def _format_change(delta_ns: float) -> str:
    text = format_ns(delta_ns)
    return text if delta_ns < 0 else f"+{text}"
