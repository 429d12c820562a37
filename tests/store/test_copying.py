"""A database moves from SQLite to Postgres and back, and nothing is lost on the way."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from tests.factories import save
from tracker.errors import StoreError
from tracker.store import copying, open_store
from tracker.store import runs as edits
from tracker.store.tables import metadata

OPS = [("aten::mm", 987_654_321), ("aten::add", 123_456_789)]


def everything(store):
    """Table -> its rows, numbers to the last bit."""
    with store.connect() as connection:
        return {
            table.name: list(
                map(tuple, connection.execute(select(*table.columns).order_by(*table.primary_key.columns)))
            )
            for table in metadata.sorted_tables
        }


@pytest.fixture
def filled(store):
    """Two versions of two runs of two ranks each, a purged run, and a finding's tables as they may be."""
    for version in ("v1", "v2"):
        save(store, version, runs=2, ranks=2, ops=OPS, of_run={"tags": {"image": "a"}, "configuration": {"tp": "2"}})
    last = save(store, "v3", ops=OPS)
    edits.delete_all(store, last, "wrong", purge=True)
    return store


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_copy_holds_the_same_rows_and_goes_on_numbering(filled, kind, request, tmp_path):
    url = f"sqlite:///{tmp_path / 'copy.db'}"
    if kind == "postgres":
        url = request.getfixturevalue("postgres_server").migrated_database()
    before = everything(filled)
    said = []
    with open_store(url) as copied:
        counts = copying.copy(filled, copied, on_progress=lambda *told: said.append(told))
        assert everything(copied) == before
        assert counts == {name: len(rows) for name, rows in before.items() if rows}
        assert said[-1][1:] == (sum(counts.values()), sum(counts.values()))
        assert save(copied, "v3", ops=OPS) == [6], "5 was a run that was purged, and means no other one"


def test_postgres_knows_the_size_of_what_was_copied(memory_store, postgres_server):
    """Without that it would plan as if the tables were empty."""
    save(memory_store, "v1", runs=3, ops=OPS)
    with open_store(postgres_server.migrated_database()) as copied:
        counts = copying.copy(memory_store, copied)
        with copied.connect() as connection:
            told = connection.exec_driver_sql("SELECT reltuples FROM pg_class WHERE relname = 'sample'").scalar_one()
    assert told == counts["sample"] > 0


def test_rows_that_are_large_are_read_few_at_a_time(filled, tmp_path, monkeypatch):
    monkeypatch.setattr(copying, "_PACKED_AT_ONCE", 3)
    said = []
    with open_store(str(tmp_path / "copy.db")) as copied:
        copying.copy(filled, copied, on_progress=lambda table, *_: said.append(table))
        assert everything(copied) == everything(filled)
    assert said.count("op_tree") == 3, "of 8 rows, for 4 runs of 2 ranks"
    assert said.count("sample_array") == 2
    assert said.count("op") == 1, "of 16 rows"


def test_rows_are_never_mixed(filled, tmp_path):
    with open_store(str(tmp_path / "copy.db")) as copied:
        save(copied, ops=OPS)
        before = everything(copied)
        with pytest.raises(StoreError, match=r"holds rows in detail_text; copy into a new, empty database"):
            copying.copy(filled, copied)
        assert everything(copied) == before


def test_a_copy_that_breaks_off_leaves_nothing(filled, tmp_path):
    def break_off(table, done, total):
        if table == "sample":
            raise KeyboardInterrupt

    with open_store(str(tmp_path / "copy.db")) as copied:
        with pytest.raises(KeyboardInterrupt):
            copying.copy(filled, copied, on_progress=break_off)
        assert not any(everything(copied).values())
