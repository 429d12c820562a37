from __future__ import annotations

import io
import json

import pytest
from openpyxl import load_workbook

from tests.regressions.made import runs
from tracker.regressions.judgement import lines_of, update
from tracker.store import open_store


@pytest.fixture
def repeated(tmp_path):
    """Eight runs of one version, of which op07 is twice as slow in every third."""
    path = tmp_path / "repeated.db"
    with open_store(str(path)) as store:
        for number in range(8):
            runs(store, "base", {"op07": 2.0 if number % 3 == 0 else 1.0}, count=1, start=number)
        update(store, lines_of(store))
    return path


def test_calibrate_says_how_small_a_change_can_be_told(tracker, repeated):
    lines = tracker("calibrate", "base", "--db", repeated).out.splitlines()
    assert lines[0].startswith("gpt, ")
    assert lines[0].endswith(": 8 runs of base")
    assert lines[1] == "5 against 3 runs: 1 window of neighbouring runs, 56 splits of all"
    (row,) = (line for line in lines if line.startswith("  op  "))
    assert row.split()[1:4] == ["40", "3", "%"]
    assert any("op07" in line for line in lines)
    assert "at most one false verdict per comparison" in lines[-1]


@pytest.mark.slow
def test_calibrate_goes_to_all_formats(tracker, repeated, tmp_path):
    words = ("calibrate", "base", "--db", repeated, "--splits", "5")
    found = json.loads(tracker(*words, "--format", "json").out)
    assert (found["splits"], found["baseline"], len(found["run_ids"])) == (5, 5, 8)
    assert {row["kind"] for row in found["proposals"]} == {"run", "op", "op_name", "kernel"}
    assert tracker(*words, "--format", "csv").out.startswith("section,kind,min_ratio,")
    assert tracker(*words, "--format", "markdown").out.startswith("### On ")
    assert tracker(*words, "-o", tmp_path / "noise.xlsx").code == 0
    book = load_workbook(io.BytesIO((tmp_path / "noise.xlsx").read_bytes()))
    assert book.sheetnames == ["False findings", "Proposals", "Noisy series", "Recall"]
    head, first = (next(book["Proposals"].iter_rows(min_row=at, values_only=True)) for at in (1, 2))
    assert dict(zip(head, first, strict=True))["Used ratio"] in (0.02, 0.05)


def test_too_few_repeats_are_refused_with_a_remedy(tracker, db):
    done = tracker("calibrate", "v01", "--db", db)
    assert (done.code, done.out) == (2, "")
    assert "needs 6 or more repeats of one version; these are 3; run the same version again" in done.err
