"""The judgement in the database follows what happens to runs and versions, and touches no more than that."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from tests.regressions.made import runs
from tracker.regressions.judgement import tracks_of, update
from tracker.store import open_store
from tracker.store import runs as edits
from tracker.store.versions import order_versions

TABLES = (
    "SELECT v.label, s.kind, s.name, d.verdict, d.decided, d.reason, ROUND(CAST(d.judged_change AS NUMERIC), 9), "
    "l.label FROM verdict AS d INNER JOIN series AS s ON d.series_id = s.id INNER JOIN version AS v "
    "ON d.version_id = v.id LEFT JOIN version AS l ON d.level_version_id = l.id ORDER BY v.ordinal, s.id",
    "SELECT s.kind, s.name, f.direction, f.how, v.label, f.state, f.reference_runs, f.new_runs, f.value_before, "
    "f.value_after FROM finding AS f INNER JOIN series AS s ON f.series_id = s.id INNER JOIN version AS v "
    "ON f.first_version_id = v.id WHERE f.state <> 'withdrawn' ORDER BY v.ordinal, s.id, f.direction, f.how",
    "SELECT v.label, j.runs, j.base_runs, j.step_verdict, j.net, j.peak, j.levels FROM judged_version AS j "
    "INNER JOIN version AS v ON j.version_id = v.id ORDER BY v.ordinal",
    "SELECT v.label, s.name, f.what, f.value_before, f.value_after FROM fact AS f INNER JOIN series AS s "
    "ON f.series_id = s.id INNER JOIN version AS v ON f.version_id = v.id ORDER BY v.ordinal, s.id, f.what",
)


def judge(store):
    return update(store, tracks_of(store))


def rows(store, question):
    with store.connect() as connection:
        return [tuple(row) for row in connection.execute(text(question))]


def everything(store):
    return [rows(store, question) for question in TABLES]


def changes(store):
    """Operators whose verdict is a change or a suspicion: version, name, verdict."""
    return [
        (row[0], row[2], row[4] or row[3])
        for row in rows(store, TABLES[0])
        if row[1] == "op" and (row[4] or row[3]) in ("REGRESSED", "IMPROVED", "ADDED", "REMOVED", "SUSPECT")
    ]


def found(store):
    """Findings of operators: name, direction, how, first version, state."""
    return [row[1:6] for row in rows(store, TABLES[1]) if row[0] == "op"]


def story(store):
    """op07 is slow in v2 and v3; gelu comes in v3 for good; v4 is 30 % slower as a whole: the machine."""
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.5}, start=3)
    runs(store, "v3", {"op07": 1.5, "gelu": 5_000_000}, start=6)
    runs(store, "v4", {"gelu": 5_000_000}, start=9, shared=1.3)


@pytest.mark.postgres
def test_what_changed_is_found_and_the_machine_is_not(store):
    story(store)
    assert judge(store) == 4
    assert found(store) == [
        ("op07", "regression", "level", "v2", "recovered"),
        ("gelu", "regression", "presence", "v3", "open"),
    ]
    steps = {row[0]: row[3] for row in rows(store, TABLES[2])}
    assert steps == {"v1": "TOO_FEW_RUNS", "v2": "UNCHANGED", "v3": "REGRESSED", "v4": "DRIFT"}


@pytest.mark.postgres
def test_version_by_version_gives_what_one_look_gives(store):
    story(store)
    judge(store)
    whole = everything(store)
    with store.begin() as connection:
        for table in ("verdict", "fact", "judged_version", "finding", "incident"):
            connection.execute(text(f"DELETE FROM {table}"))
    late = rows(store, "SELECT id FROM run ORDER BY id")
    edits.exclude_all(store, [row[0] for row in late], "all at first")
    for (run_id,) in late:
        edits.restore_all(store, [run_id])
        judge(store)
    assert everything(store) == whole


def test_doing_it_again_judges_nothing(store):
    story(store)
    judge(store)
    before = everything(store)
    assert judge(store) == 0
    assert everything(store) == before


def test_excluded_run_counts_again_when_it_is_restored(store):
    story(store)
    judge(store)
    before, numbers = everything(store), rows(store, "SELECT id FROM finding ORDER BY id")
    second = rows(store, "SELECT MIN(id) + 3 FROM run")[0][0]
    edits.exclude_all(store, [second], "another job on the node")
    assert judge(store) == 3, "v2, and those after it"
    edits.restore_all(store, [second])
    judge(store)
    assert everything(store) == before
    assert rows(store, "SELECT id FROM finding ORDER BY id") == numbers


def test_moved_version_comes_back_as_it_was(store):
    story(store)
    judge(store)
    before = everything(store)
    order_versions(store, ["v1", "v3", "v2", "v4"])
    judge(store)
    assert found(store)[0][:4] == ("op07", "regression", "level", "v3")
    order_versions(store, ["v1", "v2", "v3", "v4"])
    judge(store)
    assert everything(store) == before


@pytest.mark.postgres
def test_one_run_a_version_waits_for_two_more(store):
    for at in range(5):
        runs(store, f"v{at}", start=at, count=1)
    for at in range(5, 7):
        runs(store, f"v{at}", {"op07": 1.5}, start=at, count=1)
        judge(store)
    assert changes(store) == [("v5", "op07", "SUSPECT"), ("v6", "op07", "SUSPECT")]
    runs(store, "v7", {"op07": 1.5}, start=7, count=1)
    judge(store)
    assert found(store) == [("op07", "regression", "level", "v5", "open")]
    assert changes(store)[0] == ("v5", "op07", "REGRESSED")


def test_withdrawn_finding_gets_its_number_back(store):
    runs(store, "v1")
    late = runs(store, "v2", {"op07": 1.5}, start=3)
    judge(store)
    numbers = rows(store, "SELECT id, state FROM finding ORDER BY id")
    edits.exclude_all(store, late, "a wrong build")
    assert judge(store) == 0
    assert {state for _, state in rows(store, "SELECT id, state FROM finding")} == {"withdrawn"}
    edits.restore_all(store, late)
    judge(store)
    assert rows(store, "SELECT id, state FROM finding ORDER BY id") == numbers


def test_relabelled_run_leaves_its_track(store):
    runs(store, "v1")
    moved = runs(store, "v2", {"op07": 1.5}, start=3)
    judge(store)
    edits.edit_all(store, moved, workload="bert")
    judge(store)
    assert found(store) == []
    assert [row[0] for row in rows(store, TABLES[2])] == ["v1", "v2"]


def test_runs_without_samples_get_them(store):
    runs(store, "v1")
    with store.begin() as connection:
        connection.execute(text("DELETE FROM sample"))
        connection.execute(text("UPDATE run SET sample_rules = NULL"))
    runs(store, "v2", {"op07": 1.5}, start=3)
    judge(store)
    assert changes(store) == [("v2", "op07", "REGRESSED")]


def test_other_settings_of_the_profiler_are_no_change_of_the_step(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 9.0}, start=3, settings={"with_stack": "on"})
    judge(store)
    assert changes(store) == [("v2", "op07", "REGRESSED")], "a time of the device does not rest on Python stacks"
    (step,) = [row for row in rows(store, TABLES[0]) if row[0] == "v2" and row[2] == "step"]
    assert (step[3], step[5]) == ("TOO_FEW_RUNS", "SETTINGS")


@pytest.mark.postgres
def test_those_who_judge_at_once_judge_each_version_once(store, database_url):
    story(store)

    def work(_):
        with open_store(database_url, create=False) as own:
            return judge(own)

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(work, range(3))) == 4


@pytest.mark.postgres
def test_runs_that_come_while_others_are_judged_are_judged_as_well(store, database_url):
    def work(at):
        with open_store(database_url, create=False) as own:
            for start in range(3 * at, 3 * at + 3):
                runs(own, f"v{at}", {"op07": 1.0 + at % 2 / 2}, start=start, count=1)
                judge(own)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(6)))
    at_once = everything(store)
    assert judge(store) == 0
    with store.begin() as connection:
        for table in ("judged_version", "verdict", "fact", "finding"):
            connection.execute(text(f"DELETE FROM {table}"))
    assert judge(store) == 6
    assert everything(store) == at_once


def words_of(store, name, kind="op"):
    return [row[4] or row[3] for row in rows(store, TABLES[0]) if row[1:3] == (kind, name)]


def test_suspects_that_came_back_are_decided_in_each_version(store):
    """op07 is slow in v5 to v8 and back since v9, a run each: one regression, one improvement, no suspect left."""
    for at in range(12):
        runs(store, f"v{at:02}", {"op07": 1.5} if 5 <= at < 9 else None, start=at, count=1)
        judge(store)
    assert words_of(store, "op07")[-7:] == [*["REGRESSED"] * 3, "UNCHANGED", *["IMPROVED"] * 2, "UNCHANGED"]
