"""Actions change exactly what they say, with reason and name, and lead back."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from tests.cli.support import content
from tests.page.browsing import Browser
from tracker import api, config
from tracker.regressions.inbox import found_rows
from tracker.store import open_store


def state_of(db, number=3):
    with open_store(str(db), read_only=True) as store:
        found = api.explain(number, store=store)
        return found.finding.state, [tuple(row) for row in found.events[["who", "reason"]].to_numpy()][-1]


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


def states_of(db):
    with open_store(str(db), read_only=True) as store:
        return {row.finding_id: row.state for row in found_rows(store) if row.finding_id is not None}


def form_of(page, address, **fields):
    """The form of a page as a browser sends it: its hidden fields, and what a reader fills in."""
    text = page.get(address).text
    form = re.search(r'<form method="post" action="/act" id="act">.*?</form>', text, re.DOTALL)[0]
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form)
    return [*hidden, *fields.items()]


def checked(page, address):
    """What the boxes of a page stand for."""
    return re.findall(r'<input type="checkbox" name="targets" value="(\d+)" form="act"', page.get(address).text)


def send(page, fields):
    return page.post(urlencode(fields).encode(), sec_fetch_site="same-origin")


def test_checked_findings_take_one_reason_together(page, db):
    first, second, *_, last = checked(page, "/incident/I-1")
    fields = form_of(page, "/incident/I-1", action="expect", reason="float64", by="li", until="2w")
    found = send(page, [*fields, ("targets", first), ("targets", second)])
    assert (found.status, found.headers["location"]) == (303, "/incident/I-1")
    states = states_of(db)
    assert (states[int(first)], states[int(second)], states[int(last)]) == ("expected", "expected", "new")
    assert "expect by li on" in page.get("/incident/I-1").text


def test_without_a_check_the_form_is_about_the_whole_incident(page, db):
    fields = form_of(page, "/incident/I-1", action="mute", reason="later", by="li", until="2w")
    assert send(page, fields).headers["location"] == "/incident/I-1"
    assert set(states_of(db).values()) == {"muted"}


def test_the_list_of_findings_has_boxes_and_no_whole(page, db):
    first, *_ = checked(page, "/findings")
    fields = form_of(page, "/findings", action="ack", reason="seen by us", by="li", until="2w")
    assert send(page, fields).headline.startswith("the form names nothing to change")
    assert send(page, [*fields, ("targets", first)]).status == 303
    assert states_of(db)[int(first)] == "acknowledged"


def test_buttons_say_what_they_do(page):
    assert "Expect: accept the change as intended." in page.get("/incident/I-1").text


def test_who_may_not_act_sees_no_boxes(db):
    reader = Browser(db, read_only=True).logged_in()
    assert checked(reader, "/incident/I-1") == [] and checked(reader, "/findings") == []


def test_marks_and_notes_of_an_incident_stand_once(page):
    page.act("note", "I-1", reason="bisected to 9f8e7d6")
    first, *_ = checked(page, "/incident/I-1")
    page.act("ack", first, reason="ticket 4711")
    section = page.get("/incident/I-1").text.partition("<h2>Marks and notes</h2>")[2].partition("</section>")[0]
    assert section.count("bisected to 9f8e7d6 (all findings)") == 1
    assert section.count(f"ticket 4711 (of {first})") == 1


def test_an_incident_is_there_as_markdown(page):
    text = page.get("/incident/I-1").text
    found = html.unescape(re.search(r'<pre id="as-markdown".*?>(.*?)</pre>', text, re.DOTALL)[1])
    assert found.startswith("### ") and "\n| " in found and "I-1" in found
    assert 'data-copies="as-markdown"' in text and "as-markdown" not in page.get("/").text


def test_what_is_copied_names_no_database_of_the_server(db):
    """Who reads it elsewhere has another one; the commands on the page itself name it."""

    def with_database(text, written):
        return text.replace("tracker explain", "tracker explain --db here.db")

    text = Browser(db, named=with_database).logged_in().get("/incident/I-1").text
    copied = html.unescape(re.search(r'<pre id="as-markdown".*?>(.*?)</pre>', text, re.DOTALL)[1])
    assert "tracker explain" in copied and "--db" not in copied
    assert "tracker explain --db here.db" in text


def test_an_issue_opens_with_the_headline_and_the_page(db):
    template = "https://git.example/issues/new?title={title}&body={text}"
    page = Browser(db, page=config.PageRoles(issue_url=template)).logged_in()
    found = page.get("/incident/I-1")
    (address,) = [one for one in found.hrefs("p") if one.startswith("https://git.example/")]
    query = dict(parse_qsl(urlsplit(address).query))
    headline = found.headline.split(" REGRESSED")[0].replace("→", "->")
    assert query["title"] == f"gpt {headline}"
    assert query["body"].startswith("### ") and len(address) < 8_000
    assert "open an issue" not in Browser(db).logged_in().get("/incident/I-1").text


def test_acknowledging_needs_no_reason_and_the_page_says_what_was_done(page):
    before = page.get("/incident/I-1").text
    assert '<button name="action" value="ack" formnovalidate>' in before
    assert '<button name="action" value="expect">' in before, "a browser asks for a reason of others"
    assert "reason (needed but for Acknowledge)" in before and "I-1 acknowledged" not in before
    done = page.act("ack", "", whole="I-1", reason="", by="root")
    assert done.status == 303
    after = page.get(done.headers["location"]).text
    assert re.search(r'role="status">I-1 acknowledged by root on [\d :-]+ UTC: acknowledged<', after)
    page.act("undo", "", whole="I-1", reason="too early", by="li")
    for address, name in (("/incident/I-1", "I-1"), ("/finding/3", "Finding 3")):
        assert f'role="status">{name}: undo of ack by li on ' in page.get(address).text
    assert page.act("expect", "3", reason="").status == 400


def test_a_keeper_pins_a_version_and_comes_back(db):
    """Its history says so, and unpinning it takes that back; a form leads to no other page."""
    keeper = Browser(db, keepers=frozenset(["*"])).logged_in()
    back = "/history?key=step&workload=gpt"
    for action, is_pinned in (("pin", True), ("unpin", False)):
        form = {"action": action, "workload": "gpt", "version": "v2", "back": back}
        found = keeper.post(urlencode(form).encode(), "/act", sec_fetch_site="same-origin")
        assert (found.status, found.headers["location"]) == (303, back)
        assert ("v2 (pinned)" in keeper.get(back).text) is is_pinned
    form = {"action": "pin", "workload": "gpt", "version": "v2", "back": "//elsewhere"}
    found = keeper.post(urlencode(form).encode(), "/act", sec_fetch_site="same-origin")
    assert found.headers["location"] == "/history?workload=gpt"
    assert "Pin a version of gpt" in keeper.get(back).text


def test_the_page_of_an_incident_has_its_findings_once(page):
    """Tests, runs and events stand on the page of each finding, to which its row leads."""
    found = page.get("/incident/I-1")
    titles = re.findall(r"<summary><h2>(.*?)</h2>", found.text)
    assert not [title for title in titles if title.startswith(("Tests", "Runs", "Events", "Finding"))]
    assert len([href for href in found.hrefs("article") if href.startswith("/finding/")]) > 1
    assert "How the step adds up" in found.text
