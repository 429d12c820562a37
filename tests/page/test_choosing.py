"""Runs and versions are chosen, not written: boxes, proposals of a field, and links."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qsl, urlsplit

import pytest

import tracker
from tests.factories import save
from tests.page.browsing import Browser
from tests.regressions import made
from tracker.regressions import judgement
from tracker.store import open_store

HOSTILE = "<script>alert(1)</script>" + "x" * 370
"""The longest label has 400 characters; names of operators have thousands."""
LONG = "<script>alert(1)</script>" + "y" * 575


def compare(page, *sides):
    """Press the button below the runs, as a browser does; return the sides of the diff that it leads to."""
    form = re.search(r'<form method="get" action="([^"]+)" id="runs">', page.get("/runs").text)
    reply = page.get(f"{form[1]}?{'&'.join(f'side={side}' for side in sides)}")
    assert reply.status == 303 and page.get(reply.headers["location"]).status == 200
    address = urlsplit(reply.headers["location"])
    assert address.path == "/diff"
    return [value for name, value in parse_qsl(address.query) if name == "side"]


def test_two_checked_runs_lead_to_their_diff(page):
    text = page.get("/runs").text
    form = re.search(r'<form method="get" action="([^"]+)" id="runs">(.*?)</form>', text, re.DOTALL)
    assert "Compare the checked runs" in form[2] and "<input" not in form[2]
    boxes = re.findall(r'<input type="checkbox" name="(\w+)" value="([^"]+)" form="runs"', text)
    assert boxes[0] == ("side", "run:9") and len(boxes) == 9


def test_the_older_of_two_checked_runs_stands_first(page):
    """The list has the newest run first: v3 is 8.3 % slower than v1, not v1 faster than v3."""
    assert compare(page, "run:9", "run:1") == ["run:1", "run:9"]
    assert "slower" in page.get("/diff?side=run:1&side=run:9").headline
    assert compare(page, "run:2", "run:1") == ["run:1", "run:2"]
    assert compare(page, "run:9", "run:4", "run:1") == ["run:1", "run:4", "run:9"]
    assert compare(page, "run:9") == ["run:9"]


def test_checked_runs_follow_the_order_of_versions(tmp_path):
    """v1 came in after v2, as runs 3 and 4, and run 3 was recorded after run 4: order and clock come before numbers."""
    path = tmp_path / "tracker.db"
    with open_store(str(path)) as store:
        save(store, "v2", started_at_ns=1_000)
        save(store, "v2", started_at_ns=2_000)
        save(store, "v1", started_at_ns=9_000)
        save(store, "v1", started_at_ns=8_000)
        tracker.order_versions(["v1", "v2"], workload="gpt", store=store)
    page = Browser(path).logged_in()
    assert compare(page, "run:3", "run:2", "run:1") == ["run:3", "run:1", "run:2"]
    assert compare(page, "run:3", "run:4") == ["run:4", "run:3"]


def test_a_checked_run_of_the_main_line_precedes_a_branch(tmp_path):
    path = tmp_path / "tracker.db"
    with open_store(str(path)) as store:
        save(store, "push1", "gpt @ pr12")
        save(store, "v1", "gpt")
    page = Browser(path).logged_in()
    assert compare(page, "run:2", "run:1") == ["run:2", "run:1"]
    assert compare(page, "run:1", "run:2") == ["run:2", "run:1"]


def test_checked_runs_of_two_workloads_follow_their_start(tmp_path):
    """Their versions have no common order."""
    path = tmp_path / "tracker.db"
    with open_store(str(path)) as store:
        save(store, "v1", "gpt", started_at_ns=9_000)
        save(store, "v1", "bert", started_at_ns=8_000)
    assert compare(Browser(path).logged_in(), "run:1", "run:2") == ["run:2", "run:1"]


def swap_links(page, address):
    """The link of a page that swaps its sides; [] where it has none."""
    return re.findall(r'<a class="button" href="([^"]+)">swap sides</a>', html.unescape(page.get(address).text))


def test_a_diff_has_a_link_that_swaps_its_sides(page):
    """The swapped diff has a link back; both keep what else was chosen."""
    here = "/diff?side=v1&side=v3&workload=gpt&by=module"
    (there,) = swap_links(page, here)
    assert there == "/diff?side=v3&side=v1&workload=gpt&by=module"
    assert swap_links(page, there) == [here]
    assert "faster" in page.get(there).headline


def test_swapped_sides_keep_the_steps_of_each(page):
    (there,) = swap_links(page, "/diff?side=v1&side=v3&baseline-step=0&candidate-step=1")
    assert dict(parse_qsl(urlsplit(there).query)) == {"side": "v1", "baseline-step": "1", "candidate-step": "0"}


def test_a_diff_of_one_side_is_swapped_with_its_baseline(page):
    """v2 did not differ from v1: the baseline of v3 is the level of their six runs."""
    (there,) = swap_links(page, "/diff?side=v3&workload=gpt")
    runs = "%2C".join(f"run%3A{number}" for number in range(1, 7))
    assert there == f"/diff?side=v3&side={runs}&workload=gpt"
    assert page.get(there).status == 200


def test_a_matrix_has_no_link_that_swaps_sides(page):
    assert swap_links(page, "/diff?side=v1&side=v2&side=v3") == []


def test_what_all_runs_share_is_no_column(page):
    """All nine runs are of gpt; three versions differ."""
    text = page.get("/runs").text
    heads = re.findall(r"<th>(?:<a [^>]*>)?(.*?)<", text)
    assert "workload" not in heads and {"run", "version", "step time"} <= set(heads)
    assert "all with workload gpt" in text


def test_what_differs_between_runs_is_a_column(db, page):
    with open_store(str(db)) as store:
        save(store, "v1", "bert")
    text = page.get("/runs").text
    assert "workload" in re.findall(r"<th>(.*?)</th>", text) and "all with workload" not in text


def test_a_diff_without_sides_offers_versions(page):
    found = page.get("/diff")
    pairs = ["/diff?side=v2&side=v3&workload=gpt", "/diff?side=v1&side=v2&workload=gpt"]
    assert found.hrefs("section")[:2] == pairs
    assert re.findall(r'<option value="([^"]+)">', found.text) == ["latest", "pinned", "v3", "v2", "v1"]
    assert found.text.count('list="offers"') == 3
    assert [page.get(address).status for address in pairs] == [200, 200]


def test_a_diff_offers_the_versions_of_its_workload(db, page):
    with open_store(str(db)) as store:
        save(store, "w1", "bert")
    offers = re.findall(r'<option value="([^"]+)">', page.get("/diff?workload=bert").text)
    assert offers == ["latest", "pinned", "w1"]


@pytest.mark.parametrize("address", ["/", "/runs", "/diff", "/findings", "/history", "/log", "/status", "/search?q=x"])
def test_pages_without_runs_say_so(tmp_path, address):
    """No page of an empty database fails on the server; those that need a run say how one comes in."""
    path = tmp_path / "tracker.db"
    with open_store(str(path)):
        pass
    found = Browser(path).logged_in().get(address)
    assert found.status < 500 and found.headline
    if address == "/":
        assert "tracker ingest PATH" in found.text


def test_one_version_alone_can_be_read(tmp_path):
    path = tmp_path / "tracker.db"
    with open_store(str(path)) as store:
        runs = made.runs(store, "v1", count=1)
        judgement.update(store, judgement.tracks_of(store, runs))
    page = Browser(path).logged_in()
    for address in ("/", "/runs", "/diff", "/history?key=step&workload=gpt", "/findings", "/run/1"):
        assert page.get(address).status == 200, address
    assert page.get("/").hrefs("article").count("/runs?version=v1&workload=gpt") == 1


def test_names_of_600_characters_and_of_markup_are_text(tmp_path):
    path = tmp_path / "tracker.db"
    with open_store(str(path)) as store:
        runs = made.runs(store, "v1", {LONG: 1_000_000}, workload=HOSTILE)
        runs += made.runs(store, f"v2{HOSTILE}", {LONG: 9_000_000}, start=5, workload=HOSTILE)
        judgement.update(store, judgement.tracks_of(store, runs))
    page = Browser(path).logged_in()
    followed, now = set(), ["/", "/runs", "/diff", "/findings", "/incident/I-1", "/search?q=yyy"]
    for _ in range(2):
        found = {address: page.get(address) for address in now}
        assert {address: reply.headline for address, reply in found.items() if reply.status >= 400} == {}
        assert [address for address, reply in found.items() if "<script>alert" in reply.text] == []
        followed |= set(now)
        links = {address for reply in found.values() for address in reply.hrefs("article") if address.startswith("/")}
        now = sorted(links - followed)
    assert any(address.startswith("/history?key=%3Cscript") for address in followed)


@pytest.mark.slow
def test_a_hundred_workloads_stand_on_one_board(tmp_path):
    path = tmp_path / "tracker.db"
    with open_store(str(path)) as store:
        for number in range(100):
            save(store, "v1", f"w{number:03}", steps=3)
    found = Browser(path).logged_in().get("/")
    assert found.status == 200 and found.headline == "No open regression"
    assert "Nothing to decide (100)" in found.text


def test_a_filter_offers_no_throughput_where_no_run_states_one(page):
    offered = page.get("/log").hrefs("div")
    assert "/log?metric=step" in offered and "/log?metric=throughput" not in offered
    assert page.get("/log?metric=step").status == 200


def test_a_filter_offers_no_pinned_version_where_there_is_none(db, page):
    address = "/history?key=step&workload=gpt&against=pinned"
    assert address not in page.get("/history?key=step&workload=gpt").hrefs("div")
    with open_store(str(db)) as store:
        tracker.pin_version("v2", workload="gpt", store=store)
    assert address in page.get("/history?key=step&workload=gpt").hrefs("div")
    assert page.get(address).status == 200
