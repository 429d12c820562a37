"""The noise of older runs, by which one run is told from one other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.regressions.made import runs
from tracker.judgement import older_runs, verdicts_of
from tracker.judgement.yardstick import MOST, factors_of, noise_of
from tracker.store import runs as edits

pytestmark = pytest.mark.slow


def test_runs_vary_about_the_level_of_their_own_version():
    # 100 and 110, then, twice as slow, 200 and 220: the version is no noise
    values = np.array([[100.0, 110.0, 200.0, 220.0]])
    found = noise_of(values, [(0, 1), (2, 3)], np.array([0]))
    within = 2 * (np.log(1.1) / 2) ** 2  # two runs about their mean
    assert found.variance[0] == pytest.approx(within)  # (within + within) / 2 degrees of freedom
    assert found.freedom[0] == 2


def test_what_all_operators_of_a_run_share_is_no_noise_of_any():
    values = np.full((30, 4), 100.0) * np.array([1.0, 1.1, 0.9, 1.2])
    rows, versions = np.arange(30), [(0, 1), (2, 3)]
    factors = factors_of(values, versions, rows, 3000.0)
    assert noise_of(values, versions, rows).variance[0] > 0.004
    assert noise_of(values, versions, rows, factors).variance[0] == pytest.approx(0.0, abs=1e-12)


def test_a_run_without_the_series_says_nothing_of_it():
    values = np.array([[100.0, np.nan, 110.0], [0.0, 100.0, 100.0]])
    found = noise_of(values, [(0, 1, 2)], np.array([0, 1]))
    assert found.freedom.tolist() == [1, 1]


def test_older_runs_are_those_of_earlier_versions_with_two_or_more(store):
    first = runs(store, "v1", count=3)
    single = runs(store, "v2", start=3, count=1)
    third = runs(store, "v3", start=4, count=3)
    last = runs(store, "v4", start=7, count=2)
    assert older_runs(store, [*single, last[0]]) == (tuple(first), tuple(third))
    assert older_runs(store, [third[0], last[0]]) == (tuple(first), tuple(third[1:]))
    assert older_runs(store, [first[0], single[0]]) == (tuple(first[1:]),)
    edits.exclude_all(store, first[:2], "noisy")
    assert older_runs(store, [*single, last[0]]) == (tuple(third),)


def test_runs_of_two_workloads_have_no_older_runs(store):
    """Their versions have no order among each other."""
    (one,) = runs(store, "a1", count=1, workload="gpt")
    (other,) = runs(store, "a2", count=1, start=1, workload="bert")
    assert older_runs(store, [one, other]) == older_runs(store, [other, one]) == ()


def test_only_the_newest_of_many_older_runs_are_asked(store):
    of_version = [runs(store, f"v{number}", start=number * 10, count=10) for number in range(4)]
    last = runs(store, "v9", start=90, count=2)
    found = older_runs(store, last[:1])
    assert found == tuple(map(tuple, of_version[1:])) and sum(map(len, found)) == MOST


def test_one_against_one_finds_what_noise_does_not_explain(store):
    older = runs(store, "v1", count=5)
    (before,) = runs(store, "v2", start=5, count=1)
    (after,) = runs(store, "v3", {"op07": 1.2, "new": 2_000_000}, start=6, count=1)
    table = verdicts_of(store, [before], [after], older=[older]).table.loc["op"]
    found = table[table["verdict"] == "SUSPECT"].index.get_level_values("name").tolist()
    assert sorted(found) == ["new", "op07"]
    assert not set(table["verdict"]) & {"REGRESSED", "IMPROVED", "ADDED", "INCONCLUSIVE"}
    assert table["detectable"].dropna().between(0.0, 0.1).all()  # 0.5 % noise
    assert set(verdicts_of(store, [before], [after]).table.loc["op", "verdict"]) == {"TOO_FEW_RUNS", "SUSPECT"}
