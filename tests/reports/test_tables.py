"""The tables of a diff are read as they are: without pandas, which takes a sixth of the time of a command to import."""

import pickle
import subprocess
import sys

import pandas as pd
import pytest

from tests.regressions.made import runs
from tests.reports import builders
from tests.reports.builders import MS
from tracker import reports
from tracker.columns import Columns
from tracker.regressions.judgement import tracks_of, update
from tracker.reports.rows import names, records
from tracker.results import DIFF_COLUMNS
from tracker.results.chosen_tables import cut_tree
from tracker.store import open_store

RENDERING = """
import pickle, sys
from tracker import reports
diff = pickle.load(sys.stdin.buffer)
for format in sys.argv[1:]:
    reports.render(diff, format, limit=3)
    print(format, *(["imports pandas"] if "pandas" in sys.modules else []))
"""


@pytest.mark.parametrize("build", [builders.judged, builders.diff_with_tree, builders.shown])
def test_no_report_of_a_diff_or_a_run_imports_pandas(build):
    of_run = build is builders.shown
    unable = (["xlsx"] if of_run else []) + ([] if build is builders.diff_with_tree else ["speedscope"])
    formats = [format for format in reports.able("show" if of_run else "diff") if format not in unable]
    done = subprocess.run(
        [sys.executable, "-c", RENDERING, *formats], input=pickle.dumps(build()), capture_output=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.stdout.decode().splitlines() == formats, done.stderr.decode()


COMMANDS = """
import sys
from tracker.cli import main
database, *commands = sys.argv[1:]
for command in commands:
    format = () if "pin " in command else ("--format", "json")
    sys.argv = ["tracker", *command.split(), "--db", database, *format]
    try:
        main()
    except SystemExit:
        pass
print("pandas" in sys.modules, file=sys.stderr)
"""


def test_no_command_over_versions_imports_pandas(tmp_path):
    with open_store(str(tmp_path / "t.db")) as store:
        runs(store, "v1", count=6)
        runs(store, "v2", {"op07": 1.5}, start=6)
        runs(store, "v3", {"op07": 1.5}, start=9)
        update(store, tracks_of(store))
    commands = ["versions pin v1", "history op07 --against pinned", "log", "explain 1", "explain I-1", "calibrate v1"]
    commands += ["findings", "board", "diff v2", "diff v1 v2 v3"]
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, str(tmp_path / "t.db"), *commands], capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1] == "False"
    assert done.stdout.count('{\n  "schema": 1') == len(commands) - 1


def test_attributes_of_a_diff_are_frames_of_its_tables():
    diff = builders.diff_with_tree()
    assert [[*getattr(diff, name)] for name in diff.tables] == [[*DIFF_COLUMNS[name]] for name in DIFF_COLUMNS]
    assert diff.ops["name"].tolist() == diff.tables["ops"].listed("name")
    assert diff.tree is not None and len(diff.tree) == len(diff.tree_table)
    assert builders.diff().tree is None


def test_who_changes_a_frame_of_a_diff_does_not_change_the_diff():
    diff = builders.diff_with_tree()
    ops, tree = diff.ops, diff.tree
    ops.loc[0, "baseline_ns"] = tree.loc[0, "level"] = 7
    assert (ops["baseline_ns"][0], tree["level"][0]) == (7, 7)
    assert (diff.ops["baseline_ns"][0], diff.tree["level"][0]) == (20 * MS, 0)


FRAME = pd.DataFrame(
    {
        "name": pd.array(["mm", None, "add"], dtype="string"),
        "calls": pd.array([3, 2, None], dtype="Int64"),
        "mean": [float("inf"), float("nan"), 0.5],
        "moved": pd.array([True, None, False], dtype="boolean"),
        "nothing": pd.array([None] * 3, dtype="string"),
    }
)


def test_rows_of_columns_are_plain_values():
    rows = Columns.of_frame(FRAME)
    assert names(rows) == ["name", "calls", "mean", "moved", "nothing"]
    assert records(rows) == [
        {"name": "mm", "calls": 3, "mean": None, "moved": True, "nothing": None},
        {"name": None, "calls": 2, "mean": None, "moved": None, "nothing": None},
        {"name": "add", "calls": None, "mean": 0.5, "moved": False, "nothing": None},
    ]
    known = ["name", "calls", "mean", "moved"]
    assert [name for name in (*known, "nothing", "of no column") if rows.has(name)] == known


def test_a_tree_is_cut_below_each_row():
    #  0 - 1, 2, 3 - 4    the third row below a row goes, with all below it; so does the third tree
    tree = pd.DataFrame({"node": [0, 1, 2, 3, 4, 5, 6], "parent": [-1, 0, 0, 0, 3, -1, -1]}, dtype="Int64")
    cut = cut_tree(Columns.of_frame(tree), 2)
    assert [row["node"] for row in records(cut)] == [0, 1, 2, 5]
    assert len(cut_tree(Columns.of_frame(tree), None)) == 7


def test_trees_of_several_ranks_are_cut_one_by_one():
    tree = pd.DataFrame({"rank": [0, 1, 0, 1], "node": [0, 1, 2, 3], "parent": [-1] * 4}, dtype="Int64")
    assert [row["node"] for row in records(cut_tree(Columns.of_frame(tree), 1))] == [0, 1]
