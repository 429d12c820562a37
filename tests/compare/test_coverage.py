"""Whose numbers count: those of the runs and ranks that report the metric, for as many steps as rows stand for."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from msgspec.structs import replace

from tests.factories import EPOCH_NS, capture, record, same_table, save
from tracker.compare import diff, show
from tracker.profile import MISSING, Breakdown, Capture
from tracker.results import Diff, DiffOptions, ShowOptions
from tracker.store import Store, save_run


def changed(made: Capture, **values: Any) -> Capture:
    """`made` with other numbers in the breakdown of its steps and of the whole."""

    def known(breakdown: Breakdown) -> Breakdown:
        return replace(breakdown, **values)

    steps = tuple(replace(step, breakdown=known(step.breakdown)) for step in made.rows.steps)
    return replace(made, rows=replace(made.rows, steps=steps, overall=known(made.rows.overall)))


def whole_rank(rank: int = 0, **more: Any) -> Capture:
    return capture(
        rank, world_size=2, kernels=[("gemm", 50)], ops=[("mm", 50)], communication=[("all_reduce", 40)], **more
    )


def collectives_alone(rank: int = 1, ns: int = 30, **more: Any) -> Capture:
    """A rank of which nothing but its collectives was read."""
    hidden = {"exposed_ns": MISSING}
    made = capture(rank, world_size=2, kernels=[], ops=[], communication=[("all_reduce", ns, hidden)], **more)
    unknown = ("compute_ns", "e2e_ns", "idle_ns", "overlap_ns", "exposed_communication_ns", "kernel_total_ns")
    return changed(made, **dict.fromkeys(unknown))


def save_ranks(store: Store, version: str, *captures: Capture, number: int = 0, **values: Any) -> None:
    started = EPOCH_NS + number * 10**13
    moved = [replace(made, started_at_ns=started, ended_at_ns=started + 1000) for made in captures]
    save_run(store, record(version, started_at_ns=started, **values), moved, formats=["ascend_text"])


def of_baseline(result: Diff) -> dict[str, float | None]:
    frame = result.overall.set_index("metric")["baseline_value"]
    return {str(name): None if pd.isna(value) else float(value) for name, value in frame.items()}


def test_a_rank_of_which_only_collectives_are_known_counts_in_no_other_number(store: Store):
    save_ranks(store, "v1", whole_rank(), collectives_alone())
    result = diff(store, "v1", "v1")
    found = of_baseline(result)
    assert found["compute_ns"] == found["matmul"] == found["operator_ns"] == 50
    assert found["exposed_communication_ns"] == found["exposed_communication_ns:dp x2"] == 40
    assert (found["communication_ns"], found["communication_total_ns"]) == (35, 35)  # both ranks report it
    assert result.kernels["baseline_ns"].tolist() == [50]
    assert result.ops["baseline_ns"].tolist() == [50]
    assert result.notes[0] == ("v1: rank 1 does not report all times; each number is of the ranks that report it.")


def test_exposed_time_is_of_the_ranks_that_report_it(store: Store):
    """Rank 0 ran 40 ns of all_reduce, all exposed; rank 1 ran 30 ns and does not know: a median of 35, 40 exposed."""
    save_ranks(store, "v1", whole_rank(), collectives_alone())
    exchange = diff(store, "v1", "v1").communication.iloc[0]
    assert exchange["baseline_ns"] == exchange["candidate_ns"] == 35
    assert exchange["baseline_exposed_ns"] == exchange["candidate_exposed_ns"] == 40
    alone = diff(store, "run:1:rank0", "run:1:rank0")
    assert alone.communication["baseline_exposed_ns"].tolist() == [40]
    assert not any("exposed" in note for note in alone.notes)


def test_exposed_time_is_of_the_runs_that_report_it(store: Store):
    save_ranks(store, "v1", whole_rank(), number=0)
    save_ranks(store, "v1", collectives_alone(0), number=1)
    exchange = diff(store, "v1", "v1").communication.iloc[0]
    assert exchange["baseline_ns"] == pytest.approx((40 * 30) ** 0.5)
    assert exchange["baseline_exposed_ns"] == 40


def test_parts_and_operators_explain_the_change_against_one_of_the_ranks(store: Store):
    save_ranks(store, "v1", whole_rank(), collectives_alone())
    explained = diff(store, "v1", "run:1:rank0").explanation
    assert (explained.delta_ns, explained.explained_ns, explained.rest_ns) == (0, 0, 0)


def test_what_a_run_does_not_know_is_not_0_in_the_median_over_the_runs(store: Store):
    save_ranks(store, "v1", whole_rank(), number=0)
    save_ranks(store, "v1", collectives_alone(0), number=1)
    result = diff(store, "v1", "v1")
    assert of_baseline(result)["matmul"] == result.kernels["baseline_ns"].tolist()[0] == 50


def test_a_run_without_the_parts_of_its_steps_is_named(store: Store):
    """The log of run 2 has 3 steps and no parts of them; the profiles, of 2 steps each, say both."""
    for number in (0, 2):
        save_ranks(store, "v1", capture(steps=2, step_ns=100 + number), number=number)
    log = changed(capture(steps=3, step_ns=70), compute_ns=None, e2e_ns=None, idle_ns=None, kernel_total_ns=None)
    save_ranks(store, "v1", log, number=1)
    result = diff(store, "v1", "v1")
    assert (result.baseline.runs, result.explanation.ranged_runs) == (3, (3, 3))
    assert result.explanation.baseline_range_ns == (70, 102)
    assert (result.baseline.fewest_steps, result.baseline.steps) == (2, 3)
    assert result.notes == ("v1: rank 0 of run:3 does not report all times.",)


def test_where_no_rank_knows_more_than_the_others_all_count(store: Store):
    save_ranks(store, "v1", collectives_alone(0, 30), collectives_alone(1, 50))
    assert of_baseline(diff(store, "v1", "v1"))["communication_total_ns"] == 40


def test_exposed_time_that_one_side_does_not_know_is_missing_there_and_not_0(store: Store):
    save_ranks(store, "v1", whole_rank(), collectives_alone())
    frame = diff(store, "run:1:rank0", "run:1:rank1").overall.set_index("metric")
    group = frame.loc["exposed_communication_ns:dp x2"]
    assert group["baseline_value"] == 40
    assert pd.isna(group["candidate_value"])
    assert pd.isna(group["delta"])


def test_a_rank_without_a_kernel_table_removes_and_adds_nothing(store: Store):
    """The profiler's own sums say of rank 1 what compute took, and no file says in which kernels."""
    sums_alone = changed(collectives_alone(), compute_ns=55, e2e_ns=85, idle_ns=0)
    save_ranks(store, "v1", whole_rank(memory=[("mm", 64)], api=[("launch", 3)]), sums_alone)
    for sides in (("run:1:rank0", "run:1:rank1"), ("run:1:rank1", "run:1:rank0")):
        result = diff(store, *sides, options=DiffOptions(by=("op",)))
        for frame in (result.ops, result.op_details, result.kernels, result.kernel_types, result.memory, result.api):
            assert frame.empty
        assert result.tree is not None
        assert result.tree.empty
        assert result.communication["status"].tolist() == ["both"]
        assert result.explanation.causes == ()
        assert result.explanation.explained_ns == 0
        assert result.notes == (
            "Not compared, for the source of run:1:rank1 does not have them: "
            "operators, kernels, memory of operators, host API calls.",
        )
    assert of_baseline(diff(store, "run:1:rank1", "run:1:rank0"))["compute_ns"] == 55


def test_a_rank_that_ran_no_kernel_removes_those_of_the_other(store: Store):
    save_ranks(store, "v1", whole_rank(), capture(1, world_size=2, kernels=[], ops=[]))
    result = diff(store, "run:1:rank0", "run:1:rank1")
    assert result.kernels["status"].tolist() == result.ops["status"].tolist() == ["REMOVED"]
    assert not any(note.startswith("Not compared") and "kernels" in note for note in result.notes)


def test_memory_is_a_mean_of_the_ranks_that_have_any(store: Store):
    save_ranks(store, "v1", whole_rank(memory=[("mm", 4096)]), whole_rank(1))
    assert diff(store, "v1", "v1").memory["baseline_bytes"].tolist() == [4096]


def test_the_number_of_a_kernel_is_of_the_stages_that_run_it(store: Store):
    first = capture(0, world_size=2, stage=0, kernels=[("gemm", 50), ("embedding", 30)])
    save_ranks(store, "v1", first, capture(1, world_size=2, stage=1, kernels=[("gemm", 70)]))
    result = diff(store, "v1", "v1")
    rows = result.kernels.set_index("name")["baseline_ns"]
    assert rows.to_dict() == {"gemm": 60, "embedding": 30}
    assert of_baseline(result)["operator_ns"] == of_baseline(result)["compute_ns"] == 75


def standing_for(made: Capture, *counts: int) -> Capture:
    """`made`, each of whose rows of steps is the mean of several steps, and its tables their sums."""
    rows = tuple(replace(step, steps=count) for step, count in zip(made.rows.steps, counts, strict=True))
    return replace(made, rows=replace(made.rows, steps=rows))


def test_a_row_that_is_the_mean_of_several_steps_counts_as_so_many(store: Store):
    three = capture(steps=1, kernels=[("gemm", 300, {"calls": 3})], ops=[("mm", 300, {"calls": 3})], step_ns=120)
    save_ranks(store, "v1", standing_for(changed(three, compute_ns=100, e2e_ns=100), 3))
    for options in (DiffOptions(), DiffOptions(baseline_steps=(0,), candidate_steps=(0,))):
        result = diff(store, "v1", "v1", options=options)
        assert (of_baseline(result)["matmul"], of_baseline(result)["compute_ns"]) == (100, 100)
        assert (result.kernels.loc[0, "baseline_ns"], result.kernels.loc[0, "baseline_calls"]) == (100, 1)
        assert result.ops["baseline_ns"].tolist() == [100]
        assert result.baseline.steps == 3
    chosen = show(store, "v1", options=ShowOptions(steps=(0,)))
    assert (chosen.overall.loc[0, "compute_ns"], chosen.run["step_ns"]) == (300, 120)


def test_a_row_counts_in_the_median_as_many_times_as_steps(store: Store):
    made = capture(steps=2, step_ns=100)
    first, second = made.rows.steps
    slow = replace(second, breakdown=replace(second.breakdown, duration_ns=400))
    made = replace(made, rows=replace(made.rows, steps=(first, slow)))
    save_ranks(store, "v1", standing_for(made, 2, 1))
    found = of_baseline(diff(store, "v1", "v1"))
    assert (found["step_ns"], found["mean_step_ns"]) == (100, 200)
    assert (show(store, "v1").run["step_ns"], show(store, "v1").run["mean_step_ns"]) == (100, 200)
    chosen = diff(store, "v1", "v1", options=DiffOptions(baseline_steps=(0,), candidate_steps=(0, 1)))
    assert (chosen.baseline.steps, chosen.candidate.steps) == (2, 3)


def test_kernels_outside_all_steps_are_those_of_the_ranks_that_know_both(store: Store):
    known = changed(whole_rank(steps=[-1, 0]), kernel_total_ns=90)
    known = replace(known, rows=replace(known.rows, overall=replace(known.rows.overall, kernel_total_ns=180)))
    unknown = whole_rank(1, steps=[-1, 0])
    unknown = replace(unknown, rows=replace(unknown.rows, overall=replace(unknown.rows.overall, kernel_total_ns=None)))
    save_ranks(store, "v1", known, unknown)
    assert of_baseline(diff(store, "v1", "v1"))["outside_steps_kernel_total_ns"] == 90


def test_waiting_that_one_of_the_runs_does_not_know_is_told_of_none(store: Store):
    for number, more in enumerate([{"exposed_wait_ns": 10}, {}, {"exposed_wait_ns": 30}]):
        save(store, "v1", started_at_ns=EPOCH_NS + number * 10**13, communication=[("all_reduce", 100, more)])
    found = of_baseline(diff(store, "v1", "v1"))
    assert found["exposed_communication_ns:dp x2"] == 100
    assert not {"exposed_wait_ns:dp x2", "exposed_transmit_ns:dp x2"} & set(found)


def test_waiting_and_the_rest_sum_to_the_exposed_time(store: Store):
    for number, (ns, wait) in enumerate([(100, 90), (200, 10), (300, 280)]):
        at = EPOCH_NS + number * 10**13
        save(store, "v1", started_at_ns=at, communication=[("all_reduce", ns, {"exposed_wait_ns": wait})])
    found = of_baseline(diff(store, "v1", "v1"))
    parts = found["exposed_wait_ns:dp x2"], found["exposed_transmit_ns:dp x2"]
    assert parts[0] == pytest.approx((90 * 10 * 280) ** (1 / 3))
    assert sum(filter(None, parts)) == pytest.approx(found["exposed_communication_ns:dp x2"])


def test_groups_and_what_their_medians_leave_over_sum_to_the_exposed_time(store: Store):
    for number, (dp, pp) in enumerate([(10, 40), (40, 10)]):
        exchange = [("all_reduce", dp), ("send", pp, {"group_role": "pp"})]
        save(store, "v1", started_at_ns=EPOCH_NS + number * 10**13, communication=exchange)
    result = diff(store, "v1", "v1")
    found = of_baseline(result)
    groups = [found[f"exposed_communication_ns:{group}"] for group in ("dp x2", "pp x2")]
    assert (groups, found["exposed_communication_ns"], found["groups_at_once_ns"]) == (
        pytest.approx([20, 20]),
        50,
        pytest.approx(10),
    )
    title = result.overall.set_index("metric").loc["groups_at_once_ns", "title"]
    assert title == "Rest (collectives at the same time count twice above; medians do not add up)"


def test_rank_without_times_by_group_leaves_a_rest_below_the_exposed_time(store: Store):
    """Rank 0 exchanges for 40 ns, all exposed; rank 1 is exposed for 30 ns, and does not say in which group: a median
    of 35 above the 40 of the one rank that does.
    """
    other = changed(collectives_alone(), exposed_communication_ns=30)
    save_ranks(store, "v1", whole_rank(), other)
    result = diff(store, "v1", "v1")
    found = of_baseline(result)
    assert (found["exposed_communication_ns"], found["exposed_communication_ns:dp x2"]) == (35, 40)
    assert found["groups_at_once_ns"] == -5
    title = result.overall.set_index("metric").loc["groups_at_once_ns", "title"]
    assert title == "Rest (some collectives do not state their exposed time; medians do not add up)"


def test_kinds_of_cores_differ_in_kinds_where_all_runs_have_two(store: Store):
    def kernels(vector_core: str) -> list[Any]:
        return [
            ("MatMul", 60, {"core_type": "AI_CORE"}),
            ("Add", 30, {"core_type": vector_core, "category": "vector"}),
        ]

    save(store, "v1", kernels=kernels("AI_VECTOR_CORE"))
    save(store, "v1", kernels=kernels("AI_CORE"), started_at_ns=EPOCH_NS + 10**13)
    found = of_baseline(diff(store, "v1", "v1"))
    assert found["operator_ns"] == 90
    assert not {"operator_cube_ns", "operator_vector_ns", "matmul:cube"} & set(found)


@pytest.mark.parametrize(("rules", "told"), [((2, 3), True), ((3, 3), False), ((None, 3), False)])
def test_names_made_by_other_rules_are_told(memory_store: Store, rules: tuple[Any, Any], told: bool):
    for version, number in zip(("v1", "v2"), rules, strict=True):
        save(memory_store, version, of_run={"rules_version": number})
    result = diff(memory_store, "v1", "v2")
    note = "The names and categories of the two sides were made by rules 2 and 3: ingest the older runs again."
    assert (note in result.notes) is told
    assert ("naming rules" in set(result.environment["key"])) is (rules[0] != rules[1])


def test_synchronization_and_idle_time_of_collectives_are_known_of_both_sides_or_missing(store: Store):
    for version, idle in (("v1", 20), ("v2", 50)):
        parts = {"transit_ns": 30, "wait_ns": 10, "synchronization_ns": 5, "idle_ns": idle}
        save(store, version, communication=[("all_reduce", 40 + idle, parts), ("broadcast", 7)])
    same_table(
        diff(store, "v1", "v2").communication,
        """
        kind        baseline_synchronization_ns  candidate_synchronization_ns  baseline_idle_ns  candidate_idle_ns
        all_reduce  5                            5                             20                50
        broadcast   -                            -                             -                 -
        """,
    )


def test_a_rank_that_waits_for_nobody_counts_in_the_wait(store: Store):
    """Rank 0 is late and waits for nobody, rank 1 waits 290 of its 300 ns for it: 145 of 155 ns, and 10 to transmit."""
    ranks = [
        capture(rank, world_size=2, communication=[("all_reduce", ns, {"exposed_wait_ns": wait})])
        for rank, (ns, wait) in enumerate([(10, 0), (300, 290)])
    ]
    save_run(store, record("v1"), ranks, formats=["torch_profiler"])
    found = of_baseline(diff(store, "v1", "v1"))
    names = ("exposed_communication", "exposed_wait", "exposed_transmit")
    assert [found[f"{name}_ns:dp x2"] for name in names] == [155, 145, 10]
