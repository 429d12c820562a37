from __future__ import annotations

import shutil
import sqlite3

import pytest

from tests.page.browsing import Browser
from tests.regressions import made
from tracker.regressions import judgement
from tracker.store import open_store


@pytest.fixture(scope="session")
def three_versions(tmp_path_factory):
    """Three versions of nine runs; in v3 two operators are slower: incident 1."""
    path = tmp_path_factory.mktemp("page") / "tracker.db"
    with open_store(str(path)) as store:
        runs = [*made.runs(store, "v1"), *made.runs(store, "v2", start=3)]
        runs += made.runs(store, "v3", {"op05": 1.6, "op07": 1.3}, start=6)
        judgement.update(store, judgement.tracks_of(store, runs))
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


@pytest.fixture
def db(three_versions, tmp_path):
    """A database of its own with three versions."""
    shutil.copy(three_versions, tmp_path / "tracker.db")
    return tmp_path / "tracker.db"


@pytest.fixture
def page(db):
    """The pages of it, for a reader who is logged in."""
    return Browser(db).logged_in()
