"""A page for a terminal, line by line: colours, wide characters, folded columns, paragraphs."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tracker.reports._human import UNDER, WORDS, Column, Table
from tracker.reports._layout import wrapped
from tracker.reports.shared import Style
from tracker.reports.to_text import _Page

COLUMNS = (Column("op", **WORDS), Column("shapes", **UNDER), Column("time"), Column("verdict", left=True))
SLOWER = ("mm", "[[8]]", "9.5 us", "REGRESSED")
RED, GREEN, BOLD, DIM, END = "\x1b[31m", "\x1b[32m", "\x1b[1m", "\x1b[2m", "\x1b[0m"


def lines(table, width, *, color=False):
    """The lines of the table alone, of a page that begins with it."""
    page = _Page(Style(width=width, color=color))
    page.table(table)
    return page.end("the answer").splitlines()[:-2]


def test_a_cell_has_the_colour_of_its_row_and_the_gaps_have_none():
    table = Table("", COLUMNS, (SLOWER, ("relu", "[[8]]", "10 us", "")), ("worse", ""))
    assert lines(table, 60, color=True) == [
        f"{DIM}  {END}{DIM}op  {END}{DIM}  {END}{DIM}shapes{END}{DIM}  {END}{DIM}  time{END}{DIM}  {END}"
        f"{DIM}verdict  {END}",
        f"  {RED}mm  {END}  {RED}[[8]] {END}  {RED}9.5 us{END}  {RED}REGRESSED{END}",
        "  relu  [[8]]    10 us           ",
    ]
    assert lines(table, 60) == [
        "  op    shapes    time  verdict",
        "  mm    [[8]]   9.5 us  REGRESSED",
        "  relu  [[8]]    10 us",
    ]


def test_what_folds_under_a_name_is_dim_in_the_colour_of_its_row():
    named = ("a_long_name_of_an_op", *SLOWER[1:])
    assert lines(Table("", COLUMNS, (named,), ("worse",)), 40, color=True)[1:] == [
        f"  {RED}a_long_na…_of_an_op{END}  {RED}9.5 us{END}  {RED}REGRESSED{END}",
        f"  \x1b[2;31m  [[8]]{END}{RED}{' ' * 12}{END}{' ' * 19}",
    ]


def test_cells_of_a_row_may_differ_in_colour():
    columns = (Column("a"), Column("b"))
    table = Table("", columns, (("1", "2"),), ("",), cell_tones=(("better", "strong"),))
    assert lines(table, 40, color=True)[1] == f"  {GREEN}1{END}  {BOLD}2{END}"


def test_wide_characters_take_two_cells():
    table = Table("", COLUMNS, (SLOWER, ("日本", "[[16]]", "1 us", "SUSPECT")), ("", ""))
    assert lines(table, 60) == [
        "  op    shapes    time  verdict",
        "  mm    [[8]]   9.5 us  REGRESSED",
        "  日本  [[16]]    1 us  SUSPECT",
    ]


def test_a_sentence_under_a_row_takes_the_whole_width_behind_its_indent():
    table = Table("", COLUMNS, (SLOWER,), ("",), below=("it is slower, and that has been so for three runs",))
    assert lines(table, 40)[-2:] == ["    it is slower, and that has been so", "    for three runs"]
    *_, last = lines(table, 40, color=True)
    assert last == f"    {DIM}for three runs{END}{' ' * 22}"


def test_an_empty_table_says_so():
    assert lines(Table("Kernels", COLUMNS, (), ()), 40) == ["", "Kernels", "  no rows"]


WIDTHS = st.integers(min_value=2, max_value=30)
"""Of a line; a wide character needs 2."""
TEXTS = st.text(alphabet="ab. 日é", max_size=60)


@given(text=TEXTS, width=WIDTHS)
@example(text="eight ch and more", width=8)
@example(text="一二三四五 六", width=5)
def test_a_paragraph_is_wrapped_as_rich_wraps_it(text, width):
    assert [line.rstrip() for line in wrapped(text, width)] == [
        line.plain.rstrip() for line in Text(text).wrap(Console(width=width), width)
    ]
    assert all(cell_len(line) <= width for line in wrapped(text, width))
