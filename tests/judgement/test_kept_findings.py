"""Findings in the database rest on the active runs alone: what is taken away and put back leaves no trace."""

from __future__ import annotations

from contextlib import ExitStack
from unittest.mock import patch

import pytest
from sqlalchemy import text

from tests.judgement.test_checkpoints import SHORT
from tests.judgement.test_update import judge
from tests.regressions.made import runs
from tracker.judgement import Wish, act, explain, findings, lines_of
from tracker.judgement.basis import basis_of
from tracker.judgement.follow import Checkpoint
from tracker.judgement.follow.state import decoded
from tracker.judgement.keep import made_findings
from tracker.store import findings as stored
from tracker.store import judged
from tracker.store import runs as edits
from tracker.store.order import order_versions

pytestmark = pytest.mark.slow

EVENTS = (
    "SELECT f.id, s.name, f.direction, f.change, f.state, f.first_run_id, e.position, e.kind, e.run_id, e.reason "
    "FROM finding AS f INNER JOIN series AS s ON f.series_id = s.id "
    "INNER JOIN finding_event AS e ON e.finding_id = f.id ORDER BY f.id, e.position"
)


def kept(store):
    with store.connect() as connection:
        return connection.execute(text(EVENTS)).all()


def test_a_run_that_is_excluded_and_restored_leaves_the_findings_as_they_were(store):
    runs(store, "v1", count=5)
    slow = runs(store, "v2", {"op07": 1.3}, start=5)
    runs(store, "v3", start=8)
    judge(store)
    before = kept(store)
    confirmed = [row for row in before if row.name == "op07" and row.kind == "confirmed"]
    assert {(row.direction, row.first_run_id, row.run_id) for row in confirmed} == {("regression", slow[0], slow[1])}
    edits.exclude_all(store, slow[1:], "another job on the node")
    judge(store)
    assert not [row for row in kept(store) if row.name == "op07" and row.kind == "confirmed"], "one run is none"
    edits.restore_all(store, slow[1:])
    judge(store)
    assert kept(store) == before, "with their numbers"


def test_a_finding_that_another_run_of_its_version_raises_keeps_its_number(store):
    """The first of four slow runs is taken away: the second one raises it now. Then it is put back."""
    runs(store, "v1", count=5)
    slow = runs(store, "v2", {"op07": 1.3}, start=5, count=4)
    judge(store)
    before = kept(store)
    numbers = {row.name: row.id for row in before if row.name == "op07"}
    edits.exclude_all(store, slow[:1], "cold start")
    judge(store)
    assert {row.name: row.id for row in kept(store) if row.name == "op07"} == numbers
    assert {row.first_run_id for row in kept(store) if row.name == "op07"} == {slow[1]}
    edits.restore_all(store, slow[:1])
    judge(store)
    assert kept(store) == before


def test_versions_in_another_order_and_back_leave_every_number_as_it_was(store):
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 1.3}, start=5)
    runs(store, "v3", {"op07": 1.3, "op09": 1.5}, start=8)
    judge(store)
    before, incidents = kept(store), findings(store).incidents["incident_id"].tolist()
    order_versions(store, ["v2", "v1", "v3"])
    judge(store)
    assert kept(store) != before
    order_versions(store, ["v1", "v2", "v3"])
    judge(store)
    assert kept(store) == before
    assert findings(store).incidents["incident_id"].tolist() == incidents


def test_findings_made_from_the_database_twice_are_the_same(store):
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 1.3}, start=5)
    judge(store)
    (line,) = lines_of(store)
    with store.connect() as connection:
        made = [made_findings(connection, line, basis_of(connection, line)).findings for _ in range(2)]
    assert made[0] == made[1]
    assert len(made[0]) >= 1


def test_findings_made_from_a_checkpoint_are_those_made_from_nothing(store):
    """Run by run, with what a user does and a run that is excluded between them."""
    runs(store, "v1", count=5)
    for number in range(5, 10):
        runs(store, "v2", {"op07": 1.3}, count=1, start=number)
        judge(store)
        if number == 8:
            rows = findings(store).findings
            act(store, Wish("ack", "ann", 1, "seen"), finding_ids=[int(rows["finding_id"].iloc[0])])
    edits.exclude_all(store, [7], "noisy")
    judge(store)
    runs(store, "v3", {"op07": 1.3, "op09": 0.5}, count=1, start=10)
    judge(store)
    (line,) = lines_of(store)
    with store.connect() as connection:
        basis = basis_of(connection, line)
        known = Checkpoint(*stored.checkpoint_of(connection, line))
        resumed = made_findings(connection, line, basis, known=known).findings
        made = made_findings(connection, line, basis)
        whole, kept = made.findings, made.checkpoint
    assert known.runs == len(basis.runs) - 1, "before the newest version, of which one run is there"
    assert (resumed, kept) == (whole, known)
    assert {finding.columns["state"] for finding in whole} >= {"acknowledged", "suspect"}


def table(store):
    """All findings as they are stored, with their events."""
    with store.connect() as connection:
        found = connection.execute(text("SELECT * FROM finding ORDER BY id")).mappings().all()
        events = connection.execute(text("SELECT * FROM finding_event ORDER BY finding_id, position")).all()
    return [dict(row) for row in found], events


def whole_again(store):
    """The same, made from the first run on."""
    with store.begin() as connection:
        connection.execute(text("UPDATE followed SET fingerprint = :none, checkpoint = NULL"), {"none": b"0" * 16})
    judge(store)
    return table(store)


@pytest.mark.slow
def test_what_ended_stays_as_it_is_where_less_than_the_line_is_read(store):
    """By rules that look back less far: op07 is slower for good, op09 for one version, op11 in one run; some runs have
    stacks. Then a run is excluded, and what ended long ago is called invalid.
    """
    stack = {"settings": {"with_stack": "on"}}
    with ExitStack() as entered:
        for name, value in SHORT.items():
            entered.enter_context(patch(name, value))
        firsts = []
        for at in range(20):
            slower = {"op07": 1.3} if at > 2 else {}
            slower |= {"op09": 1.5} if at in (5, 14) else {"op11": 1.4} if at == 8 else {}
            more = stack if at in (6, 7, 13) else {}
            runs(store, f"v{at}", slower, count=1 if at == 8 else 2, start=2 * at, **more)
            judge(store)
            if at % 5 == 4:
                (line,) = lines_of(store)
                with store.connect() as connection:
                    runs_now = judged.runs_of(connection, line)
                    firsts.append(decoded(stored.checkpoint_of(connection, line)[2]).older.first)
                assert table(store) == whole_again(store)
        assert firsts[-1] > 10, "the first runs are not read"
        ended = [row for row in table(store)[0] if row["state"] in ("normal", "recovered")]
        assert ended and ended[0]["first_run_id"] < firsts[-1]
        edits.exclude_all(store, [runs_now[-3].run_id], "noisy")
        judge(store)
        assert table(store) == whole_again(store)
        over = [row["id"] for row in ended if row["state"] != "normal"]
        act(store, Wish("invalid", "ann", 1, "none"), finding_ids=over[:1])
        runs(store, "v20", {"op07": 1.3}, start=50)
        judge(store)
        assert table(store) == whole_again(store)


def test_a_number_that_once_meant_a_finding_or_an_incident_never_means_another(store):
    """All runs of a configuration are removed for good, and with them its findings; those of another one come later."""
    told = []
    for batch in ("32", "64"):
        ids = runs(store, "v1", count=5, of_run={"configuration": {"batch": batch}})
        ids += runs(store, "v2", {"op07": 1.3}, start=5, of_run={"configuration": {"batch": batch}})
        judge(store)
        found = findings(store)
        told.append((set(found.findings["finding_id"]), set(found.incidents["incident_id"])))
        edits.delete_all(store, ids, "another job", purge=True)
    (first, incidents), (second, later) = told
    assert first and second and not first & second
    assert incidents and later and not incidents & later


def test_what_runs_without_a_clock_did_has_no_time(store):
    """The same runs, in the order in which they came, with and without a clock: the same story but for its times."""
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 1.3}, start=5)
    judge(store)
    before = kept(store)
    with store.begin() as connection:
        connection.execute(text("UPDATE run SET started_at_ns = NULL"))
        connection.execute(text("UPDATE followed SET fingerprint = :none, checkpoint = NULL"), {"none": b""})
    judge(store)
    assert kept(store) == before
    with store.connect() as connection:
        times = connection.execute(text("SELECT DISTINCT when_ns FROM finding_event")).scalars().all()
        (line,) = judged.lines(connection)
        assert {run.started_at_ns for run in judged.runs_of(connection, line)} == {None}
    assert times == [None]
    found = next(row.id for row in before if row.name == "op07" and row.kind == "confirmed")
    shown = explain(store, found)
    assert shown.events["when_ns"].isna().all() and shown.runs["started_at_ns"].isna().all()
