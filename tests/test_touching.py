"""Foreign files are touched in another process, which is killed where it does not end."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tracker.errors import SourceError
from tracker.intake import IngestOptions
from tracker.intake.touching import Toucher

PLACE = Path("/profiles/a.json")


def test_what_hangs_is_killed_and_the_next_touch_is_answered():
    with Toucher(5) as touch:
        began = time.monotonic()
        hanging = touch.call(PLACE, 20, os.getpid)
        with pytest.raises(SourceError, match=r"a.json: to look at it took longer than 0.2 s; see whether its disk"):
            touch.call(PLACE, 0.2, time.sleep, 60)
        assert time.monotonic() - began < 20
        with pytest.raises(ProcessLookupError):
            for _ in range(100):
                os.kill(hanging, 0)
                time.sleep(0.01)
                os.waitpid(hanging, os.WNOHANG)
        with pytest.raises(SourceError, match="it ended the process that looked at it"):
            touch.call(PLACE, 20, os.abort)
        assert touch.call(PLACE, 20, os.path.basename, "/a/b") == "b"


def test_errors_of_a_file_come_back_as_they_are(tmp_path):
    empty = tmp_path / "a.pt.trace.json"
    empty.touch()
    with Toucher(20) as touch:
        with pytest.raises(SourceError, match="the file is empty"):
            touch.read_all([empty], IngestOptions())
        with pytest.raises(FileNotFoundError):
            touch.call(PLACE, 20, os.stat, tmp_path / "gone")
