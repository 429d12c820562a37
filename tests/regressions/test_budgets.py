"""Budgets of the settings: the usual run of a version keeps them or not, and no single run decides."""

from __future__ import annotations

from itertools import count

import pytest
from msgspec.structs import replace

from tests.advice import made
from tests.factories import EPOCH_NS, capture, record, save
from tracker.advice.stored import keep
from tracker.compare import diffs
from tracker.config import Budget
from tracker.errors import UsageError
from tracker.regressions.board import board
from tracker.regressions.history import history
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update
from tracker.results import HistoryOptions
from tracker.results.budgets import gate_of_budgets
from tracker.store import save_run

MS = 10**6
STEP = Budget(series="step", at_most="120 ms")


@pytest.fixture
def shop(store):
    """A database to which versions come, each with the steps of its runs in ms; `mm` is all of a step but 10 ms."""
    starts = count()

    def add(version, *steps_ms, **more):
        for ms in steps_ms:
            start = EPOCH_NS + next(starts) * 10**13
            ops = [("mm", int((ms - 10) * MS)), ("add", 10 * MS)]
            save(store, version, ops=ops, steps=3, step_ns=int(ms * MS), started_at_ns=start, **more)
        update(store, tracks_of(store))

    store.add = add
    return store


def judged(store, *budgets):
    store.budgets = budgets
    return findings(store).budgets


def verdict_of(store, budget):
    (one,) = judged(store, budget)
    return one.verdict


@pytest.mark.parametrize("odd", [60, 400])
@pytest.mark.parametrize("runs", [[118, 119], [117, 118, 119]])
def test_budget_is_met_whatever_one_odd_run_does(shop, runs, odd):
    shop.add("v1", *runs, odd)
    assert verdict_of(shop, STEP) == "met"


@pytest.mark.parametrize("odd", [60, 400])
@pytest.mark.parametrize("runs", [[121, 122], [121, 122, 123]])
def test_budget_is_not_met_whatever_one_odd_run_does(shop, runs, odd):
    shop.add("v1", *runs, odd)
    assert verdict_of(shop, STEP) == "not met"


def test_single_run_is_not_judged(shop):
    shop.add("v1", 300)
    (one,) = judged(shop, STEP)
    assert (one.verdict, one.reason) == ("not judged", "it has 1 run, which never decides")
    assert gate_of_budgets([one], [STEP]).code == 4


def test_two_runs_on_two_sides_are_not_judged(shop):
    shop.add("v1", 100, 300)
    assert verdict_of(shop, STEP) == "not judged"
    shop.add("v2", 130, 300)
    assert verdict_of(shop, STEP) == "not met"


def test_least_is_the_other_side(shop):
    shop.add("v1", 100, 101, 102)
    assert verdict_of(shop, Budget(series="mm", at_least="80 ms")) == "met"
    (low,) = judged(shop, Budget(series="mm", at_least="95 ms"))
    assert low.words == "mm of v1 is 91 ms (median of 3 runs), at least 95 ms is wanted"


def test_budget_is_judged_on_the_newest_version(shop):
    shop.add("v1", 130, 130, 130)
    shop.add("v2", 110, 110, 110)
    assert verdict_of(shop, STEP) == "met"


def test_budget_is_for_workloads_and_devices_that_fit(shop):
    shop.add("v1", 130, 130, 130)
    for patterns in ({"workload": "bert*"}, {"device": "A100*"}):
        assert judged(shop, Budget(series="step", at_most="120 ms", **patterns)) == ()
    assert verdict_of(shop, Budget(series="step", at_most="120 ms", workload="G*", device="*")) == "not met"


def test_series_that_no_run_has_is_not_judged(shop):
    shop.add("v1", 100, 100, 100)
    (one,) = judged(shop, Budget(series="stepp", at_most="120 ms"))
    assert (one.verdict, one.reason) == ("not judged", "none of its runs has this number")


def test_every_screen_says_which_budget_is_not_met(shop):
    shop.add("v1", 130, 131, 132)
    shop.add("v2", 130, 131, 132)
    (one,) = judged(shop, STEP)
    assert one.sentence.endswith("step of v2 is 131 ms (median of 3 runs), at most 120 ms is wanted.")
    assert one.sentence.startswith("Budget not met: gpt, ")
    assert board(shop).budgets == (one,)
    assert history(shop, options=HistoryOptions(key="step")).budgets == (one,)
    assert history(shop, options=HistoryOptions(key="mm")).budgets == ()
    (of_diff,) = diffs(shop, ["v1", "v2"])
    assert of_diff.budgets == (one,)
    assert [found.verdict for found in diffs(shop, ["v1", "run:4"])[0].budgets] == ["not judged"]


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [(300, "met"), ("300 images/s", "met"), ("500 images/s", "not met"), ("300 tokens/s", "not judged")],
)
def test_throughput_counts_what_its_limit_names(store, limit, verdict):
    settings = {"profiler": "off", "throughput_unit": "images/s"}
    for start in range(3):
        one = capture(settings=settings, ops=(), kernels=(), steps=2, started_at_ns=EPOCH_NS + start * 10**13)
        rows = one.rows
        steps = [replace(own, breakdown=replace(own.breakdown, samples_per_second=400.0)) for own in rows.steps]
        save_run(store, record("v1"), [replace(one, rows=replace(rows, steps=tuple(steps)))], formats=["training_log"])
    assert verdict_of(store, Budget(series="throughput", at_least=limit)) == verdict


def test_mfu_is_that_of_advise(store):
    """The model needs 1e13 FLOPs a step; in 100 ms that is 100 TFLOP/s, of an H100 that can do 989."""
    product = made.op("aten::mm", (4300, 10_000), (10_000, 11_500))
    of_run = {"configuration": {"flops_per_step": "1e13"}}
    for _ in range(3):
        ops = [("aten::mm", 4 * MS, {key: value for key, value in product.items() if key != "name"})]
        kernels = [made.kernel(product, 4, category="matmul")]
        made.save(store, times={"compute": 60, "idle": 0}, ops=ops, kernels=kernels, of_run=of_run)
    keep(store, [1, 2, 3])
    (one,) = judged(store, Budget(series="mfu", at_least="12 %"))
    assert (one.verdict, one.value_words) == ("not met", "10.111 %")


def test_gate_ends_with_the_worst_of_all_budgets(shop):
    shop.add("v1", 100, 101, 102)
    loose, tight, other = STEP, Budget(series="step", at_most="50 ms"), Budget(series="mfu", at_least=0.4)
    codes = []
    for budgets in ([loose], [loose, other], [loose, other, tight]):
        codes.append(gate_of_budgets(judged(shop, *budgets), budgets).code)
    assert codes == [0, 4, 1]
    with pytest.raises(UsageError, match="budget needs a budget"):
        gate_of_budgets((), ())
