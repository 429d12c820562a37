"""What repeats of one code show: false verdicts, what so many runs can find, which runs are no repeats."""

from __future__ import annotations

import numpy as np
import pytest

from tests.regressions.made import runs
from tracker.detect import Verdict, Window, judge_version, series_of
from tracker.detect.nights import USUAL
from tracker.detect.power import detectable_with
from tracker.detect.repeats import random_splits
from tracker.errors import UsageError
from tracker.profile import Device
from tracker.regressions.calibrate import RUNS, calibrate
from tracker.regressions.judgement import tracks_of, update
from tracker.regressions.thresholds import Where, apply_calibration, set_thresholds
from tracker.results import CalibrateOptions
from tracker.results.thresholds import ProposedRatio, Threshold
from tracker.store import queries

FEW = CalibrateOptions(splits=20)


def test_every_split_is_made_where_there_are_few():
    assert len(random_splits(6, 3, 3, most=100, seed=0)) == 20
    drawn = random_splits(20, 5, 3, most=30, seed=0)
    assert len(drawn) == 30
    assert all(not set(one) & set(other) for one, other in drawn)


def test_quiet_repeats_have_no_false_verdict(store):
    runs(store, "v1", count=11)
    found = calibrate(store, ["v1"], options=FEW)
    assert found.proposals.columns.tolist() == list(ProposedRatio.__struct_fields__)
    assert (found.baseline, found.candidate, found.windows, found.splits) == (8, 3, 1, 20)
    used = found.proposals.set_index("kind")
    assert used.loc["op", ["series", "used_ratio", "used_false", "used_share"]].tolist() == [40, 0.03, 0.0, 0.0]
    assert used.loc["run", "used_ratio"] == 0.02, "timed on the device"
    assert len(found.suspects) == 0


def test_three_slow_operators_of_three_runs_are_false_verdicts(store):
    """Three of the eight runs are 50 % slower in three operators: what a split on them finds is false."""
    for number in range(8):
        runs(store, "v1", {f"op{at:02}": 1.5 if number > 4 else 1.0 for at in (7, 8, 9)}, count=1, start=number)
    found = calibrate(store, ["v1"], options=CalibrateOptions(splits=60))
    ratios = found.ratios.set_index(["kind", "min_ratio"])
    assert (ratios.loc[("op", 0.2), "worst_false"], ratios.loc[("op", 0.2), "windows_false"]) == (3, 3)
    assert ratios.loc[("op", 0.2), "false_share"] == pytest.approx(ratios.loc[("op", 0.2), "mean_false"] / 40)
    assert found.series["name"].head(3).str.startswith("op0").all()
    set_thresholds(store, [Threshold("min_ratio", 0.6, "op", "op0?", reason="noisy")], Where())
    again = calibrate(store, ["v1"], options=CalibrateOptions(splits=60)).ratios.set_index(["kind", "min_ratio"])
    assert again.loc[("op", 0.2), "worst_false"] == 0, "they have a limit of their own"


def test_calibration_can_be_applied_and_is_in_use_then(store):
    factors = {f"op{at:02}": 1.02 + 0.005 * at for at in range(0, 40, 2)}
    runs(store, "v1", count=3)
    runs(store, "v1", factors, count=3, start=3)
    found = calibrate(store, ["v1"], options=FEW)
    proposed = found.proposals.set_index("kind")["proposed_ratio"].dropna().to_dict()
    kinds = apply_calibration(store, found, who="ann", when_ns=1, reason="six repeats")
    assert set(kinds) == set(proposed)
    assert queries.thresholds(store).frame.set_index("kind")["threshold"].to_dict() == proposed
    again = calibrate(store, ["v1"], options=FEW).proposals.set_index("kind")
    assert again["used_ratio"][list(proposed)].to_dict() == pytest.approx(proposed)
    assert (again["used_false"][list(proposed)] <= 1).all()


def test_suspects_of_the_newest_version_need_more_runs(store):
    runs(store, "v1", count=8)
    runs(store, "v2", {"op07": 1.5}, count=1, start=8)
    update(store, tracks_of(store))
    suspects = calibrate(store, ["v1"], options=FEW).suspects
    own = suspects[suspects["kind"] == "op"].iloc[0]
    assert (own["name"], own["version"], own["runs"], own["more_runs"]) == ("op07", "v2", 1, 2)
    assert own["change"] == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_detectable_change_is_found_in_four_of_five_cases(count):
    """24 operators with a usual night effect, of which one is slower by what is said to be detectable, 200 times."""
    keys = [("op", "device_self_ns", f"op{at:02}", "", "", "") for at in range(24)]
    series = series_of(keys, device_timed=True)
    draw = np.random.default_rng(1)
    is_new = np.arange(8 + count) >= 8
    versions = np.where(is_new, 9, np.arange(8 + count) // count)

    def judged(slower):
        logs = np.log(1e6) + draw.normal(0, 0.02, (24, 8 + count))
        logs += draw.normal(0, 0.02 * USUAL**0.5, (24, 10))[:, versions]
        logs[7, is_new] += slower
        step = np.exp(logs).sum(axis=0)
        window = Window(logs, np.ones(logs.shape, dtype=bool), np.zeros(8 + count), step, versions=versions)
        return judge_version(window, series, np.broadcast_to(~is_new, logs.shape), is_new)

    least = float(np.median([detectable_with(judged(0.0), series.family, series.ratio, count)[7] for _ in range(5)]))
    hits = sum(judged(least).verdict[7] == Verdict.REGRESSED for _ in range(200))
    assert 0.65 <= hits / 200 <= 0.95


@pytest.mark.parametrize("kind", ["op", "run"])
def test_more_runs_never_show_less(kind):
    keys = [(kind, "device_self_ns", f"op{at:02}", "", "", "") for at in range(24)]
    keys = (
        [("run", "duration_ns", name, "", "", "", "") for name in ("step", "e2e", "compute")] if kind == "run" else keys
    )
    series = series_of(keys, device_timed=True)
    logs = np.log(1e6) + np.random.default_rng(3).normal(0, 0.02, (len(keys), 16))
    is_new = np.arange(16) >= 8
    window = Window(logs, np.ones(logs.shape, dtype=bool), np.zeros(16), np.full(16, 1e7))
    found = judge_version(window, series, np.broadcast_to(~is_new, logs.shape), is_new)
    shown = [detectable_with(found, series.family, series.ratio, count) for count in RUNS]
    assert (np.diff(shown, axis=0) <= 0).all()


def test_runs_that_are_no_repeats_are_refused(store):
    runs(store, "v1", count=5)
    with pytest.raises(UsageError, match="needs 6 or more repeats of one version; these are 5"):
        calibrate(store, ["v1"])
    with pytest.raises(UsageError, match="'v1' is not a run number, and several versions are no repeats"):
        calibrate(store, ["v1", "v2"])
    runs(store, "v1", count=3, start=5, device=Device("NVIDIA", "A100"))
    with pytest.raises(UsageError, match="they differ in device or configuration"):
        calibrate(store, ["v1"])
    runs(store, "v1", count=1, start=9, workload="bert")
    with pytest.raises(UsageError, match="these runs are of several workloads: bert, gpt"):
        calibrate(store, ["run:1", "run:9"])
