"""Tests of a finding in plain words: a sentence each, with its number and its limit, within one line of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

from tracker.results.finding_tests import WORDS_OF_TESTS
from tracker.results.findings import FindingTest
from tracker.units import counted

_COUNTS: Final = ("runs before", "runs after")
"""Tests of numbers of runs."""
_DIGITS: Final = 3
_MORE_DIGITS: Final = 6
"""Of a number and a limit that are equal with fewer."""
_LEAST: Final = 1e-5
"""A ratio below which a number is only called small, beside a limit above it."""


def sentence_of_test(test: FindingTest) -> str:
    """Say what a test measured, and its limit; of one that does not pass, so that it is true all the same.

    >>> sentence_of_test(FindingTest(test="change", value=8.43, limit=0.03, passes=True, limit_from="default",
    ...                              meaning="change"))
    'changed by 843 %; the limit is 3 %'
    """
    value, limit = _format_both(test)
    words = WORDS_OF_TESTS.get(test.meaning)
    if words is None:  # what has no limit, or has other words by now
        bound = f"; the limit is {limit}" if limit else ""
        sentence = f"{test.meaning}{f': {value}' if value else ''}{bound}"
    elif _lacks_number(test):
        return words.missing or f"{test.meaning}: was not computed"
    else:
        sentence = words.fails if test.passes is False and words.fails else words.sentence
        sentence = sentence.format(value=value, limit=limit)
    return f"{sentence} (set)" if _is_set_by_user(test) else sentence


def notes_on_tests(tests: Sequence[FindingTest]) -> Iterator[str]:
    """Yield what the sentences have no room for: what a number rests on, and who set which limit and why."""
    for test in tests:
        if test.meaning in WORDS_OF_TESTS and WORDS_OF_TESTS[test.meaning].note:
            yield WORDS_OF_TESTS[test.meaning].note
    shown = [test for test in tests if not _lacks_number(test)]
    for source in dict.fromkeys(test.limit_from for test in shown if _is_set_by_user(test)):
        yield f"(set) by a user: {source}"


def _is_set_by_user(test: FindingTest) -> bool:
    return test.limit_from not in (None, "default")


def _lacks_number(test: FindingTest) -> bool:
    """Return whether the sentence of a test has no number to name: then its limit says nothing, either."""
    words = WORDS_OF_TESTS.get(test.meaning)
    return words is not None and test.value is None and "{value}" in words.sentence


def _format_both(test: FindingTest) -> tuple[str, str]:
    """Return the number and the limit of a test; two that differ do not look equal."""
    texts = [_format_number(test, number, _DIGITS) for number in (test.value, test.limit)]
    if texts[0] == texts[1] and test.value != test.limit:
        texts = [_format_number(test, number, _MORE_DIGITS) for number in (test.value, test.limit)]
    has_tiny_limit = test.limit is not None and 0 < abs(test.limit) < _LEAST
    if test.test not in (*_COUNTS, "q") and 0 < abs(test.value or 0.0) < _LEAST and not has_tiny_limit:
        texts[0] = f"less than {_format_number(test, _LEAST, _DIGITS)}"
    if test.test in _COUNTS:
        texts[0] = "" if test.value is None else counted(round(test.value), "run")
    return texts[0], texts[1]


def _format_number(test: FindingTest, number: float | None, digits: int) -> str:
    """Return what a test measured, or its limit: a count, a probability or a ratio in per cent; "" for none.

    >>> test = FindingTest(test="change", value=None, limit=None, passes=None, limit_from=None, meaning="change")
    >>> _format_number(test, 0.2380, 3), _format_number(test, 12.345, 3), _format_number(test, -0.05, 3)
    ('23.8 %', '1,234 %', '-5 %')
    >>> _format_number(test, 1e-7, 3), _format_number(test, 0.0, 3)
    ('0.00001 %', '0 %')
    """
    if number is None:
        return ""
    if test.test in _COUNTS:
        return f"{number:,.0f}"
    if test.test == "q":
        return f"{number:.{digits}g}"
    percent = number * 100
    if abs(percent) >= 10**digits - 0.5:
        return f"{percent:,.0f} %"
    text = f"{percent:.{digits}g}"
    # without an exponent
    return f"{Decimal(text):f} %"
