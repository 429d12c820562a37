"""Comparing with msprof-analyze: its sheet is read as it is, and a reason counts only where it gives its number."""

from __future__ import annotations

import doctest
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tracker.profile import Strings

ROOT = Path(__file__).parents[1]
CAPTURE = ROOT / "tests" / "data" / "ascend_text" / "worker-1_4711_20250109073443012_ascend_pt"
MS = 1_000_000
GIB = 1 << 30
SHEET = [
    (None, "Base Profiling: a", None, None, "Comparison Profiling: b", None, None, None, None),
    ("Index", "Duration(ms)", "Duration Ratio", "Number", "Duration(ms)", "Duration Ratio", "Number", "Diff", "Ratio"),
    ("Computing Time", 9.0, 0.09, 3, 5.0, 0.1, 2, -4.0, 0.55),
    ("\tMatmul", 4.0, 0.04, 1, 0, 0, 0, -4.0, 0),
    ("\t\tMatmul (Cube)", 4.0, 0.04, 1, 0, 0, 0, -4.0, 0),
    ("Uncovered Communication Time", 80.5, 0.8, "/", 40.0, 0.8, "/", -40.5, 0.5),
    ("\tdp: Communication", 80.5, 0.8, "/", 0, 0, "/", -80.5, 0),
    ("\t\tWait", 50.5, 0.5, "/", 0, 0, "/", -50.5, 0),
    ("\t\tTransmit", 30.0, 0.3, "/", 0, 0, "/", -30.0, 0),
    ("E2E Time", 100.0, 1, "/", 50.0, 1, "/", -50.0, "INF"),
]
PRINTED = """
+-----+----------------+-----------+----------+
|         Model Profiling Time Distribution    |
+-----+----------------+-----------+----------+
|     | Computing Time | Mem Usage | E2E Time |
+-----+----------------+-----------+----------+
| NPU |     0.009s     |   2.08G   |  0.100s  |
| NPU |     0.005s     |   1.49G   |  0.050s  |
"""


@pytest.fixture(scope="module")
def script():
    sys.path.insert(0, str(ROOT / "scripts"))
    yield import_module("compare_with_msprof_analyze")
    sys.path.remove(str(ROOT / "scripts"))


@pytest.fixture(scope="module")
def rules(script):
    return import_module("msprof_analyze_rules")


def made(rules, kernels, **said):
    numbers = {"compute_ns": 9 * MS, "uncovered_ns": 80 * MS, "exposed_copy_ns": 1 * MS, "our_e2e_ns": 105 * MS}
    given = {"is_database": True, "kernels": kernels, "totals": rules.Totals(9 * MS, 80 * MS, 100 * MS, 0)}
    steps = rules.Steps(compute_ns=9 * MS, uncovered_ns=80 * MS, idle_ns=15 * MS, e2e_ns=105 * MS)
    return rules.Seen(**{**given, "steps": steps, **numbers, **said})


def ours(script, **more):
    cells = {"Computing Time": (9, 3), "Uncovered Communication Time": (80, None), "Free Time": (15, None)}
    named = {title.replace("_", " "): value for title, value in more.items()}
    return {
        title: script.Cell(ms * MS, number)
        for title, (ms, number) in {**cells, "E2E Time": (105, None), **named}.items()
    }


def by_title(rows):
    return {row.title: row for row in rows}


def test_the_sheet_is_read_side_by_side(script):
    baseline, candidate = script.sheet(SHEET)
    assert baseline["Computing Time"] == script.Cell(9 * MS, 3)
    assert baseline["Uncovered Communication Time"] == script.Cell(80.5 * MS, None)
    assert baseline["dp: Communication: Wait"] == script.Cell(50.5 * MS, None)
    assert candidate["Matmul (Cube)"] == script.Cell(0, 0)
    assert candidate["E2E Time"] == script.Cell(50 * MS, None)


def test_memory_is_read_from_the_printed_table(script):
    assert script.printed_gib(PRINTED) == [2.08, 1.49]
    assert script.printed_gib("nothing") == []


def test_a_kernel_classed_otherwise_is_the_reason_for_two_differences(script, rules):
    kernels = (
        rules.Kernel("MatMul", 4 * MS, "Matmul (Cube)", "Matmul (Cube)", "told by its op"),
        rules.Kernel("BroadcastTo", 2 * MS, "Vector (No Trans)", "Vector (Trans)", "'cast' is a part of its name"),
        rules.Kernel("Add", 3 * MS, "Vector (No Trans)", "Vector (No Trans)", "no word decides"),
    )
    mine = {**ours(script), 
        "Matmul": script.Cell(4 * MS, 1), "Matmul (Cube)": script.Cell(4 * MS, 1), "Vector": script.Cell(5 * MS, 2),
        "Vector (No Trans)": script.Cell(5 * MS, 2)
    }  # fmt: skip
    peer = {
        "Computing Time": script.Cell(9 * MS, 3), "Matmul": script.Cell(4 * MS, 1),
        "Matmul (Cube)": script.Cell(4 * MS, 1), "Vector": script.Cell(5 * MS, 2),
        "Vector (Trans)": script.Cell(2 * MS, 1), "Vector (No Trans)": script.Cell(3 * MS, 1),
        "Uncovered Communication Time": script.Cell(80 * MS), "E2E Time": script.Cell(100 * MS),
        "Free Time": script.Cell(11 * MS),
    }  # fmt: skip
    rows = by_title(script.compared(mine, peer, made(rules, kernels)))
    assert all(row.is_explained for row in rows.values())
    assert {title for title, row in rows.items() if row.is_equal} == {
        "Computing Time", "Matmul", "Matmul (Cube)", "Vector", "Uncovered Communication Time",
    }  # fmt: skip
    (moved,) = rows["Vector (Trans)"].steps
    assert (moved.ns, moved.number) == (2 * MS, 1)
    assert "1 x BroadcastTo" in moved.reason
    assert "'cast' is a part of its name" in moved.reason
    # 15 ms free + 1 ms of copies - 5 ms of E2E
    assert [step.ns for step in rows["Free Time"].steps] == [16 * MS, 11 * MS]


def test_a_number_that_no_rule_gives_is_unexplained(script, rules):
    kernels = (rules.Kernel("Add", 9 * MS, "Vector (No Trans)", "Vector (No Trans)", "no word decides"),)
    mine = ours(script) | {title: script.Cell(9 * MS, 1) for title in ("Computing Time", "Vector", "Vector (No Trans)")}
    peer = {
        "Computing Time": script.Cell(9 * MS, 1), "Vector": script.Cell(9 * MS, 1),
        "Vector (No Trans)": script.Cell(8 * MS, 1), "Uncovered Communication Time": script.Cell(70 * MS),
        "E2E Time": script.Cell(101 * MS), "Free Time": script.Cell(12 * MS),
    }  # fmt: skip
    rows = by_title(script.compared(mine, peer, made(rules, kernels)))
    unexplained = {title for title, row in rows.items() if not row.is_explained}
    assert unexplained == {"Vector (No Trans)", "Uncovered Communication Time", "E2E Time", "Free Time"}
    text = "\n".join(script.lines_of(list(rows.values())))
    assert text.count("UNEXPLAINED") == len(unexplained)


def test_a_step_that_does_not_start_at_our_number_explains_nothing(script):
    step = script.Step("because", 4 * MS)
    rows = [
        script.Row("Matmul", script.Cell(ms * MS), script.Cell(4 * MS), (step,), script.Cell(5 * MS)) for ms in (5, 6)
    ]
    assert [row.is_explained for row in rows] == [True, False]


@pytest.mark.parametrize("wrong", ["Wait", "Transmit", "SDMA", "Other", "Mem Usage"])
def test_a_wrong_number_of_ours_is_unexplained_though_the_rule_gives_that_of_the_peer(script, rules, wrong):
    kernels = (rules.Kernel("Strange", 4 * MS, "Other", None, "skipped"),)
    groups = {"dp": rules.Group(wait_ns=50 * MS, transmit_ns=30 * MS)}
    seen = made(rules, kernels, groups=groups, reserved_bytes=8 * GIB)
    totals = replace(seen.totals, sdma_ns=3 * MS)
    steps = replace(seen.steps, wait_ns=40 * MS, transmit_ns=40 * MS, copy_ns=2 * MS)
    seen = replace(seen, totals=totals, steps=steps, our_reserved_bytes=6 * GIB)
    mine = ours(script, Wait=(40, None), Transmit=(40, None), SDMA=(2, None), Other=(4, 1))
    mine["Mem Usage"] = script.Cell(6 * GIB)
    peer = {
        "Computing Time": script.Cell(9 * MS, 3), "Other": script.Cell(9 * MS),
        "Uncovered Communication Time": script.Cell(80 * MS), "dp: Communication: Wait": script.Cell(50 * MS),
        "dp: Communication: Transmit": script.Cell(30 * MS), "SDMA": script.Cell(3 * MS),
        "E2E Time": script.Cell(100 * MS), "Mem Usage": script.Cell(8 * GIB),
    }  # fmt: skip
    right = by_title(script.compared(mine, peer, seen))[wrong]
    assert (right.is_equal, right.is_explained) == (False, True)
    mine[wrong] = replace(mine[wrong], ns=mine[wrong].ns - MS)
    row = by_title(script.compared(mine, peer, seen))[wrong]
    assert not row.is_explained
    assert "UNEXPLAINED" in "\n".join(script.lines_of([row]))


def test_a_number_of_ours_that_nothing_else_gives_is_unexplained(script):
    step = script.Step("because", 4 * MS)
    rows = [script.Row("Wait", mine, script.Cell(4 * MS), (step,)) for mine in (script.Cell(5 * MS), None)]
    assert [row.is_explained for row in rows] == [False, True]


def test_a_count_that_differs_is_a_difference(script):
    row = script.Row("Matmul", script.Cell(4 * MS, 1), script.Cell(4 * MS, 2), ())
    assert not row.is_equal
    assert not row.is_explained


def test_the_made_capture_is_seen_by_the_rules(rules):
    seen = rules.seen_of(CAPTURE)
    # MatMulV2_1 from 100.001 to 150.001 us and Cast_2 from 160 to 170; the all-reduce from 199.999 to 499.999
    assert (seen.compute_ns, seen.uncovered_ns, seen.our_e2e_ns) == (60_000, 300_000, 399_998)
    # Overlap Analysis of this trace has one slice of computing and one of free time
    assert (seen.totals.compute_ns, seen.totals.e2e_ns, seen.totals.slices) == (50_000, 60_000, 1)
    # every stream is called `Physic Stream Id`, so that no copy counts
    assert seen.totals.sdma_ns == 0
    assert {kernel.name: (kernel.ours, kernel.peer) for kernel in seen.kernels} == {
        "MatMulV2_1": ("Matmul (Cube)", None),
        "Cast_2": ("Vector (No Trans)", None),
    }
    assert not seen.has_measurements
    # one plane, which waits from 220 to 420 us
    assert seen.groups == {"group_name_5": rules.Group(200_000, 100_000)}
    assert seen.reserved_bytes == 4 << 30
    # no compute hides the all-reduce
    assert (seen.steps.wait_ns, seen.steps.transmit_ns) == (200_000, 100_000)


def test_a_wait_of_an_rdma_transfer_is_no_wait(rules):
    strings = Strings()
    names = ("RDMASend", "RDMASend", "Notify_Wait", "RDMASend", "Notify_Wait", "Notify_Wait")
    tasks = SimpleNamespace(name=np.array([strings.code(name) for name in names]), start_ns=np.arange(6))
    events = SimpleNamespace(extras=SimpleNamespace(collective_tasks=tasks), strings=strings)
    assert rules._waits(events, np.arange(6)).tolist() == [5]


def test_pairs_are_captures_whose_paths_differ_in_one_part(script, tmp_path):
    for name in ("old/text/rank0", "old/db/rank0", "new/text/rank0", "new/text/rank1", "new/db/rank0"):
        folder = tmp_path / f"{name}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        folder.mkdir(parents=True)
        (folder / "kernel_details.csv").write_text("Name,Accelerator Core,Start Time(us),Duration(us)\n")
    pairs = [tuple(str(p.relative_to(tmp_path).parent) for p in pair) for pair in script.pairs_in(tmp_path)]
    assert pairs == [
        ("new/db", "new/text"),
        ("new/db", "old/db"),
        ("new/text", "old/text"),
        ("old/db", "old/text"),
    ]


def test_without_the_tool_the_exit_code_is_two(script, capsys):
    assert script.main(["--pair", str(CAPTURE), str(CAPTURE), "--peer-python", "/nowhere/bin/python"]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_the_examples_of_the_rules_are_true(rules):
    assert doctest.testmod(rules).failed == 0


def test_on_one_kind_of_core_cube_work_is_what_the_cube_did(script, rules):
    """Two matmuls on AI_CORE; the cube works in one. Ours tells 4 ms cube, the peer takes both: 7 ms."""
    title, op = "Matmul (Cube)", "launched while aten::mm was open"
    kernels = (
        rules.Kernel("MatMul", 4 * MS, title, title, op, uses_cube=True),
        rules.Kernel("Cast", 3 * MS, title, title, op, uses_cube=False),
    )
    cells = {title: script.Cell(4 * MS, 1), "Matmul (Vector)": script.Cell(3 * MS, 1)}
    told = script.told_as(cells, kernels)
    assert [kernel.ours for kernel in told] == ["Matmul (Cube)", "Matmul (Vector)"]
    row = script._class(title, cells, {title: script.Cell(7 * MS, 2)}, made(rules, told))
    assert row.is_explained
    assert not row.is_equal
    by_core = {title: script.Cell(7 * MS, 2)}
    assert script.told_as(by_core, kernels) == kernels
