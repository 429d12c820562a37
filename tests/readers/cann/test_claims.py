"""Which folders and files of CANN are captures, and who reads them."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.readers import ascend_databases as made
from tests.readers.ascend_databases import write
from tests.readers.cann.captures import NEW, OLD, OUTPUT, TIME, profile
from tracker import readers
from tracker.errors import SourceError
from tracker.readers import Found


@pytest.mark.parametrize("path", [NEW, OLD, NEW / OUTPUT, OLD / "device_1"], ids=["new", "old", "output", "device"])
def test_folders_of_a_capture_are_claimed_once(path):
    assert [(found.path, found.format) for found in readers.find(path)] == [(path, "cann")]


@pytest.mark.parametrize("name", [f"op_summary_{TIME}.csv", f"msprof_{TIME}.json"])
def test_main_files_alone_are_captures(name):
    read = profile(NEW / OUTPUT / name)
    assert len(read.captures) == 1
    assert len(read.captures[0].events.device) == (3 if name.endswith("csv") else 4)


def test_a_trace_of_a_framework_is_not_a_timeline_of_cann(tmp_path):
    event = {"ph": "X", "name": "aten::mm", "pid": 1, "tid": 1, "ts": "1700000000000000.500", "dur": 1, "cat": "cpu_op"}
    hardware = {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "Ascend Hardware"}}
    path = tmp_path / "trace_view.json"
    path.write_text(json.dumps([hardware, event]))
    assert readers.claim(path) == "ascend_text"


def test_raw_data_inside_a_capture_of_a_framework_belongs_to_that_capture(tmp_path):
    folder = tmp_path / "host_1_20250101000000000_ascend_pt"
    shutil.copytree(NEW, folder / NEW.name)
    (folder / "ASCEND_PROFILER_OUTPUT").mkdir()
    (folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").touch()
    assert [(found.path, found.format) for found in readers.find(tmp_path)] == [(folder, "ascend_text")]


def test_capture_that_was_never_parsed_is_an_error_with_the_line_that_parses_it(tmp_path):
    folder = tmp_path / "PROF_000001_20250101000000000_C"
    (folder / "device_0" / "data").mkdir(parents=True)
    (folder / "host" / "sqlite").mkdir(parents=True)
    with pytest.raises(SourceError, match=rf"only raw data; parse it: msprof --export=on --output={folder}"):
        readers.read(Found(folder, readers.claim(folder)))


def test_never_parsed_capture_of_a_framework_still_names_its_own_line(tmp_path):
    folder = tmp_path / "host_1_20250101000000000_ascend_pt"
    (folder / "PROF_000001_20250101000000000_C" / "device_0").mkdir(parents=True)
    (found,) = readers.find(tmp_path)
    with pytest.raises(SourceError, match=r"torch_npu\.profiler\.profiler import analyse"):
        readers.read(found)


def test_a_capture_in_both_exports_is_read_as_text(new):
    write(new / "msprof_20231114221400.db", made.tables())
    assert [(found.path, found.format) for found in readers.find(new)] == [(new, "cann")]
    shutil.rmtree(new / OUTPUT)
    assert [(found.path, found.format) for found in readers.find(new)] == [(new, "ascend_db")]
