"""The rule on real runs: silent where nothing changed, and every labelled change found, each by the right gate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from tests.real import data
from tests.real.per_run import Run, by_name, keys_of, run_of, table
from tracker.detectors import change_points
from tracker.detectors.calibrate import consecutive_splits, random_splits
from tracker.detectors.centre import Centre
from tracker.detectors.judging import Weights, judge_series
from tracker.detectors.presence import judge_calls, judge_presence
from tracker.detectors.totals import judge_totals
from tracker.detectors.within import two_modes


@dataclass(frozen=True, slots=True)
class Findings:
    """What one comparison says: ops, sums by name, calls, added and removed, and the run-level series."""

    ops: pd.DataFrame
    names: pd.DataFrame
    calls: pd.DataFrame
    presence: pd.DataFrame
    totals: pd.DataFrame
    centre: Centre

    def called(self, frame: str, *words: str) -> set:
        rows = getattr(self, frame)
        return {key[0] for key in rows.index[rows["verdict"].isin(words)]}


def compare(before: list[Run], after: list[Run]) -> Findings:
    keys = keys_of(before, after)
    step = max(np.mean([run.step_ns for run in side]) for side in (before, after))
    x, y = table(before, keys), table(after, keys)
    judged = judge_series(x, y, Weights(step=step))
    names = keys_of([by_name(run) for run in before], [by_name(run) for run in after])
    sums = [table([by_name(run) for run in side], names) for side in (before, after)]
    by_names = judge_series(*sums, Weights(step=step), center=judged.centre)
    calls = judge_calls(table(before, keys, "calls"), table(after, keys, "calls"), x, y, step)
    presence = judge_presence(x, y, step)
    found = judged.table["verdict"].isin(["REGRESSED", "IMPROVED"]).to_numpy()
    explained = np.nansum(np.where(found, judged.table["contribution"], 0.0)) * step
    explained += presence.loc[presence["verdict"].isin(["ADDED", "REMOVED"]), "contribution"].sum() * step
    rows = [
        np.array([[getattr(run, name) for run in side] for name in ("step_ns", "free_ns", "peak_bytes")])
        for side in (before, after)
    ]
    free = float(rows[1][1].mean() - rows[0][1].mean())
    totals = judge_totals(
        *rows,
        judged.centre,
        explained=np.array([explained + free, np.nan, np.nan]),
        timed=np.array([True, True, False]),
        device_timed=False,
    )
    index = pd.Index(keys, tupleize_cols=False)
    return Findings(
        judged.table.set_index(index),
        by_names.table.set_index(pd.Index(names, tupleize_cols=False)),
        calls.set_index(index),
        presence.set_index(index),
        totals.set_axis(["step", "free", "memory"]),
        judged.centre,
    )


@pytest.fixture(scope="module")
def repeats():
    return [run_of(path) for path in sorted(data.path("torch_cpu/repeats_gpt").glob("*.gz"))]


@pytest.fixture(scope="module")
def versions():
    paths = sorted(data.path("torch_cpu/nightly_gpt").glob("*.gz"))
    return {
        version: [run_of(path) for path in paths if path.name.startswith(f"v{version:02}_")] for version in range(1, 13)
    }


def test_repeats_of_one_version_give_at_most_one_finding_over_all_consecutive_windows(repeats):
    false = []
    for one, other in consecutive_splits(len(repeats)):
        found = compare([repeats[run] for run in one], [repeats[run] for run in other])
        for frame in ("ops", "names", "calls", "presence"):
            false += found.called(frame, "REGRESSED", "IMPROVED", "ADDED", "REMOVED")
        false += [("totals", name) for name in found.totals.index[found.totals["verdict"].isin(["REGRESSED"])]]
    assert len(consecutive_splits(len(repeats))) == 13
    assert len(false) <= 1, false


def test_random_splits_of_the_repeats_give_less_than_one_finding_each(repeats):
    keys = keys_of(repeats)
    values = table(repeats, keys)
    step = float(np.mean([run.step_ns for run in repeats]))
    false = [
        int(
            judge_series(values[:, list(one)], values[:, list(other)], Weights(step=step))
            .table["verdict"]
            .eq("REGRESSED")
            .sum()
        )
        for one, other in random_splits(len(repeats), 5, 3, most=40, seed=0)
    ]
    assert np.mean(false) <= 0.3, false


def test_the_bistable_op_is_seen_as_one(repeats):
    key = ("aten::_log_softmax", "[[768,2000],[],[]]")
    modes = two_modes(np.array([run.self_ns[key] for run in repeats]) / 1e6)
    assert (modes.low, modes.high) == (pytest.approx(1.87, abs=0.05), pytest.approx(3.74, abs=0.05))
    assert change_points([run.self_ns[key] for run in repeats]) == []


def first(versions, *numbers):
    return [run for number in numbers for run in versions[number]]


def test_v02_to_v04_changed_nothing(versions):
    for number in (3, 4):
        before = first(versions, *range(1, number))[-5:]
        found = compare(before, versions[number])
        for frame in ("ops", "calls", "presence"):
            assert found.called(frame, "REGRESSED", "ADDED", "REMOVED") == set(), (number, frame)
        assert found.totals["verdict"]["step"] not in ("REGRESSED", "IMPROVED")


@pytest.mark.parametrize("number", [5, 6])
def test_layer_norm_in_float64_is_slower_and_copies_are_called_more_often(versions, number):
    found = compare(first(versions, 3, 4)[-5:], versions[number])
    slower = found.called("ops", "REGRESSED") | found.called("presence", "ADDED") | found.called("names", "REGRESSED")
    assert {"aten::native_layer_norm", "aten::native_layer_norm_backward"} <= slower
    assert "aten::copy_" in slower | found.called("calls", "REGRESSED")
    assert found.totals["verdict"]["step"] not in ("REGRESSED", "IMPROVED")


def test_what_is_taken_back_in_v07_recovers(versions):
    found = compare(first(versions, 5, 6)[-5:], versions[7])
    faster = found.called("ops", "IMPROVED") | found.called("presence", "REMOVED") | found.called("names", "IMPROVED")
    assert {"aten::native_layer_norm", "aten::native_layer_norm_backward"} <= faster
    assert found.called("ops", "REGRESSED") == set()


def test_gelu_written_out_adds_mul_pow_and_tanh_and_explains_the_step(versions):
    found = compare([*versions[4], *versions[7]][-5:], versions[8])
    assert {"aten::mul", "aten::pow", "aten::tanh", "aten::add"} <= found.called("presence", "ADDED")
    assert {"aten::gelu", "aten::gelu_backward"} <= found.called("presence", "REMOVED")
    assert "aten::mul" in found.called("names", "REGRESSED")
    assert found.totals["verdict"]["step"] == "REGRESSED"


def test_what_is_taken_back_in_v09_recovers(versions):
    found = compare(versions[8], versions[9])
    assert {"aten::mul", "aten::pow", "aten::tanh"} <= found.called("presence", "REMOVED")
    assert {"aten::gelu", "aten::gelu_backward"} <= found.called("presence", "ADDED")
    assert found.totals["verdict"]["step"] == "IMPROVED"


def test_kept_activations_are_added_clones_and_repeats_and_more_copying(versions):
    found = compare([*versions[7], *versions[9]][-5:], versions[10])
    added = found.called("presence", "ADDED")
    assert "aten::copy_" in added
    # clone and repeat allocate and leave the copying to copy_: new in every run, but small by their own time
    small = found.presence[found.presence["reason"] == "below the contribution floor"]
    assert {"aten::clone", "aten::repeat"} <= {name for name, _ in small.index[small["contribution"] > 0]}
    assert found.totals["verdict"]["memory"] == "REGRESSED"
    assert found.totals["ratio"]["memory"] == pytest.approx(0.30, abs=0.01)
    # +7.7 % raw, but all operators of these runs are 5.1 % slower and the added copies explain a fifth of it: the rule
    # calls the step itself drift. What is new is found all the same.
    assert found.totals["ratio"]["step"] == pytest.approx(0.077, abs=0.005)
    assert found.totals["reason"]["step"].startswith("machine drift")


def test_late_batches_make_the_step_and_free_time_slower_and_no_operator(versions):
    found = compare([*versions[7], *versions[9]][-5:], versions[11])
    assert found.called("presence", "ADDED", "REMOVED") == set()
    assert found.called("calls", "REGRESSED") == set()
    assert found.totals["verdict"].tolist() == ["REGRESSED", "REGRESSED", "UNCHANGED"]


def test_v12_recovers(versions):
    found = compare(versions[11], versions[12])
    assert found.totals["verdict"].tolist() == ["IMPROVED", "IMPROVED", "UNCHANGED"]
    assert found.called("presence", "ADDED", "REMOVED") == set()


def test_the_labelled_changes_are_dated_in_the_series_of_the_step(versions):
    step = [run.step_ns for number in range(1, 13) for run in versions[number]]
    assert {21, 24, 30, 33} <= set(change_points(step))  # v08, v09, v11, v12
