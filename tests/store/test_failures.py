"""What a database driver says, and what of it is meant."""

from __future__ import annotations

import psycopg
import pytest
from sqlalchemy import bindparam, text
from sqlalchemy.exc import OperationalError

from tests.factories import save
from tracker.compare import show
from tracker.errors import StoreError
from tracker.store import open_store, queries
from tracker.store.failures import explain_failure, is_connection_lost, is_crowded

QUOTE = 'value "too many connections" of a note'


@pytest.mark.parametrize(
    ("error", "crowded", "told"),
    [
        (psycopg.OperationalError("FATAL: sorry, too many clients already"), True, "the server has no connection left"),
        (psycopg.errors.TooManyConnections("oh"), True, "the server has no connection left"),
        (psycopg.errors.LockNotAvailable(QUOTE), False, "another process keeps it locked"),
        (psycopg.errors.StringDataRightTruncation(QUOTE), False, None),
    ],
)
def test_an_error_that_quotes_a_note_is_no_lack_of_connections(error, crowded, told):
    assert is_crowded(error) == crowded
    known = explain_failure(error, "db")
    assert (known and known.problem) == (told and f"db: {told} ({error})")


def test_a_statement_that_the_driver_refuses_is_no_lack_of_a_server(store):
    """More parameters than a statement may have: no server is asked, and none is away."""
    many = [str(number) for number in range(70_000)]
    if store.dialect == "sqlite":
        pytest.skip("how many SQLite takes is a matter of how it was built")
    with pytest.raises(OperationalError) as raised, store.connect() as connection:
        connection.execute(text("SELECT 1 WHERE 'a' IN :many").bindparams(bindparam("many", expanding=True)),
                           {"many": many})  # fmt: skip
    assert not is_connection_lost(raised.value)


def test_a_server_that_goes_away_is_a_lost_connection(store):
    if store.dialect == "sqlite":
        pytest.skip("a file does not go away")
    gone = "the server is shutting down or starting|terminating connection due to administrator"  # psycopg 3.1
    with pytest.raises(StoreError, match=gone) as raised, store.connect() as connection, store.connect() as other:
        number = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        other.execute(text("SELECT pg_terminate_backend(:number)"), {"number": number})
        connection.execute(text("SELECT 1"))
    assert is_connection_lost(raised.value.__cause__)
    with pytest.raises(StoreError, match="cannot be reached"):
        open_store("postgresql://localhost:1/none")


@pytest.mark.slow
def test_more_numbers_than_a_statement_takes_are_asked_for_in_portions(store):
    """70,000 findings of which none is there, among them the only one that is."""
    save(store)
    many = range(1, 70_001)
    assert queries.findings(store, many) == []
    assert len(queries.series_verdicts(store, many)) == len(queries.series_facts(store, many)) == 0


@pytest.mark.parametrize("names", [("mm",), ("aa", "mm")])
def test_a_sum_that_no_number_holds_is_told_with_what_it_is_of(store, names):
    """Five steps of 2e18 ns: 1e19 is more than 2**63. SQLite says so of the first row at once, of others later."""
    times = {"aa": 1, "mm": 2 * 10**18}
    save(store, steps=5, ops=[(name, times[name]) for name in names])
    with pytest.raises(StoreError) as raised:
        queries.ops(store, [1], by=("run",))
    assert str(raised.value) == (
        f"{store.url}: a sum over rows of the table op is too large: 2**63 or more; ask for fewer ranks and steps"
    )
    with pytest.raises(StoreError, match=r"a sum .*is too large: 2\*\*63 or more; ask for fewer ranks and steps"):
        show(store, "run:1")
    assert len(queries.ops(store, [1], by=("run", "step")).frame) == 5 * len(names)


def test_a_table_that_another_version_did_not_make_is_one_sentence(store):
    with store.begin() as connection:
        connection.execute(text("DROP TABLE advice"))
    with (
        pytest.raises(StoreError, match="a table is missing: another version of tracker made it"),
        store.connect() as own,
    ):
        own.execute(text("SELECT run_id FROM advice"))
