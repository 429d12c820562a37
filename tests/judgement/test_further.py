"""An op that gets slower again and again: each step is one finding, of the version that made it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.judgement.test_follow import MS, watch
from tests.judgement.test_update import judge
from tests.regressions.made import runs
from tracker.judgement import findings
from tracker.judgement.follow import follow
from tracker.results import FindingsOptions
from tracker.results.findings import STATES


@pytest.mark.parametrize("at_once", [True, False])
def test_each_of_three_steps_is_one_finding(store, at_once):
    """1 -> 1.2 -> 1.5 -> 5 times: the last step is one of the whole finding, and of the step before it."""
    runs(store, "v1", count=9)
    for number, factor in enumerate((1.2, 1.5, 5.0), 2):
        runs(store, f"v{number}", {"op07": factor}, start=3 * number + 3)
        if not at_once:
            judge(store)
    judge(store)
    rows = findings(store, options=FindingsOptions(states=STATES, every=True)).findings
    own = rows[(rows["name"] == "op07") & (rows["kind"] == "op") & (rows["change"] == "level")]
    assert own[["version", "direction"]].to_numpy().tolist() == [[label, "regression"] for label in ("v4", "v3", "v2")]


def found_of(levels, runs_per_version, seed):
    """The findings of one op among 24 whose time is multiplied by these levels, a version each."""
    draw = np.random.default_rng(seed)
    count = len(levels) * runs_per_version
    times = MS * np.exp(draw.normal(0, 0.003, (24, count)))
    times[3] *= np.repeat(levels, runs_per_version)
    versions = (np.arange(count) // runs_per_version).tolist()
    return [one for one in follow(watch((times, np.full((24, count), 4.0), versions))) if one.row == 3]


@pytest.mark.slow
@pytest.mark.parametrize("runs_per_version", [1, 2, 3])
def test_no_two_findings_begin_with_one_run(runs_per_version):
    """A database holds one finding per series, direction, change and first run."""
    draw = np.random.default_rng(runs_per_version)
    steps = 0
    for seed in range(20):
        held = draw.integers(1, 4, 6)
        levels = [1.0] * 5 + np.repeat(draw.choice([0.2, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 5.0], 6), held).tolist()
        found = found_of(levels, runs_per_version, seed)
        keys = [(*one.key, one.first) for one in found]
        assert len(set(keys)) == len(keys), levels
        steps += sum(one.further for one in found)
    assert steps > 0, "some got worse again and again"
