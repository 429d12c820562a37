"""Tables for the terminal."""

import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from tests.reports import builders, workbooks
from tests.reports.builders import MS
from tracker.columns import Columns
from tracker.profile import UNLINKED_OP
from tracker.reports import _human, render
from tracker.reports._layout import shorten, shorten_place
from tracker.reports.to_markdown import escape
from tracker.results import DiffOptions, ShowOptions
from tracker.results.verdicts import REASONS


def line_of(text, start):
    return next(line.strip() for line in text.splitlines() if line.strip().startswith(start))


def test_values_of_a_row_share_one_unit():
    text = render(builders.diff(), "text", width=140)
    assert line_of(text, "broadcast").split()[3:9] == ["900.00", "us", "800.00", "us", "-100.00", "us"]


def test_op_on_one_side_only_is_added_or_removed_and_its_other_side_a_dash():
    text = render(builders.diff(), "text", only=["operator"], width=140)
    assert line_of(text, "fused|add").split() == [
        "fused|add`relu<x>", "[[64,", "512]]", "4", "-", "2.00", "ms", "+2.00", "ms", "ADDED"
    ]  # fmt: skip
    assert line_of(text, "aten::add").endswith("1.50 ms          -  -1.50 ms   REMOVED")


def test_stand_ins_for_missing_ops_say_what_they_are():
    text = render(builders.diff(), "text", width=140)
    assert "(unlinked) no launch in the capture" in text and "(no op) launched outside any op" in text


def test_environment_stands_above_the_numbers_and_the_answer_on_the_last_line():
    lines = render(builders.diff(), "text", width=80).splitlines()
    assert lines.index("What else changed") < lines.index("Overall, per step")
    assert lines[-1] == f"{builders.explanation().answer}  Details: tracker diff v41 v42 --format xlsx -o diff.xlsx"


def test_listed_causes_others_and_rest_add_up_to_the_change():
    text = render(builders.diff(), "text", width=140, limit=2)
    part = text[text.index("Why: operators") :]
    # +6.00 (mm) -3.00 (conv) +0.51 (all others) +0.49 (rest) = +4.00
    assert line_of(part, "all other operators").split() == ["all", "other", "operators", "+0.51", "ms", "12.6", "%"]
    assert line_of(part, "rest ").split()[-4:] == ["+0.49", "ms", "12.4", "%"]
    assert line_of(part, "= step time").split()[-4:] == ["+4.00", "ms", "100.0", "%"]
    note = "Rest is idle time, less what runs at the same time; medians over runs do not add up."
    assert note in " ".join(part.split())


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140, 200])
def test_tables_fit_the_terminal(width):
    for text in (
        render(builders.diff(), "text", width=width),
        render(builders.shown(), "text", width=width),
    ):
        *tables, _answer = text.splitlines()
        assert max(cell_len(line) for line in tables) <= max(width, 67)


@pytest.mark.parametrize("width", [40, 50, 60, 66])
def test_no_number_is_cut_where_the_terminal_is_narrow(width):
    """138.32 m, or finding 18 where it is 184, would be believed."""
    numbers = re.compile(r"(?<!\S)[-+]?\d[\d.]* ?[a-zA-Z%]*(?=  |$)", re.MULTILINE)
    whole = builders.diff()
    found, wide = (set(numbers.findall(rows_of(render(whole, "text", width=at)))) for at in (width, 200))
    assert found <= wide and len(found) > 30


def rows_of(text):
    """The lines with three columns or more: sentences are wrapped anywhere."""
    return "\n".join(line for line in text.splitlines() if len(re.split("  +", line.strip())) > 2)


FILTERS = {
    "--op 'aten::*norm*'": {"op": "aten::*norm*"},
    "--op aten::mm --module '*/Linear_3' --min-us 2.5": {
        "op": "aten::mm", "module": "*/Linear_3", "minimum_ns": 2_500
    },
    "--min-us 1000": {"minimum_ns": MS},
}  # fmt: skip


@pytest.mark.parametrize("format", ["text", "markdown"])
@pytest.mark.parametrize("words", FILTERS)
def test_with_filters_tables_and_explanation_say_which_operators_they_count(words, format):
    text = render(builders.diff(options=DiffOptions(**FILTERS[words])), format, width=160)
    shown = words if format == "text" else escape(words)
    assert text.count(f"Only what {shown} lets through; Why counts all operators.") == 1
    assert text.count(f"Why counts all operators; {shown} chooses rows of the other tables only.") == 1


@pytest.mark.parametrize("format", ["text", "markdown"])
def test_without_filters_nothing_is_said_of_them(format):
    for options in (DiffOptions(), DiffOptions(kind="all_reduce", ranks=(0,))):
        assert "counts all operators" not in render(builders.diff(options=options), format)


def test_pipe_gets_no_escape_sequences_and_a_terminal_gets_colours():
    assert "\x1b" not in render(builders.diff(), "text", width=80)
    coloured = render(builders.diff(), "text", width=140, color=True)
    assert "\x1b[31m" in coloured and "\x1b[32m" in coloured


def test_escape_sequences_and_line_ends_of_a_trace_never_reach_the_terminal():
    ops = builders.frame("ops", [builders.op("evil\x1b[2J\n\u202ename", "a\tb", MS, 2 * MS)])
    text = render(builders.diff(ops=ops), "text", width=140)
    assert "\x1b" not in text and "\u202e" not in text
    assert r"evil\x1b[2J\n\u202ename" in text


def test_limit_cuts_the_tables_and_zero_shows_all():
    ops = builders.frame("ops", [builders.op(f"op_{index:02}", "", MS, 2 * MS) for index in range(30)])
    diff = builders.diff(ops=ops)
    assert "… and 20 more" in render(diff, "text", only=["operator"])
    assert "op_29" in render(diff, "text", only=["operator"], limit=0)
    assert "… and 27 more" in render(diff, "text", only=["operator"], limit=3)


def test_host_timeline_is_named_in_the_titles():
    text = render(builders.diff(metric="host_self_ns"), "text")
    assert "Operators by change of host self time" in text
    assert "op times are host self time" in " ".join(text.split())


def test_many_ranks_are_summed_up_with_the_slowest_named():
    ranks = builders.nullable([builders.breakdown(rank, e2e_ns=(80 + rank) * MS) for rank in range(9)])
    text = render(builders.shown(overall=ranks), "text", width=100)
    assert line_of(text, "E2E").split() == ["E2E", "80.00", "ms", "84.00", "ms", "88.00", "ms", "8"]


def test_a_run_without_a_device_shows_host_times_only():
    host = builders.nullable([builders.breakdown(0, timeline="host", kernel_count=0, kernel_total_ns=0)])
    text = render(builders.shown(overall=host), "text", width=140)
    assert "device self" not in text and "kernel time, summed" not in text
    assert "most host self time in aten::mm: 1.00 ms" in text


def test_what_is_zero_on_both_sides_is_left_out_of_the_overall_table():
    zero = {"metric": "copy_ns", "title": "Copies", "level": 0, "unit": "ns", "baseline_value": 0, "candidate_value": 0}
    overall = builders.frame("overall", [*builders.overall(), zero])
    assert "Copies" not in render(builders.diff(overall=overall), "text")
    assert "Copies" in render(builders.diff(overall=overall), "json")


def test_details_of_a_run_given_by_path_name_the_path():
    run = builders.shown().run | {"reference": "my run.json"}
    last = render(builders.shown(run=run), "text").splitlines()[-1]
    assert last.endswith("Details: tracker show 'my run.json' --format xlsx -o run41.xlsx")


def test_grain_columns_stand_first():
    ops = builders.shown().ops
    ops.insert(0, "rank", [1, 0])
    ops.insert(1, "step", [7, 7])
    text = render(builders.shown(ops=ops), "text", width=140)
    assert line_of(text, "rank 1, step 7").startswith("rank 1, step 7  aten::mm")


@given(st.text(), st.integers(min_value=1, max_value=40))
def test_shortened_text_fits_and_short_text_stays(text, width):
    short = shorten(text, width)
    assert cell_len(short) <= width
    assert short == text or "…" in short


@pytest.mark.parametrize(
    ("text", "value", "signed"),
    [("0.00 ms", 0.4, "0.00 ms"), ("-0.00 ms", -0.4, "0.00 ms"), ("1.00 ms", 1.0, "+1.00 ms"), ("-", None, "-")],
)
def test_a_change_that_shows_as_zero_has_no_sign(text, value, signed):
    assert _human.signed(text, value) == signed


def told():
    """A diff with a doubt, the range over the runs of the baseline, and causes that stand out or not."""
    explanation = builders.explanation()
    first, second, *others = explanation.causes
    causes = (replace(first, stands_out=True), replace(second, stands_out=False), *others)
    explanation = replace(explanation, causes=causes, rollup=causes, baseline_range_ns=(91.23 * MS, 96.44 * MS))
    return builders.diff(explanation=explanation, notes=("The runs of v41 had another clock.",))


def test_the_line_of_a_side_says_of_how_many_runs_its_range_is_and_how_many_steps_they_have():
    mixed = builders.side(runs=4, fewest_steps=72, steps=580)
    line = _human.side_line("baseline", mixed, "step_ns", (24 * MS, 38 * MS), 3)
    assert line.endswith("; 4 runs, 2 ranks, 72 to 580 steps; step 24.00 ms to 38.00 ms over 3 of 4 runs")
    equal = builders.side(fewest_steps=5)
    line = _human.side_line("baseline", equal, "step_ns", (24 * MS, 38 * MS), 2)
    assert line.endswith("; 2 runs, 2 ranks, 5 steps; step 24.00 ms to 38.00 ms over 2 runs")


@pytest.mark.parametrize("format", ["text", "markdown", "json"])
def test_notes_are_shown(format):
    assert "The runs of v41 had another clock." in render(told(), format)


def test_notes_and_what_stands_out_are_in_the_workbook():
    dump = workbooks.dump(render(told(), "xlsx"))
    assert "The runs of v41 had another clock." in dump
    assert '"Stands Out"' in dump and '"yes"' in dump and '"no"' in dump


def test_notes_stand_above_the_tables():
    text = render(told(), "text", width=140)
    assert text.index("Note: The runs of v41") < text.index("What else changed")


def test_range_over_the_runs_of_a_side_is_shown():
    lines = render(told(), "text", width=200).splitlines()
    assert lines[0].endswith("step 91.23 ms to 96.44 ms over 2 runs")
    assert "over" not in lines[1]


def test_causes_that_stand_out_say_so():
    part = render(told(), "text", width=200).partition("Why: operators")[2]
    assert "stands out" in part.splitlines()[2]
    assert "  yes  " in line_of(part, "aten::mm") and "  no  " in line_of(part, "aten::convolution_backward")
    assert "stands out" not in render(builders.diff(), "text", width=200)


def test_limit_does_not_cut_what_else_changed():
    rows = [{"kind": "fact", "key": f"key{i}", "baseline": "a", "candidate": "b"} for i in range(30)]
    found = builders.diff(environment=builders.frame("environment", rows))
    for format in ("text", "markdown"):
        page = render(found, format, limit=5)
        assert all(f"key{i}" in page for i in range(30)), format


def test_ops_of_a_run_are_summed_over_modules_types_and_phases():
    shown = builders.shown()
    first = shown.ops.iloc[[0]]
    ops = pd.concat([first.assign(module=f"Block_{i}", phase="forward", input_types=str(i)) for i in range(3)])
    text = render(replace(shown, ops=ops), "text", only=["operator"], width=140)
    name = str(first["name"].iloc[0])
    assert len([line for line in text.splitlines()[:-1] if line.strip().startswith(name)]) == 1
    assert f"{3 * int(first['calls'].iloc[0]):,}" in line_of(text, name)


def test_last_line_of_a_run_names_the_op_summed_over_shapes_and_no_stand_in():
    shown = builders.shown()
    first = shown.ops.iloc[[0]].assign(module="", phase="", host_self_ns=1)
    rows = [("aten::a", "[[1]]", 6 * MS), ("aten::b", "[[1]]", 4 * MS), ("aten::b", "[[2]]", 4 * MS)]
    rows.append((UNLINKED_OP, "", 90 * MS))
    made = [first.assign(name=name, input_shapes=shapes, device_self_ns=time) for name, shapes, time in rows]
    last = render(replace(shown, ops=pd.concat(made)), "text").splitlines()[-1]
    assert "most device self time in aten::b: 8.00 ms" in last


def test_details_repeat_all_options_of_the_question():
    asked = {
        "only": ("operator",), "match": "name", "max_kernels": 3, "op_map": {"a": "b"}, "ranks": (0, 2), "stage": 1,
        "module": "*/A", "op": "aten::*", "kind": "all_reduce", "group": "dp", "minimum_ns": 1500, "workload": "w",
    }  # fmt: skip
    last = render(builders.diff(options=DiffOptions(**asked)), "text").splitlines()[-1]
    assert last.endswith(
        'tracker diff v41 v42 --only operator --match name --max-kernels 3 --op-map \'{"a": "b"}\' --rank 0 --rank 2 '
        "--stage 1 --module '*/A' --op 'aten::*' --kind all_reduce --group dp --min-us 1.5 --workload w --format xlsx "
        "-o diff.xlsx"
    )


def test_ops_of_unknown_self_time_are_ordered_by_their_total():
    ops = builders.shown().ops.head(1)
    totals = {"small": 5, "large": 900, "middle": 70}
    rows = [ops.assign(name=name, device_self_ns=pd.NA, device_total_ns=total) for name, total in totals.items()]
    text = render(builders.shown(ops=pd.concat(rows)), "text", only=["operator"])
    assert text.index("large") < text.index("middle") < text.index("small")


def test_a_note_that_takes_several_lines_is_indented_on_each():
    parted = builders.shown().communication.assign(
        **{name: pd.array([1], dtype="Int64") for name in ("transit_ns", "wait_ns", "synchronization_ns", "idle_ns")}
    )
    text = render(builders.shown(communication=parted), "text", only=["communication"], width=60)
    lines = text.splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("  total = "))
    assert lines[at + 1].startswith("  ") and lines[at + 1].strip()


PLACE = "DistributedDataParallel_0/AlexNet_0/Sequential_1/Linear_0, /home/me/imagenet_script/train/main.py(366): train"


@pytest.mark.parametrize("width", range(31, 130, 7))
def test_a_shortened_place_keeps_the_file_the_line_and_the_module(width):
    short = shorten_place(PLACE, width)
    assert cell_len(short) <= width
    assert "/main.py(366): train" in short
    assert "Linear_0" in short or width < 34


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_file_name_of_a_cause_is_there_on_every_terminal(width):
    found = builders.explanation()
    causes = (replace(found.causes[0], where=PLACE), *found.causes[1:])
    diff = builders.diff(explanation=replace(found, causes=causes))
    assert "/main.py(366): train" in render(diff, "text", width=width)


def test_verdicts_stand_in_a_column_of_the_tables_that_have_any_and_above_them():
    text = render(builders.judged(), "text", width=140)
    assert text.index("Judged for this comparison alone: 3 runs against 5.") < text.index("What else changed")
    operators = text.partition("Operators by change")[2]
    assert line_of(operators, "aten::mm").split()[-4:] == ["REGRESSED", "+25.0", "%", "<0.001"]
    assert "verdict" not in text.partition("Kernels by change")[2].partition("Why")[0]
    assert "verdict" not in render(builders.diff(), "text", width=140)
    why = text.partition("Why: operators")[2]
    assert "verdict" in why.splitlines()[2] and "stands out" not in why


def test_what_is_sure_and_too_small_says_why_once_below_the_table():
    told = builders.judged()
    assert "BELOW_LIMIT: significant" not in render(told, "text", width=140)
    small = told.ops["verdict"] == "UNCHANGED"
    ops = told.ops.assign(
        verdict=told.ops["verdict"].mask(small, "BELOW_LIMIT"),
        reason=told.ops["reason"].mask(small, REASONS["CONTRIBUTION"]),
        q=told.ops["q"].mask(small, 1e-5),
    )
    told = replace(told, tables={**told.tables, "ops": Columns.of_frame(ops)})
    text = render(told, "text", width=140)
    assert text.count("BELOW_LIMIT: significant, but too small a part of the step") == 1


def test_the_command_for_details_asks_the_same_question_again():
    shown = builders.shown(options=ShowOptions(op="aten::mm", ranks=(0, 2), minimum_ns=5_000))
    last = render(shown, "text").splitlines()[-1]
    assert "tracker show run:41 --rank 0 --rank 2 --op aten::mm --min-us 5 --format xlsx" in last
    matrix = builders.matrix(options=DiffOptions(ranks=(0, 2), match="name", allow_partial=True))
    last = render(matrix, "text").splitlines()[-1]
    assert " --match name --rank 0 --rank 2 --allow-partial --details" in last
