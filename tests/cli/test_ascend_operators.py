"""Operators of Ascend NPUs on the screens and in workbooks, from files to cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.readers.ascend_operators import KERNELS, write
from tests.reports import workbooks
from tracker.compare import op_kernels

SLOWER = (*KERNELS[:2], replace(KERNELS[2], us=150))
"""Gelu, on vector cores, takes 150 us in place of 100."""


@pytest.fixture
def both(tmp_path) -> tuple[Path, Path]:
    """Folders of two captures, the second one with the slower Gelu."""
    write(tmp_path / "a")
    write(tmp_path / "b", SLOWER, first_task=101)
    return tmp_path / "a", tmp_path / "b"


def rows_of(text: str) -> dict[str, list[str]]:
    """Return the cells of each line by its first words."""
    found = {}
    for line in text.splitlines():
        cells = [cell for cell in line.split("  ") if cell.strip()]
        if cells:
            found.setdefault(cells[0].strip(), [cell.strip() for cell in cells[1:]])
    return found


def test_show_parts_cube_from_vector_work(tracker, both):
    """MatMulV3 for 300 us on cube cores, Add 50 and Gelu 100 us on vector cores, of a step of 1 ms."""
    rows = rows_of(tracker("show", both[0]).out)
    assert rows["compute"][:2] == ["450.00 us", "45.0 %"]
    assert rows["cube operators"] == ["300.00 us", "30.0 %"]
    assert rows["vector operators"] == ["150.00 us", "15.0 %"]
    assert rows["idle"][:2] == ["550.00 us", "55.0 %"]


def test_diff_has_the_share_of_scheduling_beside_cube_and_vector(tracker, both):
    rows = rows_of(tracker("diff", *both).out)
    assert rows["cube operators"] == ["0.30 ms", "0.30 ms", "0.00 ms", "0.0 %"]
    assert rows["vector operators"] == ["0.15 ms", "0.20 ms", "+0.05 ms", "+33.3 %"]
    assert rows["share of the step"] == ["55.0 %", "50.0 %", "-5.0 pp", "-9.1 %"]


def test_cores_that_are_not_told_apart_have_no_rows(tracker, tmp_path):
    """A chip with one kind of core calls each AI_CORE, and how long its cube works was not measured."""
    write(tmp_path / "a", [replace(kernel, core="AI_CORE") for kernel in KERNELS])
    text = tracker("show", tmp_path / "a").out
    assert "450.00 us" in text and "cube" not in text


def listed_kernels(tracker, folder: Path, *words: object) -> list[dict[str, Any]]:
    """Return the rows of single kernels of the workbook of a diff, by the titles of their columns."""
    book = folder / "diff.xlsx"
    assert tracker("diff", *words, "--single-kernels", "-o", book).code == 0
    rows = workbooks.values(workbooks.opened(book.read_bytes())["OperatorCompare"])
    return [row for row in rows if row["Row"] == "task"]


def test_operators_list_their_kernels_with_task_ids(tracker, both, tmp_path):
    """Two steps of three kernels; those of b are tasks 101 to 106, as its kernel_details.csv numbers them."""
    rows = listed_kernels(tracker, tmp_path, *both)
    titles = ("Operator Name", "Baseline Kernel Name", "Baseline Task ID", "Candidate Task ID", "Candidate Task Type",
              "Baseline Kernel Input Shape", "Baseline Step")  # fmt: skip
    assert [tuple(row[title] for title in titles) for row in rows] == [
        ("aten::gelu", "aclnnGelu_Gelu", 3, 103, "AI_VECTOR_CORE", "[[64,32]]", 0),
        ("aten::gelu", "aclnnGelu_Gelu", 6, 106, "AI_VECTOR_CORE", "[[64,32]]", 1),
        ("aten::mm", "aclnnMm_MatMulV3", 1, 101, "AI_CORE", "[[64,64],[64,32]]", 0),
        ("aten::mm", "aclnnMm_MatMulV3", 4, 104, "AI_CORE", "[[64,64],[64,32]]", 1),
        ("aten::add_", "aclnnInplaceAdd_Add", 2, 102, "AI_VECTOR_CORE", "[[64,32],[32]]", 0),
        ("aten::add_", "aclnnInplaceAdd_Add", 5, 105, "AI_VECTOR_CORE", "[[64,32],[32]]", 1),
    ]
    first = rows[0]
    sides = [first[f"{side} Device Duration (us)"] for side in ("Baseline", "Candidate")]
    assert (*sides, first["Delta (us)"], first["DIFF"], first["DIFF Filter"]) == (100, 150, 50, 0.5, "worse")
    assert rows[1]["Baseline Start Time (us)"] == 1_470


@pytest.mark.parametrize(
    ("most", "owners"), [(5, {1: "aten::linear", 2: "aten::linear"}), (1, {1: "aten::mm", 2: "aten::add_"})]
)
def test_kernels_stand_below_the_operator_that_counts_them(tracker, both, tmp_path, most, owners):
    """aten::linear launches two kernels in a call, through aten::mm and aten::add_."""
    rows = listed_kernels(tracker, tmp_path, *both, "--max-kernels", most)
    found = {row["Baseline Task ID"]: row["Operator Name"] for row in rows}
    assert {task: found[task] for task in (1, 2, 3)} == {**owners, 3: "aten::gelu"}


def test_kernel_of_one_side_alone_stands_without_the_other(tracker, tmp_path):
    again = replace(KERNELS[2], launch=74, start=600)
    write(tmp_path / "a")
    write(tmp_path / "b", (*KERNELS, again), first_task=101)
    rows = listed_kernels(tracker, tmp_path, tmp_path / "a", tmp_path / "b", "--op", "aten::gelu")
    assert [(row["Baseline Task ID"], row["Candidate Task ID"], row["DIFF Filter"]) for row in rows] == [
        (3, 103, "same"), (6, 104, "same"), (None, 107, "ADDED"), (None, 108, "ADDED"),
    ]  # fmt: skip


def test_kernels_follow_the_chosen_steps_and_renamed_operators(tracker, both, tmp_path):
    words = ("--candidate-step", "1", "--baseline-step", "1", "--op-map", '{"aten::mm": "aten::gelu"}')
    rows = listed_kernels(tracker, tmp_path, *both, *words, "--op", "aten::gelu")
    assert [(row["Baseline Task ID"], row["Candidate Task ID"]) for row in rows] == [(4, None), (6, 106)]


@pytest.mark.parametrize("words", [(), ("--format", "json")])
def test_kernels_without_a_workbook_are_refused(tracker, both, words):
    done = tracker("diff", *both, "--single-kernels", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err == "tracker: --single-kernels without the workbook that lists them; add it: -o diff.xlsx\n"


def test_kernels_of_a_file_that_is_gone_are_refused(tracker, both, tmp_path):
    for version, place in zip(("v1", "v2"), both, strict=True):
        tracker("ingest", place, "--version", version, "--workload", "w")
    (table,) = both[1].rglob("kernel_details.csv")
    table.unlink()
    done = tracker("diff", "v1", "v2", "--single-kernels", "-o", tmp_path / "diff.xlsx")
    assert done.code == 2 and len(done.err.splitlines()) == 1
    assert "kernel_details.csv: no such file any more; put the file back" in done.err


def test_more_kernels_than_a_sheet_is_for_are_counted(tracker, both, tmp_path, monkeypatch):
    monkeypatch.setattr(op_kernels, "MOST", 4)
    assert len(listed_kernels(tracker, tmp_path, *both)) == 4
    text = tracker("diff", *both, "--single-kernels", "-o", tmp_path / "diff.xlsx", "--details").out
    assert "2 of 6 single kernels are left out: choose steps or operators." in " ".join(text.split())
