"""The model level: what the steps of a side wait for, and what is missing where nobody can tell."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from tests.factories import breakdown, capture, record, save
from tracker.compare import diff, show
from tracker.compare.bottleneck import THRESHOLDS
from tracker.profile import CPU, StepRow
from tracker.reports.views.bottleneck import sentence
from tracker.results import Bottleneck, ShowOptions
from tracker.store import Store, save_run

NO_LOADING = "data loading (the source does not say when a step waits for its data)"
NO_IDLE = "when the device idles in data loading (all of data loading counts)"
NO_DEVICE = "device utilisation (there is no device activity in the capture)"
NO_SPAN = "device utilisation (the source does not say how long the device worked)"


def device(
    busy_ns: int, loading_ns: int | None = None, idle_ns: int | None = None, *, step_ns: int = 1000,
    e2e_ns: int = 900, number: int = 0,
):  # fmt: skip
    """A step in which the device works for `busy_ns`, and idles in `idle_ns` of the data loading, by default in all."""
    whole = breakdown(
        duration_ns=step_ns, e2e_ns=e2e_ns, compute_ns=busy_ns, communication_ns=0, overlap_ns=0,
        exposed_communication_ns=0, copy_ns=0, exposed_copy_ns=0, idle_ns=e2e_ns - busy_ns, kernel_count=1,
        data_loading_ns=loading_ns, data_loading_idle_ns=loading_ns if idle_ns is None else idle_ns,
    )  # fmt: skip
    return StepRow(number, number * step_ns, whole)


def of(store: Store, *ranks: list[StepRow], runs: str = "v1", options: ShowOptions | None = None) -> Bottleneck:
    """The bottleneck of one run with these steps on its ranks."""
    captures = [with_steps(capture(rank, world_size=len(ranks)), steps) for rank, steps in enumerate(ranks)]
    save_run(store, record(runs), captures, formats=["torch_profiler"])
    found = show(store, runs, options=options).bottleneck
    assert found is not None
    return found


def with_steps(one, steps):
    whole = replace(steps[0].breakdown, duration_ns=10**9)
    return replace(one, rows=replace(one.rows, overall=whole, steps=tuple(steps)))


@pytest.mark.parametrize(
    ("busy_ns", "loading_ns", "bound"),
    [
        (799, 50, "host"),
        (800, 0, "mixed"),
        (900, 0, "mixed"),
        (901, 0, "device"),
        (901, 50, "device"),  # 5 % is not above 5 %
        (899, 51, "input"),
        (901, 51, "device"),  # the larger of the two
        (100, 300, "input"),  # a device that waits for data is no fault of the host
    ],
)
def test_the_thresholds_are_those_of_the_method(store: Store, busy_ns, loading_ns, bound):
    found = of(store, [device(busy_ns, loading_ns, e2e_ns=950)])
    assert found.bound == bound
    assert (found.device_utilisation, found.data_loading_share) == (busy_ns / 1000, loading_ns / 1000)
    assert found.possible_gain_share == loading_ns / 1000
    assert (found.missing, found.thresholds) == ((), THRESHOLDS)


@pytest.mark.parametrize(("waits_ns", "bound"), [(250, "host"), (249, "mixed"), (0, "mixed")])
def test_device_that_waits_for_its_own_work_is_no_matter_of_the_host(store: Store, waits_ns, bound):
    """It idles for 500 of 1000 ns: for the host in `waits_ns` of them, else for launched work that waits."""
    step = device(500, 0, e2e_ns=1000)
    waiting = replace(step, breakdown=replace(step.breakdown, host_idle_ns=waits_ns))
    found = of(store, [waiting])
    assert (found.bound, found.host_idle_share) == (bound, waits_ns / 1000)


def exchanging(busy_ns: int, exposed_ns: int, loading_ns: int = 0):
    """A step of 1000 ns in which the device works for `busy_ns`, of which communication is exposed for `exposed_ns`."""
    whole = breakdown(
        duration_ns=1000, e2e_ns=1000, compute_ns=busy_ns - exposed_ns, communication_ns=exposed_ns, overlap_ns=0,
        exposed_communication_ns=exposed_ns, copy_ns=0, exposed_copy_ns=0, idle_ns=1000 - busy_ns, kernel_count=1,
        data_loading_ns=loading_ns, data_loading_idle_ns=loading_ns,
    )  # fmt: skip
    return StepRow(0, 0, whole)


@pytest.mark.parametrize(
    ("busy_ns", "exposed_ns", "loading_ns", "host_ns", "bound"),
    [
        (950, 101, 0, None, "device"),  # it computes for 849
        (950, 500, 0, None, "communication"),
        (899, 100, 0, None, "mixed"),  # 10 % is not above 10 %
        (890, 101, 0, None, "communication"),
        (600, 200, 250, None, "input"),
        (500, 172, 0, 432, "host"),
        (500, 172, 0, 249, "communication"),  # launched work waits: no matter of the host
        (500, 172, 300, 432, "input"),  # 132 of the host beside the loader
        (500, 101, 0, None, "communication"),  # without launches nothing proves that the host is late
    ],
)
def test_bottleneck_is_the_largest_share_and_not_the_first(
    store: Store, busy_ns, exposed_ns, loading_ns, host_ns, bound
):
    step = exchanging(busy_ns, exposed_ns, loading_ns)
    found = of(store, [replace(step, breakdown=replace(step.breakdown, host_idle_ns=host_ns))])
    assert (found.bound, found.communication_share) == (bound, exposed_ns / 1000)


def test_first_collective_that_waits_is_no_waiting_of_a_usual_step(store: Store):
    """It waits 800 of its 801 ns for a rank that starts late; the four others transmit for 600 ns each."""
    steps = [replace(exchanging(900, 600), step=number) for number in range(5)]
    made = capture(
        communication=[("all_reduce", 600, {"wait_ns": 0, "exposed_wait_ns": 0, "transit_ns": 600})], steps=5
    )
    tables = dict(made.rows.tables)
    first = np.array([801, 600, 600, 600, 600])
    waits = np.array([800, 0, 0, 0, 0])
    tables["communication"] = {**tables["communication"], "total_ns": first, "exposed_ns": first, "wait_ns": waits,
                               "exposed_wait_ns": waits}  # fmt: skip
    made = replace(made, rows=replace(made.rows, steps=tuple(steps), tables=tables))
    save_run(store, record(), [made], formats=["torch_profiler"])
    found = show(store, "v1").bottleneck
    assert (found.bound, found.collective, found.waiting_share) == ("communication", "all_reduce", 0)


def test_exposed_communication_is_unknown_where_no_source_says_it(store: Store):
    assert of(store, [StepRow(0, 0, breakdown(duration_ns=1000))]).communication_share is None


@pytest.mark.parametrize(("idle_ns", "bound"), [(50, "mixed"), (51, "input"), (300, "input")])
def test_input_bound_is_judged_by_the_part_in_which_the_device_idles(store: Store, idle_ns, bound):
    """A loader of 30 % of the step that works beside the device costs nothing."""
    found = of(store, [device(890, 300, idle_ns, e2e_ns=1000)])
    assert (found.bound, found.data_loading_share, found.possible_gain_share) == (bound, 0.3, idle_ns / 1000)


def test_utilisation_is_the_median_of_steps_and_of_ranks(store: Store):
    """Steps of 0.9, 0.9 and a pause of 0.1 in 9 times their time: 0.9, not 0.24; ranks of 0.9, 0.8 and 0.3: 0.8."""
    pause = device(900, e2e_ns=8900, step_ns=9000, number=2)
    steps = [device(900), device(900, number=1), pause]
    found = of(store, steps, [device(800)], [device(300)])
    assert found.device_utilisation == pytest.approx(0.8)


def test_chosen_steps_alone_count(store: Store):
    steps = [device(500, 0), device(950, 0, e2e_ns=960, number=1)]
    assert of(store, steps, options=ShowOptions(steps=(1,))).bound == "device"


def test_several_runs_count_by_their_geometric_mean(store: Store):
    for place, busy in enumerate((400, 900)):
        one = with_steps(capture(started_at_ns=place), [device(busy)])
        save_run(store, record("v1", started_at_ns=place), [one], formats=["torch_profiler"])
    before, after = diff(store, "v1", "run:1").bottlenecks
    assert (before.device_utilisation, before.bound) == (pytest.approx(0.6), "host")
    assert (after.device_utilisation, after.bound) == (0.4, "host")


def test_utilisation_of_a_run_without_windows_stays_below_one(store: Store):
    """Read before steps were windows: markers of 10 ns on the host, in whose work the device is busy for 90 of 95."""
    assert of(store, [device(90, step_ns=10, e2e_ns=95)]).device_utilisation == 90 / 95


def test_what_of_a_capture_lies_outside_of_its_steps_is_known(store: Store):
    """Two steps of 1000, the device outlasts the second one by 100, and works over 4200 in all: 2100 are in no step."""
    steps = [device(900), device(1000, e2e_ns=1100, number=1)]
    one = with_steps(capture(), steps)
    rows = replace(one.rows, overall=replace(one.rows.overall, e2e_ns=4200))
    save_run(store, record(), [replace(one, rows=rows)], formats=["cann"])
    assert show(store, "v1").bottleneck.outside_steps_share == 0.5
    assert show(store, "v1", options=ShowOptions(steps=(1,))).bottleneck.outside_steps_share is None


def test_a_step_in_which_the_device_did_nothing_is_not_outside_of_the_steps(store: Store):
    idle = StepRow(1, 0, breakdown(duration_ns=1000))
    one = with_steps(capture(), [device(900), idle, device(900, number=2)])
    rows = replace(one.rows, overall=replace(one.rows.overall, e2e_ns=3000))
    save_run(store, record(), [replace(one, rows=rows)], formats=["cann"])
    assert show(store, "v1").bottleneck.outside_steps_share is None


def test_steps_that_hold_all_of_the_device_leave_nothing_outside(store: Store):
    assert of(store, [device(900), device(900, number=1)], [device(500)]).outside_steps_share == 0.0
    assert of(store, [StepRow(0, 0, breakdown(duration_ns=1000))], runs="v2").outside_steps_share is None


def test_without_markers_the_device_is_measured_by_its_own_span(store: Store):
    one = capture()
    whole = replace(device(800).breakdown, duration_ns=5000)
    rows = replace(one.rows, overall=whole, steps=(StepRow(0, 0, whole),))
    save_run(store, record(), [replace(one, rows=rows)], formats=["nsys_sqlite"])
    found = show(store, "v1").bottleneck
    assert (found.device_utilisation, found.utilisation_of) == (800 / 900, "e2e_ns")


def test_without_a_device_only_the_test_for_data_loading_applies(store: Store):
    host = [replace(row, breakdown=replace(row.breakdown, timeline="host")) for row in (device(990, 20),)]
    one = replace(with_steps(capture(), host), device=CPU)
    save_run(store, record(device=CPU), [one], formats=["torch_profiler"])
    found = show(store, "v1").bottleneck
    assert (found.bound, found.data_loading_share, found.device_utilisation) == (None, 0.02, None)
    assert found.missing == (NO_DEVICE,)


def test_a_log_knows_the_data_loading_and_nothing_of_the_device(store: Store):
    said = breakdown(timeline="host", duration_ns=100, data_loading_ns=30)
    one = capture()
    rows = replace(one.rows, overall=said, steps=(StepRow(0, 0, said),))
    save_run(store, record(), [replace(one, rows=rows)], formats=["training_log"])
    found = show(store, "v1").bottleneck
    assert (found.bound, found.possible_gain_share, found.missing) == ("input", 0.3, (NO_IDLE, NO_SPAN))


def test_what_the_profiler_says_of_its_gpus_stands_in_for_a_timeline(store: Store):
    said = breakdown(duration_ns=1000, data_loading_ns=1)
    counters = [
        ("device_summary", "GPU0", "Utilization (%)", 90.0),
        ("device_summary", "GPU1", "Utilization (%)", 80.0),
        ("device_summary", "CPU(Process)", "Utilization (%)", 100.0),
    ]
    one = capture(counters=counters)
    rows = replace(one.rows, overall=said, steps=(StepRow(0, 0, said),))
    save_run(store, record(), [replace(one, rows=rows)], formats=["paddle_summary"])
    assert show(store, "v1").bottleneck.device_utilisation == 0.85


def test_what_nobody_says_is_missing_and_never_guessed(store: Store):
    save(store, "v1", steps=2, step_ns=1000, e2e_ns=900, kernels=[("gemm", 850)])
    found = show(store, "v1").bottleneck
    assert (found.bound, found.data_loading_share, found.possible_gain_share) == ("mixed", None, None)
    assert found.missing == (NO_LOADING,)


def test_of_data_loading_only_that_can_be_won_in_which_the_device_idles(store: Store):
    """The loader takes 30 % of the step; in 10 % of it the device still works."""
    step = device(600, 300)
    found = of(store, [replace(step, breakdown=replace(step.breakdown, data_loading_idle_ns=200))])
    assert (found.data_loading_share, found.possible_gain_share) == (0.3, 0.2)


def test_where_nobody_knows_when_the_device_idles_all_of_data_loading_is_the_most(store: Store):
    found = of(store, [device(600, 300)])
    assert (found.data_loading_share, found.possible_gain_share) == (0.3, 0.3)


def test_the_kind_of_collective_is_named_and_how_much_of_it_waits(store: Store):
    """30 of 40 ns exposed are an all_to_all, 20 of them waiting for other ranks; the all_reduce waits for none."""
    calls = [("all_to_all", 30, {"exposed_wait_ns": 20}), ("all_reduce", 10, {"exposed_wait_ns": 0})]
    made = capture(communication=calls)
    save_run(store, record(), [with_steps(made, [exchanging(950, 300)])], formats=["torch_profiler"])
    found = show(store, "v1").bottleneck
    assert (found.collective, found.waiting_share) == ("all_to_all", 0.5)
    assert "mostly all_to_all, and 50.0 % of that is waiting for other ranks" in sentence(found)
