"""Markdown for a comment on a pull request."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.reports import builders
from tests.reports.builders import MS
from tracker.reports import render
from tracker.reports.to_markdown import MAX_LENGTH, escape


def test_headline_is_the_answer():
    first = render(builders.diff(), "markdown").splitlines()[0]
    assert first.startswith("### v42 is slower than v41: step 100.00 ms")


def test_names_cannot_break_tables_or_inject_html():
    ops = builders.frame("ops", [builders.op("<img src=x>|`@team` [a](b)\n# x", "", MS, 2 * MS)])
    text = render(builders.diff(ops=ops), "markdown", only=["operator"])
    assert "<img" not in text and "@team" not in text and "](b)" not in text
    (line,) = [line for line in text.splitlines() if "img src" in line]
    assert line.count("|") == 8  # seven cells


def test_long_tables_are_folded_and_the_overall_one_is_not():
    text = render(builders.diff(), "markdown")
    assert "**Overall, per step**" in text
    assert "<details><summary>Kernels by change of total time</summary>" in text
    assert text.count("<details>") == text.count("</details>")


def test_length_is_bounded_and_the_cut_is_told():
    ops = builders.frame(
        "ops", [builders.op("|" * 3_000 + str(index), "<" * 3_000, MS, 2 * MS) for index in range(900)]
    )
    told = []
    text = render(builders.diff(ops=ops), "markdown", limit=0, tell=told.append)
    assert len(text) <= MAX_LENGTH
    assert "more" in text and len(told) == 1 and "rows per table" in told[0]


def test_a_cut_page_says_so_itself_before_the_command_for_more():
    ops = builders.frame("ops", [builders.op(f"{'|' * 300}{at}", "", MS, 2 * MS) for at in range(900)])
    *_, note, _, hint = render(builders.diff(ops=ops), "markdown", limit=0, tell=str).splitlines()
    assert note.endswith(" rows per table, to stay below 60,000 characters; --format csv has them all.")
    assert "Details: tracker diff" in hint


def test_findings_fit_a_comment_too_and_older_incidents_are_folded():
    incidents = [builders.incident(incident_id=number, version=f"v{number}") for number in range(40)]
    rows = [
        builders.finding(100 * number + at, f"aten::op{'|' * 40}{at}", incident_id=number)
        for number in range(40)
        for at in range(12)
    ]
    told = []
    text = render(builders.findings(rows, incidents), "markdown", limit=0, tell=told.append)
    assert len(text) <= MAX_LENGTH and told
    assert text.count("<details>") == text.count("</details>") > 5
    assert text.splitlines()[0].startswith("### New: since v0, ")
    assert [line for line in text.splitlines() if line.startswith("**I-")][-1].startswith("**I-2: ")


def test_what_no_number_of_rows_makes_short_loses_its_last_parts():
    incidents = [builders.incident(incident_id=number, causes="x" * 900) for number in range(200)]
    rows = [builders.finding(number, "aten::mm", incident_id=number) for number in range(200)]
    told = []
    text = render(builders.findings(rows, incidents), "markdown", tell=told.append)
    assert len(text) <= MAX_LENGTH
    assert " more parts are left out, to stay below 60,000 characters." in text and len(told) == 2
    assert text.splitlines()[-1].startswith("Why, test by test: tracker explain ")


def test_long_tables_are_folded():
    environment = [{"kind": "fact", "key": f"key{at}", "baseline": "1", "candidate": "2"} for at in range(16)]
    text = render(builders.diff(environment=builders.frame("environment", environment)), "markdown")
    assert "<details><summary>What else changed</summary>" in text
    assert "**Overall, per step**" in text


def test_a_run_has_its_summary_as_headline():
    assert render(builders.shown(), "markdown").startswith(
        "### run 41: 90.00 ms per step; whole capture: E2E 80.00 ms (mean of 2 ranks), compute 75.0 %"
    )


@given(st.text())
def test_escaped_text_is_one_line_without_markup(text):
    escaped = escape(text)
    assert len(escaped.splitlines()) <= 1
    assert not re.search(r"[<|`*~@$\\]", escaped)
