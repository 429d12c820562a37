"""Keys, the search and the bar of every page, in a real browser."""

from __future__ import annotations

import pytest

from tests.page.browsing import Browser
from tests.page.test_server import serving

PAGES = (
    "", "findings", "incident/I-1", "finding/3", "diff", "diff?side=v2&side=v3", "history?key=step&workload=gpt",
    "runs", "log", "status", "search?q=op", "run/9", "run/9/ranks", "run/9/advice",
)  # fmt: skip


@pytest.fixture(scope="module")
def address(three_versions):
    """The address of a server of three versions, without a login."""
    with serving(three_versions, "--listen", "127.0.0.1:0", "--no-token") as served:
        yield served if served.endswith("/") else f"{served}/"


def test_answer_begins_in_the_upper_part_of_every_page(browser, address):
    with browser.visited(address, width=1400, height=900) as page:
        begins = {}
        for path in PAGES:
            page.goto(f"{address}{path}")
            begins[path] = page.locator("h1").bounding_box()["y"]
        assert {path: y for path, y in begins.items() if y > 120} == {}
        assert begins[""] <= 56


def test_first_new_row_is_reached_within_5_tabs(browser, address):
    with browser.visited(address) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the answer"
        page.keyboard.press("Enter")
        for _ in range(4):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.closest('tbody') !== null"):
                break
        page.keyboard.press("Enter")
        page.wait_for_url("**/incident/I-1")


def test_j_and_k_go_over_rows_and_enter_opens_one(browser, address):
    with browser.visited(f"{address}runs") as page:
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.textContent") == "run:8"
        page.keyboard.press("Enter")
        page.wait_for_url("**/run/8")


def test_question_mark_lists_the_keys_and_escape_closes_them(browser, address):
    with browser.visited(address) as page:
        page.keyboard.press("?")
        assert "next row" in page.locator("dialog.keys").inner_text()
        page.keyboard.press("Escape")
        page.locator("dialog.keys").wait_for(state="detached")


def test_keys_are_letters_where_somebody_writes(browser, address):
    with browser.visited(address) as page:
        page.keyboard.press("/")
        page.keyboard.type("j?k")
        assert page.locator("nav input[type=search]").input_value() == "j?k"
        assert page.locator("dialog.keys").count() == 0


def test_operator_is_found_while_it_is_written_and_enter_opens_its_history(browser, address):
    with browser.visited(address) as page:
        page.keyboard.press("/")
        page.keyboard.type("op05")
        hits = page.get_by_role("option")
        hits.first.wait_for()
        assert hits.first.inner_text().split("\n")[0].startswith("op05")
        assert hits.first.get_attribute("aria-selected") == "true"
        page.keyboard.press("Enter")
        page.wait_for_url("**/history?key=op05**")


def test_arrows_choose_another_hit_and_escape_closes_the_list(browser, address):
    with browser.visited(address) as page:
        page.keyboard.press("/")
        page.keyboard.type("op0")
        page.get_by_role("option").first.wait_for()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        assert page.locator("[role=option][aria-selected=true]").get_attribute("id") == "hit-1"
        page.keyboard.press("Escape")
        assert page.get_by_role("option").count() == 0


def test_exact_name_leads_there_without_scripts(page):
    for words, where in (("I-1", "/incident/I-1"), ("run:9", "/run/9"), ("op05", "/history?key=op05&kind=")):
        reply = page.get(f"/search?q={words}")
        assert reply.status == 303 and reply.headers["location"].startswith(where), words
    assert page.get("/search?q=op0").status == 200
    assert page.get("/search?q=H100").status == 200


def test_hits_name_devices_and_operators_without_their_namespace(tmp_path):
    from tests.factories import save
    from tracker.store import open_store

    path = tmp_path / "tracker.db"
    with open_store(str(path)) as store:
        save(store, "v1", ops=[("aten::addmm", 100), ("aten::mm", 100), ("aten::bmm", 100)], runs=2)
    page = Browser(path).logged_in()
    first, *others = page.get("/search.json?q=mm").json
    assert (first[0], first[3]) == ("aten::mm", True)
    assert {name for name, *_ in others} >= {"aten::addmm", "aten::bmm"}
    assert any(
        name == "NVIDIA H100" and what.startswith("device of gpt")
        for name, what, *_ in page.get("/search.json?q=h100").json
    )
    assert page.get("/search.json?q=").json == []


def test_names_of_hits_are_text(browser, tmp_path):
    from tests.factories import save
    from tracker.store import open_store

    path = tmp_path / "tracker.db"
    with open_store(str(path)) as store:
        save(store, "v1", "<img src=x onerror=alert(1)>")
    with serving(path, "--listen", "127.0.0.1:0", "--no-token") as served, browser.visited(served) as page:
        page.keyboard.press("/")
        page.keyboard.type("<img")
        page.get_by_role("option").first.wait_for()
        assert page.locator(".hits img").count() == 0


def test_word_of_a_column_leads_to_what_it_means(browser, address):
    with browser.visited(address) as page:
        page.locator("th a.word", has_text="since good").click()
        assert page.url.endswith("#word-since-good")
        explained = page.locator("#word-since-good + dd")
        assert explained.is_visible() and explained.inner_text().startswith("the change of the step since the level")
