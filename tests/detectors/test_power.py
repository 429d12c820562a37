"""How often a change would be found, by a formula and by trying it."""

from __future__ import annotations

import numpy as np
import pytest

from tracker.detectors import judge
from tracker.detectors.power import recall
from tracker.detectors.spread import Spread, floored, moderate, pooled

pytestmark = pytest.mark.slow


def tried(deviations, runs, change, draws=120):
    """How often the first of these series is REGRESSED where it alone is slower."""
    draw, hits = np.random.default_rng(1), 0
    for _ in range(draws):
        before, after = (np.exp(draw.normal(0, deviations[:, None], (len(deviations), n))) for n in (8, runs))
        after[0] *= 1 + change
        hits += judge(before, after)["verdict"][0] == "REGRESSED"
    return hits / draws


@pytest.mark.parametrize("runs", [3, 5, 8])
@pytest.mark.parametrize("deviation", [0.03, 0.04])
def test_the_formula_says_what_trying_it_says(runs, deviation):
    """100 series that vary alike: what the family knows of the noise counts like many runs."""
    deviations = np.full(100, deviation)
    repeats = np.random.default_rng(2).normal(0, deviations[:, None], (100, 20))
    within = moderate(floored(pooled(repeats)), np.zeros(100))
    found = recall(within, 20, 0.10, runs, tests=100)
    assert float(np.median(found)) == pytest.approx(tried(deviations, runs, 0.10), abs=0.12)


def test_more_runs_and_larger_changes_are_found_more_often_and_noise_hides():
    within = Spread(np.array([0.02, 0.04, 0.08]) ** 2, np.full(3, 25.0))
    by_runs = np.array([recall(within, 20, 0.10, runs, tests=50) for runs in (2, 3, 5, 8)])
    assert (np.diff(by_runs, axis=0) >= 0).all()
    assert (np.diff(by_runs, axis=1) <= 0).all()
    assert (recall(within, 20, 0.20, 3, tests=50) >= recall(within, 20, 0.10, 3, tests=50)).all()


def test_what_is_below_the_smallest_change_that_counts_is_hardly_ever_found():
    quiet = Spread(np.array([1e-6]), np.array([19.0]))
    assert recall(quiet, 20, 0.02, 8, tests=1)[0] < 1e-6
    assert np.isnan(recall(Spread(np.array([np.nan]), np.array([0.0])), 20, 0.1, 3, tests=1)[0])
