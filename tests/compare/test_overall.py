"""The overall table: kinds of work, kinds of cores, and exposed communication per process group."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from msgspec.structs import replace

from tests.factories import EPOCH_NS, capture, record, same_table, save
from tracker.compare import diff, show
from tracker.profile import MISSING
from tracker.results import ShowOptions
from tracker.store import Store, save_run


def rows(store: Store, baseline: str = "v1", candidate: str = "v2") -> dict[str, list[Any]]:
    """metric -> baseline value, candidate value, baseline calls, candidate calls; None for missing."""
    columns = ["baseline_value", "candidate_value", "baseline_calls", "candidate_calls"]
    frame = diff(store, baseline, candidate).overall.set_index("metric")[columns]
    return {str(name): [None if pd.isna(value) else value for value in row] for name, row in frame.iterrows()}


def npu(name: str, ns: int, core: str, category: str, **more: Any) -> tuple[str, int, dict[str, Any]]:
    return name, ns, {"type": name, "core_type": core, "category": category, **more}


CUBE_AND_VECTOR = [
    npu("MatMulV3", 60, "AI_CORE", "matmul", calls=2),
    npu("MemSet", 5, "AI_VECTOR_CORE", "matmul"),
    npu("Add", 30, "AI_VECTOR_CORE", "vector"),
]
ONE_KIND = [npu("MatMul", 80, "AI_CORE", "matmul"), npu("Add", 40, "AI_CORE", "vector")]


def test_a_chip_with_two_kinds_of_cores_splits_the_time_of_each_kind_of_work(store: Store):
    save(store, "v1", kernels=CUBE_AND_VECTOR, steps=2)
    found = rows(store, "v1", "v1")
    assert found["matmul"] == [65, 65, 3, 3]
    assert found["matmul:cube"] == [60, 60, 2, 2]
    assert found["matmul:vector"] == [5, 5, 1, 1]
    assert found["vector"] == [30, 30, 1, 1]
    assert not {"vector:vector", "vector:cube"} & set(found)
    assert (found["operator_cube_ns"][0], found["operator_vector_ns"][0], found["operator_ns"][0]) == (60, 35, 95)


def test_a_chip_with_one_kind_of_core_has_no_cube_time_whatever_it_calls_its_cores(store: Store):
    save(store, "v1", kernels=ONE_KIND)
    save(store, "v2", kernels=CUBE_AND_VECTOR)
    found = rows(store)
    assert found["matmul"] == [80, 65, 1, 3]
    assert found["matmul:cube"] == [None, 60, None, 2]
    assert found["operator_cube_ns"] == [None, 60, None, 2]
    assert found["operator_ns"] == [120, 95, 2, 4]
    note = "Kernel time of v1 is not split into cube and vector work: "
    assert [text.startswith(note) for text in diff(store, "v1", "v2").notes] == [True]
    assert diff(store, "v1", "v1").notes == ()


def test_on_one_kind_of_core_a_kernel_that_uses_the_cube_is_cube_work(store: Store):
    measured = [
        npu("MatMul", 80, "AI_CORE", "matmul", metrics={"mac_time(us)": 0.05, "vec_time(us)": 0.0}),
        npu("TransData", 15, "AI_CORE", "matmul", metrics={"mac_time(us)": 0.0, "vec_time(us)": 0.01}),
        npu("Add", 40, "AI_CORE", "vector", metrics={"mac_ratio": 0.0}),
        npu("TopK", 7, "AI_CPU", "ai_cpu"),
    ]
    save(store, "v1", kernels=measured)
    save(store, "v2", kernels=CUBE_AND_VECTOR)
    found = rows(store)
    assert found["matmul:cube"] == [80, 60, 1, 2]
    assert found["matmul:vector"] == [15, 5, 1, 1]
    assert found["operator_cube_ns"] == [80, 60, 1, 2]
    assert found["operator_vector_ns"] == [55, 35, 2, 2]
    assert not [text for text in diff(store, "v1", "v2").notes if "cube and vector" in text]


@pytest.mark.parametrize("metrics", [{}, {"vec_time(us)": 0.01}])
def test_a_kernel_whose_cube_was_not_measured_leaves_all_of_its_run_unsplit(store: Store, metrics):
    measured = npu("MatMul", 80, "AI_CORE", "matmul", metrics={"mac_time(us)": 0.05})
    save(store, "v1", kernels=[measured, npu("Add", 40, "AI_CORE", "vector", metrics=metrics)])
    assert "operator_cube_ns" not in rows(store, "v1", "v1")


def test_cores_that_help_out_do_not_make_two_kinds_of_cores(store: Store):
    save(store, "v1", kernels=[*ONE_KIND, npu("Sub", 10, "AI_VECTOR_CORE", "vector")])
    assert "operator_cube_ns" not in rows(store, "v1", "v1")


def test_a_kind_of_work_without_kernels_took_no_time_so_that_changes_add_up(store: Store):
    save(store, "v1", kernels=[npu("PagedAttention", 7, "MIX_AIC", "page_attention", calls=3)])
    save(store, "v2", kernels=[npu("TensorMove", 9, "AI_VECTOR_CORE", "tensor_move")])
    found = rows(store)
    assert found["page_attention"] == [7, 0, 3, 0]
    assert found["tensor_move"] == [0, 9, 0, 1]
    assert "matmul" not in found  # nothing on either side


def test_what_only_npus_tell_apart_is_missing_on_a_gpu_and_not_zero(store: Store):
    save(store, "v1", kernels=[("gemm", 50), ("cast", 5, {"category": "vector"})])
    save(store, "v2", kernels=[npu("Cast", 4, "AI_VECTOR_CORE", "vector_trans")])
    found = rows(store)
    assert found["matmul"] == [50, 0, 1, 0]
    assert found["vector_trans"] == [None, 4, None, 1]


def test_fused_kernels_stand_by_name_below_their_category(store: Store):
    fused = npu("MatmulAllReduce", 70, "MIX_AIC", "mc2", calls=2)
    save(store, "v1", kernels=[fused, npu("AllGatherMatmul", 20, "MIX_AIC", "mc2")])
    frame = diff(store, "v1", "v1").overall
    below = frame[frame["metric"].str.startswith("mc2")]
    assert below[["title", "level", "baseline_value", "baseline_calls"]].values.tolist() == [
        ["MC2 (compute and communication in one)", 2, 90, 3],
        ["MC2 (compute and communication in one) (cube)", 3, 90, 3],
        ["AllGatherMatmul", 3, 20, 1],
        ["MatmulAllReduce", 3, 70, 2],
    ]


def test_a_fused_kernel_computes_as_long_as_its_pipes_and_communicates_for_the_rest(store: Store):
    """Two calls of 50 us: cube (20) and loading (30) work side by side, then the vector unit (5)."""
    pipes = {"aic_mac_time(us)": 20.0, "aic_mte2_time(us)": 30.0, "aiv_vec_time(us)": 5.0}
    measured = npu("MatmulAllReduce", 100_000, "MIX_AIC", "mc2", calls=2, metrics=pipes)
    save(store, "v1", kernels=[measured])
    save(store, "v2", kernels=[npu("MatmulAllReduce", 90_000, "MIX_AIC", "mc2", calls=2)])
    found = rows(store)
    assert found["mc2:MatmulAllReduce"] == [100_000, 90_000, 2, 2]
    assert found["mc2:MatmulAllReduce:computing"] == [70_000, None, None, None]
    assert found["mc2:MatmulAllReduce:communication"] == [30_000, None, None, None]


def test_copies_are_counted_beside_the_time_in_which_they_run(store: Store):
    save(store, "v1", kernels=[("gemm", 50), ("Memcpy HtoD", 7, {"category": "copy", "calls": 4})])
    assert rows(store, "v1", "v1")["copy_ns"] == [0, 0, 4, 4]  # the breakdown says when; made captures have no copies


def test_exposed_communication_is_told_per_group_with_its_waiting(store: Store):
    collectives = [
        ("all_reduce", 100, {"exposed_ns": 80, "exposed_wait_ns": 50}),
        ("all_gather", 40, {"exposed_ns": 20, "exposed_wait_ns": 5}),
        ("send", 60, {"group_role": "pp", "exposed_ns": 60, "exposed_wait_ns": 60}),
    ]
    save(store, "v1", communication=collectives, steps=2)
    frame = diff(store, "v1", "v1").overall.set_index("metric")
    below = frame.loc[[name for name in frame.index if ":dp" in name or ":pp" in name]]
    assert below[["title", "level", "baseline_value"]].values.tolist() == [
        ["dp x2", 2, 100],
        ["Wait", 3, 55],
        ["Transmit (all but wait)", 3, 45],
        ["pp x2", 2, 60],
        ["Wait", 3, 60],
        ["Transmit (all but wait)", 3, 0],
    ]
    assert frame.loc["exposed_communication_ns:dp x2", "baseline_calls"] == 2


def test_collectives_at_the_same_time_are_taken_back_so_that_groups_sum_to_the_exposed_time(store: Store):
    made = capture(communication=[("all_reduce", 100), ("send", 60, {"group_role": "pp"})])
    step = made.rows.steps[0]
    union = replace(step.breakdown, communication_ns=130, exposed_communication_ns=130)
    both = replace(made.rows, steps=(replace(step, breakdown=union),))
    save_run(store, record("v1"), [replace(made, rows=both)], formats=["torch_profiler"])
    found = rows(store, "v1", "v1")
    groups = [found[f"exposed_communication_ns:{group}"][0] for group in ("dp x2", "pp x2")]
    assert (groups, found["groups_at_once_ns"][0]) == ([100, 60], -30)
    assert sum(groups) + found["groups_at_once_ns"][0] == found["exposed_communication_ns"][0]


def test_a_group_takes_no_longer_than_its_steps_are_exposed(store: Store):
    """Two collectives of one group at once, of 100 and 60, are exposed for 130 together; half of it they wait."""
    calls = [("all_reduce", 100, {"exposed_wait_ns": 50}), ("all_gather", 60, {"exposed_wait_ns": 30})]
    made = capture(communication=calls, steps=2)
    steps = [replace(step, breakdown=replace(step.breakdown, exposed_communication_ns=ns))
             for step, ns in zip(made.rows.steps, (130, None), strict=True)]  # fmt: skip
    made = replace(made, rows=replace(made.rows, steps=tuple(steps)))
    save_run(store, record("v1"), [made], formats=["torch_profiler"])
    found = rows(store, "v1", "v1")
    assert found["exposed_communication_ns"][0] == 130
    assert found["exposed_communication_ns:dp x2"] == [130, 130, 2, 2]
    assert found["exposed_wait_ns:dp x2"][0] == found["exposed_transmit_ns:dp x2"][0] == 65
    assert "groups_at_once_ns" not in found


def test_a_group_whose_waiting_is_known_in_part_says_nothing_of_it(store: Store):
    save(store, "v1", communication=[("all_reduce", 100, {"exposed_wait_ns": 50}), ("all_gather", 40)])
    found = rows(store, "v1", "v1")
    assert found["exposed_communication_ns:dp x2"][:2] == [140, 140]
    assert "exposed_wait_ns:dp x2" not in found


def test_wait_of_a_collective_that_compute_hides_in_part_is_exposed_in_proportion(store: Store):
    """80 of 100 are exposed, and 50 of 100 it waits: 40 of the 80. How the two lie to each other nobody says."""
    partly = ("all_reduce", 100, {"exposed_ns": 80, "wait_ns": 50, "transit_ns": 50})
    save(store, "v1", kernels=[], communication=[partly, ("all_gather", 10, {"exposed_wait_ns": 4})])
    assert [row[:4] for row in below_dp(store, "v1", "v1")] == [
        ["Wait (of calls hidden in part: in proportion)", 3, 44, 44],
        ["Transmit (all but wait)", 3, 46, 46],
    ]


def test_wait_is_of_the_ranks_that_report_exposed_time(store: Store):
    of_ranks = ({"exposed_ns": 100, "wait_ns": 30}, {"exposed_ns": MISSING, "wait_ns": 80})
    ranks = [capture(rank, world_size=2, communication=[("all_reduce", 100, more)])
             for rank, more in enumerate(of_ranks)]  # fmt: skip
    save_run(store, record("v1"), ranks, formats=["torch_profiler"])
    found = rows(store, "v1", "v1")
    assert (found["exposed_communication_ns:dp x2"][0], found["exposed_wait_ns:dp x2"][0]) == (100, 30)


STATED = {"wait_ns": 50, "synchronization_ns": 20, "transit_ns": 10, "idle_ns": 40, "exposed_wait_ns": 50}


def below_dp(store: Store, baseline: str, candidate: str) -> list[list[Any]]:
    """Title, level, values and shares of the rows below the group dp x2."""
    frame = diff(store, baseline, candidate).overall
    frame = frame[frame["metric"].str.endswith("_ns:dp x2") & (frame["level"] > 2)]
    columns = ["title", "level", "baseline_value", "candidate_value", "candidate_share"]
    return [[None if pd.isna(value) else value for value in row] for row in frame[columns].values.tolist()]


def test_idle_time_is_no_transit_where_the_profiler_states_both(store: Store):
    save(store, "v1", kernels=[], communication=[("all_reduce", 100, STATED)])
    assert below_dp(store, "v1", "v1") == [
        ["Wait", 3, 50, 50, 0.5],
        ["Synchronization", 4, 20, 20, 0.2],
        ["All but wait", 3, 50, 50, 0.5],
        ["Transit", 4, 10, 10, 0.1],
        ["Idle", 4, 40, 40, 0.4],
    ]


def test_of_a_collective_that_compute_hides_in_part_transit_and_idle_are_those_of_all_of_it(store: Store):
    save(store, "v1", kernels=[], communication=[("all_reduce", 100, {**STATED, "exposed_ns": 70})])
    assert below_dp(store, "v1", "v1") == [
        ["Wait", 3, 50, 50, 0.5],
        ["Synchronization, hidden or not", 4, 20, 20, None],
        ["All but wait", 3, 20, 20, 0.2],
        ["Transit, hidden or not", 4, 10, 10, None],
        ["Idle, hidden or not", 4, 40, 40, None],
    ]


def test_transit_that_one_collective_does_not_state_is_stated_of_none(store: Store):
    save(store, "v1", kernels=[], communication=[("all_reduce", 60, {"exposed_wait_ns": 10, "transit_ns": 50}),
                                                 ("all_gather", 40, {"exposed_wait_ns": 5})])  # fmt: skip
    assert below_dp(store, "v1", "v1") == [
        ["Wait", 3, 15, 15, 0.15],
        ["Transmit (all but wait)", 3, 85, 85, 0.85],
    ]


def test_a_group_of_one_side_took_no_time_on_the_other(store: Store):
    save(store, "v1", communication=[("all_reduce", 100, {"exposed_wait_ns": 50})])
    save(store, "v2", communication=[("all_reduce", 70, {"group_role": "", "group_size": -1})])
    found = rows(store)
    assert found["exposed_communication_ns:dp x2"] == [100, 0, 1, 0]
    assert found["exposed_wait_ns:dp x2"] == [50, 0, None, None]
    assert found["exposed_communication_ns:group not named"] == [0, 70, 0, 1]


def test_a_group_without_a_role_is_the_only_one_of_its_size_on_the_other_side(store: Store):
    links = [("HCCS", 800, {"transit_ns": 10})]
    save(store, "v1", communication=[("all_reduce", 100, {"group_role": "", "group_size": 2, "links": links})])
    save(
        store,
        "v2",
        communication=[("all_reduce", 70, {"links": links}), ("send", 5, {"group_role": "pp", "group_size": 4})],
    )
    found = rows(store)
    assert found["exposed_communication_ns:dp x2"] == [100, 70, 1, 1]
    assert found["exposed_communication_ns:pp x4"] == [0, 5, 0, 1]
    result = diff(store, "v1", "v2")
    assert dict(zip(result.communication["group_role"], result.communication["status"], strict=True)) == {
        "dp": "both", "pp": "ADDED",
    }  # fmt: skip
    assert result.communication_links["status"].tolist() == ["both"]
    note = "The group of 2 ranks whose role v1 does not know is paired with dp by its size."
    assert note in result.notes
    assert note in diff(store, "v2", "v1").notes
    assert diff(store, "v1", "v1").notes == ()


def test_a_group_without_a_role_stays_alone_where_it_may_be_any_of_several(store: Store):
    save(store, "v1", communication=[("all_reduce", 100, {"group_role": "", "group_size": 2})])
    save(store, "v2", communication=[("all_reduce", 70), ("send", 5, {"group_role": "pp"})])
    assert rows(store)["exposed_communication_ns:group x2"] == [100, 0, 1, 0]


@pytest.mark.parametrize("ranks", [1, 4])
def test_groups_are_per_step_and_the_geometric_mean_of_runs(store: Store, ranks):
    for at, ns in enumerate((100, 400)):
        communication = [("all_reduce", ns, {"exposed_wait_ns": ns // 2})]
        start = EPOCH_NS + at * 10**13
        save(store, "v1", ranks=ranks, steps=3, communication=communication, started_at_ns=start)
    found = rows(store, "v1", "v1")
    assert found["exposed_communication_ns:dp x2"] == [pytest.approx(200), pytest.approx(200), 1, 1]
    assert found["exposed_wait_ns:dp x2"][0] == pytest.approx(100)


def test_each_number_is_of_the_ranks_that_report_it(store: Store):
    whole = capture(0, world_size=2, kernels=[("gemm", 50)], communication=[("all_reduce", 40)])
    part = capture(1, world_size=2, kernels=[("gemm", 70)], communication=[("all_reduce", 30, {"exposed_ns": MISSING})])
    step = part.rows.steps[0]
    own = replace(step.breakdown, copy_ns=None, exposed_copy_ns=None, kernel_count=None, compute_total_ns=None)
    part = replace(part, rows=replace(part.rows, steps=(replace(step, breakdown=own),)))
    save_run(store, record("v1"), [whole, part], formats=["ascend_text"])
    found = rows(store, "v1", "v1")
    assert found["compute_ns"][0] == found["matmul"][0] == 60
    assert found["exposed_communication_ns:dp x2"][0] == 40
    assert rows(store, "run:1:rank1", "run:1:rank1")["compute_ns"][0] == 70


def test_what_one_stage_does_not_say_of_its_collectives_is_unknown_of_all(memory_store: Store):
    said = {"wait_ns": 30, "transit_ns": 70, "exposed_wait_ns": 20}
    captures = [
        capture(rank, world_size=2, stage=rank, communication=[("all_reduce", 100, own)])
        for rank, own in enumerate([said, {**dict.fromkeys(said, MISSING), "transit_ns": 50}])
    ]
    save_run(memory_store, record(), captures, formats=["torch_profiler"])
    frame = diff(memory_store, "v1", "v1").communication
    columns = [f"baseline_{name}" for name in ("ns", "transit_ns", "wait_ns", "exposed_wait_ns")]
    assert frame[columns].fillna(-1).to_numpy().tolist() == [[100, 60, -1, -1]]


def lines(store: Store, version: str, *rows_of_log: tuple[float | None, int | None, int]) -> None:
    """A run whose step rows are (samples per second, duration in ns, how many steps it is the mean of)."""
    made = capture(ops=(), kernels=(), steps=len(rows_of_log))
    steps = tuple(
        replace(step, steps=count, breakdown=replace(step.breakdown, samples_per_second=speed, duration_ns=duration))
        for step, (speed, duration, count) in zip(made.rows.steps, rows_of_log, strict=True)
    )
    save_run(store, record(version), [replace(made, rows=replace(made.rows, steps=steps))], formats=["training_log"])


@pytest.mark.parametrize(
    ("said", "samples_per_second"),
    [
        ([(10.0, 3000, 1), (50.0, 1000, 1)], 30.0),
        ([(10.0, 1000, 3), (50.0, 1000, 1)], 10.0),  # the first row is three such steps
        ([(10.0, 3000, 1), (None, 9000, 1)], 10.0),
    ],
)
def test_samples_per_second_are_the_median_of_the_steps(store: Store, said: Any, samples_per_second: float):
    lines(store, "v1", *said)
    assert rows(store, "v1", "v1")["samples_per_second"][0] == pytest.approx(samples_per_second)
    shown = show(store, "v1", options=ShowOptions(steps=(0, 1)))
    assert shown.overall["samples_per_second"].tolist() == pytest.approx([samples_per_second])


def test_the_peak_names_the_allocator_it_stands_for_and_the_whole_process_beside_it(store: Store):
    curve = [("PTA", 1, 50), ("PTA", 2, 90), ("GE", 1, 10), ("APP", 1, 200), ("APP", 2, 150)]
    save(store, "v1", curve=curve, peak_allocated_bytes=90)
    save(store, "v2", curve=[("device", 1, 80)], peak_allocated_bytes=80)
    frame = diff(store, "v1", "v2").overall
    frame = frame[frame["metric"].str.startswith("peak_allocated_bytes")].fillna({"candidate_value": -1})
    assert frame[["title", "level", "baseline_value", "candidate_value"]].values.tolist() == [
        ["Peak memory allocated (PTA alone)", 0, 90, 80],
        ["APP: the whole process", 1, 200, -1],
        ["GE: the graph engine", 1, 10, -1],
    ]
    plain = diff(store, "v2", "v2").overall.set_index("metric")
    assert plain.loc["peak_allocated_bytes", "title"] == "Peak memory allocated"


def test_kernel_types_of_a_run_are_sums_without_collectives_and_unnamed_ones(store: Store):
    kernels = [
        npu("Cast", 30, "AI_VECTOR_CORE", "vector"),
        npu("Cast", 50, "AI_CORE", "vector"),
        npu("MatMulV3", 60, "AI_CORE", "matmul"),
        npu("hcom_allReduce_", 500, "HCCL", "communication"),
        ("gemm", 900),
    ]
    save(store, kernels=kernels)
    same_table(
        show(store, "v1").kernel_types,
        """
        type      core_type       calls  total_ns
        MatMulV3  AI_CORE         1      60
        Cast      AI_CORE         1      50
        Cast      AI_VECTOR_CORE  1      30
        """,
    )
    by_rank = show(store, "v1", options=ShowOptions(by=("rank",))).kernel_types
    assert by_rank.columns.tolist()[:3] == ["rank", "type", "core_type"]
    save(store, "v2", kernels=[("gemm", 900)])
    assert show(store, "v2").kernel_types.empty
