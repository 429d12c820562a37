"""The ranks of a job on screen and as a page."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

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
    boxes = re.findall(r"<rect class=(\w+) [^>]*><title>rank (\d), step (\d): [^<]+<", page)
    assert {shade for shade, rank, _ in boxes if rank == "3"} == {"r3"}
    assert [int(step) for _, rank, step in boxes if rank == "0"] == [0, 1, 2, 3, 4]
    assert "rank 3, step 0: 20.00 ms, x2.00" in page and "░" not in page


def map_of(page):
    """Each box of a heat map: its shade and its words."""
    drawn = page.partition("<svg class=heat")[2].partition("</svg></div>")[0]
    return re.findall(r"<rect class=(\w+) [^>]*><title>([^<]+)<", drawn)


def test_five_percent_is_pale_however_slow_another_rank_is(memory_store):
    """Rank 2 takes 5 % longer than its peers, rank 3 ten times as long."""
    own = {0: [10.0] * 3, 1: [10.0] * 3, 2: [10.5] * 3, 3: [100.0] * 3}
    shades = {words: shade for shade, words in map_of(render(cluster(memory_store, job(memory_store, own)), "html"))}
    assert shades["rank 2, step 0: 10.50 ms, x1.05"] == "r1"
    assert shades["rank 3, step 0: 100.00 ms, x10.00"] == "r3"


def test_scale_of_a_map_names_every_shade(memory_store):
    page = render(cluster(memory_store, job(memory_store, OWN)), "html")
    assert [shade for shade, _ in map_of(page)[-7:]] == ["b3", "b2", "b1", "n", "r1", "r2", "r3"]
    assert [f">{text}</text>" in page for text in ("-30 %", "+2 %", "+30 %")] == [True] * 3


def test_numbers_of_steps_stand_above_a_map_and_what_is_missing_is_dashed(memory_store):
    """Rank 1 has steps 0 and 2 alone: its second box is not known, and not that of the step after it."""
    found = cluster(memory_store, job(memory_store, {number: [10.0] * 3 for number in range(3)}))
    captured = tuple(row for row in found.rows.steps if (row.rank, row.step) != (1, 1))
    page = render(replace(found, rows=replace(found.rows, steps=captured)), "html")
    drawn = page.partition("<svg class=heat")[2]
    assert re.findall(r"y=14>(\d+)</text>", drawn) == ["0", "1", "2"]
    assert ("gone", "rank 1, step 1: not captured, -") in map_of(page)


def test_a_map_of_many_steps_has_medians_of_some(memory_store):
    own = {number: [10.0] * 200 for number in range(3)}
    boxes = map_of(render(cluster(memory_store, job(memory_store, own)), "html"))
    assert len(boxes) == 3 * 50 + 7  # 4 steps a box: at most 64 boxes in a row
    assert boxes[0][1] == "rank 0, steps 0 to 3: median x1.00"


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
