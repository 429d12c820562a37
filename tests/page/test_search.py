"""The search of every page: what has the words in its name, and where it is shown."""

from __future__ import annotations

import pytest

from tests.factories import save
from tests.page.browsing import Browser
from tracker.page.search import search
from tracker.store import open_store


def found(document):
    """Title of each table -> its first cells."""
    return {block.title: [row[0] for row in block.rows] for block in document.blocks}


@pytest.mark.parametrize("words", ["OP0", "*op05", "*p05", "op?5"])
def test_operators_are_found_in_any_case_and_by_patterns(page, words):
    """v3 made op05 slower: it has a finding, and a series with and one without shapes."""
    found = page.get(f"/search?q={words.replace('?', '%3F')}")
    links = found.hrefs("article")
    assert any(link.startswith("/finding/") for link in links)
    assert any(link.startswith("/history?key=op05&") for link in links)
    assert words == "OP0" or "op07" not in found.text


def test_numbers_are_runs_and_incidents(page):
    assert page.get("/search?q=run:9").headers["location"] == "/run/9"
    assert "/run/9" in page.get("/search?q=9").hrefs("article")
    assert page.get("/search?q=I-1").headers["location"] == "/incident/I-1"
    assert not page.get("/search?q=run:99").hrefs("article")


def test_versions_and_workloads_lead_to_their_runs_and_board(page):
    assert page.get("/search?q=v3").headers["location"] == "/runs?version=v3&workload=gpt"
    assert "/runs?version=v3&workload=gpt" in page.get("/search?q=v*").hrefs("article")
    assert page.get("/search?q=GPT").headers["location"] == "/?workload=gpt"


def test_what_is_not_there_is_said(page):
    assert "Nothing has nope in its name" in page.get("/search?q=nope").text
    assert "Write a part of the name" in page.get("/search").text


def test_signs_of_a_pattern_are_letters_in_names(store):
    """% and _ of SQL, and ! which escapes them."""
    for workload in ("a_b", "axb", "50%", "wow!"):
        save(store, "v1", workload)
    for words, name in (("a_b", "a_b"), ("0%", "50%"), ("w!", "wow!")):
        assert found(search(store, words))["Workloads"] == [name]


def test_many_names_are_cut_and_said(tmp_path):
    with open_store(str(tmp_path / "many.db")) as store:
        save(store, "v1", ops=[(f"aten::op{at:03}", 100) for at in range(120)], runs=2)
        document = search(store, "aten::")
    assert document.headline.startswith("At least ")
    (cut,) = [block for block in document.blocks if len(block.rows) == 50]
    assert cut.note == "only the first 50 are listed: write more of the name" and not cut.more
    assert all(len(block.rows) <= 50 for block in document.blocks)


def test_every_page_has_the_search(db):
    browser = Browser(db).logged_in()
    for address in ("/", "/findings", "/runs", "/incident/I-1", "/search?q=op"):
        assert 'action="/search"' in browser.get(address).text, address
    assert 'value="op"' in browser.get("/search?q=op").text


def test_letters_beyond_ascii_are_found_as_they_are_written(store):
    """LOWER of both databases leaves them alone."""
    save(store, "v1", "Größe_ÄÖ")
    for words in ("Größe_ÄÖ", "GRößE_Ä", "ÄÖ"):
        assert found(search(store, words)).get("Workloads") == ["Größe_ÄÖ"], words


def test_a_number_names_what_its_word_says(page):
    """The finding 3, the run 3 and the incident 1 are three things."""
    links = page.get("/search?q=3").hrefs("article")
    assert "/finding/3" in links and "/run/3" in links
    assert page.get("/search?q=run+3").hrefs("article") == ["/run/3"]
    assert page.get("/search?q=I-1").headers["location"] == "/incident/I-1"
