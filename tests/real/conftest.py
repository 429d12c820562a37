"""What several tests of the shared captures read: the nightly training as a database."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracker
from tests.real import data
from tracker.regressions.gates import gate_of_findings


def nightly_versions() -> dict[str, list[Path]]:
    """Version -> captures of the nightly training, three runs each, in their order."""
    found: dict[str, list[Path]] = {}
    for path in sorted(data.path("torch_cpu/nightly_gpt").glob("*.gz")):
        found.setdefault(path.name.split("_")[0], []).append(path)
    return found


@pytest.fixture(scope="session")
def nights():
    """A database with the 12 versions of the nightly training, and the exit code of each when it was the newest."""
    codes = {}
    with tracker.open_store("sqlite://") as store:
        for version, paths in nightly_versions().items():
            tracker.ingest(paths, version=version, workload="gpt", store=store)
            codes[version] = gate_of_findings(tracker.findings(store=store), "new").code
        yield store, codes


@pytest.fixture(scope="session")
def nightly(nights):
    """A database with the 12 versions of the nightly training; read-only by agreement."""
    return nights[0]
