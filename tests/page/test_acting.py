"""Actions change exactly what they say, with reason and name, and lead back."""

from __future__ import annotations

import pytest

from tests.cli.support import content
from tracker import api
from tracker.store import open_store


def state_of(db, number=3):
    with open_store(str(db), read_only=True) as store:
        found = api.explain(number, store=store)
        return found.finding["state"], [tuple(row) for row in found.events[["who", "reason"]].to_numpy()][-1]


@pytest.mark.parametrize(("action", "state"), [
    ("ack", "acknowledged"), ("expect", "expected"), ("invalid", "invalid"), ("mute", "muted"),
])  # fmt: skip
def test_an_action_on_a_finding_has_its_state_reason_and_name(page, db, action, state):
    before = content(db)
    found = page.act(action, "I-1", until="2w")
    assert (found.status, found.headers["location"]) == (303, "/incident/I-1")
    assert page.get(found.headers["location"]).status == 200
    assert state_of(db) == (state, ("li", "ticket 4711"))
    assert len([name for name, rows in content(db).items() if rows != before[name]]) == 1


def test_a_note_is_in_the_life_of_a_finding_and_changes_nothing_else(page, db):
    page.act("mute", "3", until="2w")
    before = content(db)
    assert page.act("note", "I-1", reason="bisected to 9f8e7d6").headers["location"] == "/incident/I-1"
    assert state_of(db) == ("muted", ("li", "bisected to 9f8e7d6"))
    assert "note by li on" in page.get("/finding/3").text and "bisected to 9f8e7d6" in page.get("/incident/I-1").text
    page.act("invalid", "3")
    assert page.act("note", "3", reason="a second look").status == 303
    assert state_of(db) == ("invalid", ("li", "a second look"))
    assert [name for name, rows in content(db).items() if rows != before[name]] == ["finding_action"]


def test_a_mute_ends_early(page, db):
    page.act("mute", "3", until="2w")
    assert page.act("unmute", "3").headers["location"] == "/finding/3"
    assert state_of(db)[0] == "new"


def test_a_mark_is_taken_back(page, db):
    page.act("expect", "I-1")
    assert page.act("undo", "I-1", reason="the wrong incident").headers["location"] == "/incident/I-1"
    assert state_of(db) == ("new", ("li", "the wrong incident"))
    text = page.get("/finding/3").text
    assert "expect, taken back by li on" in text and "undo of expect by li on" in text
    again = page.act("undo", "I-1")
    assert again.status == 400 and "has a mark to take back" in again.headline


def test_without_a_name_the_account_is_who(page, db):
    import getpass

    page.act("ack", "3", by="")
    assert state_of(db)[1][0] == getpass.getuser()


def test_several_findings_at_once_lead_back_to_the_list(page):
    assert page.act("ack", "3, 6").headers["location"] == "/findings"


def test_excluded_runs_are_out_with_the_reason_and_come_back(page, db):
    before = content(db)
    found = page.act("exclude", "run:9")
    assert found.headers["location"] == "/run/9"
    assert "excluded: ticket 4711 (by li)" in page.get("/runs?state=excluded").text
    text = page.get("/run/9").text
    assert 'value="restore"' in text and 'value="exclude"' not in text
    assert page.act("restore", "run:9", reason="").status == 400
    assert page.act("restore", "run:9", reason="node repaired").status == 303
    assert page.get("/runs?state=excluded").headline == "No run matches"
    assert "active: node repaired (by li)" in page.get("/runs").text
    page.act("exclude", "run:9")
    with open_store(str(db)) as store:
        api.restore_runs(9, store=store)
    assert content(db)["run"] == before["run"]


def test_what_cannot_be_done_now_is_one_sentence(page, db):
    page.act("invalid", "3")
    before = content(db)
    found = page.act("mute", "3", until="2w")
    assert found.status == 400 and "finding 3" in found.headline
    assert content(db) == before


def test_a_database_that_is_gone_takes_no_action(page, db):
    kept = db.rename(db.with_name("kept.db"))
    assert page.act("ack", "3").status == 503 and not db.exists()
    kept.rename(db)
    assert page.act("ack", "3").status == 303
