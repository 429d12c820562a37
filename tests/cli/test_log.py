from __future__ import annotations

import io
import json

import pytest
from openpyxl import load_workbook


@pytest.fixture
def tagged(tracker, db):
    """The bundled profiles, with what an optimisation log reads."""
    tracker("runs", "tag", 4, 5, 6, "--tag", "direction=operator", "--tag", "expected=+10%", "--db", db)
    tracker("runs", "edit", 4, 5, 6, "--note", "GELU in Python", "--db", db)
    return db


def test_log_has_a_row_per_version_with_its_change_and_its_note(tracker, tagged):
    lines = tracker("log", "--db", tagged).plain.out.splitlines()
    first, second = (next(line for line in lines[3:] if line.split()[:1] == [label]) for label in ("v01", "v08"))
    assert "99.92 ms" in first
    assert [cell.strip() for cell in second.split("  ") if cell.strip()] == [
        "v08", "operator", "GELU in Python", "123.70 ms", "+23.8 %", "+23.8 %", "-19.2 % / +10.0 %", "+23.8 %",
        "REGRESSED",
    ]  # fmt: skip
    assert lines[0] == "small_gpt, 2 versions: cpu, step time under a profiler"
    assert lines[1].startswith("v08 is at 123.70 ms: +23.8 % against v01  ") and lines[1].endswith("REGRESSED")
    asked = "  tracker log --workload small_gpt"
    assert lines[-3:] == ["Next:", f"{asked} --details", f"{asked} -o log.xlsx"]


def test_log_says_the_same_as_the_diff(tracker, tagged):
    found = json.loads(tracker("log", "--db", tagged, "--format", "json").out)
    diff = json.loads(tracker("diff", "v01", "v08", "--db", tagged, "--format", "json").out)
    step = next(row for row in diff["overall"] if row["metric"] == "step_ns")
    assert found["schema"] == 1
    assert [cell["value"] for cell in found["cells"]] == pytest.approx(
        [step["baseline_value"], step["candidate_value"]]
    )
    assert found["cells"][1]["baseline_diff"] == pytest.approx(step["diff"])


def test_metric_chooses_what_the_cells_hold(tracker, tagged):
    assert "MiB" in tracker("log", "--db", tagged, "--metric", "memory").out
    done = tracker("log", "--db", tagged, "--metric", "throughput")
    assert (done.code, done.out) == (2, "")
    assert "no run of small_gpt has a number" in done.err


def test_a_throughput_of_a_job_of_several_says_in_the_workbook_too_what_it_counts(tracker, tmp_path):
    """8 devices, a rank each: images per second of one of them."""
    log = tmp_path / "net_bs32_gpu8.txt"
    log.write_text("iter 10: reader_cost: 0.001 s batch_cost: 0.010 s ips: 3200.0 images/s\n")
    db, book = tmp_path / "t.db", tmp_path / "log.xlsx"
    tracker("ingest", log, "--version", "v1", "--workload", "net", "--db", db)
    title = tracker("log", "--db", db, "-o", book).out.splitlines()[0]
    assert title.endswith("throughput in images/s without a profiler, per rank or total:")  # the next line goes on
    assert load_workbook(book)["Log"]["E1"].value.endswith("(images/s, per rank or total: not stated)")


def test_every_format_is_written(tracker, tagged, tmp_path):
    assert tracker("log", "--db", tagged, "--format", "csv").out.count("\n") == 3
    assert (
        "| v08 | operator | GELU in Python | 123.70 ms |" in tracker("log", "--db", tagged, "--format", "markdown").out
    )
    assert tracker("log", "--db", tagged, "-o", tmp_path / "log.xlsx").code == 0
    book = load_workbook(io.BytesIO((tmp_path / "log.xlsx").read_bytes()))
    assert book.sheetnames == ["Summary", "Log", "Cells", "Columns", "Directions"]
    assert [cell.value for cell in book["Log"][3]][:3] == ["v08", "operator", "GELU in Python"]


def test_columns_that_do_not_fit_beside_each_other_are_lines(tracker, db, monkeypatch):
    for run in range(1, 7):
        tracker("runs", "edit", run, "--config", f"batch={run}", "--db", db)
    monkeypatch.setenv("COLUMNS", "80")
    out = tracker("log", "--db", db).out
    assert out.startswith("small_gpt, 2 versions, 6 columns: cpu, step time under a profiler\n")
    assert max(len(line) for line in out.partition("\nNext:\n")[0].splitlines()) <= 80
    assert "  column: batch\n" in out
    assert [line.split()[0] for line in out.splitlines() if line.startswith("  ") and line.split()[0].isdecimal()] == [
        *"123456"
    ]
    assert "batch=5" not in tracker("log", "--db", db, "--config", "batch=4").out


def test_python_gives_the_same_log(tagged):
    import tracker as package

    with package.open_store(str(tagged)) as store:
        found = package.log(store=store, last=1)
    assert list(found.versions["version"]) == ["v08"]
