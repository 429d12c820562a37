"""Hand-computable stories of what only NPU profilers say."""

from __future__ import annotations

import numpy as np

from tests.timeline.made_events import Made, by_op, records
from tracker.profile import MISSING, NO_STEP, LaunchLevel, Rows

HCOM = "hcom_allReduce__501_0_1"
TIMES = ("transit_ns", "wait_ns", "synchronization_ns", "idle_ns")


def kernel_rows(rows: Rows, *columns: str) -> list[tuple[object, ...]]:
    """(canonical name, columns of `kernel`) of each row."""
    names = rows.tables["kernel_key"]["canonical_name"]
    return sorted((names[key], *found) for key, *found in records(rows.tables["kernel"], "kernel_key", *columns))


def test_measurements_are_mean_smallest_and_largest_over_the_calls_of_a_kernel():
    made = Made()
    made.npu_kernel("aclnnAdd_AddAiCore_Add", 0, 5, type="Add", metrics={"aiv_vec_ratio": 0.5, "cycles": 10.0})
    made.npu_kernel("aclnnAdd_AddAiCore_Add", 5, 9, type="Add", metrics={"aiv_vec_ratio": 1.0, "cycles": float("nan")})
    made.npu_kernel("aclnnMul_MulAiCore_Mul", 9, 10, type="Mul")
    rows = made.built()
    names = rows.tables["kernel_key"]["type"]
    found = records(rows.tables["kernel_metric"], "kernel_key", "metric", "calls", "mean", "min", "max")
    assert [(names[key], *numbers) for key, *numbers in found] == [
        ("Add", "aiv_vec_ratio", 2, 0.75, 0.5, 1.0),
        ("Add", "cycles", 1, 10.0, 10.0, 10.0),
    ]


def test_the_block_count_of_a_kernel_is_the_largest_and_may_be_unknown():
    made = Made()
    made.npu_kernel("aclnnAdd_AddAiCore_Add", 0, 5, blocks=8)
    made.npu_kernel("aclnnAdd_AddAiCore_Add", 5, 9, blocks=20)
    made.npu_kernel("aclnnMul_MulAiCore_Mul", 9, 10)
    assert kernel_rows(made.built(), "calls", "block_num") == [
        ("aclnnAdd_AddAiCore_Add", 2, 20),
        ("aclnnMul_MulAiCore_Mul", 1, MISSING),
    ]
    plain = Made()
    plain.kernel("sgemm", 0, 1)
    assert kernel_rows(plain.built(), "block_num") == [("sgemm", MISSING)]


def test_two_captures_of_one_script_have_the_same_kernels():
    """The running numbers differ from run to run, and a capture at Level0 knows no types."""
    first, second, level0 = Made(), Made(), Made()
    numbered = [
        ("Conv2D{}", "Conv2D"),
        ("AxpyV2{}", "AxpyV2"),
        ("TopKV2{}", "TopKD"),
        ("trans_TransData_{}", "TransData"),
        ("Conv2DBackpropFilter{}_MemSet", "MemSet"),
        ("atomic_memset-1_{}", "MemSet"),
    ]
    for at, (name, kernel_type) in enumerate(numbered):
        first.kernel(name.format(at + 1), at, at + 1, type=kernel_type)
        second.kernel(name.format(at + 101), at, at + 1, type=kernel_type)
        level0.kernel(name.format(at + 57), at, at + 1, type="N/A")
    first.hcom("hcom_allReduce__501_0_1", 10, 20)
    second.hcom("hcom_allReduce__868_7_1", 10, 20)
    level0.hcom("hcom_allReduce__307_1_1", 10, 20)
    names = [sorted(made.built().tables["kernel_key"]["canonical_name"]) for made in (first, second, level0)]
    assert names[0] == names[1] == names[2]
    expected = ["AxpyV2", "Conv2D", "Conv2DBackpropFilter_MemSet", "TopKV2", "atomic_memset", "hcom_allReduce"]
    assert names[0] == [*expected, "trans_TransData"]


def test_the_launching_op_decides_before_the_type_and_the_type_before_the_name():
    made = Made()
    made.op("aten::addmm", 0, 10)
    made.op("aten::copy_", 20, 30)
    made.launch(5, 1, level=LaunchLevel.FLOW)
    made.launch(6, 2, level=LaunchLevel.FLOW)
    made.launch(25, 3, level=LaunchLevel.FLOW)
    made.kernel("aclnnAddmm_MatMulCommon_MatMulV2", 40, 50, 1, type="MatMulV2", core_type="AI_CORE")
    made.kernel("aclnnAddmm_TransData_TransData", 50, 53, 2, type="TransData", core_type="AI_VECTOR_CORE")
    made.kernel("aclnnInplaceCopy_TensorMoveAiCore_TensorMove", 53, 54, 3, type="TensorMove")
    made.kernel("aclnnMm_MatMulCommon_MemSet", 54, 55, type="MemSet", core_type="AI_VECTOR_CORE")
    made.kernel("trans_Cast_5", 55, 56, type="Cast", core_type="AI_CPU")
    assert kernel_rows(made.built(), "category") == [
        ("aclnnAddmm_MatMulCommon_MatMulV2", "matmul"),
        ("aclnnAddmm_TransData_TransData", "matmul"),
        ("aclnnInplaceCopy_TensorMoveAiCore_TensorMove", "tensor_move"),
        ("aclnnMm_MatMulCommon_MemSet", "vector"),
        ("trans_Cast", "ai_cpu"),
    ]


def test_a_type_that_the_profiler_leaves_out_is_read_from_the_name():
    made = Made()
    made.kernel("aclnnMm_MatMulCommon_MemSet", 0, 1, type="N/A", core_type="N/A")
    made.kernel("Transpose43", 1, 2, type="N/A", core_type="N/A")
    made.kernel("Conv2DBackpropInput8", 2, 3, type="N/A", core_type="N/A")
    assert kernel_rows(made.built(), "category") == [
        ("Conv2DBackpropInput", "convolution_backward"),
        ("Transpose", "vector_trans"),
        ("aclnnMm_MatMulCommon_MemSet", "vector"),
    ]


def test_a_gpu_capture_keeps_the_numbers_in_its_names():
    made = Made()
    made.kernel("Stage1", 0, 1)
    made.kernel("Stage2", 1, 2)
    assert kernel_rows(made.built(), "calls") == [("Stage1", 1), ("Stage2", 1)]


def test_collectives_differ_in_kinds_by_role_and_size_not_by_the_group_id():
    made = Made()
    made.hcom("hcom_allReduce__501_0_1", 0, 10, group="10.0.0.1%eth_60000_0_17", bytes=100)
    made.hcom("hcom_allReduce__868_3_1", 10, 25, group="10.0.0.1%eth_60000_0_99", bytes=120)
    made.hcom("hcom_allReduce__868_4_1", 25, 26, group_role="tp", group_size=2, bytes=100)
    columns = ("kind", "group_role", "group_size", "size_class_bytes", "calls", "bytes", "total_ns")
    assert records(made.built().tables["communication"], *columns) == [
        ("all_reduce", "dp", 8, 128, 2, 220, 25),
        ("all_reduce", "tp", 2, 128, 1, 100, 1),
    ]


def test_where_the_time_of_a_collective_went_is_summed_where_the_profiler_says_it():
    made = Made()
    first, second = made.hcom(HCOM, 0, 100), made.hcom(HCOM, 200, 300)
    made.hcom("hcom_broadcast__501_1_1", 400, 450, kind="broadcast")
    made.times(first, transit_ns=60, wait_ns=30, idle_ns=10)
    made.times(second, transit_ns=80, wait_ns=15, synchronization_ns=5)
    # a sum of some of the calls would be too little: idle and synchronization are known of one each
    assert records(made.built().tables["communication"], "kind", "total_ns", *TIMES) == [
        ("all_reduce", 200, 140, 45, MISSING, MISSING),
        ("broadcast", 50, MISSING, MISSING, MISSING, MISSING),
    ]


def test_a_call_of_which_nothing_is_said_leaves_the_times_of_its_row_unknown():
    made = Made()
    made.times(made.hcom(HCOM, 0, 100), transit_ns=60, wait_ns=30, synchronization_ns=0, idle_ns=10)
    made.hcom(HCOM, 200, 300)
    assert records(made.built().tables["communication"], "total_ns", *TIMES) == [(200, *[MISSING] * 4)]


def test_where_the_profiler_says_no_times_the_waiting_is_that_of_the_waiting_tasks():
    made = Made()
    made.kernel("Add1", 0, 100, type="Add")
    # hidden or not, and call by call: both run at once
    for start in (0, 20):
        call = made.hcom(HCOM, start, start + 100)
        made.task(call, "Notify_Wait", start, start + 50)
        made.task(call, "Notify_Wait", start + 40, start + 60)
        made.task(call, "Notify_Wait", start, start + 90, plane="1")
        made.task(call, "Memcpy", start + 60, start + 90)
    assert records(made.built().tables["communication"], "total_ns", *TIMES) == [(200, MISSING, 120, MISSING, MISSING)]


def test_what_the_profiler_says_of_waiting_goes_before_the_tasks_and_calls_add_up():
    made = Made()
    told, seen, busy = (made.hcom(HCOM, at, at + 100) for at in (0, 200, 400))
    made.times(told, transit_ns=60, wait_ns=30)
    made.task(told, "Notify_Wait", 0, 31)
    made.task(seen, "Notify_Wait", 200, 210)
    made.task(busy, "Memcpy", 400, 500)
    assert records(made.built().tables["communication"], *TIMES[:2]) == [(MISSING, 40)]


def test_the_tasks_of_a_collective_stand_for_its_kernel_where_the_profiler_names_them():
    made = Made()
    first, second = made.hcom(HCOM, 0, 100), made.hcom(HCOM, 200, 300)
    made.hcom("hcom_broadcast__501_1_1", 400, 450, kind="broadcast")
    made.task(first, "Notify_Wait", 0, 30)
    made.task(first, "Notify_Wait", 0, 40, plane="1")
    made.task(first, "Memcpy", 30, 90)
    made.task(second, "Notify_Wait", 200, 210)
    rows = made.built()
    kinds = rows.tables["communication"]["kind"]
    found = records(rows.tables["communication_task"], "communication", "name", "plane", "calls", "total_ns", "max_ns")
    assert [(kinds[row], *task) for row, *task in found] == [
        ("all_reduce", "Memcpy", "0", 1, 60, 60),
        ("all_reduce", "Notify_Wait", "0", 2, 40, 30),
        ("all_reduce", "Notify_Wait", "1", 1, 40, 40),
        ("broadcast", "hcom_broadcast", "", 1, 50, 50),
    ]


def test_links_are_summed_per_transport_pair_and_packet_size_and_large_packets_weighted_by_bytes():
    made = Made()
    made.step(1, 0, 1000)
    made.launch(1, 1)
    made.launch(2, 2)
    first, second = made.hcom(HCOM, 10, 100, 1), made.hcom(HCOM, 200, 300, 2)
    made.link(first, "RDMA", 300, large_packet_ratio=1.0, transit_ns=7)
    made.link(second, "RDMA", 100, large_packet_ratio=0.2, transit_ns=3)
    made.link(second, "RDMA", 100, source=0, target=1)
    made.link(first, "HCCS", 64, packet_bytes=32, packets=2)
    made.link(made.collective("send"), "HCCS", 10**9)
    columns = ("communication", "transport", "source", "target", "packet_bytes", "calls", "packets", "bytes")
    table = made.built().tables["communication_link"]
    assert records(table, *columns, "transit_ns") == [
        (0, "HCCS", -1, -1, 32, 1, 2, 64, MISSING),
        (0, "RDMA", -1, -1, -1, 2, MISSING, 400, 10),
        (0, "RDMA", 0, 1, -1, 1, MISSING, 100, MISSING),
    ]
    assert np.isnan(table["large_packet_ratio"]).tolist() == [True, False, True]
    assert table["large_packet_ratio"][1] == 0.8


def test_links_that_moved_nothing_have_the_plain_mean_of_large_packets():
    made = Made()
    collective = made.hcom(HCOM, 0, 100)
    made.link(collective, "SDMA", 0, large_packet_ratio=0.0)
    made.link(collective, "SDMA", 0, large_packet_ratio=0.5)
    assert made.built().tables["communication_link"]["large_packet_ratio"].tolist() == [0.25]


def test_the_curve_of_memory_is_what_the_profiler_sampled_and_the_peak_that_of_the_framework():
    made = Made()
    made.step(1, 0, 50)
    made.op("aten::empty", 0, 100)
    made.allocation(10, 512, 1, component="PTA", total_allocated_bytes=512, total_reserved_bytes=2048)
    made.allocation(20, 8, 2, component="GE", total_allocated_bytes=9_000)
    made.memory_point(5, "APP", reserved=100_000)
    made.memory_point(30, "PTA", 400, 4096)
    made.memory_point(60, "PTA", 700, 1024)
    made.memory_point(61, "PTA+GE", 9_700, 9_999)
    made.memory_point(62, "WORKSPACE")
    rows = made.built()
    curve = rows.tables["memory_curve"]
    assert records(curve, "component", "time_ns", "allocated_bytes", "reserved_bytes") == [
        ("APP", 5, MISSING, 100_000),
        ("GE", 20, 9_000, MISSING),
        ("PTA", 30, 400, 4096),
        ("PTA", 60, 700, 1024),
        ("PTA+GE", 61, 9_700, 9_999),
    ]
    assert (rows.overall.peak_allocated_bytes, rows.overall.peak_reserved_bytes) == (700, 4096)
    step = rows.steps[0].breakdown
    assert (step.peak_allocated_bytes, step.peak_reserved_bytes) == (512, 4096)


def test_memory_of_the_whole_process_is_no_peak_of_a_framework():
    made = Made()
    made.memory_point(5, "APP", reserved=100_000)
    overall = made.built().overall
    assert (overall.peak_allocated_bytes, overall.peak_reserved_bytes) == (None, None)


def test_a_long_sampled_curve_keeps_its_maxima_in_500_points_per_component():
    made = Made()
    for time in range(3000):
        made.memory_point(time, "APP", reserved=10**6 if time == 1234 else time)
        made.memory_point(time, "PTA", 10**6 if time == 77 else time, 10**7 if time == 2222 else time)
    curve = made.built().tables["memory_curve"]
    component = np.array(curve["component"])
    assert max((component == name).sum() for name in ("APP", "PTA")) <= 500
    assert curve["reserved_bytes"][component == "APP"].max() == 10**6
    assert curve["allocated_bytes"][component == "PTA"].max() == 10**6
    assert curve["reserved_bytes"][component == "PTA"].max() == 10**7


def test_counters_are_mean_smallest_and_largest_per_step_and_thing():
    made = Made()
    made.step(50, 0, 100)
    made.counter("l2_cache", "Add", "Hit Rate", 0.5, step=50)
    made.counter("l2_cache", "Add", "Hit Rate", 1.0, step=50)
    made.counter("l2_cache", "Add", "Victim Rate", float("nan"), step=50)
    made.counter("l2_cache", "Add", "Hit Rate", 0.25, step=7)
    made.counter("npu_module_mem", "HCCL", "Total Reserved(MB)", 8.0)
    columns = ("step", "source", "name", "attribute", "calls", "mean", "min", "max")
    assert records(made.built().tables["counter"], *columns) == [
        (NO_STEP, "l2_cache", "Add", "Hit Rate", 1, 0.25, 0.25, 0.25),
        (NO_STEP, "npu_module_mem", "HCCL", "Total Reserved(MB)", 1, 8.0, 8.0, 8.0),
        (50, "l2_cache", "Add", "Hit Rate", 2, 0.75, 0.5, 1.0),
    ]


def test_without_markers_counters_belong_to_the_one_step():
    made = Made()
    made.counter("l2_cache", "Add", "Hit Rate", 0.5, step=7)
    assert records(made.built().tables["counter"], "step", "calls") == [(0, 1)]


def test_bubble_and_preparing_are_what_the_profiler_says_of_each_step():
    made = Made()
    made.step(4, 0, 100)
    made.step(5, 100, 200)
    made.kernel("Add1", 10, 20, type="Add")
    made.step_times(4, bubble=30, preparing=7)
    made.step_times(5, bubble=12)
    rows = made.built()
    found = [(step.step, step.breakdown.bubble_ns, step.breakdown.preparing_ns) for step in rows.steps]
    assert found == [(4, 30, 7), (5, 12, None)]
    assert (rows.overall.bubble_ns, rows.overall.preparing_ns) == (42, 7)


def test_the_one_step_of_a_capture_without_markers_has_what_the_profiler_says():
    made = Made()
    made.step_times(NO_STEP, bubble=30)
    (step,) = made.built().steps
    assert (step.breakdown.bubble_ns, step.breakdown.preparing_ns) == (30, None)


def test_the_layers_of_cann_have_api_rows_and_nest():
    made = Made()
    made.launch(0, -1, end=100, name="aclrtSynchronizeStream", level=LaunchLevel.ACL)
    made.launch(10, -1, end=40, name="launch", level=LaunchLevel.NODE)
    made.launch(20, -1, end=30, name="KernelLaunch")
    made.launch(200, -1, end=210, name="ModelLoad", level=LaunchLevel.MODEL)
    made.launch(300, -1, end=310, name="hcom_allReduce_", level=LaunchLevel.HCCL)
    made.launch(5, 1, name="arrow", level=LaunchLevel.FLOW)
    assert sorted(records(made.built().tables["api"], "level", "name", "calls", "total_ns", "self_ns")) == [
        ("acl", "aclrtSynchronizeStream", 1, 100, 70),
        ("hccl", "hcom_allReduce_", 1, 10, 10),
        ("model", "ModelLoad", 1, 10, 10),
        ("node", "launch", 1, 30, 20),
        ("runtime", "KernelLaunch", 1, 10, 10),
    ]


def test_an_arrow_from_an_op_goes_before_a_call_of_a_layer_of_cann():
    made = Made()
    made.op("aten::mm", 0, 10)
    made.launch(0, 1, name="", level=LaunchLevel.FLOW)
    made.launch(5, 1, thread=1, name="launch", level=LaunchLevel.NODE)
    made.launch(6, 2, thread=1, name="launch", level=LaunchLevel.NODE)
    made.kernel("aclnnMm_MatMulCommon_MatMulV2", 20, 30, 1)
    made.kernel("aclnnMm_MatMulCommon_MatMulV2", 30, 34, 2)
    assert by_op(made.built(), "device_self_ns") == {"aten::mm": 10, "(no op)": 4}


def test_a_task_without_a_launch_belongs_to_the_step_that_the_profiler_names():
    made = Made()
    made.step(50, 0, 100)
    made.step(51, 100, 200)
    made.kernel("Add1", 90, 95, type="Add", step=51)
    made.hcom(HCOM, 150, 160, step=50)
    rows = made.built()
    assert kernel_rows(rows, "step") == [("Add", 51), ("hcom_allReduce", 50)]
    assert records(rows.tables["communication"], "step", "total_ns") == [(50, 10)]


def test_waiting_is_that_of_the_tasks_which_name_their_peers():
    """On planes of their own a call waits for ranks 1 and 5 at once; the profiler counts plane 1 alone. The rest of the
    call transmits. Tasks that wait for the chip itself wait for no rank. What the profiler states beside stays.
    """
    made = Made()
    first, second = made.hcom(HCOM, 0, 100), made.hcom(HCOM, 200, 300)
    made.times(first, transit_ns=90, wait_ns=5, synchronization_ns=4, idle_ns=5)
    made.times(second, transit_ns=88, wait_ns=10, synchronization_ns=10, idle_ns=2)
    made.task(first, "Notify_Wait", 0, 5, plane="1", peer=1)
    made.task(first, "Notify_Wait", 0, 60, plane="5", peer=5)
    made.task(first, "Notify_Wait", 50, 70, plane="6", peer=5)
    made.task(first, "Notify_Wait", 70, 100, plane="0")
    made.task(second, "Notify_Wait", 200, 210, plane="5", peer=5)
    rows = made.built()
    assert records(rows.tables["communication"], "total_ns", *TIMES) == [(200, 120, 80, 14, 7)]
    waits = records(rows.tables["communication_wait"], "peer", "is_global", "calls", "total_ns", "max_ns")
    assert waits == [(1, 0, 1, 5, 5), (5, 0, 2, 80, 70)]


def test_peers_of_a_group_with_known_members_are_global_ranks():
    made = Made()
    made.task(made.hcom(HCOM, 0, 100, group_ranks="0,8"), "Notify_Wait", 0, 40, peer=8)
    assert records(made.built().tables["communication_wait"], "peer", "is_global", "total_ns") == [(8, 1, 40)]
