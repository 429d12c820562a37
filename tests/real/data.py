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
    """The shared capture or folder `name`; skips the test where it is absent."""
    found = folder() / name
    if not found.exists():
        pytest.skip(f"the shared capture {name} is not on this machine (set TRACKER_SHARED)")
    return found
