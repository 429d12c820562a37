"""One connection for all that a diff reads."""

from __future__ import annotations

from threading import Thread

import pytest

from tests.factories import save
from tracker import compare
from tracker.errors import StoreError
from tracker.store import open_store, queries


def test_all_that_is_read_in_a_block_comes_over_one_connection(store):
    save(store)
    with store.reading():
        with store.connect() as one:
            pass
        with store.connect() as other:
            assert other is one
        with store.reading(), store.connect() as inner:
            assert inner is one
        assert queries.runs(store).frame["run_id"].tolist() == [1]
    with store.connect() as later:
        assert later is not one


def test_another_thread_has_a_connection_of_its_own(store):
    found = []

    def read():
        with store.connect() as connection:
            found.append(connection)

    with store.reading():
        thread = Thread(target=read)
        thread.start()
        thread.join()
        with store.connect() as own:
            assert found[0] is not own


def test_after_an_error_in_the_block_there_are_connections_again(store):
    with pytest.raises(RuntimeError), store.reading():
        raise RuntimeError
    save(store)
    assert queries.runs(store).frame["run_id"].tolist() == [1]


def test_a_stamp_differs_after_each_change(store, monkeypatch):
    monkeypatch.setattr("tracker.store.connect.time.time", lambda: 0.0)  # as if all files were old
    before = store.stamp()
    assert before and store.stamp() == before
    save(store)
    after = store.stamp()
    assert after != before
    queries.runs(store)
    assert store.stamp() == after


def test_a_file_that_changes_right_now_has_no_stamp(tmp_path):
    with open_store(str(tmp_path / "t.db")) as store:
        save(store)
        assert store.stamp() is None


def test_what_takes_too_long_is_broken_off(store):
    endless = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n"
    store.stop_after(0.2)
    with pytest.raises(StoreError, match="time limit"), store.connect() as connection:
        connection.exec_driver_sql(endless)
    with pytest.raises(StoreError, match="time limit"):
        queries.runs(store)


def test_a_diff_of_stored_runs_takes_one_connection(store, monkeypatch):
    save(store, runs=2)
    taken, connect = [], store.engine.connect
    monkeypatch.setattr(store.engine, "connect", lambda: taken.append(1) or connect())
    compare.diff(store, "run:1", "run:2")
    assert len(taken) == 1
