"""The board in a real browser: a line a row on any screen, what may be done in place, pages, and no scripts."""

from __future__ import annotations

import re
import shutil
import sqlite3

import pytest

from tests.page.browsing import Browser
from tests.page.test_server import serving
from tests.regressions import made
from tests.reports.browser import OVERLAPS
from tracker.regressions import judgement
from tracker.store import open_store

HERE = ("--listen", "127.0.0.1:0", "--no-token")
LONG = "llama70b_bf16_with_a_name_that_no_column_has_room_for_{:02}"
CUT = """() => [...document.querySelectorAll(".one td")]
  .filter((cell) => cell.checkVisibility() && !cell.matches(".p, .a, :nth-child(2), :nth-child(6)"))
  .filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.innerText)"""
"""Cells of marks, numbers and states that have no room."""


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    """24 workloads that ask for a reader, and three as before: ten are slower by an operator, eight by idle time, six
    wait for a run.
    """
    path = tmp_path_factory.mktemp("team") / "tracker.db"
    changes = [{"changed": {"op07": 11.0}}] * 10 + [{"idle_ns": 20_000_000}] * 8
    changes += [{"changed": {"op03": 5.0}, "count": 1}] * 6 + [{}] * 3
    with open_store(str(path)) as store:
        for number, change in enumerate(changes):
            workload = LONG.format(number) if number % 3 == 0 else f"gpt{number}"
            made.runs(store, "v1", start=10 * number, ops=12, workload=workload)
            made.runs(store, "v2", start=10 * number + 5, ops=12, workload=workload, **change)
        judgement.update(store, judgement.tracks_of(store))
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


@pytest.fixture(scope="module")
def address(team):
    """The address of a server of it."""
    with serving(team, *HERE) as served:
        yield served


def marks_of(reply):
    """Return the marks of the rows of a board."""
    return re.findall(r"<tr><td[^>]*>([▲?]?)<td", reply.text)


def test_24_workloads_fit_a_screen_in_lines_of_30_pixels(browser, address):
    with browser.visited(address, width=1400, height=900) as page:
        rows = page.locator("section .one tbody tr")
        boxes = rows.evaluate_all(
            "rows => rows.map((row) => row.getBoundingClientRect()).map((box) => [box.height, box.bottom])"
        )
        assert len(boxes) == 24 and {round(height) for height, _ in boxes} == {30}
        assert max(bottom for _, bottom in boxes) <= 900
        assert page.locator("summary h2").get_by_text("Nothing to decide (3)").count() == 1
        assert page.locator("h1").bounding_box()["y"] <= 56
        assert (page.evaluate(OVERLAPS), page.evaluate(CUT)) == ([], [])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 700, 1000, 1400])
def test_no_text_of_a_board_is_drawn_over_another_one(browser, address, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with browser.visited(address, width=width, height=900, scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert (page.evaluate(OVERLAPS), page.evaluate(CUT)) == ([], [])
        page.locator(".pop summary").first.click()
        assert axe.run(page).response["violations"] == []


def test_cause_change_and_state_stand_on_a_narrow_screen(browser, address):
    with browser.visited(address, width=400, height=900) as page:
        texts = page.locator(".one tbody tr").nth(0).locator("td:visible").all_inner_texts()
        assert next(filter(None, texts)) == "▲"
        assert any(re.fullmatch(r"\+\d+\.\d %", text) for text in texts)
        assert any(text.startswith("idle +20.00 ms") for text in texts)
        assert any(re.fullmatch(r"new I-\d+", text) for text in texts)


def test_incident_is_acknowledged_in_place_without_a_reason(browser, db):
    with serving(db, *HERE) as address, browser.visited(address) as page:
        page.get_by_role("button", name="Acknowledge I-1").click()
        page.locator("h1").get_by_text("No new regression; 1 open").wait_for()
        assert page.url == f"{address.rstrip('/')}/"
        assert page.get_by_text("acknowledged I-1").count() == 1
        assert page.get_by_role("button", name="Acknowledge I-1").count() == 0


def test_board_without_scripts_is_read_filtered_and_acted_on(browser, team, tmp_path):
    path = shutil.copy(team, tmp_path / "own.db")
    with serving(path, *HERE) as address, browser.visited(address, script=False) as page:
        assert page.locator("section .one tbody tr").count() == 24
        page.locator(".pop summary", has_text="Filter").click()
        page.get_by_role("link", name="gpt1", exact=True).first.click()
        assert page.url.endswith("/?workload=gpt1")
        page.get_by_role("button", name="Acknowledge").click()
        page.get_by_text("acknowledged I-").wait_for()
        assert page.url.endswith("/?workload=gpt1"), "back on the same part of the board"


def test_reader_who_may_not_act_has_no_button(db):
    page = Browser(db, read_only=True).logged_in()
    assert "Acknowledge" not in page.get("/").text


@pytest.mark.parametrize("back", ["https://elsewhere.example/", "//elsewhere.example", "/runs", ""])
def test_form_leads_back_to_a_board_alone(page, back):
    form = f"action=ack&targets=I-1&back={back}".encode()
    reply = page.post(form, sec_fetch_site="same-origin")
    assert (reply.status, reply.headers["location"]) == (303, "/incident/I-1")


def test_alert_link_shows_the_slower_operator_and_leads_to_it(page):
    """What a message links is the incident, which names the operator; its history is one click from there."""
    incident = page.get("/incident/I-1")
    assert "op05" in incident.headline
    (finding,) = [one for one in incident.hrefs("article") if one.startswith("/finding/")][:1]
    assert page.get(finding).status == 200


def test_empty_board_says_what_to_run_first(browser, tmp_path):
    path = tmp_path / "empty.db"
    open_store(str(path)).close()
    with serving(path, *HERE) as address, browser.visited(address, width=400, height=900) as page:
        assert page.locator("h1").inner_text() == "no runs yet"
        assert "tracker ingest" in page.locator(".pop").last.text_content()
        assert page.evaluate(OVERLAPS) == []


def test_first_day_shows_what_came(tmp_path):
    path = tmp_path / "first.db"
    with open_store(str(path)) as store:
        judgement.update(store, judgement.tracks_of(store, made.runs(store, "v1")))
    reply = Browser(path).logged_in().get("/")
    assert reply.headline == "No open regression"
    assert marks_of(reply) == [""] and ">gpt</a>" in reply.text


@pytest.mark.slow
def test_200_workloads_that_wait_are_read_in_pages(tmp_path):
    path = tmp_path / "many.db"
    with open_store(str(path)) as store:
        for number in range(200):
            for at, version in enumerate(("v1", "v2")):
                changed = {"op01": 1.0 + at * 10}
                made.runs(store, version, changed, count=1, start=2 * number + at, ops=3, workload=f"gpt{number:03}")
        judgement.update(store, judgement.tracks_of(store))
    page = Browser(path).logged_in()
    first, last = page.get("/"), page.get("/?page=4")
    assert (marks_of(first).count("?"), marks_of(last).count("?")) == (60, 20)
    assert "lines 1 to 60 of 200; page 1 of 4" in first.text and "/?page=2" in first.hrefs("article")
    assert "/?page=1" in last.hrefs("article") or "/" in last.hrefs("article")
    assert "tracker board --page" not in first.text + last.text
    # what was on a later page may be on the last one by now
    assert marks_of(page.get("/?page=9")) == marks_of(last)
