"""One connection for all that a diff reads."""

from __future__ import annotations

from threading import Thread

import pytest
from sqlalchemy import text

from tests.factories import EPOCH_NS, save
from tracker import compare, watch
from tracker.config.entries import Alerts, Channel
from tracker.errors import StoreError
from tracker.notify import enqueueing
from tracker.regressions import board, inbox
from tracker.regressions.judgement import tracks_of, update
from tracker.store import open_store, queries

ALERTS = Alerts(channels=(Channel(name="team", url="json://localhost"),))


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


def test_all_that_is_read_in_a_block_is_of_one_state(store, database_url):
    """Another process stores run 2 between two questions."""
    save(store)
    with store.reading():
        assert queries.runs(store).frame["run_id"].tolist() == [1]
        with open_store(database_url) as other:
            save(other, "v2")
        assert queries.runs(store).frame["run_id"].tolist() == [1]
        assert len(queries.versions(store)) == 1
    assert queries.runs(store).frame["run_id"].tolist() == [2, 1]


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_writer_sees_what_others_stored_since_it_began(store, database_url):
    """What it writes rests on what is stored when it writes, not on what was stored when it began."""
    question = text("SELECT COUNT(*) FROM run")
    with store.begin() as connection:
        before = connection.scalar(question)
        with open_store(database_url) as other:
            save(other)
        assert (before, connection.scalar(question)) == (0, 1)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_reader_writes_nothing(store):
    with pytest.raises(StoreError, match="it is read-only"), store.connect() as connection:
        connection.execute(text("DELETE FROM run"))


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


ANSWERS = {
    "diff": lambda store: compare.diff(store, "run:1", "run:2"),
    "matrix": lambda store: compare.matrix(store, ["run:1", "run:2", "run:3"]),
    "show": lambda store: compare.show(store, "run:1"),
    "log": compare.log,
    "board": board.board,
    "findings": inbox.findings,
    "status": lambda store: watch.status(store, now_ns=EPOCH_NS),
    "runs": queries.runs,
    "alerts": lambda store: enqueueing.preview(store, ALERTS, now_ns=EPOCH_NS),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_from_many_questions_takes_one_connection(store, monkeypatch, name):
    """What another process stores meanwhile is a part of all of an answer, or of nothing of it."""
    save(store, runs=2)
    save(store, "v2")
    update(store, tracks_of(store))
    taken, connect = [], store.engine.connect
    monkeypatch.setattr(store.engine, "connect", lambda: taken.append(1) or connect())
    ANSWERS[name](store)
    assert len(taken) == 1
