"""Which reader claims what, and how a folder is searched."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.readers.traces import op, write
from tracker import readers
from tracker.errors import SourceError, UsageError

FIXTURES = Path(__file__).parents[1] / "data" / "torch_profiler"
ASCEND = '[{"ph": "X", "name": "Task", "pid": 7, "tid": 7, "ts": "1704161511420306.491", "dur": 3, "cat": "devtools"}]'
ASCEND_OBJECT = '{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "Ascend Hardware"}}]}'
PADDLE = (
    '{"schemaVersion": "1.0.2", "span_index": "0", "traceEvents": [{"name": "relu dygraph[673.108 us]", "pid": 7,'
    ' "tid": "7(Python)", "ts": 1, "dur": 1.5, "ph": "X", "cat": "Operator"}], "deviceProperties": []}'
)
OTHERS = {
    "ascend.json": ASCEND,
    "ascend_object.json": ASCEND_OBJECT,
    "chrome.json": '{"traceEvents": [{"ph": "X", "cat": "devtools", "name": "Task", "ts": 1, "dur": 1, "pid": 1}]}',
    "docker.json": '{"schemaVersion": 2, "layers": [{"size": 3}]}',
    "empty_object.json": "{}",
    "list.json": "[1, 2]",
    "log.txt": "Epoch 1 [ok]",
    "empty.json": "",
}


def test_profiles_are_read_on_systems_without_file_locks():
    """`fcntl` is of POSIX; only the spool of the hooks needs it."""
    program = "import sys; sys.modules['fcntl'] = None; import tracker.readers; print(len(tracker.readers.NAMES))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == (str(len(readers.NAMES)), 0), done.stderr


@pytest.mark.parametrize("path", sorted(FIXTURES.iterdir()), ids=lambda path: path.name)
def test_every_fixture_is_claimed(path):
    assert readers.claim(path) == "torch_profiler"


@pytest.mark.parametrize("name", OTHERS)
def test_files_of_others_are_not_claimed(tmp_path, name):
    path = tmp_path / name
    path.write_text(OTHERS[name])
    with pytest.raises(SourceError, match=r"no reader knows this file \(.+\); known formats|the file is empty"):
        readers.claim(path)


def test_an_archive_that_no_reader_takes_is_called_one(tmp_path):
    path = tmp_path / "profiles.zip"
    path.write_bytes(b"PK\x03\x04" + bytes(60))
    with pytest.raises(SourceError, match=r"no reader knows this file \(an archive, unpack it first\)"):
        readers.claim(path)


@pytest.mark.parametrize("before", [0, 9000])
@pytest.mark.parametrize("header_first", [True, False])
def test_a_pytorch_trace_with_times_as_text_is_not_ascends(tmp_path, before, header_first):
    event = '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": "4857093183.475", "dur": "3.1"}'
    parts = ['"deviceProperties": []', f'"note": "{"x" * before}"', f'"traceEvents": [{event}]']
    path = tmp_path / "a.json"
    path.write_text("{" + ", ".join(parts if header_first else parts[::-1]) + "}")
    assert readers.claim(path) == "torch_profiler"


def test_a_paddle_trace_is_claimed_by_its_own_reader_alone(tmp_path):
    path = tmp_path / "paddle.json"
    path.write_text(PADDLE)
    assert readers.claim(path) == "paddle_trace"


def test_trace_with_much_text_before_its_first_event_is_claimed(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"comment": "' + "x" * 9000 + '", "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a"}]}')
    assert readers.claim(path) == "torch_profiler"


def test_folder_gives_all_its_traces_in_order_and_passes_over_the_rest(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / ".cache").mkdir()
    write(tmp_path / "b", [op("a", 1, 1)], name="rank1.json")
    write(tmp_path / ".cache", [op("a", 1, 1)])
    plain = write(tmp_path, [op("a", 1, 1)], name="rank0.json")
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(plain.read_bytes()))
    for name, text in OTHERS.items():
        (tmp_path / name).write_text(text)
    found = readers.find(tmp_path)
    assert [str(f.path.relative_to(tmp_path)) for f in found] == ["a.json.gz", "b/rank1.json", "rank0.json"]
    assert {f.format for f in found} == {"torch_profiler"}


def test_folder_without_profiles_is_an_error_that_lists_the_formats(tmp_path):
    with pytest.raises(SourceError, match=r"no profile in this folder; known formats: ascend_db, .*torch_profiler"):
        readers.find(tmp_path)


@pytest.mark.parametrize("name", ["ASCEND_PROFILER_OUTPUT/step_trace_time.csv", "profiler_info_3.json"])
def test_of_a_file_that_is_part_of_a_capture_the_folder_is_named(name):
    (folder,) = (FIXTURES.parent / "ascend_text").glob("worker-1_*")
    with pytest.raises(SourceError, match=rf"this file is a part of a capture; give its folder {folder}$"):
        readers.claim(folder / name)


def test_text_in_utf_16_is_named_as_what_it_is(tmp_path):
    path = tmp_path / "kernel_details.csv"
    path.write_text("Name,Accelerator Core,Duration(us)\n", encoding="utf-16")
    with pytest.raises(SourceError, match="the text is UTF-16, which no reader knows; save it as UTF-8"):
        readers.claim(path)


def test_path_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(SourceError, match="no such file or folder"):
        readers.find(tmp_path / "nowhere")


def test_a_pipe_is_no_profile_however_it_is_asked_for(tmp_path):
    """Such as that of `tracker ingest <(zcat a.json.gz)`; opening it would wait for a writer."""
    os.mkfifo(tmp_path / "a.json")
    for ask in (readers.find, readers.claim):
        with pytest.raises(SourceError, match=r"a\.json: is a pipe or a device, no file; save what it gives as a file"):
            ask(tmp_path / "a.json")
    (seen,) = readers.survey(tmp_path / "a.json")
    assert "is a pipe" in str(seen.problem)


def test_format_decides_without_looking_and_must_be_known(tmp_path):
    path = tmp_path / "odd.json"
    path.write_text('{"traceEvents": [{"ph": "X", "name": "a"}]}')
    assert readers.claim(path, "torch_profiler") == "torch_profiler"
    with pytest.raises(UsageError, match=r"no format 'perfetto'; known formats: .*torch_profiler"):
        readers.claim(path, "perfetto")


def test_registry_loads_neither_numpy_nor_a_reader():
    code = "import sys, tracker.readers; print([m for m in sys.modules if m in ('numpy', 'isal')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_trace_in_json_is_claimed_without_the_grammars_of_logs(tmp_path):
    path = tmp_path / "a.pt.trace.json"
    path.write_text('{"schemaVersion": 1, "record_shapes": 1, "traceEvents": []}')
    code = "import sys; from tracker import readers; print(readers.claim(sys.argv[1]), *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("torch_profiler ")
    assert "tracker.readers.training_log.grammars" not in done.stdout.split()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (("kernel_details.csv", "ascend_pytorch_profiler_0.db"), "ascend_text"),
        (("trace_view.json", "ascend_pytorch_profiler_0.db"), "ascend_db"),
        (("trace_view.json",), "ascend_text"),
        (("ascend_pytorch_profiler_0.db", "analysis.db"), "ascend_db"),
    ],
)
@pytest.mark.parametrize("has_raw", [False, True])
def test_an_ascend_capture_in_both_exports_is_of_one_reader(tmp_path, files, expected, has_raw):
    folder = tmp_path / "host_1_20250101_ascend_pt"
    output = folder / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    for name in files:
        (output / name).write_bytes(b"")
    if has_raw:
        (folder / "PROF_000001_x").mkdir()
    assert [(found.path, found.format) for found in readers.find(tmp_path)] == [(folder, expected)]
    assert readers.claim(output) == expected
