"""A run made by hand, as `tracker show` has it."""

from __future__ import annotations

import pandas as pd

from tests.reports.builders.diffs import ALL_REDUCE, KIB, LONG_KERNEL, MS, bottleneck
from tracker.columns import Columns
from tracker.compare import summaries
from tracker.compare.largest import sum_names
from tracker.profile import BEFORE_CAPTURE, NO_OP
from tracker.results import Shown
from tracker.table import sort_largest_first

SHOWN_TABLES = (
    "overall", "steps", "ops", "kernels", "copies", "communication", "memory", "modules", "api", "memory_curve",
    "facts", "sources", "kernel_metrics", "communication_links", "counters", "kernel_types",
    "memory_peak", "memory_blocks", "efficiency", "idle", "idle_causes", "queues", "input_operations", "input_queues",
    "operator_arguments",
)  # fmt: skip
SUMMARIES = {
    "rank_summary": (summaries.of_ranks, "overall"),
    "step_summary": (summaries.of_steps, "steps"),
    "kernel_pipes": (summaries.of_metrics, "kernel_metrics"),
    "link_totals": (summaries.of_links, "communication_links"),
    "counter_summary": (summaries.of_counters, "counters"),
    "memory_peak_totals": (summaries.of_peaks, "memory_peak"),
}
METRIC = {
    "name": LONG_KERNEL, "canonical_name": LONG_KERNEL, "type": "", "core_type": "", "input_shapes": "", "calls": 3,
    "min": None, "max": None,
}  # fmt: skip
QUEUE = {"operation": "Batch", "workers": None, "capacity": None, "cpu_percent": None, "empty_share": None, "min": 0.0}
HELD = {"rank": 0, "component": "device"}
LINK = {
    **ALL_REDUCE, "transport": "HCCS", "source_rank": None, "target_rank": None, "packet_bytes": None, "calls": 40,
    "packets": None, "bytes": 8_000_000, "transit_ns": 500_000, "large_packet_ratio": None, "bandwidth_gb_per_s": 16.0,
}  # fmt: skip


def breakdown(rank, **changes):
    """The numbers of one rank: 60 + 10 + 2 + 8 = 80 ms."""
    numbers = {
        "rank": rank, "timeline": "device", "duration_ns": 90 * MS, "e2e_ns": 80 * MS, "compute_ns": 60 * MS,
        "communication_ns": 15 * MS, "overlap_ns": 5 * MS, "exposed_communication_ns": 10 * MS, "copy_ns": 3 * MS,
        "exposed_copy_ns": 2 * MS, "idle_ns": 8 * MS, "kernel_count": 240, "kernel_total_ns": 76 * MS,
        "compute_total_ns": 61 * MS, "communication_total_ns": 15 * MS, "copy_total_ns": 3 * MS,
        "unlinked_kernel_count": 0, "unlinked_kernel_total_ns": 0, "peak_allocated_bytes": 1 << 30,
        "peak_reserved_bytes": None, "data_loading_ns": None, "bubble_ns": None, "preparing_ns": None,
        "samples_per_second": None,
    }  # fmt: skip
    return numbers | changes


def nullable(rows, columns=()):
    """A frame as the store gives it: integers exact, missing is NA."""
    made = pd.DataFrame(rows, columns=list(rows[0]) if rows else list(columns), dtype=object)
    return made.convert_dtypes(dtype_backend="numpy_nullable")


def of_all(tables):
    """The tables with their shares and summaries, as `show` makes them."""
    shares = {"ops": "device_self_ns", "kernels": "total_ns", "copies": "total_ns", "kernel_types": "total_ns"}
    found = {**tables, **{name: summaries.with_share(tables[name], time) for name, time in shares.items()}}
    overall = tables["overall"]
    if "e2e_ns" in overall:
        overall = summaries.with_shares(overall.having(whole_ns=overall["e2e_ns"]))
        found["overall"] = overall.without("whole_ns")
    found["memory_peak"] = summaries.with_share(tables["memory_peak"], "bytes", ("rank", "component"))
    whole = found | {"overall": overall}
    on_device = "device" in overall.listed("timeline") if len(overall) else True
    largest = sum_names(found["ops"], found["kernels"], "device_self_ns" if on_device else "host_self_ns")
    # four rows of rank and step
    largest = largest.having(per_step_ns=largest.reals("total_ns") / 4, calls_per_step=largest.reals("calls") / 4)
    made = {name: make(whole[source]) for name, (make, source) in SUMMARIES.items()}
    return found | made | {"largest": sort_largest_first(largest, ["total_ns"], ["name"])}


def shown(**changes):
    """One run of two ranks and two steps."""
    kernel = {"type": "", "core_type": "", "input_shapes": "", "op_input_shapes": "", "sum_squares_ns2": 0.5,
              "wait_ns": None, "bytes": None}  # fmt: skip
    frames = {
        "overall": [breakdown(0, quality="ok", quality_reason=""),
                    breakdown(1, idle_ns=8 * MS + 1, quality="partial", quality_reason="the file ends at 40 ms")],
        # in a step 60 + 10 + 2 + 18 = 90 ms
        "steps": [breakdown(rank, steps=1, step=step, e2e_ns=(40 + step) * MS, idle_ns=18 * MS, marker_ns=30 * MS)
                  for rank in (0, 1) for step in (0, 1)],
        "ops": [
            {"name": "aten::mm", "input_shapes": "[[64, 512], [512, 512]]", "input_types": "float",
             "module": "ResNet_0/Linear_3", "phase": "forward", "calls": 40, "host_total_ns": 2 * MS,
             "host_self_ns": 1 * MS, "device_total_ns": 50 * MS, "device_self_ns": 1736413971558972913,
             "min_ns": 1 * MS, "max_ns": 2 * MS, "sum_squares_ns2": 1.5e12, "kernel_count": 40,
             "call_stack": "train.py(42)"},
            {"name": NO_OP, "input_shapes": "", "input_types": "", "module": "", "phase": "", "calls": 0,
             "host_total_ns": None, "host_self_ns": None, "device_total_ns": 24_400, "device_self_ns": 24_400,
             "min_ns": None, "max_ns": None, "sum_squares_ns2": None, "kernel_count": 1, "call_stack": ""},
        ],
        "kernels": [
            {**kernel, "name": LONG_KERNEL, "canonical_name": LONG_KERNEL, "category": "vector", "op": "aten::add",
             "calls": 3, "total_ns": 3_000, "min_ns": 900, "max_ns": 1_100},
        ],
        "copies": [
            {**kernel, "name": "Memcpy HtoD", "canonical_name": "Memcpy HtoD", "category": "copy", "op": NO_OP,
             "calls": 1, "total_ns": 24_400, "min_ns": 24_400, "max_ns": 24_400, "bytes": 4096},
        ],
        "communication": [
            {**ALL_REDUCE, "calls": 40, "bytes": 40 << 20, "total_ns": 15 * MS, "min_ns": 300_000, "max_ns": 500_000,
             "transit_ns": None, "wait_ns": None, "synchronization_ns": None, "idle_ns": None, "exposed_ns": 10 * MS,
             "exposed_wait_ns": None, "split_by": None},
        ],
        "memory": [
            {"op": "aten::mm", "input_shapes": "[[64, 512], [512, 512]]", "input_types": "float",
             "component": "device", "calls": 40, "bytes": 512 * KIB, "held_ns": None, "unreleased_bytes": 0,
             "allocator": "aten::empty", "more_allocators": 0},
        ],
        "memory_peak": [
            {**HELD, "op": "aten::mm", "input_shapes": "[[64, 512], [512, 512]]", "input_types": "float",
             "module": "ResNet_0/Linear_3", "phase": "forward", "allocator": "aten::empty", "calls": 3,
             "bytes": 300 * KIB, "largest_bytes": 100 * KIB, "first_ns": 1 * MS, "first_step": 3,
             "peak_ns": 9 * MS, "peak_step": 5, "code_line": "train.py(42): forward",
             "call_stack": "train.py(42): forward"},
            {**HELD, "op": BEFORE_CAPTURE, "input_shapes": "", "input_types": "", "module": "", "phase": "",
             "allocator": "", "calls": None, "bytes": 100 * KIB, "largest_bytes": None, "first_ns": None,
             "first_step": -1, "peak_ns": 9 * MS, "peak_step": 5, "code_line": None, "call_stack": None},
        ],
        "memory_blocks": [
            {**HELD, "step": 3, "op": "aten::mm", "input_shapes": "[[64, 512], [512, 512]]", "input_types": "float",
             "module": "ResNet_0/Linear_3", "phase": "forward", "allocator": "aten::empty", "bytes": 100 * KIB,
             "time_ns": 1 * MS, "held_ns": None, "is_released": 0, "code_line": "train.py(42): forward",
             "call_stack": "train.py(42): forward"},
        ],
        "efficiency": [
            {"rank": 0, "name": "mm", "input_shapes": "[[64, 512], [512, 512]]", "number_kind": "fp32", "calls": 40.0,
             "total_ns": 50.0 * MS, "flops": 1.3e9, "bytes": 5e7, "tflops_per_s": 0.03, "gb_per_s": 1.1,
             "floor_ns": 25.0 * MS, "bound": "compute", "efficiency": 0.5, "ceiling": "spec"},
        ],
        "modules": [
            {"module": "ResNet_0/Linear_3", "phase": "forward", "calls": 40, "host_total_ns": 2 * MS,
             "host_self_ns": 1 * MS, "device_total_ns": 50 * MS, "device_self_ns": 50 * MS},
        ],
        "api": [
            {"level": "runtime", "name": "cudaLaunchKernel", "calls": 240, "total_ns": 2 * MS, "self_ns": 2 * MS,
             "min_ns": 4_000, "max_ns": 90_000},
        ],
        "memory_curve": [
            {"rank": 0, "component": "device", "time_ns": 0, "allocated_bytes": 1, "reserved_bytes": None},
        ],
        "facts": [
            {"kind": "fact", "key": "torch", "value": "2.9.0"}, {"kind": "tag", "key": "nightly", "value": ""},
        ],
        "sources": [
            {"rank": 0, "format": "torch_profiler", "path": "r0.json.gz", "bytes": 1000, "digest": "01ff"},
        ],
        "kernel_metrics": [
            {**METRIC, "metric": "aic_mte2_time(us)", "kind": "pipe time", "mean": 1.5},
            {**METRIC, "metric": "aic_mac_ratio", "kind": "ratio", "mean": 0.25},
            {**METRIC, "metric": "aicore_time(us)", "kind": "core time", "mean": 2.0},
        ],
        "communication_links": [
            {"level": "transport", **LINK, "packets": 20, "large_packet_ratio": 0.5},
            {"level": "link", **LINK, "source_rank": 0, "target_rank": 1},
            {"level": "packet", **LINK, "packet_bytes": 400_000, "packets": 20},
        ],
        "counters": [
            {"source": "ai_core_freq", "name": "AI Core Freq", "attribute": "MHz", "calls": 9, "mean": 1750.0,
             "min": 1350.0, "max": 1800.0},
            {"source": "step_trace_time", "name": "0", "attribute": "Computing", "calls": 1, "mean": 60.5, "min": 60.5,
             "max": 60.5},
        ],
        "input_operations": [
            {"operation": "Map Decode", "calls": 40.0, "total_ns": 6.0 * MS, "average_ns": 0.15 * MS, "share": 0.75},
            {"operation": "Batch", "calls": 10.0, "total_ns": 2.0 * MS, "average_ns": 0.2 * MS, "share": 0.25},
        ],
        "input_queues": [
            {**QUEUE, "interval": None, "intervals": None, "workers": 2.0, "capacity": 16.0, "cpu_percent": 12.5,
             "empty_share": 0.25, "mean": 3.0, "max": 8.0, "sampled_ns": 40.0 * MS},
            {**QUEUE, "interval": 1, "intervals": 2, "mean": 6.0, "max": 8.0, "sampled_ns": 20.0 * MS},
            {**QUEUE, "interval": 2, "intervals": 2, "mean": 0.0, "max": 0.0, "sampled_ns": 20.0 * MS},
        ],
        "operator_arguments": [
            {"operator": "MatMulV2", "inputs": "x1 float16 ND [32,64]; x2 float16 ND [64,64]",
             "outputs": "y float16 ND [32,64]", "attributes": "transpose_x1=false", "calls": 4, "total_ns": 3 * MS},
        ],
        "idle": [
            {"cause": "data loading", "place": "enumerate(DataLoader)#_Iter.__next__", "ns": 60 * MS, "gaps": 4,
             "share": 0.8333},
            {"cause": "between kernels", "place": "", "ns": 12 * MS, "gaps": 200, "share": 0.1667},
        ],
        "idle_causes": [
            {"cause": "data loading", "ns": 60 * MS, "gaps": 4, "steps": 4, "per_step_ns": 15.0 * MS, "share": 0.8333},
            {"cause": "between kernels", "ns": 12 * MS, "gaps": 200, "steps": 4, "per_step_ns": 3.0 * MS,
             "share": 0.1667},
        ],
        "queues": [
            {"stream": 7, "kernels": 240, "max_lead_ns": 90_000, "mean_lead_ns": 12_000.0, "queued_share": 0.75},
        ],
        "kernel_types": [
            {"type": "Cast", "core_type": "AI_VECTOR_CORE", "calls": 4, "total_ns": 6 * MS, "min_ns": MS,
             "max_ns": 2 * MS},
            {"type": "MatMulV3", "core_type": "MIX_AIC", "calls": 1, "total_ns": 2 * MS, "min_ns": 2 * MS,
             "max_ns": 2 * MS},
        ],
    }  # fmt: skip
    run = {
        "run_id": 41, "workload": "resnet50", "version": "v41", "device": "H100", "vendor": "NVIDIA",
        "configuration": "batch=64", "state": "excluded", "state_reason": "bad host",
        "started_at_ns": 1736413971558972912, "ranks": 2, "ranks_expected": 2, "world_size": 2, "steps": 4,
        "format": "torch_profiler", "e2e_ns": 80.0 * MS, "step_ns": 90.0 * MS, "measured_by": "step_ns",
        "tags": "nightly",
        "per_step": {"step_ns": 90.0 * MS, "e2e_ns": 80.0 * MS, "whole_ns": 90.0 * MS, "compute_ns": 60.0 * MS,
                     "idle_ns": 18.0 * MS, "exposed_communication_ns": 10.0 * MS, "exposed_copy_ns": 2.0 * MS,
                     "peak_allocated_bytes": 1 << 30},
        "paths": "r0.json.gz",
    }  # fmt: skip
    for name in ("ops", "kernels", "copies", "communication", "modules", "api", "idle"):
        frames[name] = [{**row, "per_step_ns": 25 * MS} for row in frames[name]]
    given = set(changes) & {*frames, *SUMMARIES, "largest"}
    made = {name: changes.pop(name) for name in given - set(frames)}
    made |= {name: changes.pop(name) if name in changes else nullable(rows) for name, rows in frames.items()}
    tables = {name: Columns.of_frame(table) for name, table in made.items()}
    content = {"tables": of_all(tables) | {name: tables[name] for name in given if name not in frames}}
    if "tree" in changes:
        content["tree_table"] = Columns.of_frame(changes.pop("tree"))
    content["bottleneck"] = bottleneck("device", 0.0125, 0.95)
    return Shown(**({"run": run} | content | changes))
