"""What a grammar of a training log declares: how one framework writes its step lines, and what their numbers mean.

A grammar is a declaration. The engine finds the lines (`scanning`), makes intervals of them (`intervals`), and knows no
framework.

The names of the groups of a pattern are the quantities that a line may state:

| name | what it is |
|---|---|
| step, total | number of the last step of the interval; how many the run will have |
| epoch, step_in_epoch, epoch_steps | the same by epoch, where the line counts in each epoch again |
| step_s, step_ms | time of a step: the mean of the interval, or of that one step |
| interval_s | time of the whole interval |
| elapsed_ms, elapsed_s, elapsed_clock, wall_s | time since the start of the run: differences are intervals |
| mean_s | mean of all steps since the start of the run: differences are intervals |
| rate | steps per second |
| clock_ms | time of the day, in ms since 1970 |
| samples_s, tokens_s, tflops | throughput |
| batch_words | what the job takes in per step: a throughput of the same words divides it |
| tokens | tokens since the start of the run |
| data_s | waiting for data, in a step |
| batch | samples of a step of the whole job |
| mfu | part of the peak of the device, in percent |
| allocated_mib, allocated_gb, allocated_gib, reserved_gib | largest memory of a device |
| words_s | throughput in words |
| mark | `start` or `stop`: the interval lies between two such lines, `step` counts their samples |
| skipped, evaluation | above 0, or a word: the interval is not like others |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field

NUMBER: Final = r"[-+]?(?:\d+(?:,\d{3})*(?:\.\d*)?(?:[eE][-+]?\d+)?|nan|inf)"
REST: Final = r"[^\r\n]*?"
"""Whatever stands between two numbers of one line."""

PER_DEVICE: Final = "per rank"
TOTAL: Final = "total"
"""Scopes of a throughput, as `throughput_scope` of a capture has them."""

QUANTITIES: Final = frozenset(
    (
        "step", "total", "epoch", "step_in_epoch", "epoch_steps", "step_s", "step_ms", "interval_s", "elapsed_ms",
        "elapsed_s", "elapsed_clock", "wall_s", "mean_s", "rate", "clock_ms", "samples_s", "tokens_s", "tflops",
        "batch_words", "tokens", "data_s", "batch", "mfu", "allocated_mib", "allocated_gb", "allocated_gib",
        "reserved_gib", "skipped", "evaluation", "words_s", "mark",
    )
)  # fmt: skip


class Grammar(Struct, frozen=True):
    """How a framework writes its step lines.

    `name`: the framework, a fact of the run. `title`: for people.
    `lines`: patterns of a step line; of several the first one that occurs in the file counts. A pattern begins with
    literal text, which makes the search fast, and its groups have the names of the table above.
    `scopes`: of each throughput whether it is of one device or of the job.
    `first_steady`: the first step that may count; earlier ones are warm-up.
    `has_epoch_starts`: whether the first interval of an epoch holds the start of the data loader.
    `evaluations`: text of lines that stand in an interval whose time holds an evaluation or a checkpoint.
    `starts`: text of the line with which a program begins to train, which tells a resumed run whose steps go on.
    `counts_in_epochs`: whether steps may be counted in each epoch again by lines that do not number it.
    `takes_clock`: whether the lines begin with the time of the day, which gives the step time where no number does.
    `resolution_s`: half a unit of the last digit of a cumulative time.
    `joins`: how finely differences of it are known before neighbours are joined, as a part.
    `facts`: environment: name of a fact and the pattern of its value in a line.
    `inner`: grammars whose lines this framework prints too, so that the file is read once.
    `requires`: a text that a file must have beside its step lines, since these alone could be anything.
    `parse`: says what a line states, in place of the groups of a pattern, which then only finds the lines.
    """

    name: str
    title: str
    lines: tuple[re.Pattern[bytes], ...]
    scopes: Mapping[str, str] = field(default_factory=dict)
    first_steady: int = 3
    has_epoch_starts: bool = False
    evaluations: tuple[bytes, ...] = ()
    starts: tuple[bytes, ...] = ()
    counts_in_epochs: bool = False
    takes_clock: bool = False
    resolution_s: float = 0.0
    joins: float = 0.05
    facts: Mapping[str, str] = field(default_factory=dict)
    inner: tuple[str, ...] = ()
    requires: re.Pattern[bytes] | None = None
    parse: Callable[[str], Mapping[str, float | str] | None] | None = None


def line(*parts: str) -> re.Pattern[bytes]:
    """Compile the pattern of a step line from its parts, which stand in this order.

    >>> line("iter ", number("step"), ": loss ", number("step_ms"), "ms").search(b"iter 3: loss 7.5ms")["step_ms"]
    b'7.5'
    """
    pattern = re.compile("".join(parts).encode())
    unknown = set(pattern.groupindex) - QUANTITIES
    if unknown:
        raise ValueError(f"{sorted(unknown)} is no quantity of a step line")
    return pattern


def number(name: str) -> str:
    """Return the pattern of a number that is the quantity `name`."""
    return f"(?P<{name}>{NUMBER})"


def optional(*parts: str) -> str:
    """Return the pattern of what may follow somewhere behind in the line, or not."""
    return f"(?:{REST}{''.join(parts)})?"


def anywhere(*parts: str) -> str:
    """Return the pattern of what may stand anywhere behind in the line, in any order."""
    return f"(?:(?={REST}{''.join(parts)})|)"


def required(*parts: str) -> str:
    """Return the pattern of what must stand somewhere behind in the line, in any order."""
    return f"(?={REST}{''.join(parts)})"


def key(name: str, quantity: str) -> str:
    """Return the pattern of a name of JSON or of `name=value`, with its number, which may stand in quotes.

    >>> pattern = re.compile(key("wps", "words_s"))
    >>> pattern.search('{"wps": "25.5"}')["words_s"], pattern.search("ups=2, wps=3,")["words_s"]
    ('25.5', '3')
    """
    return rf"(?<![\w/])[\"']?{name}[\"']?(?:: *|=)[\"']?{number(quantity)}"
