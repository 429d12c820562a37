"""Chosen runs against others: the same verdicts as those of the history, wherever the runs are."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from tests.regressions.made import runs
from tracker.judgement import lines_of, update, verdicts_of
from tracker.store import open_store

OP07 = ("op", "device_self_ns", "op07", "", "")
STEP = ("run", "duration_ns", "step", "", "")


def words(found, kind="op"):
    table = found.table.loc[kind]
    table = table[~table["verdict"].isin(["UNCHANGED", "BELOW_LIMIT", "DRIFT", "TOO_FEW_RUNS", "INCONCLUSIVE"])]
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
    assert found.table.loc[STEP, "verdict"] == "DRIFT"


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


def jumps(store, version, levels, *, start):
    """A run per level: op07 takes so many ms."""
    return [
        runs(store, version, {"op07": float(level)}, count=1, start=start + at)[0] for at, level in enumerate(levels)
    ]


def verdict_of(found, key=OP07):
    return tuple(found.table.loc[key, ["verdict", "reason"]])


BOTH_LEVELS = "jumps between two levels in older runs, 1.00 ms and 2.00 ms"


def test_an_op_that_jumps_between_two_levels_in_older_runs_is_unclear_on_either_of_them(store):
    jumps(store, "v1", [1, 2, 1, 2], start=0)
    before = jumps(store, "v2", [1, 1, 1, 1], start=4)
    after = jumps(store, "v3", [2, 2, 2], start=8)
    for one, other in ((before, after), (after, before)):
        verdict, reason = verdict_of(verdicts_of(store, one, other))
        assert verdict == "INCONCLUSIVE"
        assert reason == BOTH_LEVELS
    again = jumps(store, "v4", [1], start=11)
    assert verdict_of(verdicts_of(store, after, again))[0] == "INCONCLUSIVE"  # as a suspicion, too


def test_an_op_beyond_both_of_its_levels_is_regressed(store):
    jumps(store, "v1", [1, 2, 1, 2, 1, 2], start=0)
    before, after = jumps(store, "v2", [2, 2, 2], start=6), jumps(store, "v3", [3, 3, 3], start=9)
    assert verdict_of(verdicts_of(store, before, after))[0] == "REGRESSED"


def test_an_op_that_once_became_faster_and_goes_back_is_regressed(store):
    jumps(store, "v1", [2, 2, 2, 2], start=0)
    before, after = jumps(store, "v2", [1, 1, 1, 1], start=4), jumps(store, "v3", [2, 2, 2], start=8)
    assert verdict_of(verdicts_of(store, before, after))[0] == "REGRESSED"


def test_a_step_that_only_a_jumping_op_would_explain_is_no_finding(store):
    """op07 jumps between 2 and 40 ms beside 39 of 1 ms each: nothing else says that the code became slower."""
    jumps(store, "v1", [2, 40, 2, 40, 2, 40], start=0)
    before, after = jumps(store, "v2", [2, 2, 2], start=6), jumps(store, "v3", [40, 40, 40], start=9)
    found = verdicts_of(store, before, after)
    assert words(found) == {}
    assert found.table.loc[STEP, "verdict"] == "INCONCLUSIVE"


def test_runs_with_an_open_regression_are_no_level_to_jump_to(store):
    """Five good runs, and twice a regression that was taken back: the third time it is one again."""
    start = 0
    for at, level in enumerate([1, 2, 1, 2, 1]):
        jumps(store, f"v{at}", [level] * 5, start=start)
        start += 5
    update(store, lines_of(store))
    before, after = list(range(21, 26)), jumps(store, "v5", [2, 2, 2], start=start)
    assert verdict_of(verdicts_of(store, before, after))[0] == "REGRESSED"


def test_files_elsewhere_know_the_older_runs_of_what_they_are_compared_with(store):
    jumps(store, "v1", [1, 2, 1, 2], start=0)
    before = jumps(store, "v2", [1, 1, 1, 1], start=4)
    with open_store("sqlite://") as other:
        after = jumps(other, "v3", [2, 2, 2], start=8)
        there = verdicts_of(store, before, after, candidate_store=other)
        back = verdicts_of(other, after, before, candidate_store=store)
    assert [verdict_of(found)[0] for found in (there, back)] == ["INCONCLUSIVE", "INCONCLUSIVE"]


def test_a_change_to_a_level_from_somewhere_else_is_no_jump(store):
    jumps(store, "v1", [1, 2, 1, 2, 1, 2], start=0)
    before, after = jumps(store, "v2", [3, 3, 3], start=6), jumps(store, "v3", [2, 2, 2], start=9)
    assert verdict_of(verdicts_of(store, before, after))[0] == "IMPROVED"


def test_levels_that_held_for_whole_versions_are_steps_and_no_jumps(store):
    jumps(store, "v1", [1.02] * 6, start=0)
    jumps(store, "v2", [1.05] * 6, start=6)
    before, after = jumps(store, "v3", [1.02] * 6, start=12), jumps(store, "v4", [1.07] * 3, start=18)
    assert verdict_of(verdicts_of(store, before, after))[0] == "REGRESSED"
