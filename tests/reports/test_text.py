"""Documents on a terminal: width, colours, folded columns, bars, and what there is no room for."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tests.reports import builders
from tests.reports.builders import MS
from tracker.reports import encodable, render
from tracker.reports.document import NAME, UNDER, WORDS, Column, Document, Lines, Look, Table, table
from tracker.reports.text import bar, fit, shorten, shortened, wrapped
from tracker.reports.text import render as text_of

COLUMNS = (Column("op", **WORDS), Column("shapes", **UNDER), Column("time"), Column("verdict", left=True))
SLOWER = ("mm", "[[8]]", "9.5 us", "REGRESSED")
RED, GREEN, BOLD, DIM, END = "\x1b[31m", "\x1b[32m", "\x1b[1m", "\x1b[2m", "\x1b[0m"


def page(*blocks, width=60, color=False, **fields):
    """The lines of a document of these blocks."""
    made = Document(title="gpt, H100", headline="v2 is 3.0 % slower than v1", blocks=blocks, **fields)
    return text_of(made, Look(width=width, color=color, details=True)).splitlines()


def lines(one, width=60, *, color=False):
    """The lines of one table, behind title, headline and a blank line."""
    return page(one, width=width, color=color)[3:]


def test_the_headline_is_the_second_line_with_its_verdict_at_the_right():
    assert page(verdict="REGRESSED", tone="worse", width=50) == [
        "gpt, H100",
        "v2 is 3.0 % slower than v1               REGRESSED",
    ]
    coloured = page(verdict="REGRESSED", tone="worse", width=50, color=True)[1]
    assert coloured.endswith("\x1b[1;31mREGRESSED\x1b[0m")


def test_the_verdict_survives_where_there_is_no_room_beside_the_headline():
    assert "REGRESSED" in " ".join(page(verdict="REGRESSED", width=40)[:3])


def test_remarks_precede_the_blocks_and_notes_and_commands_follow():
    found = page(Lines("Runs", ("run 1",)), remarks=("One run.",), notes=("Note: no steps",), next_commands=("a", "b"))
    assert found[2:] == ["One run.", "", "Runs", "  run 1", "", "Note: no steps", "", "Next:", "  a", "  b"]


def test_details_only_with_details_and_a_section_alone():
    first = table("First", COLUMNS, [("", SLOWER)], is_first=True)
    detail = table("Detail", COLUMNS, [("", SLOWER)], section="kernel")
    made = Document(title="t", headline="h", blocks=(first, detail))
    shown = {
        words: [title for title in ("First", "Detail") if title in text_of(made, Look(width=80, **look))]
        for words, look in {"": {}, "details": {"details": True}, "only": {"only": ("kernel",)}}.items()
    }
    assert shown == {"": ["First"], "details": ["First", "Detail"], "only": ["Detail"]}


def test_a_cell_has_the_colour_of_its_row():
    one = Table("", COLUMNS, (SLOWER, ("relu", "[[8]]", "10 us", "")), ("worse", ""))
    assert lines(one, color=True)[1] == f"  {RED}mm  {END}  {RED}[[8]] {END}  {RED}9.5 us{END}  {RED}REGRESSED{END}"
    assert lines(one) == [
        "  op    shapes    time  verdict",
        "  mm    [[8]]   9.5 us  REGRESSED",
        "  relu  [[8]]    10 us",
    ]


def test_what_folds_under_a_name_is_dim_in_the_colour_of_its_row():
    named = ("a_long_name_of_an_op", *SLOWER[1:])
    first, second = lines(Table("", COLUMNS, (named,), ("worse",)), 40, color=True)[1:]
    assert first == f"  {RED}a_long_na…_of_an_op{END}  {RED}9.5 us{END}  {RED}REGRESSED{END}"
    assert second.startswith("  \x1b[2;31m  [[8]]\x1b[0m")


def test_cells_of_a_row_may_differ_in_colour():
    one = Table("", (Column("a"), Column("b")), (("1", "2"),), ("",), cell_tones=(("better", "strong"),))
    assert lines(one, 40, color=True)[1] == f"  {GREEN}1{END}  {BOLD}2{END}"


def test_wide_characters_take_two_cells():
    one = Table("", COLUMNS, (SLOWER, ("日本", "[[16]]", "1 us", "SUSPECT")), ("", ""))
    assert lines(one)[1:] == ["  mm    [[8]]   9.5 us  REGRESSED", "  日本  [[16]]    1 us  SUSPECT"]


def test_a_sentence_below_a_row_takes_the_whole_width():
    one = Table("", COLUMNS, (SLOWER,), ("",), below=("it is slower, and that has been so for three runs",))
    assert lines(one, 40)[-2:] == ["    it is slower, and that has been so", "    for three runs"]


def test_an_empty_table_says_so():
    assert lines(Table("Kernels", COLUMNS, (), ()), 40) == ["Kernels", "  no rows"]


def test_bars_are_as_long_as_their_part_and_give_way_to_numbers():
    one = Table("", (Column("part", left=True), Column("change")), (("compute", "+28 ms"), ("idle", "+7 ms")),
                ("", ""), bars=(1.0, 0.25))  # fmt: skip
    assert lines(one, 60)[1:] == [f"  compute  +28 ms  {'█' * 20}", f"  idle      +7 ms  {'█' * 5}"]
    assert bar(0.5, 10) == "█████" and bar(-0.125, 8) == "█" and bar(0.001, 8) == "▏"
    assert "█" not in " ".join(
        lines(Table("", (Column("n" * 30), Column("c" * 8)), (("1", "2"),), ("",), bars=(1.0,)), 42)
    )


def long_table(*dropped):
    columns = [Column("name", **NAME), *(Column(name, drop=at) for name, at in dropped), Column("cause")]
    return table("", columns, [("", ["x" * 30, *("12345678" for _ in dropped), "slower calls"])])


def test_columns_left_out_are_named_once_per_screen():
    first, second = long_table(("calls", 2), ("q", 3)), long_table(("q", 1))
    assert "left out" not in " ".join(page(first, second, width=120))
    found = page(first, second, width=40, next_commands=("tracker",))
    assert " ".join(found[-5:-3]).startswith("2 columns left out: calls, q; use a wider terminal")
    assert sum("left out" in line for line in found) == 1


def test_a_folded_column_is_not_left_out():
    columns = [Column("name", **NAME), Column("cause", left=True, elastic=True, fold=True), Column("q", drop=1)]
    fitted = fit(table("", columns, [("", ["x" * 60, "slower calls", "0.0012345678901234"])]), 40)
    assert (fitted.left_out, fitted.rows[0][0][1].strip()) == (("q",), "slower calls")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", "iso8859-15"])
def test_signs_that_an_encoding_lacks_become_ascii(encoding):
    text = "▁▂▃▄▅▆▇█·▲▼ a…b"
    shown = encodable(text, encoding)
    assert (shown == text) is (encoding == "utf-8") and len(shown) == len(text)
    shown.encode(encoding)


def test_bars_of_what_became_less_begin_with_a_minus():
    """+4 and -2: in plain text, too, the second one is a gain."""
    made = Table("", (Column("part"),), (("a",), ("b",)), ("", ""), bars=(1.0, -0.5))
    assert [line.strip() for line in lines(made, 60)[-2:]] == ["a   ████████████████████", "b  -██████████"]


def test_bars_have_an_ascii_form():
    encodable(bar(0.3, 7), "ascii").encode("ascii")


def test_a_text_of_which_the_encoding_has_all_signs_stays():
    assert encodable("3, ±2 % of 日本", "latin-1") == "3, ±2 % of 日本"
    assert encodable("3, ±2 %", "ascii") == "3,+-2 %"


WIDTHS = st.integers(min_value=2, max_value=30)
"""Of a line; a wide character needs 2."""


@given(text=st.text(alphabet="ab. 日é", max_size=60), width=WIDTHS)
@example(text="eight ch and more", width=8)
@example(text="一二三四五 六", width=5)
def test_a_paragraph_is_wrapped_as_rich_wraps_it(text, width):
    assert [line.rstrip() for line in wrapped(text, width)] == [
        line.plain.rstrip() for line in Text(text).wrap(Console(width=width), width)
    ]
    assert all(cell_len(line) <= width for line in wrapped(text, width))


@given(st.text(), st.integers(min_value=1, max_value=40))
def test_shortened_text_fits_and_short_text_stays(text, width):
    short = shorten(text, width)
    assert cell_len(short) <= width
    assert short == text or "…" in short


PLACE = "DistributedDataParallel_0/AlexNet_0/Sequential_1/Linear_0, /home/me/imagenet_script/train/main.py(366): train"


@pytest.mark.parametrize("width", range(31, 130, 7))
def test_a_shortened_place_keeps_the_file_the_line_and_the_module(width):
    short = shortened(PLACE, Column("where", place=True), width)
    assert cell_len(short) <= width
    assert "/main.py(366): train" in short
    assert "Linear_0" in short or width < 34


RESULTS = {"diff": builders.diff, "judged": builders.judged, "show": builders.shown, "findings": builders.findings}


@pytest.mark.all_parameters
@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 140, 200])
@pytest.mark.parametrize("what", RESULTS)
def test_documents_fit_the_terminal(what, width, details):
    """A cause of idle time, its place, two sides and their change are 73 columns wide, however narrow it is."""
    rows, _, following = render(RESULTS[what](), "text", width=width, details=details).partition("\n\nNext:\n")
    assert max(cell_len(line) for line in rows.splitlines()) <= max(width, 73)
    assert following.startswith("  tracker ")


@pytest.mark.parametrize("what", RESULTS)
def test_a_first_screen_has_at_most_40_lines(what):
    assert len(render(RESULTS[what](), "text", width=100).splitlines()) <= 40


@pytest.mark.parametrize("width", [40, 50, 60, 66])
def test_no_number_is_cut_where_the_terminal_is_narrow(width):
    """138.32 m, or finding 18 where it is 184, would be believed."""
    numbers = re.compile(r"(?<!\S)[-+]?\d[\d.]* ?[a-zA-Z%]*(?=  |$)", re.MULTILINE)

    def found(at):
        text = render(builders.diff(), "text", width=at, details=True)
        rows = [line for line in text.splitlines() if len(re.split("  +", line.strip())) > 2]
        return set(numbers.findall("\n".join(rows)))

    # a sentence goes on in the next line, before its arrow
    halves = set(re.findall(r"\S+(?= ->)|(?<=-> )\S+(?= *$)", render(builders.diff(), "text", width=200), re.MULTILINE))
    assert found(width) <= found(200) | halves and len(found(width)) > 30


def test_a_pipe_gets_no_escape_sequences_and_a_terminal_gets_colours():
    assert "\x1b" not in render(builders.diff(), "text", width=80)
    coloured = render(builders.diff(), "text", width=140, color=True, details=True)
    assert "\x1b[31m" in coloured and "\x1b[32m" in coloured


HOSTILE = ["evil\x1b[2J\n\u202ename", "::error::x", "-rf", "GH-123", "https://x.y", "x" * 100_000]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_inert_on_a_terminal(name):
    contribution = builders.Contribution("operator", name, 4.0 * MS, 1.0, "", "new")
    explanation = builders.explanation_of(contributions=(contribution,))
    ops = builders.frame("ops", [builders.op(name, "a\tb", MS, 2 * MS)])
    for text in (
        render(builders.diff(ops=ops, explanation=explanation), "text", width=140, details=True),
        render(builders.findings([builders.finding(1, name)]), "text", width=140),
    ):
        assert "\x1b" not in text and "\u202e" not in text and "\t" not in text
        assert not any(line.startswith("::") for line in text.splitlines())
        assert max(map(cell_len, text.splitlines())) < 200


def test_long_names_show_the_part_that_differs():
    names = [f"network-TrainOneStep/network-Llama/layers-CellList/{i}-Decode/attention-Attn/MatMul" for i in (3, 12)]
    made = table("", [Column("operator", left=True, elastic=True)], [("", [name]) for name in names])
    assert [row[0][0] for row in fit(made, 24).rows] == ["…-CellList/3-Decode/att…", "…-CellList/12-Decode/at…"]


def test_bar_of_a_part_above_the_whole_has_the_length_of_the_whole():
    assert bar(2.4, 8) == bar(1.0, 8)
