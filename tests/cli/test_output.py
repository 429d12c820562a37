"""Where results go: links, pipes and full disks, names that no file can have, endings and formats."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import threading

import pytest

from tests.cli.support import WORKLOAD
from tests.cli.test_bad_input import expect
from tracker.cli import output as cli_output

LONG = "a" * 300
DIFF = ("diff", "v01", "v08", "--only", "overall")


def test_link_stays_a_link_and_what_it_points_to_is_written(tracker, db, tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "real" / "target.json")
    for _ in range(2):
        assert tracker(*DIFF, "--db", db, "-o", link).code == 0
    assert link.is_symlink()
    assert (tmp_path / "real" / "target.json").read_text().startswith("{")
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["target.json"]


def test_pipe_is_written_and_stays_a_pipe(tracker, db, tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    assert tracker(*DIFF, "--db", db, "--format", "json", "-o", pipe).code == 0
    reader.join(10)
    assert got[0].startswith("{")
    assert pipe.is_fifo()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_without_a_sign_shows_an_ascii_one(db, copied_tracker, encoding):
    command = [*copied_tracker, "history", "step", "--workload", WORKLOAD, "--db", db]
    done = subprocess.run(command, env={**os.environ, "PYTHONIOENCODING": encoding}, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    shown = done.stdout.decode(encoding)
    assert "\n  _#  " in shown and "?" not in shown  # two versions, the second one slower


def test_a_closed_stdout_is_an_error(db, copied_tracker):
    for words in ("runs", "diff v01 v08"):
        command = f"exec {shlex.join(copied_tracker)} {words} --db '{db}' >&-"
        done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr == "tracker: standard output: is closed; give -o FILE, or redirect it\n"


def test_a_closed_stdout_is_no_error_where_a_file_takes_the_result(db, tmp_path, copied_tracker):
    file = tmp_path / "diff.md"
    command = f"exec {shlex.join(copied_tracker)} diff v01 v08 --db '{db}' -o {file} >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, f"written: {file}\n")
    assert file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "value", "color"), [("TERM", "xterm", True), ("TERM", "dumb", False), ("NO_COLOR", "1", False)]
)
def test_color_is_for_terminals_that_want_it(name, value, color, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv(name, value)
    assert cli_output.screen()["color"] is color


def test_empty_output_is_an_error(tracker, db):
    expect(tracker(*DIFF, "--db", db, "-o", ""), "-o is empty")


@pytest.mark.parametrize(
    "words",
    [
        (*DIFF, "-o", f"{LONG}.md"),
        ("ingest", f"{LONG}.json", "--version", "a", "--workload", WORKLOAD),
        ("runs", "--db", f"{LONG}.db"),
        ("demo", "--keep", LONG),
    ],
    ids=["-o", "ingest", "--db", "--keep"],
)
def test_name_that_no_file_can_have(tracker, db, monkeypatch, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACKER_DB", str(db))
    done = tracker(*words)
    assert (done.code, done.out) == (2, "")
    assert "File name too long" in done.err.splitlines()[-1]
    assert "Traceback" not in done.err


def test_database_variable_that_no_file_can_have(tracker, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACKER_DB", LONG)
    expect(tracker("runs"), ".*File name too long.*")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [DIFF, (*DIFF, "--format", "json"), ("runs",)], ids=" ".join)
def test_full_disk_behind_stdout(db, copied_tracker, words):
    with open("/dev/full", "w") as full:
        command = [*copied_tracker, *words, "--db", str(db)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("tracker: standard output: cannot be written (No space left on device); ")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_full_disk_behind_a_file_is_no_matter_of_rights(tracker, db, trace):
    for words in (("pack", trace["v01"]), ("show", "latest", "--format", "json", "--db", db)):
        done = tracker(*words, "-o", "/dev/full")
        said = "cannot be written (No space left on device); make room there, or name another file"
        assert (done.code, done.err) == (2, f"tracker: /dev/full: {said}\n")


def test_standard_output_is_no_file_of_a_report(tracker, db):
    done = tracker("show", "latest", "--db", db, "-o", "-")
    assert (done.code, done.out, done.err) == (
        2, "", "tracker: -o - is not a file; leave it out: results go to standard output, as --format says\n"
    )  # fmt: skip


def test_ending_that_is_no_report(tracker, db, tmp_path):
    expect(
        tracker(*DIFF, "--db", db, "-o", tmp_path / "x.foo"),
        r"-o \S+x\.foo ends in \.foo, which is not a report format",
    )


def test_ending_and_format_that_contradict(tracker, db, tmp_path):
    done = tracker(*DIFF, "--db", db, "-o", tmp_path / "x.csv", "--format", "xlsx")
    expect(done, r"-o \S+x\.csv ends in \.csv, but --format is xlsx")
    assert not (tmp_path / "x.csv").exists()


def test_pipe_is_as_wide_as_columns_says(tracker, db, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    narrow = tracker(*DIFF, "--db", db).out.splitlines()[:-1]
    monkeypatch.setenv("COLUMNS", "nonsense")
    wide = tracker(*DIFF, "--db", db).out.splitlines()[:-1]
    assert max(map(len, narrow)) <= 70 < max(map(len, wide)) <= 120


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("diff",), r"Missing argument '\[BASELINE\] CANDIDATE\.\.\.'; tracker diff --help"),
        (
            ("diff", "a", "b", "--top", "x"),
            "--top 'x' is not a whole number of 0 or more; .*",
        ),
        (("diff", "a", "b", "--format", "x"), "--format 'x' must be one of: .*; .*"),
        (("diff", "-v1", "v2"), "No such option:? '?-v'?; .* goes behind --: tracker diff ... -- -v1; .*"),
        (("findings", "-v"), "No such option: -v; tracker findings --help"),
        (("runs", "edit"), r"Missing argument 'RUN\.\.\.'; tracker runs edit --help"),
        (("nonsense",), "No such command 'nonsense'; tracker --help"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_misuse_is_one_line(tracker, words, problem):
    done = tracker(*words)
    expect(done, problem.rsplit("; ", 1)[0])
    assert "pydantic" not in done.err.lower()


@pytest.mark.parametrize("text", ["a\nb", "a\x1b[31mb"], ids=["line end", "escape"])
@pytest.mark.parametrize("option", ["--version", "--workload", "--note", "--tag", "--config"])
def test_control_characters_in_labels_are_refused(tracker, trace, tmp_path, option, text):
    values = {"--version": "v1", "--workload": "w"} | {option: f"k={text}" if option in ("--tag", "--config") else text}
    words = [word for pair in values.items() for word in pair]
    expect(tracker("ingest", trace["v01"], *words, "--db", tmp_path / "x.db"), ".*holds control characters")


def test_only_overall_shows_no_operators(tracker, db):
    page = tracker(*DIFF, "--db", db).out
    assert "Overall, per step" in page and "Operators by" not in page and "cause" not in page


def test_details_repeat_the_question(tracker, db):
    words = ("--only", "operator", "--match", "name", "--op", "aten::*", "--rank", "0", "--min-us", "1.5")
    last = tracker("diff", "v01", "v08", *words, "--db", db).out.splitlines()[-1]
    for part in ("--only operator", "--match name", "--op 'aten::*'", "--rank 0", "--min-us 1.5"):
        assert part in last


def test_a_report_that_is_replaced_stays_as_private_as_it_was(tracker, db, tmp_path):
    report, new = tmp_path / "report.json", tmp_path / "new.json"
    report.write_text("of yesterday")
    report.chmod(0o600)
    before = os.umask(0o022)
    try:
        for path in (report, new):
            assert tracker(*DIFF, "--db", db, "-o", path).code == 0
    finally:
        os.umask(before)
    assert report.read_text() == new.read_text() != "of yesterday"
    assert [path.stat().st_mode & 0o777 for path in (report, new)] == [0o600, 0o644]


def test_a_report_is_written_through_no_link_that_another_one_put_beside_it(tracker, db, tmp_path, monkeypatch):
    (tmp_path / "mine").write_text("mine")
    for guessed in (f".tracker-{os.getpid()}.part", f".{'00' * 8}"):
        (tmp_path / guessed).symlink_to(tmp_path / "mine")
    assert tracker(*DIFF, "--db", db, "-o", tmp_path / "report.json").code == 0
    assert (tmp_path / "mine").read_text() == "mine"
    monkeypatch.setattr(os, "urandom", bytes)
    expect(tracker(*DIFF, "--db", db, "-o", tmp_path / "report.json"), r"\S+ cannot be written \(File exists\)")
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_page_is_written_with_commands_that_name_the_database(tracker, db, tmp_path):
    page = tmp_path / "diff.html"
    done = tracker(*DIFF, "--db", db, "-o", page)
    assert (done.code, done.err) == (0, f"written: {page}\n")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and f"tracker diff --db {db} v01 v08" in text
    tables = re.findall(r'data-count="(\d+)".*?<tbody>(.*?)</tbody>', text, re.DOTALL)
    assert [rows.count("<tr") for _, rows in tables] == [min(int(count), 200) for count, _ in tables]
    assert page.stat().st_size < 135_000


def test_the_name_of_a_database_is_no_markup_on_a_page(tracker, db, tmp_path):
    hostile = tmp_path / "<img src=x>.db"
    hostile.write_bytes(db.read_bytes())
    text = tracker(*DIFF, "--db", hostile, "--format", "html").out
    assert "<img" not in text and "&lt;img src=x&gt;.db" in text


def test_a_page_that_cannot_be_written_is_one_line(tracker, db, tmp_path):
    expect(tracker(*DIFF, "--db", db, "-o", tmp_path / "no" / "such" / "diff.html"), r".*diff\.html.*")


PAGES = (
    "show 6", "history", "findings", "explain 1", "explain I-1", "log", "diff v01 v08 v01", "diff v01 v08 --by op",
    "diff v01 v08",
)  # fmt: skip


def test_every_report_is_a_page(tracker, db):
    for words in PAGES:
        text = tracker(*words.split(), "--db", db, "--format", "html").out
        assert text.startswith("<!doctype html>") and text.count("<main>") == 1 and "<table" in text, words
        assert len(text) < 135_000, words
