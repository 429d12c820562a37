"""`--fail-on` and the formats that build systems read, as a pipeline calls them."""

from __future__ import annotations

import json
import os
from xml.etree import ElementTree

import pytest

from tests.factories import save
from tests.reports.prometheus import parse
from tracker.store import open_store


def last(done):
    return done.err.splitlines()[-1]


def test_a_regression_is_printed_and_ends_with_1(tracker, db):
    done = tracker("diff", "v01", "v08", "--fail-on", "any", "--db", db)
    assert done.code == 1
    assert "v08 is 23.8 % slower than v01" in done.out
    assert last(done) == "--fail-on any: exit 1, the step got slower"
    assert tracker("diff", "v01", "v08", "--db", db).code == 0


def test_each_configuration_has_a_page_and_the_worst_one_the_exit_code(tracker, tmp_path):
    """With a batch of 8 a step takes 10 ms as before, with one of 16 it takes 40 ms and not 20 ms."""
    db = tmp_path / "own.db"
    with open_store(str(db)) as store:
        for version, batches in (("v1", {"8": 10, "16": 20}), ("v2", {"8": 10, "16": 40})):
            for batch, milliseconds in batches.items():
                of_run = {"configuration": {"batch": batch}}
                save(store, version, runs=3, steps=2, step_ns=milliseconds * 1_000_000, of_run=of_run)
    done = tracker("diff", "v1", "v2", "--fail-on", "new", "--db", db)
    assert [line for line in done.out.splitlines() if line.startswith("gpt, ")] == [
        "gpt, NVIDIA H100, batch=8, 3 runs each, judged 3 of 3 series, 2 steps a run",
        "gpt, NVIDIA H100, batch=16, 3 runs each, judged 3 of 3 series, 2 steps a run",
    ]
    assert (done.code, last(done)) == (1, "--fail-on new: exit 1, v2 batch=16: the step got slower")
    alone = tracker("diff", "v1", "v2", "--config", "batch=8", "--format", "json", "--fail-on", "new", "--db", db)
    assert (alone.code, json.loads(alone.out)["candidate"]["configuration"]) == (0, "batch=8")
    both = tracker("diff", "v1", "v2", "--format", "json", "--db", db)
    assert [one["candidate"]["configuration"] for one in json.loads(both.out)["diffs"]] == ["batch=8", "batch=16"]
    suites = ElementTree.fromstring(tracker("diff", "v1", "v2", "--format", "junit", "--db", db).out)
    assert [suite.get("name") for suite in suites] == [
        f"tracker diff v1 v2 --config batch={batch}" for batch in (8, 16)
    ]
    table = tracker("diff", "v1", "v2", "--format", "csv", "--db", db)
    assert (table.code, table.err) == (
        2,
        "tracker: csv holds one comparison, and there are 2; choose with --config KEY=VALUE or VERSION@DEVICE\n",
    )


OP_SUMMARY = """Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us)
0,MatMul1,MatMulV2,AI_CORE,1700000000000000.000,{taken_us:.3f},0
0,MatMul2,MatMulV2,AI_CORE,1700000000002000.000,{taken_us:.3f},0
"""
"""An export of msprof, of two kernels that begin 2 ms apart."""


def test_dated_exports_of_msprof_are_judged_as_undated_ones(tracker, tmp_path):
    """Kernels take 1.00, 1.01 and 0.99 ms in the runs of v1, 1.3 times that in v2; msprof may date its files."""
    printed = []
    for name in ("op_summary.csv", "op_summary_2026060516170{run}.csv"):
        folder, db = tmp_path / name, tmp_path / f"{name}.db"
        for version, scale in (("v1", 1000), ("v2", 1300)):
            for run, factor in enumerate((1.0, 1.01, 0.99)):
                file = folder / version / f"run{run}" / name.format(run=run)
                file.parent.mkdir(parents=True)
                file.write_text(OP_SUMMARY.format(taken_us=scale * factor))
            tracker("ingest", folder / version, "--version", version, "--workload", "w", "--db", db)
        compared = tracker("diff", "v1", "v2", "--format", "json", "--fail-on", "new", "--db", db)
        found = tracker("findings", "--format", "json", "--db", db)
        assert (compared.code, last(compared)) == (1, "--fail-on new: exit 1, the step got slower")
        printed.append((compared.out, found.out))
    assert printed[0] == printed[1]
    (kernel,) = json.loads(printed[1][0])["kernels"]
    assert (kernel["name"], kernel["verdict"]) == ("MatMul", "REGRESSED")


def test_the_way_back_is_an_improvement_and_ends_with_0(tracker, db):
    done = tracker("diff", "v08", "v01", "--only", "operator", "--op", "aten::mul", "--fail-on", "any", "--db", db)
    assert (done.code, last(done).startswith("--fail-on any: exit 0, nothing fails")) == (0, True)


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("diff", "v01", "v01"), 3, "Not judged: both sides are the same runs"),
        (("diff", "v01", "v08", "--rank", "0"), 3, "Not judged: v01 is only chosen ranks of its runs"),
        (("diff", "run:1", "run:2"), 4, "One run each: no verdict on the time; a verdict needs 2 more"),
        (("findings", "--new", "--kind", "memory", "--direction", "improvement"), 1, "v08: the step got slower"),
        (("findings", "--new"), 1, "v08: the step got slower"),
    ],
)
def test_each_end_has_its_code_and_its_line(tracker, db, words, code, why):
    done = tracker(*words, "--fail-on", "new", "--db", db)
    assert (done.code, last(done).startswith(f"--fail-on new: exit {code}, ")) == (code, True)
    assert why in last(done)
    assert done.out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("diff", "v01", "v99"), "there is no version 'v99'"),
        (
            ("diff", "v01", "v08", "latest"),
            "--fail-on with several candidates; name two sides: BASELINE CANDIDATE",
        ),
        (("findings", "--workload", "nobody"), "there is no workload 'nobody'"),
    ],
)
def test_what_cannot_be_done_is_2_whatever_the_gate(tracker, db, words, problem):
    done = tracker(*words, "--fail-on", "any", "--db", db)
    assert done.code == 2 and problem in done.err


def test_paths_have_no_history_so_that_new_is_any(tracker, trace):
    done = tracker("diff", trace["v01"], trace["v08"], "--fail-on", "new")
    assert done.code == 4 and "One run each" in last(done)


def test_the_report_of_a_gate_agrees_with_its_exit_code(tracker, db, tmp_path):
    for word in ("any", "new"):
        path = tmp_path / f"{word}.xml"
        done = tracker("diff", "v01", "v08", "--fail-on", word, "-o", path, "--db", db)
        (suite,) = ElementTree.parse(path).getroot()
        assert (done.code, int(suite.get("failures")) > 0) == (1, True)
        assert done.err.splitlines()[-2] == f"written: {path}"
    calm = tracker("diff", "v08", "v01", "--only", "operator", "--op", "aten::mul", "--format", "junit", "--db", db)
    (suite,) = ElementTree.fromstring(calm.out)
    assert suite.get("failures") == "0"


def test_annotations_go_to_the_log_of_the_build(tracker, db):
    done = tracker("diff", "v01", "v08", "--fail-on", "any", "--format", "github", "--db", db)
    lines = done.out.splitlines()
    assert done.code == 1 and all(line.startswith(("::error ", "::warning ")) for line in lines)
    assert sum(line.startswith("::error ") for line in lines) <= 10
    assert not any(line.startswith("::") for line in done.err.splitlines())


def test_metrics_are_written_whole_and_replaced(tracker, db, tmp_path):
    path = tmp_path / "tracker.prom"
    path.write_text("old")
    inode = path.stat().st_ino
    assert tracker("findings", "-o", path, "--db", db).code == 0  # the ending chooses the format
    found = parse(path.read_text())
    (labels,) = found["tracker_last_run_timestamp_seconds"]
    assert {("workload", "small_gpt"), ("version", "v08")} <= labels
    assert path.stat().st_ino != inode  # another file, renamed over the old one
    assert os.listdir(tmp_path).count("tracker.prom") == 1 and not list(tmp_path.glob(".tracker-*"))
    assert path.stat().st_mode & 0o444 == 0o444  # node_exporter is another user


@pytest.mark.parametrize("format", ["junit", "github", "prometheus"])
@pytest.mark.parametrize("words", ["show run:1", "history aten::mul", "log", "diff v01 v08 v01"])
def test_formats_of_build_systems_are_for_diff_and_findings(tracker, db, format, words):
    done = tracker(*words.split(), "--format", format, "--db", db)
    assert (done.code, done.out) == (2, "")
    assert f"{format} is for diff and findings; choose another --format: csv, html, json, markdown" in done.err


def test_an_ending_that_a_command_cannot_write_is_refused_before_the_work(tracker, db, tmp_path):
    done = tracker("show", "run:1", "-o", tmp_path / "run.xml", "--db", db)
    assert done.code == 2 and "junit is for diff and findings" in done.err
    assert not (tmp_path / "run.xml").exists()
