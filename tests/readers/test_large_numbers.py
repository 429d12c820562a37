"""Numbers that 64 bits do not hold are an error in one line, and nothing comes into the database."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.readers.test_paddle_summary import section
from tests.readers.traces import op, write
from tracker import intake
from tracker.errors import SourceError
from tracker.intake import IngestOptions
from tracker.store import Store, open_store
from tracker.units import us_to_ns

KERNELS = """\
Step Id,Device_id,Task ID,Stream ID,Name,Type,Accelerator Core,Start Time(us),Duration(us)
1,0,1,3,MatMul1,MatMul,AI_CORE,1000,5
1,0,2,3,MatMul2,MatMul,AI_CORE,1010,{duration}
"""
MEMORY = ("relu  Allocated  2  64  64", "relu  Allocated  2  64  64")
COLUMNS = "Name  Type  Allocation Count  Allocation Size  Increased Size"


@pytest.fixture
def store(tmp_path):
    with open_store(str(tmp_path / "t.db")) as opened:
        yield opened


def ingested(store: Store, path: Path, *, skip_bad_rows: bool = False) -> int:
    """How many runs came in."""
    labels = {"version": "v1", "workload": "gpt"}
    return len(intake.ingest(store, [path], **labels, options=IngestOptions(skip_bad_rows=skip_bad_rows)))


@pytest.mark.parametrize("number", ["1e9999999", "1e999990", "-1e9999999", "9" * 30, "9" * 5000])
def test_a_number_of_any_size_is_refused_at_once(number):
    begun = time.process_time()
    with pytest.raises(ValueError, match="number of microseconds"):
        us_to_ns(number)
    assert time.process_time() - begun < 0.1


@pytest.mark.parametrize("duration", ["1e9999999", "1e999990", "99999999999999999999"])
def test_a_cell_beyond_64_bits_is_an_error_or_a_skipped_row(store, tmp_path, duration):
    path = tmp_path / "kernel_details.csv"
    path.write_text(KERNELS.format(duration=duration))
    with pytest.raises(SourceError, match=r"kernel_details\.csv: row 3"):
        ingested(store, path)
    assert ingested(store, path, skip_bad_rows=True) == 1


def test_durations_whose_sum_is_beyond_64_bits_are_an_error(store, tmp_path):
    path = write(tmp_path, [op("aten::mm", 1, (1 << 61) // 1000, tid=thread) for thread in range(5)])
    with pytest.raises(SourceError, match="add up to more than 64 bits hold"):
        ingested(store, path)


def test_sums_of_a_column_beyond_64_bits_are_an_error(store, tmp_path):
    path = tmp_path / "kernel_details.csv"
    head, *rows = KERNELS.format(duration=5).splitlines()
    path.write_text("\n".join([f"{head},Wait Time(us)", *(f"{row},4e15" for row in rows)]))
    with pytest.raises(SourceError, match="add up to more than 64 bits hold"):
        ingested(store, path)


def test_steps_far_from_each_other_do_not_wrap(store, tmp_path):
    steps = [op(f"ProfilerStep#{number}", at, 9, cat="user_annotation") for number, at in ((1, 0), (10**18 - 1, 20))]
    path = write(tmp_path, [*steps, *(op(f"aten::op{at}", at, 1) for at in range(1, 28, 2))])
    assert ingested(store, path) == 1


def test_a_repeated_line_of_a_memory_summary_is_an_error_or_a_skipped_row(store, tmp_path):
    path = tmp_path / "summary.txt"
    path.write_text(
        section("Memory", *MEMORY, header=COLUMNS).replace("Memory Summary", "Memory Summary - Place(gpu:0)")
    )
    with pytest.raises(SourceError, match="second row"):
        ingested(store, path)
    assert ingested(store, path, skip_bad_rows=True) == 1
