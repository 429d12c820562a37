"""Lines of which a function says what they state, read many at once: learned from one of them.

A function that takes a line apart needs a tenth of a millisecond. Most lines of a log differ in their numbers only:
which number of the line each quantity is, the function itself says when the numbers are changed one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

F64 = NDArray[np.float64]
Row = Mapping[str, float | str]
Parse = Callable[[str], Row | None]

_TOKENS: Final = re.compile(rb"(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(?P<blanks> +)|(?P<text>[^ \d]+)")
_ANY_NUMBER: Final = rb"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_WHOLE: Final = rb"(\d{1,12})"
_DECIMAL: Final = rb"(\d{1,12}\.\d{1,12})"
_PLAIN: Final = re.compile(rb"\d{1,12}(?:\.\d{1,12})?")
_FACTORS: Final = (1.0, 1e-3, 1e-6)
"""A quantity is its number in its own unit, in ms or in us."""
_EQUAL: Final = 1e-6
_LONGEST: Final = 1000
_MOST_NUMBERS: Final = 40


class NumberOf(Struct, frozen=True):
    """A quantity that is a number of the line, times `factor`; or `factor` by the number."""

    quantity: str
    factor: float
    is_inverse: bool

    def values(self, texts: tuple[bytes, ...]) -> F64:
        """Return the quantity of each line, from the texts of its number; nan for what is infinite."""
        numbers = np.array([*map(float, texts)])
        if not self.is_inverse:
            return np.asarray(numbers * self.factor)
        is_known = numbers > 0
        return np.where(is_known, self.factor / np.where(is_known, numbers, 1.0), np.nan)


class LearnedLine(Struct, frozen=True):
    """The pattern of lines that look like one, whose groups are `numbers`; `others`: what does not change with them."""

    pattern: re.Pattern[bytes]
    numbers: tuple[NumberOf, ...]
    others: dict[str, float | str]

    def agrees(self, line: bytes, parse: Parse) -> bool:
        """Whether the function says the same of a line."""
        match = self.pattern.match(line)
        row = parse(line.decode("utf-8", "replace"))
        if match is None or row is None:
            return False
        learned: dict[str, float | str] = dict(self.others)
        for number, text in zip(self.numbers, match.groups(), strict=True):
            learned[number.quantity] = float(number.values((text,))[0])
        return learned.keys() == row.keys() and all(_are_equal(learned[name], row[name]) for name in row)


def learn_line(line: bytes, parse: Parse) -> LearnedLine | None:
    """Return the pattern of the lines that look like one; None where a quantity is not one number of it."""
    row = parse(line.decode("utf-8", "replace"))
    if row is None or len(line) > _LONGEST:
        return None
    tokens = list(_TOKENS.finditer(line))
    numbers = [token for token in tokens if token["number"] is not None and _PLAIN.fullmatch(token.group())]
    if len(numbers) > _MOST_NUMBERS:
        return None
    owners: dict[int, NumberOf] = {}
    for token in numbers:
        changes = list(_changes(line, token, parse))
        changed = [name for name in row if any(other is None or other.get(name) != row[name] for _, other in changes)]
        if not changed:
            continue
        owner = _owner_of(changed, row, token, changes)
        if owner is None or owner.quantity in {known.quantity for known in owners.values()}:
            return None
        owners[token.start()] = owner
    names = {owner.quantity for owner in owners.values()}
    learned = LearnedLine(
        pattern=re.compile(rb"^" + b"".join(_parts_of(tokens, owners)) + rb"\r?$", re.MULTILINE),
        numbers=tuple(owners[start] for start in sorted(owners)),
        others={name: value for name, value in row.items() if name not in names},
    )
    return learned if owners and learned.agrees(line, parse) else None


def _changes(line: bytes, token: re.Match[bytes], parse: Parse) -> Iterator[tuple[float, Row | None]]:
    """Yield other values of a number, and what the function says of the line with each of them."""
    text = token.group()
    digits = len(text) - text.find(b".") - 1 if b"." in text else 0
    for factor in (2, 3):
        value = factor * float(text) + 10.0**-digits
        changed = line[: token.start()] + f"{value:.{digits}f}".encode() + line[token.end() :]
        yield float(f"{value:.{digits}f}"), parse(changed.decode("utf-8", "replace"))


def _owner_of(
    changed: list[str], row: Row, token: re.Match[bytes], changes: list[tuple[float, Row | None]]
) -> NumberOf | None:
    """Return how the one quantity that changes with a number follows from it; None for any other case."""
    if len(changed) != 1:
        return None
    (name,) = changed
    pairs = [(float(token.group()), row[name])]
    for value, other in changes:
        if other is None or other.keys() != row.keys():
            return None
        pairs.append((value, other[name]))
    known = [(value, stated) for value, stated in pairs if isinstance(stated, float | int)]
    if len(known) < len(pairs):
        return None
    for factor in _FACTORS:
        if all(_are_equal(value * factor, stated) for value, stated in known):
            return NumberOf(name, factor, is_inverse=False)
    if all(value > 0 and _are_equal(1 / value, stated) for value, stated in known):
        return NumberOf(name, 1.0, is_inverse=True)
    return None


def _parts_of(tokens: list[re.Match[bytes]], owners: Mapping[int, NumberOf]) -> Iterator[bytes]:
    for token in tokens:
        if token["blanks"] is not None:
            yield rb" +"
        elif token["text"] is not None:
            yield re.escape(token.group())
        elif token.start() not in owners:
            yield _ANY_NUMBER
        else:
            yield _DECIMAL if b"." in token.group() else _WHOLE


def _are_equal(value: float | str, other: float | str) -> bool:
    if isinstance(value, str) or isinstance(other, str):
        return value == other
    return abs(value - other) <= _EQUAL * max(abs(value), abs(other))
