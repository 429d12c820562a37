"""The HTML file in a real browser: what a person sees, and that nothing leaves the page."""

from itertools import pairwise

import pytest

from tests.reports import builders
from tests.reports.builders import MS
from tests.reports.test_history import history, point
from tests.reports.test_html import HOSTILE, many, page_of
from tracker.reports.document import Trend
from tracker.reports.html import PLAIN_ROWS, text_of
from tracker.reports.svg import chart

EDGES = ((400, "light"), (400, "dark"), (1400, "light"), (1400, "dark"))


@pytest.fixture
def written(tmp_path):
    """Writes the page of a result."""

    def write(result, **wishes):
        path = tmp_path / "page.html"
        path.write_text(page_of(result, **wishes), encoding="utf-8")
        return path

    return write


def operators_of(page):
    """The table of the operators with what belongs to it, shown: in its tab, without scripts in a box."""
    page.locator("[role=tab], summary", has_text="Operators").first.click()
    return page.locator("section", has=page.locator("h3", has_text="Operators by change"))


def test_answer_step_and_causes_are_on_the_first_screen(browser, written):
    with browser.opened(written(builders.judged())) as page:
        for seen in (page.locator("h1"), page.locator("h1 strong"), page.locator(".bars svg").last,
                     page.locator("section table").nth(1).locator("tr").last):  # fmt: skip
            box = seen.bounding_box()
            assert box and box["y"] + box["height"] <= 900


def test_axe_finds_nothing_in_any_size_and_light(browser, written):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    course = history([point(f"v{at}", (100 + at) * MS, "REGRESSED" * (at == 3) or None) for at in range(6)])
    results = (builders.judged(), builders.diff_with_tree(), builders.shown(), builders.findings(), course)
    for result, edges in zip(results, (EDGES[::2], EDGES[1:2], EDGES[3:], EDGES[:1], EDGES[1:3]), strict=True):
        path = written(result)
        for width, scheme in edges:
            with browser.opened(path, width=width, scheme=scheme) as page:
                page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                found = axe.run(page)
                assert found.violations_count == 0, found.generate_report()
                assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [400, 720, 1400])
def test_words_in_a_chart_never_meet(browser, tmp_path, width):
    for count in (4, 12, 40):
        points = tuple((f"v{at:02}", 9.0 + at / 1000, (), "REGRESSED", "worse") for at in range(count))
        (path := tmp_path / "chart.html").write_text(
            f"<style>{text_of('page.css')}{text_of('charts.css')}</style><main>{chart(Trend('ns', points))}</main>"
        )
        with browser.opened(path, width=width) as page:
            for kind in (".word", ".chart text:not(.word):not(.scale)"):
                boxes = [box for word in page.locator(kind).all() if (box := word.bounding_box())]
                boxes.sort(key=lambda box: box["x"])
                assert len(boxes) > 1
                assert all(one["x"] + one["width"] <= other["x"] for one, other in pairwise(boxes))


def test_a_filter_finds_rows_that_are_packed(browser, written):
    with browser.opened(written(builders.diff(ops=many(1000)))) as page:
        part = operators_of(page)
        assert part.locator("tbody tr").count() == 25
        part.get_by_role("searchbox").fill("op99")
        part.get_by_text("11 of 1,000 rows").wait_for()
        assert part.locator("tbody tr").count() == 11


def test_a_header_sorts_by_size_whatever_the_unit(browser, written):
    ops = [
        builders.op(f"op{at}", "", 100, 100 + size)
        for at, size in enumerate((5, 5_000_000, 5_000, 7, 80, 9, 1, 2, 3, 4))
    ]
    with browser.opened(written(builders.diff(ops=builders.frame("ops", ops)))) as page:
        part = operators_of(page)
        names = part.locator("tbody td:first-child")
        before = names.all_inner_texts()
        part.get_by_role("button", name="candidate").click()
        assert names.all_inner_texts()[:4] == ["op1", "op2", "op4", "op5"]
        part.get_by_role("button", name="candidate").click()
        assert names.all_inner_texts()[0] == "op6"
        assert part.locator("th[aria-sort=ascending]").count() == 1
        part.get_by_role("button", name="candidate").click()
        assert names.all_inner_texts() == before


def test_findings_only_hides_what_is_noise(browser, written):
    with browser.opened(written(builders.diff(ops=judged_ops()))) as page:
        part = operators_of(page)
        part.get_by_label("findings only").check()
        assert part.locator("tbody tr").count() == 3


def judged_ops():
    rows = [
        builders.op(f"op{at}", "", MS, 2 * MS, verdict="REGRESSED" if at < 3 else "INCONCLUSIVE", q=0.01)
        for at in range(40)
    ]
    return builders.frame("ops", rows)


def test_a_button_shows_the_rest_and_printing_shows_all(browser, written):
    with browser.opened(written(builders.diff(ops=many(1000)))) as page:
        part = operators_of(page)
        part.get_by_role("button", name="Show 500 more of 1,000 rows").click()
        part.get_by_role("button", name="Show all 1,000 rows").wait_for()
        assert part.locator("tbody tr").count() == 525
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.locator("tbody tr", has_text="op999").first.wait_for()
        assert page.locator("details:not([open])").count() == 0


def test_the_page_reads_without_scripts(browser, written):
    with browser.opened(written(builders.diff(ops=many(1000))), script=False) as page:
        part = operators_of(page)
        assert part.locator("tbody tr").count() == PLAIN_ROWS
        assert part.locator("noscript p").is_visible()


def test_hostile_names_do_nothing(browser, written):
    ops = builders.frame("ops", [builders.op(f"{at}{HOSTILE}", HOSTILE, MS, 2 * MS) for at in range(300)])
    sides = {"baseline": builders.side(HOSTILE), "candidate": builders.side(f"{HOSTILE}2")}
    with browser.opened(written(builders.diff(ops=ops, **sides))) as page:
        part = operators_of(page)
        part.get_by_role("button", name="Show all 300 rows").click()
        part.locator("tbody tr").nth(299).wait_for()
        assert page.locator("img").count() == 0


def test_a_click_on_a_box_of_a_flame_makes_it_wide(browser, written):
    with browser.opened(written(builders.diff_with_tree())) as page:
        box = page.locator(".flame > svg").last
        before = box.get_attribute("width")
        box.dispatch_event("click")
        assert box.get_attribute("width") == "100%"
        box.dispatch_event("click")
        assert abs(float(box.get_attribute("width").rstrip("%")) - float(before.rstrip("%"))) < 0.01


@pytest.fixture
def chart_of_ten(browser, written):
    """The file of a history of v0 to v9, of 100 to 109 ms, with its drawing."""
    points = [point(f"v{at}", (100 + at) * MS, commit=f"c0ffee{at}") for at in range(10)]
    with browser.opened(written(history(points))) as page:
        page.locator(".plot[data-ready]").wait_for()
        yield page, page.locator(".frame > svg").last


def at_version(drawing, number, count=10):
    """The place of a version in its drawing, as the mouse finds it."""
    box = drawing.bounding_box()
    return box["x"] + box["width"] * (number + 0.5) / count, box["y"] + box["height"] / 2


def test_crosshair_says_what_is_known_of_the_version_below_it(chart_of_ten):
    page, drawing = chart_of_ten
    readout = page.locator(".readout > :not(ul), .readout li")
    assert readout.all_inner_texts() == ["v9 · commit c0ffee9", "109.00 ms, +0.9 % against v8, 3 runs"]
    page.mouse.move(*at_version(drawing, 4))
    assert readout.all_inner_texts() == ["v4 · commit c0ffee4", "104.00 ms, +1.0 % against v3, 3 runs"]
    assert page.locator(".cross").bounding_box()["x"] == pytest.approx(at_version(drawing, 4)[0], abs=2)


def test_keys_move_the_crosshair_and_zoom(chart_of_ten):
    page, drawing = chart_of_ten
    drawing.focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator(".readout p").inner_text().startswith("v8 ")
    page.keyboard.press("Home")
    assert page.locator(".readout p").inner_text().startswith("v0 ")
    page.keyboard.press("End")
    page.keyboard.press("+")
    shown = page.locator(".chart text:not(.word):not(.scale):visible")
    assert "v0" not in shown.all_text_contents() and "v9" in shown.all_text_contents()
    page.keyboard.press("Escape")
    assert "v0" in shown.all_text_contents()


def test_a_drag_shows_a_part_and_a_button_all_of_it(chart_of_ten):
    """From v3 to v6: their labels and their dots are left."""
    page, drawing = chart_of_ten
    dots = page.locator(".frame circle:not(.ring):visible")
    assert dots.count() == 10
    page.mouse.move(*at_version(drawing, 2.6))
    page.mouse.down()
    page.mouse.move(*at_version(drawing, 6.4))
    page.mouse.up()
    assert dots.count() == 4
    labels = page.locator(".chart text:not(.word):not(.scale):visible")
    assert sorted(labels.all_text_contents()) == ["v3", "v4", "v5", "v6"]
    page.get_by_role("button", name="Show all").click()
    assert dots.count() == 10


def test_ten_thousand_rows_open_and_sort_in_a_moment(browser, written):
    with browser.opened(written(builders.diff(ops=many(10_000)))) as page:
        part = operators_of(page)
        took = page.evaluate("performance.now()")
        part.get_by_role("button", name="change", exact=True).click()
        part.locator("th[aria-sort=descending]").wait_for()
        assert page.evaluate("performance.now()") - took < 3_000
