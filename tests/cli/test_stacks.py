"""Stacks of export_stacks on the screens: shown, diffed and drawn as the calls of a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.readers.ascend_operators import write

STACKS = (Path(__file__).parents[1] / "data" / "torch_stacks" / "main.log").read_text(encoding="utf-8")


@pytest.fixture
def both(tmp_path) -> tuple[Path, Path]:
    """Two files: in the second one linear takes 900 us in place of 600, and all of model.py stands 5 lines lower."""
    before, after = tmp_path / "a.log", tmp_path / "b.log"
    before.write_text(STACKS, encoding="utf-8")
    moved = STACKS.replace("model.py(8)", "model.py(13)").replace("model.py(40)", "model.py(45)")
    after.write_text(moved.replace("linear> 400", "linear> 700"), encoding="utf-8")
    return before, after


def test_stacks_are_shown_as_a_tree_of_calls(tracker, both):
    done = tracker("show", both[0], "--by", "op")
    lines = [line for line in done.out.splitlines() if "us" in line]
    assert [line.split()[0] for line in lines][:4] == ["main", "train_step", "forward", "<built-in_function_linear>"]
    assert "800.00 us" in lines[0] and "100.0 %" in lines[0]


def test_diff_of_stacks_finds_the_function_that_got_slower(tracker, both):
    """Lines that moved are the same functions: only linear changed, by 300 us."""
    found = json.loads(tracker("diff", *both, "--format", "json").out)
    ops = {row["name"]: (row["status"], row["delta_ns"]) for row in found["ops"]}
    assert ops["<built-in_function_linear>"] == ("both", 300_000)
    assert {status for status, _ in ops.values()} == {"both"}
    assert sum(delta for _, delta in ops.values()) == 300_000


def test_stacks_are_drawn_as_icicle_and_for_speedscope(tracker, both, tmp_path):
    page, drawing = tmp_path / "d.html", tmp_path / "d.speedscope.json"
    assert tracker("diff", *both, "-o", page).code == 0
    assert "train_step (train.py)" in page.read_text(encoding="utf-8")
    assert tracker("diff", *both, "-o", drawing).code == 0
    profiles = json.loads(drawing.read_text(encoding="utf-8"))["profiles"]
    assert [profile["endValue"] for profile in profiles] == [800_000, 1_100_000]


def test_a_damaged_line_is_one_line_of_error(tracker, tmp_path):
    path = tmp_path / "a.log"
    path.write_text(f"{STACKS}train.py(30):_main;tra\n", encoding="utf-8")
    done = tracker("show", path)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"tracker: {path}: line 7: 'train.py(30):_main;tra' is no stack with its time; export the stacks again, or "
        "pass --skip-bad-rows\n"
    )


def test_stacks_beside_a_trace_are_another_source_of_its_run(tracker, both, tmp_path):
    """Each version is a capture of an NPU with its stacks: two runs in the history, and not four."""
    for number, stacks in enumerate(both, start=1):
        folder = tmp_path / f"v{number}"
        write(folder, run=number)
        stacks.rename(folder / "stacks.log")
        tracker("ingest", folder, "--version", f"v{number}", "--workload", "w")
    assert "Other sources of it: run:2 (stacks.log)." in " ".join(tracker("show", "v1", "--details").out.split())
    shown = json.loads(tracker("show", "v1", "--format", "json").out)
    assert shown["run"]["format"] == "ascend_text"
    assert shown["run"]["step_ns"] == 1_000_000
    assert "+300.00 us" in tracker("diff", "run:2", "run:4", "--by", "op").out
    assert "main (train.py)" not in tracker("diff", tmp_path / "v1", tmp_path / "v2", "--details").out
