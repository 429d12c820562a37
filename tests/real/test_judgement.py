"""The rule on real runs: what each labelled change is found by, one version against those before it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.real import data
from tests.real.gates import compare
from tests.real.per_run import run_of
from tracker.detectors import change_points
from tracker.detectors.within import two_modes


@pytest.fixture(scope="module")
def versions():
    paths = sorted(data.path("torch_cpu/nightly_gpt").glob("*.gz"))
    return {
        version: [run_of(path) for path in paths if path.name.startswith(f"v{version:02}_")] for version in range(1, 13)
    }


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
