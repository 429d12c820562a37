"""The rooms and their order: what `[tool.importlinter]` in pyproject.toml says holds."""

from __future__ import annotations

import os
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
