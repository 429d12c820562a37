"""Rows that a reader made from sums get the names and kinds of work that events would have got."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from tests.factories import breakdown, table
from tracker.profile import ROW_COLUMNS, Rows, StepRow
from tracker.timeline.named import named

KERNELS = ("void gemm<(int)4>(float *)", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", "[copy]")


def made(categories=("", "", "copy"), op="(unlinked)", **sums):
    tables = {name: table(name, []) for name in ROW_COLUMNS}
    tables["op_key"] = table("op_key", [{"name": op}])
    tables["kernel_key"] = table("kernel_key", [{"name": name} for name in KERNELS])
    tables["kernel"] = table(
        "kernel",
        [
            {"kernel_key": place, "category": category, "calls": 1, "total_ns": 10 ** (place + 1)}
            for place, category in enumerate(categories)
        ],
    )
    overall = breakdown(**sums)
    return Rows(overall, (StepRow(0, 0, overall),), tables)


def test_names_and_categories_are_filled_in():
    rows = named(made())
    assert rows.tables["kernel_key"]["canonical_name"][:2] == ["gemm<4>", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"]
    assert rows.tables["kernel"]["category"] == ["matmul", "communication", "copy"]


def test_the_launching_op_goes_before_the_name_of_the_kernel():
    assert named(made(op="aten::convolution")).tables["kernel"]["category"][0] == "convolution_forward"


def test_what_a_reader_knows_stays():
    assert named(made(categories=("vector", "", "memset"))).tables["kernel"]["category"] == [
        "vector", "communication", "memset",
    ]  # fmt: skip


def test_sums_of_compute_and_communication_follow_from_the_sum_of_all_kernels():
    rows = named(made(kernel_total_ns=110))
    assert (rows.overall.compute_total_ns, rows.overall.communication_total_ns) == (10, 100)
    assert rows.steps[0].breakdown == rows.overall
    other = named(made(kernel_total_ns=999)).overall
    assert other.compute_total_ns is None, "the rows are not all kernels"
    assert named(made()).overall.compute_total_ns is None


def test_rows_that_lack_nothing_are_the_same_rows():
    rows = named(made())
    assert named(rows) is rows
    doubled = replace(rows, tables={**rows.tables, "kernel": {**rows.tables["kernel"], "calls": np.array([2, 2, 2])}})
    assert named(doubled) is doubled
