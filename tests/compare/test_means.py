"""From sums per run to a mean per step and rank, and the median over runs."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from tracker.compare import means


def weighted(run_ids: tuple[int, ...], weights: dict[int, float]) -> SimpleNamespace:
    """A side with `weights`: run -> steps of its ranks."""
    index = pd.Index(list(weights), name="run_id")
    return SimpleNamespace(run_ids=run_ids, weights=pd.Series(list(weights.values()), index=index, dtype="float64"))


def rows(*entries: tuple[int, str, float | None]) -> pd.DataFrame:
    frame = pd.DataFrame(entries, columns=["run_id", "name", "ns"])
    return frame.astype({"run_id": "Int64", "ns": "Float64"})


def test_a_sum_over_two_ranks_of_five_steps_is_divided_by_ten():
    side = weighted((1,), {1: 10})
    assert means.per_step(side, rows((1, "mm", 500)), ["name"], ["ns"])["ns"].to_dict() == {"mm": 50.0}


def test_several_rows_of_one_key_add_up_before_the_division():
    side = weighted((1,), {1: 2})
    frame = rows((1, "mm", 10), (1, "mm", 30))
    assert means.per_step(side, frame, ["name"], ["ns"])["ns"].to_dict() == {"mm": 20.0}


def test_over_runs_the_median_counts_and_a_run_without_the_op_counts_as_zero():
    side = weighted((1, 2, 3), {1: 1, 2: 1, 3: 1})
    frame = rows((1, "mm", 10), (2, "mm", 90), (3, "mm", 20), (2, "rare", 7))
    assert means.per_step(side, frame, ["name"], ["ns"])["ns"].to_dict() == {"mm": 20.0, "rare": 0.0}


def test_missing_stays_missing_and_is_not_zero():
    side = weighted((1,), {1: 1})
    found = means.per_step(side, rows((1, "mm", None)), ["name"], ["ns"])
    assert pd.isna(found.loc["mm", "ns"])


def test_missing_in_one_of_two_runs_leaves_the_other_to_speak():
    side = weighted((1, 2), {1: 1, 2: 1})
    found = means.per_step(side, rows((1, "mm", None), (2, "mm", 8)), ["name"], ["ns"])
    assert found.loc["mm", "ns"] == 8.0


def test_the_dominant_text_carries_most_weight_and_ties_go_to_the_alphabet():
    frame = pd.DataFrame({"name": ["a", "a", "a", "b", "b"], "module": ["x", "y", "", "q", "p"], "ns": [1, 2, 9, 5, 5]})
    assert list(means.dominant(frame, ["name"], "module", "ns")) == ["p", "y"]


def test_extremes_are_over_everything():
    frame = pd.DataFrame({"name": ["a", "a"], "min_ns": [3, 2], "max_ns": [5, 9]})
    found = means.extremes(frame, ["name"], "min_ns", "max_ns")
    assert found.iloc[0].tolist() == pytest.approx([2.0, 9.0])
