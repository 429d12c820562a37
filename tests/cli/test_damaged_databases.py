"""A database that a failing disk left: each command says so in one line that names `tracker db check`."""

from __future__ import annotations

import random
import sqlite3

import pytest

from tests.conftest import slow

NO_UTF_8 = "CAST(x'ff41' AS TEXT)"
STATEMENTS = [
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
        connection.execute(statement)
    connection.close()
    # what nobody can tell from content that was meant so
    check_commands(tracker, db, is_other_content="advice SET content = '{}'" in statement)


@pytest.mark.parametrize("damage", BYTES)
def test_damaged_bytes_are_told(tracker, db, damage):
    content = bytearray(db.read_bytes())
    damage(content, random.Random(1))
    db.write_bytes(content)
    check_commands(tracker, db)


def test_a_command_that_fails_on_a_sound_database_says_nothing_of_damage(tracker, db):
    done = tracker("show", "v77", "--db", db)
    assert done.code == 2
    assert "db check" not in done.err
