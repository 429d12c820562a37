"""A person in a real browser: logs in, follows a row to its incident, acknowledges it, and sees that."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.factories import save
from tests.page.test_server import serving
from tests.reports.browser import OVERLAPS
from tracker.store import open_store


@pytest.fixture
def served(db):
    """The printed address of a server in a process of its own."""
    command = [sys.executable, "-m", "tracker", "page", "--listen", "127.0.0.1:0", "--db", str(db)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONUNBUFFERED": "1"}) as process:  # fmt: skip
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert "Traceback" not in out + err


def test_from_the_printed_address_to_an_acknowledged_incident(browser, served):
    with browser.visited(served) as page:
        page.wait_for_url(re.compile(r":\d+/$"))
        page.get_by_role("link", name="gpt").click()
        assert page.url.endswith("/incident/I-1")
        page.get_by_label("reason (needed but for Acknowledge)").first.fill("ticket 4711")
        page.get_by_role("button", name="Acknowledge").click()
        page.get_by_text("ticket 4711").first.wait_for(state="attached")
        assert page.url.endswith("/incident/I-1")
        page.get_by_role("link", name="v2 beside v3").click()
        page.locator("input[type=search]").first.wait_for(state="attached")


def test_versions_of_a_chart_lead_to_diffs_and_a_drag_to_a_part(browser, served):
    with browser.visited(served) as page:
        page.wait_for_url(re.compile(r":\d+/$"))
        address = f"{page.url}history?key=step&workload=gpt"
        page.goto(address)
        drawing = page.locator(".plot[data-ready] .frame > svg").last

        def place(number):
            box = drawing.bounding_box()
            return box["x"] + box["width"] * (number + 0.5) / 3, box["y"] + box["height"] / 2

        page.mouse.click(*place(1))
        page.wait_for_url("**/diff?side=v1&side=v2&workload=gpt")
        page.goto(address)
        page.keyboard.down("Shift")
        for number in (2, 0):
            page.mouse.click(*place(number))
        page.keyboard.up("Shift")
        page.wait_for_url("**/diff?workload=gpt&side=v1&side=v3")
        page.goto(address)
        page.mouse.move(*place(0.7))
        page.mouse.down()
        page.mouse.move(*place(2.3))
        page.mouse.up()
        page.wait_for_url("**/history?key=step&workload=gpt&from=v2&to=v3")
        drawing.focus()
        page.keyboard.press("Escape")
        page.wait_for_url(address)
        assert page.evaluate("[...document.querySelectorAll('[style]')].length") == 0


def test_the_board_is_refreshed_at_its_place_and_a_page_is_copied(browser, served):
    with browser.visited(served) as page:
        page.wait_for_url(re.compile(r":\d+/$"))
        page.set_viewport_size({"width": 700, "height": 200})
        page.evaluate("scrollTo(0, 20)")
        assert page.get_by_text(re.compile(r"updated \d\d:\d\d UTC")).count() == 1
        # an element that only this load has
        page.evaluate("document.body.dataset.load = 'first'")
        with page.expect_navigation():
            page.evaluate("document.querySelector('[data-refresh]').click()")
        assert page.evaluate("[document.body.dataset.load ?? '', scrollY]") == ["", 20]
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto(f"{page.url}incident/I-1")
        page.get_by_role("button", name="Copy as Markdown").click()
        page.get_by_text("Copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()").startswith("### v3: the step is 2.2 % slower")
        page.get_by_label(re.compile("^choose ")).first.check()
        page.get_by_label("reason (needed but for Acknowledge)").fill("float64")
        page.get_by_role("button", name="Expect").click()
        page.get_by_text("float64").first.wait_for(state="attached")
        assert page.locator("section").get_by_text(re.compile(r"expect by .*float64 \(of \d+\)")).count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_change_and_verdict_are_not_cut_off_on_a_narrow_screen(browser, served, scheme):
    """At 400 px the verdict of each line of the step is whole, and no page is wider than the screen."""
    with browser.visited(served) as page:
        page.wait_for_url(re.compile(r":\d+/$"))
        page.set_viewport_size({"width": 400, "height": 900})
        page.emulate_media(color_scheme=scheme)
        base = page.url
        for address in (
            "",
            "findings",
            "incident/I-1",
            "finding/3",
            "diff?side=v2&side=v3",
            "runs",
            "history",
            "status",
        ):
            page.goto(base + address)
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, address
        page.goto(f"{base}diff?side=v2&side=v3")
        verdicts = page.locator("section table").first.locator("td", has_text=re.compile("^REGRESSED$"))
        ends = verdicts.evaluate_all("cells => cells.map(cell => cell.getBoundingClientRect().right)")
        assert len(ends) > 0 and max(ends) <= 400
        page.goto(base)
        cells = page.locator("section table td:visible")
        ends = cells.evaluate_all("cells => cells.map(cell => cell.getBoundingClientRect().right)")
        texts = [text for text in cells.all_inner_texts() if text]
        assert texts == ["▲", "gpt", "+2.2 %", "op05 +598.92 us", "new I-1", "ack"] and max(ends) <= 400
        colours = cells.evaluate_all("cells => cells.map(cell => getComputedStyle(cell).color)")
        assert len({*colours}) == 2, "all but the workload has the colour of a regression"


def test_paper_has_no_forms_and_no_markdown(browser, served):
    with browser.visited(served) as page:
        page.wait_for_url(re.compile(r":\d+/$"))
        page.goto(f"{page.url}incident/I-1")
        page.emulate_media(media="print")
        assert page.locator("h1").is_visible() and page.locator("table").first.is_visible()
        for left_out in ("nav", "form#act", "#as-markdown", "td input"):
            assert not page.locator(left_out).first.is_visible(), left_out


def test_page_that_is_slow_says_that_it_works(browser, served):
    def answer_late(route):
        time.sleep(0.8)
        route.continue_()

    with browser.visited(served) as page:
        page.wait_for_url(re.compile(r":\d+/$"))
        page.route("**/diff*", answer_late)
        page.goto(f"{page.url}incident/I-1")
        page.evaluate(
            "new MutationObserver(([change]) => sessionStorage.setItem('sign', change.addedNodes[0].textContent))"
            ".observe(document.body, { childList: true })"
        )
        page.get_by_role("link", name="v2 beside v3").click()
        page.wait_for_url("**/diff*")
        assert page.evaluate("sessionStorage.getItem('sign')") == "Working …"
        assert page.locator(".working").count() == 0


PAGES = (
    "", "findings", "incident/I-1", "finding/3", "diff", "diff?side=v2&side=v3", "diff?side=v1&side=v2&side=v3",
    "history", "history?key=op05&workload=gpt", "history?key=*op0*", "run/9", "run/9?by=op", "run/9/ranks",
    "run/9/advice", "runs", "runs?search=nothing", "log?workload=gpt", "status", "search?q=op05",
)  # fmt: skip


@pytest.mark.parametrize(("width", "scheme", "pages"), [
    (1400, "light", PAGES[::2]), (400, "dark", PAGES[1::2]),
    pytest.param(1400, "dark", PAGES, marks=pytest.mark.slow),
    pytest.param(400, "light", PAGES, marks=pytest.mark.slow),
])  # fmt: skip
def test_axe_and_boxes_of_texts_find_nothing_on_any_page(browser, served, width, scheme, pages):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with browser.visited(served) as page:
        page.wait_for_url(re.compile(r":\d+/$"))
        base = page.url
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        for address in pages:
            page.goto(base + address)
            assert page.evaluate(OVERLAPS) == [], address
            page.emulate_media(media="print")
            assert page.evaluate(OVERLAPS) == [], f"{address} on paper"
            page.emulate_media(media="screen")
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            found = axe.run(page)
            assert found.violations_count == 0, f"{address}: {found.generate_report()}"
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address


def tab_to(page, words, most=80):
    """Press Tab until what has the focus is called so; fail after `most` times."""
    name = ""
    for _ in range(most):
        page.keyboard.press("Tab")
        name = page.evaluate("(document.activeElement.ariaLabel ?? document.activeElement.closest('label, a, button, "
                             "summary')?.textContent ?? '').trim()")  # fmt: skip
        if re.search(words, name):
            return
    pytest.fail(f"no way by Tab to {words!r}; the last one is {name!r}")


def test_keys_alone_accept_a_finding_and_take_it_back(browser, served):
    """From the board to the incident, to a finding of it; Expect with a reason, then Undo."""
    with browser.visited(served) as page:
        page.wait_for_url(re.compile(r":\d+/$"))
        tab_to(page, "^gpt$")
        page.keyboard.press("Enter")
        page.wait_for_url("**/incident/I-1")
        tab_to(page, "^op05$")
        page.keyboard.press("Enter")
        page.wait_for_url("**/finding/*")
        address = page.url
        for action, state in (("Expect", "expected"), ("Undo", "new")):
            tab_to(page, "^reason")
            page.keyboard.type(f"{action} by keys")
            tab_to(page, f"^{action}$")
            page.keyboard.press("Enter")
            page.get_by_text(f"{action} by keys").first.wait_for(state="attached")
            assert page.url == address
            assert f"; {state}, I-1" in page.locator("header").first.text_content()


def test_long_names_do_not_widen_a_page(browser, tmp_path):
    """A workload, a branch, a version and a path without a blank, which stand in filters and links above a list."""
    path, long = tmp_path / "t.db", "w" * 300
    with open_store(str(path)) as store:
        save(store, "v" * 200, long, steps=2, path=f"/{'p' * 200}/rank0.pt.trace.json")
        save(store, "v2", f"{long} @ {'b' * 90}", steps=2)
        save(store, "v2", "other", steps=2)
    with serving(path, "--listen", "127.0.0.1:0", "--no-token") as base, browser.visited(base) as page:
        page.set_viewport_size({"width": 400, "height": 900})
        for address in ("", f"?workload={long}", "run/1", "runs?search=ww", "findings", "diff", f"log?workload={long}"):
            page.goto(f"{base.rstrip('/')}/{address}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, address
