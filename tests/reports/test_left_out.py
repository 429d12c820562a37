"""Columns that explain stay in a narrow terminal; what is left out is named once, and signs have ASCII forms."""

from __future__ import annotations

import re

import pytest

from tests.reports import builders
from tracker import reports
from tracker.reports import _human_diff
from tracker.reports._human import NAME, Column, make
from tracker.reports._layout import fit
from tracker.reports.shared import Style
from tracker.reports.signs import encodable
from tracker.reports.to_text import _Page


def table(*dropped):
    columns = [Column("name", **NAME), *(Column(name, drop=at) for name, at in dropped), Column("cause")]
    return make("", columns, [("", ["x" * 30, *("12345678" for _ in dropped), "slower calls"])])


def text_of(width, *tables):
    page = _Page(Style(width=width))
    for one in tables:
        page.table(one)
    return page.end("The answer.")


def test_columns_left_out_are_named_once_per_screen():
    first, second = table(("calls", 2), ("q", 3)), table(("q", 1))
    assert "left out" not in text_of(120, first, second)
    lines = text_of(40, first, second).splitlines()
    assert " ".join(lines[-4:-1]).startswith("2 columns left out: calls, q; use --format csv")
    assert lines[-1] == "The answer."
    assert sum("left out" in line for line in lines) == 1


def test_a_folded_column_is_not_left_out():
    columns = [Column("name", **NAME), Column("cause", left=True, elastic=True, fold=True), Column("q", drop=1)]
    fitted = fit(make("", columns, [("", ["x" * 60, "slower calls", "0.0012345678901234"])]), 40)
    assert (fitted.left_out, fitted.rows[0][0][1].strip()) == (("q",), "slower calls")


@pytest.mark.parametrize("width", [80, 100])
def test_cause_and_share_of_a_finding_stay(width):
    shown = reports.render(builders.findings(), "text", width=width)
    heads = [line for line in shown.splitlines() if re.search(r"\bid +finding\b", line)]
    assert heads and all("of the change" in line for line in heads)
    assert "slower per call" in " ".join(shown.split())


@pytest.mark.parametrize("width", [78, 98])
def test_why_calls_or_time_per_call_stays(width):
    explanation = builders.diff().explanation
    for by_name in (True, False):
        heads = {column.header.split("\n")[-1] for column in fit(_human_diff.causes(explanation, 10, by_name=by_name),
                                                                 width).columns}  # fmt: skip
        assert {"operator", "change", "by calls", "per call"} <= heads


@pytest.mark.parametrize(
    ("encoding", "same"), [("ascii", False), ("latin-1", False), ("utf-8", True), ("iso8859-15", False)]
)
def test_signs_that_an_encoding_lacks_become_ascii(encoding, same):
    text = "▁▂▃▄▅▆▇█·▲▼ a…b"
    shown = encodable(text, encoding)
    assert (shown == text) is (encoding == "utf-8")
    assert len(shown) == len(text)
    shown.encode(encoding)


def test_a_text_of_which_the_encoding_has_all_signs_stays():
    assert encodable("3, ±2 % of 日本", "latin-1") == "3, ±2 % of 日本"
    assert encodable("3, ±2 %", "ascii") == "3,+-2 %"
