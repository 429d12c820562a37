"""Foreign files are touched in another process, which is killed where it does not end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tracker.errors import SourceError
from tracker.intake import IngestOptions
from tracker.intake.touching import Toucher
from tracker.limits.touch import LateError, guarded, touch, touch_each

PLACE = Path("/profiles/a.json")


def sleep_at(path, seconds):
    with touch(path):
        time.sleep(seconds)


def test_what_hangs_is_killed_and_the_next_touch_is_answered():
    with Toucher(5) as toucher:
        began = time.monotonic()
        hanging = toucher.call(PLACE, 20, os.getpid)
        with pytest.raises(LateError, match=r"a.json: to look at it took longer than 0.2 s; see whether its disk"):
            toucher.call(PLACE, 0.2, time.sleep, 60)
        assert time.monotonic() - began < 20
        with pytest.raises(ProcessLookupError):
            for _ in range(100):
                os.kill(hanging, 0)
                time.sleep(0.01)
                os.waitpid(hanging, os.WNOHANG)
        with pytest.raises(SourceError, match="it ended the process that looked at it"):
            toucher.call(PLACE, 20, os.abort)
        assert toucher.call(PLACE, 20, os.path.basename, "/a/b") == "b"


def test_the_error_names_the_file_that_hung_and_not_the_folder_that_was_looked_at():
    with Toucher(20) as toucher, pytest.raises(LateError) as late:
        toucher.call(PLACE.parent, 2, sleep_at, PLACE, 60)
    assert late.value.path == str(PLACE)


def test_errors_of_a_file_come_back_as_they_are(tmp_path):
    empty = tmp_path / "a.pt.trace.json"
    empty.touch()
    with Toucher(20) as toucher:
        with pytest.raises(SourceError, match="the file is empty"):
            toucher.read_all([empty], IngestOptions())
        with pytest.raises(FileNotFoundError):
            toucher.call(PLACE, 20, os.stat, tmp_path / "gone")


def test_in_a_guarded_command_a_touch_that_is_late_is_an_error_and_the_next_one_is_not():
    with guarded():
        with pytest.raises(LateError, match=r"took longer than 0\.05 s"), touch(PLACE, 0.05):
            time.sleep(60)
        # a pattern that never ends is no wait, and is broken off all the same
        with pytest.raises(LateError), touch(PLACE, 0.05):
            re.match("(a+)+b", "a" * 60)
        with touch(PLACE, 0.05):
            pass
        time.sleep(0.1)


def test_the_innermost_of_two_touches_is_named_and_takes_no_longer_than_the_outer_one():
    with guarded(), pytest.raises(LateError, match="inner"), touch("outer", 0.05), touch("inner", 60):
        time.sleep(60)


def test_what_is_done_with_an_item_counts_for_no_touch():
    with guarded():
        for _ in touch_each(iter("ab"), PLACE):
            time.sleep(0.01)
    with touch(PLACE, 0.0):  # nobody watches
        time.sleep(0.01)


STUCK = """
import os, signal, sys, time
from pathlib import Path
from tracker.limits import touch
touch.LOOK_S, touch.GRACE_S = 0.3, 0.2
real = Path.stat
def stat(self, **how):
    if self.name == "stuck.pt.trace.json":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])  # as on a disk that is gone
        time.sleep(600)
    return real(self, **how)
Path.stat = stat
from tracker.__main__ import run
sys.argv[0] = "tracker"
run()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="no copy of a process is made elsewhere")
@pytest.mark.parametrize("words", [("show", "F/stuck.pt.trace.json"), ("ingest", "F", "--version", "v1")])
def test_a_command_at_a_file_that_never_answers_ends_with_a_line_and_makes_no_database(tmp_path, words):
    (tmp_path / "stuck.pt.trace.json").write_text("{}")
    (tmp_path / "a.txt").write_text("a")
    words = [word.replace("F", str(tmp_path), 1) if word.startswith("F") else word for word in words]
    environ = {**os.environ, "TRACKER_DB": str(tmp_path / "t.db"), "TRACKER_CONFIG": os.devnull}
    done = subprocess.run(
        [sys.executable, "-c", STUCK, *words], capture_output=True, text=True, env=environ, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        f"tracker: {tmp_path}.*: to look at it took longer than 0.3 s; see whether its disk answers\n", done.stderr
    )
    assert not (tmp_path / "t.db").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="no copy of a process is made elsewhere")
def test_a_signal_that_ends_the_copy_ends_the_command_in_the_same_way():
    code = "from tracker.cli import main; import tracker.cli, os; tracker.cli.main = lambda: os.kill(os.getpid(), 15)"
    words = [sys.executable, "-c", f"{code}\nfrom tracker.__main__ import run\nrun()", "show", "a"]
    assert subprocess.run(words, check=False, timeout=60).returncode == -15
