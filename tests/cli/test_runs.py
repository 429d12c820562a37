from __future__ import annotations

import csv
import io
import json

import pytest
from sqlalchemy import text

from tracker.store import open_store


@pytest.fixture
def listed(tracker, db):
    """The runs that `tracker runs` lists with these words, as JSON."""

    def call(*words):
        document = json.loads(tracker("runs", *words, "--format", "json", "--db", db).out)
        assert document["schema"] == 1
        return document["runs"]

    return call


def test_runs_are_found_by_version_workload_and_state(listed):
    everything = listed()
    assert {run["version"] for run in everything} == {"v01", "v08"}
    assert {run["version"] for run in listed("--version", "v08")} == {"v08"}
    assert listed("--workload", "small_gpt") == everything
    assert listed("--tag", "nightly") == []
    assert listed("--state", "excluded") == []
    assert len(listed("--limit", "1")) == 1


def test_list_for_people_ends_with_what_to_do_next(tracker, db, listed):
    lines = tracker("runs", "--db", db).plain.out.splitlines()
    assert lines[0].split()[:2] == ["run", "version"]
    assert len(lines) == len(listed()) + 4
    assert lines[-2:] == ["Next:", f"  tracker show run:{listed()[0]['run_id']}"]


def test_no_run_found_says_what_to_do(tracker, db):
    done = tracker("runs", "--state", "excluded", "--db", db)
    assert (done.code, done.out.count("\n")) == (0, 4)
    assert "tracker ingest" in done.out


def test_outdated_runs_are_listed_with_the_reason(tracker, db):
    assert tracker("runs", "--outdated", "--db", db).plain.out.splitlines() == ["no run is outdated."]
    with open_store(str(db)) as store, store.begin() as connection:
        connection.execute(text("UPDATE run SET rules_version = 1 WHERE id = 1"))
    lines = tracker("runs", "--outdated", "--db", db).plain.out.splitlines()
    assert lines[0].split() == ["run", "version", "workload", "why"]
    assert lines[1].startswith(
        "run:1  v01      small_gpt  names and categories are by rules 1, those of today by rules"
    )
    assert lines[2:] == ["1 run outdated.", "Next:", "  tracker ingest --again"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("--version", "v99"), "there is no version 'v99'; there are "),
        (("--workload", "other"), "there is no workload 'other'; there is "),
        (("--device", "nope", "--state", "all"), "there is no device 'nope'; there is cpu"),
    ],
)
def test_a_filter_that_names_nothing_is_an_error_with_what_there_is(tracker, db, asked, message):
    done = tracker("runs", *asked, "--db", db)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_tagged_run_is_found_by_its_tag_until_untagged(tracker, db, listed):
    assert tracker("runs", "tag", "1", "--tag", "image=a", "--db", db).out == "run 1 tagged\n"
    assert [run["run_id"] for run in listed("--tag", "image=a")] == [1]
    assert [run["run_id"] for run in listed("--tag", "image")] == [1]
    assert tracker("runs", "untag", "run:1", "--tag", "image", "--db", db).code == 0
    assert listed("--tag", "image") == []


def test_excluded_run_is_out_of_comparisons_until_restored(tracker, db, listed):
    before = tracker("diff", "v01", "v08", "--db", db, "--format", "json").out
    assert tracker("runs", "exclude", "1", "--reason", "noisy", "--db", db).code == 0
    assert [(run["run_id"], run["state_reason"]) for run in listed("--state", "excluded")] == [(1, "noisy")]
    without = json.loads(tracker("diff", "v01", "v08", "--db", db, "--format", "json").out)
    assert without["baseline"]["runs"] == json.loads(before)["baseline"]["runs"] - 1
    assert tracker("runs", "restore", "1", "--db", db).code == 0
    assert tracker("diff", "v01", "v08", "--db", db, "--format", "json").out == before


def test_edit_moves_a_run_to_another_version(tracker, db, listed):
    assert tracker("runs", "edit", "1", "--version", "v02", "--device", "NVIDIA H100", "--db", db).code == 0
    (moved,) = listed("--version", "v02")
    assert (moved["run_id"], moved["vendor"], moved["device"]) == (1, "NVIDIA", "H100")


def test_a_forgotten_commit_comes_in_for_all_runs_of_its_version(tracker, db, listed):
    first, *others = listed("--version", "v08")
    assert {run["commit"] for run in (first, *others)} == {None}
    number = str(first["run_id"])
    done = tracker("runs", "edit", number, "--commit", "4af1c2d0", "--db", db)
    assert (done.code, done.out) == (0, f"run {number} changed\n")
    assert {run["commit"] for run in listed("--version", "v08")} == {"4af1c2d0"}
    assert {run["commit"] for run in listed("--version", "v01")} == {None}
    assert tracker("runs", "edit", number, "--commit", "4af1c2d0", "--db", db).code == 0, "the same commit is no news"
    for commit, problem in (
        ("83fb3812", "version 'v08' is commit 4af1c2d0, not 83fb3812"),
        (" ", "the commit is empty"),
    ):
        refused = tracker("runs", "edit", number, "--commit", commit, "--db", db)
        assert refused.code == 2 and problem in refused.err
    assert {run["commit"] for run in listed("--version", "v08")} == {"4af1c2d0"}


def test_a_commit_goes_with_the_version_that_runs_move_to(tracker, db, listed):
    number = str(listed("--version", "v08")[0]["run_id"])
    assert tracker("runs", "edit", number, "--version", "v09", "--commit", "4af1c2d0", "--db", db).code == 0
    assert listed("--version", "v09")[0]["commit"] == "4af1c2d0"
    assert {run["commit"] for run in listed("--version", "v08")} <= {None}


def test_edit_keeps_the_vendor_of_a_device_that_is_named_without_one(tracker, db, listed):
    """As an ingest keeps the vendor that the files state. A run on a cpu has none, and a cpu gets none."""
    for named, told in (
        ("H100", ("", "H100")),
        ("NVIDIA H100", ("NVIDIA", "H100")),
        ("H200", ("NVIDIA", "H200")),
        ("Ascend 910B", ("Huawei", "Ascend910B")),
        ("cpu", ("", "cpu")),
    ):
        assert tracker("runs", "edit", "1", "--device", named, "--db", db).code == 0
        assert [(run["vendor"], run["device"]) for run in listed() if run["run_id"] == 1] == [told]
    empty = tracker("runs", "edit", "1", "--device", " ", "--db", db)
    assert (empty.code, empty.err) == (
        2,
        "tracker: the device is empty; give --device MODEL, for example --device 'NVIDIA H100'\n",
    )


def test_edit_corrects_the_configuration(tracker, db, listed):
    assert tracker("runs", "edit", "1", "2", "--config", "batch=32", "--config", "precision=bf16", "--db", db).code == 0
    assert {run["run_id"]: run["configuration"] for run in listed("--version", "v01")} == {
        1: "batch=32 precision=bf16",
        2: "batch=32 precision=bf16",
        3: "",
    }


def test_each_run_is_named_once_however_often_it_is_given(tracker, db):
    done = tracker("runs", "tag", "2", "run:1", "2", "--tag", "a=b", "--db", db)
    assert done.out == "runs 1,2 tagged\n"


def test_deleted_run_is_hidden_and_comes_back(tracker, db, listed):
    tracker("runs", "delete", "1", "--reason", "wrong machine", "--db", db)
    assert 1 not in [run["run_id"] for run in listed()]
    tracker("runs", "restore", "1", "--db", db)
    assert 1 in [run["run_id"] for run in listed()]


def test_purged_run_is_gone_and_its_file_may_come_in_again(tracker, db, listed, trace):
    """It comes in as v02, behind v08 whose new operators began a level: 98.64 ms are 20.3 % less than its 123.70."""
    tracker("runs", "delete", "1", "--reason", "wrong label", "--purge", "--db", db)
    assert 1 not in [run["run_id"] for run in listed("--state", "all")]
    done = tracker("ingest", trace["v01"], "--version", "v02", "--workload", "small_gpt", "--db", db)
    assert done.out.startswith("v02 (1 run): step -20.3 % against v08, SUSPECT: ", done.out.rindex("v02 ("))


def test_versions_are_listed_and_one_is_pinned(tracker, db):
    assert tracker("versions", "pin", "v01", "--db", db).code == 0
    document = json.loads(tracker("versions", "--format", "json", "--db", db).out)
    assert [(found["version"], found["pinned"]) for found in document["versions"]] == [("v01", True), ("v08", False)]
    assert tracker("diff", "pinned", "latest", "--db", db, "--only", "overall").code == 0
    assert tracker("versions", "unpin", "v01", "--db", db).code == 0
    assert tracker("diff", "pinned", "latest", "--db", db).code == 2


def test_database_says_what_it_holds_and_that_it_is_sound(tracker, db):
    info = tracker("db", "info", "--db", db)
    assert info.code == 0
    assert f"{db}  (named by --db)" in info.out
    assert tracker("db", "check", "--db", db).out == f"{db} is sound\n"
    assert "nothing to do" in tracker("db", "upgrade", "--db", db).out


def test_rows_without_a_run_are_found(tracker, db):
    import sqlite3

    with sqlite3.connect(db) as connection:
        connection.execute("DELETE FROM capture")
        connection.execute("UPDATE memory SET run_id = 99 WHERE run_id = 1")
    connection.close()
    done = tracker("db", "check", "--db", db)
    assert done.code == 2
    assert "rows of memory belong to no run" in done.err


def test_a_note_that_looks_like_a_formula_is_none_in_a_spreadsheet(tracker, db, listed):
    assert tracker("runs", "edit", "run:1", "--note", "=HYPERLINK(0)", "--db", db).code == 0
    done = tracker("runs", "--format", "csv", "--db", db)
    rows = {row["run_id"]: row for row in csv.DictReader(io.StringIO(done.out))}
    assert len(rows) == len(listed()) > 1
    assert [rows["1"]["note"], rows["2"]["note"]] == ["'=HYPERLINK(0)", ""]
    assert [row["ranks"] for row in rows.values()] == ["1"] * len(rows), "numbers stay numbers"
