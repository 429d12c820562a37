"""Kernels by which HCCL itself runs a collective: each collective counts once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.timeline.made_events import Made, by_op, records
from tracker.profile import DeviceEvents, LaunchLevel, Rows
from tracker.timeline import build

US = 1_000
ROW = "hcom_allReduce__777_0_1"
VECTOR = "AI_VECTOR_CORE"


def step(own_kernel: Any = None, *, row: tuple[int, int] | None = (260, 340)) -> Made:
    """One step of 400 us: 200 us of aten::mm from 50 on, and an all-reduce from 260 to 340 us.

    row: when the profiler says that the collective runs. own_kernel: name, start, end and core of one more kernel.
    """
    made = Made()
    made.step(0, 0, 400 * US)
    made.op("aten::mm", 5 * US, 15 * US)
    made.launch(7 * US, 1, name="async_npu", level=LaunchLevel.FLOW)
    made.kernel("aclnnMm_MatMulV2", 50 * US, 250 * US, 1, type="MatMulV2", core_type="AI_CORE", stream=2)
    made.op("HcclAllreduce", 20 * US, 30 * US)
    made.launch(22 * US, 2, name="async_npu", level=LaunchLevel.FLOW)
    if row is not None:
        made.hcom(ROW, row[0] * US, row[1] * US, 2, stream=-1)
    if own_kernel is not None:
        name, start, end, core = own_kernel
        made.kernel(name, start * US, end * US, 2, type=name, core_type=core, stream=9)
    return made


def parts_us(rows: Rows) -> tuple[float, float, float]:
    """Return compute, exposed communication and idle time of the one step, in us."""
    found = rows.steps[0].breakdown
    parts = (found.compute_ns, found.exposed_communication_ns, found.idle_ns)
    compute, exposed, idle = (0 if part is None else part / US for part in parts)
    return compute, exposed, idle


def test_collective_is_handed_over_with_the_kernel_that_runs_it():
    """The arrow ends at the kernel, at 258: put into the queue at 22, handed over at 250."""
    made = step(("AivKernel", 258, 338, VECTOR))
    made.rows[DeviceEvents][0]["handover_ns"] = 40 * US
    made.rows[DeviceEvents][2]["handover_ns"] = 250 * US
    queue = made.built().tables["queue"]
    assert records(queue, "kernels", "lead_ns") == [(1, (260 - 250) * US), (1, (50 - 40) * US)]


WHOLE = (200, 80, 120)


@pytest.mark.parametrize("own_kernel", [
    None,
    ("AivKernel", 260, 340, VECTOR),
    ("AivKernel", 265, 335, VECTOR),  # inside of its row
    ("AivKernel", 258, 338, VECTOR),  # the clocks of two tables
    ("allgatherAicpuKernel", 255, 390, "AI_CPU"),  # waits until its collective has ended
    ("hcom_allReduce_AivKernel", 260, 340, VECTOR),
    ("aiv_all_reduce_910b_bigdata_float", 260, 340, VECTOR),  # any name, at the very same time
])  # fmt: skip
def test_second_record_of_a_collective_adds_nothing(own_kernel):
    """200 us of compute, 80 us of communication, 1 call of HcclAllreduce, whatever kernel HCCL ran for it."""
    rows = step(own_kernel).built()
    assert parts_us(rows) == WHOLE
    assert by_op(rows, "device_self_ns") == {"aten::mm": 200 * US, "HcclAllreduce": 80 * US}
    assert records(rows.tables["communication"], "kind", "calls", "total_ns") == [("all_reduce", 1, 80 * US)]
    assert sorted(rows.tables["kernel_key"]["canonical_name"]) == ["aclnnMm_MatMulV2", "hcom_allReduce"]


@pytest.mark.parametrize("name", ["AivKernel", "allreduceAicpuKernel", "hcom_allReduce_AivKernel"])
def test_kernel_without_a_row_is_the_collective(name):
    rows = step((name, 260, 340, VECTOR), row=None).built()
    assert parts_us(rows) == WHOLE
    assert by_op(rows, "device_self_ns") == {"aten::mm": 200 * US, "HcclAllreduce": 80 * US}
    assert records(rows.tables["communication"], "kind", "calls", "total_ns") == [("all_reduce", 1, 80 * US)]


def test_kernel_that_only_touches_a_row_is_another_collective():
    """It shares 10 us with the row and runs for 80: 260 to 340 and 330 to 410, of which the step has 140 us."""
    rows = step(("AivKernel", 330, 400, VECTOR)).built()
    assert parts_us(rows) == (200, 140, 60)
    assert records(rows.tables["communication"], "calls") == [(1,), (1,)]


@pytest.mark.parametrize("own_kernel", [
    ("aclnnAdd_Add", 270, 330, VECTOR),  # runs beside the collective
    ("aclnnAdd_Add", 260, 330, VECTOR),
    ("MyAivKernel", 270, 330, VECTOR),
    ("ReduceSumAicpuKernel", 270, 330, "AI_CPU"),
    ("aclnnAdd_Add", 340, 341, VECTOR),  # begins where the collective ends
    ("aclnnMm_MatMulV3", 260, 340, "AI_CORE"),  # no collective runs on cube cores
    ("MatmulAllReduce", 260, 340, "MIX_AIC"),
])  # fmt: skip
def test_compute_beside_a_collective_stays_compute(own_kernel):
    rows = step(own_kernel).built()
    _, start, end, _ = own_kernel
    hidden = min(end, 340) - start
    assert parts_us(rows) == (200 + end - start, 80 - hidden, 120 - (end - start - hidden))


def test_short_kernel_behind_a_short_collective_stays_compute():
    """The collective runs for 0.8 us, an add of 0.8 us right behind it: both begin and end within 1 us."""
    made = step(row=None)
    made.hcom(ROW, 260_000, 260_800, 2, stream=-1)
    made.kernel("aclnnAdd_Add", 260_800, 261_600, core_type=VECTOR, stream=2)
    assert parts_us(made.built()) == (200.8, 0.8, 198.4)


def test_collective_takes_the_launch_of_its_kernel():
    """The arrow ends at the kernel alone: the collective is that of HcclAllreduce all the same."""
    made = step(row=None)
    made.hcom(ROW, 260 * US, 340 * US, stream=-1)
    made.kernel("AivKernel", 260 * US, 340 * US, 2, type="AivKernel", core_type=VECTOR, stream=9)
    assert by_op(made.built(), "device_self_ns") == {"aten::mm": 200 * US, "HcclAllreduce": 80 * US}


@pytest.mark.parametrize("stated_us", [200, 280])
def test_table_of_steps_may_count_kernels_of_hccl(stated_us):
    """The profiler's table of steps says compute with or without the 80 us on vector cores: no kernel is lost."""
    made = step(("AivKernel", 260, 340, VECTOR))
    made.step_times(0, compute=stated_us * US)
    assert build(made.capture()).quality == "ok"


def test_measurements_stay_with_their_kernels():
    made = Made()
    made.npu_kernel("AivKernel", 10, 20, type="AivKernel", core_type=VECTOR, metrics={"cycles": 1.0}, blocks=48)
    made.npu_kernel("Add", 20, 30, type="Add", core_type=VECTOR, metrics={"cycles": 7.0}, blocks=8)
    made.hcom(ROW, 10, 20)
    rows = made.built()
    names = rows.tables["kernel_key"]["name"]
    measured = records(rows.tables["kernel_metric"], "kernel_key", "metric", "mean")
    assert [(names[key], metric, mean) for key, metric, mean in measured] == [("Add", "cycles", 7.0)]
    assert dict(zip(names, rows.tables["kernel"]["block_num"], strict=True))["Add"] == 8
