"""The same commands on SQLite and on Postgres."""

from __future__ import annotations

import gzip
import json
import sqlite3

from tests.cli.ending import ending
from tests.cli.support import WORKLOAD
from tracker.errors import FIRST_INGEST
from tracker.store.schema import SCHEMA_HEAD


def test_from_an_empty_database_to_a_diff(tracker, empty_url, trace):
    for label in ("v01", "v08"):
        done = tracker("ingest", trace[label], "--version", label, "--workload", WORKLOAD, "--db", empty_url)
        assert (done.code, done.err) == (0, "")
    compared = tracker("diff", "v01", "v08", "--format", "json", "--db", empty_url)
    from_disk = tracker("diff", trace["v01"], trace["v08"], "--format", "json")
    assert json.loads(compared.out)["ops"] == json.loads(from_disk.out)["ops"]
    assert ending(tracker("runs", "--db", empty_url).plain.out) == "2 runs.\nNext:\n  tracker show run:2"
    assert tracker("show", "latest", "--db", empty_url).code == 0


def test_edits(tracker, database_url, trace):
    tracker("ingest", trace["v01"], "--version", "v01", "--workload", WORKLOAD, "--db", database_url)
    for words in (
        ("runs", "edit", "1", "--version", "v02", "--note", "moved"),
        ("runs", "tag", "1", "--tag", "image=a"),
        ("runs", "untag", "1", "--tag", "image"),
        ("runs", "exclude", "1", "--reason", "noisy"),
        ("runs", "restore", "1"),
        ("versions", "pin", "v02"),
        ("versions", "unpin", "v02"),
        ("runs", "delete", "1", "--reason", "wrong", "--purge"),
    ):
        done = tracker(*words, "--db", database_url)
        assert (done.code, done.err) == (0, ""), words
    assert json.loads(tracker("runs", "--state", "all", "--format", "json", "--db", database_url).out)["runs"] == []


def test_new_database_is_sound_and_says_so(tracker, database_url):
    done = tracker("db", "check", "--db", database_url)
    assert done.code == 0, done.err
    assert done.out.endswith(" is sound\n")
    info = tracker("db", "info", "--db", database_url).out
    assert "the newest" in info
    assert "size" in info


def test_tables_that_differ_from_the_code_are_found(tracker, database_url):
    from sqlalchemy import text

    from tracker.store import open_store, views

    with open_store(database_url) as store, store.begin() as connection:
        views.drop_views(connection)  # they rest on it
        connection.execute(text("ALTER TABLE run DROP COLUMN note"))
    done = tracker("db", "check", "--db", database_url)
    assert done.code == 2
    assert "the tables differ" in done.err


def test_damaged_samples_are_told_by_database_run_and_a_remedy_that_helps(tracker, db, trace, tmp_path):
    """As a failing disk leaves them."""
    first = tracker("history", "step", "--workload", WORKLOAD, "--db", db).out
    _write(db, "UPDATE sample_array SET numbers = SUBSTR(numbers, 1, 50) WHERE run_id = 2")
    other = tmp_path / "other.pt.trace.json"
    other.write_bytes(gzip.decompress(trace["v08"].read_bytes()).replace(b"aten::mul", b"aten::wul"))
    for words in (
        ["history", "step", "--workload", WORKLOAD],
        ["ingest", other, "--version", "v09", "--workload", WORKLOAD],
    ):
        done = tracker(*words, "--db", db).plain
        assert (done.code, done.out, done.err) == (
            2, "", f"tracker: {db}: the samples of run 2 are damaged; tracker db check --repair makes them again\n",
        )  # fmt: skip
    damaged = tracker("db", "check", "--db", db).plain
    assert (damaged.code, damaged.err.splitlines()[0]) == (
        2, "tracker: the samples of run 2 are damaged; tracker db check --repair makes them again",
    )  # fmt: skip
    repaired = tracker("db", "check", "--repair", "--db", db)
    assert (repaired.code, repaired.out) == (0, f"run:2  its damaged samples are made again\n{db} is sound\n")
    assert tracker("runs", "delete", "7", "--purge", "--reason", "as before", "--db", db).code == 0
    assert tracker("history", "step", "--workload", WORKLOAD, "--db", db).out == first


def test_a_damaged_tree_is_told_and_a_new_ingest_brings_it_back(tracker, db, trace):
    tree = ("show", "run:1", "--by", "module", "--db", db)
    before = tracker(*tree)
    _write(db, "UPDATE op_tree SET contexts = SUBSTR(contexts, 1, 50) WHERE run_id = 1")
    assert "the calling contexts of run 1, rank 0 are damaged" in tracker("db", "check", "--db", db).err
    done = tracker(*tree).plain
    assert (done.code, done.err) == (
        2,
        f"tracker: {db}: the calling contexts of run 1, rank 0 are damaged; restore the database from a copy, or "
        "tracker runs delete 1 --purge --reason damaged, then ingest its files again; tracker db check lists all that "
        "is damaged\n",
    )
    assert tracker("runs", "delete", "1", "--purge", "--reason", "damaged", "--db", db).code == 0
    assert tracker("ingest", trace["v01"], "--version", "v01", "--workload", WORKLOAD, "--db", db).code == 0
    assert tracker("db", "check", "--db", db).code == 0
    again = tracker("show", "run:7", "--by", "module", "--db", db)
    assert (again.code, again.out.count("\n")) == (0, before.out.count("\n"))


def _write(db, statement):
    with sqlite3.connect(db) as connection:
        connection.execute(statement)
    connection.close()


def test_upgrade_makes_the_tables_of_an_empty_database(tracker, empty_url):
    if empty_url.startswith("sqlite"):
        assert tracker("db", "upgrade", "--db", empty_url).code == 2
        return
    assert tracker("db", "upgrade", "--db", empty_url).out == f"schema {SCHEMA_HEAD} created\n"
    assert "nothing to do" in tracker("db", "upgrade", "--db", empty_url).out


def test_a_database_is_copied_whole_into_an_empty_one_only(tracker, db, tmp_path):
    copy = tmp_path / "copy.db"
    said = tracker("db", "copy", db, copy)
    assert said.code == 0
    assert said.out.rstrip().endswith(
        f"6 runs: copied to {copy}. Name it by --db, TRACKER_DB or the settings file; "
        "tracker db info shows which one is used"
    )
    for words in (["runs"], ["diff", "v01", "v08", "--format", "json"], ["findings"]):
        assert tracker(*words, "--db", copy).plain == tracker(*words, "--db", db).plain
    assert tracker("db", "check", "--db", copy).code == 0
    again = tracker("db", "copy", db, copy)
    assert (again.code, "copy into a new, empty database" in again.err) == (2, True)
    assert tracker("db", "copy", tmp_path / "gone.db", tmp_path / "new.db").code == 2
    assert not (tmp_path / "new.db").exists()


def test_a_copy_that_cannot_be_says_why_in_its_own_words(tracker, db, tmp_path, monkeypatch):
    """It has no option --db, and takes no database that was not named."""
    monkeypatch.chdir(db.parent)
    for source, target, said in (
        (db, db, "FROM and TO are the same database; copy into a new, empty one"),
        (db, db.name, "FROM and TO are the same database; copy into a new, empty one"),
        (db, "sqlite://", "TO is a database in memory, which ends with this command; name a SQLite file"),
        ("", tmp_path / "new.db", "FROM is empty; name a SQLite file, or postgresql://USER@HOST/NAME"),
        (db, "", "TO is empty; name a SQLite file, or postgresql://USER@HOST/NAME"),
        (tmp_path / "gone.db", tmp_path / "new.db",
         f"there is no database at {tmp_path / 'gone.db'}; an ingest makes it: {FIRST_INGEST}; "
         "or name another database"),
        (db, tmp_path, f"{tmp_path} is a folder, not a database; name another database"),
    ):  # fmt: skip
        done = tracker("db", "copy", source, target)
        assert (done.code, done.out, done.err) == (2, "", f"tracker: {said}\n")
    assert not (tmp_path / "new.db").exists()


def test_what_the_system_refuses_is_told_without_the_password(tracker, monkeypatch):
    """As where no file can be opened any more: that of the statements of a new database among them."""

    def refuse(*_, **__):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("tracker.store.open_store", refuse)
    done = tracker("runs", "--db", "postgresql://me:s3cr3t@h:5433/db?sslpassword=s3cr3t2")
    said = "the database cannot be opened (Too many open files); name another one with --db PATH"
    assert (done.code, done.err) == (2, f"tracker: postgresql://me:***@h:5433/db: {said}\n")
    done = tracker("runs", "--db", "/data/jobs.db")
    assert (done.code, done.err) == (2, f"tracker: /data/jobs.db: {said}\n")
