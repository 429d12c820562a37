"""Where the shared captures lie: TRACKER_SHARED, or `shared` beside the repository. Tests without them are skipped."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.conftest import RUN


def folder() -> Path:
    """The folder of shared captures, there or not."""
    beside = Path(__file__).resolve().parents[3] / "shared"
    return Path(os.environ.get("TRACKER_SHARED", beside)) / "data"


_BY_DAY_BYTES = 1_000_000


def some(captures: Iterable[Path]) -> list[str]:
    """The names of captures: at night of all, else of the smallest of each set (`pytorch/two_ranks_nccl`), where it is
    small: beside a reader of its own a test takes seconds for each megabyte.
    """
    smallest: dict[tuple[str, ...], Path] = {}
    every = sorted(captures)
    for one in sorted(every, key=lambda capture: capture.stat().st_size):
        smallest.setdefault(one.relative_to(folder()).parts[:2], one)
    by_day = {one for one in smallest.values() if one.stat().st_size < _BY_DAY_BYTES}
    return [str(one.relative_to(folder())) for one in every if RUN == "all" or one in by_day]


def path(name: str) -> Path:
    """The shared capture or folder `name`; skips the test on a machine without shared captures.

    A misspelt name is a mistake in the test: where others of its set are there, it fails.
    """
    found = folder() / name
    if not (folder() / name.split("/", maxsplit=1)[0]).exists():
        pytest.skip(f"the shared captures are not on this machine (set TRACKER_SHARED): {name}")
    assert found.exists(), f"no shared capture {name}"
    return found
