"""Damaged profiles of every format end in a run or one clear error, never in a traceback, never late.

scripts/fuzz_readers.py does the damage and searches for as long as it may; here it plays a few of its games, and what
it found stays found.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.readers.helpers import frame, only
from tracker import readers
from tracker.errors import SourceError
from tracker.intake import ingest
from tracker.readers import ReadOptions
from tracker.readers._ascend.communication import read_matrix
from tracker.store import health, open_store

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"


@pytest.fixture(scope="module")
def fuzz():
    """scripts/fuzz_readers.py as a module."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import fuzz_readers
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return fuzz_readers


def play_some(fuzz, name, games):
    chosen = fuzz.profiles(format=name)
    assert chosen
    with open_store("sqlite://") as store:

        @settings(max_examples=games)
        @given(st.integers(0, 2**32))
        def play(seed):
            with tempfile.TemporaryDirectory() as folder:
                assert fuzz.play(chosen[seed % len(chosen)], str(seed), store, Path(folder)) in ("run", "error")

        play()


@pytest.mark.parametrize("name", readers.NAMES)
def test_damaged_profile_is_a_run_or_an_error(fuzz, name):
    play_some(fuzz, name, 25)


@pytest.mark.slow
@pytest.mark.parametrize("name", readers.NAMES)
def test_many_damaged_profiles_are_runs_or_errors(fuzz, name):
    play_some(fuzz, name, 200)


def test_damaged_trace_is_read_alike_by_several_threads(fuzz):
    chosen = fuzz.profiles(format="torch_profiler")

    @settings(max_examples=15)
    @given(st.integers(0, 2**32))
    def play(seed):
        with tempfile.TemporaryDirectory() as folder:
            assert fuzz.play_in_parts(chosen[seed % len(chosen)], str(seed), Path(folder)) in ("run", "error")

    play()


def test_threads_that_read_something_else_are_a_finding(fuzz, tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz, "_read_in_parts", lambda _path, threads, *_more: ([threads], ()))
    profile = fuzz.profiles(format="torch_profiler")[0]
    with pytest.raises(AssertionError, match="otherwise than one does"):
        fuzz.play_in_parts(profile, "0", tmp_path)


def test_both_ends_are_met_and_a_seed_plays_the_same_game_again(fuzz, tmp_path):
    (profile,) = fuzz.profiles(DATA / "paddle_summary" / "cpu.txt")
    with open_store("sqlite://") as store:
        ends = []
        for game in ("first", "second"):
            for seed in range(40):
                folder = tmp_path / game / str(seed)
                folder.mkdir(parents=True)
                ends.append(fuzz.play(profile, str(seed), store, folder))
    assert set(ends) == {"run", "error"}
    assert [path.read_bytes() for path in sorted(tmp_path.glob("first/*/*"))] == [
        path.read_bytes() for path in sorted(tmp_path.glob("second/*/*"))
    ]


def test_atheris_that_is_not_installed_is_one_line(tmp_path):
    (tmp_path / "atheris.py").write_text("raise ImportError")
    words = [sys.executable, str(ROOT / "scripts" / "fuzz_readers.py"), "--atheris"]
    done = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "--atheris needs atheris: pip install atheris\n")


def test_what_takes_too_long_is_a_finding(fuzz):
    with pytest.raises(fuzz.TooSlow), fuzz.within(0.01):
        while True:
            pass


def test_script_keeps_what_it_finds(fuzz, tmp_path, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(fuzz, "take", fail)
    monkeypatch.setattr(
        sys, "argv", ["fuzz", "--seconds", "0.01", "--format", "training_log", "--keep", str(tmp_path / "found")]
    )
    with pytest.raises(SystemExit) as ended:
        fuzz.main()
    assert ended.value.code == 1
    kept = sorted((tmp_path / "found").iterdir())[0]
    assert "ZeroDivisionError" in (kept / "traceback.txt").read_text()
    assert len(list(kept.iterdir())) == 2


def test_script_runs_as_its_docstring_says(tmp_path):
    words = [sys.executable, "scripts/fuzz_readers.py", "--seconds", "0.2", "--format", "pack", "--keep", tmp_path]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 findings" in done.stdout


# What the search found, one story each.

NSYS = """
 ** {title}:

 Time (%)  Total Time (ns)  {count}  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  StdDev (ns)  Name
 --------  ---------------  ---------  --------  --------  --------  --------  -----------  ----
"""


def nsys_stats(folder, rows, title="CUDA GPU Kernel Summary (cuda_gpu_kern_sum)", count="Instances"):
    path = folder / "stats.txt"
    path.write_text(NSYS.format(title=title, count=count) + "".join(f" {row}\n" for row in rows))
    return path


def error_of(format, path):
    with pytest.raises(SourceError) as caught:
        readers.load(format).read(path, ReadOptions())
    assert caught.value.remedy
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize("number", ["9223372036854775808", "-5", ",", "9" * 400])
def test_number_of_nsys_stats_that_is_none_is_refused_with_its_line(tmp_path, number):
    path = nsys_stats(tmp_path, [f"50.0  {number}  3  1.0  1.0  1  1  0.0  gemm"])
    assert error_of("nsys_stats", path).startswith("line 6: Total Time (ns) is ")


def test_kernels_that_nsys_cut_to_the_same_name_are_one(tmp_path):
    rows = [
        "50.0  600  3  200.0  200.0  100  300  9.0  void gemm<...",
        "50.0  60  2  30.0  30.0  20  40  9.0  void gemm<...",
    ]
    capture = only(readers.load("nsys_stats").read(nsys_stats(tmp_path, rows), ReadOptions()))
    kernels = frame(capture.rows.tables["kernel"])
    assert [(row["calls"], row["total_ns"], row["min_ns"], row["max_ns"]) for row in kernels] == [(5, 660, 20, 300)]


def test_calls_of_two_versions_of_one_function_are_one(tmp_path):
    rows = [
        f"50.0  {total}  1  1.0  1.0  {total}  {total}  0.0  cudaLaunchKernel_v{version}"
        for version, total in ((7000, 5), (11060, 7))
    ]
    path = nsys_stats(tmp_path, rows, "CUDA API Summary (cuda_api_sum)", "Num Calls")
    (call,) = frame(only(readers.load("nsys_stats").read(path, ReadOptions())).rows.tables["api"])
    assert (call["name"], call["calls"], call["total_ns"], call["min_ns"], call["max_ns"]) == (
        "cudaLaunchKernel", 2, 12, 5, 7,
    )  # fmt: skip


def test_overview_row_without_a_time_is_refused_with_its_line(tmp_path):
    path = tmp_path / "cpu.txt"
    path.write_text(
        (DATA / "paddle_summary" / "cpu.txt").read_text().replace("  Operator   8      0.016", "  Operator   8 0.016")
    )
    assert "'Overview Summary'" in error_of("paddle_summary", path)


@pytest.mark.parametrize("name", ["info.json.1", "start_info.1"])
def test_json_beside_a_capture_that_is_nested_too_deeply_is_refused(tmp_path, name):
    folder = tmp_path / "PROF_000001_20230818142704322_BBBB"
    shutil.copytree(DATA / "cann" / folder.name, folder)
    (folder / "device_1" / name).write_text('{"a": ' + "[" * 10_000 + "]" * 10_000 + "}")
    assert "nested too deeply" in error_of("cann", folder)


@pytest.mark.parametrize("value", [1e300, 1e18, -1e18])
@pytest.mark.parametrize("title", ["Elapse Time(ms)", "Start Timestamp(us)"])
def test_collective_with_an_impossible_time_is_refused_by_name(tmp_path, title, value):
    folder = tmp_path / "worker-1_4711_20250109073443012_ascend_pt"
    shutil.copytree(DATA / "ascend_text" / folder.name, folder)
    path = folder / "ASCEND_PROFILER_OUTPUT" / "communication.json"
    content = json.loads(path.read_text())

    def spoil(part):
        for key, inner in part.items():
            if isinstance(inner, dict):
                spoil(inner)
            elif key == title:
                part[key] = value

    spoil(content)
    path.write_text(json.dumps(content))
    with pytest.raises(
        SourceError, match=r"communication.json: hcom_\w+@\d+: not a record of a collective: .*range of times"
    ):
        readers.load("ascend_text").read(folder, ReadOptions())


@pytest.mark.parametrize("transport", [[], 3, None])
def test_link_of_a_matrix_whose_transport_is_no_word_is_refused(tmp_path, transport):
    path = tmp_path / "communication_matrix.json"
    link = {"Transport Type": transport, "Transit Size(MB)": 1.0, "Transit Time(ms)": 1.0}
    path.write_text(json.dumps({"step3": {"collective": {"allreduce-total@1": {"0-1": link}}}}))
    with pytest.raises(SourceError, match=r"allreduce-total@1: not a record of a link: Transport Type is no text"):
        read_matrix(path, ReadOptions())


def test_database_whose_schema_is_no_text_is_refused(tmp_path):
    content = (DATA / "nsys_sqlite" / "one_step.sqlite").read_bytes()
    path = tmp_path / "report.sqlite"
    path.write_bytes(content.replace(b"CREATE TABLE", b"CREATE \xffABLE", 1))
    assert error_of("nsys_sqlite", path).startswith("table sqlite_master: ")


def test_metadata_of_a_database_that_is_nested_too_deeply_is_a_plain_word(tmp_path):
    folder = tmp_path / "rank4_ascend_pt"
    shutil.copytree(DATA / "ascend_db" / folder.name, folder)
    path = next(folder.rglob("ascend_pytorch*.db"))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE META_DATA SET value = ?", ("[" * 100_000,))
    connection.close()
    assert readers.load("ascend_db").read(folder, ReadOptions()).captures


def test_sum_beyond_all_numbers_is_refused(tmp_path, monkeypatch):
    def overflow(*_):
        return (2**63).to_bytes(8, signed=True)

    monkeypatch.setattr(readers.load("nsys_stats"), "read", overflow)
    found = readers.Found(tmp_path, "nsys_stats")
    with pytest.raises(SourceError, match="a number is beyond 64 bits; export the profile again"):
        readers.read(found)


def test_iteration_without_arguments_is_no_crash(tmp_path):
    folder = tmp_path / "PROF_000001_20230818142704322_BBBB"
    shutil.copytree(DATA / "cann" / folder.name, folder)
    path = folder / "device_0" / "timeline" / "step_trace_0_2_1.json"
    events = json.loads(path.read_text())
    for event in events:
        event.pop("args", None)
    path.write_text(json.dumps(events))
    assert readers.load("cann").read(folder, ReadOptions()).captures


LOG = """[{date} 00:00:01,000] epoch: 0, iter: 1, batch_cost: 0.5 s ips: 64.0 images/s
[{date} 00:00:02,000] epoch: 0, iter: 2, batch_cost: {time} s ips: 64.0 images/s
"""


@pytest.mark.parametrize(("date", "time"), [("9999-12-31", "0.5"), ("2022-11-30", "999999999999")])
def test_date_or_time_of_a_log_that_cannot_be_is_not_taken(memory_store, tmp_path, date, time):
    path = tmp_path / "train.log"
    path.write_text(LOG.format(date=date, time=time))
    (result,) = ingest(memory_store, [path], version="v1", workload="toy")
    assert result.created
    assert health.check(memory_store) == []
