"""Columns go in as the rows that they stand for, however many, on both databases."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from tracker.store import bulk
from tracker.store.bulk import Column
from tracker.store.tables import metadata

TEXTS = "detail_text"


def numbered(count):
    """So many texts with the numbers 1, 2, 3, ... as ids and as digests."""
    return [
        Column("id", "int", range(1, count + 1)),
        Column("digest", "binary", [number.to_bytes(8, "big") for number in range(1, count + 1)]),
        Column("text", "text", [f"text {number}" for number in range(1, count + 1)]),
    ]


@pytest.mark.parametrize("count", [0, 1, 100, 101, 250])
def test_every_row_comes_in_once_and_whole(store, count):
    """A statement takes 100 rows; the last one what is left."""
    with store.begin() as connection:
        bulk.load(connection, TEXTS, numbered(count))
    with store.connect() as connection:
        rows = connection.execute(text("SELECT id, digest, text FROM detail_text ORDER BY id")).all()
    assert [(row.id, bytes(row.digest), row.text) for row in rows] == [
        (number, number.to_bytes(8, "big"), f"text {number}") for number in range(1, count + 1)
    ]


@pytest.mark.parametrize("longer", [0, 1])
def test_columns_of_different_length_are_no_rows(store, longer):
    one, *others = numbered(2)
    one = Column("id", "int", range(1, 4) if longer else range(1, 2))
    with pytest.raises(ValueError), store.begin() as connection:
        bulk.load(connection, TEXTS, [one, *others])
    with store.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM detail_text")).scalar_one() == 0


def test_rows_that_are_there_already_stay_and_are_not_counted(store):
    rows = [(number, number.to_bytes(8, "big"), f"text {number}") for number in range(1, 151)]
    with store.begin() as connection:
        assert bulk.insert(connection, TEXTS, ("id", "digest", "text"), rows[:120], or_keep="digest") == 120
        assert bulk.insert(connection, TEXTS, ("id", "digest", "text"), rows, or_keep="digest") == 30


def test_equal_texts_are_cleaned_alike():
    assert bulk.cleaned(iter(["relu", "a\0b", "relu", "a\0b"])) == ["relu", "a\\x00b", "relu", "a\\x00b"]


def test_columns_without_any_value_are_null_in_each_row(store):
    """`commit_id` is missing in both rows, `note` in one of them."""
    columns = [
        Column("id", "int", [1, 2]),
        Column("workload_id", "int", [1, 1]),
        Column("label", "text", ["v1", "v2"]),
        Column("ordinal", "int", [1, 2]),
        Column("commit_id", "text", [None, None]),
        Column("note", "text", [None, "new kernels"]),
    ]
    with store.begin() as connection:
        connection.execute(text("INSERT INTO workload (id, name) VALUES (1, 'gpt')"))
        bulk.load(connection, "version", columns)
    with store.connect() as connection:
        rows = connection.execute(text("SELECT label, commit_id, note FROM version ORDER BY id")).all()
    assert [tuple(row) for row in rows] == [("v1", None, None), ("v2", None, "new kernels")]


def test_columns_of_different_length_are_refused_without_any_value(store):
    with pytest.raises(ValueError), store.begin() as connection:
        bulk.load(connection, TEXTS, [*numbered(2), Column("text", "text", [None])])


def test_no_column_that_may_be_null_has_a_default():
    """Else a column that is left out for want of values would come in with another one."""
    columns = [column for table in metadata.sorted_tables for column in table.columns]
    assert len(columns) > 100
    assert [str(column) for column in columns if column.nullable and column.server_default is not None] == []


def test_new_rows_come_back_with_their_ids(store):
    """Of the digests 1, 2, 3 the first is there already: the other two get ids."""
    rows = [(number.to_bytes(8, "big"), f"text {number}") for number in (1, 2, 3)]
    with store.begin() as connection:
        bulk.insert(connection, TEXTS, ("digest", "text"), rows[:1])
        inserted = bulk.insert_new(connection, TEXTS, ("digest", "text"), rows, unique=("digest",))
        stored = connection.execute(text("SELECT id, digest FROM detail_text")).all()
    numbers = {bytes(row.digest): row.id for row in stored}
    assert {bytes(digest): number for number, digest in inserted} == {
        rows[1][0]: numbers[rows[1][0]],
        rows[2][0]: numbers[rows[2][0]],
    }
