"""The labelled changes of a nightly training, as the history of its database shows them."""

from __future__ import annotations

import pytest

import tracker
from tracker.reports import render


def line(store, key, **options):
    return tracker.history(key, store=store, **options).points.set_index("version")


def called(points, *words):
    return points.index[points["verdict"].isin(words)].tolist()


def begins(points):
    return points.index[points["change_point"].astype(bool)].tolist()


def test_layer_norm_in_float64_is_slower_in_v05_and_back_in_v07(nightly):
    for name in ("aten::native_layer_norm", "aten::native_layer_norm_backward"):
        points = line(nightly, name)
        assert (called(points, "REGRESSED"), called(points, "IMPROVED")) == (["v05"], ["v07"])
        assert (begins(points), points["back_to"]["v07"]) == (["v05"], "v01")
        # a third by the usual call, 30 % by the sum of the calls
        assert points["judged_change"]["v05"] == pytest.approx(0.32, abs=0.04)


def test_gelu_written_out_is_more_and_slower_mul_in_v08(nightly):
    points = line(nightly, "aten::mul")
    assert (called(points, "REGRESSED"), called(points, "IMPROVED")) == (["v08"], ["v09"])
    assert (begins(points), points["back_to"]["v09"]) == (["v08"], "v01")
    assert points["calls"].tolist() == [82.0] * 7 + [118.0] + [82.0] * 4
    gelu = line(nightly, "aten::gelu")
    assert (called(gelu, "REMOVED"), called(gelu, "ADDED")) == (["v08"], ["v09"])
    assert gelu["back_to"]["v09"] == "v01"


def test_the_step_tells_v08_and_v11_and_late_batches_change_no_operator(nightly):
    step = line(nightly, "step")
    assert (called(step, "REGRESSED"), called(step, "IMPROVED")) == (["v08", "v11"], ["v09", "v12"])
    assert step["back_to"][["v09", "v12"]].tolist() == ["v01", "v01"]
    # of v05, v06 and v10 1 % of the step is copies that the versions around them do not have
    assert begins(step) == ["v05", "v08", "v10", "v11"]
    assert step["back_to"]["v07"] == "v01"
    assert step["level_version"]["v08"] == ""
    assert "lasting changes with v08, v09, v11, v12" in str(render(tracker.history("step", store=nightly)))
    assert called(line(nightly, "idle time"), "REGRESSED")[-1] == "v11"


def test_kept_activations_are_memory_and_copies_in_v10(nightly):
    memory = line(nightly, "peak memory")
    assert called(memory, "REGRESSED") == ["v05", "v08", "v10"], "float64 takes 1.7 MiB in v05 and v06"
    assert memory["change"]["v10"] == pytest.approx(0.295, abs=0.005)
    assert "v10" in called(line(nightly, "aten::copy_"), "REGRESSED")
