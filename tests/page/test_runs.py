"""The list of runs: found by their words, with what of their environment differs, and cut where they are many."""

from __future__ import annotations

import json
import re

import pytest

from tests.factories import save
from tests.page.browsing import Browser
from tracker.profile import Device
from tracker.store import open_store
from tracker.store import runs as edits


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Run 1: gpt v1 on H100, batch 32. 2: gpt v2 on MI300X, tagged and with a commit. 3: bert v2, excluded."""
    path = tmp_path_factory.mktemp("runs") / "tracker.db"
    with open_store(str(path)) as store:
        first = {"configuration": {"batch": "32"}, "facts": {"torch": "2.4"}}
        save(store, "v1", device=Device("NVIDIA", "H100 80GB"), of_run=first)
        second = {"configuration": {"batch": "64"}, "facts": {"torch": "2.6", "driver": "550"}}
        second |= {"tags": {"image": "2024-06"}, "commit": "abcdef0123", "note": "after the 100% fix"}
        save(store, "v2", device=Device("AMD", "MI300X"), of_run=second)
        (third,) = save(store, "v2", "bert", device=Device("NVIDIA", "H100 80GB"))
        edits.exclude_all(store, [third], "noisy")
    return path


@pytest.fixture
def page(path):
    return Browser(path).logged_in()


def runs_on(reply):
    return [int(number) for number in re.findall(r'value="run:(\d+)" form="runs"', reply.text)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("h100", [1]), ("GPT", [2, 1]), ("v2 mi300", [2]), ("batch=32", [1]), ("image=2024", [2]), ("ABCDEF", [2]),
        ("rank0.pt.trace", [2, 1]), ("run:1", [1]), ("100%25", [2]), ("m?300", [2]), ("h100 mi300", []), ("_1", []),
    ],
)  # fmt: skip
def test_runs_are_found_by_all_their_words(page, words, expected):
    assert runs_on(page.get(f"/runs?search={words.replace(' ', '+').replace('?', '%3F')}")) == expected


def test_a_search_reaches_runs_that_are_not_listed(page):
    assert runs_on(page.get("/runs?limit=1")) == [2]
    assert runs_on(page.get("/runs?limit=1&search=v1")) == [1]
    assert runs_on(page.get("/runs?search=bert&state=all")) == [3]


def test_no_run_is_said_with_the_words_and_how_to_see_more(page):
    found = page.get("/runs?search=bert")
    assert found.headline == "No active run has bert"
    assert "<code>tracker runs --search bert --state all</code>" in found.text
    assert '<strong>search bert</strong></span> <a href="/runs">show all</a>' in found.text


def test_too_many_runs_are_said_to_be_cut(page):
    found = page.get("/runs?limit=1")
    assert found.headline == "The newest 1 run; older ones match, too"
    assert "only the newest 1 are listed" in found.text
    assert page.get("/runs?limit=2").headline == "2 runs"


def test_environment_that_differs_is_a_column(page):
    """torch and batch differ; a driver is known of one run alone, which is no difference."""
    heads = re.findall(r"<th>(.*?)</th>", page.get("/runs").text)
    assert heads[-2:] == ["batch", "torch"] and "driver" not in heads
    alone = re.findall(r"<th>(.*?)</th>", page.get("/runs?search=v1").text)
    assert "torch" not in alone


def test_only_so_many_columns_of_an_environment(tmp_path):
    path = tmp_path / "t.db"
    with open_store(str(path)) as store:
        for version in "ab":
            save(store, version, of_run={"facts": {f"key{at}": version for at in range(9)}})
    found = Browser(path).logged_in().get("/runs")
    heads = re.findall(r"<th>(.*?)</th>", found.text)
    assert [one for one in heads if one.startswith("key")] == [f"key{at}" for at in range(6)]
    assert "they also differ in key6, key7, key8" in found.text


def test_the_command_finds_the_same(page, path, capsys, monkeypatch):
    from tracker.cli import main

    monkeypatch.setattr("sys.argv", ["tracker", "runs", "--search", "v2 mi300", "--format", "json", "--db", str(path)])
    with pytest.raises(SystemExit):
        main()
    found = json.loads(capsys.readouterr().out)
    assert found == page.get("/runs.json?search=v2+mi300").json
    assert [run["run_id"] for run in found["runs"]] == [2]
