"""Pages say what the commands say, lead to each other, and name what is wrong in one sentence."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import threading
import time
from functools import partial
from html import unescape
from ipaddress import ip_network
from urllib.parse import urlsplit

import pytest
from starlette.responses import Response

from tests.factories import save
from tests.page.browsing import Browser
from tests.ranks.made import job
from tests.regressions import made
from tests.regressions.found import made_finding
from tests.repositories import MadeRepository
from tracker import config
from tracker.page.cache import Cache
from tracker.page.links import PAGES, address_of
from tracker.profile import Device
from tracker.regressions import judgement
from tracker.reports.addresses import incident_address
from tracker.store import open_store

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\"'&"
ADDRESSES = {
    "/": "gpt v3 is 2.2 % slower: op05 is slower per call (+598.92 us)",
    "/findings": "New in v3: the step is 2.2 % slower",
    "/findings?state=all&kind=op_name&new=1": "New in v3: op05",
    "/incident/I-1": "v3: the step is 2.2 % slower",
    "/finding/3": "mean step (whole run) in v3",
    "/diff": "Choose two to five sides",
    "/diff?side=v2&side=v3": "v3 ",
    "/diff?side=v3": "v3 ",
    "/diff?side=v1&side=v2&side=v3&by=op": "",
    "/diff?side=v1&side=v2&side=v3&side=run:1&side=latest": "",
    "/history": "v3 is at",
    "/history?key=op05": "v3 is at",
    "/run/9": "",
    "/run/9?by=op": "",
    "/run/9/ranks": "",
    "/run/9/calls?calls=op05": "op05: ",
    "/run/9/advice": "",
    "/advise?side=v2&side=v3": "",
    "/runs?version=v3": "3 runs",
    "/log?workload=gpt": "v3 is at",
    "/status": "No problem",
    "/search?q=op0": "",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_page_answers_and_names_its_command_and_files(page, address):
    found = page.get(address)
    assert found.status == 200 and found.headline.startswith(ADDRESSES[address])
    assert "style=" not in found.text and "<script>" not in found.text and "http" not in "".join(found.hrefs())
    if address not in ("/diff", "/search?q=op0"):
        # the board has it in its bar
        in_bar = 'title="In a terminal, and as a file"' in found.text
        assert in_bar or "<h2>This page in a terminal</h2>" in found.text
        files = {one.split("?")[0].rpartition(".")[2] for one in found.hrefs("body") if "." in one}
        assert files >= {"json", "html"}


def test_table_of_pages_is_tested_whole():
    heads = {address.split("?")[0].replace("I-1", "{}").replace("3", "{}").replace("9", "{}") for address in ADDRESSES}
    # those of experiments are in test_experiments.py
    assert heads | {"/experiments", "/experiment/{}"} == {one.path for one in PAGES.values()}


def test_rows_lead_to_pages_that_exist_up_to_the_third_click(page):
    seen, now = set(), ["/", "/findings", "/diff?side=v2&side=v3", "/runs?limit=2", "/diff?side=v1&side=v2&side=v3"]
    for _ in range(2):
        seen |= set(now)
        found = {address: page.get(address) for address in now}
        assert {address: one.headline for address, one in found.items() if one.status != 200} == {}
        several = [one.hrefs(part) for one in found.values() for part in ("article", "div", "p")]
        now = sorted({each for one in several for each in one if _is_page(each)} - seen)
    kinds = {one.split("?")[0].rpartition("/")[0] + one.split("?")[0][:4] for one in seen}
    assert {"/finding/fin", "/incident/inc", "/run/run", "/his", "/dif"} <= kinds


def test_each_cell_of_the_board_leads_to_what_it_says(page):
    """The row to its incident, the version to its diff with the one before, its step to the history, its change to the
    diff with the level that it was judged against.
    """
    found = {*page.get("/").hrefs("article")}
    assert found == {
        "/incident/I-1", "/diff?side=v2&side=v3&workload=gpt", "/history?key=step&workload=gpt",
        "/diff?side=v3&workload=gpt",
    }  # fmt: skip


def test_a_point_of_a_history_leads_to_what_changed_there(page):
    """v1 came first: there is nothing to compare it with."""
    text = page.get("/history?key=step&workload=gpt").text
    found = [unescape(one) for one in re.findall(r'<a href="([^"]+)" aria-label=', text)]
    assert found == ["/diff?side=v1&side=v2&workload=gpt", "/incident/I-1"]
    assert "/diff?side=v2&side=v3&workload=gpt" in page.get("/history?key=step&workload=gpt").hrefs("tbody")


def test_range_and_axes_of_a_history_are_links_that_keep_the_rest(page):
    found = page.get("/history?key=op05&workload=gpt&y-axis=zero").hrefs("figure")
    assert "/history?key=op05&workload=gpt&y-axis=zero&last=30" in found
    assert "/history?key=op05&workload=gpt&y-axis=zero&x-axis=date" in found
    assert "/history?key=op05&workload=gpt" in found  # the axis as it is without a choice
    assert {address: page.get(address).status for address in set(found)} == dict.fromkeys(found, 200)


def test_part_of_a_history_leads_back_to_all_of_it(page):
    """v2 to v3 of three versions; the first one shown is still compared with v1."""
    shown = page.get("/history?key=step&workload=gpt&from=v2&to=v3")
    assert "step time of gpt" in shown.text and "v2 to v3, 2 of 3 versions" in shown.text
    assert "/history?key=step&workload=gpt" in shown.hrefs("figure")
    assert "/diff?side=v1&side=v2&workload=gpt" in shown.hrefs("figure")
    assert [one["version"] for one in page.get("/history.json?key=step&workload=gpt&last=1").json["points"]] == ["v3"]
    assert page.get("/history?key=step&workload=gpt&from=v9").headline.startswith("there is no version 'v9'")


def test_labels_of_filters_are_words(page):
    """What a command spells for a terminal, a page says in words."""
    found = page.get("/findings?kind=op").text
    for words in ("kind of series:", "operator with its shapes", "findings that others cover:", "left out", "became:"):
        assert words in found, words
    text = page.get("/diff?side=v2&side=v3&workload=gpt").text
    assert "sides that are not comparable:" in text and "operator (a name; * for any characters)" in text
    for spelled in ("op_name<", ">force:", ">all:", ">no</a>", ">yes</a>"):
        assert spelled not in found + text, spelled


def test_two_versions_of_a_history_lead_to_their_diff(page):
    text = page.get("/history?key=step&workload=gpt").text
    assert 'data-click="diff with the version before, of a change its incident"' in text
    assert 'data-pair="/diff?workload=gpt"' in text and 'data-zoom="/history?key=step&amp;workload=gpt"' in text


def test_each_rank_leads_to_its_diff_against_a_peer(tmp_path):
    """Rank 3 takes 20 ms and is SLOW, the others 10: each is compared with the nearest of the other three."""
    path = tmp_path / "t.db"
    with open_store(str(path)) as store:
        job(store, {**{rank: [10, 10, 10, 10.5] for rank in range(3)}, 3: [20] * 4})
    page = Browser(path).logged_in()
    found = page.get("/run/1/ranks").hrefs("article")
    slow = "/diff?side=run%3A1%3Arank0&side=run%3A1%3Arank3"
    assert slow in found and "/run/1?rank=3&step=0" in found and "/history?key=gemm&workload=gpt" in found
    assert {address: page.get(address).status for address in set(found)} == dict.fromkeys(found, 200)


def test_only_what_has_a_history_leads_to_one(tmp_path):
    """What takes no time of its own, such as none, has no series."""
    path = tmp_path / "t.db"
    with open_store(str(path)) as store:
        save(store, ops=[("large", 10_000_000), ("none", 0)])
    found = Browser(path).logged_in().get("/run/1")
    keys = {one.partition("key=")[2].partition("&")[0] for one in found.hrefs("article")}
    assert ">none<" in found.text and "large" in keys and "none" not in keys


def test_filters_offer_what_the_page_can_be_narrowed_to(db, page):
    """Workload bert ran on another device, and has no v3."""
    with open_store(str(db)) as store:
        save(store, "v2", workload="bert", device=Device("AMD", "MI300X"))
    assert "/diff?side=v1&side=v2&workload=bert" not in page.get("/diff?side=v1&side=v2&workload=gpt").hrefs("div")
    assert "/advise?side=v2&workload=bert" in page.get("/advise?side=v2&workload=gpt").hrefs("div")
    assert not [one for one in page.get("/log?workload=gpt").hrefs("div") if "device=MI300X" in one]


def test_rows_of_a_matrix_lead_to_their_histories(page):
    for address, rows in (("", {"op05", "step", "compute"}), ("&by=module", {"step"})):
        found = page.get(f"/diff?side=v1&side=v2&side=v3{address}").hrefs("article")
        keys = {one.partition("key=")[2].partition("&")[0] for one in found if one.startswith("/history?")}
        assert rows <= keys
        assert {one: page.get(one).status for one in found if "op0" not in one} == {
            one: 200 for one in found if "op0" not in one
        }


def test_advice_is_a_click_from_its_run_and_from_what_to_do(tmp_path):
    """In v2 a gelu was written out: tanh and mul take 5 ms each."""
    from tests.advice import made as advice
    from tracker.advice import stored
    from tracker.reports.views.explained import what_to_do

    path, rows = tmp_path / "t.db", {"input_shapes": "[[8,96,768]]", "input_types": "float"}
    slow = [(f"aten::{name}", 5_000_000, rows) for name in ("tanh", "mul")]
    with open_store(str(path)) as store:
        for version, ops in (("v1", []), ("v2", slow)):
            run = advice.save(store, version, times={"timeline": "host", "compute": 90}, ops=ops, device=advice.CPU)
            stored.keep(store, [run])
        items = stored.of_runs(store, [run])[run].items
    page = Browser(path).logged_in()
    assert f"/run/{run}/advice" in page.get(f"/run/{run}").hrefs("p")
    for is_stored in (True, False):
        if not is_stored:
            with sqlite3.connect(path) as connection:
                connection.execute("DELETE FROM advice")
        assert "K6 activation" in page.get(f"/run/{run}").text
    link = what_to_do(items, made_finding(1, "op", workload="w")).link
    assert address_of(link) == "/advise?side=v1&side=v2&workload=w"
    assert "K6 activation" in page.get(f"/run/{run}/advice").text
    assert "K6 new: activation" in page.get("/advise?side=v1&side=v2").text


def test_the_file_of_a_run_has_the_advice_of_show(tmp_path):
    """Code of the device is loaded while it idles, for 30 of 100 ms."""
    from tests.advice import made as advice

    path = tmp_path / "t.db"
    with open_store(str(path)) as store:
        kernels = [advice.kernel("aten::add", 60)]
        idle = [("compile", "cuModuleLoadData", 30_000_000)]
        run = advice.save(store, times={"compute": 60, "idle": 30}, kernels=kernels, idle=idle)
    page = Browser(path).logged_in()
    (item,) = json.loads(page.get(f"/run/{run}.json").text)["advice"]
    assert (item["rule"], item["gain_ns"]) == ("H5", 30_000_000)
    assert ",H5,host,high," in page.get(f"/run/{run}.csv").text


def test_the_efficiency_of_operators_is_on_the_page_of_the_advice_and_in_the_file_of_the_run(tmp_path):
    """A copy of 10 million elements takes 10 of 100 ms."""
    from tests.advice import made as advice

    path = tmp_path / "t.db"
    with open_store(str(path)) as store:
        kernels = [advice.kernel(advice.op("aten::copy_", (10_000, 1000), (10_000, 1000)), 10)]
        run = advice.save(store, times={"compute": 60, "idle": 0}, kernels=kernels)
    page, heading = Browser(path).logged_in(), "Efficiency: least possible time"
    addresses = (f"/run/{run}", f"/run/{run}/advice", f"/run/{run}.html")
    assert [heading in page.get(address).text for address in addresses] == [False, True, True]


def test_files_are_those_of_the_command_line(page, db, capsys, monkeypatch):
    from tracker.cli import main

    for address, words in (
        ("/findings.json?state=all", ["findings", "--state", "all"]),
        ("/runs.json?version=v3", ["runs", "--version", "v3"]),
        ("/diff.json?side=v2&side=v3", ["diff", "v2", "v3"]),
    ):
        monkeypatch.setattr("sys.argv", ["tracker", *words, "--format", "json", "--db", str(db)])
        capsys.readouterr()
        with pytest.raises(SystemExit):
            main()
        assert json.loads(page.get(address).text) == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("format", ["json", "csv", "xlsx", "html"])
def test_every_page_is_offered_as_a_file(page, format):
    for address in (
        "/board",
        "/findings",
        "/incident/I-1",
        "/finding/3",
        "/status",
        "/diff",
        "/history",
        "/runs",
        "/run/9",
        "/run/9/ranks",
        "/run/9/advice",
        "/advise",
        "/log",
    ):
        query = "?side=v2&side=v3" if address in ("/diff", "/advise") else ""
        found = page.get(f"{address}.{format}{query}")
        assert found.status == 200 and found.body and "attachment" in found.headers["content-disposition"], address


def test_command_of_a_page_has_its_filters(page):
    found = page.get("/diff?side=v2&side=v3&op=op0*&match=name&workload=gpt")
    assert "<code>tracker diff v2 v3 --workload gpt --op &#39;op0*&#39; --match name</code>" in found.text


def test_commits_are_linked_where_the_settings_say_where_they_are(db):
    with open_store(str(db)) as store:
        found = save(store, "v2", of_run={"commit": "a" * 40}) + save(store, "v3", of_run={"commit": "b" * 40})
    assert found
    page = Browser(db, page=config.PageRoles(commit_url="https://git.example/compare/{good}...{bad}")).logged_in()
    for address in ("/incident/I-1", "/finding/3", "/diff?side=v2&side=v3"):
        assert f"https://git.example/compare/{'a' * 40}...{'b' * 40}" in page.get(address).hrefs("p"), address
    assert "https://git" not in page.get("/diff?side=v1&side=v3").text  # v1 has no commit
    history = page.get("/history?key=step&workload=gpt")
    assert f"https://git.example/compare/{'a' * 40}...{'b' * 40}" in history.hrefs("table")


def test_commits_from_the_main_line_to_a_branch_are_linked(tmp_path):
    """In diffs of both orders, and on the page of the incident, as in its message."""
    path = tmp_path / "t.db"
    with open_store(str(path)) as store:
        found = made.runs(store, "m1", of_run={"commit": "a" * 40})
        own = {"commit": "b" * 40, "main_commits": ("a" * 12,)}
        found += made.runs(store, "p1", {"op05": 3.0}, start=3, workload="gpt @ pr12", of_run=own)
        judgement.update(store, judgement.tracks_of(store, found))
    page = Browser(path, page=config.PageRoles(commit_url="https://git.example/{good}...{bad}")).logged_in()
    between = f"https://git.example/{'a' * 40}...{'b' * 40}"
    for address in ("/diff?side=main&side=pr12", "/diff?side=m1&side=p1", "/diff?side=pr12", "/incident/I-1"):
        assert between in page.get(address).hrefs("p"), address
    assert f"https://git.example/{'b' * 40}...{'a' * 40}" in page.get("/diff?side=p1&side=m1").hrefs("p")


def test_what_is_no_commit_is_not_linked(db):
    """As a message does: a build number is no commit."""
    with open_store(str(db)) as store:
        save(store, "v2", of_run={"commit": "build-7"})
        save(store, "v3", of_run={"commit": "build-8"})
    page = Browser(db, page=config.PageRoles(commit_url="https://git.example/{good}...{bad}")).logged_in()
    for address in ("/incident/I-1", "/diff?side=v2&side=v3", "/history?key=step&workload=gpt"):
        assert "https://git.example" not in page.get(address).text, address


def test_pages_without_sides_name_what_a_side_may_be(page):
    for address in ("/diff", "/advise"):
        assert "versions, branches, runs (run:41), latest, or pinned" in page.get(address).headline


def test_pages_name_the_commit_in_the_repository_of_the_settings(db, tmp_path):
    """Also where the server was started in another folder."""
    made = MadeRepository(tmp_path / "clone")
    with open_store(str(db)) as store:
        for version, subject in (("v2", "first"), ("v3", "use the fast path")):
            save(store, version, of_run={"commit": made.commit(subject)})
    page = Browser(db, page=config.PageRoles(repository=str(made.folder))).logged_in()
    bad = made.git("rev-parse", "HEAD")
    for address in ("/incident/I-1", "/finding/3", "/findings"):
        assert f"Between v2 and v3: 1 commit: {bad[:8]} by Ann Lee: use the fast path" in page.get(address).text, (
            address
        )
        assert "Ann Lee" not in Browser(db).logged_in().get(address).text, address


def test_link_of_a_message_leads_one_click_from_its_operator(page):
    """A message has the address of the incident; there each operator that became slower leads to its finding."""
    path = urlsplit(incident_address("https://tracker.example", 1)).path
    found = page.get(path)
    assert found.status == 200
    findings = [address for address in found.hrefs() if address.startswith("/finding/")]
    assert any("op05" in page.get(address).headline for address in findings)


def test_a_filter_is_a_link(page):
    found = page.get("/findings?direction=regression")
    assert "/findings?direction=regression&state=all" in found.hrefs("div")
    assert "/findings" in found.hrefs("div")


def test_hostile_names_are_text_everywhere(tmp_path):
    path = tmp_path / "t.db"
    with open_store(str(path)) as store:
        for version in (f"v1{HOSTILE}", f"v2{HOSTILE}"):
            save(store, version, f"w{HOSTILE}", runs=2, ops=[(f"op{HOSTILE}", 100)], kernels=[(HOSTILE, 100)],
                 host=HOSTILE, of_run={"tags": {"tag": HOSTILE.replace("\u202e", "")}})  # fmt: skip
    page = Browser(path).logged_in()
    for address in ("/", "/findings", "/history", "/runs", "/run/1", "/run/1/ranks", "/run/1/advice", "/log", "/status",
                    "/diff?side=run:1&side=run:3", f"/history?key={'%3Cimg%20src=x%3E'}"):  # fmt: skip
        found = page.get(address)
        assert found.status in (200, 400), address
        assert "<img" not in found.text and "\u202e" not in found.text, address
        assert found.text.count("</script>") == 1 + found.text.count("octet-stream"), address


BAD = {
    "/nowhere": 404,
    "/run/999": 404,
    "/run/abc": 404,
    f"/run/{'9' * 30}": 404,
    "/run/999/ranks": 404,
    "/finding/999": 404,
    "/finding/I-1": 404,
    "/incident/999": 404,
    "/incident/x.json": 404,
    "/diff?side=v1&side=v99": 400,
    "/diff?side=v1&side=/etc/passwd": 404,
    "/diff?side=v1&side=./tracker.db": 404,
    "/diff?side=v1&side=~root/x": 404,
    "/diff?side=v1&side=trace.json.gz": 404,
    "/diff?side=v1&side=tests": 404,
    "/diff?side=v1&side=pyproject.toml": 404,
    "/run/9/ranks?side=/etc/passwd": 404,
    "/diff?side=1&side=2&side=3&side=4&side=5&side=6": 400,
    "/diff?side=v1&side=v2&op_map=/etc/passwd": 400,
    "/diff?side=v1&side=v2&op-map=/etc/passwd": 400,
    "/diff?side=v1&side=v2&by=module&depth=0": 400,
    "/findings?workload=nothing": 400,
    "/findings?kind=nothing": 400,
    "/findings?new=perhaps": 400,
    "/findings?nothing=1": 400,
    "/findings?kind=op&kind=run": 400,
    f"/findings?workload={'x' * 10_000}": 400,
    f"/findings?{'x' * 10_000}=1": 400,
    f"/runs?{'&'.join(['tag=a'] * 3_000)}": 400,
    "/runs?limit=-1": 400,
    "/runs?version=v%00": 400,
    "/history?key=%ff%0a": 400,
    "/history?key=nothing": 400,
    "/log?workload=nothing": 400,
}


@pytest.mark.parametrize("address", BAD, ids=lambda address: address[:40])
def test_what_is_wrong_is_one_sentence_with_its_status(page, address):
    found = page.get(address)
    assert found.status == BAD[address]
    assert 10 < len(found.headline) < 500 and "Traceback" not in found.text and "root:" not in found.text


def test_a_page_of_one_workload_offers_the_workloads(db, page):
    """A second workload, so that the history of the step is of none; the files of a page have no such choice."""
    with open_store(str(db)) as store:
        save(store, "v1", workload="bert")
        save(store, "v2", workload="bert")
    for address in ("/history?", "/log?", "/history?key=step&", "/diff?side=v1&side=v2&"):
        found = page.get(address.rstrip("?&"))
        assert (found.status, found.headline) == (200, "Choose one of 2 workloads"), address
        links = [f"{address}workload=bert", f"{address}workload=gpt"]
        assert found.hrefs("section") == links
        assert [page.get(link).status for link in links] == [200, 200]
    assert page.get("/history.json").status == 400
    assert page.get("/diff?side=v1&side=v9").status == 400


def test_paths_are_refused_alike_whether_they_exist(page):
    there, missing = (page.get(f"/diff?side=v1&side={path}") for path in ("/etc/passwd", "/etc/passwd-not-here"))
    assert there.status == missing.status == 404
    assert there.headline == missing.headline.replace("-not-here", "")


def test_a_branch_is_a_side_of_the_diff_page(page, db, tmp_path, monkeypatch):
    with open_store(str(db)) as store:
        made.runs(store, "fix1", {"op05": 1.6}, start=9, workload="gpt @ my-branch")
    found = page.get("/diff?side=main&side=my-branch")
    assert found.status == 200 and found.headline.startswith("my-branch ")
    assert "gpt, main v3 → my-branch fix1" in found.text
    assert "main: the newest version of the main line, v3 (3 runs); my-branch: its newest version fix1" in found.text
    assert "tracker diff main my-branch" in found.text
    assert "the main line at v3" in page.get("/diff?side=my-branch").text
    unknown = page.get("/diff?side=main&side=our-branch")
    assert unknown.status == 400 and "branches: my-branch (--branch NAME for a version of one)" in unknown.text
    # of two workloads with a main line one is chosen
    with open_store(str(db)) as store:
        made.runs(store, "b1", start=30, workload="bert")
    assert page.get("/diff?side=main&side=main").headline == "Choose one of 2 workloads"
    assert 'value="my-branch"' in page.get("/diff").text
    # a file of that name is not read
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-branch").write_text("[]")
    beside = page.get("/diff.json?side=main&side=my-branch").json
    assert beside["candidate"]["run_ids"] == [10, 11, 12]
    assert page.get("/diff?side=main&side=./my-branch").status == 404


def test_a_version_named_like_a_file_is_the_version(page, db, monkeypatch):
    (db.parent / "v2").write_text("{}")
    monkeypatch.chdir(db.parent)
    assert page.get("/diff?side=v2&side=v3").status == 200


def test_a_database_that_goes_away_and_comes_back(page, db):
    kept = db.with_name("kept.db")
    shutil.move(db, kept)
    gone = page.get("/findings")
    assert gone.status == 503 and "Traceback" not in gone.text
    db.write_bytes(b"no database" * 1000)
    assert page.get("/findings").status == 503
    shutil.move(kept, db)
    assert page.get("/findings").status == 200


class Slow:
    """Pages that take a while: which, what they wait for, and when they began and ended."""

    def __init__(self) -> None:
        self.pages, self.waits, self.times = ["history"], partial(time.sleep, 0.15), []

    def answer(self, usual, store, asked, settings):
        if asked.page in self.pages:
            self.times.append("begins")
            self.waits()
            self.times.append("ends")
        return usual(store, asked, settings)


@pytest.fixture
def slow(monkeypatch):
    from tracker.page import app

    made = Slow()
    monkeypatch.setattr(app, "answer", partial(made.answer, app.answer))
    return made


def test_what_takes_too_long_is_broken_off(page, slow, monkeypatch):
    monkeypatch.setattr("tracker.page.app.LONGEST_S", 0.05)
    history = page.get("/history")
    assert history.status == 503
    assert history.headline.startswith("This takes longer than 0 s, so it was broken off; narrow it")
    monkeypatch.setattr("tracker.page.app.LONGEST_S", 30)
    assert page.get("/history").status == 200


def test_one_user_asks_one_long_question_at_a_time(db, page, slow):
    assert [one.status for one in page.get_at_once("/history", "/history", "/")] == [200] * 3
    assert slow.times == ["begins", "ends"] * 2


def test_a_board_and_other_users_are_answered_meanwhile(db, page, slow):
    """Each of two pages waits until the other one has begun."""
    slow.pages, slow.waits = ["history", "board"], threading.Barrier(2, timeout=20).wait
    assert [one.status for one in page.get_at_once("/history", "/")] == [200] * 2
    network = {"header": "x-forwarded-user", "proxies": (ip_network("10.0.0.0/8"),)}
    several = Browser(db, client="10.0.0.1", **network)
    several.get_at_once("/history", "/history", of_each=[{"x_forwarded_user": name} for name in ("li", "wang")])
    assert slow.times == ["begins", "begins", "ends", "ends"] * 2


@pytest.fixture
def answers(monkeypatch):
    """The pages that were made, by their words."""
    from tracker.page import app

    made, usual = [], app.answer
    monkeypatch.setattr(
        app, "answer", lambda store, asked, known: made.append(asked.page) or usual(store, asked, known)
    )
    return made


def settle(db):
    """A database as it is some seconds after its last change."""
    for path in db.parent.glob(f"{db.name}*"):
        os.utime(path, (time.time() - 5, time.time() - 5))


def test_a_page_is_made_once_until_the_database_changes(page, db, answers):
    settle(db)
    first, again = page.get("/"), page.get("/")
    assert first.body == again.body and answers == ["board"]
    page.get("/?workload=gpt")
    assert page.act("ack", "I-1").status == 303
    assert "acknowledged" in page.get("/finding/3").text
    settle(db)
    assert page.get("/").body != first.body
    assert answers == ["board", "board", "finding", "board"]


def test_a_board_reads_no_names_of_operators(page, monkeypatch):
    """A workload has thousands of them, and the board leads to histories of whole runs alone."""
    from tracker.store import queries

    asked, usual = [], queries.series_names
    monkeypatch.setattr(queries, "series_names", lambda *words: asked.append(words[1:]) or usual(*words))
    assert "/history?key=step&workload=gpt" in page.get("/").hrefs("article")
    assert asked == [("gpt", "run")]
    page.get("/run/9")
    assert ("gpt", None) in asked


def test_a_page_of_one_reader_is_not_that_of_another(db, answers):
    network = {"header": "x-forwarded-user", "proxies": (ip_network("10.0.0.0/8"),), "actors": frozenset(["li"])}
    page = Browser(db, client="10.0.0.1", **network)
    settle(db)
    texts = {name: page.get("/finding/3", x_forwarded_user=name).text for name in ("li", "wang", "li")}
    assert ['method="post"' in text for text in texts.values()] == [True, False]
    assert answers == ["finding"] * 2


def test_old_and_many_pages_are_made_again():
    """Kept: 64 pages, 32 MiB together, for a minute."""
    now = [0.0]
    cache = Cache(lambda: now[0])
    for number in range(65):
        cache.keep(number, Response(f"{number}"))
    assert cache.get(0) is None and cache.get(1).body == b"1"
    cache.keep("large", Response(b"x" * 33 * 2**20))
    assert cache.get(64) is None
    cache.keep("new", Response("new"))
    now[0] = 61.0
    assert cache.get("new") is None


def test_an_empty_database_has_pages(tmp_path):
    path = tmp_path / "t.db"
    open_store(str(path)).close()
    page = Browser(path).logged_in()
    assert {address: page.get(address).status for address in ("/", "/runs", "/status", "/diff")} == (
        dict.fromkeys(("/", "/runs", "/status", "/diff"), 200)
    )
    for address in ("/findings", "/history", "/log"):
        found = page.get(address)
        assert found.status == 400 and "runs" in found.headline


def test_a_defect_is_one_sentence_and_goes_to_the_log(page, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("tracker.page.app.answer", fail)
    with pytest.raises(ZeroDivisionError):  # what the log of the server gets, once the page is sent
        page.get("/findings")
    assert page.last.status == 500 and "secret" not in page.last.text and "Traceback" not in page.last.text
    assert "script-src 'self'" in page.last.headers["content-security-policy"]


def _is_page(address: str) -> bool:
    """Of the many operators one stands for all."""
    return "." not in address.split("?", maxsplit=1)[0] and ("key=op" not in address or "key=op05" in address)
