"""Nodes ingest their own ranks at the same time, into a server that has few connections: one run, as if one had."""

from __future__ import annotations

import random

import pytest
from sqlalchemy.engine import make_url

from tests.conftest import count_rows
from tests.load.conftest import rows, shared, sound
from tracker.intake import ingest
from tracker.store import open_store, queries

SAMPLES = """
    SELECT s.kind, s.name, m.value, m.calls, m.mean, m.min, m.max, m.share, m.rank_spread, m.steps
    FROM sample AS m INNER JOIN series AS s ON m.series_id = s.id ORDER BY s.kind, s.name, m.value
"""


@pytest.fixture
def crowded_url(request, database_url):
    """Connects to a database of this test as a user who gets that many connections and no more; SQLite knows no such
    limit.
    """

    def with_connections(count):
        if database_url.startswith("sqlite"):
            return database_url
        server = request.getfixturevalue("postgres_server")
        database = make_url(database_url).database
        role = f"node_{database}"
        server.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT {count}")

        def drop():
            server.drop(database_url)
            server.execute(f"DROP ROLE {role}")

        request.addfinalizer(drop)
        server.execute(f"ALTER DATABASE {database} OWNER TO {role}")
        with open_store(database_url) as store, store.begin() as connection:
            connection.exec_driver_sql(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
            connection.exec_driver_sql(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}")
        return make_url(database_url).set(username=role).render_as_string(hide_password=False)

    return with_connections


def form_one_run(world, store, url, *, ranks, processes):
    work = world.ranks(ranks)
    random.Random(7).shuffle(work)
    late = work[: ranks // 8]
    assert world.play(url, shared(work[ranks // 8 :], processes)) == ["done"] * processes
    assert world.play(url, shared(late, 2)) == ["done"] * 2
    assert queries.runs(store).frame["ranks"].tolist() == [ranks]
    assert queries.captures(store, queries.runs(store).frame["run_id"]).frame["rank"].tolist() == list(range(ranks))
    assert sound(store)
    with open_store("sqlite://") as alone:
        ingest(alone, [world.folder], version="v1", workload="load")
        assert rows(store, SAMPLES) == rows(alone, SAMPLES)
        expected = count_rows(alone) | {"advice": 1}  # which a database in memory does not keep
    assert count_rows(store) == expected


def test_ranks_of_many_processes_form_one_run_with_the_samples_of_one_ingest(world, store, crowded_url):
    form_one_run(world, store, crowded_url(20), ranks=16, processes=4)


@pytest.mark.slow
def test_200_ranks_of_16_processes_over_20_connections(world, store, crowded_url):
    form_one_run(world, store, crowded_url(20), ranks=200, processes=16)


@pytest.mark.slow
def test_more_processes_than_connections_wait_for_each_other(world, store, crowded_url):
    form_one_run(world, store, crowded_url(2), ranks=16, processes=6)
