"""Which series changed: stories with numbers a reader can check, laws, and the slow and obvious way."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.detectors import slow
from tests.detectors.made import family, slower
from tracker.detectors import judge
from tracker.detectors.judging import Weights, confirm, judge_series
from tracker.detectors.rule import Limits
from tracker.detectors.spread import Prior, Spread, fit_prior, pooled

QUIET = family(60, 8, noise=0.005)


def verdicts(values, *rows, **options):
    table = judge(values[:, :5], values[:, 5:], **options)
    return table["verdict"].loc[list(rows)].tolist() if rows else table["verdict"]


def candidate_slower(values, row, factor):
    changed = values.copy()
    changed[row, 5:] *= factor
    return changed


def test_a_series_that_is_a_fifth_slower_is_regressed_and_no_other():
    verdict = verdicts(candidate_slower(QUIET, 7, 1.2))
    assert verdict[7] == "REGRESSED"
    assert (verdict == "REGRESSED").sum() == 1


def test_the_ratio_is_that_of_the_geometric_means():
    baseline, candidate = np.array([[100.0, 400.0]]), np.array([[300.0, 300.0]])
    assert judge(baseline, candidate)["ratio"][0] == pytest.approx(0.5)


def test_a_change_below_three_per_cent_is_unchanged_however_sure():
    steady = np.tile(100.0, (30, 8))
    assert verdicts(candidate_slower(steady, 3, 1.02), 3) == ["UNCHANGED"]
    assert verdicts(candidate_slower(steady, 3, 1.03), 3) == ["REGRESSED"]


def test_what_the_whole_machine_does_is_subtracted_and_told():
    table = judge(QUIET[:, :5], QUIET[:, 5:] * 1.25)
    assert set(table["verdict"]) == {"UNCHANGED"}
    assert table["center"].unique() == pytest.approx([math.log(1.25)], abs=0.005)


def test_without_centring_the_machine_is_the_regression():
    table = judge(QUIET[:, :5], QUIET[:, 5:] * 1.25, center=False)
    assert set(table["verdict"]) == {"REGRESSED"}
    assert set(table["center"]) == {0.0}


def test_nineteen_series_share_nothing():
    assert judge(QUIET[:19, :5], QUIET[:19, 5:] * 1.25)["center"][0] == 0.0


def test_one_new_run_is_a_suspicion_at_most():
    values = candidate_slower(QUIET, 7, 1.5)
    verdict = judge(values[:, :5], values[:, 5:6])["verdict"]
    assert verdict[7] == "SUSPECT"
    assert not set(verdict) & {"REGRESSED", "IMPROVED"}


def test_one_run_against_one_says_nothing():
    table = judge(QUIET[:, :1], QUIET[:, 1:2] * 3)
    assert set(table["verdict"]) == {"TOO_FEW_RUNS"}
    assert table["q"].isna().all()


def test_one_run_against_one_is_judged_by_what_older_versions_showed():
    older = pooled(np.log(QUIET[:, :5]))
    values = candidate_slower(QUIET, 7, 1.5)
    table = judge_series(values[:, 4:5], values[:, 5:6], older=older).table
    assert table["verdict"][7] == "SUSPECT"
    assert set(table["verdict"].drop(7)) <= {"UNCHANGED", "INCONCLUSIVE"}
    assert table["detectable"].between(0.0, 0.2).all()


def test_one_run_against_one_that_the_noise_hides_is_too_few_runs_and_not_unclear():
    older = Spread(np.array([0.1**2]), np.array([4.0]))  # 10 % from run to run, by five older runs
    table = judge_series(np.array([[100.0]]), np.array([[120.0]]), older=older).table
    assert (table["verdict"][0], table["effect_passes"][0]) == ("TOO_FEW_RUNS", True)
    assert table["reason"][0] == "effect and contribution pass, q does not, on one run each"
    assert table["detectable"][0] > 0.2  # what such runs would have shown


def test_missing_runs_leave_their_series_alone_and_the_rest_as_it_was():
    values = candidate_slower(QUIET, 7, 1.2)
    values[3, :5] = np.nan
    values[4, 5:] = np.nan
    values[5, 6:] = np.nan
    values[7, 0] = np.nan
    table = judge(values[:, :5], values[:, 5:])
    assert table["verdict"][[3, 4, 7]].tolist() == ["TOO_FEW_RUNS", "TOO_FEW_RUNS", "REGRESSED"]
    assert table["ratio"][[3, 4]].isna().all()
    assert table["verdict"][5] != "REGRESSED"


def test_noise_that_hides_the_change_is_unclear_not_unchanged():
    noisy = np.array([[100.0, 130.0, 80.0, 120.0, 90.0, 100.0, 140.0, 90.0]])
    assert judge(noisy[:, :5], noisy[:, 5:])["verdict"].tolist() == ["INCONCLUSIVE"]


def test_what_is_inconclusive_comes_with_what_the_runs_could_have_shown():
    noisy = np.array([[100.0, 130.0, 80.0, 120.0, 90.0, 102.0, 134.0, 79.0]])
    table = judge_series(noisy[:, :5], noisy[:, 5:]).table
    assert table["verdict"].tolist() == ["INCONCLUSIVE"]
    assert 0.3 < table["detectable"][0] < 0.8


def test_a_small_series_does_not_matter():
    values = candidate_slower(QUIET, 7, 1.2)
    share = np.full(60, 1 / 60)
    share[7] = 0.002  # 20 % of 0.2 % is 0.04 % of the step
    table = judge(values[:, :5], values[:, 5:], share=share, min_contribution=0.001)
    assert table["verdict"][7] == "BELOW_LIMIT"
    assert judge(values[:, :5], values[:, 5:], share=share, min_contribution=0.0003)["verdict"][7] == "REGRESSED"


def test_a_series_below_a_ten_thousandth_of_the_step_is_not_tested():
    share = np.full(60, 1 / 60)
    share[7] = 0.00009
    table = judge(QUIET[:, :5], QUIET[:, 5:], share=share)
    assert math.isnan(table["q"][7])
    assert table["q"].notna().sum() == 59


def test_contributions_in_time_are_exact():
    before, after = np.tile(100.0, (30, 3)), np.tile(100.0, (30, 3))
    after[0] = 150.0
    table = judge_series(before, after, Weights(step=5000.0), center=False).table
    assert table["contribution"][0] == pytest.approx(0.01)
    assert table["verdict"][0] == "REGRESSED"


def test_a_bistable_series_is_no_finding():
    values = QUIET.copy()
    values[7] = [1.9, 3.7, 1.9, 3.6, 1.9, 3.7, 3.6, 3.7]
    assert verdicts(values, 7) == ["INCONCLUSIVE"]


def test_when_more_than_half_moved_the_centre_is_called_doubtful():
    values = QUIET.copy()
    factors = np.linspace(1.2, 1.6, 36)
    values[:36, 5:] *= factors[:, None]
    centre = judge_series(values[:, :5], values[:, 5:]).centre
    assert centre.shift > 0.1
    assert abs(centre.mode_shift) < 0.02
    assert centre.doubtful
    assert not judge_series(QUIET[:, :5], QUIET[:, 5:]).centre.doubtful


def test_a_suspect_is_confirmed_by_the_next_runs_in_its_own_direction():
    baseline, later = QUIET[:, :5], slower(QUIET[:, 5:7], [3, 4], 1.3)
    suspects = np.zeros(60)
    suspects[[3, 8]] = 1.0
    suspects[4] = -1.0
    verdict = confirm(baseline, later, suspects).table["verdict"]
    assert verdict[3] == "REGRESSED"
    assert verdict[4] == "INCONCLUSIVE"  # suspected faster, turned out slower
    assert verdict[8] == "UNCHANGED"


def test_a_value_that_has_no_logarithm_is_named():
    with pytest.raises(ValueError, match=r"candidate\[1, 0\] is 0.0"):
        judge([[1.0], [1.0]], [[1.0], [0.0]])
    with pytest.raises(ValueError, match="baseline has 2 series, candidate 1"):
        judge([[1.0], [1.0]], [[1.0]])
    with pytest.raises(ValueError, match="share must have one number per series"):
        judge([[1.0]], [[1.0]], share=[0.1, 0.2])


def test_no_series_is_an_empty_table():
    table = judge(np.empty((0, 5)), np.empty((0, 3)))
    assert table.columns.tolist() == ["ratio", "p", "q", "verdict", "center"]
    assert table.empty


def test_the_prior_is_found_again_where_it_is_known():
    # s0^2 = 0.0004 with 6 degrees: variances are s0^2 times chi2(4) / 4 over chi2(6) / 6
    draw = np.random.default_rng(3)
    variance = 4e-4 * (draw.chisquare(4, 20_000) / 4) / (draw.chisquare(6, 20_000) / 6)
    prior = fit_prior(Spread(variance, np.full(20_000, 4.0)))
    assert prior.freedom == pytest.approx(6.0, rel=0.08)
    assert prior.variance == pytest.approx(4e-4, rel=0.03)


def test_equal_variances_are_an_infinite_prior_and_few_are_none():
    equal = Spread(np.full(50, 1e-4), np.full(50, 6.0))
    assert math.isinf(fit_prior(equal).freedom)
    few = fit_prior(Spread(np.full(19, 1e-4), np.full(19, 6.0)))
    assert isinstance(few, Prior)
    assert few.freedom == 0.0


# laws


def _random_table(seed):
    draw = np.random.default_rng(seed)
    series, runs = int(draw.integers(1, 90)), int(draw.integers(4, 12))
    noise = np.exp(draw.uniform(-7, -1, (series, 1)))
    values = np.exp(draw.normal(0, 3, (series, 1)) + noise * draw.normal(0, 1, (series, runs)))
    cut = int(draw.integers(2, runs - 1))
    moved = draw.random(series) < draw.choice([0.0, 0.1, 0.3])
    values[moved, cut:] *= np.exp(draw.normal(0, 0.3, (int(moved.sum()), 1)))
    values[draw.random(values.shape) < draw.choice([0.0, 0.02])] = np.nan
    return values[:, :cut], values[:, cut:]


tables = st.integers(0, 2**32 - 1).map(_random_table)


@given(tables)
def test_swapping_the_sides_mirrors_every_verdict(sides):
    there, back = judge(*sides), judge(*sides[::-1])
    mirrored = back["verdict"].replace({"REGRESSED": "IMPROVED", "IMPROVED": "REGRESSED"})
    assert there["verdict"].tolist() == mirrored.tolist()
    assert there["ratio"].to_numpy() == pytest.approx(1 / (1 + back["ratio"].to_numpy()) - 1, nan_ok=True)
    assert there["q"].to_numpy() == pytest.approx(back["q"].to_numpy(), nan_ok=True, abs=1e-9)


@given(tables, st.floats(1e-9, 1e12))
def test_the_unit_does_not_matter(sides, unit):
    one, other = judge(*sides), judge(*[side * unit for side in sides])
    assert one["verdict"].tolist() == other["verdict"].tolist()
    assert one["q"].to_numpy() == pytest.approx(other["q"].to_numpy(), nan_ok=True, rel=1e-4, abs=1e-12)


@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_series_does_not_matter(sides, random):
    order = list(range(len(sides[0])))
    random.shuffle(order)
    one, other = judge(*sides), judge(*[side[order] for side in sides])
    assert one["verdict"].to_numpy()[order].tolist() == other["verdict"].tolist()
    assert one["p"].to_numpy()[order] == pytest.approx(other["p"].to_numpy(), nan_ok=True, rel=1e-6)


@given(tables, st.floats(0.2, 5.0), st.integers(0, 100))
def test_a_factor_on_one_run_changes_no_verdict_but_the_centre(sides, factor, which):
    baseline, candidate = sides
    complete = ~np.isnan(np.hstack(sides)).any(axis=1)
    if complete.sum() < 20:
        return
    sped = [baseline.copy(), candidate.copy()]
    run = which % (baseline.shape[1] + candidate.shape[1])
    side, column = (0, run) if run < baseline.shape[1] else (1, run - baseline.shape[1])
    sped[side][:, column] *= factor
    one, other = judge(*sides), judge(*sped)
    assert one["verdict"].tolist() == other["verdict"].tolist()
    moved = math.log(factor) / sides[side].shape[1] * (1 if side else -1)
    assert other["center"][0] - one["center"][0] == pytest.approx(moved, abs=1e-9)


@given(tables)
def test_q_is_never_below_p_and_grows_with_it(sides):
    table = judge(*sides).dropna(subset="p")
    assert (table["q"] >= table["p"] - 1e-12).all()
    for _, direction in table.groupby(table["ratio"] >= 0):
        assert direction.sort_values("p")["q"].is_monotonic_increasing


@given(st.integers(0, 2**32 - 1))
def test_the_slow_and_obvious_way_says_the_same(seed):
    draw = np.random.default_rng(seed)
    values = family(int(draw.integers(20, 100)), 8, noise=0.02, seed=seed % 1000)
    values[:5, 5:] *= draw.choice([0.8, 1.1, 1.3])
    expected, shift = slow.judged(values[:, :5].tolist(), values[:, 5:].tolist())
    table = judge(values[:, :5], values[:, 5:])
    assert table["center"][0] == pytest.approx(shift, abs=1e-12)
    for column, number in (("ratio", 0), ("p", 1), ("q", 2)):
        assert table[column].tolist() == pytest.approx([row[number] for row in expected], rel=1e-6, abs=1e-12)
    assert table["verdict"].tolist() == [row[3] for row in expected]


def test_limits_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="alpha"):
        Limits(alpha=0.0)
    with pytest.raises(ValueError, match="min_ratio"):
        judge([[1.0]], [[1.0]], min_ratio=-0.1)
