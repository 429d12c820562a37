"""The page of a diff: its tabs, the tree that is drawn when it is asked for, where causes lead, and its sides."""

from __future__ import annotations

import html
import re
import shutil

import pytest

from tests.page.test_server import serving
from tests.reports.browser import OVERLAPS
from tracker.page.links import PAGES

HERE = ("--listen", "127.0.0.1:0", "--no-token")
DIFF = "/diff?side=v2&side=v3&workload=gpt"


def tabs_of(text):
    """Title -> findings, "" for none, of each tab of a page."""
    return dict(re.findall(r'<div class="tab" id="[^"]+" data-title="([^"]+)"(?: data-findings="([\d,]+)")?>', text))


def causes_of(text):
    """Cause -> where it leads, "" for nowhere."""
    table = next(part for part in text.split("<table")[1:] if "<th>cause</th>" in part).partition("</table>")[0]
    first = [row.split("<td")[1] for row in table.partition("<tbody>")[2].split("<tr")[1:]]
    found = {}
    for cell in first:
        words = html.unescape(re.sub("<[^>]+>", "", cell.partition(">")[2]))
        link = re.search(r'<a href="([^"]+)"', cell)
        found[words.strip()] = html.unescape(link[1]) if link else ""
    return found


def test_each_part_of_a_diff_is_a_tab_with_its_findings(page):
    """v3 is slower by two operators, which are in one shape each; the step is a finding of its own."""
    tabs = tabs_of(page.get(DIFF).text)
    assert list(tabs)[:3] == ["Why", "Operators", "Icicle"]
    assert tabs["Operators"] == "2" and tabs["Icicle"] == ""
    assert tabs_of(page.get("/diff?side=v1&side=v2").text)["Operators"] == ""


def test_a_diff_of_one_part_has_no_tabs(page):
    for address in (f"{DIFF}&by=op", "/diff?side=v1&side=v2&side=v3"):
        assert tabs_of(page.get(address).text) == {}, address


def test_the_tree_is_drawn_where_it_is_asked_for(page):
    plain = page.get(DIFF)
    assert "class=flame" not in plain.text
    (offer,) = [one for one in plain.hrefs("h3") if "icicle" in one]
    assert offer == f"{DIFF}&icicle=1#icicle"
    drawn = page.get(offer)
    assert drawn.text.count("<svg class=flame") == 1 and offer not in drawn.hrefs("h3")
    assert "<code>tracker diff v2 v3 --workload gpt</code>" in drawn.text
    assert "<svg class=flame" in page.get(DIFF.replace("/diff", "/diff.html")).text


def test_the_tree_of_three_sides_is_no_error(page):
    """The form of a page with the tree takes a third side."""
    assert page.get("/diff?side=v1&side=v2&side=v3&icicle=1").status == 200


def test_each_cause_leads_to_its_history_or_to_its_rows(page):
    causes = causes_of(page.get(DIFF).text)
    assert causes["op05"] == "/history?key=op05&workload=gpt"
    assert causes["= step time"] == "/history?key=step&kind=run&workload=gpt"
    (others,) = [address for words, address in causes.items() if "other operators" in words]
    assert others == "#operators" and 'id="operators"' in page.get(DIFF).text
    assert all(page.get(address).status == 200 for address in causes.values() if address.startswith("/"))


@pytest.fixture(scope="module")
def address(three_versions, tmp_path_factory):
    """The address of a server of three versions."""
    path = tmp_path_factory.mktemp("diff") / "tracker.db"
    shutil.copy(three_versions, path)
    with serving(path, *HERE) as served:
        yield served.rstrip("/")


def chosen(page):
    """The titles of the chosen tab and of the panel that is shown."""
    panels = page.locator("[role=tabpanel]:not([hidden])")
    return page.locator("[aria-selected=true]").inner_text().split()[0], panels.get_attribute("data-title")


def test_keys_and_clicks_choose_a_tab_that_the_address_names(browser, address):
    with browser.visited(f"{address}{DIFF}") as page:
        assert chosen(page) == ("Why", "Why")
        page.get_by_role("tab", name="Why").focus()
        page.keyboard.press("ArrowRight")
        assert chosen(page) == ("Operators", "Operators") and page.url.endswith("#operators")
        page.keyboard.press("Home")
        page.keyboard.press("ArrowLeft")
        last = page.get_by_role("tab").last.inner_text().split()[0]
        assert chosen(page)[0] == last
        page.get_by_role("tab", name="Operators").click()
        page.reload()
        assert chosen(page) == ("Operators", "Operators")
        assert page.get_by_role("tab", name="Operators 2").count() == 1
        assert page.evaluate("scrollY") == 0


def test_a_click_on_the_icicle_draws_it(browser, address):
    with browser.visited(f"{address}{DIFF}") as page:
        assert page.locator(".flame").count() == 0
        page.get_by_role("tab", name="Icicle").click()
        page.locator(".flame > svg").first.wait_for()
        assert chosen(page) == ("Icicle", "Icicle")


def test_a_cause_leads_to_the_tab_with_its_rows(browser, address):
    with browser.visited(f"{address}{DIFF}") as page:
        page.get_by_role("link", name="other operators").click()
        page.locator("#operators:not([hidden])").wait_for()
        assert chosen(page)[0] == "Operators"
        page.go_back()
        page.locator("#why:not([hidden])").wait_for()


def test_paper_has_all_parts_and_no_tabs(browser, address):
    with browser.visited(f"{address}{DIFF}", width=1400) as page:
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert not page.locator("[role=tablist]").is_visible() and not page.get_by_text("swap sides").is_visible()
        for panel in page.locator("[role=tabpanel]").all():
            assert panel.is_visible() and panel.bounding_box()["height"] > 10
        assert page.locator("h2.name", has_text="Operators").is_visible()
        assert page.evaluate(OVERLAPS) == []


def test_all_parts_are_read_without_scripts(browser, address):
    with browser.visited(f"{address}{DIFF}&icicle=1", script=False) as page:
        assert page.locator("#why").is_visible() and page.locator("[role=tab]").count() == 0
        part = page.locator("details", has=page.locator("#operators"))
        assert "2 findings" in part.locator("summary").inner_text()
        part.locator("summary").click()
        assert part.locator("table").first.is_visible()
        assert page.locator(".flame").is_visible()
        assert page.evaluate(OVERLAPS) == []


@pytest.mark.parametrize(("width", "scheme"), [
    (1400, "light"), (400, "dark"),
    pytest.param(1400, "dark", marks=pytest.mark.slow), pytest.param(400, "light", marks=pytest.mark.slow),
])  # fmt: skip
def test_no_tab_has_words_over_words_or_keeps_anyone_out(browser, address, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with browser.visited(f"{address}{DIFF}&icicle=1", width=width, height=900, scheme=scheme) as page:
        tabs = page.get_by_role("tab")
        assert tabs.count() >= 3
        for tab in tabs.all():
            tab.click()
            words = tab.inner_text()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, words
            assert page.evaluate(OVERLAPS) == [], words
            found = axe.run(page)
            assert found.violations_count == 0, f"{words}: {found.generate_report()}"
        assert page.locator("[style]").count() == 0


def test_two_runs_are_compared_in_three_clicks_older_first(browser, address):
    with browser.visited(f"{address}/runs") as page:
        page.get_by_label("choose run:9").check()
        page.get_by_label("choose run:1", exact=True).check()
        page.get_by_role("button", name="Compare the checked runs").click()
        page.wait_for_url(f"**{PAGES['diff'].path}?side=run*1&side=run*9")
        assert "slower" in page.locator("h1").inner_text()
        page.get_by_role("link", name="swap sides").click()
        page.wait_for_url("**/diff?side=run*9&side=run*1")
        assert "faster" in page.locator("h1").inner_text()
