"""The command that builds a side."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.experiment.checkouts import Checkout, prepare, run_job
from tracker.errors import UsageError
from tracker.experiment.setups import run_setup


@pytest.fixture
def sides(tmp_path: Path):
    """Two versions whose package is complete only once a build has written a module of it."""
    checkout = Checkout(tmp_path / "trainer")
    checkout.write("build.py", "open('model/fast.py', 'w').write('SPEED = ' + open('speed').read())")
    for speed in ("1", "2"):
        checkout.save({"model/__init__.py": "from model.fast import SPEED", "speed": speed})
    return prepare(tmp_path / "ab", checkout, "HEAD~1", "HEAD")


def test_module_that_setup_builds_is_the_side_s_own(sides, tmp_path):
    for prepared, speed in zip(sides, ("1", "2"), strict=True):
        run_setup(prepared, "echo building $PWD && python3 build.py", tmp_path / "logs" / "setup.log", 60)
        assert (tmp_path / "logs" / "setup.log").read_text() == f"building {prepared.folder}\n"
        assert run_job(prepared, tmp_path / "modules", "-c", "import model; print(model.SPEED)") == speed


def test_setup_that_fails_names_side_code_and_log(sides, tmp_path):
    log = tmp_path / "setup.log"
    with pytest.raises(UsageError, match="--setup of candidate ended with exit code 3; its output is in "):
        run_setup(sides[1], "echo no compiler >&2; exit 3", log, 60)
    assert log.with_suffix(".err").read_text() == "no compiler\n"


def test_setup_that_a_signal_ends_says_so(sides, tmp_path):
    with pytest.raises(UsageError, match="ended with signal 9, Killed"):
        run_setup(sides[0], "kill -9 $$", tmp_path / "setup.log", 60)


def test_setup_that_hangs_is_killed_with_its_children(sides, tmp_path):
    """The child of the shell would write a file."""
    began = time.monotonic()
    with pytest.raises(UsageError, match=r"--setup of baseline has not ended after 0\.2 s; its output is in "):
        run_setup(sides[0], f"(sleep 1; touch {tmp_path}/late) & sleep 60", tmp_path / "setup.log", 0.2)
    assert time.monotonic() - began < 1
    time.sleep(1)
    assert not (tmp_path / "late").exists()


def test_setup_has_no_input(sides, tmp_path):
    run_setup(sides[0], "cat", tmp_path / "setup.log", 60)
