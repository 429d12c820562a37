"""The matrix of versions: whole documents, what fits into a terminal, and the colours of the workbook."""

import csv
import io
import json

import pytest
from msgspec.structs import replace

from tests.reports import builders, workbooks
from tracker.columns import Columns
from tracker.compare.references import FILES
from tracker.reports import render
from tracker.results import MATRIX_COLUMNS

SUFFIXES = {"text": "txt", "json": "json", "csv": "csv", "markdown": "md"}


@pytest.mark.parametrize("format", sorted(SUFFIXES))
def test_document_of_a_matrix_is_the_golden_one(golden, format):
    golden(f"matrix.{SUFFIXES[format]}", render(builders.matrix(), format, width=140))


def test_workbook_of_a_matrix_is_the_golden_one(golden):
    golden("matrix.xlsx.txt", workbooks.dump(render(builders.matrix(), "xlsx")))


def of_files(*paths):
    """A matrix of as many sides as there are in `builders.matrix`, with these labels first."""
    whole = builders.matrix()
    sides = [replace(side, label=path, workload=FILES) for side, path in zip(whole.sides, paths, strict=False)]
    return builders.matrix(sides=(*sides, *whole.sides[len(paths) :]))


def test_files_of_one_name_have_headings_that_differ():
    text = render(of_files("runs/a/t.json", "runs/b/t.json"), "text", width=160)
    head = text.partition("Operators by")[2].splitlines()[1]
    assert head.split()[:3] == ["name", "a/t.json", "b/t.json"]
    sheet = workbooks.opened(render(of_files("runs/a/t.json", "runs/b/t.json"), "xlsx"))["Matrix"]
    headers = [cell.value for cell in sheet[1]]
    assert len(set(headers)) == len(headers)


def test_a_side_that_stands_twice_is_numbered():
    lines = list(csv.DictReader(io.StringIO(render(of_files("t.json", "t.json"), "csv"))))
    names = [line["side"] for line in lines if line["name"] == "aten::add"]
    assert names[:3] == ["t.json (1)", "t.json (2)", "v43"]


def test_columns_in_the_middle_give_way_and_a_note_says_so():
    text = render(builders.matrix(), "text", width=80)
    assert max(map(len, text.splitlines()[:-1])) <= 80
    head = text.partition("Operators by")[2].splitlines()[1]
    assert head.split() == ["name", "v41", "v42", "v45"]
    assert "2 sides left out: v43, v44; use a wider terminal" in text


def test_what_a_side_does_not_have_is_a_dash_and_what_came_slower_is_marked():
    text = render(builders.matrix(), "text", width=160)
    line = next(line for line in text.splitlines() if "aten::mm" in line)
    assert " ".join(line.split()).endswith("0.0 % 39.00 ms +95.0 % ▲ 39.00 ms +95.0 % 30.00 ms +50.0 % ▼")
    assert next(line for line in text.splitlines() if "aten::add" in line).split()[-4:] == ["-", "▼", "-", "-"]


def test_headline_is_the_total_of_the_last_side_against_the_first():
    lines = render(builders.matrix(), "text", width=160).splitlines()
    assert lines[0] == ("v41, v42, v43, v44, v45: resnet50, NVIDIA H100, batch=64, world_size=2, 2 runs, 5 steps")
    assert lines[1] == "v45 ran 10.0 % slower than v41: 100.00 -> 110.00 ms per step (+10.00 ms)"
    assert lines[-4:] == [
        "Next:",
        "  tracker diff v41 v42 v43 v44 v45 --details",
        "  tracker diff v41 v42 v43 v44 v45 -o diff.xlsx",
        "  tracker diff v41 v45",
    ]
    assert json.loads(render(builders.matrix(), "json"))["headline"] == lines[1]


def test_markdown_has_whole_labels_over_its_columns():
    label = "a_nightly_version_of_2026-11-20"
    assert f"| name | {label} | v42 |" in render(of_files(label), "markdown")
    assert label not in render(of_files(label), "text", width=160).partition("Per step")[2].partition("Next:")[0]


def with_cells(matrix, row=None, side=None, **changes):
    """The matrix with some of its cells changed, or all."""
    cells = [
        cell | changes if row in (None, cell["row"]) and side in (None, cell["side"]) else cell
        for cell in matrix.tables["cells"].records()
    ]
    made = Columns.of_rows(cells, MATRIX_COLUMNS["cells"])
    return builders.matrix(tables=matrix.tables | {"cells": made})


def with_cell(name, side, **changes):
    """The matrix with one cell of the row `name` changed."""
    whole = builders.matrix()
    (row,) = (row["row"] for row in whole.tables["rows"].records() if row["name"] == name)
    return render(with_cells(whole, row=row, side=side, **changes), "text", width=200)


def test_a_mark_against_the_change_says_against_which_side():
    """In v44 aten::mm is 5 % faster than in v41 and 20 % slower than in v43."""
    text = with_cell("aten::mm", 3, diff=-0.05, previous_diff=0.2, verdict="REGRESSED")
    assert "\n    ▲ of v44: +20.0 % since v43; ▼ of v45: -23.1 % since v44\n" in text


def test_a_mark_against_both_changes_names_the_drift():
    text = with_cell("aten::mm", 3, diff=-0.05, previous_diff=-0.01, verdict="REGRESSED")
    assert "▲ of v44: without the machine-wide drift; " in text


def test_details_have_what_came_with_each_side():
    text = render(builders.matrix(), "text", width=200, details=True)
    assert [line.strip() for line in text.partition("What came with each side\n")[2].splitlines()[:3]] == [
        "v43: step time REGRESSED (+19.00 ms, +18.8 %); REGRESSED aten::mm +19.00 ms; REMOVED aten::add -1.50 ms",
        "v44: ADDED =cmd|' /C calc'!A0 +2.00 ms",
        "v45: step time SUSPECT (-9.00 ms, -7.6 %); IMPROVED aten::mm -9.00 ms",
    ]
    assert "v42 against v41: 2 runs against 2: only large changes show" in text


def test_details_are_proposed_where_there_are_any():
    whole = builders.matrix()
    bare = with_cells(whole, verdict=None)
    assert "--details" in render(whole, "text") and "--details" not in render(whole, "text", details=True)
    assert "Next:\n  tracker diff v41 v42 v43 v44 v45 -o diff.xlsx\n  tracker diff v41 v45\n" in render(bare, "text")


def test_sides_without_verdicts_have_one_sentence_for_all():
    whole = builders.matrix()
    plain = with_cells(whole, verdict=None)
    lines = render(plain, "text", width=120).splitlines()
    assert lines[2] == "2 runs against 2: only large changes show; 3 or more runs of each version tell more."
    assert "▲" not in "\n".join(lines)


def test_limit_cuts_the_rows_below_overall():
    text = render(builders.matrix(), "text", limit=1, width=140)
    assert "… and 2 more\n  --top 0 has all rows\n" in text and "aten::add" not in text and "Peak memory" in text


def test_json_has_a_cell_per_side_and_csv_a_line():
    document = json.loads(render(builders.matrix(), "json"))
    assert list(document) == [
        "schema", "headline", "sides", "metric", "by", "options", "notes", "judged", "rows",
    ]  # fmt: skip
    row = next(row for row in document["rows"] if row["name"] == "aten::add")
    assert [cell["value"] for cell in row["cells"]] == [1_500_000, 1_500_000, None, None, None]
    lines = list(csv.DictReader(io.StringIO(render(builders.matrix(), "csv"))))
    assert [line["side"] for line in lines if line["name"] == "aten::add"] == ["v41", "v42", "v43", "v44", "v45"]


def test_differences_have_a_scale_of_colours_in_the_workbook():
    sheet = workbooks.opened(render(builders.matrix(), "xlsx"))["Matrix"]
    (area,) = sheet.conditional_formatting
    header = [cell.value for cell in sheet[1]]
    assert [header.index(f"DIFF of {label}") for label in ("v42", "v45")] == [10, 13]
    assert str(area.sqref) == "K2:N8"  # the four columns of DIFF, all rows
    assert area.rules[0].type == "colorScale"


def test_hostile_labels_stay_in_the_head_of_their_columns():
    text = render(of_files("a\nb\x1b[31m", "v42"), "text", width=160)
    assert "\x1b" not in text
    head = text.partition("Operators by")[2].splitlines()[1]
    assert "a\\nb\\x1b[31m" in head
