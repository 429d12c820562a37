"""`tracker cluster` on four ranks of which rank 3 waits 20 ms for its data in each step (tests/data/cluster)."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import openpyxl
import pytest

JOB = Path(__file__).parents[1] / "data" / "cluster"


@pytest.fixture
def ingested(tracker, tmp_path):
    db = tmp_path / "job.db"
    assert tracker("ingest", JOB, "--version", "v1", "--workload", "ddp", "--db", db).code == 0
    return db


def test_the_first_screen_names_who_holds_the_job_back_and_fits(tracker, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    done = tracker("cluster", JOB)
    lines = done.out.splitlines()
    assert (done.code, done.err, len(lines) <= 40, max(map(len, lines[:-1])) <= 100) == (0, "", True, True)
    assert "rank 3 holds the job back by 16.01 ms a step: its CPU side takes longer in data" in done.plain.out
    assert any(line.split()[:2] == ["3", "vm"] or line.split()[0] == "3" for line in lines if line.strip())


def test_the_database_says_what_the_files_say(tracker, ingested):
    """Whichever way the ranks come."""
    keys = ("headline", "verdict", "ranks", "stages", "groups", "links", "operators")
    of_files, stored = (
        json.loads(tracker("cluster", *words, "--format", "json").out) for words in ((JOB,), ("v1", "--db", ingested))
    )
    assert [of_files[key] for key in keys] == [stored[key] for key in keys]
    assert stored["run"]["run_id"] == 1
    ranks = {row["rank"]: row for row in stored["ranks"]}
    assert (ranks[3]["verdict"], ranks[3]["cause"], ranks[3]["place"], ranks[3]["slowest_steps"]) == (
        "SLOW",
        "host",
        "data",
        6,
    )
    assert [ranks[rank]["verdict"] for rank in range(3)] == [None] * 3


def test_ranks_that_come_later_and_backwards_give_the_same_rows(tracker, ingested, tmp_path):
    db = tmp_path / "late.db"
    for rank in (3, 1, 2, 0):
        path = JOB / f"rank{rank}.pt.trace.json.gz"
        words = ("--version", "v1", "--workload", "ddp", "--expect-ranks", "4", "--db", db)
        assert tracker("ingest", path, *words).code == 0
    first, second = (
        json.loads(tracker("cluster", "v1", "--db", one, "--format", "json").out) for one in (ingested, db)
    )
    assert [first[key] for key in ("ranks", "steps", "groups", "calls", "operators")] == [
        second[key] for key in ("ranks", "steps", "groups", "calls", "operators")
    ]


def test_two_runs_are_compared(tracker, ingested):
    done = tracker("cluster", JOB, "v1", "--db", ingested)
    assert "Changes from the first run to the second" in done.out
    changes = json.loads(tracker("cluster", JOB, "v1", "--db", ingested, "--format", "json").out)["changes"]
    assert changes and all(row["delta"] in (0, None) for row in changes)


def test_the_workbook_and_csv_have_every_section(tracker, tmp_path):
    path = tmp_path / "cluster.xlsx"
    assert tracker("cluster", JOB, "-o", path).code == 0
    book = openpyxl.load_workbook(path)
    assert book.sheetnames[:3] == ["Summary", "StepTraceTime", "Ranks"]
    assert {"Stages", "CommunicationTime", "Groups", "Operators", "Balance"} <= {*book.sheetnames}
    head, first, *_ = book["StepTraceTime"].iter_rows(values_only=True)
    assert head[5:7] == ("Communication(Not Overlapped)(us)", "Overlapped(us)")
    assert (first[:3], round(first[3], 1)) == (("rank", 0, None), 37055.8)
    text = tracker("cluster", JOB, "--only", "ranks", "--format", "csv").out
    assert [row["verdict"] for row in csv.DictReader(io.StringIO(text))] == ["SLOW", "", "", ""]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("v9",), "v9"),
        ((JOB, JOB, JOB), "3 runs; name one run, or two to compare them"),
        ((JOB, "--only", "kernels"), "--only 'kernels' must be one of: ranks, steps"),
        ((JOB, "--step", "99"), "99"),
        ((JOB, "--microbatches", "0"), "--microbatches"),
    ],
)
def test_bad_input_is_one_line(tracker, ingested, words, problem):
    done = tracker("cluster", *words, *(() if words[0] is JOB else ("--db", ingested)))
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert problem in done.err
