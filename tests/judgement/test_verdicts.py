"""Chosen runs against others: the same verdicts as those of the history, wherever the runs are."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from tests.judgement.made import runs
from tracker.judgement import verdicts_of
from tracker.store import open_store

OP07 = ("op", "device_self_ns", "op07", "", "")
STEP = ("run", "duration_ns", "step", "", "")


def words(found, kind="op"):
    table = found.table.loc[kind]
    table = table[~table["verdict"].isin(["UNCHANGED", "TOO_FEW_RUNS", "UNCLEAR"])]
    return dict(zip(table.index.get_level_values("name"), table["verdict"], strict=True))


def test_a_slower_op_is_regressed_with_how_much_these_runs_would_have_shown(store):
    before, after = runs(store, "v1", count=5), runs(store, "v2", {"op07": 1.2}, start=5)
    found = verdicts_of(store, before, after)
    assert words(found) == {"op07": "REGRESSED"}
    row = found.table.loc[OP07]
    assert row["diff"] == pytest.approx(0.2, abs=0.02)
    assert row["q"] < 0.05
    assert 0 < row["detectable"] < 0.1  # 0.5 % noise
    assert row["contribution"] == pytest.approx(0.2 / 40, abs=0.001)  # one of 40 ops of the same size


def test_swapped_sides_mirror_the_verdicts(store):
    before, after = runs(store, "v1"), runs(store, "v2", {"op07": 1.2}, start=3)
    assert words(verdicts_of(store, after, before)) == {"op07": "IMPROVED"}


def test_one_new_run_makes_a_suspect(store):
    before, after = runs(store, "v1", count=5), runs(store, "v2", {"op07": 1.2}, start=5, count=1)
    assert words(verdicts_of(store, before, after)) == {"op07": "SUSPECT"}


def test_a_slower_machine_is_told_and_no_finding(store):
    before, after = runs(store, "v1"), runs(store, "v2", start=3, shared=1.1)
    found = verdicts_of(store, before, after)
    assert (words(found), words(found, "run")) == ({}, {})
    assert found.centre.shift == pytest.approx(0.0953, abs=0.01)  # ln 1.1
    assert "machine drift" in found.table.loc[STEP, "reason"]


def test_ops_that_came_and_went(store):
    before, after = runs(store, "v1"), runs(store, "v2", {"new": 2_000_000}, start=3, without=("op07",))
    assert words(verdicts_of(store, before, after)) == {"op07": "REMOVED", "new": "ADDED"}


def test_missing_samples_are_made_for_the_answer_and_nothing_is_written(store):
    before, after = runs(store, "v1"), runs(store, "v2", {"op07": 1.2}, start=3)
    whole = verdicts_of(store, before, after).table
    store.transact(lambda connection: connection.execute(text("DELETE FROM sample WHERE run_id = 2")))
    store.transact(lambda connection: connection.execute(text("UPDATE run SET sample_rules = NULL WHERE id = 2")))
    again = verdicts_of(store, before, after).table
    assert again["verdict"].equals(whole["verdict"])
    assert again.loc[OP07, "diff"] == pytest.approx(whole.loc[OP07, "diff"], rel=1e-9)
    with store.connect() as connection:
        assert connection.execute(text("SELECT COUNT(*) FROM sample WHERE run_id = 2")).scalar() == 0


def test_runs_of_two_databases_are_judged_by_the_names_of_their_series(store):
    before = runs(store, "v1")
    with open_store("sqlite://") as other:
        save_elsewhere = runs(other, "v2", {"op07": 1.2}, start=3)
        found = verdicts_of(store, before, save_elsewhere, candidate_store=other)
    assert words(found) == {"op07": "REGRESSED"}
