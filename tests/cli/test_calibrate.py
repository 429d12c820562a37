from __future__ import annotations

import io
import json

import pytest
from openpyxl import load_workbook

from tests.regressions.made import runs
from tracker.regressions.judgement import tracks_of, update
from tracker.store import open_store


@pytest.fixture
def repeated(tmp_path):
    """Eight runs of one version, of which op07 is twice as slow in every third."""
    path = tmp_path / "repeated.db"
    with open_store(str(path)) as store:
        for number in range(8):
            runs(store, "base", {"op07": 2.0 if number % 3 == 0 else 1.0}, count=1, start=number)
        update(store, tracks_of(store))
    return path


def test_calibrate_says_how_small_a_change_is_found(tracker, repeated):
    lines = tracker("calibrate", "base", "--db", repeated).out.splitlines()
    assert lines[0].startswith("gpt, ")
    title = " ".join(lines[:2])  # it is too long for one line
    assert "8 runs of base; 5 against 3 runs, 1 window of neighbours, 56 splits" in title
    (headline,) = (line for line in lines if line.startswith("A slowdown of the step is found from "))
    assert lines.index(headline) <= 2
    (row,) = (line for line in lines if line.startswith("  op  "))
    assert row.split()[1:4] == ["40", "3", "%"]
    assert any(line.split()[:1] == ["step"] and line.count("%") == 4 for line in lines)
    noisiest = lines[lines.index("What varies most between runs") + 2]
    assert "op07" in noisiest


def test_suspects_of_the_newest_version_say_how_many_runs_decide(tracker, repeated):
    with open_store(str(repeated)) as store:
        runs(store, "next", {"op09": 1.5}, count=1, start=8)
        update(store, tracks_of(store))
    lines = tracker("calibrate", "base", "--db", repeated).out.splitlines()
    at = lines.index("Suspects of next, and how many more runs like its own decide them")
    suspect = next(line for line in lines[at:] if "op09" in line)
    assert suspect.split()[-1] == "2", "one run of a version needs the two that confirm it"


@pytest.mark.slow
def test_calibrate_goes_to_all_formats(tracker, repeated, tmp_path):
    words = ("calibrate", "base", "--db", repeated, "--splits", "5")
    found = json.loads(tracker(*words, "--format", "json").out)
    assert (found["splits"], found["baseline"], len(found["run_ids"])) == (5, 5, 8)
    assert {row["kind"] for row in found["proposals"]} == {"run", "op", "op_name", "kernel"}
    assert tracker(*words, "--format", "csv").out.startswith("section,kind,min_ratio,")
    assert tracker(*words, "--format", "markdown").out.startswith("### A slowdown of the step is found from ")
    assert tracker(*words, "-o", tmp_path / "noise.xlsx").code == 0
    book = load_workbook(io.BytesIO((tmp_path / "noise.xlsx").read_bytes()))
    # a sheet for each table that has rows: there is no suspect
    assert book.sheetnames == ["Summary", "False verdicts", "Proposals", "Smallest change found", "Noisy series"]
    head, first = (next(book["Proposals"].iter_rows(min_row=at, values_only=True)) for at in (1, 2))
    assert dict(zip(head, first, strict=True))["Used Ratio"] in (0.02, 0.05)


def test_what_is_no_repeat_is_refused_with_a_remedy(tracker, db):
    done = tracker("calibrate", "v01", "--db", db)
    assert (done.code, done.out) == (2, "")
    assert "needs 6 or more repeats of one version; these are 3; run the same version again" in done.err
    done = tracker("calibrate", "run:1", "--workload", "bert", "--db", db)
    assert done.err == "tracker: run 1 is of the workload small_gpt, not bert; leave out --workload\n"
