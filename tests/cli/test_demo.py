from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.page.browsing import Browser
from tracker.cli.start import samples


def test_demo_prints_a_real_diff_and_what_to_do_next(tracker, tmp_path):
    done = tracker("demo")
    assert done.code == 0
    assert all(name in done.out for name in ("v01", "v08", "aten::gelu_backward, gelu -> mul", "+23.8 %"))
    assert "Next:" not in done.out, "what it proposes would take another database"
    assert "On your own profiles: tracker diff" in done.err


def test_demo_shows_no_cause_that_is_none(tracker):
    """GELU is written out in v08; idle time and what belongs to a new operator come with it, and nothing else."""
    lines = tracker("demo").out.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("  cause "))
    last = next(at for at, line in enumerate(lines) if line.startswith("  = step time") and at > first)
    causes = [re.split("  +", line.strip())[0].lstrip("0123456789 ") for line in lines[first + 1 : last]]
    assert causes == [
        "aten::gelu_backward, gelu -> mul, add, pow and 3 more",
        "autograd::engine::evaluate_function: MulBackward0", "idle", "other operators", "rest (medians do not add up)",
    ]  # fmt: skip
    assert [line.count("▲") for line in lines[first + 1 : last]] == [1, 1, 0, 0, 0]


def test_the_next_command_of_the_demo_opens_its_board(tracker):
    line = next(line for line in tracker("demo").err.splitlines() if line.startswith("Next, the same as pages: "))
    words = shlex.split(line.partition(": ")[2])
    assert words[:4] == ["tracker", "page", "--open", "--db"]
    page = Browser(words[4]).logged_in()
    assert page.get("/").headline.startswith("small_gpt v08 is 23.8 % slower: aten::gelu_backward, gelu → mul, add, ")


@pytest.mark.slow
def test_demo_keeps_its_database_on_request(tracker, tmp_path):
    kept = tmp_path / "demo.db"
    assert tracker("demo", "--keep", kept).code == 0
    assert tracker("show", "latest", "--db", kept).code == 0
    assert tracker("demo", "--keep", kept).code == 0


def test_samples_are_as_the_manifest_says():
    bundled = samples()
    folders = sorted(path.name for path in bundled.folder.iterdir() if path.is_dir() and path.name != "__pycache__")
    assert folders == sorted(label for label, _ in bundled.versions)
    assert all(list((bundled.folder / label).glob("*.pt.trace.json.gz")) for label in folders)


def test_interrupted_program_ends_without_a_traceback(tracker, db, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("tracker.compare.diffs", interrupted)
    done = tracker("diff", "v01", "v08", "--db", db)
    assert done.code == 130
    assert "Traceback" not in done.err


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_ends_the_program_quietly(copied_tracker):
    command = f"{shlex.join(copied_tracker)} demo | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals here")
def test_progress_and_colour_only_at_a_terminal(copied_tracker, trace):
    master, slave = os.openpty()
    words = [*copied_tracker, "diff", str(trace["v01"]), str(trace["v08"]), "--only", "overall"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=slave, check=True, timeout=60)
    os.close(slave)
    assert b"run1.pt.trace.json.gz" in os.read(master, 1 << 16)
    os.close(master)
    assert b"\x1b" not in done.stdout


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals here")
def test_progress_of_an_ingest_counts_its_profiles_and_names_its_phases(copied_tracker, trace, tmp_path):
    master, slave = os.openpty()
    words = [*copied_tracker, "ingest", str(trace["v01"].parent), "--version", "v01"]
    words += ["--workload", "toy", "--db", str(tmp_path / "toy.db")]
    subprocess.run(words, stdout=subprocess.PIPE, stderr=slave, check=True, timeout=60)
    os.close(slave)
    shown = b""
    with suppress(OSError):  # the end of a pseudo-terminal is an error
        while piece := os.read(master, 1 << 16):
            shown += piece
    os.close(master)
    # a bar is drawn ten times a second, and what takes less is not seen
    for words in (b"1 of 3: run1.pt.trace.json.gz", b"writing", b"looking for advice"):
        assert words in shown


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_before_the_command_is_loaded_leaves_no_traceback():
    code = "import signal, sys, tracker.__main__ as m\n"
    code += "def stop(): raise KeyboardInterrupt\n"
    code += "m._run = stop\nm.run()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_bar_that_was_interrupted_while_it_started_ends_quietly(monkeypatch):
    from rich.progress import Progress

    from tracker.cli import output

    def start(bar):
        raise KeyboardInterrupt

    def stop(bar):
        raise RuntimeError("cannot join thread before it is started")

    monkeypatch.setattr(Progress, "start", start)
    monkeypatch.setattr(Progress, "stop", stop)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with pytest.raises(KeyboardInterrupt), output.progress() as report:
        report("run1.json", 1, 10)
