"""Nothing is passed over in silence: each command names the files that it does not take, and why."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.test_intake import write_trace

DATA = Path(__file__).parents[1] / "data"
LABELS = ("--version", "v1", "--workload", "gpt")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A trace, its sidecar, a hidden file, and five files that no reader takes."""
    place = tmp_path / "in"
    (place / "notes").mkdir(parents=True)
    write_trace(place / "rank0.json", rank=0)
    (place / "rank0.json.tracker.json").write_text('{"schema": 1}')
    (place / ".hidden").write_text("x")
    (place / "a.log").write_text("Epoch 1 [ok]\n")
    (place / "b.json").write_text("")
    (place / "c.zip").write_bytes(b"PK\x03\x04 and so on")
    (place / "d.log.gz").write_text("no gzip")
    (place / "notes" / "e.txt").write_text("text", encoding="utf-16")
    return place


def expected(folder: Path) -> str:
    whys = {"a.log": "a text log without profiler rows or step times", "b.json": "empty",
            "c.zip": "an archive, unpack it first",
            "d.log.gz": "named .gz, but no gzip file", "notes/e.txt": "UTF-16 text, save it as UTF-8"}  # fmt: skip
    return "5 files not recognised: " + ", ".join(f"{folder / name} ({why})" for name, why in whys.items())


@pytest.mark.parametrize("command", ["ingest", "pack", "doctor"])
def test_a_folder_ends_with_the_files_that_were_not_taken(tracker, tmp_path, folder, command):
    more = {"ingest": LABELS, "pack": ("-o", tmp_path / "a.trk"), "doctor": ()}[command]
    done = tracker(command, folder, *more)
    assert (done.code, done.err) == (0, expected(folder) + "\n")


def test_the_screen_counts_what_it_leaves_out_and_json_has_all(tracker, folder):
    for number in range(20):
        (folder / f"x{number:02}.txt").write_text("text")
    done = tracker("doctor", folder, "--format", "json")
    assert done.err.startswith("25 files not recognised: ")
    assert done.err.endswith(f" and 20 more; tracker doctor {folder} --format json lists all\n")
    named = json.loads(done.out)["not_recognised"]
    assert len(named) == 25
    assert named[0] == {"path": str(folder / "a.log"), "why": "a text log without profiler rows or step times"}


def test_a_folder_without_any_profile_names_its_files(tracker, folder):
    (folder / "rank0.json").unlink()
    done = tracker("ingest", folder, *LABELS)
    assert done.code == 2
    assert (
        f"{folder}: no profile in this folder; 5 files not recognised: a.log (a text log without profiler rows or step "
        "times)" in done.err
    )


def test_raw_data_beside_an_export_is_not_listed(tracker, tmp_path):
    (capture,) = (DATA / "ascend_text").glob("worker-1_*")
    place = tmp_path / "in"
    shutil.copytree(capture / "ASCEND_PROFILER_OUTPUT", place)
    for name in place.glob("*"):
        if name.name != "kernel_details.csv":
            name.unlink()
    (place / "profiler_info_3.json").write_text("{}")
    (place / "FRAMEWORK").mkdir()
    (place / "FRAMEWORK" / "torch.op_range").write_bytes(b"\1\2")
    done = tracker("ingest", place, *LABELS)
    assert done.code == 0, done.err
    assert "not recognised" not in done.err


def test_file_of_another_tool_is_one_line_with_exit_code_2(tracker, tmp_path):
    path = tmp_path / "report_cuda_gpu_kern_sum.csv"
    path.write_text("Time (%),Total Time (ns),Instances,Name\n1,2,3,f\n")
    done = tracker("show", path)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "is a table of nsys stats as CSV, and is not read; give the report as SQLite" in done.err


def test_a_file_that_is_named_itself_is_an_error_as_before(tracker, folder):
    done = tracker("ingest", folder / "a.log", *LABELS)
    assert (done.code, "no reader knows this file" in done.err) == (2, True)


def test_keep_going_takes_what_can_be_read_and_exits_with_2(tracker, tmp_path, folder):
    (folder / "rank1.json").write_text('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "na')
    refused = tracker("ingest", folder, *LABELS)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.endswith("; tracker ingest --keep-going leaves it out and reads the others\n")
    alone = tracker("ingest", folder / "rank1.json", *LABELS)
    assert (alone.code, "--keep-going" in alone.err) == (2, False)
    done = tracker("ingest", folder, *LABELS, "--keep-going")
    assert done.code == 2
    assert done.out.startswith("run 1  gpt v1")
    *_, left, bad = done.err.splitlines()
    assert left == expected(folder)
    assert bad.startswith(f"not read: {folder / 'rank1.json'}: ")
    assert "not read" not in tracker("ingest", folder / "rank0.json", *LABELS, "--keep-going").err


def test_keep_going_with_nothing_to_read_changes_nothing(tracker, tmp_path):
    for number in range(2):
        (tmp_path / f"rank{number}.json").write_text('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "na')
    done = tracker("ingest", tmp_path, *LABELS, "--keep-going")
    assert (done.code, done.out) == (2, "")
    assert "none of 2 profiles can be read" in done.err
    assert str(tmp_path / "rank1.json") in done.err


def test_a_layout_labels_profiles_as_a_watched_folder_does(tracker, tmp_path):
    root = tmp_path / "all"
    for number, (workload, version, batch) in enumerate([("gpt", "v1", 4), ("gpt", "v2", 4), ("bert", "v1", 8)]):
        place = root / workload / f"{version}-b{batch}"
        place.mkdir(parents=True)
        write_trace(place / "rank0.json", rank=0, kernel_us=100 + number)
        write_trace(place / "rank1.json", rank=1, kernel_us=100 + number)
    (root / "README.md").write_text("text")
    (root / "gpt" / "v1-b4" / "notes.txt").write_text("text")
    done = tracker("ingest", root, "--layout", "{workload}/{version}-b{config.batch}/*")
    assert done.code == 0, done.err
    runs = tracker("runs", "--format", "json").out
    said = {(one["workload"], one["version"], one["configuration"]) for one in json.loads(runs)["runs"]}
    assert said == {
        ("gpt", "v1", "batch=4 world_size=2"), ("gpt", "v2", "batch=4 world_size=2"),
        ("bert", "v1", "batch=8 world_size=2"),
    }  # fmt: skip
    assert all(one["ranks"] == 2 for one in json.loads(runs)["runs"])
    assert done.err.splitlines()[-1] == (
        f"2 files not recognised: {root / 'README.md'} (fits no part of the layout), "
        f"{root / 'gpt' / 'v1-b4' / 'notes.txt'} (a text log without profiler rows or step times)"
    )


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ("{workload}/{nonsense}", "must be one of {workload}"),
        ("{workload}/{version}/x/*", "nothing fits the layout"),
    ],
)
def test_a_layout_that_means_nothing_is_one_line(tracker, folder, layout, said):
    done = tracker("ingest", folder, "--layout", layout)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1
