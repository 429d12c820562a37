"""The verdicts of one version: stories of a few runs, and the laws of the judge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tracker.detect import Reason, Verdict, Window, judge_version, series_of, shared_factor
from tracker.detect.power import detectable_change, runs_to_decide
from tracker.detect.sides import Statistic, exact_changes

STEADY = [100.0, 101.0, 99.0, 100.5, 99.5, 100.0, 101.0, 99.0]


def judged(rows, new, *, device_timed=False, step=1000.0, by_calls=None, shift_of_calls=0.0):
    """Verdicts and reasons of rows {key: numbers}; the last `new` runs are the version, the others its level.

    `by_calls`: of each row the same by the lower quartile and by the median of the calls; `shift_of_calls`: their
    common-mode shift in the new runs, a log.
    """
    keys = [(kind, metric, name, "", "", "") for kind, metric, name in rows]
    values = np.array(list(rows.values()), dtype=float)
    series = series_of(keys, device_timed=device_timed)
    logs = np.log(values)
    logs = np.where(series.more_is_better[:, None], -logs, logs)
    runs = values.shape[1]
    is_new = np.arange(runs) >= runs - new
    base = np.broadcast_to(~is_new, values.shape)
    shift = shared_factor(logs[series.leaf], ~is_new, is_new)
    steps = [np.full(runs, step), *(row for key, row in zip(keys, values, strict=True) if key[2] == "step")][-1]
    window = Window(logs, np.ones(values.shape, dtype=bool), shift, steps)
    if by_calls is not None:
        times = np.log(np.array(by_calls, dtype=float))
        window = replace(window, by_calls=times, by_calls_shift=np.tile(shift_of_calls * is_new, (2, 1)))
    found = judge_version(window, series, base, is_new)
    return [Verdict(code).name for code in found.verdict], [Reason(code).name for code in found.reason], found


def op(name):
    return ("op", "host_self_ns", name)


STEP = ("run", "duration_ns", "step")
MACHINE = {op(f"op{number:02}"): STEADY for number in range(24)}


@pytest.mark.parametrize(
    ("new", "verdict", "reason"),
    [
        ([110.0, 111.0], "REGRESSED", "NONE"),
        ([90.0, 91.0], "IMPROVED", "NONE"),
        ([110.0], "SUSPECT", "FEW_NEW"),
        ([100.0, 100.2], "UNCHANGED", "RATIO"),
        ([102.0, 102.1], "BELOW_LIMIT", "RATIO"),
        ([110.0, 100.4], "INCONCLUSIVE", "OVERLAP"),
    ],
)  # fmt: skip
def test_eight_runs_against_new_ones(new, verdict, reason):
    verdicts, reasons, _ = judged({op("mm"): STEADY + new}, len(new))
    assert (verdicts, reasons) == ([verdict], [reason])


def test_two_base_runs_are_too_few():
    assert judged({op("mm"): [100.0, 101.0, 150.0, 151.0]}, 2)[:2] == (["TOO_FEW_RUNS"], ["FEW_BASE"])


def test_one_slow_run_of_two_is_not_significant():
    verdicts, reasons, _ = judged({op("mm"): [100.0, 101.0, 99.0, 300.0, 102.0]}, 2)
    assert (verdicts, reasons) == (["INCONCLUSIVE"], ["SIGNIFICANCE"])


NOISY = [100.0, 118.0, 86.0, 108.0, 90.0, 116.0, 117.0, 89.0]


UNKNOWN = [[np.nan] * 10]


def test_what_varied_least_is_judged():
    # sums of 86 to 118 before and 118.5, 119 after say little; by the median call they took 80 and now 95
    by_median = [[80.0, 80.5, 79.5, 80.2, 79.8, 80.1, 80.4, 79.7, 95.0, 95.5]]
    row = {op("mm"): [*NOISY, 118.5, 119.0]}
    assert judged(row, 2)[0] == ["INCONCLUSIVE"]
    verdicts, _, found = judged(row, 2, by_calls=[UNKNOWN, by_median])
    assert (verdicts, found.statistic.tolist()) == (["REGRESSED"], [Statistic.CALL_MEDIAN])
    assert np.expm1(found.change[0]) == pytest.approx(0.190, abs=0.001), "95.25 / 80.02"
    assert np.expm1(found.raw_change[0]) == pytest.approx(0.162, abs=0.001), "the sum is printed, 118.75 / 102.2"
    assert found.contribution[0] == pytest.approx(0.0165, abs=1e-4), "and makes the part of the step"


def test_of_two_that_vary_less_the_one_that_varies_least_is_judged():
    by_quartile = [[60.0, 60.1, 59.9, 60.0, 60.0, 60.1, 59.9, 60.0, 72.0, 72.1]]
    by_median = [[80.0, 80.5, 79.5, 80.2, 79.8, 80.1, 80.4, 79.7, 95.0, 95.5]]
    found = judged({op("mm"): [*NOISY, 118.5, 119.0]}, 2, by_calls=[by_quartile, by_median])[2]
    assert found.statistic.tolist() == [Statistic.CALL_QUARTILE]
    assert np.expm1(found.change[0]) == pytest.approx(0.201, abs=0.001), "72.05 / 60"


def test_suspect_that_chance_explains_is_not_named_and_waits():
    # one run at 122 beyond 86 to 118: one of many operators does that every few versions
    verdicts, reasons, found = judged({op("mm"): [*NOISY, 122.0]}, 1)
    assert (verdicts, reasons, found.suspect.tolist()) == (["INCONCLUSIVE"], ["SIGNIFICANCE"], [1])
    assert judged({op("mm"): [*NOISY, 200.0]}, 1)[0] == ["SUSPECT"]


def test_suspect_step_is_always_named():
    # a gate waits for it
    assert judged({op("mm"): [*STEADY, 100.0], STEP: [*NOISY, 140.0]}, 1)[0] == ["UNCHANGED", "SUSPECT"]


def test_usual_call_alone_is_no_change():
    # most calls are slower, the sums are among those before
    by_median = [[90.0, 90.5, 89.5, 90.2, 89.8, 90.1, 90.4, 89.7, 99.0, 99.5]]
    row = {op("mm"): [*NOISY, 105.0, 107.0]}
    assert judged(row, 2, by_calls=[UNKNOWN, by_median])[0] == ["INCONCLUSIVE"]


def test_some_calls_slower_are_seen_in_the_sum():
    by_median = [[90.0, 90.1, 89.9, 90.0, 90.0, 90.0, 90.0, 90.0, 90.0, 90.1]]
    verdicts, _, found = judged({op("mm"): [*STEADY, 150.0, 151.0]}, 2, by_calls=[UNKNOWN, by_median])
    assert (verdicts, found.statistic.tolist()) == (["REGRESSED"], [Statistic.PRINTED])


def test_machine_alone_makes_no_change_of_the_usual_call():
    # the usual call takes 79.2 instead of 80 while the machine is 5 % slower: as measured that is 1 % less
    by_median = [[80.0, 80.1, 79.9, 80.0, 80.0, 80.1, 79.9, 80.0, 79.2, 79.2]]
    row = {op("mm"): [*NOISY, 99.0, 101.0]}
    found = judged(row, 2, by_calls=[UNKNOWN, by_median], shift_of_calls=0.05)[2]
    assert found.statistic.tolist() == [Statistic.PRINTED]
    found = judged(row, 2, by_calls=[UNKNOWN, by_median], shift_of_calls=0.005)[2]
    assert found.statistic.tolist() == [Statistic.CALL_MEDIAN]


def test_sum_is_judged_where_a_run_lacks_calls_or_the_level_is_short():
    by_median = [[90.0, 90.5, 89.5, 90.2, 89.8, 90.1, 90.4, np.nan, 99.0, 99.5]]
    row = [*NOISY, 110.0, 112.0]
    assert judged({op("mm"): row}, 2, by_calls=[UNKNOWN, by_median])[2].statistic.tolist() == [Statistic.PRINTED]
    three = judged({op("mm"): row[5:]}, 2, by_calls=[[UNKNOWN[0][5:]], [[90.0, 90.1, 90.2, 99.0, 99.5]]])[2]
    assert three.statistic.tolist() == [Statistic.PRINTED], "3 runs of the level"


def test_one_bad_run_of_the_level_hides_nothing():
    verdicts, _, found = judged({op("mm"): [*STEADY[:-1], 160.0, 110.0, 111.0]}, 2)
    assert (verdicts, found.base_runs[0]) == (["REGRESSED"], 7)
    assert np.expm1(found.change[0]) == pytest.approx(0.104, abs=0.001), "110.5 against 100.1, without the 160"


def test_two_bad_runs_are_a_level_of_their_own():
    verdicts, _, found = judged({op("mm"): [*STEADY[:-2], 160.0, 161.0, 110.0, 111.0]}, 2)
    assert (verdicts, found.base_runs[0]) == (["INCONCLUSIVE"], 8)


def test_base_run_as_slow_as_the_new_ones_counts():
    # one of eight runs was at 112 before: 110 and 111 are nothing new
    verdicts, reasons, _ = judged({op("mm"): [*STEADY[:-1], 112.0, 110.0, 111.0]}, 2)
    assert (verdicts, reasons) == (["INCONCLUSIVE"], ["OVERLAP"])


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        ([110.0, 104.0], "INCONCLUSIVE"),  # 104 < 105
        ([110.0, 104.0, 111.0], "REGRESSED"),  # one pair of 24 the wrong way round
        ([110.0, 104.0, 104.5], "INCONCLUSIVE"),  # two pairs
        ([110.0, 104.0, 104.5, 111.0], "REGRESSED"),  # two pairs of 32
        ([110.0, 111.0, 112.0, 110.0, 99.5], "REGRESSED"),  # 99.5 stands alone, and is left out
        ([110.0, 111.0, 112.0, 106.0, 102.0], "REGRESSED"),  # 102 does not: one pair of 40 the wrong way round
    ],
)
def test_the_more_runs_the_more_pairs_may_cross(new, verdict):
    level = [100.0, 101.0, 99.0, 100.5, 99.5, 100.0, 101.0, 105.0]
    assert judged({op("mm"): level + new}, len(new))[0] == [verdict]


def test_two_base_runs_at_the_new_level_are_a_jump():
    # beyond all of them by a hair
    verdicts, reasons, _ = judged({op("mm"): [*STEADY[:-2], 109.5, 109.8, 110.0, 110.2, 110.1]}, 3)
    assert (verdicts, reasons) == (["INCONCLUSIVE"], ["OVERLAP"])


def test_run_of_a_slow_machine_is_left_out_of_the_step():
    # all operators of run 7 took 40 % longer; mm is 3 times as slow in the new runs: +10 % of the step
    rows = {key: [*row[:6], 1.4 * row[6], row[7], 100.0, 100.5] for key, row in MACHINE.items()}
    rows[op("op00")][-2:] = [340.0, 342.0]
    steps = [sum(column) for column in zip(*rows.values(), strict=True)]
    verdicts, _, found = judged({**rows, STEP: steps}, 2)
    assert (verdicts[0], verdicts[-1]) == ("REGRESSED", "REGRESSED")
    assert (found.base_runs[0], found.base_runs[-1]) == (8, 7)


def test_level_of_few_runs_has_no_outlier():
    assert judged({op("mm"): [100.0, 101.0, 99.0, 100.0, 160.0, 110.0, 111.0]}, 2)[2].base_runs[0] == 5


def test_change_of_a_small_operator_is_below_the_limit():
    # 0.01 % of the step more
    verdicts, reasons, _ = judged({op("mm"): [*STEADY, 110.0, 111.0]}, 2, step=1e5)
    assert (verdicts, reasons) == (["BELOW_LIMIT"], ["CONTRIBUTION"])


def test_less_throughput_is_worse():
    rate = ("run", "samples_per_second", "throughput")
    assert judged({rate: [*STEADY, 85.0, 86.0]}, 2)[0] == ["REGRESSED"]


def test_machine_that_slows_down_is_drift():
    rows = {key: [*row, 108.0, 108.5] for key, row in MACHINE.items()}
    verdicts, _, found = judged({**rows, STEP: [24 * value for value in [*STEADY, 108.0, 108.5]]}, 2)
    assert set(verdicts[:-1]) == {"UNCHANGED"}
    assert verdicts[-1] == "DRIFT"
    assert found.raw_change[0] == pytest.approx(np.log(108.25 / 100), abs=1e-3)


def test_part_that_moved_as_the_machine_is_drift_beside_a_wait():
    # all 24 operators and their sum take 8 % longer, and data are 600 late: of the step that is a change
    rows = {key: [*row, 108.0, 108.1] for key, row in MACHINE.items()}
    compute = [24 * value for value in [*STEADY, 107.5, 107.6]]
    waits = [10.0] * 8 + [610.0, 611.0]
    rows |= {("run", "compute_ns", "compute"): compute, ("run", "data_loading_ns", "data loading"): waits}
    rows[STEP] = [one + wait for one, wait in zip(compute, waits, strict=True)]
    verdicts, _, _ = judged(rows, 2)
    assert verdicts[-3:] == ["DRIFT", "REGRESSED", "REGRESSED"]


def test_step_of_which_more_than_the_limit_is_left_is_no_drift():
    # operators take 5 % longer and the step 12 %: 7 % are left, of a machine that varied by 12 % before
    rows = {key: [94.0, 106.0] * 4 + [105.0, 105.2] for key in MACHINE}
    steps = [2400.0 * value / 100 for value in STEADY] + [2690.0, 2695.0]
    verdicts, reasons, _ = judged({**rows, STEP: steps}, 2)
    assert (verdicts[-1], reasons[-1]) == ("INCONCLUSIVE", "SIGNIFICANCE")


@pytest.mark.parametrize(
    ("new", "verdict", "reason"),
    [
        ([102.0, 102.2], "INCONCLUSIVE", "CORRECTION"),
        ([97.0, 97.2], "INCONCLUSIVE", "CORRECTION"),
        ([91.0, 91.2], "IMPROVED", "NONE"),
        ([117.0, 117.2], "REGRESSED", "NONE"),
        ([102.0], "INCONCLUSIVE", "CORRECTION"),
    ],
)  # fmt: skip
def test_operator_beside_a_slower_machine(new, verdict, reason):
    """The machine is 8 % slower. 102 is 6 % faster than that, and 2 % slower than before: no verdict says IMPROVED.
    97 is 3 % faster than before, less than half of 11 %; 91 is 9 % faster, more than half of 17 %.
    """
    rows = {key: [*row, *[108.0, 108.5][: len(new)]] for key, row in MACHINE.items()}
    verdicts, reasons, _ = judged({**rows, op("mm"): [*STEADY, *new]}, len(new))
    assert (verdicts[-1], reasons[-1]) == (verdict, reason)


def test_operator_as_fast_beside_a_faster_machine_is_no_regression():
    rows = {key: [*row, 92.0, 92.5] for key, row in MACHINE.items()}
    verdicts, reasons, _ = judged({**rows, op("mm"): [*STEADY, 99.0, 99.2]}, 2)
    assert (verdicts[-1], reasons[-1]) == ("INCONCLUSIVE", "CORRECTION")


@pytest.mark.parametrize("placeholder", ["(no op)", "(unlinked)"])
def test_drift_is_seen_in_kernels_without_operators(placeholder):
    rows = {("kernel", "total_ns", key[2]): [*row, 108.0, 108.5] for key, row in MACHINE.items()}
    total = [24 * value for value in [*STEADY, 108.0, 108.5]]
    rows |= {("op", "device_self_ns", placeholder): total, STEP: total}
    verdicts, _, _ = judged(rows, 2)
    assert (set(verdicts[:-1]), verdicts[-1]) == ({"UNCHANGED"}, "DRIFT")


def test_half_explained_step_regresses_in_a_fast_run():
    # machine 4 % faster, one operator twice as slow: the step is 5 % slower with and without the shift
    rows = {key: [*row, 96.0, 96.5] for key, row in MACHINE.items()}
    rows[op("op00")] = [*STEADY, 192.0, 193.0]
    steps = [2400.0 * value / 100 for value in STEADY] + [2560.0, 2570.0]
    verdicts, _, _ = judged({**rows, STEP: steps}, 2)
    assert (verdicts[0], verdicts[-1]) == ("REGRESSED", "REGRESSED")


def test_new_operators_decide_a_step_that_was_once_as_slow():
    # conv is new and 15 % of the step; one of eight runs before was as slow: 2,300, 2,750, ... -> 2,700
    rows = {key: [*row, 100.0, 100.2] for key, row in MACHINE.items()}
    rows[op("conv")] = [np.nan] * 8 + [400.0, 402.0]
    steps = [2300.0, 2750.0, 2310.0, 2290.0, 2300.0, 2305.0, 2310.0, 2295.0, 2690.0, 2710.0]
    verdicts, _, found = judged({**rows, STEP: steps}, 2)
    assert verdicts[-2:] == ["ADDED", "REGRESSED"]
    assert (found.beyond[-1], found.base_runs[-1]) == (0, 8)
    without = {key: row for key, row in rows.items() if key != op("conv")}
    assert judged({**without, STEP: steps}, 2)[0][-1] == "INCONCLUSIVE", "nothing says why"


def test_new_operators_do_not_excuse_a_faster_step():
    rows = {key: [*row, 100.0, 100.2] for key, row in MACHINE.items()}
    rows[op("conv")] = [np.nan] * 8 + [400.0, 402.0]
    steps = [2700.0, 2250.0, 2710.0, 2690.0, 2700.0, 2705.0, 2710.0, 2695.0, 2290.0, 2310.0]
    assert judged({**rows, STEP: steps}, 2)[0][-1] == "INCONCLUSIVE"


def step_of_one_run(conv, new, *, old=None, device_timed=False, base=8):
    """Verdict and reason of a step of 2,400 that takes `new` in one run, with conv at `conv` and before at `old`."""
    rows = {key: [*row[:base], 100.0] for key, row in MACHINE.items()}
    rows[op("conv")] = [*(old or [np.nan] * base), conv]
    rows[STEP] = [*(24 * value for value in STEADY[:base]), new]
    verdicts, reasons, _ = judged(rows, 1, device_timed=device_timed)
    return verdicts[-1], reasons[-1]


@pytest.mark.parametrize(
    ("conv", "new", "verdict"),
    [
        (400.0, 2800.0, ("REGRESSED", "OPERATORS")),
        (210.0, 2800.0, ("REGRESSED", "OPERATORS")),  # more than half of 400
        (190.0, 2800.0, ("SUSPECT", "FEW_NEW")),  # less than half
        (110.0, 2510.0, ("INCONCLUSIVE", "RATIO")),  # 4.6 %
    ],
)
def test_one_run_decides_where_new_operators_are_half(conv, new, verdict):
    assert step_of_one_run(conv, new) == verdict


def test_one_run_decides_from_five_percent_on_a_device_too():
    # a change of 2 % counts there
    assert step_of_one_run(110.0, 2510.0, device_timed=True) == ("SUSPECT", "FEW_NEW")
    assert step_of_one_run(130.0, 2530.0, device_timed=True) == ("REGRESSED", "OPERATORS")


def test_one_run_decides_nothing_without_a_level():
    assert step_of_one_run(400.0, 2800.0, base=2) == ("TOO_FEW_RUNS", "FEW_BASE")


def test_one_run_decides_nothing_by_what_was_there_once():
    assert step_of_one_run(400.0, 2800.0, old=[400.0, *[np.nan] * 7]) == ("SUSPECT", "FEW_NEW")


def test_one_run_is_not_faster_by_what_is_gone():
    assert step_of_one_run(np.nan, 2000.0, old=[400.0] * 8) == ("SUSPECT", "FEW_NEW")


@pytest.mark.parametrize(
    ("conv", "verdict", "reason", "change"),
    [
        (400.0, "REGRESSED", "EQUAL_MACHINE", 0.192),
        (250.0, "UNCHANGED", "RATIO", -0.026),
        (20.0, "DRIFT", "MACHINE", -0.122),
    ],
)
def test_faster_machine_hides_no_slower_step(conv, verdict, reason, change):
    """24 operators of 100 take 87, and conv is new. With 400 the step is 2,400 -> 2,488, +3.7 %, and by machines
    that are equal 2,400 -> 2,860; with 250 it was measured 2.6 % faster, and is not called slower.
    """
    rows = {key: [*row, 87.0, 87.1] for key, row in MACHINE.items()}
    rows[op("conv")] = [np.nan] * 8 + [conv, conv]
    steps = [24 * value for value in STEADY] + [24 * 87 + conv, 24 * 87.1 + conv]
    verdicts, reasons, found = judged({**rows, STEP: steps}, 2)
    assert (verdicts[-1], reasons[-1]) == (verdict, reason)
    assert np.expm1(found.change[-1]) == pytest.approx(change, abs=0.002)
    assert found.sign[-1] * found.raw_change[-1] >= 0


def test_slower_machine_hides_no_faster_step():
    # 24 operators of 100 take 115, and gelu is gone: 2,860 -> 2,760, -3.5 %; by equal machines 2,860 -> 2,400
    rows = {key: [*row, 115.0, 115.1] for key, row in MACHINE.items()}
    rows[op("gelu")] = [460.0] * 8 + [np.nan] * 2
    steps = [24 * value + 460 for value in STEADY] + [2760.0, 2762.4]
    verdicts, reasons, found = judged({**rows, STEP: steps}, 2)
    assert (verdicts[-1], reasons[-1]) == ("IMPROVED", "EQUAL_MACHINE")
    assert np.expm1([found.change[-1], found.raw_change[-1]]) == pytest.approx([-0.161, -0.035], abs=0.002)


def test_late_data_regress_the_step():
    rows = {key: [*row, 100.0, 100.2] for key, row in MACHINE.items()}
    wait = ("run", "data_loading_ns", "data loading")
    steps = [24 * value + 10 for value in STEADY] + [2710.0, 2715.0]
    verdicts, _, _ = judged({**rows, wait: [10.0] * 8 + [310.0, 312.0], STEP: steps}, 2)
    assert verdicts[-2:] == ["REGRESSED", "REGRESSED"]


def test_one_run_decides_what_is_new_and_gone():
    rows = {op("gelu"): [20.0, 21.0, np.nan], op("tanh"): [np.nan, np.nan, 30.0]}
    verdicts, _, found = judged(rows, 1)
    assert verdicts == ["REMOVED", "ADDED"]
    assert found.sign.tolist() == [-1, 1]
    assert found.contribution[1] == pytest.approx(0.03)


def test_presence_that_varied_needs_more_runs():
    seen = [20.0, np.nan, 20.0, np.nan]
    assert judged({op("gelu"): [*seen, np.nan]}, 1)[0] == ["TOO_FEW_RUNS"]


def test_calls_that_vary_are_no_exact_fact():
    calls = np.array([[129.0, 129.0, 135.0], [4.0, 5.0, 6.0], [np.nan, np.nan, 2.0]])
    found = exact_changes(calls, np.array([[True, True, False]] * 3), np.array([False, False, True]))
    assert list(zip(*found, strict=True)) == [(0, 129.0, 135.0), (2, 0.0, 2.0)]


def test_power_says_how_many_runs_would_decide():
    rows = {op("mm"): [100.0, 110.0, 95.0, 105.0, 111.0, 113.0]}
    _, _, found = judged(rows, 2)
    assert np.expm1(detectable_change(found, np.array([0]))[0]) > 0.1
    assert runs_to_decide(found, np.array([0]))[0] == 1
    assert runs_to_decide(judged({op("mm"): [*STEADY, 110.0]}, 1)[2], np.array([0]))[0] == 2


def test_runs_that_find_no_change_at_all_have_no_smallest_one():
    # a hundred times as much and a hundredth: these three runs would not show a thousand times as much either
    found = judged({op("mm"): [1.0, 100.0, 0.01, 1.0]}, 1)[2]
    assert np.isnan(detectable_change(found, np.array([0]))[0])


@st.composite
def noisy(draw, series=25, runs=8):
    """Numbers of operators, some of which are slower or faster in the last three runs."""
    seed = draw(st.integers(0, 2**32 - 1))
    source = np.random.default_rng(seed)
    values = np.exp(source.normal(4, 1, (series, 1)) + source.normal(0, 0.02, (series, runs)))
    values[:4, -3:] *= draw(st.sampled_from([0.7, 1.1, 1.4]))
    return values


def of(values, weights=None):
    rows = {op(f"op{number:02}"): row for number, row in enumerate(values)}
    return judged(rows, 3, step=float(values[:, :5].sum(axis=0).mean()) if weights is None else weights)


@given(noisy(), st.integers(0, 7), st.floats(0.8, 1.25))
def test_one_run_times_k_keeps_the_verdicts(values, run, k):
    scaled = values.copy()
    scaled[:, run] *= k
    step = float(values.sum(axis=0).mean())
    keys = [(*op(str(number)), "", "", "") for number in range(len(values))]
    series = series_of(keys, device_timed=True)
    new = np.arange(8) >= 5
    found = []
    for numbers, own in ((values, np.full(8, step)), (scaled, np.where(np.arange(8) == run, k * step, step))):
        logs = np.log(numbers)
        shift = shared_factor(logs, ~new, new)
        window = Window(logs, np.ones(numbers.shape, dtype=bool), shift, own)
        judgement = judge_version(window, series, np.broadcast_to(~new, numbers.shape), new)
        found.append((judgement, shift - shift[(run + 1) % 8]))
    # but for what was not measured in one of both
    is_shown = ~np.any([own.reason == Reason.CORRECTION for own, _ in found], axis=0)
    assert found[0][0].verdict[is_shown].tolist() == found[1][0].verdict[is_shown].tolist()
    assert found[1][1][run] - found[0][1][run] == pytest.approx(np.log(k), abs=1e-9)


@given(noisy(), st.floats(0.7, 1.4))
def test_no_verdict_is_against_what_was_measured(values, machine):
    """The newest three runs on a machine that is slower or faster by up to 40 %."""
    values = values.copy()
    values[:, 5:] *= machine
    verdicts, _, found = of(values)
    measured = np.log(values[:, 5:]).mean(axis=1) - np.log(values[:, :5]).mean(axis=1)
    for row, verdict in enumerate(verdicts):
        if verdict == "REGRESSED":
            assert measured[row] >= found.change[row] / 2 > 0
        if verdict == "IMPROVED":
            assert measured[row] <= found.change[row] / 2 < 0


@given(noisy(), st.randoms())
def test_order_of_series_does_not_matter(values, chance):
    order = list(range(len(values)))
    chance.shuffle(order)
    verdicts, reasons, found = of(values)
    shuffled = of(values[order])
    assert [verdicts[place] for place in order] == shuffled[0]
    assert [reasons[place] for place in order] == shuffled[1]
    assert found.q[order].tolist() == pytest.approx(shuffled[2].q.tolist(), nan_ok=True)


@given(noisy())
def test_inverse_numbers_mirror_the_verdicts(values):
    mirror = {"REGRESSED": "IMPROVED", "IMPROVED": "REGRESSED"}
    # a step of nothing: every contribution passes
    verdicts, mirrored = (of(own, weights=1e-9)[0] for own in (values, 1 / values))
    assert [mirror.get(word, word) for word in verdicts] == mirrored


@pytest.mark.parametrize("names", [("free", "exposed communication"), ("exposed communication", "free")])
def test_largest_wait_explains_the_step_whichever_series_is_older(names):
    """All operators are 6 % slower: the machine. The step is 7 % slower, and idle time makes 4.8 % of it."""
    machine = {key: [*STEADY, 106.0, 107.0, 105.0] for key in MACHINE}
    waits = {"free": (20.0, 68.0), "exposed communication": (20.0, 46.0)}
    rows = {**machine, STEP: [value * 10 for value in STEADY] + [1070.0, 1080.0, 1060.0]}
    for name in names:
        before, after = waits[name]
        rows["run", f"{name}_ns", name] = [value * before / 100 for value in STEADY] + [
            after,
            after * 1.01,
            after * 0.99,
        ]
    verdicts, _, _ = judged(rows, 3)
    assert verdicts[len(machine)] == "REGRESSED"
