"""Schema 0024 keeps what the ranks tell beside what the profilers say; before, the one was written over the other."""

from __future__ import annotations

import pytest
from alembic import command
from sqlalchemy import text

from tests.factories import capture, record, save
from tests.store.test_call_splits import EARLY, LATE, SPLIT, splits
from tracker.store import connect, health, open_store, save_run, schema

TIMES = "SELECT rank, transit_ns, wait_ns, exposed_wait_ns FROM communication ORDER BY run_id, rank"


def downgraded(url: str) -> None:
    with connect.open_engine(url).begin() as connection:
        command.downgrade(schema.alembic_config(connection), "0023")


def rows(url: str, question: str) -> list[tuple[object, ...]]:
    with connect.open_engine(url).connect() as connection:
        return [tuple(row) for row in connection.execute(text(question))]


@pytest.mark.parametrize(("format", "moves"), [("torch_profiler", True), ("ascend_db", False)])
def test_numbers_of_all_ranks_move_where_no_profiler_says_them(empty_url, format, moves):
    """Kineto says nothing of waiting, so that it was told by the ranks; HCCL does."""
    told = {"transit_ns": 30, "wait_ns": 20, "exposed_wait_ns": 20}
    with open_store(empty_url) as store:
        made = capture(communication=[("all_reduce", 50, told)])
        save_run(store, record(), [made], formats=[format])
    downgraded(empty_url)
    assert rows(empty_url, TIMES) == [(0, 30, 20, 20)]
    assert connect.upgrade(empty_url) == ("0023", schema.SCHEMA_HEAD)
    assert rows(empty_url, TIMES) == [(0, None, None, None) if moves else (0, 30, 20, 20)]
    of_ranks = "SELECT ranks_transit_ns, ranks_wait_ns, ranks_exposed_wait_ns, paired_calls FROM communication"
    assert rows(empty_url, of_ranks) == [(30, 20, 20, 1) if moves else (None,) * 4]
    downgraded(empty_url)
    assert rows(empty_url, TIMES) == [(0, 30, 20, 20)]


def test_an_upgraded_database_is_sound_and_takes_calls(empty_url):
    with open_store(empty_url) as store:
        save(store, "v0", ranks=2, communication=[("all_reduce", 50)])
    downgraded(empty_url)
    connect.upgrade(empty_url)
    with open_store(empty_url) as store:
        run_id = save_run(store, record(), [EARLY, LATE], formats=["torch_profiler"]).run_id
        assert splits(store, run_id) == SPLIT
        assert health.check(store) == []


def test_a_rank_whose_calls_an_older_tracker_did_not_keep_has_no_partners(empty_url):
    with open_store(empty_url) as store:
        save_run(store, record(), [EARLY], formats=["torch_profiler"])
    downgraded(empty_url)
    connect.upgrade(empty_url)
    with open_store(empty_url) as store:
        save_run(store, record(), [LATE], formats=["torch_profiler"])
        assert splits(store) == [(0, None, None, None, None), (1, None, None, None, None)]
