"""Pages say what the commands say, lead to each other, and name what is wrong in one sentence."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.factories import save
from tests.page.browsing import Browser
from tracker.page.links import PAGES
from tracker.store import open_store

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\"'&"
ADDRESSES = {
    "/": "1 track: 1 with new regressions",
    "/findings": "New in v3: the step is 2.2 % slower",
    "/findings?state=all&kind=op_name&new=1": "New in v3: op05",
    "/incident/I-1": "step (whole run) in v3",
    "/finding/3": "step (whole run) in v3",
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
    "/runs?version=v3": "3 runs",
    "/log?workload=gpt": "v3 is at",
    "/status": "No problem",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_page_answers_and_names_its_command_and_files(page, address):
    found = page.get(address)
    assert found.status == 200 and found.headline.startswith(ADDRESSES[address])
    assert "style=" not in found.text and "<script>" not in found.text and "http" not in "".join(found.hrefs())
    if address != "/diff":
        assert "<h2>In a terminal</h2>" in found.text
        assert {one.split("?")[0].rpartition(".")[2] for one in found.hrefs("main") if "." in one} >= {"json", "html"}


def test_table_of_pages_is_tested_whole():
    heads = {address.split("?")[0].replace("I-1", "{}").replace("3", "{}").replace("9", "{}") for address in ADDRESSES}
    assert heads == {one.path for one in PAGES.values()}


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
        "/finding/3",
        "/diff",
        "/history",
        "/runs",
        "/run/9",
        "/run/9/ranks",
        "/log",
    ):
        query = "?side=v2&side=v3" if address == "/diff" else ""
        found = page.get(f"{address}.{format}{query}")
        assert found.status == 200 and found.body and "attachment" in found.headers["content-disposition"], address


def test_command_of_a_page_has_its_filters(page):
    found = page.get("/diff?side=v2&side=v3&op=op0*&match=name&workload=gpt")
    assert "<code>tracker diff v2 v3 --workload gpt --op &#39;op0*&#39; --match name</code>" in found.text


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
    for address in ("/", "/findings", "/history", "/runs", "/run/1", "/run/1/ranks", "/log", "/status",
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


def test_paths_are_refused_alike_whether_they_exist(page):
    there, missing = (page.get(f"/diff?side=v1&side={path}") for path in ("/etc/passwd", "/etc/passwd-not-here"))
    assert there.status == missing.status == 404
    assert there.headline == missing.headline.replace("-not-here", "")


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
