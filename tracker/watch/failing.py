"""What goes wrong in one of several things keeps no other from being done, and is said."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable

from tracker.errors import StoreError, TrackerError
from tracker.store import failures
from tracker.watch.work import Event, Work


def each(work: Work, steps: Iterable[Callable[[], object]]) -> None:
    """Do all of these. What went wrong first is raised at the end, what else did is said.

    A database that fails ends it at once: it is away, and each look at it may take a minute. Then that is raised, and
    all that went wrong before is said.
    """
    failed: list[Exception] = []
    try:
        for step in steps:
            try:
                step()
            except Exception as error:
                if is_of_database(error):
                    raise
                failed.append(error)
    except BaseException:
        _say(work, failed)
        raise
    _say(work, failed[1:])
    if failed:
        raise failed[0]


def _say(work: Work, failed: Iterable[Exception]) -> None:
    for error in failed:
        work.say(Event("failed", described(error)))


def is_of_database(error: BaseException) -> bool:
    """Whether the database is to blame, and may be there again later."""
    return isinstance(error, StoreError) or failures.is_connection_lost(error)


def one_line(error: BaseException) -> str:
    """An error on one line."""
    return str(error) if isinstance(error, TrackerError) else f"{type(error).__name__}: {' '.join(str(error).split())}"


def described(error: BaseException) -> str:
    """An error as a log shows it: a fault of ours whole, anything else on one line."""
    if isinstance(error, TrackerError) or is_of_database(error):
        return one_line(error)
    return "".join(traceback.format_exception(error)).strip()
