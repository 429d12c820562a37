"""From sums per run to a mean per step and rank, and the median over runs."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tracker.columns import Columns
from tracker.compare import means
from tracker.compare.keys import Numbered, numbered


def per_step(weights: dict[int, float], table: Columns) -> dict[str, float]:
    """name -> ns of a side with `weights`: run -> steps of its ranks."""
    (own,), keys = numbered([table], ["name"])
    found = means.per_step(SimpleNamespace(run_ids=tuple(weights), weights=weights), own, ["ns"])
    return dict(zip(keys["name"], found["ns"].tolist(), strict=True))


def rows(*entries: tuple[int, str, float | None]) -> Columns:
    frame = pd.DataFrame(entries, columns=["run_id", "name", "ns"])
    return Columns.of_frame(frame.astype({"run_id": "Int64", "ns": "Float64"}))


def of(columns: dict[str, list[object]]) -> Columns:
    return Columns.of_frame(pd.DataFrame(columns))


def test_a_sum_over_two_ranks_of_five_steps_is_divided_by_ten():
    assert per_step({1: 10}, rows((1, "mm", 500))) == {"mm": 50.0}


def test_several_rows_of_one_key_add_up_before_the_division():
    assert per_step({1: 2}, rows((1, "mm", 10), (1, "mm", 30))) == {"mm": 20.0}


def test_over_runs_the_median_counts_and_a_run_without_the_op_counts_as_zero():
    frame = rows((1, "mm", 10), (2, "mm", 90), (3, "mm", 20), (2, "rare", 7))
    assert per_step({1: 1, 2: 1, 3: 1}, frame) == {"mm": 20.0, "rare": 0.0}


def test_missing_stays_missing_and_is_not_zero():
    assert math.isnan(per_step({1: 1}, rows((1, "mm", None)))["mm"])


def test_missing_in_one_of_two_runs_leaves_the_other_to_speak():
    assert per_step({1: 1, 2: 1}, rows((1, "mm", None), (2, "mm", 8))) == {"mm": 8.0}


def test_a_key_of_the_other_side_alone_is_missing():
    side = SimpleNamespace(run_ids=(1,), weights={1: 1})
    found = means.per_step(side, Numbered(rows((1, "mm", 8)), np.array([1]), 2), ["ns"])
    assert found["ns"].tolist() == pytest.approx([np.nan, 8.0], nan_ok=True)


def test_the_dominant_text_carries_most_weight_and_ties_go_to_the_alphabet():
    table = of({"module": ["x", "y", "", "q", "p"], "ns": [1, 2, 9, 5, 5]})
    assert list(means.dominant(Numbered(table, np.array([0, 0, 0, 2, 2]), 3), "module", "ns")) == ["y", "", "p"]


def test_distinct_texts_are_listed_once_in_order():
    table = of({"types": ["int", "float", "int", "", "half"]})
    assert list(means.distinct_texts(Numbered(table, np.array([0, 0, 0, 2, 2]), 3), "types")) == [
        "float | int",
        "",
        "half",
    ]


def test_extremes_are_over_everything():
    table = of({"min_ns": [3, 2], "max_ns": [5, 9]})
    found = means.extremes(Numbered(table, np.array([0, 0]), 1), "min_ns", "max_ns")
    assert {name: values.tolist() for name, values in found.items()} == {"min_ns": [2.0], "max_ns": [9.0]}
