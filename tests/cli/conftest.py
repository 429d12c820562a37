from __future__ import annotations

import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from tests.cli.support import WORKLOAD, Done
from tracker.cli import main, uncompiled
from tracker.cli.start import samples


@pytest.fixture
def tracker(monkeypatch, capsys, tmp_path):
    """Calls the program in this process: tracker("diff", "v01", "v08"). The user's own folders are empty ones."""
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    # the tests read the same with and without a compiler
    monkeypatch.setattr(uncompiled, "is_compiled", lambda: True)
    for name in ("TRACKER_DB", "TRACKER_CONFIG", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def call(*words) -> Done:
        monkeypatch.setattr(sys, "argv", ["tracker", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        return Done(stopped.value.code or 0, printed.out, printed.err)

    return call


@pytest.fixture(scope="session")
def trace() -> dict[str, Path]:
    """A bundled profile of each version."""
    folder = samples().folder
    return {label: folder / label / "run1.pt.trace.json.gz" for label in ("v01", "v08")}


@pytest.fixture(scope="session")
def filled_database(tmp_path_factory) -> Path:
    """The bundled profiles, ingested once; tests get copies."""
    from tracker.intake import ingest
    from tracker.store import open_store

    path = tmp_path_factory.mktemp("filled") / "tracker.db"
    bundled = samples()
    with open_store(str(path)) as store:
        for label, _ in bundled.versions:
            ingest(store, [bundled.folder / label], version=label, workload=WORKLOAD)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


@pytest.fixture
def db(filled_database, tmp_path) -> Path:
    """A database of its own with the bundled profiles: runs of v01, then runs of v08."""
    return Path(shutil.copy(filled_database, tmp_path / "filled.db"))
