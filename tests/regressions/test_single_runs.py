"""One run a version, as most nightly series have: what one run decides, and which runs the next ones are beside."""

from __future__ import annotations

from tests.regressions.made import runs
from tracker.compare import diffs
from tracker.regressions.judgement import tracks_of, update

COPIES = {"copy": 600_000}
"""A copy of .6 ms, in a step of 40 ms: 1.5 % of it."""


def nightly(store, *versions):
    """Versions v1, v2, ... of one run each: five of 40 ms, then these: (what is changed, idle time in ns).

    Each is judged before the next one comes.
    """
    for number, (changed, idle_ns) in enumerate([({}, 0)] * 5 + list(versions)):
        runs(store, f"v{number + 1}", changed, count=1, start=number, idle_ns=idle_ns)
        update(store, tracks_of(store))


def test_runs_after_a_suspect_have_a_base_of_their_operators(memory_store):
    # v6 has a copy more, and takes 12 % longer; v7 has not, and a loader that takes 12 % longer
    nightly(memory_store, (COPIES, 4_000_000), ({}, 5_000_000), ({}, 0), ({}, 0))
    (beside_level,) = diffs(memory_store, ["v9"])
    # v7 is one bad run of that level
    assert beside_level.baseline.label == ",".join(f"run:{number}" for number in (1, 2, 3, 4, 5, 8))
