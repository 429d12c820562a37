"""The pages of an incident and of a history in a real browser: nothing over anything, a bar of all versions, clicks."""

from __future__ import annotations

import pytest

from tests.page.test_board_page import HERE, OVERLAPS
from tests.page.test_server import serving

PAGES = ("incident/I-1", "history?key=step&workload=gpt", "history?key=step&workload=gpt&from=v1&to=v2")
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture
def address(db):
    with serving(db, *HERE) as found:
        yield found.rstrip("/") + "/"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_no_text_is_drawn_over_another(browser, address, width, scheme):
    for path in PAGES:
        with browser.visited(f"{address}{path}", width=width, height=900, scheme=scheme) as page:
            page.locator(".plot[data-ready]").first.wait_for()
            assert (path, page.evaluate(OVERLAPS), page.evaluate(WIDER)) == (path, [], False)


def test_no_text_of_a_print_is_drawn_over_another(browser, address):
    for path in PAGES:
        with browser.visited(f"{address}{path}", width=1100) as page:
            page.locator(".plot[data-ready]").first.wait_for()
            page.emulate_media(media="print")
            assert (path, page.evaluate(OVERLAPS)) == (path, [])


def test_no_line_of_a_chart_has_the_colour_of_another(browser, address):
    colours = """() => [0, 1, 2, 3, 4, 5].map((at) => {
      const one = document.createElementNS("http://www.w3.org/2000/svg", "path");
      one.setAttribute("class", `curve s${at}`);
      document.querySelector(".chart").append(one);
      return getComputedStyle(one).stroke.match(/\\d+/g).map(Number);
    })"""
    for scheme in ("light", "dark"):
        with browser.visited(f"{address}{PAGES[1]}", scheme=scheme) as page:
            found = page.evaluate(colours)
        greys = [one for one in found if max(one) - min(one) < 40]
        assert len(greys) == 1, "two greys are told from each other by dashes alone"
        for at, one in enumerate(found):
            for other in found[:at]:
                assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) > 60, (scheme, one, other)


def test_names_on_a_narrow_incident_are_not_split(browser, address):
    """A name of an operator has the line for itself."""
    with browser.visited(f"{address}{PAGES[0]}", width=400) as page:
        heights = page.evaluate("[...document.querySelectorAll('.stack td:nth-child(2) a')].map((a) => a.offsetHeight)")
        assert heights and max(heights) < 30


def test_the_bar_of_all_versions_chooses_a_part(browser, address):
    """v1 and v2 of three are shown: later ones are a link, and a drag over all of the bar shows all."""
    with browser.visited(f"{address}{PAGES[2]}", script=False) as page:
        page.get_by_role("link", name="later").click()
        assert page.url.endswith("from=v2&to=v3")
        page.get_by_role("link", name="earlier").click()
        assert page.url.endswith("from=v1&to=v2")
    with browser.visited(f"{address}{PAGES[2]}") as page:
        page.locator(".plot[data-ready]").wait_for()
        box = page.locator("svg.range").bounding_box()
        page.mouse.move(box["x"] + 5, box["y"] + 9)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] - 5, box["y"] + 9)
        page.mouse.up()
        page.wait_for_url("**from=v1&to=v3")
        assert page.locator("svg.range").count() == 0, "all versions are shown"


def test_an_incident_is_accepted_with_two_clicks_and_undone_with_one(browser, address):
    with browser.visited(address) as page:
        page.locator("a[href='/incident/I-1']").first.click()
        page.locator("input[name=reason]").first.fill("meant so")
        page.get_by_role("button", name="Expect").click()
        page.get_by_text("meant so").first.wait_for(state="attached")
        page.locator("input[name=reason]").first.fill("not meant so")
        page.get_by_role("button", name="Undo").click()
        page.get_by_text("not meant so").first.wait_for(state="attached")
