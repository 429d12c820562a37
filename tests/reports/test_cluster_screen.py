"""The ranks of a job on screen and as a page."""

from __future__ import annotations

import pytest

from tests.ranks.made import job
from tests.reports.test_diff_screen import cells_of, line_of
from tracker.ranks import cluster
from tracker.reports import render

OWN = {number: [10.0] * 5 for number in range(4)} | {3: [20.0] * 5}


def test_who_holds_the_job_back_comes_first_and_the_map_shows_it(memory_store):
    text = render(cluster(memory_store, job(memory_store, OWN)), "text", width=100)
    assert text.splitlines()[1].startswith("rank 3 holds the job back by 10.00 ms a step")
    assert cells_of(text, "3 ")[0] == "3"
    assert line_of(text, "rank    0").endswith("░░░█")
    assert "What the captures cannot tell" in text and len(text.splitlines()) <= 40


def test_the_page_draws_ranks_and_steps_in_place_of_the_map(memory_store):
    page = render(cluster(memory_store, job(memory_store, OWN)), "html")
    assert page.count("<rect class=r3") == 5 and "rank 3, step 0: 20.00 ms, x2.00" in page
    assert "░" not in page


@pytest.mark.parametrize("format", ["text", "markdown", "html", "json", "csv"])
def test_a_hostile_host_name_is_inert(memory_store, format):
    name = "\x1b[31m<script>alert(1)</script>\n::error::"
    found = cluster(memory_store, job(memory_store, OWN, {3: {"host": name}}))
    text = str(render(found, format))
    assert "\x1b[31m" not in text and "\n::error::" not in text
    assert format in ("json", "csv", "text") or "<script>alert" not in text


def test_a_thousand_ranks_are_lines_of_64(memory_store):
    own = {number: [10.0] * 3 for number in range(130)} | {129: [20.0] * 3}
    found = cluster(memory_store, job(memory_store, own))
    text = render(found, "text", width=100)
    assert [line.split()[1] for line in text.splitlines() if line.startswith("  rank ") and "░" in line] == [
        "0",
        "64",
        "128",
    ]
    assert render(found, "html").count("<rect class=n") >= 129
