"""Two sides side by side, with numbers to check in the head."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.columns import Columns, objects
from tracker.compare import match
from tracker.compare.match import sum_exactly
from tracker.table import number_tables


def side(**ns: float) -> Columns:
    return Columns({"name": objects(list(ns)), "ns": np.array(list(ns.values()), dtype=np.float64)})


def differences(baseline: Columns, candidate: Columns) -> pd.DataFrame:
    rows, keys = number_tables([baseline, candidate], ["name"])
    tables = [{"ns": sum_exactly(own.rows["ns"], own.number, own.count)} for own in rows]
    return match.add_difference(match.match_rows(keys, rows, tables), "ns").frame


def test_a_key_on_one_side_is_added_or_removed_and_never_zero():
    by_name = differences(side(gemm=100.0, relu=5.0), side(gemm=110.0, softmax=3.0)).set_index("name")
    assert by_name["status"].to_dict() == {"gemm": "both", "relu": "REMOVED", "softmax": "ADDED"}
    assert by_name["delta_ns"].to_dict() == {"gemm": 10.0, "relu": -5.0, "softmax": 3.0}
    assert by_name.loc["gemm", "diff"] == pytest.approx(0.1)
    assert pd.isna(by_name.loc["softmax", "baseline_ns"])
    assert pd.isna(by_name.loc["softmax", "diff"])
    assert pd.isna(by_name.loc["relu", "candidate_ns"])


def test_the_largest_change_comes_first_whatever_its_sign():
    joined = differences(side(a=1.0, b=50.0, c=5.0), side(a=4.0, b=10.0, c=5.0))
    assert list(joined["name"]) == ["b", "a", "c"]


def test_a_change_splits_exactly_into_more_calls_and_slower_calls():
    # 2 calls of 10 ns became 4 calls of 15 ns: 20 -> 60; two more calls at 10 are +20, four calls slower by 5 are +20
    numbers = {"baseline_ns": 20.0, "candidate_ns": 60.0, "baseline_calls": 2.0, "candidate_calls": 4.0}
    split = match.split_by_calls(Columns({name: np.array([number]) for name, number in numbers.items()}))
    assert (split["calls_delta_ns"][0], split["per_call_delta_ns"][0]) == (20.0, 20.0)


def test_rows_of_one_size_follow_their_texts_then_the_numbers_of_their_key():
    key = {"group_size": np.array([8, 2, 4]), "kind": objects(["all_reduce", "all_reduce", "all_gather"])}
    ordered = match.sort_by_size(Columns({**key, "delta_ns": np.array([-1.0, 1.0, 1.0])}), "delta_ns", np.full(3, 5.0))
    assert list(ordered["group_size"]) == [4, 2, 8]


times = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 1_000_000).map(float), max_size=6)


@given(times, times)
def test_swapping_the_sides_mirrors_the_difference(baseline, candidate):
    there = differences(side(**baseline), side(**candidate)).set_index("name")
    back = differences(side(**candidate), side(**baseline)).set_index("name")
    mirrored = {"ADDED": "REMOVED", "REMOVED": "ADDED", "both": "both"}
    assert set(there.index) == set(back.index)
    for name in there.index:
        assert there.loc[name, "delta_ns"] == -back.loc[name, "delta_ns"]
        assert there.loc[name, "status"] == mirrored[back.loc[name, "status"]]


@given(times)
def test_a_side_against_itself_is_all_zero(numbers):
    joined = differences(side(**numbers), side(**numbers))
    assert (joined["delta_ns"] == 0).all()
    assert (joined["diff"] == 0).all()


def test_a_table_without_rows_has_the_kinds_of_columns_that_one_with_rows_has():
    kinds = match.empty_table("kernels").frame.dtypes.astype(str)
    assert kinds[["name", "op", "category", "why", "verdict"]].tolist() == ["string"] * 5
    assert kinds[["baseline_ns", "delta_ns", "q"]].tolist() == ["float64"] * 3
    assert match.empty_table("communication").frame["group_size"].dtype == "Int64"
