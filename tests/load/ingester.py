"""Ingests in processes of their own, as many at once as are asked for; each can be killed at a random instant.

Run as a script: a line of stdin is a JSON object {database, shares, kill_after_s}. `shares`: per process the ingests
that it makes one after the other, (paths, version) each; `kill_after_s`: per process when SIGKILL comes, null: never.
Every ingest opens and closes the database, as a command does. The answer is one JSON list: per process how it ended
(`done`, `killed`, or `failed` with what it said).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from tracker.errors import TrackerError
from tracker.intake import ingest
from tracker.regressions import judgement
from tracker.store import open_store

WORKLOAD = "load"


def ingest_share(database: str, share: Sequence[tuple[Sequence[str], str]]) -> None:
    """What one process does."""
    for paths, version in share:
        with open_store(database, create=False) as store:
            ingest(store, [Path(path) for path in paths], version=version, workload=WORKLOAD)


def start(database: str, share: Sequence[tuple[Sequence[str], str]], kill_after_s: float | None) -> tuple[int, int]:
    """A child at its share: its number, and where it says what went wrong."""
    said, say = os.pipe()
    child = os.fork()
    if child:
        os.close(say)
        if kill_after_s is not None:
            threading.Timer(kill_after_s, kill, [child]).start()
        return child, said
    os.close(said)
    try:
        ingest_share(database, share)
    except TrackerError as error:
        os.write(say, str(error).encode())
        os._exit(2)
    except BaseException as error:  # noqa: BLE001 told to the test, which fails
        os.write(say, repr(error).encode()[:4000])
        os._exit(1)
    os._exit(0)


def kill(child: int) -> None:
    """SIGKILL, unless it has ended; it is not waited for before its timer has fired."""
    os.kill(child, signal.SIGKILL)


def main() -> None:
    """Plays what comes by stdin."""
    judgement.update  # noqa: B018 imported before the first fork, so that children start at once
    for line in sys.stdin:
        asked = json.loads(line)
        delays = asked["kill_after_s"] or [None] * len(asked["shares"])
        children = [start(asked["database"], *one) for one in zip(asked["shares"], delays, strict=True)]
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.join()
        ends = []
        for child, said in children:
            with os.fdopen(said, "rb") as pipe:
                words = pipe.read().decode()
            _, status = os.waitpid(child, 0)
            killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            ends.append("killed" if killed else "done" if status == 0 else f"failed: {words}")
        sys.stdout.write(json.dumps(ends) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
