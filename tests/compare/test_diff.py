"""Diffs of small runs made by hand: every number can be checked in the head."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.factories import EPOCH_NS, H100, capture, record, save
from tracker.compare import diff, show
from tracker.errors import SourceError, UsageError
from tracker.profile import Capture, Device
from tracker.results import DiffOptions, ShowOptions
from tracker.store import Store, save_run


def test_an_op_that_became_slower_one_that_came_and_one_that_went(store: Store):
    save(store, "v1", steps=[3], ops=[("mm", 100), ("relu", 5), ("gelu", 8)], step_ns=1000)
    save(store, "v2", steps=[3], ops=[("mm", 130), ("relu", 5), ("tanh", 20)], step_ns=1042)
    result = diff(store, "v1", "v2")
    rows = result.ops.set_index("name")
    assert rows["status"].to_dict() == {"mm": "both", "tanh": "ADDED", "gelu": "REMOVED", "relu": "both"}
    assert list(rows.index) == ["mm", "tanh", "gelu", "relu"]
    assert rows["delta_ns"].tolist() == [30, 20, -8, 0]
    assert rows.loc["mm", "diff"] == pytest.approx(0.3)
    assert result.explanation.delta_ns == 42
    assert result.explanation.explained_ns == 42
    assert result.explanation.rest_ns == 0


def test_numbers_are_per_step_and_the_geometric_mean_of_runs(store: Store):
    save(store, "v1", runs=1, ranks=2, steps=4, ops=[("mm", 100)])
    save(store, "v2", runs=1, ranks=2, steps=4, ops=[("mm", 100)], started_at_ns=EPOCH_NS + 10**13)
    save(store, "v2", runs=1, ranks=2, steps=4, ops=[("mm", 400)], started_at_ns=EPOCH_NS + 2 * 10**13)
    save(store, "v2", runs=1, ranks=2, steps=4, ops=[("mm", 200)], started_at_ns=EPOCH_NS + 3 * 10**13)
    result = diff(store, "v1", "v2")
    row = result.ops.iloc[0]
    assert (row["baseline_ns"], row["candidate_ns"]) == (100, pytest.approx(200))
    assert (row["baseline_total_calls"], row["candidate_total_calls"]) == (8, 24)
    assert (result.candidate.runs, result.candidate.ranks, result.candidate.steps) == (3, 2, 4)


def test_host_time_changes_beside_the_device_time(store: Store):
    """On the device nothing changed; on the host one op takes twice as long."""
    save(store, "v1", ops=[("mm", 100, {"host_self_ns": 40, "calls": 4, "min_ns": 20, "max_ns": 30})])
    save(store, "v2", ops=[("mm", 100, {"host_self_ns": 80, "calls": 4, "min_ns": 10, "max_ns": 60})])
    row = diff(store, "v1", "v2").ops.iloc[0]
    assert (row["delta_ns"], row["host_delta_ns"], row["host_diff"]) == (0, 40, 1.0)
    assert (row["baseline_average_ns"], row["candidate_average_ns"]) == (25, 25)
    assert (row["baseline_min_ns"], row["candidate_min_ns"]) == (20, 10)
    assert (row["baseline_max_ns"], row["candidate_max_ns"]) == (30, 60)


def test_what_lies_outside_the_steps_does_not_count_per_step(store: Store):
    save(store, "v1", steps=[-1, 0, 1], ops=[("mm", 100)])
    save(store, "v2", steps=[0, 1], ops=[("mm", 100)])
    assert diff(store, "v1", "v2").ops["delta_ns"].tolist() == [0]


def test_an_op_with_other_shapes_is_matched_by_name_on_request(store: Store):
    save(store, "v1", ops=[("mm", 100, {"input_shapes": "[[2,3]]"})])
    save(store, "v2", ops=[("mm", 150, {"input_shapes": "[[4,4]]"})])
    assert set(diff(store, "v1", "v2").ops["status"]) == {"ADDED", "REMOVED"}
    by_name = diff(store, "v1", "v2", options=DiffOptions(match="name")).ops
    assert by_name[["status", "baseline_ns", "candidate_ns"]].values.tolist() == [["both", 100, 150]]


def test_a_changed_type_is_a_change_of_the_op_and_not_a_new_op(store: Store):
    save(store, "v1", ops=[("norm", 100, {"input_types": "float"})])
    save(store, "v2", ops=[("norm", 160, {"input_types": "double"})])
    row = diff(store, "v1", "v2").ops.iloc[0]
    assert (row["status"], row["input_types"]) == ("both", "float -> double")


def test_what_else_changed_stands_beside_the_numbers(store: Store):
    save(store, "v1", of_run={"facts": {"torch": "2.5"}, "commit": "aaa"}, host="node0", settings={"with_stack": "on"})
    save(store, "v2", of_run={"facts": {"torch": "2.6"}, "commit": "bbb"}, host="node1", settings={"with_stack": "off"})
    changed = diff(store, "v1", "v2").environment
    assert changed.values.tolist() == [
        ["code", "commit", "aaa", "bbb"],
        ["fact", "torch", "2.5", "2.6"],
        ["host", "host", "node0", "node1"],
        ["setting", "with_stack", "on", "off"],
    ]


def test_a_rank_of_a_run_can_be_compared_with_another_rank(store: Store):
    first, second = capture(0, world_size=2, ops=[("mm", 100)]), capture(1, world_size=2, ops=[("mm", 300)])
    save_run(store, record("v1"), [first, second], formats=["torch_profiler"] * 2)
    row = diff(store, "run:1:rank0", "run:1:rank1").ops.iloc[0]
    assert (row["baseline_ns"], row["candidate_ns"]) == (100, 300)
    assert diff(store, "v1", "v1").ops.iloc[0]["baseline_ns"] == 200


def test_sides_can_be_named_in_many_ways(store: Store):
    save(store, "v1", ops=[("mm", 100)])
    save(store, "v2", ops=[("mm", 150)], started_at_ns=EPOCH_NS + 10**13)
    save(store, "v2", ops=[("mm", 500)], started_at_ns=EPOCH_NS + 2 * 10**13, device=Device("AMD", "MI300X"))
    for baseline, candidate in (("latest~2", "latest~1"), ("run:1", "run:2"), ("v1@H100", "v2@H100")):
        row = diff(store, baseline, candidate).ops.iloc[0]
        assert (row["baseline_ns"], row["candidate_ns"]) == (100, 150), (baseline, candidate)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("v9", r"no version 'v9'"),
        ("run:77", r"77"),
        ("run:1:rank5", r"no rank is left"),
        ("latest~9", r"latest"),
        ("pinned", r"pin"),
        ("./no.json", r"no such file"),
        ("v1@B200", r"B200"),
    ],
)
def test_a_side_that_names_nothing_is_an_error_that_helps(store: Store, reference: str, message: str):
    save(store, "v1")
    with pytest.raises(UsageError, match=message) as error:
        diff(store, "v1", reference)
    assert "\n" not in str(error.value)


def test_a_label_of_two_workloads_asks_for_the_workload(store: Store):
    save(store, "v1", "gpt")
    save(store, "v1", "resnet")
    with pytest.raises(UsageError, match="--workload"):
        diff(store, "v1", "v1")
    assert diff(store, "v1", "v1", options=DiffOptions(workload="gpt")).baseline.workload == "gpt"


def test_filters_leave_only_what_was_asked_for(store: Store):
    ops = [("aten::mm", 100, {"module": "A/B"}), ("aten::add", 10, {"module": "A"}), ("nccl", 50)]
    save(store, "v1", ops=ops)

    def names(**options: Any) -> list[str]:
        return diff(store, "v1", "v1", options=DiffOptions(**options)).ops["name"].tolist()

    assert names(op="aten::*") == ["aten::mm", "aten::add"]
    assert names(module="A/*") == ["aten::mm"]
    assert names(minimum_ns=50) == ["aten::mm", "nccl"]


def test_a_filter_does_not_make_the_explanation_lie(store: Store):
    save(store, "v1", steps=[3], ops=[("mm", 100), ("add", 10)], step_ns=200)
    save(store, "v2", steps=[3], ops=[("mm", 150), ("add", 10)], step_ns=250)
    result = diff(store, "v1", "v2", options=DiffOptions(op="add"))
    assert result.ops["name"].tolist() == ["add"]
    assert result.explanation.explained_ns == 50
    assert next((row.name, row.delta_ns) for row in result.explanation.contributions) == ("mm", 50)


def test_runs_without_the_rank_that_was_asked_for_do_not_count_as_zero(store: Store):
    for at in range(2):
        save(store, "v1", ops=[("mm", 100)], started_at_ns=EPOCH_NS + at * 10**13)
    both = [capture(rank, world_size=2, ops=[("mm", 100)]) for rank in (0, 1)]
    save_run(store, record("v1"), both, formats=["torch_profiler"] * 2)
    result = diff(store, "v1", "v1", options=DiffOptions(ranks=(1,)))
    assert (result.baseline.runs, result.ops["baseline_ns"].tolist()) == (1, [100])


def test_changes_that_cancel_are_told_as_such(store: Store):
    save(store, "v1", steps=[3], ops=[("mm", 100), ("add", 200)], step_ns=400)
    save(store, "v2", steps=[3], ops=[("mm", 200), ("add", 110)], step_ns=410)
    explanation = diff(store, "v1", "v2").explanation
    assert (explanation.cancelling, explanation.gross_loss_ns, explanation.gross_gain_ns) == (True, 100, -90)
    assert not diff(store, "v1", "v1").explanation.cancelling


def test_causes_and_rest_sum_to_the_change_exactly(store: Store):
    """mm carries 10 of 100 ns, no part of the step any of them."""
    save(store, "v1", steps=[3], ops=[("mm", 100)], step_ns=400)
    save(store, "v2", steps=[3], ops=[("mm", 110)], step_ns=500)
    found = diff(store, "v1", "v2").explanation
    assert [(row.kind, row.metric, row.delta_ns) for row in found.contributions] == [
        ("operator", "", 10), ("rest", "", 90)
    ]  # fmt: skip
    assert sum(row.delta_ns for row in found.contributions) == found.delta_ns == 100


def test_the_peak_of_a_run_is_that_of_its_largest_rank(store: Store):
    ranks = [capture(rank, world_size=2, peak_allocated_bytes=peak) for rank, peak in ((0, 10), (1, 30))]
    save_run(store, record("v1"), ranks, formats=["torch_profiler"] * 2)
    overall = diff(store, "v1", "v1").overall.set_index("metric")
    assert overall.loc["peak_allocated_bytes", "baseline_value"] == 30


def test_modules_and_api_calls_are_filtered(store: Store):
    ops = [("mm", 100, {"module": "A/B"}), ("add", 10, {"module": "A"})]
    save(store, "v1", ops=ops, api=[("launch", 5), ("sync", 50)])
    result = diff(store, "v1", "v1", options=DiffOptions(module="A/*", minimum_ns=20))
    assert result.modules["module"].tolist() == ["A/B"]
    assert result.api["name"].tolist() == ["sync"]


@pytest.mark.parametrize("reference", ["", "x" * 300, "~nobody-here/x"])
def test_a_side_that_can_be_no_path_is_an_error_too(store: Store, reference: str):
    save(store, "v1")
    with pytest.raises(UsageError):
        diff(store, "v1", reference)


def test_a_folder_that_is_no_version_is_read(store: Store, tmp_path, monkeypatch):
    save(store, "v1")
    (tmp_path / "profiles").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match=r"profiles: no profile in this folder"):
        diff(store, "v1", "profiles")


def test_a_bare_name_is_a_label_even_beside_a_folder_of_that_name(store: Store, tmp_path, monkeypatch):
    save(store, "v1")
    (tmp_path / "v1").mkdir()
    monkeypatch.chdir(tmp_path)
    assert diff(store, "v1", "v1").baseline.run_ids == (1,)


def test_a_bare_number_is_a_run_unless_a_version_has_that_name(store: Store):
    save(store, "v1")
    save(store, "v2", started_at_ns=EPOCH_NS + 10**13)
    assert diff(store, "1", "2").candidate.run_ids == (2,)
    save(store, "1", started_at_ns=EPOCH_NS + 2 * 10**13)
    assert diff(store, "1", "2").baseline.run_ids == (3,)


def test_several_runs_are_one_side_and_repeats_of_each_other(store: Store):
    for at, ns in enumerate((100, 144, 900)):
        save(store, "v1", ops=[("mm", ns)], started_at_ns=EPOCH_NS + at * 10**13)
    side = diff(store, "run:1,run:2", "run:3")
    assert (side.baseline.run_ids, side.ops["baseline_ns"].tolist()) == ((1, 2), [pytest.approx(120)])
    assert diff(store, "run:2,run:1,run:2", "run:3").baseline.run_ids == (1, 2)
    with pytest.raises(UsageError, match="77"):
        diff(store, "run:1,run:77", "run:3")


def test_a_label_with_a_slash_is_a_label_unless_it_is_a_path(store: Store, tmp_path, monkeypatch):
    save(store, "feature/x")
    monkeypatch.chdir(tmp_path)
    assert diff(store, "feature/x", "feature/x").baseline.run_ids == (1,)


def test_a_workload_with_a_comma_in_its_name_can_be_compared(store: Store):
    save(store, "v1", "gpt, small")
    assert diff(store, "v1", "v1").baseline.workload == "gpt, small"


def test_runs_that_overlap_may_be_noise(store: Store):
    # mm: 100, 140 against 130, 170 overlap; norm: 10, 11 against 20, 21 does not; two devices have no verdicts
    other = Device("Huawei", "Ascend910B")
    for version, device, times in (("v1", H100, ((100, 10), (140, 11))), ("v2", other, ((130, 20), (170, 21)))):
        for at, (mm, norm) in enumerate(times):
            start = EPOCH_NS + at * 10**13 + (version == "v2") * 10**15
            ops = [("mm", mm), ("norm", norm)]
            save(store, version, steps=[3], ops=ops, step_ns=mm + norm, started_at_ns=start, device=device)
    result = diff(store, "v1", "v2")
    assert [(cause.name, cause.stands_out) for cause in result.explanation.rollup] == [("mm", False), ("norm", True)]
    assert "overlap (110 ns to 151 ns and 150 ns to 191 ns): this may be noise" in result.explanation.remarks[1]
    assert (result.explanation.baseline_range_ns, result.explanation.candidate_range_ns) == ((110, 151), (150, 191))


@pytest.mark.parametrize("timeline", ["device", "host"])
def test_idle_time_that_waits_for_data_says_so(store: Store, timeline):
    """Data loading takes 200 ns longer, the device idles 200 ns longer."""
    for version, loading, step_ns in (("v1", 100, 1000), ("v2", 300, 1200)):
        made = capture(steps=[3], ops=[("mm", 100)], step_ns=step_ns)
        numbers = replace(
            made.rows.steps[0].breakdown, data_loading_ns=loading, timeline=timeline, e2e_ns=step_ns, compute_ns=100,
            exposed_communication_ns=0, exposed_copy_ns=0, idle_ns=step_ns - 100,
        )  # fmt: skip
        whole = replace(made.rows.overall, timeline=timeline)
        rows = replace(made.rows, overall=whole, steps=(replace(made.rows.steps[0], breakdown=numbers),))
        save_run(store, record(version), [replace(made, rows=rows)], formats=["torch_profiler"])
    found = diff(store, "v1", "v2").explanation.contributions
    assert [(row.metric, row.delta_ns, row.why) for row in found] == [("idle_ns", 200, "waits for data")]


@pytest.mark.parametrize(
    ("grown", "why"),
    [
        ({"dependency": 150, "host: operator": 50}, "mostly dependency"),
        ({"dependency": 90}, "nothing runs on the device"),
    ],
)
def test_idle_time_that_grew_names_the_cause_of_at_least_half_of_it(store: Store, grown, why):
    """The device idles 200 ns longer; a cause that grew by 90 is not named."""
    for version, step_ns, more in (("v1", 1000, {}), ("v2", 1200, grown)):
        idle = [(cause, "", 300 + more.get(cause, 0)) for cause in ("dependency", "host: operator")]
        made = capture(steps=[3], ops=[("mm", 100)], step_ns=step_ns, idle=idle)
        numbers = replace(
            made.rows.steps[0].breakdown, timeline="device", e2e_ns=step_ns, compute_ns=100,
            exposed_communication_ns=0, exposed_copy_ns=0, idle_ns=step_ns - 100,
        )  # fmt: skip
        rows = replace(made.rows, steps=(replace(made.rows.steps[0], breakdown=numbers),))
        save_run(store, record(version), [replace(made, rows=rows)], formats=["torch_profiler"])
    found = diff(store, "v1", "v2").explanation.contributions
    assert [(row.metric, row.delta_ns, row.why) for row in found] == [("idle_ns", 200, why)]


def test_a_side_of_different_models_is_refused(store: Store):
    save(store, "v1", ops=[("bert", 100), ("view", 1)])
    save(store, "v1", ops=[("resnet", 100), ("view", 1)], started_at_ns=EPOCH_NS + 10**13)
    found = diff(store, "v1", "run:1")
    assert found.is_refused
    assert found.explanation.headline.endswith(
        "the 2 runs of v1 have few operators in common, as different models have. Name one run of v1 (run:ID)"
    )


def test_captures_of_more_and_of_less_detail_on_one_side_are_told(store: Store):
    for number, level in enumerate(("Level0", "Level1", "Level1")):
        save(store, "v1", settings={"profiler_level": level}, started_at_ns=EPOCH_NS + number * 10**13)
    save(store, "v2", settings={"profiler_level": "Level1"}, started_at_ns=EPOCH_NS + 10**14)
    assert diff(store, "v1", "v2").notes == (
        "v1: captures with profiler_level Level0 and Level1: a row that only some of them can have counts as 0 in "
        "the others.",
    )
    assert diff(store, "run:2,run:3", "v2").notes == ()


def test_mixed_hardware_and_idle_map_entries_are_told(store: Store):
    save(store, "v1")
    save(store, "v1", device=Device("AMD", "MI300X"), started_at_ns=EPOCH_NS + 10**13)
    save(store, "v9", "resnet", started_at_ns=EPOCH_NS + 2 * 10**13)
    notes = diff(store, "run:1,run:2", "v9", options=DiffOptions(op_map={"nosuch": "aten::mm"})).notes
    assert [note.split(" (")[0] for note in notes] == [
        "runs 1,2: several devices",
        "The op map names 'nosuch', which run:1,run:2 does not have.",
    ]
    assert diff(store, "run:1", "run:1").notes == ()


def test_show_keeps_copies_apart_from_kernels(store: Store):
    save(store, "v1", kernels=[("gemm", 100), ("Memcpy HtoD", 7, {"category": "copy"})], steps=2)
    shown = show(store, "v1")
    assert shown.kernels[["name", "total_ns"]].values.tolist() == [["gemm", 200]]
    assert shown.copies[["name", "total_ns"]].values.tolist() == [["Memcpy HtoD", 14]]
    by_step = show(store, "v1", options=ShowOptions(by=("step",)))
    assert by_step.kernels[["step", "total_ns"]].values.tolist() == [[0, 100], [1, 100]]


def test_show_filters_as_diff_does(store: Store):
    save(
        store, "v1", ops=[("aten::mm", 100), ("aten::add", 1)], kernels=[("gemm", 100), ("add", 1, {"op": "aten::add"})]
    )
    shown = show(store, "v1", options=ShowOptions(minimum_ns=50, op="aten::*"))
    assert shown.ops["name"].tolist() == ["aten::mm"]
    assert shown.kernels["name"].tolist() == ["gemm"]


def test_show_of_several_runs_is_one_of_them_and_says_so(store: Store):
    save(store, "v1", runs=3)
    shown = show(store, "v1")
    assert shown.run["reference"] == f"run:{shown.run['run_id']}"
    assert shown.notes[0].startswith(f"v1 is 3 runs (run:1, run:2, run:3); this is run:{shown.run['run_id']}, ")


def test_show_of_runs_on_several_devices_asks_for_one(store: Store):
    save(store, "v1")
    save(store, "v1", device=Device("AMD", "MI300X"), started_at_ns=EPOCH_NS + 10**12)
    with pytest.raises(UsageError, match=r"2 runs of several devices; name one of run:1, run:2"):
        show(store, "v1")


def summed(made: Capture, steps: int) -> Capture:
    """`made`, of one step, as a source says it that knows only sums over so many steps."""
    (one,) = made.rows.steps
    numbers = {
        name: getattr(one.breakdown, name) for name in ("duration_ns", "e2e_ns", "compute_ns", "kernel_total_ns")
    }
    mean = replace(one.breakdown, **{name: value // steps for name, value in numbers.items() if value is not None})
    return replace(made, rows=replace(made.rows, steps=(replace(one, breakdown=mean, steps=steps),)))


def test_sums_over_four_steps_compare_like_four_steps(store: Store):
    save(store, "v1", steps=4, ops=[("mm", 100)], kernels=[("gemm", 100)], step_ns=1000)
    made = summed(capture(ops=[("mm", 480, {"calls": 4})], kernels=[("gemm", 480)], step_ns=4400), 4)
    save_run(store, record("v2"), [made], formats=["paddle_summary"])
    result = diff(store, "v1", "v2")
    assert (result.baseline.steps, result.candidate.steps) == (4, 4)
    (row,) = result.ops.itertuples()
    assert (row.baseline_calls, row.candidate_calls, row.baseline_ns, row.candidate_ns) == (1, 1, 100, 120)
    overall = result.overall.set_index("metric")
    assert overall.loc["step_ns", ["baseline_value", "candidate_value"]].tolist() == [1000, 1100]
    assert overall.loc["outside_steps_kernel_total_ns", "candidate_value"] == 0
    assert show(store, "v2").run["steps"] == 4


def test_a_kind_or_group_of_collectives_that_no_side_has_is_an_error_that_lists_what_there_is(memory_store: Store):
    save(memory_store, "v1", communication=[("all_reduce", 40)])
    save(memory_store, "v2", communication=[("send", 40, {"group_role": "pp"})])
    with pytest.raises(UsageError, match="no kind of collectives 'nosuch' in v1 or v2; there are all_reduce, send"):
        diff(memory_store, "v1", "v2", options=DiffOptions(kind="nosuch"))
    with pytest.raises(UsageError, match="no group of collectives 'nosuch' in v1 or v2; there are dp, pp"):
        diff(memory_store, "v1", "v2", options=DiffOptions(group="nosuch"))
    with pytest.raises(UsageError, match="no group of collectives 'pp' in v1; there is dp"):
        show(memory_store, "v1", options=ShowOptions(group="pp"))
    assert len(diff(memory_store, "v1", "v2", options=DiffOptions(group="p*")).communication) == 1


def launched(mm: int, addmm: int) -> dict[str, Any]:
    return {"kernels": [("gemm", mm, {"op": "aten::mm"}), ("gemm", addmm, {"op": "aten::addmm"})]}


@pytest.mark.parametrize(
    ("after", "named"), [((100, 70), "aten::addmm"), ((90, 52), "aten::mm"), ((100, 50), "aten::mm")]
)
def test_a_kernel_of_several_ops_names_the_one_in_which_it_changed_most(
    memory_store: Store, after: tuple[int, int], named: str
):
    """Before: 100 ns for mm, 50 ns for addmm; where neither changed the one with more time is named."""
    save(memory_store, "v1", **launched(100, 50))
    save(memory_store, "v2", **launched(*after))
    kernel = diff(memory_store, "v1", "v2").kernels.iloc[0]
    assert (kernel["op"], kernel["more_ops"]) == (named, 1)


def test_a_log_beside_a_trace_is_no_repeat_of_it(tmp_path):
    """A folder with a trace of one process and a training log of it: one run, whose step is that of the log."""
    folder = tmp_path / "job"
    folder.mkdir()
    trace = Path(__file__).parents[1] / "data" / "torch_profiler" / "cpu_gloo_rank1.pt.trace.json"
    shutil.copy(trace, folder)
    line = "[Epoch 0, batch {}] loss: 1.0, reader_cost: 0.001 sec, batch_cost: 0.05000 sec, ips: 640.0 samples/sec"
    (folder / "train.log").write_text("\n".join(line.format(10 * at) for at in range(12)) + "\n")
    found = diff(None, str(folder), str(folder))
    assert found.baseline.runs == 1
    assert "50.00 -> 50.00 ms per step by the timer log, without a profiler" in found.headline
    steps = {row["metric"]: row["candidate_value"] for row in found.tables["overall"].records()}
    assert steps["unprofiled_step_ns"] == 50e6
