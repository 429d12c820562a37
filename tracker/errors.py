"""What can go wrong, said so that the reader can act on it.

Every error a user can meet is a `TrackerError`. It is raised where the fact is known and caught once, in `tracker.cli`,
which prints `str(error)` as one line on stderr and exits with `error.exit_code`.
"""

from __future__ import annotations

from os import PathLike
from typing import Any, Final

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_COULD_NOT_RUN = 2
EXIT_INTERRUPTED = 130
EXIT_NOT_COMPARABLE = 3
EXIT_TOO_LITTLE_DATA = 4


FIRST_INGEST: Final = "tracker ingest PATH --version VERSION --workload WORKLOAD"
"""What to do in a database without runs; a user fills in the words in capitals."""

HOW_TO_INSTALL: Final = "pip install . in a clone of it, or pip install FILE.whl"
"""What a remedy says: on the package index, the name tracker is another project's."""


class TrackerError(Exception):
    """A problem that the user can solve: what is wrong, where, and what to do about it.

    >>> str(TrackerError("no version 'v9'", remedy="tracker versions lists them"))
    "no version 'v9'; tracker versions lists them"
    """

    exit_code = EXIT_COULD_NOT_RUN

    def __init__(self, problem: str, *, remedy: str = "") -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        # the arguments of a child are not those of its parent, which pickle would call it with
        return _made_again, (type(self), self.args, dict(self.__dict__))

    def __str__(self) -> str:
        # an address or a name of thousands of characters has no blank; a line is read
        parts = (" ".join(map(shorten_path, part.split())) for part in (self.problem, self.remedy))
        return "; ".join(filter(None, parts))


def _made_again(kind: type[TrackerError], args: tuple[Any, ...], known: dict[str, Any]) -> TrackerError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(known)
    return error


def without_place(text: str, place: object) -> str:
    """An error without the path in front of it, for where that stands already.

    >>> without_place(str(SourceError("a.json", "", "is empty")), "a.json")
    'is empty'
    >>> without_place("a.json is already in as run 2", "a.json")
    'is already in as run 2'
    """
    shown = shorten_path(str(place))
    return text.removeprefix(f"{shown}: ").removeprefix(f"{shown} ")


def our_fault(error: Exception) -> str:
    """What users are told of a file on which tracker failed with an error that is none of theirs.

    >>> our_fault(ZeroDivisionError("oh"))
    'tracker itself failed on this: ZeroDivisionError: oh; please report it'
    """
    return f"tracker itself failed on this: {type(error).__name__}: {' '.join(str(error).split())}; please report it"


_QUOTED_CHARACTERS: Final = 600
"""Of what is wrong with a file. What tracker itself says is shorter; the file may hold a number of 5,000 digits."""


_PATH_CHARACTERS: Final = 300
"""Of a path in a message; systems take 4,096."""


def shorten_path(path: str) -> str:
    """Return a path as a message shows it, without the middle of one of more than 300 characters.

    >>> shorten_path("a.json"), len(shorten_path("x" * 4_258))
    ('a.json', 305)
    """
    return _without_middle(path, _PATH_CHARACTERS)


def _without_middle(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    half = characters // 2
    return f"{text[:half]} ... {text[-half:]}"


class SourceError(TrackerError):
    """A file or folder that cannot be read as a profile.

    Of what the problem quotes from the file, the middle is left out where it is long: the error stays one line.

    >>> print(SourceError("a.json", "byte 12", "the JSON ends in the middle of an event", remedy="export it again"))
    a.json: byte 12: the JSON ends in the middle of an event; export it again
    """

    def __init__(self, path: str | PathLike[str], place: str, problem: str, *, remedy: str = "") -> None:
        self.path = str(path)
        self.place = _without_middle(place, _QUOTED_CHARACTERS)
        shown = shorten_path(self.path)
        where = f"{shown}: {self.place}: " if place else f"{shown}: "
        super().__init__(f"{where}{_without_middle(problem, _QUOTED_CHARACTERS)}", remedy=remedy)


class StoreError(TrackerError):
    """A database that cannot be opened, is too old, too new, locked or read-only."""


NO_DATABASE: Final = "there is no database at"
"""How the problem of a StoreError begins where its database is not there."""


class NewerStoreError(StoreError):
    """A database that a newer program has changed: this one must not write into it, now or later."""


class UsageError(TrackerError):
    """An argument that names nothing, or names too much."""


class TooLittleDataError(UsageError):
    """What is asked for cannot be said yet: more runs will tell."""

    exit_code = EXIT_TOO_LITTLE_DATA


def check_reason(reason: str) -> None:
    """Raise UsageError for a reason that is empty, or a placeholder such as `...`, without a letter or digit."""
    if not any(char.isalnum() for char in reason):
        raise UsageError(f"the reason {reason!r} says nothing", remedy="write why: --reason TEXT")
