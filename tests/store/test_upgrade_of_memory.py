"""Schema 0022 knows who owns memory: series of older runs become those of another metric, and keep their numbers."""

from __future__ import annotations

from alembic import command
from sqlalchemy import text

from tests.factories import save
from tracker.store import connect, health, open_store, schema


def metrics(url: str) -> list[tuple[object, ...]]:
    question = "SELECT name, metric FROM series WHERE kind = 'memory' ORDER BY name, metric"
    with connect.open_engine(url).connect() as connection:
        return [tuple(row) for row in connection.execute(text(question))]


def downgraded(url: str) -> None:
    with connect.open_engine(url).begin() as connection:
        command.downgrade(schema.alembic_config(connection), "0021")


def test_memory_of_older_runs_is_a_series_of_its_own(empty_url):
    with open_store(empty_url) as store:
        save(store, "v1", memory=[("aten::empty", 500)])
    # as 0021 would have it: the series of the helper, under the one metric that there was
    with connect.open_engine(empty_url).begin() as connection:
        connection.execute(text("UPDATE series SET metric = 'allocator_bytes' WHERE kind = 'memory'"))
    downgraded(empty_url)
    assert metrics(empty_url) == [("aten::empty", "bytes")]
    assert connect.upgrade(empty_url) == ("0021", schema.SCHEMA_HEAD)
    assert metrics(empty_url) == [("aten::empty", "allocator_bytes")]
    with open_store(empty_url) as store:
        save(store, "v2", memory=[("aten::empty", 500)])
        assert health.check(store) == []
    assert metrics(empty_url) == [("aten::empty", "allocator_bytes"), ("aten::empty", "bytes")]


def test_series_of_owners_survive_a_way_back(empty_url):
    with open_store(empty_url) as store:
        save(store, "v1", memory=[("aten::mm", 500)])
    downgraded(empty_url)
    assert metrics(empty_url) == [("aten::mm", "owner_bytes")]
    connect.upgrade(empty_url)
    assert metrics(empty_url) == [("aten::mm", "bytes")]
