"""Where the shared captures lie: TRACKER_SHARED, or `shared` beside the repository. Tests without them are skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def folder() -> Path:
    """The folder of shared captures, there or not."""
    beside = Path(__file__).resolve().parents[3] / "shared"
    return Path(os.environ.get("TRACKER_SHARED", beside)) / "data"


def path(name: str) -> Path:
    """The shared capture or folder `name`; skips the test on a machine without shared captures.

    A misspelt name is a mistake in the test: where others of its set are there, it fails.
    """
    found = folder() / name
    if not (folder() / name.split("/", maxsplit=1)[0]).exists():
        pytest.skip(f"the shared captures are not on this machine (set TRACKER_SHARED): {name}")
    assert found.exists(), f"no shared capture {name}"
    return found
