"""What is kept of the free content beside a profile: numbers and short words; a long text can hold secrets."""

from __future__ import annotations

import re
from typing import Final

RANK_IN_NAME: Final = re.compile(r"rank[-_]?(\d{1,9})", re.IGNORECASE)
"""The rank in the name of a file."""
_WORD: Final = re.compile(r"[\w.,:;+/= -]{1,120}")
_DIGITS: Final = re.compile(r"\d{1,18}")
_LARGEST: Final = 1 << 62


def short_word(value: object, allowed: re.Pattern[str] = _WORD) -> str:
    """Numbers and short words as text; '' for anything longer, odd or nested. `allowed`: the words.

    >>> short_word("8.0.RC1"), short_word(3), short_word(True), short_word("a" * 121), short_word("x?token")
    ('8.0.RC1', '3', '', '', '')
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return ""
    return str(value) if allowed.fullmatch(str(value)) else ""


def whole_number(value: object) -> int | None:
    """A whole number from 0 that 64 bits hold; None for anything else.

    >>> whole_number(3), whole_number("3"), whole_number(-1), whole_number(True)
    (3, None, None, None)
    """
    return value if type(value) is int and 0 <= value < _LARGEST else None


def told_number(value: object) -> int | None:
    """`whole_number`, of digits in a text as well.

    >>> told_number(3), told_number("3"), told_number("-1")
    (3, 3, None)
    """
    return whole_number(int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value)
