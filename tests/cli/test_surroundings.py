"""Terminals, streams, locales and names that are not as usual: the result, or one line and exit 2."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from tests.cli.support import WORKLOAD, content
from tests.cli.test_bad_input import expect

REPORTS = ("diff v01 v08", "show 1", "history", "findings", "explain 1", "log", "runs", "versions", "status")
HUGE = "v" * 1_000_000
FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")


@pytest.mark.parametrize("columns", ["0", "1", "20", "-5", "²", "9" * 30])
def test_any_width_gives_the_report(tracker, db, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    for words in REPORTS:
        done = tracker(*words.split(), "--db", db)
        assert (done.code, done.err) == (0, ""), words
        assert done.out


@pytest.mark.parametrize("words", [*REPORTS, "--help", "diff --help"])
def test_a_plain_locale_gives_ascii(db, words):
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "TRACKER_DB": str(db)}
    command = [sys.executable, "-m", "tracker", *words.split()]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode("ascii")


@pytest.mark.parametrize(
    ("streams", "code"),
    [("2>&-", 0), (">&-", 2), (">&- 2>&-", 2), pytest.param("2>/dev/full", 0, marks=FULL),
     pytest.param(">/dev/full", 2, marks=FULL), pytest.param(">/dev/full 2>/dev/full", 2, marks=FULL)],
)  # fmt: skip
def test_closed_and_full_streams_have_an_exit_code(db, tmp_path, copied_tracker, streams, code):
    own = f"--db '{db}'"
    results = (f"diff v01 v08 {own}", f"diff v01 v08 -o {tmp_path}/out.json {own}", f"runs {own}")
    for words in (*results, "--help", "runs tag --help"):
        command = f"exec {shlex.join(copied_tracker)} {words} {streams}"
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        # where the result goes to a file, a stdout that is closed is not missed
        wanted = 0 if " -o " in words and streams.startswith(">&-") else code
        assert (done.returncode, "Traceback" in done.stderr) == (wanted, False), words
        assert done.stderr.count("\n") <= (code == 2)


def test_a_gate_keeps_its_code_without_stderr(db, copied_tracker):
    command = f"exec {shlex.join(copied_tracker)} diff v01 v08 --fail-on new --db '{db}' 2>&-"
    assert subprocess.run(["sh", "-c", command], capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize(
    "words",
    [
        ("diff", HUGE, "v08"), ("show", HUGE), ("history", HUGE), ("findings", "--workload", HUGE), ("explain", HUGE),
        ("ack", HUGE, "--reason", "r"), ("runs", "--version", HUGE), ("runs", "tag", HUGE, "--tag", "a=b"),
        ("versions", "pin", HUGE), ("log", "--baseline", HUGE), ("ingest", HUGE), ("pack", HUGE, "-o", "a.trk"),
        ("diff", "v01", "v08", "-o", HUGE), ("thresholds", "set", HUGE, "--reason", "r"), ("db", "copy", HUGE, "a.db"),
        ("init", "--yes", HUGE), ("doctor", HUGE), ("calibrate", HUGE), ("mute", "1", "--until", HUGE, "--reason", "r"),
        ("runs", "--limit", "9" * 1_000_000), ("diff", "v01", "v08", "--only", HUGE), (HUGE,),
    ],
    ids=lambda words: " ".join(words)[:25],
)  # fmt: skip
def test_huge_names_are_one_line(tracker, db, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACKER_DB", str(db))
    before = content(db)
    done = tracker(*words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert content(db) == before
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".trk"]


@pytest.mark.parametrize("label", ["-v2", "--db", "--help", "-"])
def test_names_may_begin_with_a_dash(tracker, db, label):
    assert tracker("runs", "edit", "1", f"--version={label}", "--db", db).code == 0
    assert tracker("diff", "--db", db, "--force", "--", label, "v08").code == 0
    assert tracker("versions", "pin", "--db", db, "--", label).out.startswith(f"{label} pinned.")
    assert label in tracker("findings", f"--version={label}", "--db", db, "--state", "all").out or label == "-"


def test_bytes_that_are_no_text_are_one_line(db, copied_tracker):
    for words in ([b"diff", b"\xff\xfe", b"v08"], [b"runs", b"--version", b"\xff"], [b"history", b"\xff*"]):
        command = [*map(os.fsencode, copied_tracker), *words, b"--db", str(db).encode()]
        done = subprocess.run(command, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1), done.stderr


def test_an_output_file_is_replaced_only_when_the_report_is_there(tracker, db, tmp_path):
    report = tmp_path / "report.md"
    report.write_text("of yesterday")
    expect(tracker("diff", "v01", "v99", "--db", db, "-o", report), "there is no version 'v99' of small_gpt")
    assert report.read_text() == "of yesterday"
    assert tracker("diff", "v01", "v08", "--db", db, "-o", report, "--details").code == 0
    assert report.read_text().count(WORKLOAD) and [path.name for path in tmp_path.glob("report*")] == ["report.md"]


@pytest.mark.parametrize(("color", "colored"), [("always", True), ("never", False), ("auto", False)])
def test_color_is_chosen_by_an_option(tracker, db, monkeypatch, color, colored):
    monkeypatch.setenv("NO_COLOR", "1")
    for words in REPORTS[:6]:
        assert ("\x1b[" in tracker(*words.split(), "--color", color, "--db", db).out) is colored, words
