"""A number that no row can have is unknown like any other; no database is asked for it."""

from __future__ import annotations

import pytest

from tests.factories import save
from tracker.errors import UsageError
from tracker.store import queries

HUGE = [2**63, 10**30, -(10**30)]


@pytest.mark.parametrize("number", HUGE)
def test_a_run_that_cannot_be_is_unknown(store, number):
    save(store)
    with pytest.raises(UsageError, match=f"there is no run {number}; tracker runs lists them"):
        queries.require_run(store, number)
    assert queries.runs_by_id(store, [1, number]).frame["run_id"].tolist() == [1]
    assert queries.captures(store, [1, number]).frame["run_id"].tolist() == [1]
    assert queries.ops(store, [number]).frame.empty
    assert queries.ops(store, [1], ranks=[number]).frame.empty


@pytest.mark.parametrize("offset", [1, 2**63, 10**30])
def test_there_are_not_that_many_runs(store, offset):
    save(store)
    with pytest.raises(UsageError, match=f"latest~{offset}: there are not that many active runs; tracker runs"):
        queries.latest(store, offset)


def test_a_list_of_at_most_very_many_runs_is_all_of_them(store):
    save(store)
    assert queries.runs(store, limit=10**30).frame["run_id"].tolist() == [1]
