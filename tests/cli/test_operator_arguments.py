"""Arguments that record_op_args wrote beside a capture, from their files to the tables of show and diff.

The capture runs MatMulV2 on one tensor of 64 x 64 for 600 us in each of 4 steps.
"""

from __future__ import annotations

import json

import pytest

from tests.readers.ascend_databases import write_capture
from tests.readers.ascend_texts import Written, write
from tests.readers.operator_arguments import operator, tensor, write_arguments

MATMUL = [tensor("x1", 64, 64), None], [tensor("y", 64, 64)]


def matmul(**attributes):
    return operator("MatMulV2", *MATMUL, **attributes)


def reshape(*shape):
    """Reshape depends on the values of its second input."""
    to = tensor("shape", 2, dtype="int64", const_data=[*shape])
    return operator("Reshape", [tensor("x", 4096), to], [tensor("y", *shape)])


@pytest.fixture
def captures(tmp_path):
    return [write(tmp_path / name, number, Written()) for number, name in enumerate(("before", "after"))]


def shown_arguments(tracker, place, *words):
    return json.loads(tracker("show", place, *words, "--format", "json").out)["operator_arguments"]


def changes(tracker, captures, *words):
    return json.loads(tracker("diff", *captures, *words, "--format", "json").out)["operator_arguments"]


def test_arguments_join_the_kernels_of_their_type_and_shapes(tracker, captures):
    """4 calls of 600 us; no kernel is a Reshape."""
    write_arguments(captures[0], [reshape(64, 64), matmul(transpose_x1=False, k=[1, 2])])
    modes = "impl_mode=high_performance, deterministic=false"
    assert shown_arguments(tracker, captures[0]) == [
        {
            "operator": "MatMulV2", "inputs": "x1 bfloat16 ND [64,64]; none", "outputs": "y bfloat16 ND [64,64]",
            "attributes": f"transpose_x1=false, k=(1,2), {modes}", "calls": 4, "total_ns": 2_400_000,
        },
        {
            "operator": "Reshape", "inputs": "x bfloat16 ND [4096]; shape int64 ND [2] = (64,64)",
            "outputs": "y bfloat16 ND [64,64]", "attributes": modes, "calls": None, "total_ns": None,
        },
    ]  # fmt: skip
    assert "x1 bfloat16 ND [64,64]; none -> y bfloat16" in tracker("show", captures[0], "--only", "argument").out


def test_kernels_of_two_arguments_with_the_same_shapes_are_of_neither(tracker, captures):
    write_arguments(captures[0], [matmul(transpose_x1=False), matmul(transpose_x1=True)])
    assert [row["total_ns"] for row in shown_arguments(tracker, captures[0])] == [None, None]


def test_a_diff_says_which_part_of_the_arguments_changed(tracker, captures):
    for capture, flag in zip(captures, (False, True), strict=True):
        write_arguments(capture, [matmul(transpose_x1=flag), reshape(64, 64)])
    (row,) = changes(tracker, captures)
    assert [row[name] for name in ("operator", "status", "changed")] == ["MatMulV2", "both", "attributes"]
    assert row["baseline"].startswith("transpose_x1=false") and row["candidate"].startswith("transpose_x1=true")
    said = tracker("diff", *captures).out
    assert "the arguments of 1 operator differ: MatMulV2 (attributes); --only argument" in said
    assert "Nothing else that was recorded changed" not in said
    assert "baseline transpose_x1=false" in tracker("diff", *captures, "--only", "argument").out


def test_other_values_of_an_input_are_a_change(tracker, captures):
    for capture, sides in zip(captures, ((64, 64), (32, 128)), strict=True):
        write_arguments(capture, [reshape(*sides)])
    (row,) = changes(tracker, captures)
    assert row["changed"] == "inputs, outputs"
    assert row["candidate"] == "x bfloat16 ND [4096]; shape int64 ND [2] = (32,128) -> y bfloat16 ND [32,128]"


def test_long_values_that_begin_alike_are_told_apart(tracker, captures):
    for capture, last in zip(captures, (1, 2), strict=True):
        values = tensor("axes", 40, dtype="int64", const_data=[*[0] * 39, last])
        write_arguments(capture, [operator("Tile", [tensor("x", 8), values], [tensor("y", 8)])])
    (row,) = changes(tracker, captures)
    assert "... 40 values" in row["baseline"] and row["baseline"] != row["candidate"]


def test_arguments_without_a_counterpart_are_added_and_removed(tracker, captures):
    before, after = (
        [operator("Cast", [tensor("x", size)], [tensor("y", size, dtype="float")], dst_type=0) for size in sizes]
        for sizes in ((8, 16), (8, 32, 64))
    )
    write_arguments(captures[0], before)
    write_arguments(captures[1], after)
    found = [(row["status"], (row["baseline"] or row["candidate"])[:23]) for row in changes(tracker, captures)]
    assert found == [
        ("REMOVED", "x bfloat16 ND [16] -> y"),
        ("ADDED", "x bfloat16 ND [32] -> y"),
        ("ADDED", "x bfloat16 ND [64] -> y"),
    ]


def test_a_diff_needs_arguments_of_both_sides(tracker, captures):
    write_arguments(captures[1], [matmul()])
    assert changes(tracker, captures) == []
    assert "arguments of" not in tracker("diff", *captures).out
    assert "needs them of both sides" in tracker("diff", *captures, "--only", "argument").out


def test_the_folder_of_all_operators_goes_before_those_that_repeat_it(tracker, captures):
    write_arguments(captures[0], [matmul()], what="")
    assert [row["operator"] for row in shown_arguments(tracker, captures[0])] == ["MatMulV2"]
    write_arguments(captures[0], [matmul(), reshape(64, 64)])
    assert [row["operator"] for row in shown_arguments(tracker, captures[0])] == ["MatMulV2", "Reshape"]


def test_an_ingest_of_the_folder_above_stores_them_with_their_run(tracker, captures, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "runs.db"))
    for capture, flag in zip(captures, (False, True), strict=True):
        write_arguments(capture, [matmul(transpose_x1=flag)])
        done = tracker("ingest", capture.parent, "--version", capture.parent.name, "--workload", "gpt")
        assert done.code == 0 and "not recognised" not in done.err
    (row,) = changes(tracker, ("before", "after"))
    assert row["changed"] == "attributes"
    assert not any(row["source"] == "operator_arguments" for row in json.loads(
        tracker("show", "after", "--format", "json").out)["counters"])  # fmt: skip


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"inputs": []}', '{"op_type": 3}', '{"op_type": "MatMulV2", "inputs": [7]}'],
)  # fmt: skip
def test_a_file_that_is_none_is_named_in_one_line(tracker, captures, text):
    folder = write_arguments(captures[0], [matmul()])
    (folder / "MatMulV2_1.json").write_text(text, encoding="utf-8")
    done = tracker("show", captures[0])
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert "MatMulV2_1.json" in line


@pytest.mark.parametrize("inside", ["", "ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_4.db"])
def test_a_capture_as_database_has_them_too(tracker, tmp_path, inside):
    """Its one MatMulV2 multiplies 8 x 96 by 96 x 4."""
    capture = write_capture(tmp_path / "rank4_ascend_pt")
    product = operator("MatMulV2", [tensor("x1", 8, 96), tensor("x2", 96, 4)], [tensor("y", 8, 4)])
    write_arguments(capture, [product])
    (row,) = shown_arguments(tracker, capture / inside)
    assert (row["operator"], row["inputs"]) == ("MatMulV2", "x1 bfloat16 ND [8,96]; x2 bfloat16 ND [96,4]")
    kernels = json.loads(tracker("show", capture / inside, "--format", "json").out)["kernels"]
    assert row["total_ns"] == sum(kernel["total_ns"] for kernel in kernels if kernel["type"] == "MatMulV2") > 0
