"""Markdown for a comment on a pull request."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reports import builders
from tests.reports.builders import MS
from tracker.reports import render_diff, render_show
from tracker.reports.to_markdown import MAX_LENGTH, escape


def test_headline_is_the_answer():
    first = render_diff(builders.diff(), "markdown").splitlines()[0]
    assert first.startswith("### v42 is slower than v41: step 100.00 ms")


def test_names_cannot_break_tables_or_inject_html():
    ops = builders.frame("ops", [builders.op("<img src=x>|`@team` [a](b)\n# x", "", MS, 2 * MS)])
    text = render_diff(builders.diff(ops=ops), "markdown", only=["operator"])
    assert "<img" not in text and "@team" not in text and "](b)" not in text
    (line,) = [line for line in text.splitlines() if "img src" in line]
    assert line.count("|") == 8  # seven cells


def test_long_tables_are_folded_and_the_overall_one_is_not():
    text = render_diff(builders.diff(), "markdown")
    assert "**Overall, per step and rank**" in text
    assert "<details><summary>Kernels by change of total time</summary>" in text
    assert text.count("<details>") == text.count("</details>")


def test_length_is_bounded_and_the_cut_is_told():
    ops = builders.frame(
        "ops", [builders.op("|" * 3_000 + str(index), "<" * 3_000, MS, 2 * MS) for index in range(900)]
    )
    told = []
    text = render_diff(builders.diff(ops=ops), "markdown", limit=0, tell=told.append)
    assert len(text) <= MAX_LENGTH
    assert "more" in text and len(told) == 1 and "rows per table" in told[0]


def test_a_run_has_its_summary_as_headline():
    assert render_show(builders.shown(), "markdown").startswith(
        "### run 41: step 90.00 ms, E2E 80.00 ms; compute 75.0 %"
    )


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_escaped_text_is_one_line_without_markup(text):
    escaped = escape(text)
    assert len(escaped.splitlines()) <= 1
    assert not re.search(r"[<|`*~@$\\]", escaped)
