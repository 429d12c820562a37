"""Ascend databases of given tables, read."""

from __future__ import annotations

import pytest

from tests.readers import ascend_databases as made
from tests.readers.ascend_databases import write
from tracker.readers import ascend_db


@pytest.fixture
def database(tmp_path):
    """Writes tables to a database of its own and reads it."""

    def read(content=None, name="ascend_pytorch_profiler_4.db"):
        return ascend_db.read(write(tmp_path / name, made.tables() if content is None else content))

    return read
