"""Messages lead to their incident and its commits; who made a commit is asked when they are sent, and never stored."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import text

import tracker
from tests.notify.made import MINUTE, NOW, alerts, slower, text_of_database
from tests.regressions.made import runs
from tests.reports.builders import messages
from tests.repositories import MadeRepository
from tracker import compare, notify
from tracker.config import PageRoles
from tracker.notify.linking import Linker, example_of
from tracker.regressions.judgement import tracks_of, update
from tracker.reports.message import json_of, of_json
from tracker.reports.message import write as render_message
from tracker.store import open_store, queries

PAGE = PageRoles(url="https://tracker.example/", commit_url="https://git.example/compare/{good}...{bad}")


@pytest.fixture
def commits(tmp_path):
    """A repository whose last commit is of v2."""
    made = MadeRepository(tmp_path / "clone")
    return [made.commit("first"), made.commit("use the fast path", "Grace Persona")]


def sent(store, good, bad, page=PAGE):
    """The message on v2, of `bad`, which is slower than v1, of `good`, as it reaches a channel."""
    arrived = []
    settings = alerts()
    runs(store, "v1", of_run={"commit": good} if good else None)
    notify.enqueue(store, settings, now_ns=NOW)
    slower(store, of_run={"commit": bad} if bad else None)
    notify.enqueue(store, settings, now_ns=NOW)
    notify.deliver(
        store, settings, now_ns=NOW + 2 * MINUTE, page=page, send=lambda channel, message: arrived.append(message)
    )
    (message,) = arrived
    return message


def test_a_message_leads_to_its_incident_and_commits(store, commits, tmp_path):
    store.repository = str(tmp_path / "clone")
    good, bad = commits
    message = sent(store, good, bad)
    (incident,) = message.incidents
    url = f"https://git.example/compare/{good}...{bad}"
    assert (incident.url, incident.commits_url) == ("https://tracker.example/incident/I-1", url)
    assert (incident.commits, incident.author, incident.subject) == (1, "Grace Persona", "use the fast path")
    lines = render_message(message).body.splitlines()
    assert lines[:3] == [
        "Incident I-1: https://tracker.example/incident/I-1",
        f"1 commit: {bad[:8]} by Grace Persona: use the fast path",
        f"    {url}",
    ]


def test_a_message_names_a_few_commits_one_by_one(store, commits, tmp_path):
    store.repository = str(tmp_path / "clone")
    made = MadeRepository(tmp_path / "clone", is_new=False)
    last = made.commit("drop the cache", "Li Wei")
    body = render_message(sent(store, commits[0], last)).body
    assert body.splitlines()[1:5] == [
        f"2 commits between v1 and v2: {commits[0][:8]}..{last[:8]}",
        f"    {last[:8]} by Li Wei: drop the cache",
        f"    {commits[1][:8]} by Grace Persona: use the fast path",
        f"    https://git.example/compare/{commits[0]}...{last}",
    ]


def test_commits_are_between_the_versions_that_have_them():
    """What leads was good until v10, the step until v09."""
    own = messages.told(
        good_version="v09", version="v11", good_commit="a" * 40, commit="b" * 40, good_commit_version="v10"
    )
    assert "Commits between v10 and v11: aaaaaaaa..bbbbbbbb" in render_message(messages.message("opened", own)).body


def test_who_made_a_commit_is_never_stored(commits, tmp_path):
    path = tmp_path / "own.db"
    with open_store(str(path)) as store:
        store.repository = str(tmp_path / "clone")
        assert sent(store, *commits).incidents[0].author == "Grace Persona"
        kept = text_of_database(path)
    assert commits[1].encode() in kept, "the commits are"
    assert not re.search(b"Grace|Persona|fast path|tracker.example", kept)


def test_without_settings_the_commits_alone_are_named(memory_store, commits):
    good, bad = commits
    message = sent(memory_store, good, bad, PageRoles())
    body = render_message(message).body
    assert body.startswith(f"Commits between v1 and v2: {good[:8]}..{bad[:8]}\n\n- op07")
    assert "://" not in body


@pytest.mark.parametrize("commit", ["", "main", "v1&evil=1", "x) [click](https://evil.example"])
def test_what_is_no_hash_leads_to_no_commits(memory_store, commits, commit):
    (incident,) = sent(memory_store, commits[0], commit).incidents
    assert (incident.url, incident.commits_url) == ("https://tracker.example/incident/I-1", "")
    assert (incident.commit, incident.commits) == ("", None)


def test_links_that_were_stored_do_not_count():
    """Who can write into the database sends nobody elsewhere."""
    evil = {"url": "https://evil.example", "commits_url": "https://evil.example", "author": "Eve", "commits": 3}
    stored = messages.message("opened", messages.told(good_commit="x)", commit="https://evil.example", **evil))
    linked = Linker(PageRoles(), None).link(of_json(json_of(stored).decode()))
    for markdown in (False, True):
        text = render_message(linked, markdown=markdown).body
        assert not re.search(r"evil|Eve|3 commits", text)


def test_a_repository_that_is_gone_fails_no_message(memory_store, commits):
    memory_store.repository = "/nowhere/at/all"
    (incident,) = sent(memory_store, *commits).incidents
    assert (incident.commits, incident.author) == (None, "")
    assert incident.commits_url.startswith("https://git.example/compare/")


def test_an_example_shows_both_links_and_names_a_wrong_repository():
    found = example_of(PAGE, "/nowhere/at/all")
    assert found.url == "https://tracker.example/incident/I-4"
    page, commits, repository = found.sentences
    assert page == "Messages on I-4 will link https://tracker.example/incident/I-4"
    assert commits.endswith("will link https://git.example/compare/4af1c2d0...83fb3812")
    assert repository.startswith("[page] repository: /nowhere/at/all is no folder")
    assert example_of(PageRoles(), None).sentences == ()


def test_alert_findings_and_explain_name_the_same_commits(store, commits, tmp_path):
    """The step is good until v1, which has no commit, but what makes it slow until v2."""
    store.repository = str(tmp_path / "clone")
    good, bad = commits
    settings, arrived = alerts(), []
    runs(store, "v1")
    runs(store, "v2", start=3, of_run={"commit": good})
    update(store, tracks_of(store))
    notify.enqueue(store, settings, now_ns=NOW)
    slower(store, "v3", start=6, of_run={"commit": bad})
    of_v1 = " ".join(map(str, queries.run_ids_of_version(store, "v1")))
    with store.begin() as connection:
        connection.execute(text("UPDATE judged_version SET base_runs = :runs"), {"runs": of_v1})
    notify.enqueue(store, settings, now_ns=NOW)
    send = lambda channel, message: arrived.append(message)  # noqa: E731
    notify.deliver(store, settings, now_ns=NOW + 2 * MINUTE, page=PAGE, send=send)
    found = tracker.findings(store=store)
    assert found.rows.incidents[0].good_version == "v1"
    said = f"1 commit: {bad[:8]} by Grace Persona: use the fast path"
    body = render_message(arrived[0]).body
    assert said in body and f"/compare/{good}...{bad}" in body and "has no commit" not in body
    for rows in (found.rows.findings, [one.finding for one in tracker.explain("I-1", store=store)]):
        assert compare.notes_on_commits(store, rows) == (f"Between v2 and v3: {said}",)
