"""How many rows a capture may become: the table of limits, and the check that is made before rows are made."""

from __future__ import annotations

from typing import Final

FREE_ROWS: Final = 1 << 20
"""Rows that any capture may become."""

ROWS_PER_EVENT: Final = 16
"""Rows for each event beyond those: one event begins and ends in two steps, and lies in some levels of a tree."""


MAX_CAPTURES: Final = 512
"""Ranks in one trace: a trace is of one process, or of the ranks of some nodes that a script merged."""


REMEDY: Final = "profile fewer steps, or one process in one file"


class TooManyRowsError(OverflowError):
    """An input would become more rows than it can have by what it holds."""


def check_rows(rows: int, events: int, what: str) -> None:
    """Raise TooManyRowsError where `events` events would become so many rows.

    what: the rows, in the plural, for the message.

    >>> check_rows(1_000_000, 10, "pieces of operators")
    >>> check_rows(9_000_000, 3_000, "pieces of operators")
    Traceback (most recent call last):
    tracker.limits.rows.TooManyRowsError: 3,000 events would become 9,000,000 pieces of operators
    """
    if rows > FREE_ROWS + ROWS_PER_EVENT * events:
        raise TooManyRowsError(f"{events:,} events would become {rows:,} {what}")


def check_captures(captures: int) -> None:
    """Raise TooManyRowsError where one trace holds so many processes and devices.

    >>> check_captures(16)
    >>> check_captures(4_000)
    Traceback (most recent call last):
    tracker.limits.rows.TooManyRowsError: 4,000 processes and devices work in one trace, more than 512
    """
    if captures > MAX_CAPTURES:
        problem = f"{captures:,} processes and devices work in one trace, more than {MAX_CAPTURES:,}"
        raise TooManyRowsError(problem)
