"""The last resort: step lines of a program that no grammar knows, found by how often they repeat.

A line that stands ten times or more, with other numbers, is taken for a step line where it has `step` or `iter` with a
number that rises, and one number with s, ms, s/it or it/s behind it. The headline says what was read, and nothing of it
is judged unless the user names the format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tracker.profile import (
    INCOMPLETE_SETTING,
    READ_AS_GUESS,
    READ_AS_NAMED,
    READ_AS_SETTING,
    Capture,
    Incomplete,
)
from tracker.readers._text import plain_text
from tracker.readers.training_log.grammar import REST, Grammar, StepLine, number, step_line
from tracker.readers.training_log.templates import general_pattern
from tracker.schema.series import LOST_STEPS
from tracker.units import printable

_FEWEST_LINES: Final = 10
_LONGEST_LINE: Final = 2000
_STEP: Final = re.compile(
    rb"(?<![A-Za-z])(?:steps?|iter(?:ation)?s?)\b[ \t:=#\[(]*(?P<step>\d{1,12})\b(?!\.\d)", re.IGNORECASE
)
_TIME: Final = re.compile(
    rb"(?<![\w.:/,-])(?P<number>\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?)(?P<unit> ?(?:(?P<ms>ms)|(?P<s>s))"
    rb"(?:/(?:it|iter|step))?| ?(?:it|iter|step)s?/s)(?![\w/])"
)
_OTHER_UNIT: Final = re.compile(rb"\d ?[dhm] *$")
"""In front of the seconds of a time in several units: `1m 3s`."""
_NO_STEP_TIME: Final = re.compile(
    rb"\b(?:eta|elapsed|remain\w*|left|total\w*|cumul\w*|since|data\w*|load\w*|sav\w*|checkpoint\w*|ckpt)\b",
    re.IGNORECASE,
)
"""A time with such a word right in front of it is not that of a step."""
_NO_TRAINING: Final = re.compile(rb"\b(?:eval\w*|valid\w*|test\w*|predict\w*|infer\w*|warm-?up)\b", re.IGNORECASE)
_LONGEST_LABEL: Final = 24
_END_OF_LABEL: Final = re.compile(rb"[\d|,;\])}]")
_NUMBERS: Final = re.compile(rb"[-+]?(?:\d[\d,.:]*(?:[eE][-+]?\d+)?|\bnan\b|\binf\b)")
_BARS: Final = re.compile(rb"\|[^|\r\n]*\|")
_BLANKS: Final = re.compile(rb"[ \t]+")
_RISING: Final = 0.8
"""Part of the lines whose step is not below that of the line before: ranks repeat a step, a restart goes back."""
_ALWAYS_RISING: Final = 0.95
_GROWS: Final = 3.0
"""A time that rises with almost every line, to several times its first value, is one since the start."""

UNKNOWN_PROGRAM: Final = "unknown"
_QUANTITIES: Final = {"ms": ("step_ms", "milliseconds per step"), "s": ("step_s", "seconds per step")}
_RATE: Final = ("rate", "steps per second")


class Guess(Struct, frozen=True):
    """A grammar for the lines that repeat, and what is read of them: `seconds per step from '... 8.01s/it'`."""

    grammar: Grammar
    words: str


class _Candidate(Struct, frozen=True):
    """A line that may be a step line, without colours."""

    text: bytes
    step: re.Match[bytes]
    time: re.Match[bytes]

    @property
    def quantity(self) -> tuple[str, str]:
        """The name of its time in a grammar, and in words."""
        for unit, quantity in _QUANTITIES.items():
            if self.time[unit] is not None:
                return quantity
        return _RATE

    @property
    def label(self) -> bytes:
        """The text right in front of its time, back to another number."""
        before = self.text[: self.time.start()]
        if self.step.end() <= self.time.start():
            before = before[self.step.end() :]
        return _END_OF_LABEL.split(before)[-1][-_LONGEST_LABEL:]


def guess_in(*texts: bytes) -> Guess | None:
    """Return the lines that repeat most in some texts as a grammar; None where none may be step lines."""
    kinds: dict[bytes, list[_Candidate]] = {}
    for text in texts:
        for candidate in _candidates_in(text):
            kinds.setdefault(_shape_of(candidate.text), []).append(candidate)
    possible = [lines for lines in kinds.values() if _are_step_lines(lines)]
    if not possible:
        return None
    lines = max(possible, key=len)
    last = lines[-1]
    shown = printable((last.label.lstrip() + last.time.group()).decode("utf-8", "replace"))
    grammar = Grammar(name=UNKNOWN_PROGRAM, title="a program that no grammar knows", lines=(_line_of(last),))
    return Guess(grammar, f"{last.quantity[1]} from '... {shown}'")


def mark_as_guess(capture: Capture, words: str, *, is_named: bool) -> Capture:
    """Return the capture with the sentence that its times are a guess, and nothing of them to be judged: unless the
    user named the format.
    """
    if is_named:
        return replace(capture, settings={**capture.settings, READ_AS_SETTING: READ_AS_NAMED})
    forbidden = msgspec.json.encode(Incomplete((LOST_STEPS,))).decode()
    return replace(
        capture,
        quality_reason=f"read as: {words}, a guess that --input-format training_log confirms",
        settings={**capture.settings, READ_AS_SETTING: READ_AS_GUESS, INCOMPLETE_SETTING: forbidden},
    )


def _candidates_in(text: bytes) -> Iterator[_Candidate]:
    for line in plain_text(text).split(b"\n"):
        if len(line) > _LONGEST_LINE:
            continue
        step = _STEP.search(line)
        if step is None or _NO_TRAINING.search(line) is not None:
            continue
        times = list(_TIME.finditer(line))
        if len(times) != 1 or times[0].start() == step.start("step"):
            continue
        candidate = _Candidate(line, step, times[0])
        in_front = line[: times[0].start()]
        if _OTHER_UNIT.search(in_front) is None and _NO_STEP_TIME.search(candidate.label) is None:
            yield candidate


def _shape_of(line: bytes) -> bytes:
    """Return a line without what differs from step to step: numbers, bars, how wide its columns are."""
    return _BLANKS.sub(b" ", _NUMBERS.sub(b"0", _BARS.sub(b"||", line))).strip()


def _are_step_lines(lines: list[_Candidate]) -> bool:
    """Whether lines of one shape count steps, and state how long one of them took."""
    steps = [int(line.step["step"]) for line in lines]
    if len(set(steps)) < _FEWEST_LINES:
        return False
    rising = sum(later >= earlier for earlier, later in pairwise(steps))
    if rising < _RISING * (len(steps) - 1):
        return False
    times = [float(line.time["number"].replace(b",", b"")) for line in lines]
    growing = sum(later > earlier for earlier, later in pairwise(times))
    return growing < _ALWAYS_RISING * (len(times) - 1) or times[-1] < _GROWS * times[0]


def _line_of(candidate: _Candidate) -> StepLine:
    """Return the pattern of lines that look like one."""
    step, time = candidate.step, candidate.time
    of_step = general_pattern(candidate.text[step.start() : step.start("step")]).decode("latin-1")
    label = general_pattern(candidate.label).decode("latin-1")
    unit = general_pattern(time["unit"]).decode("latin-1")
    parts_of_step = (of_step, number("step"), r"\b")
    parts_of_time = (label, number(candidate.quantity[0]), unit, r"(?![\w/])")
    if step.start() < time.start():
        return step_line(*parts_of_step, REST, *parts_of_time)
    return step_line(*parts_of_time, REST, *parts_of_step)
