"""The operators of one run with most time, per step."""

from __future__ import annotations

from tests.factories import save
from tracker.compare import diff, show
from tracker.results import DiffOptions, ShowOptions


def names(shown):
    return shown.tables["largest"].rows("kind", "name", "calls", "total_ns", "per_step_ns", "calls_per_step")


def test_shapes_of_an_operator_are_one_row_per_step(store):
    """Two steps: mm takes 100 + 40 ns of device time in each, in one call of either shape."""
    ops = [("mm", 100, {"input_shapes": "[8]"}), ("mm", 40, {"input_shapes": "[4]"}), ("add", 60)]
    save(store, "v1", ops=ops, steps=2)
    mm, add = names(show(store, "run:1"))
    assert mm == ("operator", "mm", 4, 280, 140.0, 2.0)
    assert add == ("operator", "add", 2, 120, 60.0, 1.0)


def test_number_of_an_operator_is_that_of_diff_by_name(store):
    save(store, "v1", ops=[("mm", 100, {"input_shapes": "[8]"}), ("mm", 41, {"input_shapes": "[4]"})], steps=3)
    (row,) = names(show(store, "run:1"))
    by_name = diff(store, "v1", "v1", options=DiffOptions(match="name")).ops
    assert row[4] == by_name["baseline_ns"][0] == 141.0


def test_filters_keep_the_share_of_all_operators(store):
    """mm has 100 of 200 ns, whatever is shown beside it."""
    save(store, "v1", ops=[("mm", 100), ("add", 60), ("mul", 40)], steps=2)
    shown = show(store, "run:1", options=ShowOptions(op="mm"))
    assert list(shown.tables["largest"].rows("name", "share")) == [("mm", 0.5)]


def test_least_time_counts_all_shapes_of_a_name(store):
    """mm takes 100 and 10 ns in a step: with --min-us of 50 ns both its numbers are of both shapes, add's 20 go."""
    shapes = [("mm", 100, {"input_shapes": "[8]"}), ("mm", 10, {"input_shapes": "[4]"}), ("add", 20)]
    save(store, "v1", ops=shapes, steps=2)
    (row,) = names(show(store, "run:1", options=ShowOptions(minimum_ns=50)))
    assert row == ("operator", "mm", 4, 220, 110.0, 2.0)
