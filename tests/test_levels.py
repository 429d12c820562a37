"""The declarations of levels refer to what is there, and the rows, tables and answers that follow from them agree."""

from __future__ import annotations

import pytest

from tracker.profile import ROW_COLUMNS
from tracker.schema.levels import LEVEL, LEVELS
from tracker.store.tables import metadata


def test_each_level_and_column_has_a_name_of_its_own():
    assert len(LEVEL) == len(LEVELS)
    for level in LEVELS:
        names = [column.name for column in level.columns]
        assert len(set(names)) == len(names), level.name


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_a_level_refers_to_what_stands_before_it(level):
    names = {column.name for column in level.columns}
    assert {*level.key, *filter(None, [level.largest])} <= names
    before = [other.name for other in LEVELS[: LEVELS.index(level)]]
    if level.inside:
        assert level.inside in before
        assert level.inside in names  # by which a row finds the one around it
    assert level.is_numbered or level.key  # else nothing identifies its rows
    for column in level.columns:
        assert column.meaning
        assert not column.answer_behind or column.answer_behind in names
        # what tells rows apart does not add up
        assert not (column.adds and column.name in level.key)


def test_the_rows_of_a_queue_and_their_table():
    """One level, whose rows are numbered though a key tells them apart."""
    kinds = {
        "step": "int", "stream": "int", "kernels": "int", "lead_ns": "ns", "max_lead_ns": "ns", "queued": "int",
    }  # fmt: skip
    assert ROW_COLUMNS["queue"] == kinds
    table = metadata.tables["queue"]
    assert list(table.columns.keys()) == ["run_id", "rank", "ordinal", *kinds]
    assert [column.name for column in table.primary_key] == ["run_id", "rank", "ordinal"]
    assert {column.name for column in table.columns if column.nullable} == {
        "kernels", "lead_ns", "max_lead_ns", "queued"
    }  # fmt: skip


def test_later_columns_of_an_op_stand_where_a_reader_looks_for_them():
    names = [column.name for column in LEVEL["op"].answer_columns]
    assert names[names.index("max_ns") :] == [
        "max_ns", "host_min_ns", "host_max_ns", "sum_squares_ns2", "kernel_count", "call_stack"
    ]  # fmt: skip
