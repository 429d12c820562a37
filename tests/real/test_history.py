"""The labelled changes of a nightly training, as the history of its database shows them."""

from __future__ import annotations

import pytest

import tracker


def line(store, key, **options):
    return tracker.history(key, store=store, **options).points.set_index("version")


def called(points, *words):
    return points.index[points["baseline_verdict"].isin(words)].tolist()


def test_layer_norm_in_float64_is_slower_in_v05_and_back_in_v07(nightly):
    for name in ("aten::native_layer_norm", "aten::native_layer_norm_backward"):
        points = line(nightly, name)
        assert (called(points, "REGRESSED"), called(points, "IMPROVED")) == (["v05", "v06"], [])
        assert points["reason"]["v07"] == "back to the level of v04: the regression of v05 is taken back"
        assert points.index[points["change_point"].astype(bool)].tolist() == ["v05", "v07"]
        assert points["baseline_diff"]["v05"] == pytest.approx(0.3, abs=0.02)


def test_gelu_written_out_is_more_and_slower_mul_in_v08(nightly):
    points = line(nightly, "aten::mul")
    assert (called(points, "REGRESSED"), called(points, "IMPROVED")) == (["v08"], [])
    assert points["reason"]["v09"] == "back to the level of v07: the regression of v08 is taken back"
    assert points["calls_verdict"]["v08"] == "REGRESSED"
    assert points["calls"].tolist() == [82.0] * 7 + [118.0] + [82.0] * 4
    gelu = line(nightly, "aten::gelu")
    assert called(gelu, "REMOVED", "ADDED") == ["v08"], "in v09 it is there again, as it was"


def test_the_step_tells_v08_and_v11_and_late_batches_change_no_operator(nightly):
    step = line(nightly, "step")
    assert {"v08", "v11"} <= set(called(step, "REGRESSED"))
    assert called(step, "IMPROVED") == [], "v09 and v12 are back at the level of v07"
    assert all("is taken back" in step["reason"][version] for version in ("v09", "v12"))
    assert not {"v02", "v03", "v04", "v05", "v06", "v07", "v09", "v12"} & set(called(step, "REGRESSED", "IMPROVED"))
    assert step.index[step["change_point"].astype(bool)].tolist() == ["v08", "v09", "v11", "v12"]
    assert called(line(nightly, "free"), "REGRESSED")[-1] == "v11"


def test_kept_activations_are_memory_and_copies_in_v10(nightly):
    memory = line(nightly, "peak memory")
    assert called(memory, "REGRESSED") == ["v08", "v10"]
    assert memory["baseline_diff"]["v10"] == pytest.approx(0.28, abs=0.01)
    assert "v10" in called(line(nightly, "aten::copy_"), "REGRESSED")
