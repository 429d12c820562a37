"""What happens to a line while it is judged: nobody waits for that, and nothing that comes meanwhile is forgotten."""

from __future__ import annotations

import importlib
import time
from threading import Thread

import pytest
from sqlalchemy import text

from tests.judgement.test_update import judge
from tests.regressions.made import runs
from tracker.judgement import keep, lines_of
from tracker.judgement.apart import write_apart
from tracker.store import findings, open_store, queries
from tracker.store import runs as edits
from tracker.store.findings import Action, add_action

pytestmark = pytest.mark.slow


@pytest.fixture
def meanwhile(database_url, monkeypatch):
    """Has another process do something while findings, or a version, are worked out; once."""

    def arrange(module, name, do):
        made = getattr(module, name)
        left = [do]

        def while_others_write(*arguments, **named):
            found = made(*arguments, **named)
            if left:
                with open_store(database_url) as other:
                    left.pop()(other)
            return found

        monkeypatch.setattr(module, name, while_others_write)

    # who waits fails, and soon
    monkeypatch.setattr("tracker.store.connect.BUSY_TIMEOUT_MS", 2000)
    return arrange


UPDATE = importlib.import_module("tracker.judgement.update")  # the package calls the function so
WORK = [(keep, "made_findings"), (UPDATE, "judge_task")]


STATES = (
    "SELECT v.label, f.state FROM finding AS f INNER JOIN series AS s ON f.series_id = s.id "
    "INNER JOIN version AS v ON f.first_version_id = v.id WHERE s.kind = 'op' AND s.name = 'op07'"
)


def states(store):
    """What became of the findings of op07, with the version of each."""
    with store.connect() as connection:
        return [tuple(row) for row in connection.execute(text(STATES))]


@pytest.mark.parametrize(("module", "name"), WORK)
def test_runs_that_come_meanwhile_do_not_wait_and_are_judged_next(store, meanwhile, module, name):
    runs(store, "v0", count=2)
    runs(store, "v1", count=5, start=2)
    meanwhile(module, name, lambda other: runs(other, "v2", {"op07": 1.3}, start=7))
    judge(store)
    judge(store)
    assert states(store) == [("v2", "new")]
    assert judge(store) == 0


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("module", "name"), WORK)
def test_who_was_slower_does_not_write_over_what_rests_on_more(store, meanwhile, monkeypatch, module, name):
    """Two at once where there are no turns; on Postgres there is a lock."""
    monkeypatch.setattr("tracker.store.turns.fcntl", None)
    runs(store, "v0", count=2)
    runs(store, "v1", count=5, start=2)

    def judge_more(other):
        runs(other, "v0", count=1, start=10)
        runs(other, "v2", {"op07": 1.3}, start=7)
        judge(other)

    meanwhile(module, name, judge_more)
    judge(store)
    assert states(store) == [("v2", "new")]
    assert judge(store) == 0


@pytest.mark.parametrize("name", ["before_of", "stale", "keep"])
def test_who_waited_for_others_does_not_write_over_what_they_knew(store, meanwhile, name):
    """Others bring runs and judge them after this one has read what there is, and before it writes."""
    runs(store, "v0", count=2)
    runs(store, "v1", count=5, start=2)

    def judge_more(other):
        runs(other, "v0", count=1, start=10)
        runs(other, "v2", {"op07": 1.3}, start=7)
        judge(other)

    meanwhile(UPDATE, name, judge_more)
    judge(store)
    assert states(store) == [("v2", "new")]
    assert judge(store) == 0


@pytest.mark.parametrize(("module", "name"), WORK)
def test_runs_that_are_gone_meanwhile_leave_nothing_behind(store, meanwhile, module, name):
    runs(store, "v1", count=5)
    slow = runs(store, "v2", {"op07": 1.3}, start=5)
    meanwhile(module, name, lambda other: edits.delete_all(other, slow, "none of ours", purge=True))
    judge(store)
    judge(store)
    assert states(store) == []
    assert queries.versions(store)["version"].tolist() == ["v1"]
    assert judge(store) == 0


def test_what_never_holds_is_never_written(store):
    """Others change the line each time that it is worked out; the last of them judges it."""
    runs(store, "v1", count=5)
    (line,) = lines_of(store)
    made, written = [], []

    def make(*_):
        made.append(len(made))
        return made[-1]

    assert not write_apart(store, line, make, lambda *_: False, lambda *given: written.append(given))
    assert made
    assert written == []
    assert write_apart(store, line, make, lambda _, __, found: found == made[-1], lambda *given: written.append(given))
    assert [found for _, _, found in written] == made[-1:]


def test_what_a_user_says_meanwhile_counts_at_once(store, meanwhile):
    runs(store, "v1", count=5)
    (first, *_) = runs(store, "v2", {"op07": 1.3}, start=5)
    judge(store)
    runs(store, "v2", {"op07": 1.3}, count=1, start=8)
    (line,) = lines_of(store)
    with store.connect() as connection:
        series = connection.execute(text("SELECT id FROM series WHERE kind = 'op' AND name = 'op07'")).scalar_one()
    word = Action((series, "regression", "level", first), first + 3, "ack", "ann", "known", 1, None, None)

    def say(other):
        with other.begin() as connection:
            add_action(connection, line, word)

    meanwhile(keep, "made_findings", say)
    judge(store)
    assert states(store) == [("v2", "acknowledged")]


def test_those_who_judge_at_once_write_once(store, database_url, monkeypatch):
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 1.3}, start=5)
    judged, written, work, write = [], [], keep.made_findings, findings.write

    def slowly(*arguments, **named):
        time.sleep(0.2)
        return work(*arguments, **named)

    monkeypatch.setattr(keep, "made_findings", slowly)
    monkeypatch.setattr(findings, "write", lambda *given: (written.append(given), write(*given)))

    def judge_too():
        with open_store(database_url) as other:
            judged.append(judge(other))

    threads = [Thread(target=judge_too) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(written), sorted(judged)) == (1, [0, 0, 2])
    assert states(store) == [("v2", "new")]
