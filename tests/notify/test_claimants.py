"""A claim of a process that is dead ends at once on its machine; every other one lasts until its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.notify.made import MINUTE, NOW, Box
from tests.notify.test_outbox import deliver, put
from tracker.notify.delivering import Delivered, is_dead, new_claimant
from tracker.store import notifications

ROOT = Path(__file__).parents[2]


def claimant_of_another_process() -> str:
    """The name of a process that has ended."""
    words = [sys.executable, "-c", "from tracker.notify.delivering import new_claimant; print(new_claimant())"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def claimed(store, who):
    put(store)
    row = {"who": who, "now_ns": NOW, "until_ns": NOW + 10 * MINUTE}
    assert store.transact(lambda connection: notifications.claim(connection, 1, **row))


def test_claim_of_a_dead_process_ends_at_once(store):
    claimed(store, claimant_of_another_process())
    assert deliver(store, NOW + 1, Box()) == Delivered(sent=1)


def test_claim_of_a_live_process_lasts_until_its_end(store):
    claimed(store, new_claimant())
    assert deliver(store, NOW + 9 * MINUTE, Box()) == Delivered()
    assert deliver(store, NOW + 10 * MINUTE, Box()) == Delivered(sent=1)


def test_only_what_is_dead_for_sure_is_dead():
    host, processes, pid, start, token = new_claimant().split("/")
    of_others = (
        ("node99", processes, "1", "7", token),
        (host, "another-boot.1", pid, "7", token),
        (host, "", pid, "", token),
    )
    assert not any(is_dead("/".join(parts)) for parts in of_others)
    assert not is_dead("4711-abc"), "as earlier versions named themselves"
    assert is_dead("/".join((host, processes, pid, str(int(start) - 1), token))), "the PID came again"
