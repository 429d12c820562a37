"""What a database driver says, and what of it is meant."""

from __future__ import annotations

import psycopg
import pytest

from tracker.store.failures import explain, is_crowded

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
    known = explain(error, "db")
    assert (known and known.problem) == (told and f"db: {told} ({error})")
