"""What a diff says first, and in its tables."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from tests.reports import builders, workbooks
from tests.reports.builders import MS
from tracker.columns import Columns
from tracker.reports import render, view_of
from tracker.reports.cells import signed
from tracker.reports.document import Look, Table
from tracker.results import Contribution, DiffOptions, Judgement
from tracker.results.verdicts import EXCUSED, REASONS


def line_of(text, start):
    return next(line.strip() for line in text.splitlines() if line.strip().startswith(start))


def cells_of(text, start):
    return re.split(r"  +", line_of(text, start))


def test_the_first_two_lines_say_what_and_how_much():
    title, headline = render(builders.diff(), "text", width=100).splitlines()[:2]
    assert title == "resnet50, NVIDIA H100, batch=64, world_size=2, 2 runs each, median of 2 ranks, 5 steps a run"
    assert headline == "v42 ran 4.0 % slower than v41: 100.00 -> 104.00 ms per step (+4.00 ms)"


def test_the_parts_of_a_step_add_up_to_it():
    text = render(builders.diff(), "text", width=100)
    assert cells_of(text, "compute")[:5] == ["compute", "70.00 ms", "74.00 ms", "+4.00 ms", "+5.7 %"]
    assert cells_of(text, "= step time") == ["= step time", "100.00 ms", "104.00 ms", "+4.00 ms", "+4.0 %"]


def test_causes_others_parts_and_rest_add_up_to_the_change():
    """6.00 - 3.00 + 0.50 + 0.01 + 0.20 + 0.29 = 4.00 ms."""
    text = render(builders.diff(), "text", width=100)
    part = text[text.index("  cause") :]
    rows = {name: cells_of(part, name)[1] for name in ("aten::mm", "4 other operators", "idle", "rest", "= step")}
    assert rows == {
        "aten::mm": "+6.00 ms", "4 other operators": "+0.01 ms", "idle": "+0.20 ms", "rest": "+0.29 ms",
        "= step": "+4.00 ms",
    }  # fmt: skip
    changes = re.findall(r"  ([+-]\d+\.\d\d) ms", part[: part.index("\n", part.index("= step"))])
    assert sum(map(float, changes[:-1])) == pytest.approx(float(changes[-1]))


def links_of_causes(*rows):
    """Cause -> its link, and where it leads if the server has nothing on that."""
    found = builders.diff(explanation=replace(builders.diff().explanation, contributions=rows))
    blocks = view_of("diff").document(found, Look()).blocks
    causes = next(one for one in blocks if isinstance(one, Table) and one.columns[0].header == "cause")
    return {cells[0]: link for cells, link in zip(causes.rows, causes.links, strict=True)}


def test_each_cause_has_a_link():
    """A group that was replaced leads to the largest operator that came, a part of the step to its tab."""
    links = links_of_causes(
        Contribution("replacement", "aten::gelu -> MulBackward0, aten::mul, aten::pow", 3.0 * MS),
        Contribution("part", "Idle", 1.0 * MS, metric="idle_ns"),
        Contribution("part", "Transfers", 1.0 * MS, metric="exposed_transmit_ns"),
        Contribution("others", "kernels", 1.0 * MS, count=3),
        Contribution("rest", "", 0.1 * MS),
    )
    replaced, idle, transfers, others, rest, whole = links.values()
    assert replaced.query[0] == ("KEY", "aten::mul") and replaced.otherwise.tab == "operators"
    assert (idle.tab, idle.otherwise.query[0]) == ("idle", ("KEY", "idle time"))
    assert (transfers.tab, transfers.otherwise.query[0]) == ("communication", ("KEY", "exposed communication"))
    assert others.tab == "kernels" and rest is None and whole.query[0] == ("KEY", "step")


def test_causes_of_one_direction_have_their_part_of_the_change():
    """+3 and +1 ms are 75 % and 25 % of 4 ms."""
    found = builders.diff().explanation
    rows = [Contribution("operator", "a", 3.0 * MS, 0.75), Contribution("operator", "b", 1.0 * MS, 0.25)]
    text = render(builders.diff(explanation=replace(found, contributions=tuple(rows))), "text", width=100)
    part = text[text.index("  cause") :]
    assert [cells_of(part, name)[2] for name in ("a ", "b ", "= step")] == ["75 %", "25 %", "100 %"]


def test_parts_of_a_change_that_cancels_have_no_per_cents():
    """+30 and -27 ms: 1,000 % of 3 ms say nothing."""
    found = builders.diff().explanation
    rows = [Contribution("operator", "a", 30.0 * MS, 10.0), Contribution("operator", "b", -27.0 * MS, -9.0)]
    whole = replace(found, contributions=tuple(rows), delta_ns=3.0 * MS)
    text = render(builders.diff(explanation=whole), "text", width=100)
    assert "%" not in text[text.index("  cause") : text.index("= step time", text.index("  cause"))]


def test_why_says_slower_fewer_calls_or_replaced():
    text = render(builders.diff(), "text", width=120)
    assert "slower: 20.00 -> 26.00 ms" in line_of(text, "aten::mm")
    assert cells_of(text, "aten::convolution_backward")[-1] == "fewer calls: 3 -> 2"
    assert "replaced: 1.50 -> 2.00 ms" in line_of(text, "aten::add -> fused|add")


def test_an_operator_is_named_once_on_the_first_screen():
    assert render(builders.diff(), "text", width=100).count("aten::mm") == 1


def test_what_else_changed_is_shown_or_said_to_be_nothing():
    assert cells_of(render(builders.diff(), "text", width=100), "fact") == ["fact", "cuda_driver", "550.54", "560.28"]
    nothing = {name: builders.frame(name, []) for name in ("environment", "operator_arguments")}
    assert "Nothing else that was recorded changed" in render(builders.diff(**nothing), "text", width=100)
    other_arguments = builders.diff(environment=nothing["environment"])
    assert "No setting that was recorded changed" in render(other_arguments, "text", width=100)


def test_more_changes_of_the_environment_are_counted_and_listed_with_details():
    rows = [{"kind": "fact", "key": f"key{i}", "baseline": "a", "candidate": "b"} for i in range(30)]
    found = builders.diff(environment=builders.frame("environment", rows))
    assert "… and 26 more" in render(found, "text")
    assert all(f"key{i}" in render(found, "text", details=True) for i in range(30))


def test_rows_add_up_as_they_are_shown():
    """3 x 1.334 ms and a rest of -0.002 ms are 4 ms: shown 3 x 1.33 and 0.01."""
    rows = [builders.Contribution("operator", f"op{at}", 1.334 * MS, 0.33, "", "new") for at in range(3)]
    found = builders.explanation_of(contributions=(*rows, builders.Contribution("rest", "", -0.002 * MS)))
    text = render(builders.diff(explanation=found), "text", width=100)
    causes = text.partition("  cause ")[2]
    shown = {name: cells_of(causes, name)[1] for name in ("op0", "rest (kernels", "= step time")}
    assert shown == {"op0": "+1.33 ms", "rest (kernels": "+0.01 ms", "= step time": "+4.00 ms"}


def test_a_change_that_users_accepted_is_named():
    whole = builders.judged()
    assert "false positives" not in render(whole, "text")
    ops = whole.ops.assign(reason=[EXCUSED if name == "aten::mm" else None for name in whole.ops["name"]])
    accepted = replace(whole, tables={**whole.tables, "ops": Columns.of_frame(ops)})
    said = "Users accepted these changes, or marked them as false positives; no gate counts them: aten::mm."
    assert said in render(accepted, "text", width=120)


def test_a_mean_step_stands_beside_steps_alone():
    """The mean step is 20 % longer than the median step of 100 ms; it is no mean of E2E."""
    rows = builders.overall()
    mean = rows[0] | {"metric": "mean_step_ns", "title": "Mean step", "baseline_value": 120 * builders.MS}
    overall = builders.frame("overall", [*rows, mean])
    assert cells_of(render(builders.diff(overall=overall), "text", width=100), "mean step")[1] == "120.00 ms"
    of_e2e = builders.explanation_of(total_metric="e2e_ns")
    assert "mean step" not in render(builders.diff(overall=overall, explanation=of_e2e), "text", width=100)


def test_a_title_has_no_arrow_to_nothing_and_no_stand_in():
    sides = [builders.side(label, workload="files", configuration=words)
             for label, words in (("v41", "world_size=8"), ("v42", ""))]  # fmt: skip
    found = builders.diff(baseline=sides[0], candidate=sides[1])
    assert render(found, "text", width=120).startswith("NVIDIA H100, world_size=8 -> none, 2 runs each, ")
    matrix = builders.matrix(sides=tuple(builders.side(label, workload="files") for label in ("a", "b", "c", "d", "e")))
    assert render(matrix, "text", width=120).startswith("a, b, c, d, e: NVIDIA H100, ")


def test_notes_of_a_first_screen_are_three():
    found = builders.diff(notes=tuple(map(str, range(9))))
    lines = render(found, "text", width=100).splitlines()
    start = lines.index("Note: 0")
    assert lines[start + 1 : start + 4] == ["Note: 1", "Note: 2", "6 more notes: --details"]
    assert "Note: 8" in render(found, "text", width=100, details=True)


def test_remarks_and_notes_are_shown_in_every_format():
    found = builders.diff(notes=("The runs of v41 had another clock.",))
    for format in ("text", "markdown", "csv", "json"):
        page = render(found, format)
        assert "The runs of v41 had another clock." in page, format
        assert "One run a side cannot tell change from noise." in page, format
    dump = workbooks.dump(render(found, "xlsx"))
    assert "The runs of v41 had another clock." in dump and "One run a side" in dump


def test_verdicts_are_marked_and_counted():
    text = render(builders.judged(), "text", width=120)
    assert text.splitlines()[1].endswith("  DRIFT")
    assert "▲" in line_of(text, "aten::mm") and "▼" in line_of(text, "aten::convolution_backward")
    assert "Operators: ▲ 1 REGRESSED, 1 ADDED, ▼ 1 IMPROVED, ? 1 SUSPECT." in text
    assert "Machine-wide drift +4.1 %, removed from the verdicts." in text
    assert "▲" not in render(builders.diff(), "text", width=120)


def test_sides_without_verdicts_say_why():
    why = "2 runs against 1: no verdicts; give 3 or more runs of the baseline."
    text = render(builders.diff(judgement=Judgement(False, (why,), refusal="too few runs")), "text", width=100)
    assert text.splitlines()[3] == why


def test_sides_of_different_work_show_no_numbers_and_the_way_to_them():
    refused = Judgement(False, ("Not comparable: other models.", "Compare the same work."), refusal="incomparable")
    text = render(builders.diff(judgement=refused), "text", width=100)
    assert "Compare the same work." in text and "compute" not in text
    assert text.splitlines()[-2:] == ["Next:", "  tracker diff v41 v42 --force"]


def test_next_commands_ask_the_same_question_again():
    options = {
        "match": "name", "max_kernels": 3, "op_map": {"a": "b"}, "ranks": (0, 2), "stage": 1, "module": "*/A",
        "op": "aten::*", "kind": "all_reduce", "group": "dp", "minimum_ns": 1500, "workload": "w",
    }  # fmt: skip
    lines = render(builders.diff(options=DiffOptions(**options)), "text").splitlines()
    asked = (
        'tracker diff v41 v42 --match name --max-kernels 3 --op-map \'{"a": "b"}\' --rank 0 --rank 2 --stage 1 '
        "--module '*/A' --op 'aten::*' --kind all_reduce --group dp --min-us 1.5 --workload w"
    )
    assert lines[-4:] == ["Next:", *(f"  {asked} {more}" for more in ("--details", "--by module", "-o diff.xlsx"))]


def test_values_of_a_row_share_one_unit():
    text = render(builders.diff(), "text", only=["communication"], width=140)
    assert line_of(text, "broadcast").split()[3:9] == ["900.00", "us", "800.00", "us", "-100.00", "us"]


def test_an_op_on_one_side_only_is_added_or_removed():
    text = render(builders.diff(), "text", only=["operator"], width=160)
    assert cells_of(text, "fused|add")[2:6] == ["4", "-", "2.00 ms", "+2.00 ms"]
    assert "ADDED" in line_of(text, "fused|add") and "REMOVED" in line_of(text, "aten::add")


def test_the_host_change_of_ops_stands_beside_that_of_the_device():
    ops = builders.frame("ops", [{**builders.op("aten::mm", "", MS, 2 * MS), "host_delta_ns": 0.25 * MS}])
    text = render(builders.diff(ops=ops), "text", only=["operator"], width=160)
    assert "host change" in text and line_of(text, "aten::mm").endswith("+250.00 us")


def test_stand_ins_for_missing_ops_say_what_they_are():
    text = render(builders.diff(), "text", width=160, details=True)
    assert "(unlinked) its launch is not in the capture" in text and "(no op) launched outside any op" in text


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("--op 'aten::*norm*'", {"op": "aten::*norm*"}),
        ("--op aten::mm --module '*/L' --min-us 2.5", {"op": "aten::mm", "module": "*/L", "minimum_ns": 2_500}),
    ],
)
def test_filters_show_their_operators_on_the_first_screen(words, options):
    """Whoever names operators wants to see these, and what the rows above them count."""
    text = render(builders.diff(options=DiffOptions(**options)), "text", width=160)
    assert f"Only what {words} lets through; what explains the change counts all operators." in text
    assert "Operators by change of" in text and "Kernels by change" not in text
    assert "Operators by change of" not in render(builders.diff(), "text")
    memory = render(builders.diff(options=DiffOptions(**options)), "text", width=160, only=["memory"])
    assert f"{words} leaves operators out of the tables; what explains the change counts all of them." in memory
    assert "leaves operators out" not in render(builders.diff(options=DiffOptions(kind="all_reduce")), "text")


def test_operators_of_several_shapes_name_the_row_of_all_of_them():
    """A history follows aten::mm as one series, a diff has a row for each of its shapes: medians do not add up."""
    shapes = [builders.op("aten::mm", shape, MS, 2 * MS) for shape in ("[[4],[4]]", "[[8],[8]]")]
    several = builders.diff(ops=builders.frame("ops", shapes))
    word = "--match name"
    assert word in render(several, "text", width=160, only=["operator"])
    one = builders.diff(ops=builders.frame("ops", shapes[:1]))
    assert word not in render(one, "text", width=160, only=["operator"])


def test_next_commands_name_a_lone_candidate_as_it_was_named():
    """`diff v42` is compared with the runs that it was judged against: the command that shows more is as short."""
    command = "tracker diff v42"
    assert f"{command} --details" in render(builders.diff(), "text", width=160, baseline="window")
    assert f"{command} --baseline pinned -o diff.xlsx" in render(builders.diff(), "text", width=160, baseline="pinned")
    assert "tracker diff v41 v42 --details" in render(builders.diff(), "text", width=160)


def test_a_limit_cuts_the_tables_and_zero_shows_all():
    ops = builders.frame("ops", [builders.op(f"op_{index:02}", "", MS, 2 * MS) for index in range(30)])
    diff = builders.diff(ops=ops)
    assert "… and 20 more" in render(diff, "text", only=["operator"])
    assert "op_29" in render(diff, "text", only=["operator"], limit=0)
    assert "… and 27 more" in render(diff, "text", only=["operator"], limit=3)


def test_what_is_zero_on_both_sides_is_left_out_of_the_overall_table():
    zero = {"metric": "copy_ns", "title": "Copies", "level": 0, "unit": "ns", "baseline_value": 0, "candidate_value": 0}
    overall = builders.frame("overall", [*builders.overall(), zero])
    assert "Copies" not in render(builders.diff(overall=overall), "text", details=True)
    assert "Copies" in render(builders.diff(overall=overall), "json")


def test_causes_that_stand_out_of_the_runs_say_so():
    found = builders.explanation()
    causes = (replace(found.causes[0], stands_out=True), replace(found.causes[1], stands_out=False))
    text = render(builders.diff(explanation=replace(found, causes=causes)), "text", only=["operator"], width=200)
    part = text[text.index("Operators by contribution") :]
    assert "  yes  " in line_of(part, "aten::mm") and "  no  " in line_of(part, "aten::convolution_backward")
    assert "Changes cancel each other: operators lost 8.01 ms and gained 4.50 ms." in part


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_code_line_of_a_cause_is_there_on_every_terminal(width):
    found = builders.explanation()
    causes = (replace(found.causes[0], where="Net_0/Linear_0, /home/me/train/main.py(366): train"), *found.causes[1:])
    diff = builders.diff(explanation=replace(found, causes=causes))
    assert "/main.py(366): train" in render(diff, "text", only=["operator"], width=width)


def test_significant_but_small_changes_say_so_once_below_the_table():
    judged = builders.judged()
    small = judged.ops["verdict"] == "UNCHANGED"
    ops = judged.ops.assign(
        verdict=judged.ops["verdict"].mask(small, "BELOW_LIMIT"),
        reason=judged.ops["reason"].mask(small, REASONS["CONTRIBUTION"]),
    )
    changed = replace(judged, tables={**judged.tables, "ops": Columns.of_frame(ops)})
    sentence = "BELOW_LIMIT: significant, but too small a part of the step"
    assert render(changed, "text", width=140, details=True).count(sentence) == 1
    assert sentence not in render(judged, "text", width=140, details=True)


def test_judged_operators_have_verdict_judged_change_and_q():
    text = render(builders.judged(), "text", only=["operator"], width=140)
    assert line_of(text, "aten::mm").split()[-4:] == ["REGRESSED", "+25.0", "%", "<0.001"]


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [("0.00 ms", 0.4, "0.00 ms"), ("-0.00 ms", -0.4, "0.00 ms"), ("1.00 ms", 1.0, "+1.00 ms"), ("-", None, "-")],
)
def test_a_change_that_shows_as_zero_has_no_sign(text, value, shown):
    assert signed(text, value) == shown
