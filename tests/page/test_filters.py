"""Lists are narrowed by links: to a workload, a branch, a device, an owner; the page says so, and leads back."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tests.factories import save
from tests.page.browsing import Browser
from tracker import config
from tracker.compare import branch_sides
from tracker.config import Owner
from tracker.page.filters import workloads_with
from tracker.profile import Device
from tracker.store import open_store

OWNERS = (
    Owner(op="*attention*", who="Li Wei"),
    Owner(op="*", who="Ann", workload="bert*"),
    Owner(op="*conv*", who="Bob"),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """gpt has attention, with branch pr12; bert has none; vit is another one without an owner."""
    path = tmp_path_factory.mktemp("filters") / "tracker.db"
    with open_store(str(path)) as store:
        for workload in ("gpt", "gpt @ pr12", "bert", "vit"):
            ops = [("flash_attention", 400_000)] if "gpt" in workload else [("mm", 400_000)]
            save(store, "v1", workload, ops=ops, steps=3)
    return path


@pytest.fixture
def page(path):
    return Browser(path, alerts=config.Alerts(owners=OWNERS)).logged_in()


def workloads(reply):
    """The workloads on a board."""
    return [unescape(name) for name in re.findall(r"<tr[^>]*><td[^>]*><td[^>]*><a [^>]*>([^<]+)</a>", reply.text)]


def filters_of(reply):
    """Words -> address of the links of the filters, by the name of the filter."""
    bars = re.findall(r'<div class="bar"><span[^>]*>(\w+):</span>(.*?)</div>', reply.text, re.DOTALL)
    links = {name: re.findall(r'<a href="([^"]+)"[^>]*>([^<]*)</a>', bar) for name, bar in bars}
    return {name: {words: unescape(address) for address, words in found} for name, found in links.items()}


def test_an_owner_sees_the_workloads_of_their_operators(page):
    assert workloads(page.get("/")) == ["bert", "gpt", "vit"]
    offered = filters_of(page.get("/"))["owner"]
    assert list(offered) == ["any", "Ann", "Bob", "Li Wei"]
    assert workloads(page.get(offered["Li Wei"])) == ["gpt"]
    assert workloads(page.get(offered["Ann"])) == ["bert"]
    nothing = page.get(offered["Bob"])
    assert (nothing.status, nothing.headline) == (200, "no workload fits these filters")
    assert "tracker ingest" not in nothing.text


def test_the_first_owner_of_an_operator_is_its_owner(path):
    """Ann comes first for all of gpt: nothing of it is left for Li Wei."""
    owners = (Owner(op="*", who="Ann", workload="GPT"), *OWNERS)
    page = Browser(path, alerts=config.Alerts(owners=owners)).logged_in()
    assert workloads(page.get("/?owner=Ann")) == ["bert", "gpt"]
    assert workloads(page.get("/?owner=Li+Wei")) == []


def test_an_owner_that_is_none_is_one_sentence(page, path):
    wrong = page.get("/?owner=nobody")
    assert (wrong.status, wrong.headline) == (400, "there is no owner 'nobody'; there are Ann, Bob, Li Wei")
    without = Browser(path).logged_in()
    assert "owner" not in filters_of(without.get("/"))
    assert "the settings file has no [[alerts.owners]]" in without.get("/?owner=Ann").headline


def test_a_branch_is_chosen_and_left_again(page):
    offered = filters_of(page.get("/"))
    assert list(offered["workload"]) == ["any", "bert", "gpt", "vit"]
    assert list(offered["branch"]) == ["main line", "pr12 of gpt"]
    of_branch = page.get(offered["branch"]["pr12 of gpt"])
    assert workloads(of_branch) == ["gpt @ pr12"]
    assert "tracker board --workload &#39;gpt @ pr12&#39;" in of_branch.text
    back = filters_of(of_branch)["branch"]
    assert list(back) == ["main line", "pr12"]
    assert workloads(page.get(back["main line"])) == ["gpt"]
    assert "branch" not in filters_of(page.get("/?workload=bert"))


def test_filters_add_up_and_the_page_says_how_to_leave_them(page):
    first = page.get("/?owner=Li+Wei")
    both = filters_of(first)["workload"]["gpt"]
    assert "owner=Li+Wei" in both and "workload=gpt" in both
    found = page.get(both)
    assert '<strong>workload gpt, owner Li Wei</strong></span> <a href="/">show all</a>' in found.text
    assert "tracker board --workload gpt --owner &#39;Li Wei&#39;" in found.text
    assert "show all" not in page.get("/").text
    assert "show all" in page.get("/findings?direction=regression").text


def test_more_workloads_than_links_are_written(tmp_path):
    path = tmp_path / "many.db"
    with open_store(str(path)) as store:
        for number in range(41):
            save(store, "v1", f"w{number:02}", steps=1)
    page = Browser(path).logged_in()
    found = page.get("/")
    assert "workload" not in filters_of(found) and '<input name="workload"' in found.text
    assert workloads(page.get("/?workload=w07")) == ["w07"]


def test_no_choice_leads_to_a_workload_without_the_rest(tmp_path):
    """bert has no v2, no MI300X and no attention: filters of those do not offer it, and what they offer answers."""
    path = tmp_path / "t.db"
    with open_store(str(path)) as store:
        for workload in ("gpt", "moe"):
            for version in ("v1", "v2"):
                save(store, version, workload, ops=[("attention", 400_000)], device=Device("AMD", "MI300X"))
        save(store, "v1", "bert", ops=[("mm", 400_000)])
    page = Browser(path).logged_in()
    for address in ("/runs?version=v2", "/?device=MI300X", "/history?key=attention", "/log?device=MI300X"):
        found = page.get(address)
        offered = [*filters_of(found).get("workload", {}).values(), *found.hrefs("section")]
        assert not [link for link in offered if "bert" in link], address
        assert any("workload=gpt" in link for link in offered), address
        assert {link: page.get(link).status for link in offered} == dict.fromkeys(offered, 200), address


def test_workloads_with_a_branch_cost_one_question_to_git(tmp_path, monkeypatch):
    """Only gpt has the side: the others are not offered, and git is not asked of each."""
    asked = []
    monkeypatch.setattr(branch_sides, "name_of_remote_main_line", lambda *_: asked.append(1) or "")
    with open_store(str(tmp_path / "many.db")) as store:
        for number in range(5):
            save(store, "v1", f"w{number}", steps=1)
        save(store, "push1", "w3 @ pr12", steps=1)
        assert workloads_with(store, ["v1", "pr12"]) == ["w3"]
        assert workloads_with(store, ["nowhere"]) == []
        assert workloads_with(store, ["latest", "main"]) == [f"w{number}" for number in range(5)]
    assert len(asked) == 2, "once for each question"


def test_a_row_of_a_workload_on_two_devices_leads_to_its_own(tmp_path):
    with open_store(str(tmp_path / "t.db")) as store:
        save(store, "v1", "gpt", ops=[("mm", 400_000)], steps=3)
        save(store, "v1", "gpt", ops=[("mm", 500_000)], steps=3, device=Device("AMD", "MI300X"))
    page = Browser(tmp_path / "t.db").logged_in()
    found = {address for address in page.get("/").hrefs("article") if "workload=gpt" in address}
    assert {address for address in found if "MI300X" in address} == {
        "/runs?version=v1&workload=gpt&device=AMD+MI300X",
        "/history?key=step&workload=gpt&device=AMD+MI300X",
    }
    assert {address: page.get(address).status for address in found} == dict.fromkeys(found, 200)
    assert "AMD MI300X" in page.get("/history?key=step&workload=gpt&device=AMD+MI300X").text
