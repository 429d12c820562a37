"""What happened in runs: rows in, the expected table beside them, on both databases."""

from __future__ import annotations

import pytest

from tests.factories import capture, record, same_table, save
from tracker.profile import MISSING
from tracker.store import queries, save_run

DETAILS = ("ops", "kernels", "communication", "communication_tasks", "communication_links", "memory", "api", "counters")


def test_ops_are_summed_over_steps_and_ranks_the_slowest_first(store):
    save(store, ranks=2, steps=2, ops=[("aten::add", 5), ("aten::mm", 100)])
    same_table(
        queries.ops(store, [1]).frame,
        """
        run_id  name       calls  device_self_ns  device_total_ns  host_self_ns  min_ns  max_ns  sum_squares_ns2
        1       aten::mm   4      400             400              800           100     100     40000
        1       aten::add  4      20              20               40            5       5       100
        """,
    )


def test_grain_columns_keep_stages_ranks_and_steps_apart(store):
    captures = [
        capture(rank, world_size=2, stage=rank, steps=[0, 1], ops=[("aten::mm", 10 * (rank + 1))]) for rank in range(2)
    ]
    save_run(store, record(), captures, formats=["torch_profiler"])
    same_table(
        queries.ops(store, [1], by=("run", "stage", "rank", "step")).frame,
        """
        run_id  stage  rank  step  name      device_self_ns
        1       1      1     0     aten::mm  20
        1       1      1     1     aten::mm  20
        1       0      0     0     aten::mm  10
        1       0      0     1     aten::mm  10
        """,
    )
    by_stage = queries.ops(store, [1], by=("stage",)).frame
    same_table(by_stage, "run_id  stage  device_self_ns\n 1  1  40\n 1  0  20")
    assert not {"rank", "step"} & set(by_stage.columns)


def test_a_run_without_stages_has_stage_na(store):
    save(store)
    same_table(queries.ops(store, [1], by=("stage",)).frame, "run_id  stage  name\n 1  -  aten::mm")


def test_what_lies_outside_all_markers_can_be_left_out(store):
    save(store, steps=[-1, 3], ops=[("aten::mm", 7)], kernels=[("gemm", 7)])
    assert queries.ops(store, [1]).frame["calls"].tolist() == [2]
    assert queries.ops(store, [1], in_steps=True).frame["calls"].tolist() == [1]
    assert queries.op_tree(store, [1]).frame["calls"].tolist() == [2]
    assert queries.op_tree(store, [1], in_steps=True).frame["calls"].tolist() == [1]
    same_table(queries.kernels(store, [1], by=("step",)).frame, "step name total_ns\n -1 gemm 7\n 3 gemm 7")


@pytest.mark.parametrize(("steps", "calls"), [(None, 4), ([], 0), ([3], 1), ([4, -1], 2), ([9], 0)])
def test_steps_can_be_picked_in_every_question(store, steps, calls):
    links = {"links": [("HCCS", 10)], "tasks": [("Notify_Wait", 1)]}
    save(
        store, steps=[-1, 3, 4, 5], communication=[("all_reduce", 5, links)], memory=[("aten::mm", 1)],
        api=[("launch", 1)], counters=[("dataset", "batch", "us", 1.0)],
    )  # fmt: skip
    questions = (
        queries.ops, queries.kernels, queries.communication, queries.communication_tasks, queries.communication_links,
        queries.memory, queries.api, queries.counters, queries.op_tree,
    )  # fmt: skip
    for question in questions:
        assert question(store, [1], steps=steps).frame["calls"].sum() == calls, question.__name__


def test_ranks_can_be_picked(store):
    save(store, ranks=3, ops=[("aten::mm", 10)])
    assert queries.ops(store, [1], ranks=[0, 2]).frame["device_self_ns"].tolist() == [20]
    assert queries.op_tree(store, [1], ranks=[1]).frame["rank"].tolist() == [1]
    for question in (*DETAILS, "kernel_metrics"):
        assert getattr(queries, question)(store, [1], ranks=[]).frame.empty


def test_runs_are_always_kept_apart(store):
    ids = save(store, runs=2, ops=[("aten::mm", 10)])
    same_table(queries.ops(store, ids).frame, "run_id  device_self_ns\n 1  10\n 2  10")


def test_ops_that_differ_in_any_part_of_their_key_are_rows_of_their_own(store):
    keys = ({"input_shapes": "[2,2]"}, {"input_types": "float"}, {"module": "A_0"}, {"phase": "backward"}, {})
    save(store, ops=[("aten::mm", 10, key) for key in keys])
    same_table(
        queries.ops(store, [1]).frame,
        """
        name      input_shapes  input_types  module  phase     device_self_ns
        aten::mm  ''            ''           ''      ''        10
        aten::mm  ''            ''           ''      backward  10
        aten::mm  ''            ''           A_0     ''        10
        aten::mm  ''            float        ''      ''        10
        aten::mm  [2,2]         ''           ''      ''        10
        """,
    )


def test_the_call_stack_of_an_op_is_that_of_most_of_its_calls(store):
    stacks = {0: ("a.py(1)", 1), 1: ("b.py(2)", 2), 2: ("b.py(2)", 2), 3: ("", 9)}
    captures = [
        capture(rank, world_size=4, ops=[("aten::mm", 18, {"call_stack": stack, "calls": calls})])
        for rank, (stack, calls) in stacks.items()
    ]
    save_run(store, record(), captures, formats=["torch_profiler"])
    same_table(queries.ops(store, [1]).frame, "name calls call_stack\n aten::mm 14 b.py(2)")
    same_table(
        queries.ops(store, [1], by=("rank",)).frame,
        "rank call_stack\n 0 a.py(1)\n 1 b.py(2)\n 2 b.py(2)\n 3 -",
    )


def test_unknown_times_stay_unknown_and_do_not_count_as_zero(store):
    missing = -(2**63)
    save(store, ops=[("(unlinked)", 5, {"host_total_ns": missing, "host_self_ns": missing})])
    same_table(queries.ops(store, [1]).frame, "host_total_ns host_self_ns device_self_ns\n - - 5")


def test_a_sum_of_which_a_part_is_unknown_is_unknown(store):
    """The second rank knows what the first one does not, so that both together know only what is in both."""
    unknown = {"host_self_ns": MISSING}, {"exposed_ns": MISSING, "bytes": MISSING}, {"unreleased_bytes": MISSING}
    captures = [
        capture(
            rank, world_size=2, ops=[("mm", 5, op)], kernels=[("gemm", 5, {"wait_ns": 3 if rank else MISSING})],
            communication=[("all_reduce", 50, collective)], memory=[("mm", 64, memory)],
            api=[("launch", 9, {"self_ns": 4 if rank else MISSING})],
        )
        for rank, (op, collective, memory) in enumerate([
            unknown, ({"host_self_ns": 7}, {"exposed_ns": 20, "bytes": 8}, {"unreleased_bytes": 64}),
        ])
    ]  # fmt: skip
    save_run(store, record(), captures, formats=["torch_profiler"])
    same_table(queries.ops(store, [1]).frame, "calls host_self_ns device_self_ns\n 2 - 10")
    same_table(queries.kernels(store, [1]).frame, "calls total_ns wait_ns\n 2 10 -")
    same_table(queries.communication(store, [1]).frame, "calls total_ns bytes exposed_ns\n 2 100 - -")
    same_table(queries.memory(store, [1]).frame, "calls bytes unreleased_bytes\n 2 128 -")
    same_table(queries.api(store, [1]).frame, "calls total_ns self_ns\n 2 18 -")


def test_a_mean_is_over_the_values_of_which_it_is_known(store):
    """10 values with a mean of 5, and 10 of which nobody knows it."""
    said = {"calls": 10, "mean": 5.0, "min": 5.0, "max": 5.0}
    silent = {"calls": 10, **dict.fromkeys(("mean", "min", "max"), float("nan"))}
    captures = [
        capture(rank, world_size=2, counters=[("l2", "Add", "Hit", own)], kernels=[("Add", 9, {"metrics": {"c": own}})])
        for rank, own in enumerate((said, silent))
    ]
    save_run(store, record(), captures, formats=["torch_profiler"])
    for question in (queries.counters, queries.kernel_metrics):
        same_table(question(store, [1]).frame, "calls mean min max\n 20 5 5 5")


def test_integers_are_exact_beyond_a_double(store):
    exact = 1_700_000_000_000_000_125
    save(store, ops=[("aten::mm", exact, {"sum_squares_ns2": 1.0, "host_total_ns": 1, "host_self_ns": 1})])
    assert queries.ops(store, [1]).frame["device_self_ns"].tolist() == [exact]


def test_kernels_say_which_op_launched_them(store):
    kernels = [
        ("gemm", 30, {"op": "aten::mm", "category": "matmul"}),
        ("gemm", 20, {"op": {"name": "aten::linear", "module": "A_0"}}),
        ("gemm", 4, {"op": {"name": "aten::linear", "module": "B_0"}}),
        ("Memcpy HtoD", 9, {"op": "aten::copy_", "category": "copy", "canonical_name": "Memcpy", "bytes": 64}),
    ]
    save(store, steps=2, kernels=kernels)
    same_table(
        queries.kernels(store, [1]).frame,
        """
        name         canonical_name  category  op            calls  total_ns  min_ns  max_ns  bytes  wait_ns
        gemm         gemm            matmul    aten::mm      2      60        30      30      -      -
        gemm         gemm            matmul    aten::linear  4      48        4       20      -      -
        Memcpy_HtoD  Memcpy          copy      aten::copy_   2      18        9       9       128    -
        """,
    )


def test_collectives_differ_in_kinds_by_kind_group_type_and_size(store):
    calls = [
        ("all_reduce", 50, {"wait_ns": 20, "transit_ns": 30}),
        ("all_reduce", 40, {"group_role": "tp", "group_size": 4}),
        ("send", 7, {"group_role": "", "group_size": -(2**63), "size_class_bytes": -(2**63), "data_type": ""}),
    ]
    save(store, steps=2, communication=calls)
    same_table(
        queries.communication(store, [1]).frame,
        """
        kind        group_role  group_size  data_type  size_class_bytes  calls  bytes  total_ns  transit_ns  wait_ns
        all_reduce  dp          2           bf16       1024              2      2000   100       60          40
        all_reduce  tp          4           bf16       1024              2      2000   80        -           -
        send        ''          -           ''         -                 2      2000   14        -           -
        """,
    )


def test_times_that_one_rank_does_not_say_are_unknown_of_all(store):
    said = {"transit_ns": 30, "wait_ns": 20, "synchronization_ns": 4, "idle_ns": 1, "exposed_wait_ns": 6}
    captures = [
        capture(r, world_size=2, communication=[("all_reduce", 50, own), ("send", 9, said)])
        for r, own in enumerate([said, {**dict.fromkeys(said, MISSING), "transit_ns": 30}])
    ]
    save_run(store, record(), captures, formats=["torch_profiler"])
    same_table(
        queries.communication(store, [1]).frame,
        """
        kind        total_ns  transit_ns  wait_ns  synchronization_ns  idle_ns  exposed_wait_ns
        all_reduce  100       60          -        -                   -        -
        send        18        60          40       8                   2        12
        """,
    )


def test_communication_tasks_belong_to_their_collective(store):
    calls = [
        ("all_reduce", 50, {"tasks": [("ncclKernel", 45), ("Memcpy", 5)]}),
        ("broadcast", 9, {"tasks": [("Memcpy", 9)]}),
    ]
    save(store, steps=2, communication=calls)
    same_table(
        queries.communication_tasks(store, [1]).frame,
        """
        kind        group_role  name        plane  calls  total_ns  min_ns  max_ns
        all_reduce  dp          ncclKernel  0      2      90        45      45
        broadcast   dp          Memcpy      0      2      18        9       9
        all_reduce  dp          Memcpy      0      2      10        5       5
        """,
    )
    assert len(queries.communication_tasks(store, [1], by=("step",)).frame) == 6


def test_metrics_of_a_kernel_are_means_over_its_measured_calls(store):
    vector = {"calls": 3, "mean": 2.0, "min": 1.0, "max": 4.0}
    of_rank = [
        {"aiv_vec_ratio": vector, "cube_utilization(%)": 95.5},
        {"aiv_vec_ratio": {"calls": 1, "mean": 6.0, "min": 6.0, "max": 6.0}},
    ]
    captures = [
        capture(r, world_size=2, stage=r, kernels=[("Add", 9, {"type": "Add", "input_types": "t", "metrics": metrics})])
        for r, metrics in enumerate(of_rank)
    ]
    save_run(store, record(), captures, formats=["torch_profiler"])
    same_table(
        queries.kernel_metrics(store, [1]).frame,
        """
        run_id  name  canonical_name  type  core_type  input_shapes  metric               calls  mean  min   max
        1       Add   Add             Add   ''         ''            aiv_vec_ratio        4      3     1     6
        1       Add   Add             Add   ''         ''            cube_utilization(%)  1      95.5  95.5  95.5
        """,
    )
    by_stage = queries.kernel_metrics(store, [1], by=("run", "stage", "rank")).frame
    same_table(
        by_stage,
        """
        stage  rank  metric               mean
        0      0     aiv_vec_ratio        2
        1      1     aiv_vec_ratio        6
        0      0     cube_utilization(%)  95.5
        """,
    )
    with pytest.raises(ValueError, match="grain: step"):
        queries.kernel_metrics(store, [1], by=("step",))


def test_the_largest_block_count_of_a_kernel_stays(store):
    save(store, kernels=[("Add", 9, {"block_num": 8}), ("Mul", 8)], steps=2)
    same_table(queries.kernels(store, [1]).frame, "name block_num\n Add 8\n Mul -")


def test_links_of_a_collective_keep_transports_pairs_and_packets_apart(store):
    links = [
        ("SDMA", 100, {"transit_ns": 7, "large_packet_ratio": 0.5}),
        ("SDMA", 60, {"packet_bytes": 30, "packets": 2}),
        ("HCCS", 40, {"source": 0, "target": 1, "transit_ns": 3}),
    ]
    save(store, steps=2, communication=[("all_reduce", 50, {"links": links}), ("send", 5)])
    found = queries.communication_links(store, [1]).frame
    same_table(
        found,
        """
        kind        group_role  transport  source_rank  target_rank  packet_bytes  calls  packets  bytes  transit_ns
        all_reduce  dp          SDMA       -            -            -             2      -        200    14
        all_reduce  dp          SDMA       -            -            30            2      4        120    -
        all_reduce  dp          HCCS       0            1            -             2      -        80     6
        """,
    )
    assert found["large_packet_ratio"].tolist()[0] == 0.5
    assert len(queries.communication_links(store, [1], by=("step",)).frame) == 6


def test_the_share_of_large_packets_is_weighted_by_bytes_where_any_moved(store):
    def links(size, ratio):
        said = {"large_packet_ratio": ratio}
        return [("all_reduce", 5, {"links": [("RDMA", size, said), ("SDMA", 0, said)]})]

    captures = [capture(r, world_size=2, communication=links(*of)) for r, of in enumerate([(300, 1.0), (100, 0.0)])]
    save_run(store, record(), captures, formats=["torch_profiler"])
    same_table(
        queries.communication_links(store, [1]).frame,
        "transport bytes large_packet_ratio\n RDMA 400 0.75\n SDMA 0 0.5",
    )


def test_of_no_values_there_is_no_mean(store):
    none = {"calls": 0, "mean": 0.0, "min": 0.0, "max": 0.0}
    save(store, counters=[("l2_cache", "Add", "Hit Rate", none)], kernels=[("Add", 9, {"metrics": {"cycles": none}})])
    assert queries.counters(store, [1]).frame[["calls", "mean"]].to_numpy(na_value=None).tolist() == [[0, None]]
    assert queries.kernel_metrics(store, [1]).frame[["calls", "mean"]].to_numpy(na_value=None).tolist() == [[0, None]]


def test_counters_are_means_over_their_values(store):
    numbers = [("l2_cache", "Add", "Hit Rate", 0.5), ("dataset", "map", "time(us)", 8.0)]
    save(store, ranks=2, steps=[-1, 3], counters=numbers)
    same_table(
        queries.counters(store, [1]).frame,
        """
        run_id  source    name  attribute  calls  mean  min  max
        1       dataset   map   time(us)   4      8     8    8
        1       l2_cache  Add   Hit_Rate   4      0.5   0.5  0.5
        """,
    )
    same_table(
        queries.counters(store, [1], by=("rank", "step"), in_steps=True).frame,
        """
        rank  step  source    calls
        0     3     dataset   1
        1     3     dataset   1
        0     3     l2_cache  1
        1     3     l2_cache  1
        """,
    )


def test_memory_is_what_ops_allocated_per_component(store):
    allocated = [
        ("aten::empty", 64, {"held_ns": 10}),
        ("aten::empty", 8, {"component": "cpu"}),
        ("aten::mm", 512, {"unreleased_bytes": 512}),
    ]
    save(store, steps=2, memory=allocated)
    same_table(
        queries.memory(store, [1]).frame,
        """
        op           component  calls  bytes  held_ns  unreleased_bytes
        aten::mm     device     2      1024   -        1024
        aten::empty  device     2      128    20       -
        aten::empty  cpu        2      16     -        -
        """,
    )


def test_the_memory_curve_is_in_order_of_time(store):
    save(store, curve=[("device", 5, 20), ("device", 1, 10), ("cpu", 3, 7)])
    same_table(
        queries.memory_curve(store, [1]).frame,
        """
        run_id  rank  component  time_ns  allocated_bytes  reserved_bytes
        1       0     cpu        3        7                -
        1       0     device     1        10               -
        1       0     device     5        20               -
        """,
    )


def test_api_calls_are_summed_by_level_and_name(store):
    save(store, steps=2, api=[("cudaLaunchKernel", 5), ("cuLaunchKernel", 6, {"level": "driver"})])
    same_table(
        queries.api(store, [1]).frame,
        """
        level    name              calls  total_ns  self_ns  min_ns  max_ns
        driver   cuLaunchKernel    2      12        12       6       6
        runtime  cudaLaunchKernel  2      10        10       5       5
        """,
    )


def test_idle_time_is_summed_by_cause_and_place(store):
    save(store, steps=2, idle=[("data loading", "next", 30), ("dependency", "gemm", 5)])
    same_table(
        queries.idle(store, [1]).frame,
        """
        cause        place  ns  gaps
        data_loading next   60  2
        dependency   gemm   10  2
        """,
    )


def test_columns_keep_their_dtypes_without_rows_and_without_values(store):
    save(store)
    for question in (*DETAILS, "kernel_metrics", "op_tree", "memory_curve", "captures", "steps", "facts", "sources"):
        full, none = getattr(queries, question)(store, [1]).frame, getattr(queries, question)(store, [99]).frame
        assert full.dtypes.equals(none.dtypes), question
        assert {str(dtype) for dtype in full.dtypes} <= {"Int64", "Float64", "string", "boolean"}, question
    assert queries.runs(store, version="none").frame.dtypes.equals(queries.runs(store).frame.dtypes)


def test_an_unknown_grain_is_refused(store):
    with pytest.raises(ValueError, match="grain: stream"):
        queries.ops(store, [1], by=("stream",))
