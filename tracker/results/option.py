"""The declaration of an option, beside the field that holds it: for the command line, its completion and its help."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from tracker.errors import UsageError
from tracker.units import NS_PER_US, is_plain, us_to_ns

_STEPS: Final = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)
_MOST_STEPS: Final = 10_000  # each is a parameter of a database query
_LARGEST_US: Final = 2**63 / NS_PER_US
_DIGITS: Final = 18  # what fits into 8 bytes, in which the database holds numbers
MAPPING: Final = get_origin(Mapping[str, str])

LABELS: Final = "Labels"
SIDES: Final = "Sides"
ROWS: Final = "Rows"
OUTPUT: Final = "Output"
READING: Final = "Reading files"
"""Groups of options in the help, in this order; options without a group come first."""


class Option(NamedTuple):
    """An option of the command line. Its name is that of the field, `--candidate-steps`, unless `name` gives another.

    `words`: the values to choose from. `least`, `most`: limits of a number. `read`: text and option name -> value, for
    a field that is written in another way. `variable`: the environment variable with the default.
    """

    help: str
    metavar: str = ""
    name: str = ""
    short: str = ""
    group: str = ""
    words: Sequence[str] = ()
    least: int | None = None
    most: int | None = None
    read: Callable[[str, str], Any] | None = None
    variable: str = ""
    positional: bool = False


def steps(text: str, option: str) -> tuple[int, ...]:
    """Return the step numbers in `text`, in order; UsageError for anything but numbers and ranges.

    >>> steps("12,14-16", "--step")
    (12, 14, 15, 16)
    """
    found: set[int] = set()
    for part in text.split(","):
        match = _STEPS.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not 0 <= last - first < _MOST_STEPS or len(found) > _MOST_STEPS:
            raise UsageError(
                f"{option} {text!r} names no steps", remedy=f"write a number, a range or several: {option} 12,14-16"
            )
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def microseconds(text: str, option: str) -> int:
    """Return a time in microseconds as nanoseconds; UsageError for what is no time, or beyond the database's range.

    >>> microseconds("2.5", "--min-us")
    2500
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < _LARGEST_US:
        raise UsageError(f"{option} {text!r} is not a number of microseconds", remedy=f"give 0 or more: {option} 10")
    return us_to_ns(value)


def words(text: str, option: str) -> tuple[str, ...]:
    """Return words that commas separate, each once; UsageError where there is none.

    >>> words("overall, operator", "--only")
    ('overall', 'operator')
    """
    found = dict.fromkeys(word.strip() for word in text.split(",") if word.strip())
    if not found:
        raise UsageError(f"{option} names nothing", remedy=f"give a word, or leave out {option}")
    return tuple(found)


def pairs(values: Sequence[str], option: str) -> dict[str, str]:
    """Return `KEY=VALUE` arguments of `option` as a mapping.

    >>> pairs(["batch=32", "precision=bf16"], "--config")
    {'batch': '32', 'precision': 'bf16'}
    """
    found: dict[str, str] = {}
    for text in values:
        key, separator, value = one_line(option, text).partition("=")
        if not separator or not key.strip():
            raise UsageError(f"{option} {text!r} is not KEY=VALUE", remedy=f"write it like {option} batch=32")
        if key.strip() in found:
            raise UsageError(f"{option} names {key.strip()!r} twice", remedy="give each key once")
        found[key.strip()] = value.strip()
    return found


def one_line(option: str, text: str) -> str:
    """Return `text`; UsageError for control characters, which would act on the terminals that show it."""
    if not is_plain(text):
        raise UsageError(f"{option} {text!r} holds control characters", remedy="write it on one line, as plain text")
    return text


class Declared(NamedTuple):
    """A type without `| None`, whether it had that, and the option in it."""

    kind: Any
    is_optional: bool
    option: Option | None


def declared(kind: type) -> dict[str, Declared]:
    """Return what the fields of a struct are declared as."""
    found: dict[str, Declared] = {}
    for base in reversed(kind.__mro__):
        names = vars(sys.modules[base.__module__])
        for name, text in inspect.get_annotations(base).items():
            try:
                found[name] = split(eval(text, names) if isinstance(text, str) else text)
            except NameError:  # a name for the type checker only
                found[name] = Declared(object, True, None)
    return found


def split(hint: Any) -> Declared:
    """Return the parts of a type hint.

    >>> split(int | None)[:2]
    (<class 'int'>, True)
    """
    option = next((each for each in get_args(hint)[1:] if isinstance(each, Option)), None)
    kind = get_args(hint)[0] if option is not None else hint
    choices = (
        [each for each in get_args(kind) if each is not NoneType] if get_origin(kind) in (Union, UnionType) else []
    )
    return Declared(choices[0] if choices else kind, bool(choices), option)


class Spelled(NamedTuple):
    """How a value is written as text: its `name` in errors, its option, its type without `| None`, where help is."""

    name: str
    option: Option
    kind: Any
    help: str

    @property
    def words(self) -> Sequence[str]:
        """The values to choose from."""
        return self.option.words or (get_args(self.kind) if get_origin(self.kind) is Literal else ())

    @property
    def repeats(self) -> bool:
        """Whether it may be given more than once."""
        return get_origin(self.kind) in (list, tuple, MAPPING)

    def value(self, given: Any) -> Any:
        """The value of the text, texts or flag that is given; UsageError for what is none."""
        texts, origin = given if self.repeats else [given], get_origin(self.kind)
        if self.kind is bool:
            return given
        if origin is MAPPING and self.option.read is None:
            return pairs(texts, self.name)
        values = [self._one(text) for text in texts]
        if not self.repeats:
            return values[0]
        if origin is MAPPING:
            return {key: value for found in values for key, value in found.items()}
        if self.option.read is not None:
            values = [item for found in values for item in found]
        return values if origin is list else tuple(dict.fromkeys(values))

    def _one(self, text: str) -> Any:
        option, kind = self.option, get_args(self.kind)[0] if self.repeats else self.kind
        for word in text.split(",") if option.read is not None else [text]:
            if self.words and word.strip() not in self.words and (word.strip() or option.read is None):
                problem = f"{self.name} {word.strip()!r} must be one of: {', '.join(self.words)}"
                raise UsageError(problem, remedy=self.help)
        if kind is Path:
            return Path(text)
        if not text.isprintable() and any("\ud800" <= char <= "\udfff" for char in text):
            raise UsageError(f"{self.name} {text!r} is not UTF-8 text", remedy=self.help)
        if option.read is not None:
            return option.read(text, self.name)
        if kind is not int:
            return text if option.positional else one_line(self.name, text)
        digits = text.removeprefix("-").removeprefix("+")
        number = int(text) if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS else None
        least, most = option.least, option.most
        if number is None or (least is not None and number < least) or (most is not None and number > most):
            limits = "" if least is None else f" of {least} or more" if most is None else f" from {least} to {most}"
            raise UsageError(f"{self.name} {text!r} is not a whole number{limits}", remedy=self.help)
        return number
