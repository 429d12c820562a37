"""Markdown for a comment on a pull request."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.reports import builders
from tests.reports.builders import MS
from tracker.reports import render
from tracker.reports.markdown import MAX_LENGTH, escape


def test_the_headline_is_the_first_line_with_its_verdict():
    assert render(builders.judged(), "markdown").splitlines()[0] == (
        "### v42 ran 4.0 % slower than v41: 100.00 -&gt; 104.00 ms per step (+4.00 ms) **DRIFT**"
    )
    assert render(builders.shown(), "markdown").splitlines()[0] == "### 90.00 ms per step"


def test_the_first_screen_is_open_and_details_are_folded():
    text = render(builders.diff(), "markdown")
    assert text.index("| cause | change |") < text.index("<details>")
    assert "<details><summary>Kernels by change of total time</summary>" in text
    assert text.count("<details>") == text.count("</details>")


def test_names_cannot_break_tables_or_inject_html():
    ops = builders.frame("ops", [builders.op("<img src=x>|`@team` [a](b)\n# x", "", MS, 2 * MS)])
    text = render(builders.diff(ops=ops), "markdown", only=["operator"])
    assert "<img" not in text and "@team" not in text and "](b)" not in text
    (line,) = [line for line in text.splitlines() if "img src" in line]
    assert line.count("|") == 9  # eight cells


@pytest.mark.parametrize("name", ["GH-123", "#123", "@team", "https://x.y/z", "www.x.y", "a_b_c __init__", "1. x"])
def test_names_are_no_links_mentions_or_references(name):
    text = escape(name)
    page = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    assert "<a" not in page and "<strong" not in page and "<em" not in page
    # signs are written as entities, which are read as nothing but signs
    assert not re.search(r"GH-\d|#\d|@\w|://|www\.", re.sub(r"&#\d+;", "", text))


def test_length_is_bounded_and_the_cut_is_stated():
    ops = builders.frame(
        "ops", [builders.op("|" * 3_000 + str(index), "<" * 3_000, MS, 2 * MS) for index in range(900)]
    )
    warnings = []
    text = render(builders.diff(ops=ops), "markdown", limit=0, tell=warnings.append)
    assert len(text) <= MAX_LENGTH
    assert len(warnings) == 1 and "rows per table" in warnings[0]
    note, _, following = text.partition("\n\nNext:\n\n")
    assert note.endswith(" rows per table, to stay below 60,000 characters; --format csv has all.")
    assert following.startswith("- tracker diff")


def test_findings_fit_a_comment_too_and_older_incidents_are_folded():
    incidents = [builders.incident(incident_id=number, version=f"v{number}") for number in range(40)]
    rows = [
        builders.finding(100 * number + at, f"aten::op{'|' * 40}{at}", incident_id=number)
        for number in range(40)
        for at in range(12)
    ]
    text = render(builders.findings(rows, incidents), "markdown", limit=3, tell=str)
    assert len(text) <= MAX_LENGTH
    assert text.count("<details>") == text.count("</details>") > 5
    assert text.splitlines()[0].startswith("### New in v0: ")


def test_what_no_number_of_rows_makes_short_loses_its_last_parts():
    incidents = [builders.incident(incident_id=number, good_version="x" * 900) for number in range(200)]
    rows = [builders.finding(number, "aten::mm", incident_id=number) for number in range(200)]
    warnings = []
    text = render(builders.findings(rows, incidents), "markdown", tell=warnings.append)
    assert len(text) <= MAX_LENGTH
    assert " more parts are left out, to stay below 60,000 characters." in text and len(warnings) == 2
    assert text.partition("\n\nNext:\n\n")[2].startswith("- tracker explain ")


@given(st.text())
def test_escaped_text_is_one_line_without_markup(text):
    escaped = escape(text)
    assert len(escaped.splitlines()) <= 1
    assert not re.search(r"[|`*~@$\\]", escaped.replace("<!-- -->", ""))
