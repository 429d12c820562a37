"""Runs and versions are chosen, not written: boxes, proposals of a field, and links."""

from __future__ import annotations

import re

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


def test_two_checked_runs_lead_to_their_diff(page):
    text = page.get("/runs").text
    form = re.search(r'<form method="get" action="([^"]+)" id="runs">(.*?)</form>', text, re.DOTALL)
    assert form[1] == "/diff" and "Compare the checked runs" in form[2] and "<input" not in form[2]
    boxes = re.findall(r'<input type="checkbox" name="(\w+)" value="([^"]+)" form="runs"', text)
    assert boxes[0] == ("side", "run:9") and len(boxes) == 9
    assert page.get("/diff?side=run:9&side=run:1").status == 200


def test_what_all_runs_share_is_no_column(page):
    """All nine runs are of gpt; three versions differ."""
    text = page.get("/runs").text
    heads = re.findall(r"<th>(.*?)</th>", text)
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
    assert found.hrefs("article")[:2] == pairs
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
    assert page.get("/").hrefs("article").count("/run/1") == 1


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
    assert found.status == 200 and found.headline == "100 workloads, no open regression"


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
