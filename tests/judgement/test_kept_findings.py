"""Findings in the database rest on the active runs alone: what is taken away and put back leaves no trace."""

from __future__ import annotations

from sqlalchemy import text

from tests.judgement.made import runs
from tests.judgement.test_update import judge
from tracker.judgement import Wish, act, explain, findings, lines_of
from tracker.judgement.follow import Checkpoint
from tracker.judgement.keep import made_findings
from tracker.store import findings as stored
from tracker.store import judged
from tracker.store import runs as edits
from tracker.store.order import order_versions

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
        made = [made_findings(connection, line, judged.runs_of(connection, line)).findings for _ in range(2)]
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
        runs_now = judged.runs_of(connection, line)
        known = Checkpoint(*stored.checkpoint_of(connection, line))
        resumed = made_findings(connection, line, runs_now, known=known).findings
        made = made_findings(connection, line, runs_now)
        whole, kept = made.findings, made.checkpoint
    assert known.runs == len(runs_now) - 1, "before the newest version, of which one run is there"
    assert (resumed, kept) == (whole, known)
    assert {finding.columns["state"] for finding in whole} >= {"acknowledged", "suspect"}


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
