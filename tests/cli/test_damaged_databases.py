"""A database that a failing disk left: each command says so in one line that names `tracker db check`."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.conftest import RUN, slow

NO_UTF_8 = "CAST(x'ff41' AS TEXT)"
BROKEN_NAME = "UPDATE sqlite_master SET name = CAST(x'ff41' AS TEXT) WHERE name = '{}'"
STATEMENTS = [
    "UPDATE alembic_version SET version_num = x'00ff'",
    BROKEN_NAME.format("op"),
    "UPDATE capture SET settings = '{'",
    f"UPDATE detail_text SET text = {NO_UTF_8} || id",
    "UPDATE run SET started_at_ns = 'abc'",
    "UPDATE run SET workload_id = 999",
    *map(
        slow,
        (
            "UPDATE capture SET settings = '[]'", f"UPDATE capture SET settings = {NO_UTF_8}",
            f"UPDATE capture SET host = {NO_UTF_8}", "UPDATE recording SET content = '{'",
            "UPDATE recording SET content = '5'", "UPDATE advice SET content = '{'", "UPDATE advice SET content = '{}'",
            f"UPDATE advice SET content = {NO_UTF_8}", f"UPDATE run SET note = {NO_UTF_8}",
            "UPDATE run SET version_id = 999", "UPDATE run SET device_id = 999", "DELETE FROM version",
            "DELETE FROM workload", "DELETE FROM device", "DELETE FROM op_key", "DELETE FROM detail_text",
            "UPDATE step SET duration_ns = 'x'", f"UPDATE series SET name = {NO_UTF_8}",
            "UPDATE sample_array SET numbers = x'00'", "UPDATE sample_array SET numbers = 'text'",
            "UPDATE sample SET value = 'abc'", "UPDATE op_tree SET contexts = x'01'", "UPDATE op_tree SET contexts = 5",
            f"UPDATE workload SET name = {NO_UTF_8}", "UPDATE alembic_version SET version_num = 'x'",
            "UPDATE alembic_version SET version_num = 42",
            BROKEN_NAME.format("sqlite_autoindex_op_key_1"), BROKEN_NAME.format("sample"),
            "DROP TABLE sample", "DROP TABLE series", "UPDATE op SET calls = 'x'",
        ),
    ),
]  # fmt: skip


def cut_in_half(content, _random):
    del content[len(content) // 2 :]


def without_magic(content, _random):
    content[:16] = bytes(16)


def without_schema(content, _random):
    content[100:200] = bytes(100)


def with_flipped_bits(content, source):
    for _ in range(400):
        content[source.randrange(100, len(content))] ^= 1 << source.randrange(8)


def with_lost_pages(content, source):
    for _ in range(40):
        at = source.randrange(1, len(content) // 1024) * 1024
        content[at : at + 1024] = source.randbytes(1024)


def with_a_newer_format(content, _random):
    content[18:20] = b"\x09\x09"


def with_one_lost_page(content, _random):
    content[1024:2048] = b"\xff" * 1024


def with_a_wrong_page_size(content, _random):
    content[16:18] = b"\x01\x00"


BYTES = [
    without_magic, slow(cut_in_half), slow(without_schema), slow(with_flipped_bits), slow(with_lost_pages),
    slow(with_a_newer_format), slow(with_one_lost_page), slow(with_a_wrong_page_size),
]  # fmt: skip
COMMANDS = [
    ("show", "latest"), ("diff", "v01", "v08"), ("history", "step"), ("findings",), ("runs",), ("versions",),
    ("board",), ("advise", "latest"),
]  # fmt: skip


CHANGES = [
    "log", "explain 1", "ack 1", "expect 1 --reason ok", "mute 1 --until 2w --reason ok", "unmute 1 --reason ok",
    "mute --op aten::mm --until 3d --reason ok", "invalid 1 --reason ok", "note 1 --reason ok", "undo 1 --reason ok",
    "versions pin v01",
    "versions unpin v01", "versions order v08 --before v01", "versions judge", "versions forget-branch b",
    "cluster latest", "cut latest -o STEP", "status", "runs edit 1 --note x", "runs edit 1 --version v3",
    "runs tag 1 --tag a=b", "runs untag 1 --tag a", "runs exclude 1 --reason ok", "runs restore 1",
    "runs delete 1 --reason ok", "runs delete 2 --purge --reason ok", "thresholds",
    "thresholds set min_ratio=10% --kind op --reason ok", "thresholds try min_ratio=10% --kind op",
    "thresholds unset min_ratio --kind op", "calibrate v01", "prune --yes", "db info", "db upgrade", "db copy DB COPY",
    "notify --list", "watch --once", "ingest TRACE --version v9", "ingest TRACE --version v01", "ingest --again",
]  # fmt: skip
"""All other commands that open a database; most change it."""


def check_changes(tracker, db, trace, folder):
    """Each command works, fails as it does on a sound database, or ends with one line that names db check.

    By day every fourth command is tried.
    """
    sound, damaged = folder / "sound.db", db
    for line in CHANGES if RUN == "all" else CHANGES[::4]:
        errors = []
        for base in (sound, damaged):
            for left in folder.glob("work*"):
                left.unlink()
            copy = Path(shutil.copy(base, folder / "work.db"))
            places = {
                "STEP": folder / "work.json.gz",
                "COPY": folder / "work-copy.db",
                "DB": copy,
                "TRACE": trace["v01"],
            }
            words = [places.get(word, word) for word in line.split()]
            done = tracker(*words, *(() if "COPY" in line else ("--db", copy)))
            errors.append(done.err if done.code == 2 else "")
        before, after = errors
        if after != before:
            assert after == "" or (after.count("\n"), "tracker db check" in after) == (1, True), (line, after)


def check_commands(tracker, db, *, is_other_content=False):
    """Each command works, or ends with one line that names db check; db check itself has no traceback."""
    for words in COMMANDS:
        done = tracker(*words, "--db", db).plain
        if done.code == 2:
            assert (done.err.count("\n"), "tracker db check" in done.err) == (1, True), (words, done.err)
        assert "Traceback" not in done.err
    checked = tracker("db", "check", "--db", db)
    assert checked.code == 2 or is_other_content
    assert "Traceback" not in checked.err


@pytest.mark.parametrize("statement", STATEMENTS)
def test_damaged_cells_are_told(tracker, db, statement):
    with sqlite3.connect(db) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement)
    connection.close()
    # what nobody can tell from content that was meant so
    check_commands(tracker, db, is_other_content="advice SET content = '{}'" in statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE run SET workload_id = 999",
        *map(slow, ("UPDATE run SET started_at_ns = 'abc'", "UPDATE capture SET settings = '{'", "DROP TABLE sample")),
    ],
)
def test_damage_is_told_by_every_command(tracker, db, trace, tmp_path, statement):
    shutil.copy(db, tmp_path / "sound.db")
    with sqlite3.connect(db) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(statement)
    connection.close()
    check_changes(tracker, db, trace, tmp_path)


@pytest.mark.parametrize("damage", BYTES)
def test_damaged_bytes_are_told(tracker, db, damage):
    content = bytearray(db.read_bytes())
    damage(content, random.Random(1))
    db.write_bytes(content)
    check_commands(tracker, db)


@pytest.mark.parametrize("number", ["'abc'", "999999"])
def test_causes_of_idle_time_that_name_no_text_are_not_left_out(tracker, tmp_path, number):
    db = tmp_path / "idle.db"
    profile = Path(__file__).parents[1] / "data/h200/host_copies.pt.trace.json.gz"
    tracker("ingest", profile, "--version", "v1", "--workload", "gpt", "--db", db)
    assert tracker("show", "latest", "--details", "--db", db).code == 0
    with sqlite3.connect(db) as connection:
        connection.execute(f"UPDATE idle SET cause_id = {number}")
    connection.close()
    done = tracker("show", "latest", "--details", "--db", db)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"tracker: {db}: texts of idle are damaged; tracker db check --db {db} tells which\n"


def test_a_command_that_fails_on_a_sound_database_says_nothing_of_damage(tracker, db):
    done = tracker("show", "v77", "--db", db)
    assert done.code == 2
    assert "db check" not in done.err
