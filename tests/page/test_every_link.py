"""Each kind of link, followed for each workload: none leads to a page that is not there."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

import tracker
from tests.page.browsing import Browser
from tests.regressions import made
from tracker import config
from tracker.profile import Device
from tracker.regressions import judgement
from tracker.store import open_store

SAMPLES = Path(tracker.__file__).parent / "samples"
_DEEP = 3
"""Clicks from the pages of the navigation bar."""
_PLACES = ("nav", "header", "article", "details", "section", "footer", "p", "div", "svg")


def links_of(reply):
    """(place, address) of each link of a page: the innermost of the elements above that it stands in."""
    open_places: list[str] = []
    for end, name, rest in re.findall(r"<(/?)([a-z]+)([^>]*)", reply.text):
        if name in _PLACES:
            if end:
                if name in open_places:
                    del open_places[len(open_places) - 1 - open_places[::-1].index(name) :]
            else:
                open_places.append(name)
        elif name == "a" and not end and (found := re.search(r'href="([^"]+)"', rest)):
            address = unescape(found[1])
            if address.startswith("/"):
                yield (open_places or ["body"])[-1], address


def kind_of(origin, place, address):
    """What is the same link for each workload: the page that it stands on, where, and which page with which options."""
    parts = urlsplit(address)
    query = parse_qsl(parts.query)
    path = re.sub(r"\d+", "N", parts.path)
    workload = dict(query).get("workload", "")
    # of words and of names the option alone
    return origin, place, path, tuple(sorted(name for name, _ in query)), workload


def follow_every_kind(page, most):
    """Follow one link of each kind; return what did not answer, and the kinds. `most`: pages."""
    now = [("", "nav", address) for address in ("/", *page.get("/").hrefs("nav"))]
    kinds, seen, broken = set(), set(), {}
    for _ in range(_DEEP):
        further = []
        for origin, place, address in now:
            kind = kind_of(origin, place, address)
            if kind in kinds or len(seen) >= most:
                continue
            kinds.add(kind)
            if address in seen:
                continue
            seen.add(address)
            reply = page.get(address)
            if reply.status >= 400:
                broken[address] = reply.headline if "<h1>" in reply.text else reply.status
            elif reply.headers["content-type"].startswith("text/html"):
                here = re.sub(r"\d+", "N", urlsplit(address).path)
                further += [(here, *link) for link in links_of(reply)]
        now = further
    return broken, kinds


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The bundled profiles: v01 and v08, three runs each."""
    path = tmp_path_factory.mktemp("demo") / "tracker.db"
    with open_store(str(path)) as store:
        for version in ("v01", "v08"):
            tracker.ingest(sorted((SAMPLES / version).iterdir()), version=version, workload="small_gpt", store=store)
    return path


@pytest.mark.slow
def test_every_kind_of_link_of_the_demo_answers(demo):
    broken, kinds = follow_every_kind(Browser(demo).logged_in(), 250)
    assert broken == {}
    assert {path for _, _, path, *_ in kinds} >= {"/incident/I-N", "/finding/N", "/run/N", "/run/N/ranks", "/history"}


@pytest.mark.slow
def test_every_kind_of_link_of_seven_workloads_answers(tmp_path):
    """7 workloads of 12 versions, 3 runs each but for the last of four: 244 runs; in two of three a version is slower.

    One has a branch, one an operator of its own and another device, and owners answer for some operators.
    """
    path = tmp_path / "tracker.db"
    names = ["gpt", "bert base", "moe&8x7b", "vit/large", "llama?70b", "t5#xl", "d\u00e9it"]
    with open_store(str(path)) as store:
        count = 0
        for at, name in enumerate(names):
            for number in range(12):
                changed = {f"op{at:02}": 5.0} if at % 3 and number >= 8 else None
                several = 3 if number < 11 or at < 3 else 1
                made.runs(store, f"v{number:02}", changed, count=several, start=count, workload=name)
                count += several
        made.runs(store, "push1", start=count, workload="gpt @ pr12")
        made.runs(store, "w1", workload="other", more_ops=[("own_op", 900_000)], device=Device("AMD", "MI300X"))
        judgement.update(store, judgement.tracks_of(store))
    assert count == 244
    owners = (config.Owner(op="op0?", who="Li Wei"), config.Owner(op="*", who="Ann", workload="bert*"))
    page = Browser(path, alerts=config.Alerts(owners=owners)).logged_in()
    broken, kinds = follow_every_kind(page, 1_500)
    assert broken == {}
    assert {workload for *_, workload in kinds} == {"", *names, "gpt @ pr12", "other"}
