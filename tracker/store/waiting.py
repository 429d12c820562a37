"""How long a writer waits for other writers, and the line that says for whom it waits."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from tracker.units import NS_PER_S

_LOCKS: Final = Path("/proc/locks")


class Patience:
    """What holds for all writers of this process.

    seconds: how long one waits for its turn, and as long again for the lock of SQLite. said_after_s: who waits so long
    says so. say: takes the line; None: nothing is said, as in a program that uses the package.
    """

    usual_s: Final = 600.0
    seconds: float = usual_s
    said_after_s: float = 2.0
    say: Callable[[str], None] | None = None


def say_waiting(what: str, database: str | Path, since_ns: int, seconds: float, holder: str) -> None:
    """Say that this process waits for `what` of a database.

    since_ns: since 1970; seconds: how much longer it waits at most; holder: who lets it wait, '' where that is unknown.
    """
    if Patience.say is None:
        return
    until_ns = time.time_ns() + round(seconds * NS_PER_S)
    held_by = f"; {holder} has it" if holder else ""
    Patience.say(
        f"tracker: waiting for {what} of {database} since {_clock(since_ns)}, until {_clock(until_ns)} UTC at most"
        f"{held_by}; --wait SECONDS sets how long"
    )


def find_holder(path: Path, kind: Literal["FLOCK", "POSIX"]) -> str:
    """Return who has a lock of this kind on a file, as `process 41 of ann`; '' where the system does not tell.

    Of locks of POSIX, those to write count: readers of SQLite share theirs.
    """
    try:
        state = os.stat(path)
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return ""
    file = f"{os.major(state.st_dev):02x}:{os.minor(state.st_dev):02x}:{state.st_ino}"
    for line in lines:
        # 12: FLOCK  ADVISORY  WRITE 4711 08:01:131077 0 EOF; of who waits, an arrow stands before the kind
        words = line.split()
        if len(words) < 6 or words[1] != kind or words[5] != file:
            continue
        process = int(words[4])
        if process > 0 and (kind == "FLOCK" or words[3] == "WRITE"):
            return f"process {process}{_user_of(process)}"
    return ""


def _user_of(process: int) -> str:
    import pwd  # where there are locks of this kind, there is this module, too

    with suppress(OSError):
        number = os.stat(f"/proc/{process}").st_uid
        try:
            return f" of {pwd.getpwuid(number).pw_name}"
        except KeyError:  # a user of another container
            return f" of user {number}"
    return ""


def _clock(ns: int) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(ns // NS_PER_S))
