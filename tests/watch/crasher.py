"""Plays rounds of a watcher in processes of their own, and kills them with SIGKILL at a chosen step.

A step is the start of a transaction, its last moment before the commit, the moment after it, or a message on its way
out. Run as a script: a line of stdin is a JSON list of database, folder, clock, file of messages and step (-1: none);
the answer is how the process ended, `killed` or `done`. The file gets a line per message: its key, and the step at
which it was sent; a second one beside it, `.steps`, how many steps there were.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

from tests.watch.world import AT_ONCE, World
from tracker.store import Store, open_store


class Steps:
    """Counts steps, and kills this process at one of them."""

    def __init__(self, last: int) -> None:
        self.last, self.taken = last, 0

    def __call__(self) -> None:
        if self.taken == self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.taken += 1


def count_transactions(steps: Steps) -> None:
    begin = Store.begin

    @contextmanager
    def counted(store: Store, **how):
        steps()
        with begin(store, **how) as connection:
            yield connection
            steps()
        steps()

    Store.begin = counted


def play(database: str, folder: str, now_ns: int, sent: str, last: int) -> None:
    """One round."""
    steps = Steps(last)
    count_transactions(steps)

    def send(channel, message):
        steps()
        with open(sent, "a", encoding="utf-8") as file:
            file.write(f"{message.key} {steps.taken}\n")
        steps()

    with open_store(database, create=False) as store:
        world = World(store, Path(folder), owner=f"node1:{os.getpid()}:x", alerts=AT_ONCE)
        world.now_ns = now_ns
        world.work.send = send
        world.round()
    Path(f"{sent}.steps").write_text(f"{steps.taken}")


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            play(*json.loads(line))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        sys.stdout.write("killed\n" if killed else "done\n" if status == 0 else f"failed {status}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
