"""Schema 0025 has one incident per version; before, what got worse and what got better with it were two."""

from __future__ import annotations

from alembic import command
from sqlalchemy import text

from tests.judgement.made import runs
from tests.judgement.test_findings import follow
from tracker.store import connect, health, open_store, schema

INCIDENTS = "SELECT id, direction FROM incident ORDER BY id"
OF_FINDINGS = "SELECT f.id, f.direction, f.incident_id FROM finding AS f WHERE f.incident_id IS NOT NULL ORDER BY f.id"


def downgraded(url):
    with connect.open_engine(url).begin() as connection:
        command.downgrade(schema.alembic_config(connection), "0024")


def rows(url, question):
    with connect.open_engine(url).connect() as connection:
        return [tuple(row) for row in connection.execute(text(question))]


def made(url):
    """v2: op07 takes twice as long, op09 half; v3: as v1."""
    with open_store(url) as store:
        runs(store, "v1", count=5)
        runs(store, "v2", {"op07": 2.0, "op09": 0.5}, start=5)
        follow(store)
    return rows(url, OF_FINDINGS)


def test_two_incidents_of_a_version_become_that_of_what_got_worse(empty_url):
    before = made(empty_url)
    assert {number for *_, number in before} == {1}
    downgraded(empty_url)
    assert rows(empty_url, INCIDENTS) == [(1, "regression"), (2, "improvement")]
    numbers = {direction: number for _, direction, number in rows(empty_url, OF_FINDINGS)}
    assert numbers == {"regression": 1, "improvement": 2}
    assert connect.upgrade(empty_url) == ("0024", schema.SCHEMA_HEAD)
    assert rows(empty_url, OF_FINDINGS) == before
    with open_store(empty_url) as store:
        assert health.check(store) == []


def test_the_number_of_the_other_one_is_never_given_again(empty_url):
    made(empty_url)
    downgraded(empty_url)
    connect.upgrade(empty_url)
    with open_store(empty_url) as store:
        runs(store, "v3", start=8)
        runs(store, "v4", {"op11": 2.0}, start=11)
        follow(store)
    numbers = {number for *_, number in rows(empty_url, OF_FINDINGS)}
    assert 2 not in numbers and len(numbers) == 2


def test_an_incident_of_what_got_better_alone_keeps_its_direction(empty_url):
    with open_store(empty_url) as store:
        runs(store, "v1", count=5)
        runs(store, "v2", {"op09": 0.5}, start=5)
        follow(store)
    downgraded(empty_url)
    assert rows(empty_url, INCIDENTS) == [(1, "improvement")]
    connect.upgrade(empty_url)
    assert {number for *_, number in rows(empty_url, OF_FINDINGS)} == {1}
