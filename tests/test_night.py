"""scripts/night.sh: all parts one after the other, whatever becomes of one of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

NIGHT = Path(__file__).parents[1] / "scripts" / "night.sh"
_SECONDS = re.compile(r", +\d+ s$")
PYTEST = """#!/bin/sh
case "$*" in
    *tests/store*) echo "FAILED tests/store/test_a.py::test_b"; echo "1 failed, 7 passed, 2 xfailed in 1.5s"; exit 1 ;;
    *tests/load*) echo "5 passed in 600.00s (0:10:00)"; exit 2 ;;
    *) echo "12 passed, 3 skipped, 1 warning in 0.31s" ;;
esac
"""
TIMEOUT = """#!/bin/sh
shift 6
case "$*" in *tests/load*) "$@"; exit 124 ;; *) exec "$@" ;; esac
"""
"""It takes its own time off; of the part `load` it says that the time is over."""


@pytest.fixture
def night(tmp_path):
    """Runs the script in a checkout of three folders of tests; its code, its lines without seconds, its errors."""
    programs = {"pytest": PYTEST, "timeout": TIMEOUT}
    for folder in ("scripts", ".venv/bin", "tests/page", "tests/load", "tests/store", "tests/data"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tests" / "test_one.py").touch()
    shutil.copy(NIGHT, tmp_path / "scripts")
    (tmp_path / "scripts" / "environment.sh").write_text('set -eu\ncd "$(dirname "$0")/.."\ninstall() { :; }\n')
    for name, text in programs.items():
        program = tmp_path / ".venv" / "bin" / name
        program.write_text(text)
        program.chmod(0o755)

    def run(*parts):
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        command = ["sh", "scripts/night.sh", *parts]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, [_SECONDS.sub("", line).split() for line in done.stdout.splitlines()], done.stderr

    return run


def test_night_goes_on_after_a_red_part_and_a_late_one(night):
    code, lines, _ = night()
    green = ["green", "12", "passed,", "0", "failed,", "3", "skipped,", "0", "xfailed"]
    assert code == 1
    assert lines == [
        ["load", "over", "15", "min", "5", "passed,", "0", "failed,", "0", "skipped,", "0", "xfailed"],
        ["page", *green],
        ["store", "red", "7", "passed,", "1", "failed,", "0", "skipped,", "2", "xfailed"],
        ["FAILED", "tests/store/test_a.py::test_b"],
        ["files", *green],
        ["doctests", *green],
    ]


def test_night_runs_the_parts_that_are_named(night):
    code, lines, _ = night("page", "files")
    assert (code, [line[0] for line in lines]) == (0, ["page", "files"])


def test_night_without_such_a_part_names_those_that_there_are(night):
    code, lines, errors = night("page", "pages")
    assert (code, lines) == (2, [])
    assert errors == "no part is called pages; choose from: load page store files doctests\n"
