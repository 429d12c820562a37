"""CSV files of Ascend profilers, cell by cell."""

from __future__ import annotations

import csv

import pytest

from tracker.errors import SourceError
from tracker.readers import ReadOptions
from tracker.readers._ascend.csv_tables import read_table


def test_call_stacks_outgrow_the_limit_of_pythons_csv_which_stays_what_it_was_for_others(tmp_path):
    path = tmp_path / "op_summary.csv"
    stack = "train.py(3);" * 20_000
    path.write_text(f"Name,Call Stack\nmm,{stack}\n")
    before = csv.field_size_limit()
    assert len(stack) > before
    table = read_table(path, ReadOptions())
    assert table.columns == [["mm"], [stack]]
    assert csv.field_size_limit() == before


def test_the_limit_stays_what_it_was_where_the_file_is_refused(tmp_path):
    path = tmp_path / "op_summary.csv"
    path.write_text(f'Name\n"{"x" * (1 << 25)}"\n')
    before = csv.field_size_limit()
    with pytest.raises(SourceError, match="no CSV: field larger than field limit"):
        read_table(path, ReadOptions())
    assert csv.field_size_limit() == before
