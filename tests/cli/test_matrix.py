"""`tracker diff` with three and more sides, and with one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tracker as package

SAMPLES = [
    str(Path(package.__file__).parent / "samples" / version / f"run{number}.pt.trace.json.gz")
    for version, number in (("v01", 1), ("v01", 2), ("v08", 1))
]


def test_three_paths_make_a_matrix_without_a_database(tracker):
    result = tracker("diff", *SAMPLES, "--format", "json", "--match", "name")
    document = json.loads(result.out)
    assert [side["label"] for side in document["sides"]] == SAMPLES
    step = document["rows"][0]
    assert (step["name"], len(step["cells"])) == ("Step time", 3)
    mul = next(row for row in document["rows"] if row["name"] == "aten::mul")
    assert mul["cells"][2]["diff"] > 3  # the op that v08 calls with larger inputs
    assert (
        document["judged"]
        == [
            "One run each: no verdict on the time; a verdict needs 2 more runs of the baseline and 1 more run of the "
            "candidate."
        ]
        * 2
    )


def test_the_matrix_on_screen_fits_and_chooses_rows(tracker, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    text = tracker("diff", *SAMPLES, "--by", "module", "--top", "3").out
    assert "Modules by their largest movement" in text
    assert max(map(len, text.partition("\nNext:\n")[0].splitlines())) <= 100


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*SAMPLES, "--depth", "2"], "--depth compares two sides, and there are more"),
        ([*SAMPLES, "--only", "overall"], "--only compares two sides, and there are more"),
        ([*SAMPLES, "--by", "phase"], "no matrix 'phase'; choose from op, kernel, communication, module"),
        (
            [*SAMPLES[:2], "--by", "communication"],
            "--by communication needs three sides or more; use --only communication",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(tracker, words, message):
    result = tracker("diff", *words)
    assert result.code == 2
    assert message in result.err


def test_one_side_is_compared_with_the_runs_before_it(tracker, db):
    document = json.loads(tracker("diff", "v08", "--db", db, "--format", "json").out)
    assert (document["baseline"]["runs"], document["candidate"]["label"]) == (3, "v08")
    assert document["notes"][0] == "The baseline is the level that v08 was judged against: v01 (run 1-3)."
    assert document["judgement"]["judged"]
    assert any(row["verdict"] in ("REGRESSED", "ADDED") for row in document["ops"])
    refused = tracker("diff", "v01", "v08", "--db", db, "--baseline", "previous")
    assert (refused.code, "--baseline with two sides" in refused.err) == (2, True)
