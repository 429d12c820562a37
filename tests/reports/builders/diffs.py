"""A comparison made by hand, with numbers that a reader can check in the head."""

from __future__ import annotations

import pandas as pd
from msgspec.structs import replace

from tracker.columns import Columns
from tracker.profile import BEFORE_CAPTURE, NO_OP, UNLINKED_OP
from tracker.results import (
    DIFF_COLUMNS,
    Bottleneck,
    Cause,
    Contribution,
    Diff,
    Explanation,
    Judgement,
    Part,
    Rename,
    Side,
)
from tracker.results.verdicts import GateResult

MS = 1_000_000
KIB = 1_024
LONG_KERNEL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul>>(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)
_TEXT = {  # columns that are no numbers
    "kind", "key", "baseline", "candidate", "metric", "title", "unit", "name", "input_shapes", "input_types",
    "baseline_name", "status", "kernel", "category", "core_type", "op", "group_role", "data_type", "plane", "component",
    "module", "phase", "why", "operation", "transport", "source", "attribute",
    "type", "verdict", "reason", "cause", "place", "allocator", "code_line", "call_stack", "baseline_code_line",
    "operator", "changed",
    "candidate_code_line", "baseline_call_stack", "candidate_call_stack", "baseline_split_by", "candidate_split_by",
}  # fmt: skip


def frame(table, rows):
    """A frame of a Diff; columns that a row leaves out are missing, change and DIFF are computed."""
    columns = DIFF_COLUMNS[table]
    made = pd.DataFrame([_complete(table, row) for row in rows], columns=list(columns))
    for column in columns:
        is_text = column in _TEXT or (column == "level" and table in ("api", "communication_links"))
        if not is_text and column not in ("level", "group_size", "size_class_bytes", "source_rank", "target_rank"):
            made[column] = made[column].astype("boolean" if column == "moved" else "float64")
    return made


def _complete(table, row):
    of = {
        "overall": "value", "memory": "bytes", "memory_details": "bytes", "memory_peak": "bytes",
        "memory_blocks": "bytes", "kernel_metrics": "mean", "counters": "mean",
        "input_queues": "mean", "input_operations": "average_ns",
        "communication_links": "transit_ns",
    }.get(table, "ns")  # fmt: skip
    before, after = row.get(f"baseline_{of}"), row.get(f"candidate_{of}")
    row = dict(row)
    if table not in ("environment", "operator_arguments"):
        change = (after or 0) - (before or 0) if table != "overall" or None not in (before, after) else None
        names = {"value": "delta", "mean": "delta", "transit_ns": "delta_ns", "average_ns": "delta_ns"}
        row[names.get(of, f"delta_{of}")] = change
        row["diff"] = after / before - 1 if before and after is not None else None
    if "status" in DIFF_COLUMNS[table] and table != "operator_arguments":
        row["status"] = "ADDED" if before is None else "REMOVED" if after is None else "both"
    return row


def op(name, shapes, before, after, calls=(1, 1), types="float", **more):
    """An op row: device self time and calls of both sides, in ns."""
    numbers = {"baseline_ns": before, "candidate_ns": after}
    if before is not None:
        numbers |= {"baseline_calls": calls[0], "baseline_total_calls": calls[0] * 20}
        numbers |= {"baseline_device_self_ns": before, "baseline_host_self_ns": 5_000}
    if after is not None:
        numbers |= {"candidate_calls": calls[1], "candidate_total_calls": calls[1] * 20}
        numbers |= {"candidate_device_self_ns": after, "candidate_host_self_ns": 6_000}
    if before is not None and after is not None:
        numbers |= {"host_delta_ns": 0, "host_diff": 0.0}
    return {"name": name, "input_shapes": shapes, "input_types": types, **numbers, **more}


def side(label="v41", **changes):
    """One side: two runs of two ranks, five steps each."""
    facts = {
        "label": label, "run_ids": (1, 2), "workload": "resnet50", "version": label, "device": "NVIDIA H100",
        "configuration": "batch=64, world_size=2", "runs": 2, "ranks": 2, "steps": 5, "timeline": "device",
    }  # fmt: skip
    return Side(**(facts | changes))


def operators():
    """mm slower per call, conv called less, a rename, an op map, stand-ins, and names that formats must not act on."""
    return [
        op("aten::mm", "[[64, 512], [512, 512]]", 20 * MS, 26 * MS, (10, 10)),
        op(
            "aten::convolution_backward",
            "[[64, 3, 224, 224], [64, 64, 112, 112], [64, 3, 7, 7]]",
            9 * MS,
            6 * MS,
            (3, 2),
        ),
        op("fused|add`relu<x>", "[[64, 512]]", None, 2 * MS, (0, 4)),
        op("aten::add", "[[64, 512], [64, 512]]", 1_500_000, None, (4, 0)),
        op("=cmd|' /C calc'!A0", "", 1_000, 2_000),
        op("Optimizer.step#NpuFusedSGD.step", "", 800_000, 800_000, baseline_name="Optimizer.step#SGD.step"),
        op(UNLINKED_OP, "", 24_400, 28_400),
        op(NO_OP, "", 0, 400),
    ]


CALLS = {"matmul": (10, 12), "matmul:cube": (10, 12), "exposed_communication_ns:dp x8": (10, 12)}


def overall():
    rows = [
        ("step_ns", "Step time", 0, "ns", 100 * MS, 104 * MS, None, None),
        ("e2e_ns", "E2E", 0, "ns", 98 * MS, 102 * MS, None, None),
        ("compute_ns", "Computing", 1, "ns", 70 * MS, 74 * MS, 0.714, 0.725),
        ("matmul", "Matmul", 2, "ns", 20 * MS, 26 * MS, 0.204, 0.255),
        ("matmul:cube", "Matmul (cube)", 3, "ns", 20 * MS, 26 * MS, 0.204, 0.255),
        ("exposed_communication_ns", "Exposed communication", 1, "ns", 20 * MS, 20 * MS, 0.204, 0.196),
        ("exposed_communication_ns:dp x8", "dp x8", 2, "ns", 24 * MS, 25 * MS, 0.245, 0.245),
        ("exposed_wait_ns:dp x8", "Wait", 3, "ns", 5 * MS, 6 * MS, 0.051, 0.059),
        ("exposed_transmit_ns:dp x8", "Transmit (all but wait)", 3, "ns", 19 * MS, 19 * MS, 0.194, 0.186),
        ("groups_at_once_ns", "Collectives at the same time (counted twice above)", 2, "ns", -4 * MS, -5 * MS,
         -0.041, -0.049),
        ("idle_ns", "Idle time", 1, "ns", 10 * MS, 10 * MS, 0.1, 0.096),
        ("overlap_ns", "Communication overlapped with computing", 0, "ns", 4 * MS, 5 * MS, 0.041, 0.049),
        ("kernel_count", "Kernels", 0, "count", 1200, 1100.5, None, None),
        ("data_loading_ns", "Data loading", 0, "ns", None, 400_000, None, None),
        ("peak_reserved_bytes", "Peak memory reserved", 0, "bytes", 3 << 30, 4 << 30, None, None),
    ]  # fmt: skip
    names = (
        "metric",
        "title",
        "level",
        "unit",
        "baseline_value",
        "candidate_value",
        "baseline_share",
        "candidate_share",
    )
    made = [dict(zip(names, row, strict=True)) for row in rows]
    for row in made:
        if row["metric"] in CALLS:
            row |= dict(zip(("baseline_calls", "candidate_calls"), CALLS[row["metric"]], strict=True))
    return made


def kernels():
    key = {"input_shapes": "", "category": "vector", "core_type": ""}
    return [
        {**key, "name": "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "category": "matmul",
         "op": "aten::mm", "baseline_calls": 10, "candidate_calls": 10, "baseline_ns": 20 * MS, "candidate_ns": 26 * MS,
         "baseline_average_ns": 2 * MS, "candidate_average_ns": 2_600_000, "baseline_min_ns": MS,
         "candidate_min_ns": MS, "baseline_max_ns": 3 * MS, "candidate_max_ns": 4 * MS,
         "why": "aic_mte2_time (from memory) 1.50 ms -> 2.10 ms (100 % of the change)"},
        {**key, "name": LONG_KERNEL, "type": "Add", "op": "aten::add", "baseline_calls": 4, "baseline_ns": 1_500_000,
         "baseline_average_ns": 375_000, "baseline_min_ns": 370_000, "baseline_max_ns": 380_000},
        {**key, "name": "triton_poi_fused_add_relu_0", "op": "fused|add`relu<x>", "candidate_calls": 4,
         "candidate_ns": 2 * MS, "candidate_average_ns": 500_000, "candidate_min_ns": 490_000,
         "candidate_max_ns": 510_000},
        {**key, "name": "Memcpy HtoD", "category": "copy", "op": UNLINKED_OP, "baseline_calls": 1, "candidate_calls": 1,
         "baseline_ns": 24_400, "candidate_ns": 28_400, "baseline_average_ns": 24_400, "candidate_average_ns": 28_400},
    ]  # fmt: skip


ALL_REDUCE = {
    "kind": "all_reduce", "group_role": "dp", "group_size": 8, "data_type": "bfloat16", "size_class_bytes": 1 << 20
}  # fmt: skip
BROADCAST = {"kind": "broadcast", "group_role": "", "group_size": -1, "data_type": "", "size_class_bytes": -1}


def communication():
    return [
        {**ALL_REDUCE, "baseline_calls": 10, "candidate_calls": 12, "baseline_bytes": 10 << 20,
         "candidate_bytes": 12 << 20, "baseline_ns": 24 * MS, "candidate_ns": 25_500_000,
         "baseline_average_ns": 2_400_000, "candidate_average_ns": 2_125_000, "baseline_max_ns": 3 * MS,
         "candidate_max_ns": 3 * MS, "baseline_min_ns": 2 * MS, "candidate_min_ns": 2 * MS,
         "baseline_exposed_ns": 20 * MS, "candidate_exposed_ns": 20 * MS, "baseline_wait_ns": 5 * MS,
         "baseline_split_by": "profiler"},
        {**BROADCAST, "baseline_calls": 1, "candidate_calls": 1, "baseline_ns": 900_000, "candidate_ns": 800_000,
         "baseline_average_ns": 900_000, "candidate_average_ns": 800_000},
    ]  # fmt: skip


def kernel_types():
    """Cast went from the cores of one chip to the vector cores of another; the second kernel came with it."""
    return [
        {"type": "Cast", "core_type": "AI_CORE -> AI_VECTOR_CORE", "baseline_calls": 4, "candidate_calls": 4,
         "baseline_ns": 8 * MS, "candidate_ns": 6 * MS, "baseline_average_ns": 2 * MS,
         "candidate_average_ns": 1_500_000, "baseline_max_ns": 3 * MS, "candidate_max_ns": 2 * MS,
         "baseline_min_ns": MS, "candidate_min_ns": MS},
        {"type": "MatMulV3", "core_type": "MIX_AIC", "candidate_calls": 1, "candidate_ns": MS,
         "candidate_average_ns": MS, "candidate_max_ns": MS, "candidate_min_ns": MS},
    ]  # fmt: skip


def kernel_metrics():
    """A call of the matmul takes 0.6 ms longer; so does one of its pipes."""
    key = {"name": "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "input_shapes": "", "core_type": "",
           "baseline_average_ns": 2 * MS, "candidate_average_ns": 2_600_000}  # fmt: skip
    return [
        {**key, "metric": "aic_mte2_time(us)", "kind": "pipe time", "baseline_mean": 1500, "candidate_mean": 2100,
         "share": 1.0, "moved": True},
        {**key, "metric": "aic_mac_time(us)", "kind": "pipe time", "baseline_mean": 400, "candidate_mean": 400,
         "share": 0.0, "moved": False},
        {**key, "metric": "aic_mac_ratio", "kind": "ratio", "baseline_mean": 0.25, "candidate_mean": 0.125},
    ]  # fmt: skip


def communication_links():
    """As much as before over HCCS, more slowly; all of it from rank 0 to rank 1."""
    key = {"kind": "all_reduce", "group_role": "dp", "group_size": 8}
    moved = {"baseline_calls": 10, "candidate_calls": 10, "baseline_bytes": 8_000_000, "candidate_bytes": 8_000_000,
             "baseline_transit_ns": 500_000, "candidate_transit_ns": 800_000,
             "baseline_bandwidth_gb_per_s": 16.0, "candidate_bandwidth_gb_per_s": 10.0}  # fmt: skip
    packets = {"baseline_packets": 20, "candidate_packets": 20, "baseline_large_packet_ratio": 1.0,
               "candidate_large_packet_ratio": 0.5}  # fmt: skip
    return [
        {**key, **moved, **packets, "level": "transport", "transport": "HCCS"},
        {**key, **moved, "level": "link", "transport": "HCCS", "source_rank": 0, "target_rank": 1},
    ]


def idle():
    """The loop waits for its data in v42, and no longer for the device."""
    loader, wait = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "aten::item"
    return [
        {"cause": "data loading", "place": loader, "status": "both", "baseline_ns": MS, "candidate_ns": 6 * MS,
         "baseline_gaps": 1, "candidate_gaps": 1},
        {"cause": "synchronisation", "place": wait, "status": "both", "baseline_ns": 2 * MS, "candidate_ns": 0,
         "baseline_gaps": 4, "candidate_gaps": 0},
    ]  # fmt: skip


def counters():
    return [
        {"source": "ai_core_freq", "name": "AI Core Freq", "attribute": "MHz", "baseline_calls": 9,
         "candidate_calls": 9, "baseline_mean": 1800, "candidate_mean": 1350, "baseline_min": 1800,
         "candidate_min": 900, "baseline_max": 1800, "candidate_max": 1800},
    ]  # fmt: skip


def memory():
    return [
        {"name": "aten::mm", "input_shapes": "[[64, 512], [512, 512]]", "input_types": "float",
         "baseline_bytes": 128 * KIB, "candidate_bytes": 192 * KIB, "baseline_calls": 10, "candidate_calls": 10,
         "allocator": "aten::empty", "more_allocators": 1},
        {"name": "aten::add", "input_shapes": "[[64, 512], [64, 512]]", "input_types": "float",
         "baseline_bytes": 512 * KIB, "baseline_calls": 4, "allocator": "aten::add", "more_allocators": 0},
    ]  # fmt: skip


def memory_peak():
    """1,000 KiB and 1,200 KiB: mm holds twice as much, add no more, the rest was allocated before."""
    mm = {"component": "device", "name": "aten::mm", "input_shapes": "[[64, 512], [512, 512]]"}
    return [
        {**mm, "module": "ResNet_0/Linear_3", "allocator": "aten::empty", "baseline_bytes": 400 * KIB,
         "candidate_bytes": 800 * KIB, "baseline_calls": 4, "candidate_calls": 8, "baseline_largest_bytes": 100 * KIB,
         "candidate_largest_bytes": 100 * KIB, "baseline_first_ns": 1 * MS, "candidate_first_ns": 1 * MS,
         "baseline_first_step": 3, "candidate_first_step": 3, "code_line": "train.py(42): forward",
         "call_stack": "torch/nn/linear.py(7): forward;train.py(42): forward"},
        {**mm, "name": "aten::add", "input_shapes": "[[64, 512], [64, 512]]", "module": "", "allocator": "aten::add",
         "baseline_bytes": 200 * KIB, "baseline_calls": 1, "baseline_largest_bytes": 200 * KIB,
         "baseline_first_ns": 2 * MS, "baseline_first_step": 3, "code_line": "", "call_stack": ""},
        {**mm, "name": BEFORE_CAPTURE, "input_shapes": "", "module": "", "allocator": "", "code_line": "",
         "call_stack": "", "baseline_bytes": 400 * KIB, "candidate_bytes": 400 * KIB},
    ]  # fmt: skip


def memory_blocks():
    """The largest allocation of mm, which one side keeps to the end."""
    return [
        {"name": "aten::mm", "input_shapes": "[[64, 512], [512, 512]]", "input_types": "float", "component": "device",
         "allocator": "aten::empty", "place": 1, "baseline_bytes": 64 * KIB, "candidate_bytes": 96 * KIB,
         "baseline_held_ns": 1 * MS, "baseline_time_ns": 2 * MS, "candidate_time_ns": 2 * MS, "baseline_step": 3,
         "candidate_step": 3, "baseline_is_released": 1, "candidate_is_released": 0,
         "baseline_code_line": "train.py(42): forward", "candidate_code_line": "train.py(42): forward",
         "baseline_call_stack": "train.py(42): forward", "candidate_call_stack": "train.py(42): forward"},
    ]  # fmt: skip


def api():
    return [
        {"level": "runtime", "name": "cudaLaunchKernel", "baseline_calls": 1200, "candidate_calls": 1100,
         "baseline_ns": 6 * MS, "candidate_ns": 5 * MS, "baseline_self_ns": 6 * MS, "candidate_self_ns": 5 * MS,
         "baseline_average_ns": 5_000, "candidate_average_ns": 4_545.5},
    ]  # fmt: skip


def explanation():
    """+4 ms: mm +6, conv -3, add renamed +0.5, small ones +0.005; the rest is 0.4946 ms."""
    causes = (
        Cause("op", "aten::mm", "[[64, 512], [512, 512]]", "both", 6.0 * MS, 1.5, 0.0, 6.0 * MS, 10, 10, 20.0 * MS,
              26.0 * MS, "ResNet_0/Linear_3, train.py(42)"),
        Cause("op", "aten::convolution_backward", "[[64, 3, 224, 224], [64, 64, 112, 112], [64, 3, 7, 7]]", "both",
              -3.0 * MS, -0.75, -3.0 * MS, 0.0, 3, 2, 9.0 * MS, 6.0 * MS, "ResNet_0/Conv2d_0"),
        Cause("op", "fused|add`relu<x>", "[[64, 512]]", "ADDED", 2.0 * MS, 0.5, None, None, None, 4, None, 2.0 * MS),
        Cause("op", "aten::add", "[[64, 512], [64, 512]]", "REMOVED", -1.5 * MS, -0.375, None, None, 4, None, 1.5 * MS,
              None, ""),
    )  # fmt: skip
    explained = 3_505_400.0
    return Explanation(
        total_metric="step_ns",
        baseline_ns=100.0 * MS,
        candidate_ns=104.0 * MS,
        delta_ns=4.0 * MS,
        parts=(
            Part("compute_ns", "Computing", 70.0 * MS, 74.0 * MS, 4.0 * MS),
            Part("exposed_communication_ns", "Exposed communication", 20.0 * MS, 20.0 * MS, 0.0),
            Part("idle_ns", "Idle time", 10.0 * MS, 10.0 * MS, 0.0),
        ),
        causes=causes,
        rest_ns=4.0 * MS - explained,
        rest_title="rest (idle time, less what runs at the same time; medians over runs do not add up)",
        explained_ns=explained,
        cancelling=True,
        gross_loss_ns=8_005_400.0,
        gross_gain_ns=-4_500_000.0,
        rollup=causes,
        renames=(Rename("aten::add", "fused|add`relu<x>", "ResNet_0", 1.5 * MS, 2.0 * MS),),
        headline="v42 ran 4.0 % slower than v41: 100.00 -> 104.00 ms per step (+4.00 ms)",
        remarks=("One run a side cannot tell change from noise.",),
        contributions=(
            Contribution("operator", "aten::mm", 6.0 * MS, 1.5, "", "slower per call", 20.0 * MS, 26.0 * MS, 10, 10),
            Contribution("operator", "aten::convolution_backward", -3.0 * MS, -0.75, "", "fewer calls", 9.0 * MS,
                         6.0 * MS, 3, 2),
            Contribution("replacement", "aten::add -> fused|add`relu<x>", 0.5 * MS, 0.125, "", "replaced", 1.5 * MS,
                         2.0 * MS, count=2),
            Contribution("others", "operators", 0.01 * MS, 0.0025, count=4),
            Contribution("part", "Idle time", 0.2 * MS, 0.05, metric="idle_ns"),
            Contribution("rest", "", 0.29 * MS, 0.0725),
        ),
    )  # fmt: skip


def explanation_of(**changes):
    """The explanation with other fields."""
    return replace(explanation(), **changes)


def bottleneck(bound, loading, utilisation):
    """With the thresholds of the method."""
    missing = [
        text
        for text, value in (("data loading (not stated)", loading), ("device utilisation (no device)", utilisation))
        if value is None
    ]
    limits = {
        "input_bound_above": 0.05,
        "communication_bound_above": 0.1,
        "host_bound_below": 0.8,
        "device_bound_above": 0.9,
    }
    return Bottleneck(bound, loading, utilisation, loading, tuple(missing), limits)


def input_operations():
    """Map takes twice as long as before."""
    shares = {"baseline_share": 0.5, "candidate_share": 0.6, "baseline_calls": 40.0, "candidate_calls": 40.0}
    return [
        {"operation": "Map Decode", "baseline_average_ns": 0.1 * MS, "candidate_average_ns": 0.2 * MS,
         "baseline_total_ns": 4.0 * MS, "candidate_total_ns": 8.0 * MS, **shares},
    ]  # fmt: skip


def operator_arguments():
    """An attribute of MatMulV2 changed, and Cast has inputs that it had not."""
    return [
        {"operator": "Cast", "status": "ADDED", "changed": "", "baseline": None,
         "candidate": "x float32 ND [64] -> y float16 ND [64], dst_type=1"},
        {"operator": "MatMulV2", "status": "both", "changed": "attributes",
         "baseline": "transpose_x1=false, transpose_x2=false", "candidate": "transpose_x1=false, transpose_x2=true"},
    ]  # fmt: skip


def input_queues():
    """The queue behind Batch runs dry."""
    return [
        {"operation": "Batch", "interval": None, "intervals": None, "baseline_mean": 6.0, "candidate_mean": 3.0,
         "baseline_empty_share": 0.0, "candidate_empty_share": 0.25, "baseline_capacity": 16.0,
         "candidate_capacity": 16.0, "baseline_workers": 2.0, "candidate_workers": 2.0},
        {"operation": "Batch", "interval": 1, "intervals": 2, "baseline_mean": 6.0, "candidate_mean": 6.0},
        {"operation": "Batch", "interval": 2, "intervals": 2, "baseline_mean": 6.0, "candidate_mean": 0.0},
    ]  # fmt: skip


def diff(**changes):
    """v42 against v41: one step takes 104 instead of 100 ms. `changes`: fields, or frames by the names of tables."""
    mm = {"name": "aten::mm", "input_shapes": "[[64, 512], [512, 512]]", "input_types": "float"}
    frames = {
        "environment": [
            {"kind": "fact", "key": "cuda_driver", "baseline": "550.54", "candidate": "560.28"},
            {"kind": "code", "key": "commit", "baseline": "aaaa111", "candidate": "bbbb222"},
            {"kind": "setting", "key": "with_stack", "baseline": None, "candidate": "1"},
        ],
        "overall": overall(),
        "ops": operators(),
        "op_details": [
            {**mm, "kernel": "sm90_xmma_gemm_bf16", "category": "matmul", "baseline_calls": 10, "candidate_calls": 10,
             "baseline_ns": 19 * MS, "candidate_ns": 25 * MS},
            {**mm, "kernel": "splitKreduce_kernel", "category": "vector", "baseline_calls": 2, "candidate_calls": 2,
             "baseline_ns": 1 * MS, "candidate_ns": 1 * MS},
        ],
        "op_kernels": [],
        "kernels": kernels(),
        "kernel_types": kernel_types(),
        "kernel_metrics": kernel_metrics(),
        "communication": communication(),
        "communication_details": [
            {**ALL_REDUCE, "name": "Notify_Wait", "plane": "0", "baseline_calls": 20, "candidate_calls": 24,
             "baseline_ns": 5 * MS, "candidate_ns": 6 * MS},
        ],
        "communication_links": communication_links(),
        "memory": memory(),
        "memory_details": [
            {"name": "aten::mm", "input_shapes": "[[64, 512], [512, 512]]", "input_types": "float",
             "component": "device", "allocator": "aten::empty", "baseline_bytes": 128 * KIB,
             "candidate_bytes": 192 * KIB, "baseline_calls": 10,
             "candidate_calls": 10, "baseline_held_ns": 2 * MS, "candidate_held_ns": 3 * MS},
        ],
        "memory_peak": memory_peak(),
        "memory_peak_totals": [{"component": "device", "baseline_bytes": 1000 * KIB, "candidate_bytes": 1200 * KIB,
                                "delta_bytes": 200 * KIB, "diff": 0.2}],
        "memory_blocks": memory_blocks(),
        "modules": [
            {"module": "ResNet_0/Linear_3", "phase": "forward", "baseline_calls": 10, "candidate_calls": 10,
             "baseline_ns": 20 * MS, "candidate_ns": 26 * MS},
        ],
        "api": api(),
        "idle": idle(),
        "input_operations": input_operations(),
        "input_queues": input_queues(),
        "operator_arguments": operator_arguments(),
        "counters": counters(),
    }  # fmt: skip
    made = {name: changes.pop(name) if name in changes else frame(name, rows) for name, rows in frames.items()}
    content = {"tables": {name: Columns.of_frame(table) for name, table in made.items()}}
    if "tree" in changes:
        content["tree_table"] = Columns.of_frame(changes.pop("tree"))
    content |= {"baseline": side("v41"), "candidate": side("v42", run_ids=(3, 4)), "metric": "device_self_ns"}
    content |= {"bottlenecks": (bottleneck("mixed", None, 0.9), bottleneck("input", 0.1, 0.85))}
    content["gates"] = gates(made["ops"]["verdict"].tolist())
    return Diff(**(content | {"explanation": explanation()} | changes))


def gates(verdicts):
    """How `--fail-on` ends where operators have these verdicts: they carry what their step does."""
    if {"REGRESSED", "ADDED"} & {*verdicts}:
        result = GateResult(1, "net of the operators", 0.02, 0.0)
    elif "SUSPECT" in verdicts:
        result = GateResult(4, "suspect", 0.0, 0.0)
    else:
        result = GateResult(0, "", 0.0, 0.0)
    return {"new": result, "any": result}


def judged():
    """The same with verdicts: mm takes longer per call, conv is called less, everything else is as it was."""
    words = {
        "aten::mm": {"verdict": "REGRESSED", "q": 1e-5, "judged_diff": 0.25, "detectable": 0.04},
        "aten::convolution_backward": {"verdict": "IMPROVED", "q": 0.021, "judged_diff": -0.35, "detectable": 0.08},
        "fused|add`relu<x>": {"verdict": "ADDED"},
        "aten::add": {"verdict": "SUSPECT", "reason": "too few runs to decide"},
    }
    step = {"verdict": "DRIFT", "q": 0.01, "judged_diff": 0.04, "reason": "it moved with the machine"}
    rows = [{**row, **words.get(row["name"], {"verdict": "UNCHANGED", "q": 0.6})} for row in operators()]
    totals = [{**row, **(step if row["metric"] == "step_ns" else {})} for row in overall()]
    told = explanation()
    causes = tuple(replace(cause, verdict=words[cause.name]["verdict"]) for cause in told.causes)
    sentences = (
        "Judged for this comparison alone: 3 runs against 5.",
        "Operators by name and shapes: 1 REGRESSED, 1 ADDED, 1 SUSPECT, 1 IMPROVED, 4 UNCHANGED.",
        "Machine-wide drift +4.1 %, removed from the verdicts.",
    )
    counts = (("REGRESSED", 1), ("ADDED", 1), ("SUSPECT", 1), ("IMPROVED", 1), ("UNCHANGED", 4))
    return diff(
        overall=frame("overall", totals),
        ops=frame("ops", rows),
        memory=frame("memory", [{**row, **words[row["name"]]} for row in memory()]),
        api=frame("api", [{**row, "verdict": "IMPROVED", "q": 0.002, "judged_diff": -1 / 6} for row in api()]),
        explanation=replace(
            told,
            causes=causes,
            rollup=causes,
            findings=causes[:3],
            verdict="DRIFT",
            remarks=(),
            contributions=tuple(
                replace(row, verdict=words.get(row.name, {}).get("verdict")) for row in told.contributions
            ),
        ),
        judgement=Judgement(True, sentences, 0.041, counts),
    )
