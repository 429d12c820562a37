from __future__ import annotations

import pytest

from tests.watch.world import World


@pytest.fixture
def world(store, tmp_path) -> World:
    """A watched folder, on each of the two databases."""
    return World(store, tmp_path / "profiles")


@pytest.fixture
def local(memory_store, tmp_path) -> World:
    """A watched folder with a database in memory, for what is not about the database."""
    return World(memory_store, tmp_path / "profiles")
