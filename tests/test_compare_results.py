"""Two checkouts are compared by what they print: what differs is found, what both refuse does not count as equal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROW = {"name": "aten::mm", "calls": 3, "baseline_ns": 1000, "change": 0.25, "verdict": "REGRESSED"}
DIFF = {"operators": [ROW], "notes": []}

# A program of the name of ours, which prints what lies beside it, and refuses files called bad.
PROGRAM = """
import json, os, sys
def run():
    command, path = sys.argv[1], sys.argv[-1]  # the file of --output is the last word
    if "--output" in sys.argv:
        from openpyxl import Workbook
        book = Workbook()
        answer = open(os.path.join(os.path.dirname(__file__), "answer.json")).read()
        book.active.append(list(json.loads(answer)["operators"][0].values()))
        book.save(path)
        os._exit(0)
    path = next(word for word in [*sys.argv[2:], ""] if not word.startswith("-"))
    if path.endswith("crash.json"):
        print("ZeroDivisionError", file=sys.stderr, flush=True)
        os._exit(1)
    if os.path.isdir(path) or path.endswith("bad.json"):
        print("tracker: " + os.path.basename(path) + ": no profile", file=sys.stderr, flush=True)
        os._exit(2)
    print(open(os.path.join(os.path.dirname(__file__), "answer.json")).read(), flush=True)
    os._exit(0)
"""


def make_checkout(folder: Path, answer: object) -> Path:
    """A checkout whose program prints `answer` to every question."""
    package = folder / "tracker"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(PROGRAM)
    (package / "answer.json").write_text(json.dumps(answer))
    return folder


def compare(tmp_path: Path, old: Path, new: Path, *words: str) -> subprocess.CompletedProcess[str]:
    data = tmp_path / "data"
    if not data.exists():
        (data / "night").mkdir(parents=True)
        for name in ("bad.json", "v1.json", "v2.json"):
            (data / "night" / name).write_text("{}")
    script = [sys.executable, str(ROOT / "scripts" / "compare_results.py"), "--data", str(data)]
    return subprocess.run([*script, *words, str(old), str(new)], capture_output=True, text=True, check=False)


def test_refusals_by_both_are_no_equals(tmp_path):
    done = compare(tmp_path, make_checkout(tmp_path / "old", DIFF), make_checkout(tmp_path / "new", DIFF))
    # three files: show, cluster, advise of each; diff, advise, cluster of two pairs; JSON and text. One is refused.
    assert done.stdout.splitlines()[-1] == "18 equal, 12 refused by both, 0 different"
    assert done.returncode == 0
    assert "show night/bad.json --format json: refused by both: tracker: bad.json: no profile" in done.stdout


def test_crash_of_both_is_neither_equal_nor_refused(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "crash.json").write_text("{}")
    done = compare(
        tmp_path, make_checkout(tmp_path / "old", DIFF), make_checkout(tmp_path / "new", DIFF), "--only", "show"
    )
    assert done.stdout.splitlines()[-2:] == [
        "    both end with 1: ZeroDivisionError",
        "0 equal, 0 refused by both, 2 different",
    ]
    assert done.returncode == 1


def test_each_changed_value_is_found(tmp_path):
    rows = [
        {**ROW, "baseline_ns": 1001},
        {**ROW, "verdict": "UNCHANGED"},
        {**ROW, "name": "aten::bmm"},
        {**ROW, "change": 0.2500001},
        {**ROW, "change": 0.25 + 1e-16},  # rounding, no difference
        {**ROW, "calls": 3.0},
    ]
    old = make_checkout(tmp_path / "old", {"operators": [ROW] * len(rows), "notes": []})
    new = make_checkout(tmp_path / "new", {"operators": rows, "notes": ["slower"]})
    done = compare(tmp_path, old, new, "--only", "diff night/v1.json night/v2.json --format json")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "diff night/v1.json night/v2.json --format json: 6 differences",
        "    .operators[0].baseline_ns: 1000 -> 1001",
        '    .operators[1].verdict: "REGRESSED" -> "UNCHANGED"',
        '    .operators[2].name: "aten::mm" -> "aten::bmm"',
        "    .operators[3].change: 0.25 -> 0.2500001",
        "    .operators[5].calls: 3 -> 3.0",
        "    .notes: 0 rows -> 1 rows",
        "0 equal, 0 refused by both, 1 different",
    ]


def test_nothing_to_compare_is_an_error(tmp_path):
    old, new = make_checkout(tmp_path / "old", DIFF), make_checkout(tmp_path / "new", DIFF)
    assert compare(tmp_path, old, new, "--only", "no such command").returncode == 2


def test_workbooks_are_compared_cell_by_cell(tmp_path):
    old = make_checkout(tmp_path / "old", DIFF)
    new = make_checkout(tmp_path / "new", {"operators": [{**ROW, "baseline_ns": 1001}], "notes": []})
    done = compare(tmp_path, old, new, "--only", "show night/v1.json", "--formats", "xlsx")
    assert done.returncode == 1
    title, cell, counts = done.stdout.splitlines()
    assert title == "show night/v1.json --format xlsx: 1 differences"
    assert cell.startswith("    workbook.Sheet!C1: ")  # the third value of a row
    assert counts == "0 equal, 0 refused by both, 1 different"


def test_stores_are_filled_by_both_and_compared_by_version(tmp_path):
    old = make_checkout(tmp_path / "old", {**DIFF, "findings": []})
    new = make_checkout(tmp_path / "new", {"operators": [{**ROW, "calls": 4}], "notes": [], "findings": []})
    words = ["--store", "night/v*", "--only", "diff v1.json v2.json --format json"]
    done = compare(tmp_path, old, new, *words)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "diff v1.json v2.json --format json: 1 differences",
        "    .operators[0].calls: 3 -> 4",
        "0 equal, 0 refused by both, 1 different",
    ]
