"""What a grammar of a training log declares: how one framework writes its step lines, and what their numbers mean.

A grammar is a declaration. The engine finds the lines (`scanning`), makes intervals of them (`intervals`), and knows no
framework.

The groups of the head of a line, and its fields, have the names of the quantities that a line may state:

| name | what it is |
|---|---|
| step, total | number of the last step of the interval; how many the run will have |
| epoch, step_in_epoch, epoch_steps | the same by epoch, where the line counts in each epoch again |
| step_s, step_ms | time of a step: the mean of the interval, or of that one step |
| interval_s, interval_ms | time of the whole interval |
| elapsed_ms, elapsed_s, elapsed_clock, wall_s | time since the start of the run: differences are intervals |
| error_s | how far a time since the start may be off, where it follows from a rate of few digits |
| mean_s | mean of all steps since the start of the run: differences are intervals |
| rate | steps per second |
| run_s, run_rate | time of the whole run, and its steps per second |
| clock_ms | time of the day, in ms since 1970 |
| samples_s, tokens_s, tflops | throughput |
| mean_samples_s | mean throughput behind the second step: differences are intervals |
| batch_words | what the job takes in per step: a throughput of the same words divides it |
| tokens | tokens since the start of the run |
| data_s | waiting for data, in a step |
| batch | samples of a step of the whole job |
| mfu | part of the peak of the device, in percent |
| allocated_mib, allocated_gb, allocated_gib, reserved_gib | largest memory of a device |
| words_s | throughput in words |
| mark | `start` or `stop`: the interval lies between two such lines, `step` counts their samples |
| skipped, overflow, evaluation | above 0, or a word: the interval is not like others |
| validation_loss | a number that stays the same until the next evaluation |
| validated | 1 where the time of the line holds a validation, as that of every other line does |
| by_rate | 1 where the time of a step is the inverse of a rate that is a mean of several steps |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field

NUMBER: Final = r"[-+]?(?:\d+(?:,\d{3})*(?:\.\d*)?(?:[eE][-+]?\d+)?|nan|inf)"
REST: Final = r"[^\r\n]*?"
"""Whatever stands between two numbers of one line."""

VERSION: Final = r"(v?\d+\.\d[\w.+-]{0,40})"
"""The version of a program; what does not begin as one could be anything, a password too."""

RATE_UNITS: Final = {"tokens_s": "tokens/s", "samples_s": "samples/s", "words_s": "words/s", "tflops": "TFLOP/s"}
"""Quantity that is a throughput -> its unit; of those that as many lines state the first one counts."""

PER_DEVICE: Final = "per rank"
TOTAL: Final = "total"
"""Scopes of a throughput, as `throughput_scope` of a capture has them."""

LARGEST_STEP_S: Final = 7.2e7
"""No step takes 833 days: a longer time is damage, and does not fit 64 bits in ns by much."""

WORDS: Final = ("evaluation", "overflow", "mark")
"""Quantities that are words."""

QUANTITIES: Final = frozenset(
    (
        "step", "total", "epoch", "step_in_epoch", "epoch_steps", "step_s", "step_ms", "interval_s", "elapsed_ms",
        "elapsed_s", "elapsed_clock", "wall_s", "mean_s", "rate", "clock_ms", "samples_s", "tokens_s", "tflops",
        "batch_words", "tokens", "data_s", "batch", "mfu", "allocated_mib", "allocated_gb", "allocated_gib",
        "reserved_gib", "skipped", "evaluation", "words_s", "mark", "mean_samples_s", "overflow",
        "validation_loss", "run_s", "run_rate", "interval_ms", "error_s", "validated", "by_rate",
    )
)  # fmt: skip


class FieldPattern(Struct, frozen=True):
    """A quantity, the pattern whose one group is its number, and the literal text that the pattern begins with."""

    name: str
    pattern: re.Pattern[bytes]
    literal: bytes


class StepLine(Struct, frozen=True):
    """How a step line is found, and where its numbers stand.

    `head`: a pattern that occurs once in such a line, and in no other; it begins with `literal`, which only stands in
    it where the grammar has `parse`.
    `fields`: the other quantities, each by its own pattern with one group, anywhere in the line.
    `needs`: the fields without which a line is no step line.
    `not_behind`: a text in front of the match that makes it another line.
    """

    head: re.Pattern[bytes]
    literal: bytes
    fields: tuple[FieldPattern, ...] = ()
    needs: tuple[str, ...] = ()
    not_behind: bytes = b""

    def has(self, quantity: str) -> bool:
        """Whether such a line may say a quantity."""
        return quantity in self.head.groupindex or quantity in {one.name for one in self.fields}

    def occurs_in(self, text: bytes) -> bool:
        """Whether a step line stands in a text whose lines end with line feeds."""
        if self.literal not in text:
            return False
        searched_to = 0
        for match in self.head.finditer(text):
            if not self.needs:
                return True
            if match.start() < searched_to:  # in a line that lacks a field, however many heads it has
                continue
            end = text.find(b"\n", match.start())
            searched_to = end if end >= 0 else len(text)
            line_text = text[text.rfind(b"\n", 0, match.start()) + 1 : searched_to]
            if all(one.pattern.search(line_text) for one in self.fields if one.name in self.needs):
                return True
        return False


class LineField(Struct, frozen=True):
    """A quantity of a step line: what stands in front of its number, and behind it."""

    name: str
    before: str
    behind: str = ""
    is_needed: bool = False


class Grammar(Struct, frozen=True):
    """How a framework writes its step lines.

    `name`: the framework, a fact of the run. `title`: for people.
    `lines`: the ways in which its versions write a step line; of several the first one that occurs in a file counts.
    `scopes`: of each throughput whether it is of one device or of the job.
    `first_steady`: the first step that may count; earlier ones are warm-up.
    `has_epoch_starts`: whether the first interval of an epoch holds the start of the data loader.
    `evaluations`: text of lines that stand in an interval whose time holds an evaluation or a checkpoint.
    `starts`: text of the line with which a program begins to train, which tells a resumed run whose steps go on.
    `counts_in_epochs`: whether steps may be counted in each epoch again by lines that do not number it.
    `has_bars`: whether its lines are progress bars. That of the training has as many steps as the head of the log says,
    else it has the lines with a text of `beside_bar` behind it, else it runs longest.
    `takes_clock`: whether the lines begin with the time of the day, which gives the step time where no number does.
    `resolution_s`: half a unit of the last digit of a cumulative time, where the log itself does not show it.
    `has_timers`: whether lines beside the step lines say how long the parts of a step took (`timers`).
    `joins`: how finely differences of it are known before neighbours are joined, as a part.
    `facts`: environment: name of a fact and the pattern of its value in a line.
    `requires`: a text that a file must have beside its step lines, since these alone could be anything.
    `parse`: says what a line states, in place of the groups of a pattern, which then only finds the lines.
    `time_in_words`, `rate_in_words`: what its time and its throughput are, where the names of quantities do not say it.
    `numbers_stand_alone`: whether each quantity that `parse` says is one number of the line, in whatever unit.
    `epoch_lines`: lines that name an `epoch`, where `parse` says what the others state. Each step line is then about a
    whole epoch, the last one behind such a line, and names its steps as `epoch_steps`.
    `clock_is_of_epoch`: whether its lines are bars that begin again with each epoch (`epoch_bars`).
    `notes`: what the reader of the numbers should know where a line states a quantity.
    `beside`: names of other grammars whose lines the same program prints beside its own.
    """

    name: str
    title: str
    lines: tuple[StepLine, ...]
    scopes: Mapping[str, str] = field(default_factory=dict)
    first_steady: int = 3
    has_epoch_starts: bool = False
    evaluations: tuple[bytes, ...] = ()
    starts: tuple[bytes, ...] = ()
    counts_in_epochs: bool = False
    has_bars: bool = False
    beside_bar: tuple[bytes, ...] = ()
    takes_clock: bool = False
    resolution_s: float = 0.0
    has_timers: bool = False
    joins: float = 0.05
    facts: Mapping[str, str] = field(default_factory=dict)
    requires: re.Pattern[bytes] | None = None
    parse: Callable[[str], Mapping[str, float | str] | None] | None = None
    numbers_stand_alone: bool = False
    time_in_words: str = ""
    rate_in_words: str = ""
    epoch_lines: re.Pattern[bytes] | None = None
    clock_is_of_epoch: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)
    beside: tuple[str, ...] = ()


_LITERAL: Final = re.compile(r"(?:[\w :=\"/,'<>@!#%&;~-]|\\\|(?![*+?])|\\\{(?![*+?]))+(?![*+?{])")


def step_line(*parts: str, fields: tuple[LineField, ...] = (), not_behind: str = "") -> StepLine:
    """Compile a step line: the parts of its head, which stand in this order, and its fields, which stand anywhere.

    >>> line = step_line("iter ", number("step"), ": loss ", fields=(LineField("step_ms", "time ", "ms"),))
    >>> line.literal, line.head.search(b"iter 3: loss 7.5")["step"], line.fields[0].pattern.search(b"time 5.5ms")[1]
    (b'iter ', b'3', b'5.5')
    """
    source = "".join(parts)
    literal = literal_start(source)
    searched = source
    if not_behind:
        # behind the literal text, by which a match is found quickly
        start = re.escape(literal.decode())
        searched = f"{start}(?<!{re.escape(not_behind)}{start}){source.removeprefix(literal.decode())}"
    head = re.compile(searched.encode())
    names = {*head.groupindex, *(one.name for one in fields)}
    if unknown := names - QUANTITIES:
        raise ValueError(f"{sorted(unknown)} is no quantity of a step line")
    patterns = []
    for one in fields:
        # of words that only have to be there the whole is the group
        pattern = f"({one.before})" if one.name in WORDS else f"{one.before}({NUMBER}){one.behind}"
        of_field = literal_start(one.before.removeprefix(r"\b"))
        patterns.append(FieldPattern(one.name, re.compile(pattern.encode()), of_field))
    needs = tuple(one.name for one in fields if one.is_needed)
    return StepLine(head, literal, tuple(patterns), needs, not_behind.encode())


def literal_start(source: str) -> bytes:
    r"""Return the text that every match of a pattern begins with, as far as it is plain.

    >>> literal_start(r"iteration +(\d+)"), literal_start(r"[ab]c")
    (b'iteration', b'')
    """
    plain = _LITERAL.match(source)
    return re.sub(r"\\(.)", r"\1", plain.group()).encode() if plain else b""


def number(name: str) -> str:
    """Return the pattern of a number that is the quantity `name`."""
    return f"(?P<{name}>{NUMBER})"


def optional(*parts: str) -> str:
    """Return the pattern of what may follow somewhere behind in the line, or not."""
    return f"(?:{REST}{''.join(parts)})?"


def json_field(name: str, quantity: str, *, is_needed: bool = False) -> LineField:
    """Return the field of a name of JSON, whose number may stand in quotes."""
    return LineField(quantity, rf'"{name}": ?"?', is_needed=is_needed)


def pair_field(name: str, quantity: str, *, is_needed: bool = False) -> LineField:
    """Return the field of a name with its number, as JSON or as `name=value` or `name: value`.

    >>> pattern = step_line("a", fields=(pair_field("wps", "words_s"),)).fields[0].pattern
    >>> pattern.search(b'{"wps": "25.5"}')[1], pattern.search(b"ups=2, wps=3,")[1]
    (b'25.5', b'3')
    """
    return LineField(quantity, rf"\b{name}\"?(?:: ?|=)\"?", is_needed=is_needed)
