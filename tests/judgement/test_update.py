"""`diff_history` follows what happens to runs and versions, and touches no more than that."""

from __future__ import annotations

import pandas as pd
import pytest
from sqlalchemy import text

from tests.conftest import count_rows
from tests.factories import same_table
from tests.judgement.test_verdicts import OP07, jumps, verdict_of
from tests.regressions.made import runs
from tracker.judgement import lines_of, update
from tracker.judgement.verdicts import verdicts_of
from tracker.store import runs as edits
from tracker.store.order import order_versions

TABLE = (
    "SELECT v.label AS version, s.kind, s.name, d.runs, d.baseline_diff, d.baseline_verdict AS verdict, "
    "d.calls_verdict, d.pinned_diff, d.pinned_verdict, d.best_diff, d.best_verdict FROM diff_history AS d "
    "INNER JOIN series AS s ON d.series_id = s.id INNER JOIN version AS v ON d.version_id = v.id "
    "ORDER BY v.ordinal, s.kind, s.name"
)


def judge(store) -> int:
    return update(store, lines_of(store))


def table(store, **wanted) -> pd.DataFrame:
    with store.connect() as connection:
        found = pd.read_sql(text(TABLE), connection)
    for column, value in wanted.items():
        found = found[found[column] == value]
    return found.reset_index(drop=True)


def findings(store) -> pd.DataFrame:
    found = table(store, kind="op")
    return found[
        ~found["verdict"].isin(["UNCHANGED", "BELOW_LIMIT", "DRIFT", "TOO_FEW_RUNS", "INCONCLUSIVE"])
    ].reset_index(drop=True)


@pytest.mark.postgres
def test_a_slower_op_is_regressed_and_the_others_are_not(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.2}, start=3)
    assert judge(store) == 2
    same_table(findings(store), "version name runs verdict calls_verdict\n v2 op07 3 REGRESSED UNCHANGED")
    (diff,) = findings(store)["baseline_diff"]
    assert diff == pytest.approx(0.2, abs=0.02)


def test_what_all_operators_share_is_the_machine_and_taken_out(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.2}, start=3, shared=1.3)
    judge(store)
    same_table(findings(store), "version name verdict\n v2 op07 REGRESSED")
    with store.connect() as connection:
        centres = connection.execute(text("SELECT centre FROM judged ORDER BY version_id")).scalars().all()
    assert centres[0] is None
    assert centres[1] == pytest.approx(0.262, abs=0.01)  # ln 1.3


def test_added_and_removed_ops_are_findings(store):
    runs(store, "v1")
    runs(store, "v2", {"gelu": 5_000_000}, start=3, without=("op03",))
    judge(store)
    same_table(findings(store), "version name runs verdict\n v2 gelu 3 ADDED\n v2 op03 0 REMOVED")


def test_one_new_run_makes_a_suspect_and_the_next_ones_a_finding(store):
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 1.2}, start=5, count=1)
    judge(store)
    same_table(findings(store), "version name runs verdict\n v2 op07 1 SUSPECT")
    runs(store, "v2", {"op07": 1.2}, start=6, count=2)
    assert judge(store) == 1
    same_table(findings(store), "version name runs verdict\n v2 op07 3 REGRESSED")


@pytest.mark.postgres
def test_doing_it_again_changes_nothing(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.2}, start=3)
    judge(store)
    before = table(store)
    assert judge(store) == 0
    pd.testing.assert_frame_equal(table(store), before)


def test_the_order_of_ingest_does_not_matter_once_the_order_of_versions_is_said(store):
    runs(store, "v2", {"op07": 1.2}, start=3)
    runs(store, "v1")
    judge(store)
    same_table(findings(store), "version name verdict\n v1 op07 IMPROVED")
    assert order_versions(store, ["v1", "v2"]) == ["v1", "v2"]
    judge(store)
    same_table(findings(store), "version name verdict\n v2 op07 REGRESSED")


def test_only_versions_that_rest_on_a_change_are_judged_again(store):
    for number in range(4):
        runs(store, f"v{number}", start=3 * number)
    assert judge(store) == 4
    runs(store, "v2", start=20, count=1)
    assert judge(store) == 2, "v2 itself, and v3, which has it before it"


def test_an_excluded_run_rests_on_nothing_until_it_is_restored(store):
    runs(store, "v1")
    bad = runs(store, "v2", {"op07": 3.0}, start=3, count=1)
    runs(store, "v2", start=4)
    judge(store)
    before = table(store)
    edits.exclude_all(store, bad, "another job on the node")
    assert judge(store) == 1
    assert findings(store).empty
    assert set(table(store, kind="op")["runs"]) == {3}
    edits.restore_all(store, bad)
    judge(store)
    pd.testing.assert_frame_equal(table(store), before)


def test_a_version_whose_runs_are_gone_is_forgotten_and_the_next_one_looks_past_it(store):
    runs(store, "v1")
    middle = runs(store, "v2", {"op07": 1.2}, start=3)
    runs(store, "v3", {"op07": 1.2}, start=6)
    judge(store)
    edits.delete_all(store, middle, "wrong machine")
    judge(store)
    same_table(findings(store), "version name verdict\n v3 op07 REGRESSED")
    edits.delete_all(store, middle, "for good", purge=True)
    judge(store)
    assert sorted(set(table(store)["version"])) == ["v3"]
    assert count_rows(store)["judged"] == 2


@pytest.mark.postgres
def test_relabelling_moves_what_rests_on_a_run(store):
    runs(store, "v1")
    moved = runs(store, "v2", {"op07": 1.2}, start=3)
    judge(store)
    edits.edit_all(store, moved, workload="bert")
    judge(store)
    assert table(store).empty, "each workload has one version now"


def test_every_version_is_judged_against_the_pinned_one(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.2}, start=3)
    runs(store, "v3", {"op07": 1.2}, start=6)
    judge(store)
    assert table(store, kind="op")["pinned_verdict"].isna().all()
    edits.pin(store, "v1")
    assert judge(store) == 2, "the pinned one itself rests on nothing new"
    same_table(
        table(store, kind="op", name="op07"),
        "version verdict pinned_verdict\n v2 REGRESSED REGRESSED\n v3 REGRESSED REGRESSED",
    )


def test_small_steps_that_add_up_are_a_creep_against_the_best_version(store):
    for number in range(8):
        runs(store, f"v{number}", {"op07": 1.02**number}, start=4 * number, count=4)
    judge(store)
    assert not (findings(store)["name"] == "op07").any(), "no single step of 2 % is a finding"
    last = table(store, version="v7", kind="op", name="op07")
    same_table(last, "best_verdict\n REGRESSED")
    assert last["best_diff"][0] == pytest.approx(1.02**6 - 1, abs=0.02)  # v0 to v2 are the best level, v1 its middle


def test_a_slower_step_is_a_finding_where_its_ops_explain_it(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 5.0}, start=3)
    runs(store, "v3", start=6, shared=1.2)
    judge(store)
    same_table(
        table(store, kind="run", name="step"), "version runs verdict\n v2 3 REGRESSED\n v3 3 DRIFT"
    )  # v2: 4 of 44 ms, by op07; v3: the machine


def test_runs_of_before_there_were_samples_get_them(store):
    runs(store, "v1")
    with store.begin() as connection:
        connection.execute(text("DELETE FROM sample"))
        connection.execute(text("UPDATE run SET sample_rules = NULL"))
    runs(store, "v2", {"op07": 1.2}, start=3)
    assert judge(store) == 2
    same_table(findings(store), "version name verdict\n v2 op07 REGRESSED")


@pytest.mark.postgres
def test_two_that_judge_at_once_write_each_version_once(store, database_url):
    from concurrent.futures import ThreadPoolExecutor

    from tracker.store import open_store

    for number in range(3):
        runs(store, f"v{number}", start=3 * number, count=2)

    def work(_):
        with open_store(database_url, create=False) as own:
            return judge(own)

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(work, range(3))) == 3
    assert count_rows(store)["judged"] == 3


def word_of(found, version, key=OP07):
    """What the table says of a series against the version before."""
    own = found[(found["version"] == version) & (found["kind"] == key[0]) & (found["name"] == key[2])]
    return own["verdict"].iloc[0]


def test_what_jumps_between_two_levels_is_told_as_a_diff_tells_it(store):
    """op07 takes 1 or 2 ms by chance: 2 ms in all runs of v3 are no regression."""
    jumps(store, "v1", [1, 2, 1, 2], start=0)
    before = jumps(store, "v2", [1, 1, 1, 1], start=4)
    after = jumps(store, "v3", [2, 2, 2], start=8)
    edits.pin(store, "v2")
    judge(store)
    found = table(store)
    assert word_of(found, "v3") == verdict_of(verdicts_of(store, before, after))[0] == "INCONCLUSIVE"
    assert (found[found["version"] == "v3"]["pinned_verdict"] == "REGRESSED").sum() == 0


def test_a_regression_that_comes_back_is_one_again_and_no_jump(store):
    """Twice 2 ms for a whole version, and taken back: no levels between which chance decides."""
    for at, level in enumerate([1, 1, 2, 1]):
        jumps(store, f"v{at}", [level] * 3, start=3 * at)
    after = jumps(store, "v4", [2, 2, 2], start=12)
    judge(store)
    assert word_of(table(store), "v4") == "REGRESSED"
    assert verdict_of(verdicts_of(store, list(range(10, 13)), after))[0] == "REGRESSED"
