"""A choice of steps: every section then counts these steps alone, on each side its own."""

from __future__ import annotations

import pandas as pd
import pytest
from msgspec.structs import replace

from tests.factories import EPOCH_NS, capture, record, save
from tracker.compare import diff, show
from tracker.errors import UsageError
from tracker.profile import Capture
from tracker.results import DIFF_COLUMNS, VERDICT_COLUMNS, DiffOptions, ShowOptions
from tracker.store import Store, save_run

_MAY_BE_EMPTY = {
    "idle",
    "input_operations",
    "input_queues",
    "operator_arguments",
    "kernel_metrics",
    "op_details",
    "op_kernels",
    "memory_details",
    "memory_peak",
    "memory_peak_totals",
    "memory_blocks",
    "environment",
}


def everything(scale: int, steps: list[int]) -> dict[str, object]:
    """Something of every kind in each of `steps`; all times and sizes are multiples of `scale`."""
    links = {"links": [("HCCS", 1000 * scale, {"transit_ns": 10 * scale})], "tasks": [("Notify_Wait", scale)]}
    return {
        "steps": steps,
        "step_ns": 1000 * scale,
        "e2e_ns": 200 * scale,
        "ops": [("mm", 100 * scale, {"module": "A_0"}), ("relu", 10 * scale)],
        "kernels": [("gemm", 100 * scale, {"type": "MatMul", "core_type": "AI_CORE"})],
        "communication": [("all_reduce", 50 * scale, links)],
        "memory": [("mm", 4096 * scale)],
        "api": [("cudaLaunchKernel", 7 * scale)],
        "idle": [("dependency", "gemm", 5 * scale)],
        "counters": [("dataset", "batch", "Time(us)", float(scale))],
        "peak_allocated_bytes": 1 << (10 + scale),
    }


def mixed(rank: int = 0, slow: int = 3) -> Capture:
    """Steps 10, 11 and what lies outside all steps at full speed, step 12 `slow` times as slow."""
    fast = capture(rank, **everything(1, [-1, 10, 11]))
    slowed = capture(rank, **everything(slow, [12]))
    tables = {}
    for name, table in fast.rows.tables.items():
        if name in ("op_key", "kernel_key", "memory_curve", "kernel_metric"):
            tables[name] = table
            continue
        moved = dict(slowed.rows.tables[name])
        if name in ("communication_task", "communication_link"):
            moved["communication"] = moved["communication"] + len(fast.rows.tables["communication"]["kind"])
        tables[name] = {
            column: [*values, *moved[column]] if isinstance(values, list) else _joined(values, moved[column])
            for column, values in table.items()
        }
    later = tuple(replace(step, start_ns=2000) for step in slowed.rows.steps)
    return replace(fast, rows=replace(fast.rows, tables=tables, steps=(*fast.rows.steps, *later)))


def _joined(one, other):
    return pd.concat([pd.Series(one), pd.Series(other)]).to_numpy()


def save_mixed(store: Store, version: str, *, runs: int = 1) -> None:
    for number in range(runs):
        started = EPOCH_NS + number * 10**13
        save_run(store, record(version, started_at_ns=started), [mixed()], formats=["torch_profiler"])


def same_numbers(one: pd.DataFrame, other: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(one, other, check_dtype=False)


@pytest.mark.parametrize("runs", [1, 2])
def test_chosen_steps_alone_enter_every_section(store: Store, runs):
    save_mixed(store, "all", runs=runs)
    for number in range(runs):
        started = EPOCH_NS + (number + 5) * 10**13
        save(store, "fast", **everything(1, [10, 11]), started_at_ns=started)
        save(store, "slow", **everything(3, [12]), started_at_ns=started)
    chosen = diff(store, "all", "all", options=DiffOptions(baseline_steps=(10, 11), candidate_steps=(12,)))
    alone = diff(store, "fast", "slow")
    for table in set(DIFF_COLUMNS) - {"environment"}:
        # a capture of one step knows of no others, so it says what lies outside: nothing
        one, other = (result.__getattribute__(table) for result in (chosen, alone))
        if table == "overall":
            other = other[other["metric"] != "outside_steps_kernel_total_ns"].reset_index(drop=True)
        judged = [name for name in VERDICT_COLUMNS if name in one]  # chosen steps are not
        same_numbers(one.drop(columns=judged), other.drop(columns=judged))
        assert len(one) or table in _MAY_BE_EMPTY, table
    assert chosen.explanation.delta_ns == alone.explanation.delta_ns == 2000
    assert (chosen.baseline.steps, chosen.candidate.steps) == (2, 1)
    assert (chosen.baseline.chosen_steps, chosen.candidate.chosen_steps) == ((10, 11), (12,))


def test_headline_and_notes_name_the_steps(store: Store):
    save_mixed(store, "v1")
    result = diff(store, "v1", "v1", options=DiffOptions(baseline_steps=(10, 11), candidate_steps=(12,)))
    assert result.headline.startswith("v1 (step 12) ran 200.0 % slower than v1 (steps 10,11): 1.00 -> 3.00 us per step")
    assert result.notes[0] == "Chosen: steps 10,11 of the baseline and step 12 of the candidate."
    chosen = result.environment.set_index("key").loc["chosen steps"]
    assert (chosen["baseline"], chosen["candidate"]) == ("10,11", "12")


def test_peak_memory_is_that_of_the_chosen_steps(store: Store):
    save_mixed(store, "v1")
    result = diff(store, "v1", "v1", options=DiffOptions(baseline_steps=(11,), candidate_steps=(12,)))
    peak = result.overall.set_index("metric").loc["peak_allocated_bytes"]
    assert (peak["baseline_value"], peak["candidate_value"]) == (1 << 11, 1 << 13)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((13,), "v1 has no step 13: it has steps 10-12; choose among these, .*"),
        ((9, 10, 13), "v1 has no step 9,13: .*"),
        ((-1,), "v1 has no step -1: .*"),
    ],
)
def test_a_step_that_is_not_there_is_an_error_that_lists_the_steps(store: Store, steps, message):
    save_mixed(store, "v1")
    with pytest.raises(UsageError, match=f"^{message}$"):
        diff(store, "v1", "v1", options=DiffOptions(candidate_steps=steps))
    with pytest.raises(UsageError, match=f"^{message}$"):
        show(store, "v1", options=ShowOptions(steps=steps))


def test_every_rank_and_run_of_a_side_must_have_a_chosen_step(memory_store: Store):
    captures = [capture(rank, world_size=2, steps=[5, 6 + rank]) for rank in (0, 1)]
    save_run(memory_store, record("v1"), captures, formats=["torch_profiler"])
    options = DiffOptions(baseline_steps=(7,))
    with pytest.raises(UsageError, match=r"^v1 has no step 7: rank 0 has steps 5,6; "):
        diff(memory_store, "v1", "v1", options=options)
    assert diff(memory_store, "run:1:rank1", "run:1:rank1", options=options).baseline.steps == 1


def test_what_the_profiler_says_of_no_step_is_left_out_and_told(store: Store):
    metrics = {"metrics": {"aic_mte2_time(us)": 0.05}}
    made = capture(steps=[1, 2], kernels=[("gemm", 100, metrics)])
    outside = capture(steps=[-1], counters=[("hbm", "HBM 0", "Read(MB/s)", 5.0), ("step_trace_time", "1", "Free", 1.0)])
    tables = {**made.rows.tables, "counter": outside.rows.tables["counter"]}
    save_run(store, record("v1"), [replace(made, rows=replace(made.rows, tables=tables))], formats=["torch_profiler"])
    told = "Left out, for the profiler does not say in which step they are: kernel metrics; counters of hbm."
    whole = show(store, "v1")
    assert (len(whole.kernel_metrics), len(whole.counters), whole.notes) == (1, 2, ())
    shown = show(store, "v1", options=ShowOptions(steps=(1,)))
    assert (len(shown.kernel_metrics), len(shown.counters)) == (0, 0)
    assert shown.notes == ("Chosen: step 1.", told)
    compared = diff(store, "v1", "v1", options=DiffOptions(baseline_steps=(1,)))
    assert (len(compared.kernel_metrics), len(compared.counters)) == (0, 0)
    assert compared.notes[-1] == told
    # all steps are no part of the capture: nothing has to be left out
    both = diff(store, "v1", "v1", options=DiffOptions(baseline_steps=(1, 2), candidate_steps=(1, 2)))
    assert (len(both.kernel_metrics), len(both.counters)) == (1, 1)


def test_show_sums_up_the_chosen_steps(store: Store):
    save_mixed(store, "v1")
    shown = show(store, "v1", options=ShowOptions(steps=(11, 12)))
    assert shown.steps["step"].tolist() == [11, 12]
    row = shown.overall.iloc[0]
    assert (row["duration_ns"], row["e2e_ns"], row["compute_ns"], row["steps"]) == (4000, 800, 400, 2)
    assert row["peak_allocated_bytes"] == 1 << 13
    parts = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")
    assert sum(row[part] for part in parts) == row["e2e_ns"]
    assert (shown.run["step_ns"], shown.run["e2e_ns"]) == (2000, 800)
    sums = {"ops": 440, "kernels": 400, "communication": 200, "api": 28}
    totals = {"ops": "device_self_ns"}
    assert {name: getattr(shown, name)[totals.get(name, "total_ns")].sum() for name in sums} == sums
    assert shown.communication_links["bytes"].sum() == 4000
    assert shown.counters["calls"].tolist() == [2]


def test_the_memory_curve_is_cut_to_the_chosen_steps(store: Store):
    points = [("device", time, time) for time in (-5, 0, 400, 999, 1001, 1500, 2500)]
    save(store, steps=[7, 8], step_ns=1000, curve=points)
    assert show(store, "v1", options=ShowOptions(steps=(8,))).memory_curve["time_ns"].tolist() == [1001, 1500]
    assert len(show(store, "v1").memory_curve) == 7


def test_sums_over_steps_leave_out_what_lies_outside(store: Store):
    save_mixed(store, "v1")
    shown, whole = show(store, "v1", options=ShowOptions(steps=(10, 11, 12))), show(store, "v1")
    by_step = show(store, "v1", options=ShowOptions(by=("step",)))
    assert [found.ops["calls"].sum() for found in (shown, whole, by_step)] == [6, 6, 6]
    assert {*shown.__struct_fields__} >= {"options", "notes"}
    assert shown.options.steps == (10, 11, 12)
