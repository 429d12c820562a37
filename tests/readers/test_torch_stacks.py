"""Stacks of export_stacks: the time of each line stands at its frames, and adds up to the outermost one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.readers.helpers import frame, only
from tracker import readers
from tracker.errors import SourceError
from tracker.profile import Profile
from tracker.readers import ReadOptions

DATA = Path(__file__).parents[1] / "data" / "torch_stacks"
STACKS = (DATA / "main.log").read_text(encoding="utf-8")


def written(folder: Path, text: str, name: str = "stacks.log") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read(path: Path, **options: Any) -> Profile:
    return readers.load("torch_stacks").read(path, ReadOptions(**options))


def rows_of(profile: Profile, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table with the name of their operator, without what they do not say."""
    tables = only(profile).rows.tables
    names = tables["op_key"]["name"]
    return [{**row, "name": names[row["op_key"]]} for row in frame(tables[table])]


def test_each_frame_has_its_own_time_and_that_of_all_it_calls():
    """main.log by hand, in us: 600 in linear, 100 in relu, 50, 30 and 20 in train.py itself; 800 together."""
    found = {row["name"]: (row["host_self_ns"], row["host_total_ns"]) for row in rows_of(read(DATA / "main.log"), "op")}
    assert found == {
        "main (train.py)": (30_000, 800_000),
        "train_step (train.py)": (50_000, 750_000),
        "forward (model.py)": (0, 600_000),
        "<built-in_function_linear>": (600_000, 600_000),
        "forward (model.py) #2": (0, 100_000),
        "<built-in_method_relu_of_type_object>": (100_000, 100_000),
        # it calls itself: the inner call is a part of the outer one
        "load (train.py)": (20_000, 20_000),
    }
    assert only(read(DATA / "main.log")).rows.overall.compute_ns == 800_000


def test_frames_stand_in_the_frames_that_call_them():
    tree = rows_of(read(DATA / "main.log"), "op_tree")
    paths: list[str] = []
    for row in tree:
        above = f"{paths[row['parent']]} > " if row["parent"] >= 0 else ""
        paths.append(above + row["name"].partition(" (")[0])
    assert paths[:4] == [
        "main", "main > train_step", "main > train_step > forward", "main > train_step > forward > "
        "<built-in_function_linear>",
    ]  # fmt: skip
    assert paths[-2:] == ["main > load", "main > load > load"]
    assert [row["host_total_ns"] for row in tree if row["name"].startswith("load")] == [20_000, 20_000]


def test_stacks_of_torch_npu_have_blanks_and_no_end_of_their_last_line():
    found = {row["name"]: row["host_self_ns"] for row in rows_of(read(DATA / "npu.log"), "op")}
    assert found["forward (/home/me/model.py)"] == 300_000
    assert found["forward (/home/me/model.py) #2"] == 40_000
    assert rows_of(read(DATA / "npu.log"), "op")[0]["raw_name"] == "/home/me/train.py(30): main"


def test_frame_without_a_name_is_a_frame(tmp_path):
    found = rows_of(read(written(tmp_path, "train.py(30):_main;;train.py(4):_step 7\n")), "op")
    assert [row["name"] for row in found] == ["main (train.py)", "(no name)", "step (train.py)"]


@pytest.mark.parametrize(
    ("name", "metric"), [("stacks_npu.log", "npu"), ("self_cuda_time_total.txt", "cuda"), ("stacks.log", None)]
)
def test_name_of_the_file_says_of_what_its_times_are(tmp_path, name, metric):
    profile = read(written(tmp_path, STACKS, name))
    assert only(profile).configuration.get("stacks") == metric
    assert any("says of what its times are" in warning for warning in profile.warnings) == (metric is None)


def test_stacks_are_known_by_their_lines_whatever_the_name(tmp_path):
    assert readers.claim(written(tmp_path, STACKS, "a.txt")) == "torch_stacks"
    assert readers.claim(written(tmp_path, "a.py(1):_f " + "7\n", "b")) == "torch_stacks"
    # one line beyond the first 4 KiB
    long = ";".join(f"net.py({number}):_forward" for number in range(400))
    assert readers.claim(written(tmp_path, f"{long} 5\n", "long.log")) == "torch_stacks"


@pytest.mark.parametrize("text", ["main;work 5\n", "loss 5\n" + STACKS, "", "a.py(1):_f\n"])
def test_other_texts_are_no_stacks(tmp_path, text):
    with pytest.raises(SourceError):
        readers.claim(written(tmp_path, text))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("train.py(30):_main;train.py(12)", "line 7: 'train.py(30):_main;train.py(12)' is no stack with its time"),
        ("train.py(30):_main -5", "line 7: 'train.py(30):_main -5' is no stack with its time"),
        (f"train.py(30):_main {1 << 40}", "line 7: .* has a time of more than twelve days"),
    ],
)
def test_line_that_is_no_stack_is_named(tmp_path, line, problem):
    path = written(tmp_path, f"{STACKS}{line}\n")
    with pytest.raises(SourceError, match=problem.replace("(", r"\(").replace(")", r"\)")):
        read(path)
    profile = read(path, skip_bad_rows=True)
    assert only(profile).rows.overall.compute_ns == 800_000
    assert profile.warnings[-1] == "left out: 1 line that could not be read"
