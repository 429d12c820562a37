"""A checkout of a training repository, made for a test, and jobs that run in the sides of it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

from tests.repositories import MadeRepository
from tracker.experiment.clones import make_side
from tracker.experiment.own_code import MODULES_VARIABLE
from tracker.experiment.sides import PreparedSide, Side, environment_of, find_sides, working_folder

ROOT = Path(__file__).parents[2]
RECORDS = "from tracker.hooks.job import Job\nJob(deliver=False)\n"
"""The lines of a job that has a hook."""


class Checkout(MadeRepository):
    """A repository whose files are written and committed by a test."""

    def save(self, files: Mapping[str, str] | None = None) -> str:
        """Commit all files, after these are written, by path; its hash."""
        for path, content in (files or {}).items():
            self.write(path, content)
        self.git("add", "--all")
        return self.commit("change")

    def write(self, path: str, content: str) -> Path:
        """Write a file that is not committed."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file


def find(checkout: Checkout, baseline: str, candidate: str, **options) -> tuple[Side, Side]:
    """The sides of an experiment that is started at the top of a checkout, unless `started_in` says where else."""
    usual = {"started_in": checkout.folder, "dirty": False, "differs_otherwise": False}
    return find_sides(baseline, candidate, **{**usual, **options})


def prepare(place: Path, checkout: Checkout, baseline: str, candidate: str, *, links=(), **options):
    """Both sides of an experiment, ready to run."""
    before, after = find(checkout, baseline, candidate, **options)
    return make_side(before, place, links=links), make_side(after, place, links=links)


def fingerprint(folder: Path) -> dict[str, tuple[int, int, str]]:
    """What a folder holds: mode, time and content of each file and folder."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        state = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(folder))] = state.st_mode, state.st_mtime_ns, hashlib.sha1(content).hexdigest()
    return found


def make_python(folder: Path, *, searches: Path) -> str:
    """A Python in which the code in `searches` is installed to be edited in place."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "editable.pth").write_text(f"{searches}\n")
    return str(folder / "bin" / "python")


def run_job(prepared: PreparedSide, modules: Path, *words: str, python: str = sys.executable, **variables: str) -> str:
    """What a Python job prints that runs in a side and records its modules."""
    paths = [variables.pop("PYTHONPATH", ""), str(ROOT)]
    caller = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    environ = {**environment_of(prepared, caller), MODULES_VARIABLE: str(modules)}
    job = [python, *words]
    done = subprocess.run(
        job, cwd=working_folder(prepared), env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
