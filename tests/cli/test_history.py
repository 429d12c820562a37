from __future__ import annotations

import io
import json
import re
import subprocess

import pytest
from openpyxl import load_workbook

from tests.cli.ending import ending
from tests.factories import save
from tracker.regressions.judgement import tracks_of, update
from tracker.store import open_store


def test_one_series_has_a_line_per_version_and_a_headline(tracker, db):
    lines = tracker("history", "aten::mul", "--db", db).out.splitlines()
    assert lines[0] == "aten::mul (op, all shapes, host self time) of small_gpt, cpu: 2 versions, 6 runs"
    sentence, _, verdict = lines[1].rpartition("  ")
    assert sentence.rstrip() == "v08 is at 16.09 ms: +841.4 % against the runs before it; a lasting change with v08"
    assert verdict == "REGRESSED"
    assert lines[3] == "  ▁█  1.71 ms to 16.09 ms"
    assert [line.split() for line in lines[5:7]] == [
        ["v01", "1.71", "ms", "-", "-"],
        ["v08", "16.09", "ms", "+841.4", "%", "+841.4", "%", "REGRESSED"],
    ]
    assert lines[7].startswith("    calls 82 -> 118")
    assert lines[lines.index("Next:") + 1].startswith("  tracker history ")


def test_removed_op_is_a_gap(tracker, db):
    lines = tracker("history", "aten::gelu", "--db", db).out.splitlines()
    assert lines[1].startswith("v08 has no aten::gelu; v01 was at ")
    row = next(line for line in lines if line.split()[:1] == ["v08"] and "has no" not in line)
    assert row.split() == ["v08", "-", "-", "REMOVED"]


def test_series_of_one_name_show_where_they_differ(tracker, tmp_path):
    """step of two batch sizes: the title has what both share, each row has its own."""
    for batch in (32, 64):
        log = tmp_path / f"net_bs{batch}_fp16.txt"
        log.write_text(f"iter 10: reader_cost: 0.001 s batch_cost: 0.0{batch} s ips: 1000.0 images/s\n")
        tracker("ingest", log, "--version", "v1", "--workload", "net", "--db", tmp_path / "t.db")
    lines = tracker("history", "step", "--db", tmp_path / "t.db").out.splitlines()
    assert lines[0] == "net, unknown, precision=fp16 profiler=off: 2 series, 1 version"
    assert lines[3].split() == ["batch"]
    assert lines[4].split()[:3] == ["series", "name", "size"]
    assert [line.split()[1:5] for line in lines[5:7]] == [["step", size, "▁", f"{size}.00"] for size in ("64", "32")]


def test_history_without_a_key_is_the_step(tracker, db):
    assert tracker("history", "--db", db).out == tracker("history", "step", "--db", db).out


def test_newest_versions_alone_are_still_compared_with_those_before(tracker, db):
    lines = tracker("history", "aten::mul", "--last", "1", "--db", db).out.splitlines()
    assert lines[0].endswith(": v08 to v08, 1 of 2 versions")
    row = next(line for line in lines if line.split()[:1] == ["v08"] and "REGRESSED" in line and "is at" not in line)
    assert row.split() == ["v08", "16.09", "ms", "+841.4", "%", "+841.4", "%", "REGRESSED"]
    assert any(line.endswith("--last 1 --details") for line in lines)


def test_history_goes_to_all_formats(tracker, db, tmp_path):
    found = json.loads(tracker("history", "step", "--db", db, "--format", "json").out)
    assert [point["version"] for point in found["points"]] == ["v01", "v08"]
    assert found["series"][0]["unit"] == "ns"
    assert tracker("history", "step", "--db", db, "--format", "csv").out.startswith("series_id,workload,")
    assert tracker("history", "step", "--db", db, "--format", "markdown").out.startswith("### v08 is at 123.70 ms: ")
    done = tracker("history", "aten::*gelu*", "--db", db, "-o", tmp_path / "gelu.xlsx")
    assert done.err == f"written: {tmp_path / 'gelu.xlsx'}\n"
    book = load_workbook(io.BytesIO((tmp_path / "gelu.xlsx").read_bytes()))
    assert book.sheetnames[-3:] == ["Series", "Points", "Runs"]
    charted = book[book.sheetnames[1]]
    assert [cell.value for cell in charted[1]][:4] == [
        "Version", "Mean of the runs (ms)", "Smallest run (ms)", "Largest run (ms)",
    ]  # fmt: skip
    assert len(charted._charts) == len(book["Summary"]._charts) == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("nosuch",), "no series is called 'nosuch'"),
        (("--top", "3"), "no version is pinned"),
        (("step", "--device", "H100"), "there is no device 'H100'; there is cpu"),
        (("*", "--kind", "nosuch"), "--kind 'nosuch' must be one of"),
    ],
)
def test_a_question_without_an_answer_is_one_line(tracker, db, words, problem):
    done = tracker("history", *words, "--db", db)
    assert (done.code, done.out) == (2, "")
    assert problem in done.err
    assert done.err.count("\n") == 1


def test_top_needs_a_pin_and_lists_what_changed_most(tracker, db):
    tracker("versions", "pin", "v01", "--db", db)
    lines = tracker("history", "--top", "5", "--db", db).out.splitlines()
    assert lines[0] == "small_gpt, cpu: the 5 series that changed most since v01, by their part of the step, 2 versions"
    names = [re.split("  +", line.strip())[1] for line in lines[4:9]]
    assert names == ["peak memory", "step", "compute", "aten::mul", "aten::add"]
    assert lines[9] == "  memory and rates: by their own change"


def test_excluding_a_run_is_followed_at_once(tracker, db):
    before = tracker("history", "aten::mul", "--db", db).out
    tracker("runs", "exclude", "4", "5", "6", "--reason", "wrong", "--db", db)
    assert "v08" not in tracker("history", "aten::mul", "--db", db).out
    tracker("runs", "restore", "4", "5", "6", "--db", db)
    assert tracker("history", "aten::mul", "--db", db).out == before


def test_versions_are_ordered(tracker, db):
    done = tracker("versions", "order", "v08", "--before", "v01", "--db", db)
    assert done.out.splitlines()[0] == "v08 v01"
    row = next(
        line for line in tracker("history", "aten::mul", "--db", db).out.splitlines() if line.split()[:1] == ["v01"]
    )
    assert "IMPROVED" in row
    done = tracker("versions", "order", "--db", db)
    assert (done.code, done.err.count("\n")) == (2, 1)


@pytest.fixture
def repository(tmp_path):
    """A repository with the tags v08 and v01, in this order."""
    folder = tmp_path / "model"
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.c")

    def git(*words):
        subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)

    folder.mkdir()
    git("init", "-q")
    for tag in ("v08", "v01"):
        git("commit", "-q", "--allow-empty", "-m", tag)
        git("tag", tag)
    return folder


def test_the_order_is_taken_from_git(tracker, db, repository):
    assert tracker("versions", "order", "--from-git", repository, "--db", db).out.splitlines()[0] == "v08 v01"


def test_what_git_does_not_know_stays_behind_what_it_followed(tracker, db, repository):
    tracker("runs", "edit", "6", "--version", "trial", "--db", db)
    done = tracker("versions", "order", "--from-git", repository, "--db", db)
    assert done.out.splitlines()[0] == "v08 trial v01"
    assert done.err == f"note: not in {repository}, left after the version before: trial\n"


def test_a_folder_that_is_no_repository_is_an_error(tracker, db, tmp_path):
    done = tracker("versions", "order", "--from-git", tmp_path / "nosuch", "--db", db)
    assert done.code == 2
    assert "cannot be read as a git repository" in done.err


def test_what_is_printed_for_one_of_two_workloads_works_as_it_is(tracker, tmp_path):
    """gpt and bert in one database: a number alone is enough, and two versions are compared in their workload."""
    db = tmp_path / "t.db"
    with open_store(str(db)) as store:
        for workload in ("gpt", "bert"):
            for version in ("v1", "v2"):
                save(store, version, workload=workload, ops=[("mm", 100)])
        update(store, tracks_of(store))
    several = tracker("history", "mm", "--workload", "bert", "--kind", "op", "--format", "json", "--db", db)
    (series,) = json.loads(several.out)["series"]
    own = tracker("history", str(series["series_id"]), "--db", db)
    assert (own.code, " of bert, " in own.out.splitlines()[0]) == (0, True)
    assert "there is no series 999999" in tracker("history", "999999", "--db", db).err
    last = ending(tracker("versions", "--db", db).out)
    assert last == f"4 versions.\nNext:\n  tracker diff --db {db} v1 v2 --workload gpt"
    assert tracker(*last.split("tracker ")[1].split()).code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("step", "--metric", "foo"), "no series 'step' is left by --metric foo; its metrics are duration_ns"),
        (("step", "--kind", "op"), "no series 'step' is left by --kind op; its kinds are run"),
        (("aten::mul", "--shape", "*zz*"), "no series 'aten::mul' is left by --shape *zz*; its shapes are [["),
        (("stepp", "--kind", "op"), "no series is called 'stepp'"),
    ],
)
def test_a_filter_that_leaves_nothing_of_a_key_is_what_the_error_names(tracker, db, words, message):
    done = tracker("history", *words, "--db", db)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
