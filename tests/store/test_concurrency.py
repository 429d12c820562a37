"""Many writers at once lose nothing and double nothing; a killed one leaves nothing."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import event, text

from tests.conftest import count_rows
from tests.factories import EPOCH_NS, capture, record, save
from tracker.errors import StoreError, UsageError
from tracker.store import captures, labels, open_store, queries, save_run
from tracker.store import runs as edits
from tracker.store.failures import Raced
from tracker.store.versions import pin_version

FORMATS = ["torch_profiler"]
ROOT = Path(__file__).parents[2]
WRITERS = 6
BATCH = {"configuration": {"batch": "32"}}


def at_once(work, count=WRITERS):
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def orphans(store) -> int:
    """Details whose keys are gone."""
    question = (
        "SELECT COUNT(*) FROM kernel AS k WHERE k.op_key_id NOT IN (SELECT id FROM op_key) "
        "OR k.kernel_key_id NOT IN (SELECT id FROM kernel_key) OR k.category_id NOT IN (SELECT id FROM detail_text)"
    )
    with store.connect() as connection:
        return connection.execute(text(question)).scalar_one()


def test_runs_of_several_writers_are_all_there(store, database_url):
    def work(number):
        with open_store(database_url) as own:
            for step in range(3):
                # keys in opposite orders, some shared: writers that lock them as they come would meet in a circle
                names = [f"op{at}" for at in range(30)][:: 1 if number % 2 else -1]
                save(
                    own,
                    f"v{step}",
                    ops=[(name, 1) for name in [*names, f"own{number}"]],
                    kernels=[(n, 1) for n in names],
                )

    at_once(work)
    assert len(queries.runs(store).frame) == WRITERS * 3
    found = count_rows(store)
    assert (found["op"], found["kernel"], found["op_key"]) == (WRITERS * 3 * 31, WRITERS * 3 * 30, 30 + WRITERS)
    assert queries.versions(store).frame["ordinal"].tolist() == [1, 2, 3]
    assert orphans(store) == 0


def test_the_same_file_from_several_writers_is_one_run(store, database_url):
    def work(_number):
        with open_store(database_url) as own:
            return save_run(own, record(), [capture(digest=b"a" * 16)], formats=FORMATS)

    saved = at_once(work)
    assert sorted((one.created, one.already) for one in saved) == [(False, True)] * (WRITERS - 1) + [(True, False)]
    assert len({one.run_id for one in saved}) == 1
    assert count_rows(store)["capture"] == 1


def test_ranks_from_several_writers_form_one_run(store, database_url):
    def work(rank):
        with open_store(database_url) as own:
            made = capture(rank, world_size=WRITERS, started_at_ns=EPOCH_NS + rank, ended_at_ns=EPOCH_NS + 1000)
            return save_run(own, record(), [made], formats=FORMATS)

    saved = at_once(work)
    assert sorted(one.created for one in saved) == [False] * (WRITERS - 1) + [True]
    assert queries.captures(store, [saved[0].run_id]).frame["rank"].tolist() == list(range(WRITERS))
    assert queries.runs(store).frame["ranks"].tolist() == [WRITERS]


@pytest.mark.slow
def test_several_processes_make_one_database(empty_url):
    code = """
        import sys
        from tests.factories import save
        from tracker.store import open_store
        with open_store(sys.argv[1]) as store:
            save(store, sys.argv[2], runs=3)
    """
    running = [
        subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), empty_url, f"v{number}"], cwd=ROOT)
        for number in range(3)
    ]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    with open_store(empty_url, create=False) as store:
        assert queries.versions(store).frame["runs"].tolist() == [3, 3, 3]
        assert count_rows(store)["capture"] == 9


def test_writers_that_found_no_database_and_read_meanwhile_make_one_and_fill_it_both(empty_url):
    with open_store(empty_url, late=True) as one, open_store(empty_url, late=True) as other:
        assert (one.is_made, other.is_made) == (False, False)
        at_once(lambda number: save((one, other)[number], "v1", ranks=1), 2)
        assert (one.is_made, other.is_made) == (True, True)
        assert len(queries.runs(one).frame) == len(queries.runs(other).frame) == 2


def test_a_process_that_dies_halfway_leaves_nothing_and_blocks_nobody(store, database_url):
    code = """
        import os, sys
        from tests.factories import save
        from tracker.store import captures, open_store
        real = captures.bulk.load
        def die_at_the_end(connection, table, columns):
            real(connection, table, columns)
            if table == "kernel":
                os._exit(9)
        captures.bulk.load = die_at_the_end
        with open_store(sys.argv[1]) as store:
            save(store)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), database_url], cwd=ROOT, check=False)
    assert done.returncode == 9
    assert count_rows(store) == {}
    save(store)
    assert count_rows(store)["kernel"] == 1


def test_writers_that_need_a_new_partition_wait_for_each_other(store, database_url):
    if store.dialect == "postgresql":
        with store.begin() as connection:
            connection.execute(text("SELECT setval('run_id_seq', 999)"))

    def work(_number):
        with open_store(database_url) as own:
            save(own)

    at_once(work)
    assert count_rows(store)["op"] == WRITERS


def test_labels_that_are_purged_before_a_run_is_filed_are_made_again(store, database_url, monkeypatch):
    if store.dialect == "sqlite":
        pytest.skip("a SQLite writer is alone")
    save(store, of_run=BATCH)
    real = labels.device_id

    def purge_first(connection, device):
        monkeypatch.undo()
        with open_store(database_url) as other:
            edits.delete_all(other, [1], "wrong", purge=True)
        return real(connection, device)

    monkeypatch.setattr(labels, "device_id", purge_first)
    assert save(store, of_run=BATCH)[0] > 1
    assert queries.runs(store).frame[["version", "configuration"]].values.tolist() == [["v1", "batch=32"]]
    assert queries.facts(store, queries.runs(store).frame["run_id"]).frame["value"].tolist() == ["32"]


def test_workload_that_is_purged_while_a_run_is_filed_is_made_again(store, database_url, monkeypatch):
    """The other writer purges the last run between the look-up of the workload and that of its main line."""
    if store.dialect == "sqlite":
        pytest.skip("a SQLite writer is alone")
    save(store)
    real = labels.main_line

    def purge_first(connection, workload):
        monkeypatch.undo()
        with open_store(database_url) as other:
            edits.delete_all(other, [1], "wrong", purge=True)
        return real(connection, workload)

    monkeypatch.setattr(labels, "main_line", purge_first)
    assert save(store)[0] > 1
    assert queries.runs(store).frame["workload"].tolist() == ["gpt"]


def test_branch_that_two_forget_at_once_is_no_branch_for_the_second(store, database_url, monkeypatch):
    """The second has found the branch when the first one removes it."""
    if store.dialect == "sqlite":
        pytest.skip("a SQLite writer is alone")
    save(store, workload="gpt @ pr12")
    real = labels.hold_run

    def forget_first(connection, run_id):
        monkeypatch.undo()
        with open_store(database_url) as other:
            assert edits.forget_branch(other, "gpt @ pr12") == 1
        return real(connection, run_id)

    monkeypatch.setattr(labels, "hold_run", forget_first)
    with pytest.raises(UsageError, match="'gpt @ pr12' is no branch"):
        edits.forget_branch(store, "gpt @ pr12")


@pytest.mark.parametrize(
    "edit",
    [
        lambda store: edits.delete_all(store, [1], "wrong", purge=True),
        lambda store: edits.edit_all(store, [1], workload="bert", version="v2"),
    ],
    ids=["purge", "relabel"],
)
def test_labels_that_a_run_is_being_filed_under_are_kept(store, database_url, monkeypatch, edit):
    """The edit starts while an ingest that uses the same labels has not ended."""
    save(store, of_run=BATCH)
    real, filed, edited = captures.write_captures, Event(), Event()

    def wait(connection, placed):
        filed.set()
        edited.wait(0.5)
        return real(connection, placed)

    def work(number):
        with open_store(database_url) as own:
            if number == 0:
                save(own, of_run=BATCH)
            elif filed.wait(30):
                edit(own)
                edited.set()

    monkeypatch.setattr(captures, "write_captures", wait)
    at_once(work, 2)
    assert queries.versions(store, "gpt").frame[["version", "runs"]].values.tolist() == [["v1", 1]]
    assert queries.facts(store, [2]).frame["value"].tolist() == ["32"]


def test_writers_that_ingest_relabel_and_purge_at_once_get_along(store, database_url):
    def work(number):
        with open_store(database_url) as own:
            for step in range(6):
                (run_id,) = save(own, of_run={**BATCH, "commit": "abc"})
                if (number + step) % 2:
                    edits.edit_all(own, [run_id], version="v2", workload="bert", configuration={"batch": "64"})
                edits.delete_all(own, [run_id], "wrong", purge=True)

    at_once(work, 4)
    assert set(count_rows(store)) == {"device", "op_key", "detail_text", "kernel_key", "recording"}


def test_two_that_pin_at_once_leave_one_pinned(store, database_url):
    """The second begins when the first has written but not ended."""
    for version in ("v1", "v2", "v3"):
        save(store, version)
    pin_version(store, "v1")
    written, ended = Event(), Event()

    def wait(_connection):
        written.set()
        ended.wait(0.5)

    def work(number):
        with open_store(database_url) as own:
            if number == 0:
                event.listen(own.engine, "commit", wait)
                pin_version(own, "v2")
            elif written.wait(30):
                pin_version(own, "v3")
                ended.set()

    at_once(work, 2)
    assert queries.versions(store).frame.set_index("version")["pinned"].tolist() == [False, False, True]


def test_a_writer_that_always_collides_gives_up_with_one_line(store, monkeypatch):
    save(store)

    def collide(*_):
        raise Raced

    pauses = []
    monkeypatch.setattr(labels, "workload_id", collide)
    monkeypatch.setattr(time, "sleep", pauses.append)
    for work in (lambda: save(store), lambda: edits.edit_all(store, [1], workload="bert")):
        with pytest.raises(StoreError, match="other writers were faster 12 times; run the command again"):
            work()
    assert len(pauses) == 2 * 11
    assert max(pauses) <= 2.0
