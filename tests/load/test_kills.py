"""SIGKILL at random instants of ingests: each run is whole or absent, and the next ingest completes what is missing."""

from __future__ import annotations

import random

import pytest

from tests.load.conftest import rows, shared, sound
from tracker.store import queries

LONGEST_INGEST_S = 0.25
"""About what an ingest takes when nothing disturbs it; some are killed before they begin, some are done by then."""


def kill_at_random(world, store, url, *, ingests, at_once):
    chance = random.Random(20)
    work = world.runs(ingests)
    ends = []
    for first in range(0, ingests, at_once):
        some = [[one] for one in work[first : first + at_once]]
        ends += world.play(url, some, [chance.uniform(0, LONGEST_INGEST_S * at_once) for _ in some])
    assert set(ends) <= {"killed", "done"}
    assert "killed" in ends
    known = {row.path for row in rows(store, "SELECT path FROM source")}
    assert all(paths[0] in known for (paths, _), end in zip(work, ends, strict=True) if end == "done")
    assert len(queries.runs(store).frame) == len(known)
    assert sound(store)
    assert world.play(url, shared(work, 2)) == ["done", "done"]
    assert len(queries.runs(store).frame) == ingests
    assert sound(store)


def test_killed_ingests_leave_whole_runs_or_none_and_the_rerun_completes_them(world, store, database_url):
    kill_at_random(world, store, database_url, ingests=12, at_once=2)


@pytest.mark.slow
def test_200_ingests_killed_at_random_instants(world, store, database_url):
    kill_at_random(world, store, database_url, ingests=200, at_once=4)
