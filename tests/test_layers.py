"""The rooms and their order: what `[tool.importlinter]` in pyproject.toml says holds."""

from __future__ import annotations

import ast
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tracker"


def test_imports_go_only_downwards():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_trackererror_is_caught_in_one_place():
    catching = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "except TrackerError" in path.read_text(encoding="utf-8")
    ]
    assert catching == ["cli/__init__.py"]


@pytest.mark.parametrize("room", ["readers", "timeline", "store", "compare", "intake", "watch"])
def test_only_cli_and_the_package_itself_read_settings(room):
    """`tracker.open_store` and `store.open_store` take the database of the settings when none is named."""
    reading = [
        path.name
        for path in sorted((PACKAGE / room).rglob("*.py"))
        if "config.load(" in path.read_text(encoding="utf-8")
        and path.relative_to(PACKAGE).as_posix() != "store/connect.py"
    ]
    assert not reading


FROM_IMPORT = re.compile(r"^[ \t]*from tracker(?:\.[\w.]+)? import (?:\([^()]*\)|[^(\n]+)", re.MULTILINE)
"""To parse these statements alone takes a tenth of the time of whole files."""


def modules_imported_by(path):
    """The dotted names of this package that a file imports, names of modules and of what is in them alike."""
    source = path.read_text(encoding="utf-8")
    for found in FROM_IMPORT.finditer(source):
        (node,) = ast.parse(found.group().strip()).body
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_imports_are_found_wherever_they_stand(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("from tracker import _a, b as c\nif d:\n    from tracker.e._f import (\n        g,  # why\n    )\n")
    assert [*modules_imported_by(path)] == ["tracker._a", "tracker.b", "tracker.e._f.g"]


def test_a_module_with_an_underscore_is_of_its_own_folder_alone():
    """`reports/_layout.py` is for `reports`; what other rooms use has a name without one."""
    strangers = []
    for path in sorted(PACKAGE.rglob("*.py")):
        own = path.relative_to(ROOT).parent.parts
        for name in modules_imported_by(path):
            parts = name.split(".")
            folder = [*itertools.takewhile(lambda part: not part.startswith("_") or part == "__version__", parts)]
            if len(folder) < len(parts) and own[: len(folder)] != tuple(folder):
                strangers.append(f"{path.relative_to(ROOT)}: {name}")
    assert not strangers
