"""Calibration from repeats in a database: quiet where they are quiet, loud where not, refused where there are few."""

from __future__ import annotations

import numpy as np
import pytest

import tracker
from tests.factories import EPOCH_NS, same_table, save
from tests.regressions.made import runs
from tracker.errors import UsageError
from tracker.judgement.calibrating import calibrate, false_findings
from tracker.judgement.judging import Values, compare
from tracker.profile import Device
from tracker.results import CALIBRATION_COLUMNS, CalibrateOptions
from tracker.store import runs as edits

FEW = CalibrateOptions(splits=5)


def proposed(found):
    return found.proposals.set_index("kind")["proposed_ratio"].to_dict()


def test_eight_quiet_runs_are_56_splits_and_one_window_without_a_finding(store):
    runs(store, "v1", count=8)
    found = calibrate(store, ["v1"])
    assert {name: tuple(getattr(found, name).columns) for name in CALIBRATION_COLUMNS} == CALIBRATION_COLUMNS
    assert (found.baseline, found.candidate, found.windows, found.splits) == (5, 3, 1, 56)  # 8 choose 5
    ops = found.ratios[found.ratios["kind"] == "op"]
    same_table(ops.head(2), "min_ratio splits worst_false\n 0.01 56 0\n 0.02 56 0")
    assert proposed(found)["op"] == 0.01
    assert found.notes == ()


def test_six_runs_are_split_into_three_and_three_and_it_says_so(store):
    runs(store, "v1", count=6)
    found = calibrate(store, ["v1"])
    assert (found.baseline, found.candidate, found.windows, found.splits) == (3, 3, 1, 20)
    assert found.notes[0].startswith("6 runs allow 3 against 3")


def noisy_half(store):
    """6 runs; in the last 3, half of the ops are 2, 3, 4, ... 21 % slower."""
    factors = {f"op{at:02}": 1.02 + 0.005 * at for at in range(0, 40, 2)}
    runs(store, "v1", count=3)
    runs(store, "v1", factors, count=3, start=3)


def test_where_repeats_differ_a_larger_change_is_proposed(store):
    noisy_half(store)
    found = calibrate(store, ["v1"])
    ops = found.ratios[found.ratios["kind"] == "op"].set_index("min_ratio")["mean_false"]
    assert ops.is_monotonic_decreasing
    # 2 of the 20 splits part the two halves and find most of the 20 ops: nearly 2 per split
    assert 1 < ops[0.03] < 2
    assert 0.05 < proposed(found)["op"] <= 0.20
    used = found.proposals.set_index("kind").loc["op"]
    assert (used["used_ratio"], used["used_false"]) == (0.03, ops[0.03])


def test_the_count_at_the_change_in_use_is_what_a_comparison_finds(store):
    """One judgement per split serves all smallest changes: at 3 % it says what the rule itself says."""
    noise = np.random.default_rng(0)
    values = 1e6 * np.exp(noise.normal(0, 0.01, (40, 8)))
    values[:5, 5:] *= np.array([1.02, 1.025, 1.04, 1.06, 0.9])[:, None]
    line = Values([("op", "device_self_ns")] * 40, [str(at) for at in range(40)], values, np.full((40, 8), np.nan))
    found = false_findings(line, ((0, 1, 2, 3, 4), (5, 6, 7)), device_timed=True)
    usual = compare(line, range(5), range(5, 8), device_timed=[True] * 3).columns["verdict"]
    assert found["op", 0.03] == np.isin(usual, ["REGRESSED", "IMPROVED"]).sum() == 3
    assert found["op", 0.08] == 1


def test_a_bistable_op_is_named_with_its_levels(store):
    for number in range(10):
        runs(store, "v1", {"op07": 2.0 if number % 3 == 0 else 1.0}, count=1, start=number)
    row = calibrate(store, ["v1"], options=FEW).series.set_index(["kind", "name"]).loc[("op", "op07")]
    assert row["low"] == pytest.approx(1e6, rel=0.02)
    assert row["high"] == pytest.approx(2e6, rel=0.02)
    assert row["upper_share"] == 0.4  # runs 0, 3, 6, 9


def test_runs_can_be_named_one_by_one_and_excluded_ones_do_not_count(store):
    runs(store, "v1", count=8)
    found = tracker.calibrate([f"run:{number}" for number in range(1, 8)], store=store, splits=5, noisiest=2)
    assert (found.run_ids, len(found.series)) == ((1, 2, 3, 4, 5, 6, 7), 2)
    edits.exclude_all(store, [8], "noisy")
    assert tracker.calibrate("v1", store=store, splits=5).run_ids == (1, 2, 3, 4, 5, 6, 7)
    with pytest.raises(UsageError, match="run 8 is not active"):
        tracker.calibrate([f"run:{number}" for number in range(1, 9)], store=store)


def test_five_runs_are_too_few(store):
    runs(store, "v1", count=5)
    with pytest.raises(UsageError, match="needs 6 or more repeats of one version; these are 5; run the same version"):
        calibrate(store, ["v1"])


def test_runs_of_two_devices_are_no_repeats(store):
    for number in range(8):
        save(store, "v1", device=Device("NVIDIA", "H100" if number % 2 else "A100"), started_at_ns=EPOCH_NS + number)
    with pytest.raises(UsageError, match=r"differ in device or configuration \(NVIDIA A100; NVIDIA H100\); choose"):
        calibrate(store, ["v1"])


@pytest.mark.parametrize("references", [["v1", "v2"], ["run:1", "v1"]])
def test_several_versions_are_no_repeats(store, references):
    runs(store, "v1", count=1)
    with pytest.raises(UsageError, match="several versions are no repeats of one; name one version"):
        calibrate(store, references)
