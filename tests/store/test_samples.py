"""One number per run and series: by hand, against a slow reckoning from the detail rows, and whatever the order."""

from __future__ import annotations

from statistics import mean, median

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.conftest import count_rows
from tests.factories import breakdown, capture, record, same_table, save, table
from tracker.profile import MISSING, Rows, StepRow
from tracker.store import queries, save_run
from tracker.store import runs as edits
from tracker.store.samples import refresh

FORMATS = ["torch_profiler"]


def samples(store, run_id=1, kind=None):
    found = queries.samples(store, [run_id]).frame
    return found if kind is None else found[found["kind"] == kind].reset_index(drop=True)


def with_ops(rank, per_step, *, steps=None, stage=None, timeline="device", **of_capture):
    """A rank with op times: step -> {op or (op, shapes): device self time}; `steps`: how many each row stands for."""
    steps = steps or dict.fromkeys((step for step in per_step if step >= 0), 1)
    keys = sorted({key if isinstance(key, tuple) else (key, "") for ops in per_step.values() for key in ops})
    rows = [
        {"step": step, "op_key": keys.index(key if isinstance(key, tuple) else (key, "")), "calls": 2}
        | {"device_self_ns": time, "host_self_ns": time, "min_ns": 1, "max_ns": 1}
        for step, ops in per_step.items()
        for key, time in ops.items()
    ]
    each = breakdown(duration_ns=1000, e2e_ns=900, idle_ns=0, timeline=timeline)
    own = Rows(
        overall=each,
        steps=tuple(StepRow(step, step * 1000, each, count) for step, count in steps.items()),
        tables={
            "op_key": table("op_key", [{"name": name, "input_shapes": shapes} for name, shapes in keys]),
            "op": table("op", rows),
        },
    )
    return replace(capture(rank, stage=stage, **of_capture), rows=own)


def keep(store, *captures, version="v1", **values):
    return save_run(store, record(version, **values), captures, formats=FORMATS).run_id


def test_the_number_of_a_run_is_the_median_over_the_steps_of_the_sum_per_step(store):
    keep(store, with_ops(0, {-1: {"mm": 7000}, 0: {"mm": 900}, 1: {"mm": 100}, 2: {"mm": 120}}))
    (row,) = samples(store, kind="op").to_dict("records")
    assert (row["metric"], row["per_step"], row["min"], row["max"], row["calls_per_step"]) == (
        "device_self_ns",
        120,
        100,
        900,
        2,
    )
    assert (row["mean"], row["p10"], row["p90"]) == (pytest.approx(1120 / 3), pytest.approx(104), pytest.approx(744))
    assert row["sd"] == pytest.approx(np.std([900, 100, 120], ddof=1))
    assert (row["share"], row["steps"], row["intermittent"]) == (pytest.approx(0.12), 3, False)
    assert pd.isna(row["rank_spread"])


def test_a_step_without_the_op_is_a_true_zero_and_the_mean_stands_in_for_a_median_of_zero(store):
    steps = {0: {"mm": 10, "save": 300}, 1: {"mm": 10}, 2: {"mm": 10}, 3: {"save": 100}, 4: {}}
    keep(store, with_ops(0, steps))
    same_table(samples(store, kind="op"), "name per_step intermittent\n mm 10 False\n save 80 True")


def test_what_comes_in_one_step_of_three_is_no_series(store):
    keep(store, with_ops(0, {0: {"mm": 10, "save": 300}, 1: {"mm": 10}, 2: {"mm": 10}}))
    assert samples(store, kind="op")["name"].tolist() == ["mm"]
    keep(store, with_ops(1, {0: {"mm": 10, "save": 300}, 1: {"mm": 10}}))
    assert "save" in samples(store, kind="op")["name"].tolist()


def test_an_op_that_takes_no_time_is_no_series(store):
    keep(store, with_ops(0, {0: {"mm": 10, "view": 0}}))
    assert samples(store, kind="op")["name"].tolist() == ["mm"]


def test_missing_is_not_zero(store):
    keep(store, with_ops(0, {0: {"mm": MISSING, "add": MISSING}, 1: {"mm": 20}, 2: {"mm": 30}}))
    same_table(samples(store, kind="op"), "name per_step min\n mm 25 20")


def of_steps(*steps):
    """A rank with step times: a time, or (time, how many steps it is the mean of)."""
    found = [step if isinstance(step, tuple) else (step, 1) for step in steps]
    rows = tuple(StepRow(at, at, breakdown(duration_ns=ns), count) for at, (ns, count) in enumerate(found))
    return replace(capture(0), rows=Rows(overall=breakdown(), steps=rows, tables={}))


def test_one_slow_step_is_in_the_mean_step_and_not_in_the_step(store):
    keep(store, of_steps(10, 20, 90))
    same_table(samples(store, kind="run"), "name per_step\n step 20\n mean_step 40")


def test_the_mean_of_many_steps_counts_as_many_times(store):
    keep(store, of_steps(80, 80, (20, 8)))
    same_table(samples(store, kind="run"), "name per_step\n step 20\n mean_step 32")


def test_a_peak_is_the_largest_of_all_steps_and_ranks(store):
    first = [capture(0, world_size=2, peak_allocated_bytes=64), capture(1, world_size=2, peak_allocated_bytes=32)]
    keep(store, *first)
    (peak,) = samples(store, kind="run")[lambda rows: rows["name"] == "peak memory"]["per_step"]
    assert peak == 64


def test_a_row_that_stands_for_several_steps_counts_as_their_mean(store):
    keep(store, with_ops(0, {0: {"mm": 300}}, steps={0: 10}))
    same_table(samples(store, kind="op"), "name per_step\n mm 30")
    assert samples(store, kind="op")["steps"].tolist() == [10]


def test_over_ranks_it_is_the_median_of_those_of_a_stage_that_have_it(store):
    first = [with_ops(rank, {0: {"mm": time}}, stage=0, world_size=4) for rank, time in enumerate((100, 200, 600))]
    last = with_ops(3, {0: {"mm": 400, "loss": 50}}, stage=1, world_size=4)
    keep(store, *first, last)
    # mm: stage 0 has 200, stage 1 has 400; loss: only one stage has it
    same_table(samples(store, kind="op"), "name per_step min max rank_spread\n loss 50 50 50 -\n mm 300 100 600 2.5")


def test_host_time_stands_in_without_device_activity(store):
    keep(store, with_ops(0, {0: {"mm": 10}}, timeline="host"))
    assert set(samples(store, kind="op")["metric"]) == {"host_self_ns"}


def with_calls(rank, *steps, **more):
    """A rank timed on the host, with per step the own time of mm, and what it would be by quartile and by median."""
    own = with_ops(rank, {step: {"mm": times[0]} for step, times in enumerate(steps)}, timeline="host", **more)
    by_quartile, by_median = (np.array([times[at] for times in steps]) for at in (1, 2))
    tables = own.rows.tables
    op = tables["op"] | {"self_by_quartile_ns": by_quartile, "self_by_median_ns": by_median}
    return replace(own, rows=replace(own.rows, tables=tables | {"op": op}))


def by_calls(store):
    return samples(store, kind="op")[["per_step", "by_quartile", "by_median"]].values.tolist()


def test_times_by_calls_are_medians_over_steps_and_ranks_too(store):
    first = with_calls(0, (900, 60, 100), (100, 50, 80), (120, 40, 90), world_size=2)
    keep(store, first, with_calls(1, (110, 70, 110), world_size=2))
    assert by_calls(store) == [[(120 + 110) / 2, (50 + 70) / 2, (90 + 110) / 2]]


def test_times_by_calls_of_some_ranks_say_nothing_of_the_others(store):
    keep(store, with_calls(0, (100, 50, 80), world_size=2), with_calls(1, (100, MISSING, MISSING), world_size=2))
    assert all(map(pd.isna, by_calls(store)[0][1:]))


def test_times_by_calls_of_shapes_sum_up_to_those_of_the_name(store):
    own = with_ops(0, {0: {("mm", "[2]"): 30, ("mm", "[4]"): 70}}, timeline="host")
    op = own.rows.tables["op"] | {"self_by_median_ns": np.array([20, 60]), "self_by_quartile_ns": np.array([10, 50])}
    keep(store, replace(own, rows=replace(own.rows, tables=own.rows.tables | {"op": op})))
    found = samples(store, kind="op_name")
    assert found[["name", "per_step", "by_quartile", "by_median"]].values.tolist() == [["mm", 100, 60, 80]]


def test_shapes_modules_and_phases_sum_up_to_series_of_their_own(store):
    named = {"module": "Net_0/Linear_0", "phase": "forward"}
    ops = [("mm", 100, {"input_shapes": "[2]", **named}), ("mm", 50, {"input_shapes": "[4]", **named}), ("add", 7)]
    save(store, ops=ops, kernels=[], steps=2)
    same_table(
        samples(store)[lambda rows: rows["kind"] != "run"],
        """
        kind    name            input_shapes part     per_step
        module  Net_0/Linear_0  ''           forward  150
        op      add             ''           ''         7
        op      mm              [2]          ''       100
        op      mm              [4]          ''        50
        op_name add             ''           ''         7
        op_name mm              ''           ''       150
        phase   forward         ''           ''       150
        """,
    )


def test_kernels_collectives_memory_and_api_are_families_of_their_own(store):
    save(
        store,
        kernels=[("gemm", 80, {"calls": 2}), ("nccl", 30, {"category": "communication"})],
        communication=[("all_reduce", 30, {"exposed_ns": 20})],
        memory=[("aten::mm", 512)],
        api=[("cudaLaunchKernel", 9)],
    )
    same_table(
        samples(store)[lambda rows: rows["kind"].isin(["kernel", "communication", "memory", "api"])],
        """
        kind           metric      name             part         per_step  calls_per_step
        api            self_ns     cudaLaunchKernel runtime      9      1
        communication  exposed_ns  all_reduce       dp,_1.00_KiB 20     1
        communication  total_ns    all_reduce       dp,_1.00_KiB 30     1
        kernel         total_ns    gemm             ''           80     2
        memory         bytes       aten::mm         ''           512    1
        """,
    )


def test_idle_time_has_a_series_by_cause_all_places_together(store):
    save(store, steps=2, idle=[("data loading", "next", 30), ("data loading", "iter", 20), ("unknown", "", 7)])
    found = samples(store, kind="run")
    same_table(
        found[found["metric"] == "idle_cause_ns"],
        """
        metric        name               per_step  share
        idle_cause_ns idle:_data_loading 50        0.05
        """,
    )


def test_the_run_as_a_whole_has_series_too(store):
    save(store, steps=3, step_ns=1000, e2e_ns=500, peak_allocated_bytes=64)
    same_table(
        samples(store, kind="run"),
        """
        metric               name        per_step  share
        compute_ns           compute     100    0.1
        duration_ns          step        1000   1
        idle_ns              idle_time   400    0.4
        mean_step_ns         mean_step   1000   1
        peak_allocated_bytes peak_memory 64     -
        """,
    )


def test_ranks_that_come_later_change_the_number_as_if_they_had_come_at_once(store):
    ranks = [with_ops(rank, {0: {"mm": 100 * (rank + 1)}}, world_size=3) for rank in range(3)]
    once = keep(store, *ranks, version="once")
    later = [
        replace(one, sources=(replace(one.sources[0], digest=bytes([rank] * 16)),)) for rank, one in enumerate(ranks)
    ]
    for rank in (2, 0, 1):
        found = keep(store, later[rank], version="later")
    assert found != once
    pd.testing.assert_frame_equal(
        samples(store, once).drop(columns="run_id"), samples(store, found).drop(columns="run_id")
    )
    same_table(samples(store, found, "op"), "name per_step\n mm 200")


def test_samples_follow_a_run_to_another_workload_configuration_or_device(store):
    save(store, of_run={"configuration": {"batch": "32"}})
    before = samples(store)
    edits.edit_all(store, [1], workload="bert")
    after = samples(store)
    assert not set(before["series_id"]) & set(after["series_id"])
    pd.testing.assert_frame_equal(before.drop(columns="series_id"), after.drop(columns="series_id"))
    assert count_rows(store)["series"] == len(after), "series of a workload without runs are forgotten"
    edits.edit_all(store, [1], version="v9")
    assert samples(store)["series_id"].tolist() == after["series_id"].tolist(), "a version is no part of a series"


def test_a_purged_run_leaves_no_samples(store):
    save(store, runs=2)
    edits.delete_all(store, [1], "wrong", purge=True)
    assert samples(store, 1).empty
    assert len(samples(store, 2)) > 0


def test_making_them_again_changes_nothing(store):
    save(store, ranks=2, steps=3, communication=[("all_reduce", 5)], memory=[("aten::mm", 8)], api=[("launch", 3)])
    before = samples(store)
    store.transact(lambda connection: refresh(connection, [1]))
    pd.testing.assert_frame_equal(before, samples(store))


names = st.sampled_from(["mm", "add", ("mm", "[2]"), "softmax"])
times = st.one_of(st.integers(0, 3), st.integers(10**3, 10**12), st.just(MISSING))
steps_of_a_rank = st.dictionaries(st.integers(-1, 4), st.dictionaries(names, times, max_size=4), max_size=5)


@given(ranks=st.lists(st.tuples(st.sampled_from([None, 0, 1]), steps_of_a_rank), min_size=1, max_size=4))
def test_they_are_what_a_slow_reckoning_from_the_detail_rows_gives(store, ranks):
    number = len(ranks)
    captures = [with_ops(rank, own, stage=stage, world_size=number) for rank, (stage, own) in enumerate(ranks)]
    # a run with fewer ranks than those before it waits for the others
    run_id = keep(store, *captures, workload=f"{number} ranks", started_at_ns=None)
    found = samples(store, run_id)
    of_ops = found[found["kind"].isin(["op", "op_name"])]
    got = {(row.kind, row.name, row.input_shapes): row.per_step for row in of_ops.itertuples(index=False)}
    expected = slowly(store, run_id)
    assert got.keys() == expected.keys()
    for key, value in expected.items():
        assert got[key] == pytest.approx(value, rel=1e-12)


def slowly(store, run_id) -> dict:
    """The value of every op and op name, from the rows that queries give, in plain loops."""
    rows = queries.ops(store, [run_id], by=("stage", "rank", "step")).frame
    captures = queries.captures(store, [run_id]).frame
    steps = queries.steps(store, [run_id]).frame
    stage_of = {row.rank: -1 if pd.isna(row.stage) else row.stage for row in captures.itertuples()}
    values: dict = {}
    for rank, stage in stage_of.items():
        marked = steps[steps["rank"] == rank]["step"].tolist()
        own = rows[rows["rank"] == rank]
        grains = {("op", row.name, row.input_shapes) for row in own.itertuples(index=False)}
        grains |= {("op_name", name, "") for _, name, _ in grains}
        for kind, name, shapes in grains:
            mine = own[(own["name"] == name) & ((own["input_shapes"] == shapes) | (kind == "op_name"))]
            sums = []
            for step in marked:
                cells = mine[mine["step"] == step]["device_self_ns"]
                known = [int(cell) for cell in cells if not pd.isna(cell)]
                if known or not len(cells):
                    sums.append(float(sum(known)))
            value = (median(sums) or mean(sums)) if sums else 0
            is_once = len(sums) >= 3 and sum(number > 0 for number in sums) == 1
            if value > 0 and not is_once:
                values.setdefault((kind, name, shapes), {}).setdefault(stage, []).append(value)
    return {key: mean(median(numbers) for numbers in stages.values()) for key, stages in values.items()}


def test_thousands_of_series_take_little_room(memory_store):
    ops = [(f"op{number}", 1000 + number, {"input_shapes": f"[{number}, 128]"}) for number in range(2000)]
    save(memory_store, ops=ops, kernels=[], steps=3)
    with memory_store.connect() as connection:
        size = connection.exec_driver_sql("SELECT SUM(pgsize) FROM dbstat WHERE name LIKE '%sample%'").scalar_one()
    assert size / count_rows(memory_store)["sample"] < 100
