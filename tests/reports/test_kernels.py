"""Kernels for people: rows that look alike are told apart."""

from tests.reports import builders
from tests.reports.builders import MS
from tracker.profile import UNLINKED_OP
from tracker.reports import render

KERNEL = {
    "type": "", "core_type": "AI_CORE", "op_input_shapes": "", "op": "aten::mul", "category": "vector", "calls": 2,
    "sum_squares_ns2": None, "wait_ns": None, "bytes": None, "min_ns": MS, "max_ns": MS,
}  # fmt: skip


def kernel(name, canonical, shapes, ms, **more):
    named = {"name": name, "canonical_name": canonical, "input_shapes": shapes, "total_ns": ms * MS}
    return KERNEL | named | more


def table(*kernels, width=160):
    text = render(builders.shown(kernels=builders.nullable(kernels)), "text", only=["kernel"], width=width)
    return text[text.index("Kernels") : text.index("Copies")]


def test_kernels_that_differ_by_shape_alone_show_their_shapes_and_others_do_not():
    text = table(
        kernel("Mul70", "Mul", "[[4096,9216],[]]", 4),
        kernel("Mul70", "Mul", "[[64],[]]", 2),
        kernel("Add1", "Add", "[[7]]", 1),
    )
    assert "[[4096,9216],[]]" in text and "[[64],[]]" in text and "[[7]]" not in text


def test_without_rows_that_look_alike_there_are_no_shapes():
    text = table(kernel("Mul70", "Mul", "[[4096,9216],[]]", 4), kernel("Mul70", "Mul", "[[64]]", 2, op="aten::mul_"))
    assert "input shapes" not in text


def test_kernels_without_shapes_of_their_own_show_those_of_the_op_that_launches_them():
    text = table(
        kernel("gemm", "gemm", "", 4, op_input_shapes="[[8, 8]]"),
        kernel("gemm", "gemm", "", 2, op_input_shapes="[[9, 9]]"),
    )
    assert "[[8, 8]]" in text and "[[9, 9]]" in text


def test_the_time_per_step_of_a_kernel_stands_once():
    own = {"per_step_ns": 6.0 * MS}
    text = table(kernel("gemm", "gemm", "", 4, **own), kernel("gemm", "gemm", "", 2, op="aten::bmm", **own))
    assert text.count("6.00 ms") == 1


def test_collectives_that_nothing_else_tells_apart_show_the_names_of_the_profiler():
    of_op = {"op": "HcclAllreduce", "category": "communication"}
    text = table(
        kernel("hcom_allReduce__307_2_1", "hcom_allReduce", "", 4, **of_op),
        kernel("hcom_allReduce__307_0_1", "hcom_allReduce", "", 2, **of_op),
    )
    assert "hcom_allReduce__307_2_1" in text and "hcom_allReduce__307_0_1" in text


def test_kernels_of_two_ranks_differ_in_kinds_by_their_ranks():
    text = table({"rank": 0, **kernel("Mul70", "Mul", "[[64]]", 4)}, {"rank": 1, **kernel("Mul70", "Mul", "[[64]]", 2)})
    assert "input shapes" not in text and "Mul70" not in text


def test_a_diff_shows_the_shapes_of_the_kernel_apart_from_the_op_that_launches_it():
    rows = [{**row, "input_shapes": f"[[{number}]]"} for number, row in enumerate(builders.kernels())]
    text = render(builders.diff(kernels=builders.frame("kernels", rows)), "text", only=["kernel"], width=220)
    assert "aten::mm [[0]]" not in text
    line = next(line for line in text.splitlines() if line.strip().startswith("sm90_xmma"))
    assert [cell.strip() for cell in line.split("  ") if cell.strip()][1:3] == ["[[0]]", "aten::mm"]


def test_copies_that_differ_by_the_shapes_of_their_op_alone_show_them():
    of_op = {"op": "aten::convolution_backward", "category": "copy"}
    copies = [
        kernel("MEMCPY_ASYNC", "MEMCPY_ASYNC", "", 4, op_input_shapes=shapes, **of_op)
        for shapes in ("[[32,64]]", "[[32,192]]")
    ]
    text = render(builders.shown(copies=builders.nullable(copies)), "text", only=["kernel"], width=160)
    assert "[[32,64]]" in text and "[[32,192]]" in text


def test_where_no_launch_is_known_at_all_one_line_says_so_instead_of_a_column():
    unlinked = {"op": UNLINKED_OP}
    text = table(kernel("Add", "Add", "[[1]]", 2, **unlinked), kernel("Mul", "Mul", "[[1]]", 1, **unlinked))
    assert (
        "launched by" not in text
        and "(unlinked)" not in text
        and text.count("No launch of them is in the capture") == 1
    )
    text = table(kernel("Add", "Add", "[[1]]", 2, **unlinked), kernel("Mul", "Mul", "[[1]]", 1))
    assert (
        "launched by" in text
        and "(unlinked) its launch is not in the capture" in text
        and "No launch of them" not in text
    )
