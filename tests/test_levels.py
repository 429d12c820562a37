"""The declarations of levels refer to what is there, and the rows, tables and answers that follow from them agree."""

from __future__ import annotations

import re

import pytest

from tracker.profile import ROW_COLUMNS, Breakdown, StepRow
from tracker.schema.breakdown import BREAKDOWN
from tracker.schema.declarations import number
from tracker.schema.levels import LEVEL, LEVELS, STEP_LEVEL
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
        "max_ns", "host_min_ns", "host_max_ns", "sum_squares_ns2", "kernel_count", "call_stack",
        "self_by_quartile_ns", "self_by_median_ns", "raw_name",
    ]  # fmt: skip


@pytest.mark.parametrize("level", [*LEVELS, STEP_LEVEL], ids=lambda level: level.name)
def test_names_of_times_and_sizes_end_in_their_unit(level):
    """Names tell a reader the unit; the kind is declared: `tokens` is no time though it ends in ns."""
    for column in level.columns:
        if column.name in level.key or column.is_required:
            continue  # what tells rows apart is not added up, so that packet_bytes is a plain number
        assert (column.kind == "ns") == bool(re.search(r"(^|_)ns$", column.name)), column.name
        assert (column.kind in ("bytes", "size_class")) == bool(re.search(r"(^|_)bytes$", column.name)), column.name


def test_count_that_ends_like_a_unit_is_no_time():
    assert number("tokens", "sum", "tokens of the step").kind == "int"


def test_step_and_capture_have_each_number_of_a_breakdown():
    numbers = [column.name for column in BREAKDOWN]
    assert numbers == list(Breakdown.__struct_fields__)
    own = [column.name for column in STEP_LEVEL.columns if column.name not in numbers]
    assert own == ["step", "start_ns", "steps", "marker_ns", "kind"]
    assert {*own, "breakdown"} == set(StepRow.__struct_fields__)
    for table in ("step", "capture"):
        stored = metadata.tables[table].columns
        assert [column.name for column in stored if column.name in numbers] == numbers
        # a source need not say any of it but where the time was measured
        assert [name for name in numbers if not stored[name].nullable] == ["timeline"]
